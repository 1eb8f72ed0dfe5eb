"""The Gumbel trick and its relatives (Thesis sections 2.2.2 and 2.2.3, Table 2.1; errata T2.1).

The first of the exponential clocks with rates exp(phi(x)) rings at T ~ Exp(Z), and T = e^-c
exp(-max_x {phi(x) + gamma(x)}), gamma ~ Gumbel(-c) (eqs. 2.1, 2.3, 2.4 as corrected). A trick
averages g(T), whose mean is f(Z), and applies f^-1. All tricks can use the same MAP values.

Each trick averages in a space of its own, computed from ln T, in which nothing overflows.

The errors of the Gumbel and Exponential estimators from M samples (Thesis A.1, as corrected), the
Bayesian posterior of Z (section 2.2.4), and estimates of ln Z, Z and f(Z) by any trick follow the
tricks. Bias and variance of Z^ are in units of Z and Z^2, those of ln Z^ absolute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, digamma, gammaincinv, gammaln, polygamma, zeta

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.rounding import log_sum_exp
from thesis_cli.perturbation.estimate import Estimate, check_confidence, from_logs, normal_quantile
from thesis_cli.perturbation.tricks.parameters import FRECHET, LEAST_ALPHA, MOST_ALPHA, WEIBULL

Function = Callable[[Any], Any]
"""A function of floats or of arrays, elementwise."""

IntervalRule = Callable[[Floats, float], tuple[float, float]]
"""(ln T of shape (M,), confidence) -> confidence interval of ln Z."""


@dataclass(frozen=True)
class Trick:
    """One row of Table 2.1.

    Attributes
    ----------
    name, label : family; with its parameter, if it has one.
    g : the transform of T.
    mean : f(Z) = E g(T); nan outside the domain.
    inverse : f^-1.
    variance : variance of g(T) as a function of Z; inf where it is infinite, nan outside the
        domain.
    printed_variance, printed_asymptotic_variance : as Table 2.1 prints them.
    relative_variance : lim M var(Z^) / Z^2 as M grows, which equals lim M var(ln Z^); a function of
        ln Z.
    average : (..., M) values of ln T -> (...), the mean of g(T) in the trick's own space.
    log_z : that average -> the estimate of ln Z.
    log_transform : that average -> ln of the mean of g(T); None if g takes both signs.
    target : f as text.
    source : where the trick is defined.
    linear : whether the estimate of ln Z is a mean of the MAP values.
    log_z_error : M -> bias and variance of the estimate of ln Z, where both are known for every M.
    z_error : M -> bias and variance of the estimate of Z in units of Z and Z^2, where they are
        known.
    interval : confidence interval of ln Z where it is not the normal one.
    """

    name: str
    label: str
    g: Function
    mean: Function
    inverse: Function
    variance: Function
    printed_variance: Function
    printed_asymptotic_variance: Function
    relative_variance: Function
    average: Function
    log_z: Function
    log_transform: Function | None
    target: str
    source: str = "Thesis Table 2.1"
    linear: bool = False
    log_z_error: Function | None = None
    z_error: Function | None = None
    interval: IntervalRule | None = None

    def bias_to_remove(self, samples: int, debias: bool) -> tuple[float, str]:
        """The bias to subtract from the estimate of ln Z from M samples, and the kind it then has.

        Parameters
        ----------
        debias : subtract the bias, if it is known.

        Returns
        -------
        bias : nats.
        kind : `unbiased` or `consistent`.
        """
        if self.log_z_error is None:
            return 0.0, "consistent"
        bias = float(self.log_z_error(np.float64(samples))[0])
        return (bias, "unbiased") if debias or bias == 0 else (0.0, "consistent")

    def asymptotic_variance(self, z: Floats) -> Floats:
        """lim M var(Z^) by the delta method, (f^-1)'(f(Z))^2 var g(T), as a function of Z."""
        return np.asarray(z**2 * self.relative_variance(np.log(z)))

    def estimate_log_z(self, log_t: Floats) -> Floats:
        """f^-1 of the mean of g(T): ln T, shape (..., M) -> estimates of ln Z, shape (...)."""
        return np.asarray(self.log_z(self.average(log_t)))


def gumbel() -> Trick:
    """g(T) = -ln T - c, whose mean is ln Z."""
    c = np.euler_gamma
    constant = math.pi**2 / 6
    return Trick(
        name="gumbel",
        label="gumbel",
        g=lambda t: -np.log(t) - c,
        mean=np.log,
        inverse=np.exp,
        variance=lambda z: np.full_like(z, constant),
        printed_variance=lambda z: np.full_like(z, constant),
        printed_asymptotic_variance=lambda z: constant * z**2,
        relative_variance=lambda log_z: np.full_like(log_z, constant),
        average=lambda log_t: -log_t.mean(axis=-1) - c,
        log_z=lambda a: a,
        log_transform=None,
        target="ln Z",
        source="Thesis eq. 2.1'",
        linear=True,
        log_z_error=gumbel_log_z_error,
        z_error=gumbel_z_error,
    )


