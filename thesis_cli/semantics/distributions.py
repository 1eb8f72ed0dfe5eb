"""Distributions D of the language, parametrised by numbers (Scibior and Schoelkopf section 1).

A continuous distribution gives its quantile function and the integral of it, from which follows
exactly how far points are from the distribution in W1. A discrete one gives its atoms and their
probabilities, which are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.semantics import ranges
from thesis_cli.semantics.ranges import Ranging, Sloping

MOST_CATEGORIES = 64
"""Largest number of categories."""

GRID = np.linspace(-9.0, 9.0, 2049)
"""Normal scores between which quantiles are interpolated."""

_HALF_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Distribution:
    """A family of distributions of one number.

    Attributes
    ----------
    name, usage : name, and how it is written.
    least, most : number of parameters.
    valid : whether parameters are allowed, from arrays.
    condition : condition on the parameters, in words.
    ranging : range of the values from the ranges of the parameters.
    sloping : W1 distance that a change of each parameter by 1 makes at most; inf if none is known.
    quantile : value at the share u, from u and the parameters; None for a discrete distribution.
    integral : integral of the quantile function from 0 to u.
    share, above : probabilities of values up to x and above x, from x and the parameters.
    exceeded : value that is exceeded with probability u; as `quantile` at 1 - u, but exact for small u.
    log_density : logarithm of the density at x, -inf where it is 0.
    probabilities : probabilities of the values 0, 1, ..., along a new last axis; None for a
        continuous one.
    """

    name: str
    usage: str
    least: int
    most: int
    valid: Callable[..., Bools]
    condition: str
    ranging: Ranging
    sloping: Sloping
    quantile: Callable[..., Floats] | None = None
    integral: Callable[..., Floats] | None = None
    share: Callable[..., Floats] | None = None
    above: Callable[..., Floats] | None = None
    exceeded: Callable[..., Floats] | None = None
    log_density: Callable[..., Floats] | None = None
    probabilities: Callable[..., Floats] | None = None

    @property
    def bounded(self) -> bool:
        """Whether the parameters bound the values."""
        return self.name in ("uniform", "beta") or self.probabilities is not None


def cell_means(family: Distribution, cells: int, parameters: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Means of a distribution over cells of equal probability, and how far they are from it.

    Parameters
    ----------
    parameters : parameters of the distribution, of one shape.

    Returns
    -------
    points : the means, with a new last axis of length `cells`; their mean is that of the
        distribution.
    errors : exact W1 distance of the distribution from these points of equal weight, of the shape
        of the parameters.
    """
    assert family.integral is not None
    assert family.share is not None
    wide = [p[..., np.newaxis] for p in parameters]
    ends = np.linspace(0.0, 1.0, cells + 1)
    points = cells * np.diff(family.integral(ends, *wide), axis=-1)
    at = np.clip(family.share(points, *wide), ends[:-1], ends[1:])
    return points, _distances(family, ends[:-1], at, ends[1:], points, wide).sum(-1)


def quantiles(family: Distribution, u: Floats, parameters: Sequence[Floats]) -> Floats:
    """Values of a continuous distribution at many shares; by interpolation, to some 1e-9 of the value, where that is
    much quicker: of logarithms or logits on a grid of normal scores.
    """
    assert family.quantile is not None
    assert family.exceeded is not None
    if family.name not in ("gamma", "beta") or len(u) < 2 * len(GRID) or any(each.ndim for each in parameters):
        return np.asarray(family.quantile(u, *parameters))
    low = GRID <= 0
    nodes = np.concatenate(
        [family.quantile(special.ndtr(GRID[low]), *parameters), family.exceeded(special.ndtr(-GRID[~low]), *parameters)]
    )
    values = special.logit(nodes) if family.name == "beta" else np.log(nodes)
    if not np.isfinite(values).all():
        return np.asarray(family.quantile(u, *parameters))
    places = (np.clip(special.ndtri(u), GRID[1], GRID[-2]) - GRID[0]) / (GRID[1] - GRID[0])
    at = np.clip(places.astype(np.int64), 1, len(GRID) - 3)
    t = places - at
    found = values[at - 1] * (-t * (t - 1) * (t - 2) / 6) + values[at] * ((t + 1) * (t - 1) * (t - 2) / 2)
    found += values[at + 1] * (-(t + 1) * t * (t - 2) / 2) + values[at + 2] * ((t + 1) * t * (t - 1) / 6)
    return np.asarray(special.expit(found) if family.name == "beta" else np.exp(found))


