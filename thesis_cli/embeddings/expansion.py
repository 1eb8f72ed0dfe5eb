"""Finite expansions sum_m w_m Phi(x_m) of distributions (Scibior and Schoelkopf section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, total_of
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.embeddings import statistics

MOST_POINTS = 2**26
"""Largest number of points of the expansion of a function of several variables."""

ROUNDING = 1e-12
"""Share of the weight by which sums of weights may be off."""

EQUAL = 1e-9
"""Distance of two totals of weights that count as equal."""


@dataclass(frozen=True)
class Expansion:
    """Weighted points; in an RKHS with feature map Phi they are the vector sum_m w_m Phi(x_m).
    Raises InputError for no points, shapes that do not fit, or numbers that are not finite.

    Attributes
    ----------
    points : float64, shape (m, d). Points of shape (m,) become (m, 1).
    weights : float64 of any sign, shape (m,); 1/m each if none are given.
    """

    points: Floats = field(repr=False)
    weights: Floats = field(repr=False, default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        points = np.asarray(self.points, np.float64)
        points = points[:, np.newaxis] if points.ndim == 1 else points
        weights = np.asarray(self.weights, np.float64)
        if points.ndim != 2 or not points.size:
            raise InputError(f"points of shape {points.shape}", "there must be at least one point")
        if not weights.size:
            weights = np.full(len(points), 1 / len(points))
        if weights.shape != (len(points),):
            raise InputError(f"weights of shape {weights.shape}", f"there must be one for each of {len(points)} points")
        for what, numbers in (("points", points), ("weights", weights)):
            if not np.isfinite(numbers).all():
                raise InputError(f"some of the {what} are not finite numbers", "all must be finite")
        object.__setattr__(self, "points", np.ascontiguousarray(points))
        object.__setattr__(self, "weights", np.ascontiguousarray(weights))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a point."""
        return int(self.points.shape[1])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def total_variation(self) -> float:
        """Sum of the absolute weights, the total variation norm if the points differ."""
        return float(np.abs(self.weights).sum())

    def is_distribution(self) -> bool:
        """Whether the weights are 0 or more and sum to 1."""
        return bool((self.weights >= 0).all()) and abs(self.total - 1) < EQUAL

    def distribution(self) -> Expansion:
        """Nearby distribution: negative weights become 0, and the sum 1. Raises InputError if no
        weight is above 0."""
        if self.is_distribution():
            return self
        weights = np.maximum(self.weights, 0.0)
        if not weights.any():
            raise InputError("no weight of the expansion is above 0", "a distribution must have some")
        return Expansion(self.points, weights / weights.sum())

    def merged(self) -> Expansion:
        """Same vector with one entry for each point that differs, in increasing order."""
        if self.dimension == 1:
            order = np.argsort(self.points[:, 0], kind="stable")  # quick where the points are in order already
            points, weights = self.points[order, 0], self.weights[order]
            first = np.flatnonzero(np.append(True, points[1:] != points[:-1]))
            return Expansion(points[first], np.add.reduceat(weights, first) if len(first) < len(points) else weights)
        points, at = np.unique(self.points, axis=0, return_inverse=True)
        return Expansion(points, np.asarray(np.bincount(at.ravel(), self.weights, len(points)), np.float64))

    def minus(self, other: Expansion) -> Expansion:
        """Difference of two expansions; points that both have are merged. Raises InputError for
        points of another dimension."""
        if other.dimension != self.dimension:
            raise InputError(
                f"points of {self.dimension} and of {other.dimension} coordinates", "both must have as many"
            )
        points = np.concatenate([self.points, other.points])
        return Expansion(points, np.concatenate([self.weights, -other.weights])).merged()

    def mean(self, column: int = 0) -> float:
        """Weighted sum of a coordinate, with the weights as they are (Thesis eq. 4.5)."""
        return statistics.mean(self.weights, self.points[:, column])

    def var(self, column: int = 0) -> float:
        """Variance of a coordinate under the nearby distribution."""
        return statistics.variance(self.distribution().weights, self.points[:, column])

    def quantile(self, q: float, column: int = 0) -> float:
        """Least value with at least the share q, up to rounding, of the nearby distribution at or
        below it. Raises InputError if q is not from 0 to 1."""
        if not 0 <= q <= 1:
            raise InputError(f"q is {q:g}", "it must be from 0 to 1")
        return statistics.quantile(self.distribution().weights, self.points[:, column], max(0.0, q - ROUNDING))

    def probability(self, event: Bools) -> float:
        """Sum of the weights of the points in an event, shape (m,), with the weights as they
        are.
        """
        return float(self.weights[event].sum())

    def map(self, function: Callable[..., Floats]) -> Expansion:
        """Push-forward: a function of the coordinates, each of shape (m,), at each point.

        The weights stay, so that sum_m w_m Phi(f(x_m)) estimates the embedding of f(X) for
        dependent coordinates (Thesis section 4.3.3).
        """
        found = np.asarray(function(*self.points.T), np.float64)
        return Expansion(np.broadcast_to(found, self.weights.shape), self.weights)


def push_forward(function: Callable[..., Floats], *independent: Expansion) -> Expansion:
    """Expansion sum_ij a_i b_j Phi(f(x_i, y_j)) of a function of independent variables (Scibior and
    Schoelkopf section 3). Raises ModelTooLarge for more than `MOST_POINTS` points, and InputError
    if an expansion has several coordinates, or f has a value that is not finite.

    Parameters
    ----------
    function : called with an array of the values of each variable, all of one shape.
    independent : expansions of one coordinate each.
    """
    count = math.prod(len(part) for part in independent)
    if count > MOST_POINTS:
        raise ModelTooLarge(f"the function has {count:,} combinations of points", f"there may be {MOST_POINTS:,}")
    if any(part.dimension != 1 for part in independent):
        raise InputError("a variable has several coordinates", "each must have one")
    values = np.meshgrid(*(part.points[:, 0] for part in independent), indexing="ij")
    weights = np.ones(())
    for part in independent:
        weights = np.multiply.outer(weights, part.weights)
    found = np.broadcast_to(np.asarray(function(*values), np.float64), weights.shape)
    return Expansion(found.ravel(), weights.ravel())


def wasserstein(a: Expansion, b: Expansion) -> float | None:
    """Wasserstein-1 distance in one dimension, the area between the distribution functions; exact.

    None if a weight is negative, the totals differ, or the points have several coordinates.
    """
    if a.dimension != 1 or b.dimension != 1 or min(a.weights.min(), b.weights.min()) < 0:
        return None
    if abs(a.total - b.total) > EQUAL * max(1.0, a.total):
        return None
    apart = a.minus(b)
    return total_of(np.abs(np.cumsum(apart.weights)[:-1]), np.diff(apart.points[:, 0]))
