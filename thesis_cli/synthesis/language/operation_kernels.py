"""Compiled operations of the language on values in lanes (`lanes`); `dsl` has their table, and the
plain reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.compiled import ZERO, kernel
from thesis_cli.synthesis.language.dsl import INT, OPERATIONS, Lambda, check_rules
from thesis_cli.synthesis.language.dsl import LIST as LIST_TYPE
from thesis_cli.synthesis.language.extended_kernels import KERNELS as EXTENDED_KERNELS
from thesis_cli.synthesis.language.extended_kernels import extended
from thesis_cli.synthesis.language.lanes import (
    by_operation,
    clamp,
    clear,
    copy_lengths,
    end,
    examples_of,
    give,
    inlined,
    length_of,
    set_length,
    start,
)
from thesis_cli.synthesis.language.packing import NULL

_TYPES = (LIST_TYPE,), (INT, LIST_TYPE), (LIST_TYPE, LIST_TYPE), (INT,), (INT, INT)
LIST, INT_LIST, LIST_LIST, ONE_INT, INT_INT = range(len(_TYPES))
TAKES = np.array([_TYPES.index(o.inputs) for o in OPERATIONS])
"""Arguments of an operation: a list, a number and a list, two lists, a number, or two numbers."""

SINGLE = np.array([len(o.inputs) == 1 for o in OPERATIONS])
"""Whether an operation takes one argument."""

TAKES_INT = np.array([(o.inputs[0] is INT, o.inputs[-1] is INT) for o in OPERATIONS])
"""Whether the first argument of an operation is a number, and whether the last one is."""

GIVES_INT = np.array([o.output is INT for o in OPERATIONS])
"""Whether an operation gives a number."""

COMMUTES = np.array([o.commutes for o in OPERATIONS])
"""Whether an operation takes two values of one type and swapped ones give the same."""

ANY_LENGTH = np.array([o.output is INT or o.function.lengthens for o in OPERATIONS])
"""Whether lengths of lists say nothing about the result."""

KEEPS_LENGTH = np.array([o.function.keeps_length for o in OPERATIONS])
"""Whether the result is a list as long as its list, or as the shorter of two."""

_QUOTIENTS = {
    2: ((1, 0, 1, 1), (1, 0, 0, 1)),
    3: ((21846, 0, 2**16, 16), (21846, 0, 2**16 - 2 * 21846, 16)),  # 1/3 is 21846 / 2^16 in 16 bits
    4: ((1, 0, 3, 2), (1, 0, 0, 2)),
    10: ((26215, 0, 2**18, 18), (26215, 0, 2**18 - 9 * 26215, 18)),  # 1/10 is 26215 / 2^18
}


_TWINS = {"drop", "minimum"}
_PLACES = {"last": (0, 1, 0, 0), "access": (1, 0, 0, 0)}


def _numbers(kernel: str, f: Lambda | None, floor: bool) -> tuple[int, int, int, int]:
    """The numbers by which a kernel knows an operation.

    A lambda of one number gives (p x + q + r [x < 0]) >> s, of which these are p, q, r and s. A
    predicate holds for x where s x > 0 or x mod 2 = r; the numbers begin with s and r. HEAD, LAST
    and ACCESS by k take place p k + q (n - 1) of n; the numbers begin with p and q. Of two
    operations that share a kernel one has -1, whose bits are all set, and its twin 0.
    """
    if kernel in _TWINS:
        return -1, 0, 0, 0
    if kernel in _PLACES:
        return _PLACES[kernel]
    if f is None:
        return 0, 0, 0, 0
    if f.rule == "divide":
        return _QUOTIENTS[f.by][floor]
    known = {"shift": (1, f.by, 0, 0), "scale": (f.by, 0, 0, 0), "negate": (-1, 0, 0, 0)}
    known |= {"positive": (1, 2, 0, 0), "negative": (-1, 2, 0, 0), "parity": (0, f.by, 0, 0)}
    return known.get(f.rule, (0, 0, 0, 0))


NUMBERS = np.array(
    [[_numbers(o.rule(o.function.kernel), o.f, floor) for o in OPERATIONS] for floor in (False, True)], dtype=np.int32
)
"""Numbers of all operations, where quotients are truncated, then where they are rounded down."""


@inlined
def has_room(id, pool, x, y, out):
    """Whether the lengths of lists allow that an operation gives the value of a row, on all
    examples."""
    if ANY_LENGTH[id]:
        return True
    for m in range(examples_of(pool)):
        n = length_of(pool, y, m)
        if TAKES[id] == LIST_LIST:
            n = min(n, length_of(pool, x, m))
        needed = length_of(pool, out, m)
        if n < needed or (n > needed and KEEPS_LENGTH[id]):
            return False
    return True


# Kernels: (compiled functions of numbers,) id, pool, x, y, out, examples, bounds -> whether the
# results have values in range. They read rows x and y of the pool, the first and the last argument,
# and write row `out` for some examples, `examples` being the first one and the one after the last.
# The list of an operation that takes one is y.


@inlined
def _map(id, pool, x, y, out, examples, bounds):
    first, last = examples
    low, high = bounds.low, bounds.high
    floor = int(bounds.floor)
    p, q, r, s = NUMBERS[floor, id, 0], NUMBERS[floor, id, 1], NUMBERS[floor, id, 2], NUMBERS[floor, id, 3]
    least, most = low, low
    for i in range(start(first), start(last)):
        v = pool[y, i]
        w = np.int32(np.int32(np.int32(v) * p) + np.int32(q + (r if v < 0 else np.int32(0))))
        z = clamp(np.int32(w >> (s & 31)))
        kept = low if v == NULL else z
        least, most = min(least, kept), max(most, kept)
        pool[out, i] = NULL if v == NULL else z
    copy_lengths(pool, y, out, first, last)
    return low <= least and most <= high


@inlined
def _zip(f, id, pool, x, y, out, examples, bounds):
    first, last = examples
    low, high = bounds.low, bounds.high
    least, most = low, low
    for i in range(start(first), start(last)):
        v, w = pool[x, i], pool[y, i]
        z = clamp(f(np.int32(v), np.int32(w)))
        beyond = (v == NULL) | (w == NULL)
        kept = low if beyond else z
        least, most = min(least, kept), max(most, kept)
        pool[out, i] = NULL if beyond else z
    for m in range(first, last):
        set_length(pool, out, m, min(length_of(pool, x, m), length_of(pool, y, m)))
    return low <= least and most <= high


@inlined
def _scan(f, id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        z = np.int32(pool[y, start(m)])
        pool[out, start(m)] = z
        for i in range(start(m) + np.uint64(1), end(pool, y, m)):
            z = f(z, np.int32(pool[y, i]))
            if z < bounds.low or z > bounds.high:
                return False
            pool[out, i] = z
    copy_lengths(pool, y, out, first, last)
    return True


@inlined
def plus(x, y):
    return np.int32(x + y)


@inlined
def minus(x, y):
    return np.int32(x - y)


@inlined
def times(x, y):
    return np.int32(x * y)


@inlined
def minimum(x, y):
    return min(x, y)


@inlined
def maximum(x, y):
    return max(x, y)


@inlined
def _filter(id, pool, x, y, out, examples, bounds):
    first, last = examples
    s, r = np.int16(NUMBERS[0, id, 0]), np.int16(NUMBERS[0, id, 1])
    clear(pool, out, first, last)
    for m in range(first, last):
        kept, stop = start(m), end(pool, y, m)
        for i in range(start(m), stop):
            v = pool[y, i]
            pool[out, kept] = v
            kept += np.uint64((np.int16(s * v) > 0) | (v & np.int16(1) == r))
        if kept < stop:
            pool[out, kept] = NULL
        set_length(pool, out, m, kept - start(m))
    return True


@inlined
def _count(id, pool, x, y, out, examples, bounds):
    first, last = examples
    s, r = np.int16(NUMBERS[0, id, 0]), np.int16(NUMBERS[0, id, 1])
    ok = True
    for m in range(first, last):
        n = np.int16(0)
        for i in range(start(m), start(m + 1)):
            v = pool[y, i]
            n = np.int16(n + ((v != NULL) & ((np.int16(s * v) > 0) | (v & np.int16(1) == r))))
        ok &= give(pool, out, m, n, bounds.low, bounds.high)
    return ok


@inlined
def _sum(id, pool, x, y, out, examples, bounds):
    first, last = examples
    ok = True
    for m in range(first, last):
        total = np.int32(0)
        for i in range(start(m), end(pool, y, m)):
            total = np.int32(total + pool[y, i])
        ok &= give(pool, out, m, total, bounds.low, bounds.high)
    return ok


@inlined
def _extreme(id, pool, x, y, out, examples, bounds):
    """MINIMUM and MAXIMUM."""
    first, last = examples
    twin = np.int16(NUMBERS[0, id, 0])
    for m in range(first, last):
        found = np.int16(twin ^ pool[y, start(m)])
        for i in range(start(m), end(pool, y, m)):
            found = max(found, np.int16(twin ^ pool[y, i]))
        if not give(pool, out, m, np.int16(twin ^ found), np.int16(NULL + 1), np.int16(2**15 - 1)):
            return False
    return True


@inlined
def _item(id, pool, x, y, out, examples, bounds):
    """HEAD, LAST and ACCESS."""
    first, last = examples
    p, q = NUMBERS[0, id, 0], NUMBERS[0, id, 1]
    for m in range(first, last):
        n = np.int64(length_of(pool, y, m))
        at = p * np.int64(pool[x, start(m)]) + q * (n - 1)
        if at < 0 or at >= n:
            return False
        give(pool, out, m, pool[y, start(m) + np.uint64(at)], NULL, NULL)
    return True


@inlined
def _part(id, pool, x, y, out, examples, bounds):
    """TAKE and DROP, with the slices of Python for numbers below 0."""
    first, last = examples
    drops = NUMBERS[0, id, 0] != 0
    clear(pool, out, first, last)
    for m in range(first, last):
        n, at = np.int64(length_of(pool, y, m)), np.int64(pool[x, start(m)])
        if at < 0:
            at += n
        at = min(max(at, ZERO), n)
        shift, size = (at, n - at) if drops else (ZERO, at)
        for i in range(start(m), start(m) + np.uint64(size)):
            pool[out, i] = pool[y, i + np.uint64(shift)]
        set_length(pool, out, m, size)
    return True


@inlined
def _reverse(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        mirror = start(m) + end(pool, y, m) - np.uint64(1)
        for i in range(start(m), end(pool, y, m)):
            pool[out, mirror - i] = pool[y, i]
    copy_lengths(pool, y, out, first, last)
    return True


@inlined
def _sort(id, pool, x, y, out, examples, bounds):
    first, last = examples
    for i in range(start(first), start(last)):
        pool[out, i] = pool[y, i]
    one = np.uint64(1)
    for m in range(first, last):
        for i in range(start(m) + one, end(pool, y, m)):
            v, at = pool[out, i], np.uint64(i)
            while at > start(m) and pool[out, at - one] > v:
                pool[out, at] = pool[out, at - one]
                at -= one
            pool[out, at] = v
    copy_lengths(pool, y, out, first, last)
    return True


KERNELS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("head", "last", "access"), (_item,)),
    **dict.fromkeys(("take", "drop"), (_part,)),
    **dict.fromkeys(("minimum", "maximum"), (_extreme,)),
    "reverse": (_reverse,),
    "sort": (_sort,),
    "sum": (_sum,),
    "filter": (_filter,),
    "count": (_count,),
    **dict.fromkeys(("map shift", "map scale", "map negate", "map divide"), (_map,)),
    "map square": (_zip, times),
}
"""Kernels by name; further functions of numbers are their first arguments. Few kernels, because
every function that calls them compiles them all."""
for _name, _function in {"plus": plus, "minus": minus, "times": times, "min": minimum, "max": maximum}.items():
    KERNELS[f"zipwith {_name}"] = _zip, _function
    KERNELS[f"scanl1 {_name}"] = _scan, _function
KERNELS |= dict.fromkeys(EXTENDED_KERNELS, (extended,))
check_rules("kernels", (o.rule(o.function.kernel) for o in OPERATIONS), KERNELS)

_calls = {o.id: KERNELS[o.rule(o.function.kernel)] for o in OPERATIONS}
apply: Any = kernel()(by_operation("apply", "pool, x, y, out, examples, bounds", _calls, globals()))
"""Apply an operation to values of a pool, for some of the examples.

Parameters
----------
id : of the operation.
pool : values, shape (V, `row_size(M)`).
x, y : rows of its arguments, in order; the same row twice if it takes one.
out : row of its result, another than x and y; the part of the examples is written.
examples : the first one, and the one after the last.
bounds : range of numbers, and rounding.

Returns
-------
Whether all these results are neither NULL nor out of range; if not, the row holds nothing of use.
"""
