"""Intervals for measured statistics, from the known law of their noise alone.

An interval is about the table itself: it covers the statistic of the table's rows, clamped to their
public bounds, with probability `LEVEL` over the noise. It does not cover the error of a sample from
a larger population.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from thesis_cli.base.arrays import Floats

LEVEL = 0.95
STEPS = 400
"""Points between the bounds at which a ratio is tried first."""
GUESS = "no better than guessing"


@dataclass(frozen=True)
class Law:
    """Law of independent noise on the coordinates of a vector.

    Attributes
    ----------
    norm : 2 for Gaussian noise, 1 for Laplace noise.
    scale : standard deviation of Gaussian noise, or scale b of Laplace noise.
    """

    norm: int
    scale: float

    @cached_property
    def half(self) -> float:
        """Half the width of an interval for one coordinate."""
        unit = -math.log(1 - LEVEL) if self.norm == 1 else NormalDist().inv_cdf((1 + LEVEL) / 2)
        return self.scale * unit

    def plausible(self, distance: Floats, a: Floats, b: Floats) -> np.ndarray:
        """Whether |a X + b Y| reaches a distance with probability above 1 - LEVEL, for noise X, Y.

        The sum of two Laplace variables of scales s > t exceeds x in absolute value with
        probability (s^2 e^(-x/s) - t^2 e^(-x/t)) / (s^2 - t^2).
        """
        if self.norm == 2:
            return np.abs(distance) <= self.half * np.hypot(a, b)
        x = np.abs(distance)
        s = self.scale * np.maximum(np.abs(a), np.abs(b))
        t = self.scale * np.minimum(np.abs(a), np.abs(b))
        with np.errstate(all="ignore"):
            apart = (s**2 * np.exp(-x / s) - np.where(t > 0, t**2 * np.exp(-x / t), 0.0)) / (s**2 - t**2)
            equal = np.exp(-x / s) * (1 + x / (2 * s))
            found = np.where(s - t > 1e-5 * s, apart, equal)
        return np.where(s > 0, found >= 1 - LEVEL, x == 0)


Form = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""For a ratio theta, the distance of the noisy numbers from a line through 0, and the coefficients
of both noises in it."""


def ratio_interval(law: Law, form: Form, estimate: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Interval for a ratio of two noisy numbers (Fieller 1954), within public bounds.

    It has all ratios theta for which the distance that `form` returns is no surprise under the
    noise; if they are not connected, what is between them too. If there are none, it has all.

    Parameters
    ----------
    estimate : ratio at which the distance is 0, or NaN.
    bounds : least and largest ratio.
    """
    low, high = bounds
    inside = min(max(estimate, low), high) if math.isfinite(estimate) else low
    points = np.unique(np.append(np.linspace(low, high, STEPS + 1), inside))

    def accepted(theta: Floats) -> np.ndarray:
        return law.plausible(*form(theta))

    found = np.flatnonzero(accepted(points))
    if not found.size:
        return low, high
    first, last = int(found[0]), int(found[-1])
    ends = [float(points[first]), float(points[last])]
    if first:
        ends[0] = _edge(accepted, float(points[first]), float(points[first - 1]))
    if last < len(points) - 1:
        ends[1] = _edge(accepted, float(points[last]), float(points[last + 1]))
    return ends[0], ends[1]


def _edge(accepted: Callable[[Floats], np.ndarray], inside: float, outside: float) -> float:
    """Edge of the accepted ratios between two of them, rounded outwards."""
    for _ in range(45):
        middle = (inside + outside) / 2
        if accepted(np.array([middle]))[0]:
            inside = middle
        else:
            outside = middle
    return outside


def around(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Interval around a noisy value, not yet cut to the possible values.

    If the value itself is impossible, the interval is around the nearest possible one: it contains
    all possible values of the first, and never shrinks to a point. Where it is as wide as the range
    of possible values, it is that range.
    """
    inside = min(max(value, bounds[0]), bounds[1])
    if inside != value and 2 * half >= bounds[1] - bounds[0]:
        return bounds
    return inside - half, inside + half


def guessing(low: float, high: float, bounds: tuple[float, float]) -> str:
    """`GUESS` if an interval, before it is cut to the bounds, is as wide as one without data would
    be; otherwise nothing.
    """
    return GUESS if high - low >= LEVEL * (bounds[1] - bounds[0]) else ""
