"""Sums of Laplace kernels at many places, by sorting."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from thesis_cli.base.arrays import Floats, Ints


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
