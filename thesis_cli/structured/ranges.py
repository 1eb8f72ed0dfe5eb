"""Least and largest log-potential of a space, which is all that the costs of META depend on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.structured.space import Space


@dataclass(frozen=True)
class PotentialRange:
    """Bounds low <= <phi(y), theta> <= high over all structures y.

    Attributes
    ----------
    low, high : the bounds, in nats.
    exact : whether `high` is known to be attained, by a MAP that is exact.
    """

    low: float
    high: float
    exact: bool = False

    @property
    def span(self) -> float:
        """Largest difference of two log-potentials; 2BR with the bounds of Cauchy and Schwarz."""
        return self.high - self.low

    def at(self, beta: float) -> PotentialRange:
        """The range under the weights beta theta, beta >= 0."""
        return PotentialRange(beta * self.low, beta * self.high, self.exact)


def norm_range(space: Space, weights: Floats) -> PotentialRange:
    """The range [-R |theta|, R |theta|] that Cauchy and Schwarz give (Vembu et al. section 3).
    Raises InputError if the weights have another length, or are not finite.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    """
    theta = one_vector(space, weights)
    bound = space.radius * float(np.linalg.norm(theta))
    return PotentialRange(-bound, bound)


def map_range(space: Space, weights: Floats) -> PotentialRange:
    """The range of two MAP problems, theta and -theta, where these have exact solvers.

    A side that no solver proves keeps its bound R |theta|. Raises InputError if the weights have
    another length, or are not finite.
    """
    theta, bounds = one_vector(space, weights), norm_range(space, weights)
    try:
        found = space.maximise(np.stack([theta, -theta]))
    except ModelTooLarge:
        return bounds
    if not found.exact:
        return bounds
    high, low = float(found.values[0]), -float(found.values[1])
    return PotentialRange(min(low, high), high, exact=True)


def one_vector(space: Space, weights: Floats) -> Floats:
    """The weight vector itself, if it is one of this space. Raises InputError if it has another
    shape, or numbers that are not finite."""
    return np.asarray(space.checked(np.asarray(weights, dtype=np.float64)[None])[0])


def log_size(space: Space) -> float:
    """ln of the number of structures, which may leave the range of a double."""
    return math.log(space.size())
