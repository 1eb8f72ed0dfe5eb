"""Compiled joins of tables that hold only their support; `sparse_elimination` says what they are
for.

A row of a table is a key, whose bits are the states of the variables, in one or more words, and a
weight. Hash tables have open addresses, and hold numbers of rows; -1 is empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.base.compiled import helper, kernel

Slots = npt.NDArray[np.int32]

SUM, LOG_SUM = 0, 1
"""Whether weights or their logarithms are multiplied and summed."""

MIX: Any = np.uint64(0x9E3779B97F4A7C15)
HALF: Any = np.uint64(32)
EMPTY: Any = np.uint64(0)


class Rows(NamedTuple):
    """Keys, shape (rows, words), and weights."""

    keys: Words
    weights: Floats


class Groups(NamedTuple):
    """The rows of a table in groups that agree in some variables.

    Attributes
    ----------
    slots : hash table of groups.
    bounds : the rows of group g are bounds[g] to bounds[g + 1].
    """

    slots: Slots
    bounds: Ints
    keys: Words
    weights: Floats


class Output(NamedTuple):
    """Space for the rows of a join; `slots` is a hash table of them, the rest is scratch."""

    keys: Words
    weights: Floats
    slots: Slots
    places: Ints
    touched: Words


@helper()
def slot_of(keys: Words, row: int, masks: Words, slots: int) -> int:
    """The slot, of 2^n in a hash table, at which the search for the bits of a key under the masks begins."""
    h = EMPTY
    for w in range(masks.size):
        h = (h ^ (keys[row, w] & masks[w])) * MIX
        h ^= h >> HALF
    return int(np.int64(h * MIX >> HALF) & (slots - 1))


@helper()
def same(a: Words, i: int, b: Words, j: int, masks: Words) -> bool:
    differ = EMPTY
    for w in range(masks.size):
        differ |= (a[i, w] ^ b[j, w]) & masks[w]
    return bool(differ == EMPTY)


@kernel(_nrt=False)
def repack(keys: Words, moves: Ints, out: Words) -> None:
    """Copy bits of each key to other places; each move is from word, from bit, number of bits, to
    word, to bit. `out` holds zeros.
    """
    one = np.uint64(1)
    for m in range(moves.shape[0]):
        a, low, b, high = moves[m, 0], np.uint64(moves[m, 1]), moves[m, 3], np.uint64(moves[m, 4])
        mask = (one << np.uint64(moves[m, 2])) - one
        for r in range(keys.shape[0]):
            out[r, b] |= ((keys[r, a] >> low) & mask) << high


@kernel(_nrt=False)
def group(keys: Words, masks: Words, slots: Slots, firsts: Ints, member: Ints) -> int:
    """Number the groups of rows that agree under the masks; `member` is the group of each row and
    `firsts` one row of each. Returns how many there are.
    """
    count = 0
    for r in range(keys.shape[0]):
        s = slot_of(keys, r, masks, slots.size)
        while slots[s] >= 0 and not same(keys, r, keys, firsts[slots[s]], masks):
            s = (s + 1) & (slots.size - 1)
        if slots[s] < 0:
            slots[s] = count
            firsts[count] = r
            count += 1
        member[r] = slots[s]
    return count


@helper()
def enter(out: Output, kept: Words, size: int, new: int, how: int) -> int:
    """Enter rows size to new - 1 into the hash table; returns how many rows there are then."""
    touched = EMPTY
    for i in range(size, new):
        s = slot_of(out.keys, i, kept, out.slots.size)
        out.places[i - size] = s
        touched += np.uint64(out.slots[s])
    for i in range(size, new):
        t = out.slots[out.places[i - size]]
        if t >= 0:
            touched += out.keys[t, 0] ^ np.uint64(out.weights[t] > 0)
    out.touched[0] = touched  # so that the compiler keeps these loops
    first = size
    for i in range(first, new):
        s = out.places[i - first]
        while out.slots[s] >= 0 and not same(out.keys, i, out.keys, out.slots[s], kept):
            s = (s + 1) & (out.slots.size - 1)
        t = out.slots[s]
        weight = out.weights[i]
        if t < 0:
            out.slots[s] = size
            out.weights[size] = weight
            for w in range(kept.size):
                out.keys[size, w] = out.keys[i, w]
            size += 1
        elif how == SUM:
            out.weights[t] += weight
        else:
            top = max(out.weights[t], weight)
            out.weights[t] = top + np.log1p(np.exp(min(out.weights[t], weight) - top))
    return size


@kernel(_nrt=False)
def place(out: Output, count: int, kept: Words) -> None:
    """Enter the first rows, all different, into an empty hash table."""
    start = 0
    while start < count:
        start = enter(out, kept, start, min(start + out.places.size, count), SUM)


@kernel(_nrt=False)
def join(a: Rows, b: Groups, masks: Words, out: Output, state: Ints, how: int) -> None:
    """Join the rows of a with those of b that agree with them, and put rows together that agree
    under the mask of what is kept.

    It works in batches: the new rows are written behind the old ones; then a loop over all of them
    reads where each may be entered, so that the processor waits for many places of memory at once;
    then each is entered.

    Parameters
    ----------
    b : laid out so that what it shares with a has the same bits, and what it does not has others.
    masks : of what a and b share, and of what is kept, shape (2, words).
    out : without slots, rows are not put together.
    state : next row of a, next row of its group of b, rows of out, and how many more pairs to join
        before a return. It returns early, too, where out is full; the caller continues.
    how : `SUM` or `LOG_SUM`.
    """
    shared, kept = masks[0], masks[1]
    r, done, size = state[0], state[1], state[2]
    capacity = out.weights.size
    most = out.places.size
    while r < a.weights.size and size < capacity and state[3] > 0:
        end = min(size + most, capacity)
        new = size
        while r < a.weights.size and new < end:
            s = slot_of(a.keys, r, shared, b.slots.size)
            while b.slots[s] >= 0 and not same(a.keys, r, b.keys, b.bounds[b.slots[s]], shared):
                s = (s + 1) & (b.slots.size - 1)
            g = b.slots[s]
            stop = 0
            if g >= 0:
                q = b.bounds[g] + done
                stop = min(b.bounds[g + 1], q + end - new)
                while q < stop:
                    for w in range(kept.size):
                        out.keys[new, w] = (a.keys[r, w] | b.keys[q, w]) & kept[w]
                    out.weights[new] = a.weights[r] * b.weights[q] if how == SUM else a.weights[r] + b.weights[q]
                    new += 1
                    q += 1
                done = stop - b.bounds[g]
            if g < 0 or stop == b.bounds[g + 1]:
                r += 1
                done = 0
        state[3] -= new - size + most
        size = new if out.slots.size == 0 else enter(out, kept, size, new, how)
    state[0], state[1], state[2] = r, done, size
