"""U(0) with some variables clamped, from the same noise at all their joint states (Hazan et al.
Corollary 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.solver import MapSolver

BLOCK = 8
"""Joint states solved in one call."""


def shared_clamped_bound(solver: MapSolver, noise: Floats, variables: Sequence[int]) -> tuple[float, float]:
    """ln of the sum over joint states x_A of exp(mean of max {theta(x) + noise of the others}).

    With one noise for all joint states the error of the bound is about that of U(0). The
    logarithm is convex in the means, so that with a noise for each state (`clamped_maxima`) it would
    rise by half the variance of a mean, of several nats at 100 variables and 100 perturbations.

    Parameters
    ----------
    solver : an exact solver of a model without hard constraints.
    noise : shape (M, states), M of 2 or more, as for `MapSolver.maximise`.
    variables : those that are clamped, of two states or more.

    Returns
    -------
    bound, error : with its standard error by the delta method.
    """
    graph, count = solver.graph, len(noise)
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])
    penalty = _penalty(solver, noise)
    free = noise.copy()
    for i in variables:
        free[:, offsets[i] : offsets[i + 1]] = -penalty
    joint = list(itertools.product(*(range(graph.cardinalities[i]) for i in variables)))
    maxima = []
    for start in range(0, len(joint), BLOCK):
        block = joint[start : start + BLOCK]
        tilted = np.repeat(free[None], len(block), axis=0)
        for held, states in zip(tilted, block, strict=True):
            held[:, [offsets[i] + k for i, k in zip(variables, states, strict=True)]] = 0.0
        maxima.append(solver.maximise(tilted.reshape(-1, offsets[-1]))[0].reshape(len(block), count))
    values = np.concatenate(maxima)
    means = values.mean(axis=1)
    bound = float(np.logaddexp.reduce(means))
    influence = np.exp(means - bound) @ values
    return bound, float(influence.std(ddof=1)) / math.sqrt(count)


def _penalty(solver: MapSolver, noise: Floats) -> float:
    """More than the difference between any two configurations, noise included."""
    spread = sum(float(np.ptp(factor.table)) for factor in solver.graph.factors)
    return 1 + spread + float(np.ptp(noise)) * len(solver.graph.cardinalities)
