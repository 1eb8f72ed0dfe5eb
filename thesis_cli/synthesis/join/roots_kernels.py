"""Compiled search for pairs of lists below a last line that cannot be inverted; `roots` describes
it."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.synthesis.join.root_test_kernels import (
    COLUMN,
    EXAMPLE,
    KIND,
    LAST,
    MIN,
    SUBTRACTED,
    fold,
    passing,
    prepare,
)
from thesis_cli.synthesis.language.dsl import BY_NAME
from thesis_cli.synthesis.language.lanes import examples_of, same
from thesis_cli.synthesis.language.operation_kernels import Bounds, apply
from thesis_cli.synthesis.language.packing import Lanes

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
