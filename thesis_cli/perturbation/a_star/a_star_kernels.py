"""Compiled A* sampling; `a_star.successive` and `boxes.Boxes` are the reference, draw by draw."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.models.proposals import CompiledTarget
from thesis_cli.models.target_kernels import bound, log_ratio, quantile, split_dimension
from thesis_cli.perturbation.a_star.boxes import HALF_STEP, LEAST, NARROWEST, SLACK, WASTE

Tree = tuple[Floats, Floats, Floats, Floats, Ints, Ints, Ints, Ints]
"""low, high (N, D), bound, waste, first child, parent (N,), halvings (N, D), number of boxes (1,):
as of `Boxes`."""


class Samples(NamedTuple):
    """Results of G consecutive samples, which `search` fills.

    Attributes
    ----------
    values, locations, ratios : max {o - ln T}, its location, and o there, shapes (G,), (G, D),
        (G,).
    counts : evaluations, bounds and splits, shape (G, 3).
    """

    values: Floats
    locations: Floats
    ratios: Floats
    counts: Ints


DONE, EMPTY, SPENT, REFUSED = range(4)


@helper()
def later(rng: np.random.Generator, log_time: float, depth: int) -> float:
    """ln of the time at which the clock of a box rings next: its rate is 2^-depth."""
    step = np.log(max(rng.standard_exponential(), LEAST)) + depth * np.log(2.0)
    if step > log_time:
        return float(step + np.log1p(np.exp(log_time - step)))
    return float(log_time + np.log1p(np.exp(step - log_time)))


@helper()
def _split(target: CompiledTarget, tree: Tree, at: int) -> int:
    """Split a box as `Boxes.split` does; return the number of bounds evaluated, negative if the box
    is too narrow."""
    low, high, bounds, waste, children, parents, halvings, size = tree
    dimension = split_dimension(target, low[at], high[at], halvings[at])
    spent = 2 * low.shape[1] if low.shape[1] > 1 else 0
    left, right = low[at, dimension], high[at, dimension]
    middle = quantile(target, dimension, 0.5, left, right)
    if not min(middle - left, right - middle) > NARROWEST * max(abs(left), abs(right)):
        waste[at] = -np.inf
        return -spent - 1
    first = size[0]
    children[at] = first
    for child in range(first, first + 2):
        for d in range(low.shape[1]):
            low[child, d], high[child, d], halvings[child, d] = low[at, d], high[at, d], halvings[at, d]
        halvings[child, dimension] += 1
        waste[child] = 0.0
        children[child] = 0
        parents[child] = at
    high[first, dimension] = low[first + 1, dimension] = middle
    for child in range(first, first + 2):
        bounds[child] = min(bound(target, low[child], high[child]), bounds[at])
    size[0] += 2
    while True:
        first = children[at]
        level = max(bounds[first], bounds[first + 1])
        if level >= bounds[at]:
            return int(spent + 2)
        bounds[at] = level
        at = parents[at]


@kernel()
def search(
    rng: np.random.Generator,
    target: CompiledTarget,
    tree: Tree,
    budget: int,
    samples: Samples,
    x: Floats,
) -> tuple[int, int, float]:
    """The highest perturbed value of each of some independent Gumbel processes.

    Parameters
    ----------
    rng : source of the clocks and points.
    target, tree : the tree may have grown before; it grows on.
    budget : most evaluations of o in one sample.
    samples : what is found; written.
    x : the last point, shape (D,); written.

    Returns
    -------
    tuple : how it ended; the box that it ended in; and o at the point that was refused, or the best
        so far.
    """
    low, high, bounds, waste, children, _, halvings, size = tree
    values, locations, ratios, counts = samples
    best = -np.inf
    for g in range(values.size):
        best = -np.inf
        log_time = later(rng, -np.inf, ZERO)
        heap = [(log_time - bounds[0], 0, log_time)]
        while heap and -heap[0][0] > best:
            _, at, log_time = heapq.heappop(heap)
            depth = ZERO
            for d in range(x.size):
                depth += halvings[at, d]
            first = children[at]
            if first:
                inherits = first + 1 if rng.random() >= 0.5 else first
                for child in range(first, first + 2):
                    time = log_time if child == inherits else later(rng, log_time, depth + 1)
                    if bounds[child] - time > best:
                        heapq.heappush(heap, (time - bounds[child], child, time))
                continue
            if counts[g, 0] == budget:
                return SPENT, at, ratios[g] if best > -np.inf else -np.inf
            for d in range(x.size):
                x[d] = quantile(target, d, rng.random() + HALF_STEP, low[at, d], high[at, d])
            ratio = log_ratio(target, x)
            counts[g, 0] += 1
            if np.isnan(ratio) or ratio == np.inf or ratio > bounds[at] + SLACK * (1.0 + abs(bounds[at])):
                return REFUSED, at, ratio
            if ratio - log_time > best:
                best = ratio - log_time
                values[g], ratios[g] = best, ratio
                for d in range(x.size):
                    locations[g, d] = x[d]
            waste[at] += -np.expm1(ratio - bounds[at])
            if waste[at] >= WASTE and size[0] + 2 <= bounds.size:
                spent = _split(target, tree, at)
                counts[g, 1] += spent if spent > 0 else -spent - 1
                counts[g, 2] += spent > 0
            first = children[at]
            for child in range(first if first else at, first + 2 if first else at + 1):
                time = later(rng, log_time, depth + 1 if first else depth)
                if bounds[child] - time > best:
                    heapq.heappush(heap, (time - bounds[child], child, time))
        if best == -np.inf:
            return EMPTY, 0, -np.inf
    return DONE, 0, best