def drawn(family: Distribution, strata: int, offsets: Floats, parameters: Sequence[Floats]) -> tuple[Floats, Floats]:
    """One value from each of some strata of equal probability, and how far they may be from the
    distribution.

    Parameters
    ----------
    offsets : place in each stratum, from 0 to 1, of the shape of the parameters and then `strata`.

    Returns
    -------
    points : points of the shape of the offsets.
    errors : upper bound of the W1 distance, of the shape of the parameters.
    """
    assert family.quantile is not None
    wide = [p[..., np.newaxis] for p in parameters]
    ends = np.linspace(0.0, 1.0, strata + 1)
    at = ends[:-1] + offsets / strata
    points = family.quantile(at, *wide)
    return points, _distances(family, ends[:-1], at, ends[1:], points, wide).sum(-1)


def _distances(
    family: Distribution, low: Floats, at: Floats, high: Floats, points: Floats, parameters: Sequence[Floats]
) -> Floats:
    """Integral of |quantile(t) - point| over t from low to high, where `at` is the point's share."""
    assert family.integral is not None
    below, middle, above = (family.integral(u, *parameters) for u in (low, at, high))
    return np.asarray(np.maximum(points * (2 * at - low - high) + below + above - 2 * middle, 0.0))


def _positive(*parameters: Floats) -> Bools:
    return np.asarray(np.min(np.broadcast_arrays(*parameters), axis=0) > 0)


def _second_positive(location: Floats, scale: Floats) -> Bools:
    return np.isfinite(location) & (scale > 0)


def _normal_integral(u: Floats, location: Floats, scale: Floats) -> Floats:
    density = np.exp(-0.5 * special.ndtri(u) ** 2) / math.sqrt(2 * math.pi)
    return np.asarray(location * u - scale * density)


def _laplace_quantile(u: Floats, location: Floats, scale: Floats) -> Floats:
    tail = np.log(2 * np.minimum(u, 1 - u))
    return np.asarray(location + scale * np.where(u < 0.5, tail, -tail))


def _laplace_share(x: Floats, location: Floats, scale: Floats) -> Floats:
    tail = 0.5 * np.exp(-np.abs(x - location) / scale)
    return np.where(x < location, tail, 1 - tail)


def _laplace_integral(u: Floats, location: Floats, scale: Floats) -> Floats:
    tail = np.minimum(u, 1 - u)
    return np.asarray(location * u + scale * (special.xlogy(tail, 2 * tail) - tail))


def _normal_log_density(x: Floats, location: Floats, scale: Floats) -> Floats:
    return np.asarray(-0.5 * ((x - location) / scale) ** 2 - np.log(scale) - 0.5 * math.log(2 * math.pi))


def _within(inside: Bools, log_density: Floats) -> Floats:
    """A log density on its support, -inf outside."""
    return np.where(inside, log_density, -math.inf)


def _gamma_log_density(x: Floats, shape: Floats, scale: Floats) -> Floats:
    y = np.maximum(x / scale, 0.0)
    return _within(x >= 0, special.xlogy(shape - 1, y) - y - special.gammaln(shape) - np.log(scale))


def _beta_log_density(x: Floats, a: Floats, b: Floats) -> Floats:
    y = np.clip(x, 0.0, 1.0)
    found = special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y) - special.betaln(a, b)
    return _within((x >= 0) & (x <= 1), found)


def _beta_integral(u: Floats, a: Floats, b: Floats) -> Floats:
    # near 1 a quantile rounds to 1, but its distance from 1 does not round to 0
    low = a / (a + b) * special.betainc(a + 1, b, special.betaincinv(a, b, u))
    high = u - b / (a + b) * (1 - special.betainc(b + 1, a, special.betaincinv(b, a, 1 - u)))
    return np.where(special.betainc(a, b, 0.5) > u, low, high)


def _categorical(*p: Floats) -> Floats:
    return np.stack(np.broadcast_arrays(*p), axis=-1)


def _sums_to_one(*p: Floats) -> Bools:
    stacked = _categorical(*p)
    return np.asarray((stacked >= 0).all(-1) & (np.abs(stacked.sum(-1) - 1) < 1e-9))


