"""Compiled operations of the language on values in lanes, and the depth-first search that runs them.

A value is a row of a pool: `WIDTH` int16 lanes for each of M examples, one example after the other. Lanes beyond the
length of a list, at least one, hold NULL; a number is a list of length 1. Loops over all lanes of all examples become
vector instructions, which loops over true lengths would not. `dsl` is the plain reference.
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
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

WIDTH = 32
"""Lanes of a list; it is shorter by at least 1."""

NULL = np.int16(-(2**15))
"""What stands in lanes beyond the length."""

WIDEST = 2**15 - 2
"""Largest magnitude of a number: what needs more than 16 bits is clamped to them, and out of range then."""

(HEAD, LAST, TAKE, DROP, ACCESS, MINIMUM, MAXIMUM, REVERSE, SORT, SUM) = range(10)
(ADD_1, LESS_1, TIMES_2, HALF, NEGATE, SQUARE, TIMES_3, THIRD, TIMES_4, QUARTER) = range(10, 20)
FILTER, COUNT = 20, 24  # and the three after each: (>0), (<0), even, odd
(ZIP_PLUS, ZIP_MINUS, ZIP_TIMES, ZIP_MIN, ZIP_MAX) = range(28, 33)
(SCAN_PLUS, SCAN_MINUS, SCAN_TIMES, SCAN_MIN, SCAN_MAX) = range(33, 38)

LIST, INT_LIST, LIST_LIST = range(3)
TAKES = np.array([LIST if len(o.inputs) == 1 else INT_LIST if INT in o.inputs else LIST_LIST for o in OPERATIONS])
GIVES_INT = np.array([o.output is INT for o in OPERATIONS])
COMMUTES = np.array([id in (ZIP_PLUS, ZIP_TIMES, ZIP_MIN, ZIP_MAX) for id in range(len(OPERATIONS))])
"""What the operations take (a list; a number and a list; two lists) and give; whether two lists may change places."""

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

_inlined: Any = partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inlined
def _at(m):
    """First column of an example; unsigned, or the compiler fears that it counts from the end."""
    return np.uint64(m * WIDTH)


@_inlined
def _clamp(x):
    return np.int16(min(max(x, np.int32(-(2**15))), np.int32(2**15 - 1)))


@_inlined
def _length(pool, x, m):
    n = np.int16(0)
    for i in range(_at(m), _at(m + 1)):
        n = np.int16(n + (pool[x, i] != NULL))
    return n


@_inlined
def _clear(pool, out, first, last):
    for i in range(_at(first), _at(last)):
        pool[out, i] = NULL


@_inlined
def _give(pool, out, m, number, low, high):
    """Write a number; whether it is in range."""
    _clear(pool, out, m, m + 1)
    pool[out, m * WIDTH] = number
    return low <= number <= high


@njit
def same(pool, x, y, first, last):
    """Whether two values agree on examples `first` to `last` - 1."""
    differs = np.int16(0)
    for i in range(_at(first), _at(last)):
        differs |= pool[x, i] ^ pool[y, i]
    return differs == 0


@_inlined
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
    return low <= least and most <= high


@_inlined
def _zip(f, pool, x, y, out, first, last, low, high):
    least, most = low, low
    for i in range(_at(first), _at(last)):
        v, w = pool[x, i], pool[y, i]
        z = _clamp(np.int32(f(np.int32(v), np.int32(w))))
        beyond = (v == NULL) | (w == NULL)
        kept = low if beyond else z
        least, most = min(least, kept), max(most, kept)
        pool[out, i] = NULL if beyond else z
    return low <= least and most <= high


@_inlined
def _plus(x, y):
    return x + y


@_inlined
def _minus(x, y):
    return x - y


@_inlined
def _times(x, y):
    return x * y


@_inlined
def _min(x, y):
    return min(x, y)


@_inlined
def _max(x, y):
    return max(x, y)


@_inlined
def _scan(id, pool, x, out, first, last, low, high):
    _clear(pool, out, first, last)
    for m in range(first, last):
        start = _at(m)
        y = np.int32(pool[x, start])
        for i in range(start, start + np.uint64(_length(pool, x, m))):
            v = np.int32(pool[x, i])
            if i > start:
                if id == SCAN_PLUS:
                    y = np.int32(y + v)
                elif id == SCAN_MINUS:
                    y = np.int32(y - v)
                elif id == SCAN_TIMES:
                    y = np.int32(y * v)
                elif id == SCAN_MIN:
                    y = min(y, v)
                else:
                    y = max(y, v)
            if y < low or y > high:
                return False
            pool[out, i] = y
    return True


@_inlined
def _filter(pool, x, out, first, last, predicate):
    s, r = predicate
    _clear(pool, out, first, last)
    for m in range(first, last):
        start, n = _at(m), _length(pool, x, m)
        kept = start
        for i in range(start, start + np.uint64(n)):
            v = pool[x, i]
            pool[out, kept] = v
            kept += np.uint64((np.int16(s * v) > 0) | (v & np.int16(1) == r))
        if kept < start + np.uint64(n):
            pool[out, kept] = NULL
    return True


@_inlined
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


@_inlined
def _sum(pool, x, out, first, last, low, high):
    ok = True
    for m in range(first, last):
        total = np.int32(0)
        for i in range(_at(m), _at(m + 1)):
            v = pool[x, i]
            total = np.int32(total + (np.int16(0) if v == NULL else v))
        ok &= _give(pool, out, m, total, low, high)
    return ok


@_inlined
def _extreme(id, pool, x, out, first, last, low, high):
    """MINIMUM and MAXIMUM, which is the least of the negated numbers, negated."""
    sign = np.int16(1 if id == MINIMUM else -1)
    ok = True
    for m in range(first, last):
        least = np.int16(2**15 - 1)
        for i in range(_at(m), _at(m + 1)):
            v = pool[x, i]
            least = min(least, np.int16(2**15 - 1) if v == NULL else np.int16(sign * v))
        ok &= bool(least <= WIDEST) & _give(pool, out, m, sign * least, low, high)
    return ok


@_inlined
def _access(id, pool, k, x, out, first, last, low, high):
    """HEAD, LAST and ACCESS."""
    ok = True
    for m in range(first, last):
        n = _length(pool, x, m)
        at = 0 if id == HEAD else n - 1 if id == LAST else pool[k, m * WIDTH]
        if at < 0 or at >= n:
            return False
        ok &= _give(pool, out, m, pool[x, m * WIDTH + at], low, high)
    return ok


@_inlined
def _part(id, pool, k, x, out, first, last):
    """TAKE and DROP, with the slices of Python for numbers below 0."""
    _clear(pool, out, first, last)
    for m in range(first, last):
        start, n = m * WIDTH, _length(pool, x, m)
        at = pool[k, start]
        cut = min(at, n) if at >= 0 else max(n + at, 0)
        shift = 0 if id == TAKE else cut
        for i in range(start, start + (cut if id == TAKE else n - cut)):
            pool[out, i] = pool[x, i + shift]
    return True


@_inlined
def _reverse(pool, x, out, first, last):
    _clear(pool, out, first, last)
    for m in range(first, last):
        start = _at(m)
        stop = start + np.uint64(_length(pool, x, m))
        for i in range(start, stop):
            pool[out, start + stop - np.uint64(1) - i] = pool[x, i]
    return True


@_inlined
def _sort(pool, x, out, first, last):
    for i in range(_at(first), _at(last)):
        pool[out, i] = pool[x, i]
    one = np.uint64(1)
    for m in range(first, last):
        start = _at(m)
        for i in range(start + one, start + np.uint64(_length(pool, x, m))):
            v, at = pool[out, i], np.uint64(i)
            while at > start and pool[out, at - one] > v:
                pool[out, at] = pool[out, at - one]
                at -= one
            pool[out, at] = v
    return True


@_inlined
def evaluate(id, pool, x, y, out, first, last, low, high, floor):
    """`apply`, for one place in each kernel: it becomes part of it."""
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
    if id >= SCAN_PLUS:
        return _scan(id, pool, x, out, first, last, low, high)
    if id in (TAKE, DROP):
        return _part(id, pool, x, y, out, first, last)
    if id in (MINIMUM, MAXIMUM):
        return _extreme(id, pool, x, out, first, last, low, high)
    if id == REVERSE:
        return _reverse(pool, x, out, first, last)
    if id == SORT:
        return _sort(pool, x, out, first, last)
    if id == SUM:
        return _sum(pool, x, out, first, last, low, high)
    return _access(id, pool, x, y if id == ACCESS else x, out, first, last, low, high)


@njit(cache=True, nogil=True)
def apply(id, pool, x, y, out, first, last, low, high, floor):
    """Apply an operation to values of a pool, for some of the examples.

    Parameters
    ----------
    id : of the operation.
    pool : values, shape (V, WIDTH M).
    x, y : rows of its arguments, in order; y is not read where there is one.
    out : row of its result, another than x and y; the part of examples `first` to `last` - 1 is written.
    low, high : range of numbers, int16.
    floor : whether (/2), (/3), (/4) round down.

    Returns
    -------
    Whether all these results are neither NULL nor out of range; if not, the row holds nothing of use.
    """
    return evaluate(id, pool, x, y, out, first, last, low, high, floor)


UNUSED, COMMUTED, PERMUTED, REPEATED, IMPOSSIBLE, MISTYPED = (1 << bit for bit in range(6))
"""Prunings of the search, as bits; `search.Pruning` says what they leave out."""

DONE, PAUSED, ENOUGH = range(3)
"""Why the search returned."""


@_inlined
def _choose(choices, cursor, uses, depth, length, types, order, fresh, pruning, result_is_int):
    """List what the line at `depth` can be, as rows (place in the order, first argument, second argument).

    Returns
    -------
    Their number.
    """
    inputs, after = types.size - length, length - depth - 1
    line = inputs + depth  # the variable that the line makes
    need = -after  # unused results that it must take, for each line after it takes two and leaves one
    new = after > 0
    for v in range(inputs, line):
        need += uses[v] == 0
        new |= fresh[choices[v - inputs, cursor[v - inputs] - 1, 0]]
    if not pruning & UNUSED:
        need = 0
    n = 0
    for place in range(order.size):
        id = order[place]
        if not (new or fresh[place]) or (after == 0 and pruning & MISTYPED and GIVES_INT[id] != result_is_int):
            continue
        takes = TAKES[id]
        for x in range(line):
            if types[x] != (takes == INT_LIST):
                continue
            start = x if takes == LIST or (COMMUTES[id] and pruning & COMMUTED) else 0
            for y in range(start, x + 1 if takes == LIST else line):
                if types[y]:
                    continue
                taken = x >= inputs and uses[x] == 0
                if y != x:
                    taken += y >= inputs and uses[y] == 0
                if taken < need:
                    continue
                if pruning & PERMUTED and depth > 0 and x != line - 1 and y != line - 1:
                    above = cursor[depth - 1] - 1
                    earlier = place - choices[depth - 1, above, 0]
                    earlier = earlier if earlier != 0 else x - choices[depth - 1, above, 1]
                    earlier = earlier if earlier != 0 else y - choices[depth - 1, above, 2]
                    if earlier <= 0:
                        continue
                choices[depth, n, 0] = place
                choices[depth, n, 1] = x
                choices[depth, n, 2] = y
                n += 1
    return n


@njit(cache=True, nogil=True)
def search(
    pool: Lanes,
    low: np.int16,
    high: np.int16,
    floor: bool,
    types: Flags,
    result_is_int: bool,
    order: Ints,
    fresh: Flags,
    pruning: int,
    lazily: bool,
    budget: int,
    state: Ints,
    cursor: Ints,
    sizes: Ints,
    uses: Ints,
    valid: Flags,
    choices: Ints,
    found: Ints,
) -> int:
    """Examine programs of one length T, depth first; go on from where the last call stopped.

    Parameters
    ----------
    pool : values of the inputs, of the T lines (written), and of the output that is wanted, shape (inputs + T + 1, .).
    low, high, floor : as `apply` takes them.
    types : whether a variable is a number, shape (inputs + T,); those of lines are written.
    result_is_int : whether the output is a number.
    order : ids of the operations to use, as they are to be tried.
    fresh : shape of `order`; every program has an operation for which this is true.
    pruning : bits of prunings.
    lazily : whether last lines are run on an example only if they fit those before it; otherwise on all of them.
    budget : lines to try in this call.
    state : depth, lines tried, programs of length T examined and programs found so far; updated. All 0 at first.
    cursor, sizes : choice that comes next, and number of choices (-1: not listed yet), shape (T,); updated.
        sizes[0] is -1 at first.
    uses : how often a variable is taken by the lines so far, shape (inputs + T,); updated. All 0 at first.
    valid : whether lines have values down to each depth, shape (T + 1,); updated. valid[0] is true.
    choices : room for what the lines can be, shape (T, ., 3); updated.
    found : operation and arguments of each line of the programs found, shape (wanted, T, 3); written.

    Returns
    -------
    DONE, PAUSED (the budget is spent) or ENOUGH (`found` is full).
    """
    length = sizes.size
    inputs = types.size - length
    target = inputs + length
    examples = pool.shape[1] // WIDTH
    depth, stop = state[0], state[1] + budget
    while state[1] < stop:
        if sizes[depth] < 0:
            cursor[depth] = 0
            sizes[depth] = _choose(choices, cursor, uses, depth, length, types, order, fresh, pruning, result_is_int)
        if cursor[depth] == sizes[depth]:
            if depth == 0:
                return DONE
            depth -= 1
            state[0] = depth
            at = cursor[depth] - 1
            uses[choices[depth, at, 1]] -= 1
            uses[choices[depth, at, 2]] -= 1
            continue
        at = cursor[depth]
        cursor[depth] += 1
        state[1] += 1
        id, x, y = order[choices[depth, at, 0]], choices[depth, at, 1], choices[depth, at, 2]
        line = inputs + depth
        last = depth == length - 1
        ok = valid[depth] and (not last or GIVES_INT[id] == result_is_int)
        step = 1 if last and lazily else examples
        for m in range(0, examples, step):
            if ok:
                ok = evaluate(id, pool, x, y, line, m, m + step, low, high, floor)
            if ok and last:
                ok = same(pool, line, target, m, m + step)
        if last:
            state[2] += 1
            if ok:
                for i in range(length):
                    at = cursor[i] - 1
                    found[state[3], i, 0] = order[choices[i, at, 0]]
                    found[state[3], i, 1] = choices[i, at, 1]
                    found[state[3], i, 2] = choices[i, at, 2]
                state[3] += 1
                if state[3] == found.shape[0]:
                    return ENOUGH
            continue
        if not ok and pruning & IMPOSSIBLE:
            continue
        types[line] = GIVES_INT[id]
        if ok and pruning & REPEATED:
            for v in range(line):
                ok &= types[v] != types[line] or not same(pool, v, line, 0, examples)
            if not ok:
                continue
        uses[x] += 1
        uses[y] += 1
        valid[depth + 1] = ok
        depth += 1
        state[0] = depth
        sizes[depth] = -1
    return PAUSED
