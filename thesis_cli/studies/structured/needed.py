"""How many samples a factor of 1 +- epsilon takes, bound by bound, and how far schedules are off."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured import schedules
from thesis_cli.structured.ranges import PotentialRange, map_range
from thesis_cli.structured.schedules import Schedule
from thesis_cli.structured.space import Space
from thesis_cli.studies.structured.exact_ratios import (
    ExactRatios,
    equal_variances,
    exact_ratios,
    uniform_variance,
    work,
)


def needed_numbers(space: Space, weights: Floats, bound: float, p: int, error: float) -> dict[str, float]:
    """Samples of all ratios together that 1 +- error with probability 3/4 takes, by what they rest on.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    bound : R |theta|.

    Returns
    -------
    `Theorem 2.5`: as printed. `sharper variance`: sinh(1/p)^2 instead of exp(2/p). `all of epsilon`:
    deviations up to epsilon / (1 + epsilon) instead of epsilon / 4, too. `span`: with half of the span of
    the log-potentials for R |theta|, too. `exact variances`: on steps of a variance of 0.1.
    `uniform average`: of one mean over uniform structures.
    """
    target, limits = schedules.relative_variance(error), map_range(space, weights)
    schedule = schedules.corrected_schedule(p, bound)
    variances = schedule.variance_bounds(2 * bound)
    short = schedules.corrected_schedule(p, limits.span / 2)
    exact = exact_ratios(space, weights, equal_variances(space, weights, 0.1), limits).variances
    found = {
        "Theorem 2.5": schedule.ratios * schedules.printed_samples(schedule.ratios, p, error),
        "sharper variance": schedules.needed_samples(variances, error**2 / 64).sum(),
        "all of epsilon": schedules.needed_samples(variances, target).sum(),
        "span": schedules.needed_samples(short.variance_bounds(limits.span), target).sum(),
        "exact variances": work(exact, np.ones(len(exact))) / math.log1p(target),
        "uniform average": uniform_variance(space, weights) / target,
    }
    return {name: float(count) for name, count in found.items()}


def schedule_numbers(schedule: Schedule, ratios: ExactRatios, p: int, limits: PotentialRange) -> dict[str, float]:
    """What section 2.2 states about a schedule, of which `ratios` are the exact ratios.

    Returns
    -------
    `largest beta`; `reach`: the largest |ln f_i| of any structure in units of 1/p; `Lemma 2.4`: least
    distance of a ratio from its bounds, negative if one is exceeded; `Proposition 2.3` and `sinh`: the
    largest relative variance over exp(2/p), and over sinh(1/p)^2.
    """
    rho = np.exp(ratios.logs)
    return {
        "largest beta": float(schedule.betas.max()),
        "reach": float(np.abs(schedule.steps).max() * max(limits.high, -limits.low) * p),
        "Lemma 2.4": float(min((rho - math.expm1(1 / p)).min(), (1 + math.exp(-1 / p) - rho).min())),
        "Proposition 2.3": float(ratios.variances.max() / math.exp(2 / p)),
        "sinh": float(ratios.variances.max() / math.sinh(1 / p) ** 2),
    }
