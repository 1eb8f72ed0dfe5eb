"""Bounds on ln Z and on entropy from low-rank perturbed maxima (Thesis 2.3.1, 2.3.4, 2.4).

Intervals rest on a bound on the distance between the mean of M independent perturbed maxima and its
expectation. For a maximum U of n noise terms, ln E[e^{s (U - E[U])}] <= n k(s) with k(s) = ln Gamma(1 - s) - c s,
which is the moment of a sum of n Gumbel(-c) variables (docs/low-rank.md). By Markov's inequality, and
since k(-s) <= k(s), the mean exceeds its expectation by r, or falls short of it, with probability at
most exp(M (n k(s) - s r)) for each s in (0, 1). Corollaries 10 and 12 of Hazan et al. allow three times
as much or more.

The noise at the maximiser, sum_i gamma_i(x_i*), has no such bound, though Hazan et al. IV-E applies the
corollaries to it: it jumps where the maximiser changes, and its variance can exceed 4n (by about
(ln k)^2 / 4 for one term with k + 1 states whose phi are 0, ..., 0 and ln k).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.rounding import sample_deviation
from thesis_cli.perturbation.estimate import Estimate, check_confidence, normal_quantile
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima
from thesis_cli.perturbation.noise import log_moment_rate

_EXPONENTS = 1 / (1 + np.exp(-np.linspace(-25, 25, 4001)))
"""Values of s; a finer grid would lower the bound by less than 1e-4 of itself."""


def maximum_deviation(terms: int, count: int, confidence: float) -> float:
    """Half the width of a two-sided interval around the mean of perturbed maxima.

    Each side gets half of 1 - confidence.

    Parameters
    ----------
    terms : noise terms n of a configuration; 0 if there is no noise.
    count : number M of maxima.
    """
    if terms == 0:
        return 0.0
    rate = math.log(2 / (1 - confidence)) / count
    return float((rate / _EXPONENTS - terms * log_moment_rate(-_EXPONENTS)).min())


Interval = Literal["normal", "concentration"]

LARGEST_ALPHA = 1000.0

UNCERTAIN = ", error uncertain"
"""Ends the kind of a bound whose standard error rests on few of the samples."""

FEWEST = 10
"""Effective samples below which the error of a power mean is uncertain."""


def power_bounds(values: Floats, terms: int, alphas: Floats) -> tuple[Floats, Floats]:
    """Estimate n (ln Gamma(1 + a) / a + c) - ln E[e^{-a U}] / a, a = alpha (Thesis eq. 2.8).

    Parameters
    ----------
    values : samples of U, shape (..., M).
    terms : n.
    alphas : exponents above -1, shape (A,); 0 stands for the limit, the mean of U (Proposition 3).

    Returns
    -------
    bounds : shape (..., A).
    errors : standard errors by the delta method, shape (..., A); inf for alpha <= -1/2 and for M =
        1.
    """
    pairs = [_power_mean(values, float(a)) for a in alphas]
    shifts = terms * log_moment_rate(alphas)
    return np.stack([p[0] for p in pairs], axis=-1) + shifts, np.stack([p[1] for p in pairs], axis=-1)


def _power_mean(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """-ln(mean of exp(-alpha U)) / alpha and its standard error, accurate for alpha of any size."""
    m = values.shape[-1]
    if alpha == 0:
        mean, deviations = values.mean(axis=-1), values
    else:
        extreme = values.min(axis=-1) if alpha > 0 else values.max(axis=-1)
        powers = np.expm1(-alpha * (values - extreme[..., np.newaxis]))  # in (-1, 0], and tiny where alpha is
        excess = powers.mean(axis=-1)
        mean = extreme - np.log1p(excess) / alpha
        deviations = powers / (alpha * (1 + excess[..., np.newaxis]))
    if m == 1 or alpha <= -0.5:
        return mean, np.full_like(mean, np.inf)
    return mean, sample_deviation(deviations) / math.sqrt(m)


def effective_samples(values: Floats, alpha: float) -> float:
    """(sum w)^2 / sum w^2 of the weights w = e^{-alpha U}: how many samples the mean of w rests on.

    The squared relative error of that mean is about its reciprocal less 1 / M.

    Parameters
    ----------
    values : U of each sample, shape (M,).
    """
    exponents = -alpha * values
    weights = np.exp(exponents - exponents.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def few_effective_samples(values: Floats, alpha: float) -> bool:
    """Whether the relative error of the mean of e^{-alpha U}, of values of shape (M,), exceeds 1 / sqrt(10).

    The delta method takes that error for small; it never states more than 1 / |alpha|, however far
    apart the samples are.
    """
    return bool(1 / effective_samples(values, alpha) - 1 / values.size > (1 - 1 / values.size) / FEWEST)


def jackknife_error(values: Floats, alpha: float) -> float:
    """Standard error of -ln(mean of exp(-alpha U)) / alpha by the jackknife, of values of shape (M,), M >= 2.

    The expectation of its square is at least the variance of the estimate from M - 1 samples (Efron
    and Stein 1981), even where a single sample outweighs all others.
    """
    exponents = -alpha * values
    first = int(exponents.argmax())
    relative = np.delete(exponents, first) - exponents[first]
    weights = np.exp(relative)
    without = np.append(np.log1p(weights.sum() - weights), np.logaddexp.reduce(relative))
    m = values.size
    return math.sqrt((m - 1) * float(without.var())) / abs(alpha)


def bound_curve(maxima: LowRankMaxima, alphas: Floats, *, unsafe: bool = False) -> tuple[Floats, Floats]:
    """U(alpha) (Thesis eq. 2.8) of sum-unary maxima, L(alpha) (eq. 2.14) of average-unary ones.

    L(alpha) is U(alpha) of the samples n L, divided by n.

    Parameters
    ----------
    alphas : shape (A,), above -1.
    unsafe : accept alphas at and below -1 / (2 sqrt(n)) too. Above, the variance of e^{-alpha U} is
        finite by Hazan et al. Corollary 9; at that alpha it is about half the squared mean, for a
        product distribution of many terms. Below, it stays finite down to -1/2, because U is at
        most max phi plus n independent maxima of Gumbel variables, but it grows exponentially in n.

    Returns
    -------
    bounds, errors : shape (A,).

    Raises
    ------
    InputError : an alpha is out of range.
    """
    check_alphas(alphas, maxima.terms, unsafe)
    values, divisor = _as_sum(maxima)
    bounds, errors = power_bounds(values, maxima.terms, alphas)
    return bounds / divisor, errors / divisor


def check_alphas(alphas: Floats, terms: int, unsafe: bool) -> None:
    """Raise `InputError` if an alpha, of shape (alphas,), is outside the range that `bound_curve` describes."""
    least = -1.0 if unsafe else -1 / (2 * math.sqrt(max(1, terms)))
    for alpha in alphas[~((alphas > least) & (alphas <= LARGEST_ALPHA))]:
        why = "" if unsafe else f" = -1/(2 sqrt({terms})), where samples have a finite variance,"
        raise InputError(f"alpha is {alpha:g}", f"it must be above {least:.6g}{why} and at most {LARGEST_ALPHA:g}")


def second_moment(alpha: float, terms: int) -> float:
    """Bound on E[X^2] / E[X]^2 for X = e^{-alpha U}: (Gamma(1 + 2 alpha) / Gamma(1 + alpha)^2)^n.

    It is inf for alpha <= -1/2. Independent variables attain it (docs/low-rank.md). The squared
    relative error of a mean of M samples is at most the bound less 1, divided by M.
    """
    if alpha <= -0.5:
        return math.inf
    exponent = terms * (math.lgamma(1 + 2 * alpha) - 2 * math.lgamma(1 + alpha))
    return math.exp(exponent) if exponent < 700 else math.inf


def _as_sum(maxima: LowRankMaxima) -> tuple[Floats, int]:
    """The maxima with noise in units of the sum, and the divisor of their bound."""
    divisor = 1 if maxima.scale == "sum" else max(1, maxima.terms)
    return divisor * maxima.values, divisor


def upper_bound(
    maxima: LowRankMaxima,
    alpha: float,
    *,
    confidence: float = 0.95,
    interval: Interval = "normal",
    unsafe: bool = False,
) -> Estimate:
    """Sample version of ln Z <= U(alpha) (Thesis Proposition 2; Hazan et al. Corollary 5).

    The sample version is an upper bound in expectation for alpha >= 0, by Jensen's inequality. For
    alpha < 0 it is biased low, and an upper bound in the limit of large M. With an approximate
    solver it is neither.

    The standard error is that of the delta method. Where the mean of e^{-alpha U} rests on fewer
    than about ten samples, it is that of the jackknife, if that is larger, and the kind ends with
    `error uncertain`. That happens where alpha is far from 0 for the number of samples, or where an
    approximate solver often misses the maximum by much.

    Parameters
    ----------
    maxima : sum-unary maxima, whose noisy variables determine all others.
    alpha : exponent above -1 / (2 sqrt(terms)); 0 is the Gumbel trick.
    confidence : probability that the interval covers U(alpha).
    interval : `normal`, by the delta method, or `concentration`, without approximation, for alpha =
        0 only.
    unsafe : as in `bound_curve`.

    Raises
    ------
    InputError : the maxima, alpha or the interval do not fit.
    """
    if maxima.scale != "sum" and maxima.terms > 1:
        raise InputError("average-unary maxima give no upper bound", "use sum-unary noise")
    _check_cover(maxima)
    if maxima.guarantee == "exact":
        kind = "upper bound in expectation" if alpha >= 0 else "upper bound in the limit"
    else:
        kind = "approximate upper bound"
    return _bound(maxima, alpha, f"U({alpha:g})", kind, confidence, interval, unsafe)


def lower_bound(
    maxima: LowRankMaxima,
    alpha: float,
    *,
    confidence: float = 0.95,
    interval: Interval = "normal",
    unsafe: bool = False,
) -> Estimate:
    """Sample version of ln Z >= L(alpha) (Thesis Corollary 8; with one variable Proposition 5).

    It is a lower bound in expectation for alpha <= 0, and in the limit of large M for alpha > 0,
    whatever the solver. The noisy variables need not determine the others.

    Parameters
    ----------
    maxima : average-unary maxima.
    alpha, confidence, interval, unsafe : as for `upper_bound`.

    Raises
    ------
    InputError : the maxima, alpha or the interval do not fit.
    """
    if maxima.scale != "average" and maxima.terms > 1:
        raise InputError("sum-unary maxima give no lower bound", "use average-unary noise")
    kind = "lower bound in expectation" if alpha <= 0 else "lower bound in the limit"
    return _bound(maxima, alpha, f"L({alpha:g})", kind, confidence, interval, unsafe)


def _check_cover(maxima: LowRankMaxima) -> None:
    if maxima.undetermined:
        raise InputError(
            f"variable {maxima.undetermined[0]} has no noise", "every variable needs noise, or subsets that cover them"
        )


def _bound(
    maxima: LowRankMaxima, alpha: float, method: str, kind: str, confidence: float, interval: Interval, unsafe: bool
) -> Estimate:
    bounds, errors = bound_curve(maxima, np.array([alpha]), unsafe=unsafe)
    value, error = float(bounds[0]), float(errors[0])
    values, divisor = _as_sum(maxima)
    if alpha != 0 and math.isfinite(error) and few_effective_samples(values, alpha):
        error = max(error, jackknife_error(values, alpha) / divisor)
        kind += UNCERTAIN
    half = half_width(error, confidence)
    if interval == "concentration":
        if alpha != 0 or maxima.guarantee != "exact":
            raise InputError("the interval is concentration", "it needs alpha = 0 and an exact solver")
        half = maximum_deviation(maxima.terms, maxima.map_calls, confidence) / divisor
    source = "Thesis eq. 2.8" if method.startswith("U") else "Thesis eq. 2.14"
    return Estimate(
        value, error, value - half, value + half, "ln Z", kind, confidence, maxima.map_calls, method, source
    )


def half_width(error: float, confidence: float) -> float:
    """Half the width of a normal interval; raises `InputError` as `check_confidence` does."""
    check_confidence(confidence)
    return normal_quantile((1 + confidence) / 2) * error


def slope_at_zero(maxima: LowRankMaxima) -> tuple[float, float]:
    """dU/dalpha = (n pi^2/6 - var U) / 2, or dL/dalpha, at 0, and its error (Proposition 4).

    If it is positive, some alpha < 0 gives a tighter upper bound than the mean of U.

    Raises
    ------
    InputError : there are fewer than 2 maxima.
    """
    values, divisor = _as_sum(maxima)
    m = values.size
    if m < 2:
        raise InputError("there is one MAP value", "a slope needs 2 or more")
    square, fourth = (float(((values - values.mean()) ** k).mean()) for k in (2, 4))
    error = math.sqrt((fourth - square**2 * (m - 3) / (m - 1)) / m)
    slope = (maxima.terms * math.pi**2 / 6 - square * m / (m - 1)) / 2
    return slope / divisor, error / 2 / divisor


def entropy_bound(maxima: LowRankMaxima, *, confidence: float = 0.95) -> Estimate:
    """Bound on the entropy of the maximiser, in nats, from the noise at the maximiser.

    For sum-unary maxima H(x*) <= sum_i E gamma_i(x_i*) (Hazan et al. Theorem 4), for average-unary
    ones H(x**) >= sum_i E gamma_i(x_i**) / n (Thesis Theorem 12). The mean over the samples is
    unbiased for either. The interval is normal; `concentration.py` explains why no concentration
    bound applies.

    Raises
    ------
    InputError : noisy variables of sum-unary maxima do not determine the others, or the confidence
        is not between 0 and 1.
    """
    upper = maxima.scale == "sum"
    if upper:
        _check_cover(maxima)
    m = maxima.map_calls
    noise = maxima.noise_at_max / (1 if upper else max(1, maxima.terms))
    value = float(noise.mean())
    error = float(sample_deviation(noise)) / math.sqrt(m) if m > 1 else math.inf
    half = half_width(error, confidence)
    side = "upper" if upper else "lower"
    kind = f"{side} bound in expectation" if maxima.guarantee == "exact" else f"approximate {side} bound"
    target, source = ("H(x*)", "Hazan et al. Theorem 4") if upper else ("H(x**)", "Thesis Theorem 12")
    return Estimate(value, error, value - half, value + half, target, kind, confidence, m, "noise at x*", source)
