"""Exact ratios of partition functions along a schedule, and how many samples and steps an error of Z takes
by each way of estimating it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured import schedules
from thesis_cli.structured.ranges import PotentialRange, log_size, map_range, norm_range
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
    """Numbers that section 2.2 states about a schedule, of which `ratios` are the exact ratios.

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


STEPS_A_NAT = 3
"""The constant p of Theorem 2.5."""

CONFIDENCE = 0.75
"""Probability of Definition 2.1."""


class NeededWork(NamedTuple):
    """Work that guarantees Z within a factor of 1 +- epsilon with probability 3/4, by Chebyshev.

    Attributes
    ----------
    perturbations : perturbations with noise on every structure.
    uniform : uniform structures whose factors are averaged.
    draws : exact samples of a telescoping product with equal steps and sharp variance bounds.
    steps : uniform structures that META takes for these samples, on average.
    theorem : exact samples that Theorem 2.5 asks for, with the corrected schedule.
    """

    perturbations: float
    uniform: float
    draws: float
    steps: float
    theorem: float


def with_span(space: Space, span: float, rng: np.random.Generator) -> Floats:
    """Standard normal weights, scaled so that the log-potentials span so many nats; shape (dimension,)."""
    weights = rng.standard_normal(space.dimension)
    return np.asarray(weights * (span / map_range(space, weights).span))


def perturbations(error: float) -> int:
    """Perturbations of all structures that Chebyshev asks for: (pi^2 / 6) / (delta ln(1 + epsilon)^2).

    The maxima are Gumbel variables with mean ln Z whatever the space (Thesis eq. 2.1').
    """
    return math.ceil(math.pi**2 / 6 / ((1 - CONFIDENCE) * math.log1p(error) ** 2))


def needed(space: Space, weights: Floats, error: float) -> NeededWork:
    """Work of each way for an error, from exact variances and spans.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    error : epsilon, between 0 and 1.
    """
    limits = map_range(space, weights)
    found = needed_numbers(space, weights, norm_range(space, weights).high, STEPS_A_NAT, error)
    schedule = schedules.corrected_schedule(STEPS_A_NAT, limits.span / 2)
    target = schedules.relative_variance(error, CONFIDENCE)
    counts = schedules.needed_samples(schedule.variance_bounds(limits.span), target)
    return NeededWork(
        perturbations(error),
        found["uniform average"],
        found["span"],
        float(counts @ exact_ratios(space, weights, schedule, limits).steps),
        found["Theorem 2.5"],
    )
