"""Compiled tests of last lines: whether an operation gives the output of one example.

They stop at the first number that differs, so they cost a few nanoseconds where running the
operation costs tens of them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: SIM110  compiled code has no generators

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.compiled import ZERO
from thesis_cli.synthesis.language.dsl import OPERATIONS, check_rules
from thesis_cli.synthesis.language.lanes import by_operation, end, inlined, length_of, start
from thesis_cli.synthesis.language.operation_kernels import NUMBERS, maximum, minimum, minus, plus, times

# Tests: (a compiled function of numbers,) id, pool, x, y, out, m, bounds -> whether the operation
# may give row `out` on example m, which is in range. Arguments as those of kernels.


@inlined
def _unknown(id, pool, x, y, out, m, bounds):
    return True


@inlined
def _mapped(id, pool, x, y, out, m, bounds):
    if length_of(pool, y, m) != length_of(pool, out, m):
        return False
    floor = int(bounds.floor)
    p, q, r, s = NUMBERS[floor, id, 0], NUMBERS[floor, id, 1], NUMBERS[floor, id, 2], NUMBERS[floor, id, 3]
    for i in range(start(m), end(pool, out, m)):
        v = np.int32(pool[y, i])
        w = np.int32(np.int32(v * p) + np.int32(q + (r if v < 0 else np.int32(0))))
        if np.int32(w >> (s & 31)) != pool[out, i]:
            return False
    return True


@inlined
def _zipped(f, id, pool, x, y, out, m, bounds):
    if min(length_of(pool, x, m), length_of(pool, y, m)) != length_of(pool, out, m):
        return False
    for i in range(start(m), end(pool, out, m)):
        if f(np.int32(pool[x, i]), np.int32(pool[y, i])) != pool[out, i]:
            return False
    return True


@inlined
def _scanned(f, id, pool, x, y, out, m, bounds):
    if length_of(pool, y, m) != length_of(pool, out, m):
        return False
    if pool[y, start(m)] != pool[out, start(m)]:
        return False
    for i in range(start(m) + np.uint64(1), end(pool, out, m)):
        if f(np.int32(pool[out, i - np.uint64(1)]), np.int32(pool[y, i])) != pool[out, i]:
            return False
    return True


@inlined
def _reversed(id, pool, x, y, out, m, bounds):
    if length_of(pool, y, m) != length_of(pool, out, m):
        return False
    mirror = start(m) + end(pool, y, m) - np.uint64(1)
    for i in range(start(m), end(pool, out, m)):
        if pool[y, mirror - i] != pool[out, i]:
            return False
    return True


@inlined
def _sorted(id, pool, x, y, out, m, bounds):
    """Whether the least number is the first one."""
    if length_of(pool, y, m) != length_of(pool, out, m):
        return False
    for i in range(start(m), end(pool, y, m)):
        if pool[y, i] < pool[out, start(m)]:
            return False
    return True


@inlined
def _filtered(id, pool, x, y, out, m, bounds):
    s, r = np.int16(NUMBERS[0, id, 0]), np.int16(NUMBERS[0, id, 1])
    at, stop = start(m), end(pool, out, m)
    for i in range(start(m), end(pool, y, m)):
        v = pool[y, i]
        if (np.int16(s * v) > 0) | (v & np.int16(1) == r):
            if at == stop or pool[out, at] != v:
                return False
            at += np.uint64(1)
    return at == stop


@inlined
def _counted(id, pool, x, y, out, m, bounds):
    s, r = np.int16(NUMBERS[0, id, 0]), np.int16(NUMBERS[0, id, 1])
    n = np.int64(0)
    for i in range(start(m), end(pool, y, m)):
        v = pool[y, i]
        n += (np.int16(s * v) > 0) | (v & np.int16(1) == r)
    return n == pool[out, start(m)]


@inlined
def _summed(id, pool, x, y, out, m, bounds):
    total = np.int32(0)
    for i in range(start(m), end(pool, y, m)):
        total = np.int32(total + pool[y, i])
    return total == pool[out, start(m)]


@inlined
def _extreme(id, pool, x, y, out, m, bounds):
    twin = np.int16(NUMBERS[0, id, 0])
    most, reached = np.int16(twin ^ pool[out, start(m)]), False
    for i in range(start(m), end(pool, y, m)):
        v = np.int16(twin ^ pool[y, i])
        if v > most:
            return False
        reached |= v == most
    return reached


@inlined
def _item(id, pool, x, y, out, m, bounds):
    p, q = NUMBERS[0, id, 0], NUMBERS[0, id, 1]
    n = np.int64(length_of(pool, y, m))
    at = p * np.int64(pool[x, start(m)]) + q * (n - 1)
    return 0 <= at < n and pool[y, start(m) + np.uint64(at)] == pool[out, start(m)]


@inlined
def _part(id, pool, x, y, out, m, bounds):
    drops = NUMBERS[0, id, 0] != 0
    n, at = np.int64(length_of(pool, y, m)), np.int64(pool[x, start(m)])
    if at < 0:
        at += n
    at = min(max(at, ZERO), n)
    shift, size = (at, n - at) if drops else (ZERO, at)
    if size != np.int64(length_of(pool, out, m)):
        return False
    for i in range(start(m), end(pool, out, m)):
        if pool[y, i + np.uint64(shift)] != pool[out, i]:
            return False
    return True


TESTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("head", "last", "access"), (_item,)),
    **dict.fromkeys(("take", "drop"), (_part,)),
    **dict.fromkeys(("minimum", "maximum"), (_extreme,)),
    "reverse": (_reversed,),
    "sort": (_sorted,),
    "sum": (_summed,),
    "filter": (_filtered,),
    "count": (_counted,),
    **dict.fromkeys(("map shift", "map scale", "map negate", "map divide"), (_mapped,)),
    "map square": (_zipped, times),
}
"""Tests by the names of kernels; an operation without one is always run."""
for _name, _function in {"plus": plus, "minus": minus, "times": times, "min": minimum, "max": maximum}.items():
    TESTS[f"zipwith {_name}"] = _zipped, _function
    TESTS[f"scanl1 {_name}"] = _scanned, _function

_names = [o.rule(o.function.kernel) for o in OPERATIONS]
check_rules("tests of last lines", (name for name in _names if name in TESTS), TESTS)

may_give: Any = inlined(
    by_operation(
        "may_give",
        "pool, x, y, out, m, bounds",
        {id: TESTS.get(name, (_unknown,)) for id, name in enumerate(_names)},
        globals(),
    )
)
"""Whether an operation may give the value of row `out` on example m; if not, it does not.

Parameters
----------
id : of the operation.
pool : values, shape (V, `row_size(M)`).
x, y : rows of its arguments, in order; the same row twice if it takes one.
out : row of a value in range.
m : example.
bounds : as `apply` takes them.
"""
