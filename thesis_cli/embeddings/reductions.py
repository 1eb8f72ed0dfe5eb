"""Reduced expansions: few points whose embedding is near that of many (Scibior and Schoelkopf
section 3, "reduced expansion set methods").

Each method returns the expansion with its measured error: the exact RKHS distance from the one
given, and on the line the exact Wasserstein-1 distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.embeddings.expansion import Expansion, wasserstein
from thesis_cli.embeddings.kernels import Kernel
from thesis_cli.embeddings.simplex import minimise, simplex_weights

CANDIDATES = 10_000
"""Largest number of points that `herding` and `frank-wolfe` choose from."""

REFIT = 500
"""Largest number of points whose weights on the simplex are refitted exactly."""

ROUNDS = 4
"""Number of times that `frank-wolfe` refits its weights and fills the places of those that are 0."""

LEAST_STEP = 1e-12
"""Least weight of a new point of `frank-wolfe`."""

RIDGE = 1e-10
"""Part of the identity that `nystrom` adds to the kernel matrix of its points."""

STEPS = 100
"""Largest number of steps in which `atoms` move."""

GAIN = 1e-5
"""Share of the squared distance by which a step of `atoms` must lower it."""


@dataclass(frozen=True)
class Reduced:
    """A reduced expansion and how far it is from the one given.

    Attributes
    ----------
    expansion : expansion of at most as many points as were asked for.
    rkhs_error : RKHS distance of the two, exact as `Kernel.norm` is.
    wasserstein : Wasserstein-1 distance; None if a weight is negative, the totals differ, or points
        have several coordinates.
    """

    expansion: Expansion
    rkhs_error: float
    wasserstein: float | None


def reduce(expansion: Expansion, size: int, method: str, kernel: Kernel, rng: np.random.Generator) -> Reduced:
    """Reduce an expansion to at most `size` points. Raises InputError for an unknown method, a size
    below 1, several coordinates where one is needed, or weights that do not suit the method.

    Parameters
    ----------
    method : one of `METHODS`. `random`: independent points, drawn by their absolute weight;
        `quantiles`: means of parts of equal weight of the sorted points; `herding`: greedy points
        of equal weight; `frank-wolfe`: greedy points with the best nonnegative weights; `nystrom`:
        evenly spread points with the best weights of any sign and total; `atoms`: points that start
        at the quantiles and move, with their weights, by descent. `quantiles` and `atoms` are for
        points of one coordinate.
    kernel : kernel whose RKHS distance is measured, and made small by all but the first two.
    rng : draws of `random`, and where `nystrom` starts; the other methods draw nothing.
    """
    if method not in METHODS:
        raise InputError(f"unknown reduction {method!r}", nearest(method, METHODS, "the reductions are"))
    if size < 1:
        raise InputError(f"the size is {size}", "it must be at least 1")
    given = expansion.merged()
    small = given if len(given) <= size else METHODS[method](given, size, kernel, rng)
    return Reduced(small, kernel.distance(given, small), wasserstein(given, small))


def _random(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    share = np.cumsum(np.abs(given.weights))
    _need(share[-1] > 0, "all weights of the expansion are 0", "some must not be")
    at = np.minimum(np.searchsorted(share, rng.random(size) * share[-1], side="right"), len(given) - 1)
    return Expansion(given.points[at], np.sign(given.weights[at]) * (share[-1] / size))


def _quantiles(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    """Means of `size` parts of equal weight; a point on a border is shared by its parts."""
    _line(given, "quantiles")
    _positive(given, "quantiles")
    x, w = given.points[:, 0], given.weights
    share = np.concatenate([[0.0], np.cumsum(w)])
    first = np.concatenate([[0.0], np.cumsum(w * x)])
    borders = np.linspace(0.0, share[-1], size + 1)
    at = np.clip(np.searchsorted(share, borders, side="right") - 1, 0, len(x) - 1)
    upto = first[at] + (borders - share[at]) * x[at]
    means = np.diff(upto) * (size / share[-1])
    low, high = x[at[:-1]], x[at[1:]]
    return Expansion(np.clip(means, low, high), np.full(size, share[-1] / size))


@dataclass(frozen=True)
class GaussCells:
    """Gauss quadratures with two points of parts of a distribution on the line.

    Attributes
    ----------
    expansion : the points and weights of all parts.
    weights, fourths : weight of each part, and the sum of the fourth central moments of the part and of its two
        points; the moments up to the third are the same.
    """

    expansion: Expansion
    weights: Floats
    fourths: Floats

    @classmethod
    def of(cls, given: Expansion, cells: int) -> GaussCells:
        """Quadratures of parts of sorted points with weights of 0 or more.

        Half of the parts follow the weight; the others are as dense as makes the sum of fourth moments least: a
        density f of the points has f^(1/5) parts, but its tails count up to its interquartile range only.
        """
        x, w = given.points[:, 0], given.weights
        sums = np.cumsum(w)
        levels = np.linspace(0.0, 1.0, 8 * cells + 1)
        ends = np.interp(levels, (sums - w / 2) / sums[-1], x)
        wide = ends[6 * cells] - ends[2 * cells]
        lengths = np.minimum(np.diff(ends), wide if wide > 0 else np.inf) ** 0.8
        places = levels + np.append(0.0, np.cumsum(lengths)) / max(lengths.sum(), np.finfo(float).tiny)
        borders = np.interp(np.linspace(0.0, places[-1], cells + 1)[1:-1], places, ends)
        part = np.searchsorted(borders, x, side="right")
        first = np.flatnonzero(np.diff(part, prepend=-1))
        weights = np.add.reduceat(w, first)
        means = np.add.reduceat(w * x, first) / weights
        apart = x - np.repeat(means, np.diff(first, append=len(x)))
        squares, cubes, fourths = (np.add.reduceat(w * apart**k, first) / weights for k in (2, 3, 4))
        deviations = np.sqrt(squares)
        skew = np.divide(cubes, 2 * squares * deviations, out=np.zeros_like(cubes), where=squares * deviations > 0)
        root = np.sqrt(1 + skew**2)
        shares = np.stack([1 + skew / root, 1 - skew / root]) / 2
        moves = np.stack([skew - root, skew + root]) * deviations
        points = np.clip(means + moves, x[first], x[np.append(first[1:], len(x)) - 1])
        expansion = Expansion(points.ravel(), (weights * shares).ravel()).merged()
        return cls(expansion, weights, fourths + (shares * moves**4).sum(0))

    def rkhs_error(self, bandwidth: float) -> float:
        """Bound on the distance from what was given in the RKHS of a Gaussian kernel.

        The third-order Taylor polynomials of the feature map agree, and its fourth derivative has the norm
        sqrt(105) / s^4.
        """
        each = math.sqrt(105) / 24 * self.fourths / bandwidth**4
        return float(self.weights @ np.minimum(each, 2.0))


def _candidates(given: Expansion) -> Expansion:
    """Points to choose from, at most `CANDIDATES`, evenly spaced in their weight."""
    if len(given) <= CANDIDATES:
        return given
    return Expansion(given.points[_even(given, CANDIDATES, 0.5)])


def _even(given: Expansion, size: int, offset: float) -> Ints:
    """Places of at most `size` points, evenly spaced in the absolute weight of the sorted points."""
    share = np.cumsum(np.abs(given.weights))
    _need(share[-1] > 0, "all weights of the expansion are 0", "some must not be")
    at = np.searchsorted(share, (np.arange(size) + offset) / size * share[-1], side="right")
    return np.unique(np.minimum(at, len(given) - 1))


def _herding(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    """Points x_t that maximise mu(x) - (1 / (t + 1)) sum_s<t k(x_s, x) (Chen, Welling and Smola
    2010), with mu of total 1.
    """
    total = _positive_total(given, "herding")
    places = _candidates(given).points
    aim = kernel.values(given, places) / total
    taken, chosen = np.zeros(len(places)), np.zeros(size, np.int64)
    for t in range(size):
        chosen[t] = np.argmax(aim - taken / (t + 1))
        taken += kernel.matrix(places[chosen[t]][np.newaxis], places)[0]
    return Expansion(places[chosen], np.full(size, total / size)).merged()


def _frank_wolfe(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    """Points of steepest descent, each with a line search, and then the best weights on all of them.

    Many weights are then 0. Their places are filled again, `ROUNDS` times.
    """
    total = _positive_total(given, "frank-wolfe")
    places = _candidates(given).points
    aim = kernel.values(given, places) / total
    chosen, weights, reached = np.zeros(0, np.int64), np.zeros(0), np.zeros(len(places))
    for _ in range(ROUNDS if size <= REFIT else 1):
        settled = weights
        while len(chosen) < size:
            gains = aim - reached
            gains[chosen] = -np.inf
            new = int(np.argmax(gains))
            column = kernel.matrix(places[new][np.newaxis], places)[0]
            norm, product = weights @ reached[chosen], weights @ aim[chosen]
            way = norm - 2 * reached[new] + 1
            step = (norm - reached[new] - product + aim[new]) / way if len(chosen) and way > 0 else 1.0
            step = min(max(step, LEAST_STEP), 1.0)
            weights, chosen = np.append((1 - step) * weights, step), np.append(chosen, new)
            reached += step * (column - reached)
        if size <= REFIT:
            points = places[chosen]
            # Few weights stay, so to add points one by one is quicker than to drop nearly all.
            start = np.append(settled, np.zeros(size - len(settled))) if len(settled) else None
            weights = simplex_weights(kernel.matrix(points, points), aim[chosen], start)
        chosen, weights = chosen[weights > 0], weights[weights > 0]
        reached = kernel.values(Expansion(places[chosen], weights), places)
        if len(chosen) >= size or len(chosen) == len(places):
            break
    return Expansion(places[chosen], total * weights).merged()


def _nystrom(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    """Projection on the span of evenly spread points."""
    from scipy.linalg import cho_factor, cho_solve

    points = given.points[_even(_spread(given, kernel), size, rng.random())]
    matrix = kernel.matrix(points, points) + RIDGE * np.eye(len(points))
    return Expansion(points, cho_solve(cho_factor(matrix), kernel.values(given, points)))


def _spread(given: Expansion, kernel: Kernel) -> Expansion:
    """The points with weights that cover their range too: half of the weight given, and half the
    distance to the next point, of at most one bandwidth.
    """
    if given.dimension > 1 or not given.total_variation:
        return given
    gaps = np.minimum(np.diff(given.points[:, 0], append=np.inf), kernel.bandwidth)
    return Expansion(given.points, np.abs(given.weights) / given.total_variation + gaps / gaps.sum())


def _atoms(given: Expansion, size: int, kernel: Kernel, rng: np.random.Generator) -> Expansion:
    """Points and weights that lower the squared RKHS distance, from the quantiles on."""
    start = _quantiles(given, size, kernel, rng)
    total, scale = given.total, kernel.bandwidth
    aim = kernel.prepared(Expansion(given.points, given.weights / total))
    base = kernel.inner(given, given) / total**2

    def placed(x: Floats) -> tuple[Floats, Floats]:
        logs = x[size:]
        weights = np.exp(logs - logs.max())
        return start.points[:, 0] + scale * x[:size], weights / weights.sum()

    def objective(x: Floats) -> tuple[float, Floats]:
        points, weights = placed(x)
        own, own_slopes = kernel.prepared(Expansion(points, weights)).at(points)
        values, slopes = aim.at(points)
        apart, steep = own - values, own_slopes - slopes
        by_weight = 2 * weights * (apart - weights @ apart)
        value = float(weights @ (own - 2 * values)) + base
        return value * size, np.concatenate([2 * weights * steep * scale, by_weight]) * size

    seen: list[float] = []

    def slow(value: float) -> bool:
        seen.append(value)
        return len(seen) > 5 and seen[-6] - value <= 5 * GAIN * abs(value)

    free = np.full(2 * size, np.inf)
    found = minimise(objective, np.zeros(2 * size), -free, free, STEPS, slow)
    points, weights = placed(found)
    return Expansion(points, total * weights)


METHODS: dict[str, Callable[[Expansion, int, Kernel, np.random.Generator], Expansion]] = {
    "random": _random,
    "quantiles": _quantiles,
    "herding": _herding,
    "frank-wolfe": _frank_wolfe,
    "nystrom": _nystrom,
    "atoms": _atoms,
}
"""Reductions by name; each takes an expansion of sorted, different points."""


def _need(condition: bool, problem: str, remedy: str) -> None:
    if not condition:
        raise InputError(problem, remedy)


def _line(given: Expansion, method: str) -> None:
    problem = f"points of {given.dimension} coordinates do not suit {method}"
    _need(given.dimension == 1, problem, "use random, herding, frank-wolfe or nystrom")


def _positive(given: Expansion, method: str) -> None:
    problem = f"the expansion has negative weights, which do not suit {method}"
    _need(bool((given.weights >= 0).all()) and given.total > 0, problem, "use random, herding or nystrom")


def _positive_total(given: Expansion, method: str) -> float:
    _need(given.total > 0, f"the weights sum to {given.total:g}, which does not suit {method}", "use random or nystrom")
    return given.total
