"""Compiled search for pairs of lists below a last line that cannot be inverted (`join.Roots`), and its tests
of lists b by columns: whether a list that ZIPWITH makes of a and b can be below a root.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.synthesis.language.dsl import BY_NAME
from thesis_cli.synthesis.language.lanes import examples_of, same
from thesis_cli.synthesis.language.operation_kernels import apply
from thesis_cli.synthesis.language.packing import NULL, Bounds, Lanes

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


Columns = npt.NDArray[np.int16]

BLOCK = 1024
"""Lists b that are tested at a time."""

EVALUATION, QUERY = 300, 500
"""Work of an evaluation, and of a list a with one root and function; a test of a list b is 1."""

ZIPS = np.array([BY_NAME[f"ZIPWITH {f}"].id for f in ("(+)", "(-)", "(*)", "MIN", "MAX", "(-)")])
"""Operations of these six."""

A, B, LIST, VALUE, FREE = 0, 1, 2, 3, 6
"""Rows of the scratch pool: a pair of lists, what ZIPWITH gives, the values above it, and the first
row that is free for targets and numbers."""


class Side(NamedTuple):
    """Lists of one size, by column.

    Attributes
    ----------
    columns : lengths of the M examples, then items at places; shape (C, V), NULL beyond the end.
    rows : rows of the bank, shape (V,).
    """

    columns: Columns
    rows: Ints


class RootPlan(NamedTuple):
    """The roots.

    Attributes
    ----------
    tests : tests of all roots, shape (N, 6); for each root those of lengths, then those of items.
    parts : first test, first test of an item, first one of a total, and end, for each root, shape
        (R, 4).
    chains : operation and row of its number for each step from ZIPWITH up to the root; -1 where
        there is none; shape (R, 2, 2).
    targets : row of what the root gives, shape (R,).
    """

    tests: Ints
    parts: Ints
    chains: Ints
    targets: Ints


@helper()
def _copy(pool, row, scratch, out):
    for i in range(pool.shape[1]):
        scratch[out, i] = pool[row, i]


@helper()
def _sieve(lists, block, f, table, ready, known, scratch):
    """Test the lists b of a block until none is left.

    Tests of items are prepared when they are first needed: `ready` has those of `known[0]`, and
    `known[1]` is the next test of the table. Returns how many lists are left, -1 if no b at all
    passes.
    """
    mine, a, columns = lists
    first, size = block
    tests, part = table
    left = size
    k = 0
    begin = np.int16(1)
    while left > 0:
        while k == known[0] and known[1] < part[2]:
            test = tests[known[1]]
            column = test[COLUMN]
            if test[KIND] == LAST:
                column += np.int64(mine[test[EXAMPLE], a]) - 1
            needed = prepare(f, np.int64(mine[column, a]), test, ready[k])
            if needed < 0:
                return -1
            ready[k, 4] = column
            known[0] += needed
            known[1] += 1
        if k == known[0]:
            break
        left = np.int64(passing(columns[ready[k, 4], first : first + size], size, ready[k], scratch[1], begin))
        begin = np.int16(0)
        k += 1
    for k in range(part[2], part[3]):
        if left == 0:
            break
        left = np.int64(fold(lists, (first, size, begin), f, tests[k], scratch))
        begin = np.int16(0)
    if begin:
        for j in range(size):
            scratch[1][j] = 1
    return left


@helper()
def _fits(scratch, f, chain, target, bounds):
    """Whether a root gives its target on the pair in the scratch pool."""
    x, y = (B, A) if f == SUBTRACTED else (A, B)
    for m in range(examples_of(scratch)):
        if not apply(ZIPS[f], scratch, x, y, LIST, (m, m + 1), bounds):
            return False
        value = LIST
        for step in range(chain.shape[0]):
            if chain[step, 0] < 0:
                break
            number = chain[step, 1] if chain[step, 1] >= 0 else value
            if not apply(chain[step, 0], scratch, number, value, VALUE + step, (m, m + 1), bounds):
                return False
            value = VALUE + step
        if not same(scratch, value, target, m, m + 1):
            return False
    return True


@helper()
def _lengths(mine, a, tests, part, ready):
    """Prepare the tests of lengths; returns how many, -1 if no b passes."""
    count = 0
    for k in range(part[0], part[1]):
        needed = prepare(np.int64(MIN), np.int64(mine[tests[k, COLUMN], a]), tests[k], ready[count])
        if needed < 0:
            return -1
        ready[count, 4] = tests[k, COLUMN]
        count += needed
    return count


@kernel()
def search(
    pool: Lanes,
    sides: tuple[Side, Side],
    plan: RootPlan,
    scratch: Lanes,
    bounds: Bounds,
    state: Ints,
    found: Ints,
) -> bool:
    """Search pairs of lists for those from which a root gives its target.

    Parameters
    ----------
    pool : values of the bank.
    sides : lists a and lists b; if they are the same, only pairs with b not before a are taken.
    plan : the roots; `scratch` has their targets and numbers.
    state : root, list a and function to go on from, number of hits, whether both sides are the
        same, the work so far, the work after which to return, and pairs tested; updated.
    found : root, function and rows a, b of a hit, shape (count, 4); written.

    Returns
    -------
    Whether pairs are left.
    """
    side, other = sides
    mine, columns, rows = side.columns, other.columns, other.rows
    tests, parts, chains, targets = plan
    mask = np.zeros(BLOCK, dtype=np.int16)
    words = mask.view(np.uint64)
    blocks = np.zeros(BLOCK, dtype=np.int16), mask, np.zeros(4, dtype=np.int64)
    ready = np.zeros((tests.shape[0] + 1, 5), dtype=np.int64)
    known = np.zeros(2, dtype=np.int64)
    while state[0] < parts.shape[0]:
        root, a = state[0], state[1]
        part = parts[root]
        lengths = _lengths(mine, a, tests, part, ready) if a < side.rows.size else -1
        if lengths >= 0:
            _copy(pool, side.rows[a], scratch, A)
        while lengths >= 0 and state[2] < 6:
            if state[3] == found.shape[0] or state[5] >= state[6]:
                return True
            f = state[2]
            state[2] += 1
            state[5] += QUERY
            known[0], known[1] = lengths, part[1]
            for first in range(a if state[4] else 0, rows.size, BLOCK):
                size = min(BLOCK, rows.size - first)
                left = _sieve((mine, a, columns), (first, size), f, (tests, part), ready, known, blocks)
                state[5] += size
                state[7] += size
                if left < 0:
                    break
                j = 0
                while left > 0:
                    if words[j >> 2] == 0:
                        j += 4
                        continue
                    for b in range(j, min(j + 4, size)):
                        if mask[b] == 0:
                            continue
                        left -= 1
                        state[5] += EVALUATION
                        _copy(pool, rows[first + b], scratch, B)
                        if state[3] < found.shape[0] and _fits(scratch, f, chains[root], targets[root], bounds):
                            found[state[3], 0], found[state[3], 1] = root, f
                            found[state[3], 2], found[state[3], 3] = side.rows[a], rows[first + b]
                            state[3] += 1
                    j += 4
        state[1], state[2] = state[1] + 1, 0
        if state[1] >= side.rows.size:
            state[0], state[1] = state[0] + 1, 0
    return False


@kernel()
def gather(pool: Lanes, rows: Ints, places: Ints, columns: Columns) -> None:
    """Copy some columns of some rows of the bank into `columns`, shape (C, V)."""
    for j in range(rows.size):
        for c in range(places.size):
            columns[c, j] = pool[rows[j], places[c]]