def power(alpha: float) -> Trick:
    """g(T) = T^alpha: Weibull (alpha > 0, Exponential at 1) and Frechet (-1 < alpha < 0) tricks.

    Raises
    ------
    InputError : alpha is 0 (the limit is the Gumbel trick) or too close to 0, -1 or less, or above
        10.
    """
    if not (FRECHET.allows(alpha) or WEIBULL.allows(alpha)):
        raise InputError(
            f"alpha is {alpha:g}",
            f"it must be from {LEAST_ALPHA:g} to {MOST_ALPHA:g} (weibull) or above -1 and at most -{LEAST_ALPHA:g} "
            "(frechet); 0 is the Gumbel trick",
        )
    log_mean = float(gammaln(1 + alpha))
    excess = _excess(alpha)

    def variance(z: Floats) -> Floats:
        return np.asarray(np.exp(2 * log_mean) * excess * z ** (-2 * alpha))

    name = "weibull" if alpha > 0 else "frechet"
    trick = Trick(
        name=name,
        label=f"{name}({alpha:g})",
        g=lambda t: t**alpha,
        mean=lambda z: math.exp(log_mean) * z**-alpha,
        inverse=lambda y: (y / math.exp(log_mean)) ** (-1 / alpha),
        variance=variance,
        printed_variance=variance,
        printed_asymptotic_variance=lambda z: z**2 * excess / alpha**2,
        relative_variance=lambda log_z: np.full_like(log_z, excess / alpha**2),
        average=lambda log_t: log_mean_exp(alpha * log_t),
        log_z=lambda a: (log_mean - a) / alpha,
        log_transform=lambda a: a,
        target=f"Gamma({1 + alpha:g}) Z^{-alpha:g}",
        source="Thesis Example 6",
        z_error=_no_mean if alpha < 0 else None,
    )
    if alpha != 1:
        return trick
    return replace(
        trick,
        name="exponential",
        label="exponential",
        target="1/Z",
        log_z_error=exponential_log_z_error,
        z_error=exponential_z_error,
        interval=_gamma_interval,
    )


def _no_mean(m: Floats) -> tuple[float, float]:
    """A Frechet trick's estimate of Z has no mean, whatever M (docs/errata.md)."""
    return math.inf, math.inf


def _gamma_interval(log_t: Floats, confidence: float) -> tuple[float, float]:
    """Exact: Z sum T is Gamma(M, 1)."""
    return GammaPosterior.from_log_times(log_t).interval(confidence)


def _excess(alpha: float) -> float:
    """Gamma(1 + 2 alpha) / Gamma(1 + alpha)^2 - 1; infinite from alpha = -1/2 down."""
    if alpha <= -0.5:
        return math.inf
    return float(np.expm1(gammaln(1 + 2 * alpha) - 2 * gammaln(1 + alpha)))


