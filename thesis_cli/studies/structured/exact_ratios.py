"""Exact ratios of partition functions along a schedule, and what estimates of them cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured.ranges import PotentialRange, log_size, map_range
from thesis_cli.structured.schedules import Schedule, corrected_schedule
from thesis_cli.structured.space import Space


class ExactRatios(NamedTuple):
    """Exact numbers of each ratio of a schedule, arrays of shape (ratios,).

    Attributes
    ----------
    logs : ln rho_i = ln E f_i.
    variances : Var f_i / (E f_i)^2.
    steps : expected steps of META for one exact sample at beta_i, |Y| exp(beta_i max E) / Z(beta_i).
    """

    logs: Floats
    variances: Floats
    steps: Floats


def exact_ratios(space: Space, weights: Floats, schedule: Schedule, limits: PotentialRange) -> ExactRatios:
    """All ratios of a schedule from exact partition functions.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    limits : range of the log-potentials, with the exact maximum.
    """
    low, high = schedule.betas[:-1], schedule.betas[1:]
    at_low, at_high, beyond = np.split(
        space.log_partition(np.outer(np.concatenate([low, high, 2 * low - high]), weights)), 3
    )
    steps = np.exp(log_size(space) + np.maximum(high * limits.high, high * limits.low) - at_high)
    return ExactRatios(at_low - at_high, np.expm1(beyond + at_high - 2 * at_low), steps)


def work(variances: Floats, costs: Floats) -> float:
    """Cost times relative variance of a product of means, at the best numbers of samples.

    Costs c_i a sample with S_i samples in proportion to sqrt(v_i / c_i): (sum of sqrt(v_i c_i))^2.
    """
    return float(np.sqrt(np.maximum(variances, 0.0) * costs).sum() ** 2)


def uniform_variance(space: Space, weights: Floats) -> float:
    """Relative variance |Y| Z(2 theta) / Z(theta)^2 - 1 of exp(<phi(y), theta>) for a uniform structure."""
    once, twice = space.log_partition(np.stack([weights, 2 * weights]))
    return float(np.expm1(log_size(space) + twice - 2 * once))


def equal_variances(space: Space, weights: Floats, variance: float) -> Schedule:
    """The schedule whose ratios all have the same exact relative variance, but for the last step to 0.

    What an adaptive schedule would be with pilot samples that are not random.
    """
    betas = [1.0]
    while betas[-1] > 0:
        low, high = 0.0, betas[-1]
        if _variance(space, weights, betas[-1], high) <= variance:
            low = high
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if _variance(space, weights, betas[-1], middle) <= variance else (low, middle)
        betas.append(betas[-1] - low)
    return Schedule(np.array(betas[::-1]), "equal variances")


def _variance(space: Space, weights: Floats, beta: float, step: float) -> float:
    here, there, beyond = space.log_partition(np.outer([beta, beta - step, beta - 2 * step], weights))
    return math.expm1(min(700.0, beyond + here - 2 * there))


def least_work(space: Space, weights: Floats, radii: Sequence[float] = (0.25, 0.5, 1, 2, 4), p: float = 2) -> float:
    """Least `work` of a telescoping product with META, in uniform structures, on some schedules.

    No schedule takes less than the relative variance of a uniform structure. With g uniform and pi_i
    at beta_i, v_i = sum (pi_{i-1} - pi_i)^2 / pi_i and c_i = max pi_i / g, so v_i c_i is at least the
    square of the norm of (pi_{i-1} - pi_i) / g in L2(g); these differences add up to 1 - pi_l / g,
    whose squared norm is the relative variance of a uniform structure, and norms obey the triangle
    inequality.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    radii : equal schedules for these bounds on log-potentials, in halves of their span.
    p : steps to a nat of the equal schedules.
    """
    limits = map_range(space, weights)
    found = [corrected_schedule(p, radius * limits.span / 2) for radius in radii]
    found += [equal_variances(space, weights, variance) for variance in (0.05, 0.5)]
    exact = [exact_ratios(space, weights, schedule, limits) for schedule in found]
    return min(work(ratios.variances, ratios.steps) for ratios in exact)
