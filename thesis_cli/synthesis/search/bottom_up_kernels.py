"""Compiled growth of a bank of values, one level at a time; `dsl` is the plain reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.synthesis.language.lanes import examples_of, same
from thesis_cli.synthesis.language.operation_kernels import COMMUTES, GIVES_INT, SINGLE, TAKES_INT, apply, has_room
from thesis_cli.synthesis.language.packing import Bounds, Lanes

Places = npt.NDArray[np.int32]

DONE, PAUSED, ENOUGH, FULL = range(4)
"""Why the growth returned."""

AHEAD = 32
"""Rows that are made before they are compared with the bank; a pool needs so many free ones, and
one more."""

LINE = 8
"""Words that the processor reads from memory together."""

TARGET = 0
"""Row of the required output; the inputs follow it."""


class BankRows(NamedTuple):
    """Values in rows, and how they were made; all but the multipliers is updated.

    Attributes
    ----------
    pool : values, shape (V, `row_size(M)`): the required output, the inputs, then values by level.
    words : the same memory, shape (V, `row_size(M)` / 4).
    multipliers : odd, for the hash, shape (WIDTH M / 4,): lengths are left out.
    kinds : whether a value is a number, shape (V,).
    origins : operation and arguments of a value, shape (V, 3).
    hashes : hashes of the values, shape (V,).
    table : rows by their hash, -1 where empty, open addressing; its size is a power of 2 and above
        V.
    """

    pool: Lanes
    words: Words
    multipliers: Words
    kinds: Bools
    origins: Places
    hashes: Words
    table: Places


class Level(NamedTuple):
    """The trees that are made now.

    Attributes
    ----------
    starts : first row of each level up to `size`, shape (at least size + 1,).
    size : level of the trees that are made now: the sum of the costs of their operations.
    keep : whether new values are kept; if not, they are only compared with the output, example by
        example.
    bounds : range and rounding, as `operation_kernels.apply` takes them.
    result_is_int : whether the output is a number.
    order : ids of the operations, as they are to be tried.
    costs : costs of all operations, by id, at least 1.
    """

    starts: Ints
    size: int
    keep: bool
    bounds: Bounds
    result_is_int: bool
    order: Ints
    costs: Ints


# These take arrays, not the tuple: a tuple of arrays is copied by each call that is not inlined.


@helper()
def _hash(words, row, is_int, multipliers):
    h = np.uint64(is_int)
    for i in range(multipliers.size):
        h += (words[row, i] ^ (words[row, i] >> np.uint64(29))) * multipliers[i]
    h ^= h >> np.uint64(32)
    return h * multipliers[0]


@helper()
def _find(table, hashes, pool, kinds, row):
    """Place in the table of the value of a row: where it stands already, or where it belongs."""
    mask = table.size - 1
    place = np.int64(hashes[row] >> np.uint64(20)) & mask
    while table[place] >= 0:
        other = np.int64(table[place])
        alike = hashes[other] == hashes[row] and kinds[other] == kinds[row]
        if alike and same(pool, other, row, ZERO, np.int64(examples_of(pool))):
            break
        place = (place + 1) & mask
    return place


@kernel()
def rebuild(hashes: Words, table: Places, first: int, last: int) -> None:
    """Enter rows `first` to `last` - 1, all distinct, into an empty table by their hashes alone."""
    mask = table.size - 1
    for row in range(first, last):
        place = np.int64(hashes[row] >> np.uint64(20)) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = row


@helper()
def _settle(bank, first, last, near):
    """Enter rows `first` to `last` - 1, which were made together; those of known values are
    dropped, and later ones move up.

    The first two loops read what the third needs, so that the processor waits for memory once, not
    once a row.

    Parameters
    ----------
    near : scratch, shape (at least last - first,).

    Returns
    -------
    The row after the last that is kept.
    """
    pool, words, _, kinds, origins, hashes, table = bank
    mask = table.size - 1
    for row in range(first, last):
        near[row - first] = table[np.int64(hashes[row] >> np.uint64(20)) & mask]
    touched = np.uint64(0)
    for row in range(first, last):
        other = near[row - first]
        if other >= 0 and hashes[other] == hashes[row]:
            for i in range(0, words.shape[1], LINE):
                touched |= words[other, i]
    near[0] = np.int64(touched)
    kept = first
    for row in range(first, last):
        place = _find(table, hashes, pool, kinds, row)
        if table[place] < 0:
            table[place] = kept
            if kept < row:
                for i in range(words.shape[1]):
                    words[kept, i] = words[row, i]
                kinds[kept], hashes[kept] = kinds[row], hashes[row]
                for i in range(3):
                    origins[kept, i] = origins[row, i]
            kept += 1
    return kept


@kernel()
def enter(bank: BankRows, first: int, last: int) -> None:
    """Hash the values of rows `first` to `last` - 1 and enter them; of equal ones the first."""
    pool, words, multipliers, kinds, _, hashes, table = bank
    for row in range(first, last):
        hashes[row] = _hash(words, row, kinds[row], multipliers)
        place = _find(table, hashes, pool, kinds, row)
        if table[place] < 0:
            table[place] = row


@kernel()
def grow(bank: BankRows, level: Level, budget: int, state: Ints, found: Ints) -> int:
    """Make the values of one level from those of lower ones; go on from where the last call
    stopped.

    Parameters
    ----------
    bank, level : values so far, and what to make.
    budget : steps of this call: trees tried, and arguments passed over.
    state : place in the order, level of the first argument, arguments, rows in use, trees tried,
        trees found; updated.
    found : operation and arguments of trees that give the output, shape (count, 3); written.

    Returns
    -------
    DONE, PAUSED (the budget is spent), ENOUGH (`found` is full) or FULL (the pool or the table is).
    """
    pool, words, multipliers, kinds, origins, hashes, table = bank
    starts, size, keep, bounds, result_is_int, order, costs = level
    examples, target = examples_of(pool), np.int64(TARGET)
    step = examples if keep else 1
    place, part, x, y = state[0], state[1], state[2], state[3]
    near = np.empty(AHEAD, np.int64)
    first = row = state[4]  # rows from the first to this one are made, and not yet entered
    room = min(pool.shape[0], table.size // 2) - AHEAD
    reason = FULL if keep and row >= room else PAUSED
    while reason == PAUSED and budget > 0:
        budget -= 1
        if place == order.size:
            reason = DONE
            break
        id = order[place]
        single, rest = SINGLE[id], size - costs[id]
        hit = GIVES_INT[id] == result_is_int
        if part < 0:  # a new operation: an argument alone has all the rest of the cost
            part = max(rest, 0) if single else 0
            x, y = starts[part], -1
        if part > rest or (COMMUTES[id] and 2 * part > rest) or not (keep or hit):
            place, part = place + 1, -1
            continue
        if x == starts[part + 1]:
            part += 1
            x, y = starts[part], -1
            continue
        if y < 0:
            y = x if single else starts[rest - part]
            if COMMUTES[id]:
                y = max(x, y)
        end = x + 1 if single else starts[rest - part + 1]
        if kinds[x] != TAKES_INT[id, 0] or y >= end:
            x, y = x + 1, -1
            continue
        other = y
        y += 1
        if kinds[other] != TAKES_INT[id, 1]:
            continue
        state[5] += 1
        ok = keep or has_room(id, pool, x, other, target)
        for m in range(0, examples, step):
            if ok:
                ok = apply(id, pool, x, other, row, (m, m + step), bounds)
                hit &= ok and same(pool, row, target, m, m + step)
                ok &= keep or hit
        if ok and hit:
            found[state[6], 0], found[state[6], 1], found[state[6], 2] = id, x, other
            state[6] += 1
            if state[6] == found.shape[0]:
                reason = ENOUGH
        if ok and keep:
            kinds[row] = GIVES_INT[id]
            hashes[row] = _hash(words, row, kinds[row], multipliers)
            origins[row, 0], origins[row, 1], origins[row, 2] = id, x, other
            row += 1
            if row - first == AHEAD:
                first = row = _settle(bank, first, row, near)
                if reason == PAUSED and row >= room:
                    reason = FULL
    state[4] = _settle(bank, first, row, near)
    state[0], state[1], state[2], state[3] = place, part, x, y
    return reason