def pareto(log_scale: float = 0.0) -> Trick:
    """g(T) = e^{sT}, whose mean is Z / (Z - s) for Z > s; its variance is finite for Z > 2s.

    Parameters
    ----------
    log_scale : ln s. Table 2.1 has s = 1; another s applies the trick to Z in units of s.
    """
    s = _saturating_exp(log_scale)

    def mean(z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.where(z > s, z / (z - s), np.nan)

    def variance(z: Floats) -> Floats:
        return _from_two(z / s, lambda r: r / ((r - 1) ** 2 * (r - 2)))

    return Trick(
        name="pareto",
        label="pareto" if log_scale == 0 else f"pareto({_size(log_scale)})",
        g=lambda t: np.exp(s * t),
        mean=mean,
        inverse=lambda y: s * y / (y - 1),
        variance=variance,
        printed_variance=variance,
        printed_asymptotic_variance=lambda z: _from_two(z / s, lambda r: (s * r / (r - 2)) ** 2),
        # (r-1)^2 / (r (r-2)) in a form that does not overflow
        relative_variance=lambda log_z: _from_two(np.exp(log_z - log_scale), lambda r: 1 + 1 / r / (r - 2)),
        # the mean of e^{sT} - 1, by its logarithm: Z = s + s / that
        average=lambda log_t: log_mean_exp(_log_expm1_exp(log_t + log_scale)),
        log_z=lambda a: np.logaddexp(0, -a) + log_scale,
        log_transform=lambda a: np.logaddexp(0, a),
        target="Z/(Z-1)" if log_scale == 0 else f"Z/(Z-{_size(log_scale)})",
    )


def _from_two(ratio: Floats, function: Function) -> Floats:
    """A variance of the Pareto trick by Z/s: finite above 2, inf from 1 to 2, nan below."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(ratio > 2, function(ratio), np.where(ratio > 1, np.inf, np.nan)))


def tail(log_threshold: float) -> Trick:
    """g(T) = 1{T > t}, whose mean is e^{-tZ}.

    Parameters
    ----------
    log_threshold : ln t.
    """
    t = _saturating_exp(log_threshold)

    def log_z(a: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(-np.log(a)) - log_threshold

    def late(log_t: Floats) -> Floats:
        return np.asarray((log_t > log_threshold).mean(axis=-1))

    def clopper_pearson(log_t: Floats, confidence: float) -> tuple[float, float]:
        m, above = log_t.size, round(float(late(log_t)) * log_t.size)
        rare = (1 - confidence) / 2
        least = betaincinv(above, m - above + 1, rare) if above else 0.0
        most = betaincinv(above + 1, m - above, 1 - rare) if above < m else 1.0
        low, high = log_z(np.array([most, least]))
        return float(low), float(high)

    def relative_variance(log_z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            u = np.exp(log_z + log_threshold)
            return np.asarray(np.expm1(u) / u**2)

    return Trick(
        name="tail",
        label=f"tail({_size(log_threshold)})",
        g=lambda time: (time > t).astype(np.float64),
        mean=lambda z: np.exp(-t * z),
        inverse=lambda y: -np.log(y) / t,
        variance=lambda z: -np.exp(-t * z) * np.expm1(-t * z),
        printed_variance=lambda z: np.exp(-t * z) * (1 - np.exp(-t * z)),
        printed_asymptotic_variance=lambda z: (1 - np.exp(-t * z)) ** 2 / t**2,
        relative_variance=relative_variance,
        average=late,
        log_z=log_z,
        log_transform=np.log,
        target=f"exp(-{_size(log_threshold)} Z)",
        interval=clopper_pearson,
    )


def _saturating_exp(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(x))


def _size(log_value: float) -> str:
    """A positive number by its logarithm, as text."""
    return f"{np.exp(log_value):.4g}" if abs(log_value) < 690 else f"e^{log_value:.6g}"


def log_mean_exp(x: Floats) -> Floats:
    """ln of the mean of exp(x), shape (..., M), over the last axis."""
    return log_sum_exp(x) - math.log(x.shape[-1])


def _log_expm1_exp(log_t: Floats) -> Floats:
    """ln(e^T - 1) from ln T: T + ln(1 - e^-T), which is ln T where T is small."""
    with np.errstate(over="ignore"):
        t = np.exp(log_t)
    small = log_t < -37
    safe = np.where(small, 1.0, t)
    return np.where(small, log_t, safe + np.log(-np.expm1(-safe)))


def gumbel_z_error(m: Floats) -> tuple[Floats, Floats]:
    """Bias (inf at M = 1) and variance, of the shape of M, (inf at M <= 2) of Z^ = exp(mean of MAP values) (A.1.1)."""
    with np.errstate(all="ignore"):
        first = m * _log_gamma(1 / m)
        excess = m * (_log_gamma(2 / m) - 2 * _log_gamma(1 / m))
        bias = np.where(m > 1, np.expm1(first), np.inf)
        variance = np.where(m > 2, np.exp(2 * first) * np.expm1(excess), np.inf)
    return bias, variance


def _log_gamma(x: Floats) -> Floats:
    """ln Gamma(1 - x) - c x, by its series where the difference loses digits."""
    k = np.arange(2, 10)
    series = (zeta(k) / k * np.power.outer(x, k)).sum(axis=-1)
    return np.where(x < 0.02, series, gammaln(1 - x) - np.euler_gamma * x)


def exponential_z_error(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance, of the shape of M, of Z^ = 1 / mean of T; inf for M = 1, variance inf for M = 2 (A.1.1)."""
    with np.errstate(all="ignore"):
        bias = np.where(m > 1, 1 / (m - 1), np.inf)
        variance = np.where(m > 2, m**2 / ((m - 1) ** 2 * (m - 2)), np.inf)
    return bias, variance


def gumbel_log_z_error(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance, of the shape of M, of the mean of the MAP values (A.1.2)."""
    return np.zeros_like(m), np.pi**2 / 6 / m


def exponential_log_z_error(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance, of the shape of M, of -ln of the mean of T (A.1.2)."""
    return np.log(m) - digamma(m), np.asarray(polygamma(1, m))


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


TARGETS = ("lnZ", "Z", "f")


def estimate(
    trick: Trick,
    values: Floats,
    *,
    target: str = "lnZ",
    debias: bool = True,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate ln Z, Z or f(Z) from full-rank MAP values by one trick.

    Parameters
    ----------
    trick : the trick to apply.
    values : independent max_x {phi(x) + gamma(x)}, gamma ~ Gumbel(-c), shape (M,).
    target : `lnZ`, `Z`, or `f` for the unbiased estimate of the trick's own f(Z).
    debias : remove the bias where it is known exactly: Exponential on ln Z (ln M - digamma(M)) and
        on Z (M / (M-1)), Gumbel on Z (Gamma(1 - 1/M)^M e^-c).
    confidence : confidence level of the interval.

    Returns
    -------
    Estimate : the standard error is exact for Gumbel and Exponential, and by the delta method for
        the others; the interval is exact for Exponential (Gamma) and tail (Clopper-Pearson), and
        normal on ln Z for the others.

    Raises
    ------
    InputError : there are no values, or the target or the confidence is out of range.
    """
    if target not in TARGETS:
        raise InputError(f"the target is '{target}'", f"it must be one of {', '.join(TARGETS)}")
    check_confidence(confidence)
    if values.size == 0:
        raise InputError("there are no MAP values", "there must be at least one")
    log_t = -np.euler_gamma - values
    if target == "f" and trick.log_transform is not None:
        return _transform(trick, log_t, confidence)
    m = values.size
    log_z = float(trick.estimate_log_z(log_t))
    error = _error_log_z(trick, log_z, m)
    low, high = _interval(trick, log_t, log_z, error, confidence)
    if target == "Z":
        shift = _log_bias_factor(trick, m) if debias else None
        log_z -= shift or 0.0
        value, spread, low, high, exponent = from_logs(log_z, _relative_error_z(trick, error, m), low, high)
        kind = "consistent" if shift is None else "unbiased"
        return Estimate(value, spread, low, high, "Z", kind, confidence, m, trick.label, trick.source, exponent)
    bias, kind = trick.bias_to_remove(m, debias)
    log_z -= bias
    return Estimate(log_z, error, low, high, "ln Z", kind, confidence, m, trick.label, trick.source)


def _error_log_z(trick: Trick, log_z: float, m: int) -> float:
    """Standard deviation of the estimate of ln Z."""
    if trick.log_z_error is not None:
        return math.sqrt(float(trick.log_z_error(np.float64(m))[1]))
    relative = float(trick.relative_variance(np.float64(log_z)))
    return math.sqrt(relative / m) if math.isfinite(relative) else math.inf


def _log_bias_factor(trick: Trick, m: int) -> float | None:
    """ln(E[Z^] / Z) where it is known and finite (A.1.1)."""
    bias = math.inf if trick.z_error is None else float(trick.z_error(np.float64(m))[0])
    return math.log1p(bias) if math.isfinite(bias) else None


def _relative_error_z(trick: Trick, error_log_z: float, m: int) -> float:
    """Standard deviation of the estimate of Z over its mean (A.1.1)."""
    if m <= 2:
        return math.inf
    if trick.z_error is None:
        return error_log_z
    bias, variance = trick.z_error(np.float64(m))
    return math.sqrt(float(variance)) / (1 + float(bias)) if math.isfinite(variance) else math.inf


def _interval(trick: Trick, log_t: Floats, log_z: float, error: float, confidence: float) -> tuple[float, float]:
    """Confidence interval of ln Z."""
    if trick.interval is not None:
        return trick.interval(log_t, confidence)
    if not math.isfinite(error):
        return -math.inf, math.inf
    half = normal_quantile((1 + confidence) / 2) * error
    return log_z - half, log_z + half


def _transform(trick: Trick, log_t: Floats, confidence: float) -> Estimate:
    """The mean of g(T), with the standard error of the sample."""
    assert trick.log_transform is not None
    m = log_t.size
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_g = trick.log_transform(trick.average(log_t[:, np.newaxis]))
        log_mean = float(trick.log_transform(trick.average(log_t)))
        spread = float(np.exp(log_g - log_mean).std(ddof=1)) / math.sqrt(m) if m > 1 else math.inf
    if not math.isfinite(spread):
        spread = math.inf
    value, _, _, _, exponent = from_logs(log_mean, 0.0, log_mean, log_mean)
    half = normal_quantile((1 + confidence) / 2) * spread * value if value else 0.0
    return Estimate(
        value,
        value * spread if value else 0.0,
        value - half,
        value + half,
        trick.target,
        "unbiased",
        confidence,
        m,
        trick.label,
        trick.source,
        exponent,
    )