_ROWS = (
    Distribution(
        "normal", "normal(mean, deviation)", 2, 2, _second_positive, "the deviation must be above 0",
        lambda operands: ranges.REALS, ranges.each(1.0, _HALF_NORMAL),
        lambda u, location, scale: location + scale * special.ndtri(u), _normal_integral,
        lambda x, location, scale: np.asarray(special.ndtr((x - location) / scale), np.float64),
        lambda x, location, scale: np.asarray(special.ndtr((location - x) / scale), np.float64),
        lambda u, location, scale: location - scale * special.ndtri(u), _normal_log_density,
    ),
    Distribution(
        "laplace", "laplace(mean, scale)", 2, 2, _second_positive, "the scale must be above 0",
        lambda operands: ranges.REALS, ranges.each(1.0, 1.0), _laplace_quantile, _laplace_integral, _laplace_share,
        lambda x, location, scale: _laplace_share(-x, -location, scale),
        lambda u, location, scale: -_laplace_quantile(u, -location, scale),
        lambda x, location, scale: -np.abs(x - location) / scale - np.log(2 * scale),
    ),
    Distribution(
        "uniform", "uniform(low, high)", 2, 2, lambda low, high: low < high, "low must be below high",
        lambda operands: (operands[0].range[0], operands[1].range[1]), ranges.each(0.5, 0.5),
        lambda u, low, high: low + (high - low) * u, lambda u, low, high: low * u + (high - low) * u**2 / 2,
        lambda x, low, high: np.clip((x - low) / (high - low), 0.0, 1.0),
        lambda x, low, high: np.clip((high - x) / (high - low), 0.0, 1.0),
        lambda u, low, high: high - (high - low) * u,
        lambda x, low, high: _within((low <= x) & (x <= high), -np.log(high - low)),
    ),
    Distribution(
        "exponential", "exponential(mean)", 1, 1, _positive, "the mean must be above 0",
        lambda operands: (0.0, math.inf), ranges.each(1.0), lambda u, mean: -mean * np.log1p(-u),
        lambda u, mean: mean * (special.xlogy(1 - u, 1 - u) + u),
        lambda x, mean: -np.expm1(-np.maximum(x, 0.0) / mean), lambda x, mean: np.exp(-np.maximum(x, 0.0) / mean),
        lambda u, mean: -mean * np.log(u), lambda x, mean: _within(x >= 0, -x / mean - np.log(mean)),
    ),
    Distribution(
        "gamma", "gamma(shape, scale)", 2, 2, _positive, "shape and scale must be above 0",
        lambda operands: (0.0, math.inf), ranges.product_slopes,
        lambda u, shape, scale: scale * special.gammaincinv(shape, u),
        lambda u, shape, scale: shape * scale * special.gammainc(shape + 1, special.gammaincinv(shape, u)),
        lambda x, shape, scale: special.gammainc(shape, np.maximum(x, 0.0) / scale),
        lambda x, shape, scale: special.gammaincc(shape, np.maximum(x, 0.0) / scale),
        lambda u, shape, scale: scale * special.gammainccinv(shape, u), _gamma_log_density,
    ),
    Distribution(
        "beta", "beta(a, b)", 2, 2, _positive, "a and b must be above 0", ranges.bounded(0.0, 1.0),
        ranges.all_of(math.inf), lambda u, a, b: np.asarray(special.betaincinv(a, b, u)), _beta_integral,
        lambda x, a, b: special.betainc(a, b, np.clip(x, 0.0, 1.0)),
        lambda x, a, b: special.betaincc(a, b, np.clip(x, 0.0, 1.0)),
        lambda u, a, b: np.asarray(special.betainccinv(a, b, u)), _beta_log_density,
    ),
    Distribution(
        "bernoulli", "bernoulli(p)", 1, 1, lambda p: (p >= 0) & (p <= 1), "p must be from 0 to 1",
        ranges.bounded(0.0, 1.0), ranges.each(1.0), probabilities=lambda p: np.stack([1 - p, p], axis=-1),
    ),
    Distribution(
        "categorical", "categorical(p0, p1, ...)", 2, MOST_CATEGORIES, _sums_to_one,
        "the probabilities must be 0 or more and sum to 1", lambda operands: (0.0, len(operands) - 1.0),
        lambda operands: [float(i) for i in range(len(operands))], probabilities=_categorical,
    ),
)  # fmt: skip
DISTRIBUTIONS = {row.name: row for row in _ROWS}
"""All distributions by name."""
