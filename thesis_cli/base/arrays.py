"""Types of arrays, by the numbers that they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
"""Bits of random numbers, hashes or sets, 64 to a number."""


def total_of(weights: Floats, values: Floats) -> float:
    """Sum of products, the same to the last bit on any number of cores, unlike that of a long dot product."""
    return float((weights * values).sum())
