"""Logarithms of sums: of a few values, and of those that cancel, 0 where nothing but rounding is left."""

from __future__ import annotations

from typing import overload

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats

ROUNDING = 2.0**-50
"""Four units in the last place of 1: the rounding of a few sums."""


@overload
def difference(a: float, b: float) -> float: ...
@overload
def difference(a: Floats, b: Floats | float) -> Floats: ...
def difference(a: Floats | float, b: Floats | float) -> Floats | float:
    """a - b of logarithms of sums, or 0 where that is within their rounding, elementwise.

    A sum is rounded by a share of itself, so its logarithm is by at least a unit of 1 in the last
    place, however small it is.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        left = np.subtract(a, b)
        scale = np.maximum(1.0, np.minimum(np.abs(a), np.abs(b)))
        found = np.where(np.abs(left) <= ROUNDING * scale, 0.0, left)
    return found if found.ndim else float(found)


def log_of_sum(log_sum: float) -> float:
    """The logarithm of a sum of products, or 0 if the sum is 1 up to its rounding."""
    return 0.0 if abs(log_sum) <= 2 * ROUNDING else log_sum


def mean_of(values: Floats) -> float:
    """The mean, which is the value itself where all are equal."""
    return float(values[0] if np.ptp(values) == 0 else values.mean())


def sample_deviation(values: Floats) -> Floats:
    """Standard deviation of a sample along the last axis, 0 where all values are equal."""
    return np.where(np.ptp(values, axis=-1) == 0, 0.0, values.std(axis=-1, ddof=1))


def log_sum_exp(x: Floats) -> Floats:
    """ln of the sum of exp(x) over the last axis.

    Finite values are added as SciPy's `logsumexp` adds them, to the same bit, without what it
    spends on other kinds of arrays: several times the cost of a few values.
    """
    if not np.isfinite(x).all():
        return np.asarray(logsumexp(x, axis=-1))
    top = x.max(axis=-1, keepdims=True)
    largest = x == top
    count = largest.sum(axis=-1, dtype=x.dtype)
    rest = np.where(largest, 0.0, np.exp(x - top)).sum(axis=-1)
    return np.asarray(np.log1p(rest / count) + np.log(count) + top[..., 0])
