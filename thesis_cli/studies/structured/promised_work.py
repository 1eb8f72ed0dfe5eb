"""Weights of a given span, and how much work an error of Z takes by each way of estimating it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured import schedules
from thesis_cli.structured.ranges import map_range, norm_range
from thesis_cli.structured.space import Space
from thesis_cli.studies.structured.exact_ratios import exact_ratios
from thesis_cli.studies.structured.needed import needed_numbers

STEPS_A_NAT = 3
"""The constant p of Theorem 2.5."""

CONFIDENCE = 0.75
"""Probability of Definition 2.1."""


class Needed(NamedTuple):
    """Work that guarantees Z within a factor of 1 +- epsilon with probability 3/4, by Chebyshev.

    Attributes
    ----------
    perturbations : with noise on every structure.
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
    found: Floats = weights * (span / map_range(space, weights).span)
    return found


def perturbations(error: float) -> int:
    """Perturbations of all structures that Chebyshev asks for: (pi^2 / 6) / (delta ln(1 + epsilon)^2).

    The maxima are Gumbel variables with mean ln Z whatever the space (Thesis eq. 2.1').
    """
    return math.ceil(math.pi**2 / 6 / ((1 - CONFIDENCE) * math.log1p(error) ** 2))


def needed(space: Space, weights: Floats, error: float) -> Needed:
    """What each way takes for an error, from exact variances and spans.

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
    return Needed(
        perturbations(error),
        found["uniform average"],
        found["span"],
        float(counts @ exact_ratios(space, weights, schedule, limits).steps),
        found["Theorem 2.5"],
    )
