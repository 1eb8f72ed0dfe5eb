"""Values in lanes, as compiled code reads them.

A value is a row of a pool. It has `WIDTH` int16 lanes for each of M examples, one example after the
other, then the length of each. Lanes beyond the length, at least one, hold NULL; a number is a list
of length 1. Loops over all lanes of all examples become vector instructions, which loops over true
lengths would not; where a loop cannot become one, the length that is stored bounds it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from thesis_cli.base.compiled import helper

Lanes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]

WIDTH = 32
"""Lanes of a list; it is shorter by at least 1."""

NULL = np.int16(-(2**15))
"""What stands in lanes beyond the length. Like 2^15 - 1, to which larger numbers are clamped, it is
in no range."""

inlined: Any = partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def row_size(examples: int) -> int:
    """Lanes and lengths of a value, in words of 64 bits."""
    return WIDTH * examples + -(-examples // 4) * 4


@inlined
def examples_of(pool):
    """Number M of examples."""
    return pool.shape[1] // (WIDTH + 1)


@inlined
def start(m):
    """First column of an example; unsigned, or the compiler fears that it counts from the end."""
    return np.uint64(m * WIDTH)


@inlined
def length_of(pool, x, m):
    return np.uint64(pool[x, start(examples_of(pool)) + np.uint64(m)])


@inlined
def end(pool, x, m):
    """The column after the last of a list."""
    return start(m) + length_of(pool, x, m)


@inlined
def set_length(pool, out, m, n):
    pool[out, start(examples_of(pool)) + np.uint64(m)] = np.int16(n)


@inlined
def copy_lengths(pool, x, out, first, last):
    base = start(examples_of(pool))
    for i in range(base + np.uint64(first), base + np.uint64(last)):
        pool[out, i] = pool[x, i]


@inlined
def clear(pool, out, first, last):
    for i in range(start(first), start(last)):
        pool[out, i] = NULL


@inlined
def give(pool, out, m, number, low, high):
    """Write a number; whether it is in range."""
    clear(pool, out, m, m + 1)
    pool[out, start(m)] = number
    set_length(pool, out, m, 1)
    return low <= number <= high


@inlined
def clamp(x):
    return np.int16(min(max(x, np.int32(-(2**15))), np.int32(2**15 - 1)))


@helper()
def same(pool, x, y, first, last):
    """Whether two values agree on examples `first` to `last` - 1."""
    differs = np.int16(0)
    for i in range(start(first), start(last)):
        differs |= pool[x, i] ^ pool[y, i]
    return differs == 0
