"""Kernels between points, and exact inner products, norms and distances of expansions.

Sums of Gaussian kernels at many places take time linear in the number of points (the fast Gauss
transform of Greengard and Strain, 1991), those of Laplace kernels that of sorting them.

The line is cut into boxes of half a bandwidth. With g(t) = exp(-t^2 / 2), a point at u from the
centre of its box and a place at v from the centre of another, both in bandwidths, with the centres
D apart,

    g(D + v - u) = sum_jk v^j/j! (-u)^k/k! g^(j+k)(D).

|u| and |v| are at most 1/4, and |g^(n)| <= 1.0865 sqrt(n!) (Cramer), so the terms from `TERMS` on add
up to less than 1e-15 times the sum of |w|. Boxes more than `REACH` boxes apart are neglected, another
exp(-8.5^2 / 2) < 3e-16 of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, total_of
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion

BOX = 0.5
"""Width of a box, in bandwidths."""

TERMS = 20
"""Terms of an expansion."""

REACH = 17
"""Number of boxes on either side that a sum takes account of."""

GAP = (REACH + 1) * BOX
"""Distance beyond which a point is neglected, in bandwidths: together at most 1.4e-15 times the sum of |w|."""


@cache
def _translations() -> Floats:
    """Derivatives g^(j+k)(-d BOX) for d from -REACH to REACH, shape (boxes, k, j)."""
    distances = -BOX * np.arange(-REACH, REACH + 1)
    derivatives = [np.exp(-0.5 * distances**2)]
    derivatives.append(-distances * derivatives[0])
    for n in range(1, 2 * TERMS - 2):
        derivatives.append(-distances * derivatives[n] - n * derivatives[n - 1])
    orders = np.add.outer(np.arange(TERMS), np.arange(TERMS))
    return np.ascontiguousarray(np.moveaxis(np.stack(derivatives)[orders], -1, 0))


class GaussSums:
    """The function f(y) = sum_n w_n exp(-(x_n - y)^2 / (2 s^2)), prepared once for many places y.

    Groups of points more than 2 GAP apart do not meet, so that each counts its boxes from its own
    first point: neither the range of the points nor their distance from 0 costs time or accuracy.

    Parameters
    ----------
    points, weights : x and w, shape (n,) each.
    bandwidth : s, above 0.
    """

    def __init__(self, points: Floats, weights: Floats, bandwidth: float) -> None:
        order = np.argsort(points, kind="stable")
        x, w = points[order], weights[order]
        self._bandwidth = bandwidth
        with np.errstate(over="ignore"):
            first = np.concatenate([[True], np.diff(x) > 2 * GAP * bandwidth])
        group = np.cumsum(first) - 1
        self._starts = x[first]
        boxes, offsets = _boxes((x - self._starts[group]) / bandwidth)
        last = boxes[np.append(np.flatnonzero(first)[1:], len(x)) - 1]
        self._extents = last
        margin = 2 * REACH + 3
        self._base = np.concatenate([[0], np.cumsum(last[:-1] + margin)]) + REACH + 1
        boxes += self._base[group]  # in increasing order, as the points are
        new = np.concatenate([[True], np.diff(boxes) > 0])
        self._occupied, at = boxes[new], np.cumsum(new) - 1
        self._moments = np.zeros((len(self._occupied) + 1, TERMS))
        for k in range(TERMS):
            self._moments[:-1, k] = np.bincount(at, w, len(self._occupied))
            w = w * -offsets / (k + 1)

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Values f(y) and derivatives f'(y) at places y, shape (m,) each."""
        values, slopes = np.zeros(len(places)), np.zeros(len(places))
        group = np.searchsorted(self._starts - GAP * self._bandwidth, places, side="right") - 1
        near = np.flatnonzero(group >= 0)
        group = group[near]
        with np.errstate(over="ignore"):
            local = (places[near] - self._starts[group]) / self._bandwidth
        met = local < (self._extents[group] + 1) * BOX + GAP
        near, group, local = near[met], group[met], local[met]
        boxes, offsets = _boxes(local)
        boxes += self._base[group]
        targets, at = np.unique(boxes, return_inverse=True)
        terms = self._local(targets)
        value, slope = np.zeros(len(near)), np.zeros(len(near))
        for j in range(TERMS - 1, -1, -1):
            term = terms[at, j]
            slope = value + slope * offsets
            value = term + value * offsets
        values[near], slopes[near] = value, slope / self._bandwidth
        return values, slopes

    def _local(self, targets: Ints) -> Floats:
        """Taylor coefficients of f about the centres of boxes, shape (len(targets), TERMS)."""
        found = np.zeros((len(targets), TERMS))
        for d, translation in enumerate(_translations()):
            wanted = targets + (d - REACH)
            place = np.minimum(np.searchsorted(self._occupied, wanted), len(self._occupied) - 1)
            place = np.where(self._occupied[place] == wanted, place, len(self._occupied))
            found += self._moments[place] @ translation
        return found / [math.factorial(j) for j in range(TERMS)]


def _boxes(local: Floats) -> tuple[Ints, Floats]:
    """Numbers of the boxes of places, and offsets from their centres; in bandwidths."""
    boxes = np.floor(local / BOX)
    return boxes.astype(np.int64), local - (boxes + 0.5) * BOX


class LaplaceSums:
    """The function f(y) = sum_n w_n exp(-|x_n - y| / s), prepared once for many places y.

    On either side of y it is one exponential of the distance to the next point, whose factor
    follows from that of the point before.

    Parameters
    ----------
    points, weights : x and w, shape (n,) each.
    bandwidth : s, above 0.
    """

    def __init__(self, points: Floats, weights: Floats, bandwidth: float) -> None:
        self._x, at = np.unique(points, return_inverse=True)
        w = np.asarray(np.bincount(at, weights), np.float64)
        self._bandwidth = bandwidth
        with np.errstate(over="ignore"):
            decay = np.exp(-np.diff(self._x) / bandwidth)
        self._up = _sums(w, decay)
        self._down = _sums(w[::-1], decay[::-1])[::-1]

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Values f(y) and derivatives f'(y) at places y, shape (m,) each; at a point x_n the
        derivative is the mean of those from either side.
        """
        first = np.searchsorted(self._x, places)
        met = first + (self._x[np.minimum(first, len(self._x) - 1)] == places)
        left, right = self._side(first - 1, places, self._up), self._side(met, places, self._down)
        own = self._side(met - 1, places, self._up)
        return own + right, (right - left) / self._bandwidth

    def _side(self, nearest: Ints, places: Floats, sums: Floats) -> Floats:
        """Sum over the points on one side, from that of the nearest of them; 0 if there is none."""
        some = (nearest >= 0) & (nearest < len(self._x))
        at = np.where(some, nearest, 0)
        with np.errstate(over="ignore"):
            decay = np.exp(-np.abs(places - self._x[at]) / self._bandwidth)
        return np.where(some, decay * sums[at], 0.0)


def _sums(weights: Floats, decay: Floats) -> Floats:
    """S_n = w_n + decay_(n-1) S_(n-1)."""
    steps = zip(weights[1:].tolist(), decay.tolist(), strict=True)
    found = accumulate(steps, lambda total, step: step[0] + step[1] * total, initial=float(weights[0]))
    return np.fromiter(found, np.float64, len(weights))


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
