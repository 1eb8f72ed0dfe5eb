"""Compiled operations of the language on values in lanes.

A value is a row of a pool. It has `WIDTH` int16 lanes for each of M examples, one example after the other, then the
length of each. Lanes beyond the length, at least one, hold NULL; a number is a list of length 1. Loops over all lanes
of all examples become vector instructions, which loops over true lengths would not; where a loop cannot become one,
the length that stands there bounds it. `dsl` is the plain reference.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from thesis_cli.synthesis.dsl import INT, OPERATIONS

Lanes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]

WIDTH = 32
"""Lanes of a list; it is shorter by at least 1."""

NULL = np.int16(-(2**15))
"""What stands in lanes beyond the length. Like 2^15 - 1, to which larger numbers are clamped, it is in no range."""

(HEAD, LAST, TAKE, DROP, ACCESS, MINIMUM, MAXIMUM, REVERSE, SORT, SUM) = range(10)
(ADD_1, LESS_1, TIMES_2, HALF, NEGATE, SQUARE, TIMES_3, THIRD, TIMES_4, QUARTER) = range(10, 20)
FILTER, COUNT = 20, 24  # and the three after each: (>0), (<0), even, odd
(ZIP_PLUS, ZIP_MINUS, ZIP_TIMES, ZIP_MIN, ZIP_MAX) = range(28, 33)
(SCAN_PLUS, SCAN_MINUS, SCAN_TIMES, SCAN_MIN, SCAN_MAX) = range(33, 38)

GIVES_INT = np.array([o.output is INT for o in OPERATIONS])
"""Whether an operation gives a number."""

SHORTENS = np.array([id in (TAKE, DROP) or FILTER <= id < COUNT for id in range(len(OPERATIONS))])
"""Whether an operation gives a list that can be shorter than the one that it takes, or than the shortest of two."""

MAPS = np.zeros((2, QUARTER + 1, 4), dtype=np.int32)
"""MAP by id as (p x + q + r [x < 0]) >> s, first truncating, then rounding down; 1/3 is 21846 / 2^16 in 16 bits."""
MAPS[:, ADD_1] = 1, 1, 0, 0
MAPS[:, LESS_1] = 1, -1, 0, 0
MAPS[:, TIMES_2] = 2, 0, 0, 0
MAPS[:, HALF] = (1, 0, 1, 1), (1, 0, 0, 1)
MAPS[:, NEGATE] = -1, 0, 0, 0
MAPS[:, TIMES_3] = 3, 0, 0, 0
MAPS[:, THIRD] = (21846, 0, 2**16, 16), (21846, 0, 2**16 - 2 * 21846, 16)
MAPS[:, TIMES_4] = 4, 0, 0, 0
MAPS[:, QUARTER] = (1, 0, 3, 2), (1, 0, 0, 2)

PREDICATES = np.array([(1, 2), (-1, 2), (0, 0), (0, 1)], dtype=np.int16)
"""FILTER and COUNT keep x where s x > 0 or x mod 2 = r: the pairs (s, r)."""

inlined: Any = partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def row_size(examples: int) -> int:
    """Lanes and lengths of a value, in words of 64 bits."""
    return WIDTH * examples + -(-examples // 4) * 4


@inlined
def examples_of(pool):
    """Number M of examples."""
    return pool.shape[1] // (WIDTH + 1)


@inlined
def _at(m):
    """First column of an example; unsigned, or the compiler fears that it counts from the end."""
    return np.uint64(m * WIDTH)


@inlined
def _length(pool, x, m):
    return np.uint64(pool[x, _at(examples_of(pool)) + np.uint64(m)])


@inlined
def _stop(pool, x, m):
    """The column after the last of a list."""
    return _at(m) + _length(pool, x, m)


@inlined
def _set_length(pool, out, m, n):
    pool[out, _at(examples_of(pool)) + np.uint64(m)] = np.int16(n)


@inlined
def _copy_lengths(pool, x, out, first, last):
    base = _at(examples_of(pool))
    for i in range(base + np.uint64(first), base + np.uint64(last)):
        pool[out, i] = pool[x, i]


@inlined
def _clear(pool, out, first, last):
    for i in range(_at(first), _at(last)):
        pool[out, i] = NULL


@inlined
def _give(pool, out, m, number, low, high):
    """Write a number; whether it is in range."""
    _clear(pool, out, m, m + 1)
    pool[out, _at(m)] = number
    _set_length(pool, out, m, 1)
    return low <= number <= high


@inlined
def _clamp(x):
    return np.int16(min(max(x, np.int32(-(2**15))), np.int32(2**15 - 1)))


@njit
def same(pool, x, y, first, last):
    """Whether two values agree on examples `first` to `last` - 1."""
    differs = np.int16(0)
    for i in range(_at(first), _at(last)):
        differs |= pool[x, i] ^ pool[y, i]
    return differs == 0


@inlined
def has_room(id, pool, x, y, out):
    """Whether the lengths of lists allow that an operation gives the value of a row, on all examples."""
    if GIVES_INT[id]:
        return True
    for m in range(examples_of(pool)):
        n = _length(pool, y if id in (TAKE, DROP) else x, m)
        if ZIP_PLUS <= id <= ZIP_MAX:
            n = min(n, _length(pool, y, m))
        wanted = _length(pool, out, m)
        if n < wanted or (n > wanted and not SHORTENS[id]):
            return False
    return True


@inlined
def _map(pool, x, out, first, last, low, high, coefficients):
    p, q, r, s = coefficients
    least, most = low, low
    for i in range(_at(first), _at(last)):
        v = pool[x, i]
        y = np.int32(np.int32(np.int32(v) * p) + np.int32(q + (r if v < 0 else np.int32(0))))
        z = _clamp(np.int32(y >> (s & 31)))
        kept = low if v == NULL else z
        least, most = min(least, kept), max(most, kept)
        pool[out, i] = NULL if v == NULL else z
    _copy_lengths(pool, x, out, first, last)
    return low <= least and most <= high


@inlined
def _zip(f, pool, x, y, out, first, last, low, high):
    least, most = low, low
    for i in range(_at(first), _at(last)):
        v, w = pool[x, i], pool[y, i]
        z = _clamp(f(np.int32(v), np.int32(w)))
        beyond = (v == NULL) | (w == NULL)
        kept = low if beyond else z
        least, most = min(least, kept), max(most, kept)
        pool[out, i] = NULL if beyond else z
    for m in range(first, last):
        _set_length(pool, out, m, min(_length(pool, x, m), _length(pool, y, m)))
    return low <= least and most <= high


@inlined
def _scan(f, pool, x, out, first, last, low, high):
    _clear(pool, out, first, last)
    for m in range(first, last):
        y = np.int32(pool[x, _at(m)])
        pool[out, _at(m)] = y
        for i in range(_at(m) + np.uint64(1), _stop(pool, x, m)):
            y = f(y, np.int32(pool[x, i]))
            if y < low or y > high:
                return False
            pool[out, i] = y
    _copy_lengths(pool, x, out, first, last)
    return True


@inlined
def _plus(x, y):
    return np.int32(x + y)


@inlined
def _minus(x, y):
    return np.int32(x - y)


@inlined
def _times(x, y):
    return np.int32(x * y)


@inlined
def _min(x, y):
    return min(x, y)


@inlined
def _max(x, y):
    return max(x, y)


@inlined
def _filter(pool, x, out, first, last, predicate):
    s, r = predicate
    _clear(pool, out, first, last)
    for m in range(first, last):
        kept, stop = _at(m), _stop(pool, x, m)
        for i in range(_at(m), stop):
            v = pool[x, i]
            pool[out, kept] = v
            kept += np.uint64((np.int16(s * v) > 0) | (v & np.int16(1) == r))
        if kept < stop:
            pool[out, kept] = NULL
        _set_length(pool, out, m, kept - _at(m))
    return True


@inlined
def _count(pool, x, out, first, last, low, high, predicate):
    s, r = predicate
    ok = True
    for m in range(first, last):
        n = np.int16(0)
        for i in range(_at(m), _at(m + 1)):
            v = pool[x, i]
            n = np.int16(n + ((v != NULL) & ((np.int16(s * v) > 0) | (v & np.int16(1) == r))))
        ok &= _give(pool, out, m, n, low, high)
    return ok


@inlined
def _sum(pool, x, out, first, last, low, high):
    ok = True
    for m in range(first, last):
        total = np.int32(0)
        for i in range(_at(m), _stop(pool, x, m)):
            total = np.int32(total + pool[x, i])
        ok &= _give(pool, out, m, total, low, high)
    return ok


@inlined
def _extreme(f, pool, x, out, first, last):
    """MINIMUM and MAXIMUM."""
    for m in range(first, last):
        found = pool[x, _at(m)]
        for i in range(_at(m), _stop(pool, x, m)):
            found = f(found, pool[x, i])
        if not _give(pool, out, m, found, np.int16(NULL + 1), np.int16(2**15 - 1)):
            return False
    return True


@inlined
def _access(id, pool, k, x, out, first, last):
    """HEAD, LAST and ACCESS."""
    for m in range(first, last):
        n = np.int64(_length(pool, x, m))
        at = 0 if id == HEAD else n - 1 if id == LAST else pool[k, _at(m)]
        if at < 0 or at >= n:
            return False
        _give(pool, out, m, pool[x, _at(m) + np.uint64(at)], NULL, NULL)
    return True


@inlined
def _part(id, pool, k, x, out, first, last):
    """TAKE and DROP, with the slices of Python for numbers below 0."""
    _clear(pool, out, first, last)
    for m in range(first, last):
        n, at = np.int64(_length(pool, x, m)), np.int64(pool[k, _at(m)])
        if at < 0:
            at += n
        cut = 0 if at < 0 else n if at > n else at
        shift, size = (0, cut) if id == TAKE else (cut, n - cut)
        for i in range(_at(m), _at(m) + np.uint64(size)):
            pool[out, i] = pool[x, i + np.uint64(shift)]
        _set_length(pool, out, m, size)
    return True


@inlined
def _reverse(pool, x, out, first, last):
    _clear(pool, out, first, last)
    for m in range(first, last):
        mirror = _at(m) + _stop(pool, x, m) - np.uint64(1)
        for i in range(_at(m), _stop(pool, x, m)):
            pool[out, mirror - i] = pool[x, i]
    _copy_lengths(pool, x, out, first, last)
    return True


@inlined
def _sort(pool, x, out, first, last):
    for i in range(_at(first), _at(last)):
        pool[out, i] = pool[x, i]
    one = np.uint64(1)
    for m in range(first, last):
        for i in range(_at(m) + one, _stop(pool, x, m)):
            v, at = pool[out, i], np.uint64(i)
            while at > _at(m) and pool[out, at - one] > v:
                pool[out, at] = pool[out, at - one]
                at -= one
            pool[out, at] = v
    _copy_lengths(pool, x, out, first, last)
    return True


@njit(cache=True, nogil=True)
def apply(id, pool, x, y, out, first, last, low, high, floor):
    """Apply an operation to values of a pool, for some of the examples.

    Parameters
    ----------
    id : of the operation.
    pool : values, shape (V, `row_size(M)`).
    x, y : rows of its arguments, in order; y is not read where there is one.
    out : row of its result, another than x and y; the part of examples `first` to `last` - 1 is written.
    low, high : range of numbers, int16.
    floor : whether (/2), (/3), (/4) round down.

    Returns
    -------
    Whether all these results are neither NULL nor out of range; if not, the row holds nothing of use.
    """
    if id in (SQUARE, ZIP_TIMES):
        return _zip(_times, pool, x, x if id == SQUARE else y, out, first, last, low, high)
    if ADD_1 <= id <= QUARTER:
        c = MAPS[int(floor), id]
        return _map(pool, x, out, first, last, low, high, (c[0], c[1], c[2], c[3]))
    if FILTER <= id < COUNT:
        return _filter(pool, x, out, first, last, (PREDICATES[id - FILTER, 0], PREDICATES[id - FILTER, 1]))
    if COUNT <= id < ZIP_PLUS:
        predicate = PREDICATES[id - COUNT, 0], PREDICATES[id - COUNT, 1]
        return _count(pool, x, out, first, last, low, high, predicate)
    if id == ZIP_PLUS:
        return _zip(_plus, pool, x, y, out, first, last, low, high)
    if id == ZIP_MINUS:
        return _zip(_minus, pool, x, y, out, first, last, low, high)
    if id == ZIP_MIN:
        return _zip(_min, pool, x, y, out, first, last, low, high)
    if id == ZIP_MAX:
        return _zip(_max, pool, x, y, out, first, last, low, high)
    if id == SCAN_PLUS:
        return _scan(_plus, pool, x, out, first, last, low, high)
    if id == SCAN_MINUS:
        return _scan(_minus, pool, x, out, first, last, low, high)
    if id == SCAN_TIMES:
        return _scan(_times, pool, x, out, first, last, low, high)
    if id == SCAN_MIN:
        return _scan(_min, pool, x, out, first, last, low, high)
    if id == SCAN_MAX:
        return _scan(_max, pool, x, out, first, last, low, high)
    if id in (TAKE, DROP):
        return _part(id, pool, x, y, out, first, last)
    if id == MINIMUM:
        return _extreme(_min, pool, x, out, first, last)
    if id == MAXIMUM:
        return _extreme(_max, pool, x, out, first, last)
    if id == REVERSE:
        return _reverse(pool, x, out, first, last)
    if id == SORT:
        return _sort(pool, x, out, first, last)
    if id == SUM:
        return _sum(pool, x, out, first, last, low, high)
    return _access(id, pool, x, y if id == ACCESS else x, out, first, last)
