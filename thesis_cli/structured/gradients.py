"""Sampled gradients of ln Z, the expected features (Vembu et al. section 2.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.structured.meta import Direct, Sampler
from thesis_cli.structured.ranges import PotentialRange, map_range, norm_range
from thesis_cli.structured.space import Space


@dataclass(frozen=True)
class SampledGradient:
    """Mean feature vectors of samples.

    Attributes
    ----------
    mean : estimates of the gradients of ln Z, shape (n, dimension).
    standard_errors : of each number of `mean`, same shape.
    samples : samples of each weight vector.
    steps : uniform structures that were proposed in all.
    distance : bound on the total variation distance of a sample; 0 for exact ones.
    """

    mean: Floats
    standard_errors: Floats
    samples: int
    steps: int
    distance: float


def sampled_gradients(
    space: Space,
    weights: Floats,
    samples: int,
    sampler: Sampler,
    rng: np.random.Generator,
    limits: PotentialRange | None = None,
) -> SampledGradient:
    """Mean features of samples under each of some weight vectors: unbiased if the samples are exact.

    Parameters
    ----------
    weights : shape (n, dimension).
    samples : samples of each weight vector, at least 1.
    sampler : `Direct()`, `Coupled()` or `Truncated()`.
    limits : range of the log-potentials that holds for all weight vectors; None for that of two MAP
        problems each, which `Direct()` does not need and does not solve.

    Raises
    ------
    InputError : there is no sample, or the weights have another shape or are not finite.
    ModelTooLarge : the sampler takes too long.
    """
    if samples < 1:
        raise InputError(f"there are {samples} samples", "a gradient needs 1 or more")
    vectors = space.checked(weights)
    mean, errors = np.empty_like(vectors), np.empty_like(vectors)
    steps, distance = 0, 0.0
    for at, vector in enumerate(vectors):
        draws = sampler(space, vector, samples, rng, limits or _limits(space, vector, sampler))
        features = space.features(draws.structures)
        mean[at] = features.mean(axis=0)
        errors[at] = features.std(axis=0, ddof=1) / math.sqrt(samples) if samples > 1 else math.inf
        steps, distance = steps + draws.steps, max(distance, draws.distance)
    return SampledGradient(mean, errors, samples, steps, distance)


def _limits(space: Space, weights: Floats, sampler: Sampler) -> PotentialRange:
    return norm_range(space, weights) if isinstance(sampler, Direct) else map_range(space, weights)


def hoeffding_probability(width: float, error: float, samples: int) -> float:
    """Bound on the probability that <d, z> misses <gradient, z> by `error` or more (Vembu et al. 2.3).

    2 exp(-2 S error^2 / width^2); the source has 2 R G for the width, which is the largest that
    |phi| <= R and |z| <= G allow.

    Parameters
    ----------
    width : largest difference of <phi(y), z> between two structures.
    error : deviation, positive.
    samples : S, number of exact samples.
    """
    _check_positive(width=width, error=error)
    return min(1.0, 2 * math.exp(-2 * samples * (error / width) ** 2))


def hoeffding_samples(width: float, error: float, failure: float) -> int:
    """Least S at which `hoeffding_probability` is at most `failure`.

    Raises
    ------
    InputError : the failure is not between 0 and 1, or another number is not positive.
    """
    _check_positive(width=width, error=error)
    if not 0 < failure < 1:
        raise InputError(f"the probability of failure is {failure:g}", "it must be between 0 and 1")
    return max(1, math.ceil(math.log(2 / failure) / 2 * (width / error) ** 2))


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise InputError(f"the {name} is {number:g}", "it must be positive and finite")
