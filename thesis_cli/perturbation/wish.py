"""WISH: ln Z from MAP under random parity constraints (Ermon et al. 2013, Algorithm 1).

Let b(r) be the weight exp(phi) of rank r, from the largest. Parity constraints that keep one
configuration in 2^i leave a maximum near b(2^i), so that maxima for i = 0, ..., n show the whole
distribution of weights within factors of 2, and

    Z ~ M_0 + sum_{i < n} M_{i+1} 2^i,   M_i the median of T maxima under i constraints.

Two facts bound the maximum w under i constraints. Fewer than r configurations weigh more than b(r),
so that P(w > b(r)) <= (r - 1) 2^-i, which needs uniform hashes only. And since the hashes are
pairwise independent, Cantelli's inequality for the number of the r heaviest that are left gives
P(w < b(r)) <= (1 - 2^-i) / (1 - 2^-i + r 2^-i).

From these follow both the factor that Theorem 1 promises beforehand, here from exact binomial tails
instead of Hoeffding's inequality, and an interval for ln Z that uses every order statistic of the
maxima that were found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc, betaincinv, logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.progress import Tick
from thesis_cli.inference.parity.bands import banded_maxima
from thesis_cli.inference.parity.constraints import HashLimits, ParityMaxima, enumerated_maxima
from thesis_cli.inference.parity.ends import dense_maxima
from thesis_cli.inference.parity.search import searched_maxima
from thesis_cli.models.factor_graph import FactorGraph, Model
from thesis_cli.perturbation.estimate import Estimate, check_confidence, fixed_estimate

RESAMPLES = 200
"""Bootstrap samples of the standard error."""

_DEFAULT = HashLimits()
_LARGEST_FACTOR = 64
_SOURCE = "Ermon et al. 2013, Algorithm 1"


def wish(
    model: Model,
    samples: int,
    seed: np.random.SeedSequence,
    *,
    confidence: float = 0.95,
    limits: HashLimits = _DEFAULT,
    progress: Tick | None = None,
) -> list[Estimate]:
    """Estimate ln Z from MAP under parity constraints.

    Parameters
    ----------
    model : any model that can be enumerated, or a graph that is narrow in some order.
    samples : number T of random hashes; each gives a maximum for every number of constraints.
    seed : of the hashes.
    confidence : probability that the interval covers ln Z.
    limits : of the work.
    progress : called with the number of hashes just computed, of |X| T in all, or of MAP problems.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit, and a pass over the variables would be too wide.
    NoConfiguration : no configuration is possible.
    InputError : `samples` is below 1, or `confidence` not between 0 and 1.
    """
    check_confidence(confidence)
    if samples < 1:
        raise InputError(f"the number of samples is {samples}", "it must be 1 or more")
    hashing, resampling = (np.random.default_rng(child) for child in seed.spawn(2))
    if isinstance(model, FactorGraph) and model.size > limits.max_configurations:
        maxima = _without_enumeration(model, samples, hashing, limits, progress)
    else:
        maxima = enumerated_maxima(model, samples, hashing, limits=limits, progress=progress)
    return estimates(maxima, confidence, resampling)


def _without_enumeration(
    graph: FactorGraph, samples: int, rng: np.random.Generator, limits: HashLimits, progress: Tick | None
) -> ParityMaxima:
    """Maxima under constraints on all bits if most of them are within reach; under constraints on
    neighbouring bits by a pass over the variables, or by a search where that is too wide.
    """
    for maxima in (dense_maxima, banded_maxima):
        try:
            return maxima(graph, samples, rng, limits, progress)
        except ModelTooLarge:
            continue
    return searched_maxima(graph, samples, rng, limits, progress)


def estimates(maxima: ParityMaxima, confidence: float, rng: np.random.Generator) -> list[Estimate]:
    """Estimate of ln Z from maxima under parity constraints.

    Parameters
    ----------
    maxima : of hashes whose constraints are independent or not.
    confidence : probability that the interval covers ln Z.
    rng : of the bootstrap.

    Returns
    -------
    The estimate of Algorithm 1, with the standard error of its own scatter (its bias is within the
    factor that its kind states) and an interval that covers ln Z with the given probability; without
    independent constraints also its lower end as a bound.
    """
    samples, bits = len(maxima.values), max(1, int(maxima.levels[-1]))
    low, high = interval(maxima, confidence)
    percent = f"{100 * confidence:.12g}%"
    kind = f"{promise(samples, bits, confidence)} with probability {percent}"
    if not maxima.independent:
        kind = "no factor is promised: constraints on neighbouring bits"
        kind += ", and not all maxima are proven" * (not maxima.exact.all())
    elif not maxima.exact.all():
        kind = "from maxima that are not proven; the interval holds"
    value = float(estimate(maxima.values[None], maxima.levels)[0])
    drawn = rng.integers(0, samples, (RESAMPLES, samples))
    scatter = float(estimate(maxima.values[drawn], maxima.levels).std(ddof=1)) if samples > 1 else math.inf
    found = [Estimate(value, scatter, low, high, "ln Z", kind, confidence, maxima.calls, "wish", _SOURCE)]
    if not maxima.independent:
        found.append(fixed_estimate(low, f"lower bound with probability {percent}", "wish", _SOURCE))
    return found


def estimate(values: Floats, levels: Ints) -> Floats:
    """ln of Algorithm 1's estimate, from maxima of shape (batch, T, L); shape (batch,).

    A level stands for the ranks above the one before it, up to its own. The median of an even number
    of maxima is the lower of the two in the middle.
    """
    samples = values.shape[1]
    middle = np.partition(values, (samples - 1) // 2, axis=1)[:, (samples - 1) // 2]
    middle[:, 0] = values[:, :, 0].max(axis=1)
    ranks = levels * math.log(2)
    widths = ranks[1:] + np.log1p(-np.exp(ranks[:-1] - ranks[1:]))
    return np.asarray(logsumexp(middle + np.append(0.0, widths), axis=1))


class Promise(NamedTuple):
    """The factor 2^bits within which Algorithm 1 finds Z, by the rank bounds of its module.

    Attributes
    ----------
    below, above : M_i lies between the weights of ranks 2^(i + above) and 2^(i - below).
    """

    below: int
    above: int

    @property
    def bits(self) -> int:
        return self.below + self.above

    def __str__(self) -> str:
        return f"within a factor of {2**self.bits}"


def promise(samples: int, bits: int, confidence: float) -> Promise:
    """The least factor that Theorem 1 holds with for so many samples and bits.

    The median of T maxima is too large if T - m + 1 of them are, m = ceil(T / 2), and too small if
    m are; each of the `bits` levels may fail with probability (1 - confidence) / bits.
    """
    exponents = np.arange(_LARGEST_FACTOR)
    failures = _failures(samples, exponents[1:, None], exponents)
    total = np.where(failures <= (1 - confidence) / bits, exponents[1:, None] + exponents, 2 * _LARGEST_FACTOR)
    best = np.flatnonzero(total == total.min())
    below, above = np.unravel_index(best[failures.ravel()[best].argmin()], total.shape)
    return Promise(int(below) + 1, int(above))


def _failures(samples: int, below: Ints, above: Ints) -> Floats:
    """Most probability that the median under i constraints leaves its range of ranks."""
    middle = (samples + 1) // 2
    high = bdtrc(samples - middle, samples, 0.5**below)
    low = bdtrc(middle - 1, samples, 1 / (1 + 2.0**above))
    return np.asarray(high + low)


def sufficient_samples(bits: int, confidence: float) -> int:
    """The least odd T with which a factor of 16 is proven, by exact binomial tails."""
    below = np.arange(1, 4)
    return next(t for t in range(1, 10**6, 2) if _failures(t, below, 4 - below).min() <= (1 - confidence) / bits)


def interval(maxima: ParityMaxima, confidence: float) -> tuple[float, float]:
    """Interval that covers ln Z with probability `confidence` at least.

    The j-th smallest of T maxima under i constraints, v, proves b(r) >= v for r - 1 <= 2^i q, where
    P(Bin(T, q) >= T - j + 1) is the failure allowed, and b(r) <= v for r >= (2^i - 1)(1 - p) / p,
    where P(Bin(T, p) >= j) is. All i and j share 1 - confidence. Two staircases over the ranks
    follow. The lower one holds for maxima that are only lower bounds, the upper one needs upper
    bounds and independent constraints; without these it is the maximum times the number of
    configurations.

    Returns
    -------
    low, high : nats; `high` is inf where there is no upper bound.
    """
    values, bounds = (np.sort(x, axis=0) for x in (maxima.values, maxima.bounds))
    samples, level = len(values), maxima.levels[1:]
    share = (1 - confidence) / ((1 + maxima.independent) * max(1, level.size) * samples)
    order = np.arange(1, samples + 1)[:, None]
    likely = betaincinv(samples - order + 1, order, share)
    ranks = _log_rank(np.log(likely) + level * math.log(2), np.floor, 1)
    low = _staircase_below(np.append(0.0, ranks), np.append(values[-1, 0], values[:, 1:]))
    known_ranks, known = np.zeros(1), bounds[:1, 0]
    if maxima.independent:
        unlikely = betaincinv(order, samples - order + 1, share)
        scale = level * math.log(2) + np.log1p(-(0.5**level))
        ranks = _log_rank(np.log1p(-unlikely) - np.log(unlikely) + scale, np.ceil, 0)
        known_ranks, known = np.append(0.0, ranks), np.append(known, bounds[:, 1:])
    return low, _staircase_above(known_ranks, known, math.log(maxima.configurations))


def _log_rank(log_rank: Floats, rounded: np.ufunc, more: int) -> Floats:
    """ln of a rank, rounded to a whole number of at least 1 and increased; ranks beyond 2^50 stay."""
    small = log_rank < 50 * math.log(2)
    whole = np.maximum(rounded(np.exp(np.where(small, log_rank, 0.0))) + more, 1)
    return np.where(small, np.log(whole), log_rank)


def _staircase_below(log_ranks: Floats, values: Floats) -> float:
    """ln of at most Z, if the weight of each rank is at least exp(value)."""
    order = np.argsort(log_ranks.ravel())
    ranks, steps = log_ranks.ravel()[order], values.ravel()[order]
    steps = np.maximum.accumulate(steps[::-1])[::-1]
    return _log_area(np.append(-np.inf, ranks), steps)


def _staircase_above(log_ranks: Floats, values: Floats, log_count: float) -> float:
    """ln of at least Z, if the weight of each rank is at most exp(value), of exp(log_count) ranks."""
    order = np.argsort(log_ranks.ravel())
    ranks, steps = log_ranks.ravel()[order], values.ravel()[order]
    kept = ranks <= log_count
    steps = np.minimum.accumulate(steps[kept])
    # Rank r begins a step that ends before the next one's first rank: r - 1 ranks come before it.
    edges = np.append(ranks[kept], log_count)
    before = np.append(_log_less_one(edges[:-1]), log_count)
    return _log_area(before, steps)


def _log_less_one(log_rank: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(log_rank + np.log1p(-np.minimum(1.0, np.exp(-log_rank))))


def _log_area(edges: Floats, heights: Floats) -> float:
    """ln of the sum of (exp(edge[k + 1]) - exp(edge[k])) exp(height[k]), of edges that do not fall;
    the first may be -inf.
    """
    wide = edges[1:] > edges[:-1]
    left, right = edges[:-1][wide], edges[1:][wide]
    return float(logsumexp(right + np.log1p(-np.exp(left - right)) + heights[wide]))
