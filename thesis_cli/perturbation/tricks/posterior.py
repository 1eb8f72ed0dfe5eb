"""The Bayesian posterior of Z from ringing times (Thesis section 2.2.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaincinv, gammaln, polygamma

from thesis_cli.base.arrays import Floats
from thesis_cli.base.log_sums import log_sum_exp


@dataclass(frozen=True)
class GammaPosterior:
    """Posterior of Z given ringing times T_1..T_M ~ Exp(Z) under Jeffreys' prior 1/Z: Gamma(M, sum
    of T) (eq. 2.5).

    Attributes
    ----------
    shape : M.
    log_rate : ln of the sum of the ringing times.
    """

    shape: int
    log_rate: float

    @classmethod
    def from_log_times(cls, log_t: Floats) -> GammaPosterior:
        """The posterior from ln T, shape (M,)."""
        return cls(log_t.size, float(log_sum_exp(log_t)))

    @property
    def mean_log_z(self) -> float:
        """E[ln Z | T] = digamma(M) - ln sum T, which is the debiased Exponential estimate of ln
        Z."""
        return float(digamma(self.shape)) - self.log_rate

    @property
    def deviation_log_z(self) -> float:
        """Standard deviation of ln Z, sqrt(trigamma(M)), which does not depend on the times."""
        return math.sqrt(float(polygamma(1, self.shape)))

    @property
    def log_mean_z(self) -> float:
        """ln E[Z | T] = ln M - ln sum T, the Exponential estimate of Z (eq. 2.6)."""
        return math.log(self.shape) - self.log_rate

    def log_quantile(self, probability: float) -> float:
        """ln of the quantile of Z."""
        quantile = float(gammaincinv(self.shape, probability))
        if quantile > 0:
            return math.log(quantile) - self.log_rate
        # Below the range of a double the first term of the series is enough: P(x) = x^M / M!.
        return (math.log(probability) + float(gammaln(self.shape + 1))) / self.shape - self.log_rate

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Equal-tailed credible interval of ln Z; Z sum T ~ Gamma(M, 1) makes it a confidence
        interval too."""
        tail = (1 - confidence) / 2
        return self.log_quantile(tail), self.log_quantile(1 - tail)

    def log_density(self, log_z: Floats) -> Floats:
        """ln of the posterior density of Z at exp(log_z) (eq. 2.5, normalised)."""
        m = self.shape
        return np.asarray(m * self.log_rate + (m - 1) * log_z - np.exp(log_z + self.log_rate) - gammaln(m))
