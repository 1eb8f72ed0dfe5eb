r"""Exact variances of the estimators of H_alpha, of one perturbation each (beyond Thesis Propositions 8 and 19).

With noise gamma'(x) = gamma(x) on a set A and independent elsewhere, the maxima at alpha and at 1 have the joint
distribution function exp(-e^-c S) at s, t, where S = sum_A max(e^(alpha phi - s), e^(phi - t)) + sum_rest
(e^(alpha phi - s) + e^(phi - t)). Hoeffding's formula and Frullani's integral leave, with q = p^alpha / sum p^alpha,

    pi^2/6 - Cov = D = int ln [(sum_A max(p, q e^-u) + sum_rest (p + q e^-u)) / max(1, e^-u)] du.

As max(a, b) <= a + b, D falls as A grows: sharing more noise never raises a variance, which is Proposition 8 and more.
It is 0 only for all of a uniform distribution.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats

UNIT = math.pi**2 / 6
"""Variance of a Gumbel variable, nats^2."""

QUADRATURE = 1e-5
"""Relative error of D, at most: 1.5e-6 beside 400,001 nodes and all the kinks."""

_NODES = np.sinh(np.linspace(-4.5, 4.5, 16_001))
"""From -45 to 45, where e^-|u| rounds away, dense about 0."""

_LEAST_KINK = -9.0
"""The integrand has a kink at each level of A; those of levels with a larger log-probability are nodes too."""


def with_log_z(alpha: Floats | float) -> Floats:
    """Of eq. 3.8, ln Z known, no control variate: pi^2/6 / (1 - alpha)^2, nats^2."""
    return np.asarray(UNIT / (1 - np.asarray(alpha)) ** 2)


def independent(alpha: Floats | float) -> Floats:
    """Of eq. 3.12 with independent noise: (1 + alpha^2) / (1 - alpha)^2 pi^2/6, nats^2 (eq. 3.14)."""
    return np.asarray(with_log_z(alpha) * (1 + np.asarray(alpha) ** 2))


class Steps:
    """A distribution by its distinct probabilities, and what it makes of the variances that depend on it.

    Parameters
    ----------
    log_weights : ln p up to a constant, shape (N,).

    Attributes
    ----------
    levels : the values of ln p, ascending, shape (L,).
    masses : probability of each level, shape (L,).
    """

    def __init__(self, log_weights: Floats) -> None:
        self.levels, counts = np.unique(log_weights - logsumexp(log_weights), return_counts=True)
        self._log_counts: Floats = np.log(counts)
        self.masses: Floats = np.asarray(counts * np.exp(self.levels))
        self._known: dict[tuple[float, int], float] = {}

    def deficit(self, alpha: float, first: int = 0) -> float:
        """D, for A the configurations of level number `first` and above; nats^2.

        Parameters
        ----------
        alpha : above 0 and finite.
        first : 0 for all, L for none.
        """
        if (alpha, first) not in self._known:
            self._known[alpha, first] = self._integral(alpha, first)
        return self._known[alpha, first]

    def _integral(self, alpha: float, first: int) -> float:
        log_p = self.levels + self._log_counts
        log_q = alpha * self.levels + self._log_counts
        log_q -= logsumexp(log_q)
        log_p, log_q = log_p[first:], log_q[first:]
        if alpha < 1:
            log_p, log_q = log_p[::-1], log_q[::-1]
        p_above = np.append(np.cumsum(np.exp(log_p[::-1]))[::-1], 0)
        q_below = np.append(0, np.cumsum(np.exp(log_q)))
        kinks = log_q - log_p
        sharp = (np.abs(kinks) < _NODES[-1]) & (np.maximum(log_p, log_q) > _LEAST_KINK)
        u = np.union1d(_NODES, kinks[sharp])
        at = np.searchsorted(kinks, u)
        common = p_above[at] + np.exp(-u) * q_below[at]  # sum_A min(p, q e^-u)
        missing = np.exp(-np.abs(u)) - common * np.exp(np.minimum(u, 0))
        return float(np.trapezoid(np.log1p(np.maximum(missing, 0)), u))

    def shared(self, alpha: float, first: int = 0) -> float:
        """Of eq. 3.13, nats^2: pi^2/6 + 2 alpha D / (1 - alpha)^2; at alpha = 1 by Theorem 9, for all noise shared."""
        if alpha == 1:
            return UNIT + self.log_p_variance()
        return UNIT + 2 * alpha * self.deficit(alpha, first) / (1 - alpha) ** 2

    def controlled(self, alpha: float) -> float:
        """Of eq. 3.8 less the best multiple of max{phi + gamma} - ln Z: (1 - rho^2) of its own, rho the correlation."""
        if alpha == 1:
            return self.log_p_variance()
        lost = self.deficit(alpha) / UNIT
        return float(with_log_z(alpha)) * lost * (2 - lost)

    def log_p_variance(self) -> float:
        """Variance of ln p(X), X ~ p, nats^2."""
        return float(self.masses @ (self.levels - self.masses @ self.levels) ** 2)
