"""Compiled tests of lists b, by columns: whether a list that ZIPWITH makes of a and b can be below a
root; `roots` describes them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from thesis_cli.base.compiled import helper
from thesis_cli.synthesis.language.packing import NULL

PREDICATES = [(1, 1, 2), (-1, 1, 2), (0, 1, 0), (0, 1, 1)]
"""(>0), (<0), (%2==0) and (%2==1), as `TOTALS` has them."""

PLUS, MINUS, TIMES, MIN, MAX, SUBTRACTED = range(6)
"""Functions of ZIPWITH of a and b; the last is b - a."""

LENGTH, INTERVAL, POINTS, PARITY, LAST, FOLD, LEAST_OF, MOST_OF = range(8)
"""Demand of a test on a length, or of an item of the list: to be in an interval (LENGTH,
INTERVAL, and LAST for the last item), to be one of its ends, or to equal its lower end or have the
parity of its upper end; or what it demands of a total over the items (FOLD), or of an extreme."""

EXAMPLE, COLUMN, KIND, OPTIONAL, LOW, HIGH = range(6)
"""Columns of the table of tests: example, column of the lists (of the first item, for LAST and
those after it), kind, whether the item may be missing, and the interval. For FOLD, OPTIONAL is the
kind of the total, and LOW what it must be modulo 2^16; an extreme must be LOW."""

TOTALS = np.array(
    [
        (0, 0, 0, 1, 0),
        *((s, r, w, 0, 1) for s, r, w in PREDICATES),
        *((s, r, w, 1, 1000) for s, r, w in PREDICATES),
    ],
    dtype=np.int16,
)
"""Kinds of totals: the sum, the number of items for which each predicate holds, and that number
times 1000 together with their sum. A predicate holds for z if s z > 0 or z & r = w, and then z
counts p z + q: s, r, w, p, q."""


@helper()
def partners(f, x, least, most):
    """Bounds of the numbers that give a number from `least` to `most` together with x; crossed if
    there are none."""
    if f == PLUS:
        return least - x, most - x
    if f == MINUS:
        return x - most, x - least
    if f == SUBTRACTED:
        return x + least, x + most
    if f == TIMES:
        if x == 0:
            return (-(2**15) + 1, 2**15 - 1) if least <= 0 <= most else (1, 0)
        if x < 0:
            x, least, most = -x, -most, -least
        return -(-least // x), most // x
    if f == MAX:  # the same as MIN with the signs turned
        if x > most:
            return 1, 0
        return (-(2**15) + 1 if x >= least else least), most
    if x < least:
        return 1, 0
    return least, (2**15 - 1 if x <= most else most)


@helper()
def prepare(f, x, test, out):
    """Write a test of b, given the item x of a; returns -1 if no b passes, 0 if all do, else 1.

    b passes if b - out[0], as an unsigned number, is at most out[1], or if b & out[2] is out[3].
    """
    kind, least, most = test[KIND], test[LOW], test[HIGH]
    out[2], out[3] = 0, 1
    if x == NULL:
        return 0 if test[OPTIONAL] else -1
    if kind == PARITY:
        if f in (MIN, MAX):
            return 0
        low, high = (np.int64(1), np.int64(0)) if test[OPTIONAL] else partners(f, x, least, least)
        if f != TIMES:
            out[2], out[3] = 1, (x ^ most) & 1
        elif x & 1:
            out[2], out[3] = 1, most & 1
        elif most & 1 == 0:
            return 0
        if low > high:
            if out[2] == 0 and not test[OPTIONAL]:
                return -1
            out[0], out[1] = NULL, 0  # no number
            return 1
    elif kind == POINTS and f != MIN and f != MAX:
        low, high = partners(f, x, least, least)
        other, end = partners(f, x, most, most)
        if f == TIMES and x == 0:
            pass
        elif low > high:
            low, high = other, end
        elif other <= end:
            out[2], out[3] = -1, other
    else:
        low, high = partners(f, x, least, most)
    if low > high or low > 2**15 - 1 or high < -(2**15) + 1:
        out[0], out[1] = NULL, 0  # b has no such item
        return 1 if test[OPTIONAL] else -1
    low, high = max(low, -(2**15) + 1), min(high, 2**15 - 1)
    if test[OPTIONAL] and out[2] == 0:
        out[2], out[3] = -1, NULL
    out[0], out[1] = low, high - low
    return 1


@helper()
def passing(column, size, test, mask, begin):
    """Test a block of lists, those that are left in `mask`; returns how many still are."""
    low, width, bits, wanted = np.int16(test[0]), np.uint16(test[1]), np.int16(test[2]), np.int16(test[3])
    left = np.int16(0)
    for j in range(size):
        v = column[j]
        ok = np.int16((np.uint16(v - low) <= width) | (np.int16(v & bits) == wanted))
        ok = np.int16(ok & (mask[j] | begin))
        mask[j] = ok
        left = np.int16(left + ok)
    return left


@helper()
def _line(f, x, line):
    """Write p, q, low and high, so that f of x and any v is p v + q, not below low and not above
    high."""
    line[0] = x if f == TIMES else -1 if f == MINUS else 1
    line[1] = x if f in (PLUS, MINUS) else -x if f == SUBTRACTED else 0
    line[2] = x if f == MAX else NULL
    line[3] = x if f == MIN else 2**15 - 1


@helper()
def _total(column, size, line, kind, totals):
    """Add what one item of each list of a block counts."""
    p, q, low, high = np.int16(line[0]), np.int16(line[1]), np.int16(line[2]), np.int16(line[3])
    s, r, w, c, d = TOTALS[kind, 0], TOTALS[kind, 1], TOTALS[kind, 2], TOTALS[kind, 3], TOTALS[kind, 4]
    for j in range(size):
        v = column[j]
        z = min(max(np.int16(np.int16(p * v) + q), low), high)
        holds = ((np.int16(s * z) > 0) | (np.int16(z & r) == w)) & (v != NULL)
        totals[j] = np.int16(totals[j] + (np.int16(np.int16(c * z) + d) if holds else np.int16(0)))


@helper()
def _extreme(column, size, line, sign, totals):
    """Lower the least item, or that of the negative numbers if `sign` is -1."""
    p, q, low, high = np.int16(line[0]), np.int16(line[1]), np.int16(line[2]), np.int16(line[3])
    for j in range(size):
        v = column[j]
        z = np.int16(np.int16(sign) * min(max(np.int16(np.int16(p * v) + q), low), high))
        totals[j] = min(totals[j], z if v != NULL else np.int16(2**15 - 1))


@helper()
def _equal(totals, size, wanted, mask, begin):
    """Keep the lists of a block whose total is right; returns how many are left."""
    left = np.int16(0)
    for j in range(size):
        ok = np.int16(np.int16(totals[j] == np.int16(wanted)) & (mask[j] | begin))
        mask[j] = ok
        left = np.int16(left + ok)
    return left


@helper()
def fold(lists, block, f, test, scratch):
    """Test a total over the items of the lists of a block; returns how many are left."""
    mine, a, columns = lists
    first, size, begin = block
    totals, mask, line = scratch
    base, kind = test[COLUMN], test[KIND]
    for j in range(size):
        totals[j] = np.int16(0) if kind == FOLD else np.int16(2**15 - 1)
    for i in range(np.int64(mine[test[EXAMPLE], a])):
        _line(f, np.int64(mine[base + i, a]), line)
        if kind == FOLD:
            _total(columns[base + i, first : first + size], size, line, test[OPTIONAL], totals)
        else:
            _extreme(columns[base + i, first : first + size], size, line, 1 if kind == LEAST_OF else -1, totals)
    return _equal(totals, size, -test[LOW] if kind == MOST_OF else test[LOW], mask, begin)
