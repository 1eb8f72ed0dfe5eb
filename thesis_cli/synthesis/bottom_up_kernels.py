"""Compiled growth of a bank of values, one size at a time; `dsl` is the plain reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints, Words
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.synthesis.lanes import Flags, Lanes, examples_of, same
from thesis_cli.synthesis.operation_kernels import COMMUTES, GIVES_INT, INT_LIST, LIST, TAKES, Bounds, apply, has_room

Places = npt.NDArray[np.int32]

DONE, PAUSED, ENOUGH, FULL = range(4)
"""Why the growth returned."""

TARGET = 0
"""Row of the required output; the inputs follow it."""


class BankRows(NamedTuple):
    """Values in rows, and how they were made; all but the multipliers is updated.

    Attributes
    ----------
    pool : values, shape (V, `row_size(M)`): the required output, the inputs, then values by size.
    words : the same memory, shape (V, `row_size(M)` / 4).
    multipliers : odd, for the hash, shape (WIDTH M / 4,): lengths are left out.
    kinds : whether a value is a number, shape (V,).
    origins : operation and arguments of a value, shape (V, 3).
    hashes : of the values, shape (V,).
    table : rows by their hash, -1 where empty, open addressing; its size is a power of 2 and above
        V.
    """

    pool: Lanes
    words: Words
    multipliers: Words
    kinds: Flags
    origins: Places
    hashes: Words
    table: Places


class Level(NamedTuple):
    """What trees are made now.

    Attributes
    ----------
    starts : first row of each size up to `size`, shape (at least size + 1,).
    size : operations of the trees that are made now.
    keep : whether new values are kept; if not, they are only compared with the output, example by
        example.
    bounds : as `operation_kernels.apply` takes them.
    result_is_int : whether the output is a number.
    order : ids of the operations, as they are to be tried.
    """

    starts: Ints
    size: int
    keep: bool
    bounds: Bounds
    result_is_int: bool
    order: Ints


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
def enter(bank: BankRows, first: int, last: int) -> None:
    """Enter the values of rows `first` to `last` - 1 into the table; of equal ones the first."""
    pool, words, multipliers, kinds, _, hashes, table = bank
    for row in range(first, last):
        hashes[row] = _hash(words, row, kinds[row], multipliers)
        place = _find(table, hashes, pool, kinds, row)
        if table[place] < 0:
            table[place] = row


@kernel()
def grow(bank: BankRows, level: Level, budget: int, state: Ints, found: Ints) -> int:
    """Make the values of one size from those of smaller ones; go on from where the last call
    stopped.

    Parameters
    ----------
    bank, level : values so far, and what to make.
    budget : trees to try in this call.
    state : place in the order, size of the first argument, arguments, rows in use, trees tried,
        trees found; updated.
    found : operation and arguments of trees that give the output, shape (count, 3); written.

    Returns
    -------
    DONE, PAUSED (the budget is spent), ENOUGH (`found` is full) or FULL (the pool is).
    """
    pool, words, multipliers, kinds, origins, hashes, table = bank
    starts, size, keep, bounds, result_is_int, order = level
    examples, target = examples_of(pool), np.int64(TARGET)
    step = examples if keep else 1
    stop = state[5] + budget
    place, part, x, y = state[0], state[1], state[2], state[3]
    reason = PAUSED
    while state[5] < stop:
        if place == order.size:
            reason = DONE
            break
        id = order[place]
        takes = TAKES[id]
        if part < 0:  # a new operation: a list alone is of the size before this one
            part = size - 1 if takes == LIST else 0
            x, y = starts[part], -1
        if part == size:
            place, part = place + 1, -1
            continue
        if x == starts[part + 1]:
            part += 1
            x, y = starts[min(part, size)], -1
            continue
        if y < 0:
            y = x if takes == LIST else starts[size - 1 - part]
            if COMMUTES[id]:
                y = max(x, y)
        end = x + 1 if takes == LIST else starts[size - part]
        if kinds[x] != (takes == INT_LIST) or y >= end:
            x, y = x + 1, -1
            continue
        other = y
        y += 1
        if kinds[other] or not (keep or GIVES_INT[id] == result_is_int):
            continue
        row = state[4]
        state[5] += 1
        hit = GIVES_INT[id] == result_is_int
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
                break
        if ok and keep:
            kinds[row] = GIVES_INT[id]
            hashes[row] = _hash(words, row, kinds[row], multipliers)
            entry = _find(table, hashes, pool, kinds, row)
            if table[entry] < 0:
                table[entry] = row
                origins[row, 0], origins[row, 1], origins[row, 2] = id, x, other
                state[4] += 1
                if state[4] == pool.shape[0] - 1:
                    reason = FULL
                    break
    state[0], state[1], state[2], state[3] = place, part, x, y
    return reason
