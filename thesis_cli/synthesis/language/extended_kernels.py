"""Compiled operations of `dsl.EXTENDED` that `dsl.DEEPCODER` lacks.

They are one function, which `operation_kernels.apply` calls, so that searches over the language of
the thesis are compiled as without them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.compiled import kernel
from thesis_cli.synthesis.language.dsl import BINARY, COMPARISON, DEEPCODER, LAMBDAS, LONGEST, OPERATIONS, PREDICATE
from thesis_cli.synthesis.language.lanes import (
    by_operation,
    clear,
    copy_lengths,
    end,
    give,
    inlined,
    length_of,
    set_length,
    start,
)

_RULES = sorted({f.rule for f in LAMBDAS if f.type in (BINARY, COMPARISON, PREDICATE)})
PLUS, MINUS, TIMES, MIN, MAX, QUOTIENT, GREATER, LESS, EQUAL, POSITIVE, NEGATIVE, PARITY = map(
    _RULES.index,
    ["plus", "minus", "times", "min", "max", "quotient", "greater", "less", "equal", "positive", "negative", "parity"],
)
RULE = np.array([_RULES.index(o.f.rule) if o.f and o.f.rule in _RULES else -1 for o in OPERATIONS])
BY = np.array([o.f.by if o.f else 0 for o in OPERATIONS])
"""What the lambda of an operation computes, and its constant."""

BEYOND = 2**15 - 1
"""Stands for a number that is in no range."""


@inlined
def _number(id, x, y, floor):
    """A lambda of two numbers, clamped; division by 0 is in no range."""
    rule = RULE[id]
    z = x
    if rule == PLUS:
        z = x + y
    elif rule == MINUS:
        z = x - y
    elif rule == TIMES:
        z = x * y
    elif rule == MIN:
        z = min(x, y)
    elif rule == MAX:
        z = max(x, y)
    elif y == 0:
        z = np.int64(BEYOND)
    else:
        z = x // y
        if not floor and z < 0 and z * y != x:
            z += 1
    return min(max(z, -np.int64(BEYOND)), np.int64(BEYOND))


@inlined
def _holds(id, x, n):
    """A comparison of x with n, or a predicate of x."""
    rule = RULE[id]
    if rule == GREATER:
        return x > n
    if rule == LESS:
        return x < n
    if rule == EQUAL:
        return x == n
    if rule == POSITIVE:
        return x > 0
    if rule == NEGATIVE:
        return x < 0
    return x & 1 == BY[id]


# Kernels: as those of `operation_kernels`. A number is a list of length 1.


@inlined
def _length(id, pool, x, y, out, examples, bounds):
    first, last = examples
    ok = True
    for m in range(first, last):
        ok &= give(pool, out, m, np.int64(length_of(pool, y, m)), bounds.low, bounds.high)
    return ok


@inlined
def _unique(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        kept = start(m)
        for i in range(start(m), end(pool, y, m)):
            known = False
            for j in range(start(m), kept):
                known |= pool[out, j] == pool[y, i]
            if not known:
                pool[out, kept] = pool[y, i]
                kept += np.uint64(1)
        set_length(pool, out, m, kept - start(m))
    return True


@inlined
def _counts(id, pool, x, y, out, examples, bounds):
    first, last = examples
    ok = True
    clear(pool, out, first, last)
    for m in range(first, last):
        for i in range(start(m), end(pool, y, m)):
            n = np.int64(0)
            for j in range(start(m), end(pool, y, m)):
                n += pool[y, j] == pool[y, i]
            pool[out, i] = n
            ok &= bounds.low <= n <= bounds.high
    copy_lengths(pool, y, out, first, last)
    return ok


@inlined
def _index(id, pool, x, y, out, examples, bounds):
    first, last = examples
    for m in range(first, last):
        at, stop = start(m), end(pool, y, m)
        while at < stop and pool[y, at] != pool[x, start(m)]:
            at += np.uint64(1)
        if not give(pool, out, m, np.int64(at - start(m)), bounds.low, bounds.high) or at == stop:
            return False
    return True


@inlined
def _range(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        n = max(np.int64(pool[y, start(m)]), np.int64(0))
        if n > LONGEST or (n > 0 and (bounds.low > 1 or n > bounds.high)):
            return False
        for i in range(start(m), start(m) + np.uint64(n)):
            pool[out, i] = i - start(m) + np.uint64(1)
        set_length(pool, out, m, n)
    return True


@inlined
def _item(id, pool, x, y, out, examples, bounds):
    first, last = examples
    at = np.uint64(BY[id])
    for m in range(first, last):
        if at >= length_of(pool, y, m):
            return False
        give(pool, out, m, pool[y, start(m) + at], bounds.low, bounds.high)
    return True


@inlined
def _first(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        n = min(np.uint64(BY[id]), length_of(pool, y, m))
        for i in range(start(m), start(m) + n):
            pool[out, i] = pool[y, i]
        set_length(pool, out, m, n)
    return True


@inlined
def _skip(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        shift = min(np.uint64(BY[id]), length_of(pool, y, m))
        n = length_of(pool, y, m) - shift
        for i in range(start(m), start(m) + n):
            pool[out, i] = pool[y, i + shift]
        set_length(pool, out, m, n)
    return True


@inlined
def _keep(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        kept = start(m)
        for i in range(start(m), end(pool, y, m)):
            if _holds(id, pool[y, i], pool[x, start(m)]):
                pool[out, kept] = pool[y, i]
                kept += np.uint64(1)
        set_length(pool, out, m, kept - start(m))
    return True


@inlined
def _tally(id, pool, x, y, out, examples, bounds):
    first, last = examples
    ok = True
    for m in range(first, last):
        n = np.int64(0)
        for i in range(start(m), end(pool, y, m)):
            n += _holds(id, pool[y, i], pool[x, start(m)])
        ok &= give(pool, out, m, n, bounds.low, bounds.high)
    return ok


@inlined
def _with(id, pool, x, y, out, examples, bounds):
    """WITH and CALC: each number of y with that of x; CALC takes them in the other order."""
    first, last = examples
    ok = True
    clear(pool, out, first, last)
    for m in range(first, last):
        n = np.int64(pool[x, start(m)])
        for i in range(start(m), end(pool, y, m)):
            z = _number(id, np.int64(pool[y, i]), n, bounds.floor)
            pool[out, i] = z
            ok &= bounds.low <= z <= bounds.high
    copy_lengths(pool, y, out, first, last)
    return ok


@inlined
def _calc(id, pool, x, y, out, examples, bounds):
    return _with(id, pool, y, x, out, examples, bounds)


@inlined
def _zip(id, pool, x, y, out, examples, bounds):
    first, last = examples
    ok = True
    clear(pool, out, first, last)
    for m in range(first, last):
        n = min(length_of(pool, x, m), length_of(pool, y, m))
        for i in range(start(m), start(m) + n):
            z = _number(id, np.int64(pool[x, i]), np.int64(pool[y, i]), bounds.floor)
            pool[out, i] = z
            ok &= bounds.low <= z <= bounds.high
        set_length(pool, out, m, n)
    return ok


@inlined
def _scan(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        z = np.int64(pool[y, start(m)])
        pool[out, start(m)] = z
        for i in range(start(m) + np.uint64(1), end(pool, y, m)):
            z = _number(id, z, np.int64(pool[y, i]), bounds.floor)
            if z < bounds.low or z > bounds.high:
                return False
            pool[out, i] = z
    copy_lengths(pool, y, out, first, last)
    return True


@inlined
def _where(id, pool, x, y, out, examples, bounds):
    first, last = examples
    clear(pool, out, first, last)
    for m in range(first, last):
        n = min(length_of(pool, x, m), length_of(pool, y, m))
        for i in range(start(m), start(m) + n):
            pool[out, i] = pool[y, i] if _holds(id, pool[x, i], np.int16(0)) else pool[x, i]
        set_length(pool, out, m, n)
    return True


KERNELS: dict[str, Any] = {
    "length": _length,
    "unique": _unique,
    "counts": _counts,
    "index": _index,
    "range": _range,
    "item": _item,
    "first": _first,
    "skip": _skip,
    "keep": _keep,
    "tally": _tally,
    "with": _with,
    "calc": _calc,
    "where": _where,
    "zipwith quotient": _zip,
    "scanl1 quotient": _scan,
}
"""Kernels by name."""

_own = [o for o in OPERATIONS if o not in DEEPCODER.operations and o.rule(o.function.kernel) in KERNELS]
extended: Any = kernel()(
    by_operation(
        "extended",
        "pool, x, y, out, examples, bounds",
        {o.id: (KERNELS[o.rule(o.function.kernel)],) for o in _own},
        globals(),
    )
)
"""`operation_kernels.apply` for these operations."""
