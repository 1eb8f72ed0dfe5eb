"""Kernels between points, and exact inner products, norms and distances of expansions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Floats, total_of
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.gauss_sums import GaussSums, LaplaceSums

BLOCK = 2**22
"""Entries of a block of a kernel matrix that is not held whole."""

MEDIAN_OF = 2000
"""Number of points among which the median distance is taken."""


class Sums(Protocol):
    """A function f(y) = sum_n w_n k(x_n, y) on the line, prepared for many places y."""

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Values and derivatives at places, shape (m,) each."""
        ...


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel of the distance between two points: 0 < k <= 1 and k(x, x) = 1. Raises InputError if
    the bandwidth is not a finite number above 0.

    Attributes
    ----------
    bandwidth : scale s of the distances, in the unit of the points.
    """

    bandwidth: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise InputError(f"the bandwidth is {self.bandwidth:g}", "it must be above 0, and finite")

    @abstractmethod
    def matrix(self, a: Floats, b: Floats) -> Floats:
        """Kernel of points of shapes (m, d) and (n, d), shape (m, n)."""

    @abstractmethod
    def prepared(self, expansion: Expansion) -> Sums:
        """Embedding as a function on the line; the points have one coordinate."""

    def values(self, expansion: Expansion, places: Floats) -> Floats:
        """Embedding sum_n w_n k(x_n, y) at places y of shape (m, d), shape (m,).

        On the line it takes time linear in the numbers of points and places, otherwise in their
        product.
        """
        if expansion.dimension == 1:
            return self.prepared(expansion).at(places[:, 0])[0]
        rows = max(1, BLOCK // len(expansion))
        parts = (places[start : start + rows] for start in range(0, len(places), rows))
        return np.concatenate([self.matrix(part, expansion.points) @ expansion.weights for part in parts])

    def inner(self, a: Expansion, b: Expansion) -> float:
        """Inner product sum_mn a_m b_n k(x_m, y_n) of two expansions."""
        small, large = (a, b) if len(a) <= len(b) else (b, a)
        return total_of(small.weights, self.values(large, small.points))

    def norm(self, expansion: Expansion) -> float:
        """RKHS norm of an expansion.

        The square is exact to a few 1e-15 times the square of the sum of |w|, so that a norm below
        1e-7 of that sum is lost in rounding.
        """
        return math.sqrt(max(0.0, self.inner(expansion, expansion)))

    def distance(self, a: Expansion, b: Expansion) -> float:
        """RKHS distance of two expansions, the maximum mean discrepancy if both are distributions;
        as accurate as `norm`.
        """
        return self.norm(a.minus(b))


class Gaussian(Kernel):
    """k(x, y) = exp(-|x - y|^2 / (2 s^2)) (Scibior and Schoelkopf section 2)."""

    def matrix(self, a: Floats, b: Floats) -> Floats:
        """Kernel of points of shapes (m, d) and (n, d), shape (m, n)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-0.5 * _squares(a, b, self.bandwidth)))

    def prepared(self, expansion: Expansion) -> Sums:
        """Embedding as a function on the line, by fast Gauss sums."""
        return GaussSums(expansion.points[:, 0], expansion.weights, self.bandwidth)


class Laplace(Kernel):
    """k(x, y) = exp(-|x - y| / s) with the Euclidean norm (Scibior and Schoelkopf section 2)."""

    def matrix(self, a: Floats, b: Floats) -> Floats:
        """Kernel of points of shapes (m, d) and (n, d), shape (m, n)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.sqrt(_squares(a, b, self.bandwidth))))

    def prepared(self, expansion: Expansion) -> Sums:
        """Embedding as a function on the line, by sorting."""
        return LaplaceSums(expansion.points[:, 0], expansion.weights, self.bandwidth)


KERNELS = {"gaussian": Gaussian, "laplace": Laplace}
"""Kernels by the names that options use."""


def _squares(a: Floats, b: Floats, scale: float) -> Floats:
    """Squared distances in units of `scale`, shape (len(a), len(b))."""
    found = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):
        found += (np.subtract.outer(x, y) / scale) ** 2
    return found


def median_distance(expansion: Expansion) -> float:
    """Median distance of two points drawn by their weights; a common bandwidth.

    It is taken among `MEDIAN_OF` points, evenly spaced in the weight of the sorted points, so that
    it is the same in every run. Where the median is 0 it is the mean distance, and 1 if all points
    agree.
    """
    order = np.argsort(expansion.points[:, 0], kind="stable")
    share = np.cumsum(np.abs(expansion.weights[order]))
    count = min(MEDIAN_OF, len(expansion))
    if not share[-1] > 0:
        return 1.0
    at = np.searchsorted(share, (np.arange(count) + 0.5) / count * share[-1])
    chosen = expansion.points[order[np.minimum(at, len(order) - 1)]]
    distances = np.sqrt(_squares(chosen, chosen, 1.0)[np.triu_indices(count, 1)])
    if not distances.size:
        return 1.0
    return float(np.median(distances)) or float(distances.mean()) or 1.0
