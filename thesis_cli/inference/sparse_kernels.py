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

SUM, LOG_SUM, MAXIMUM = 0, 1, 2
"""How weights are put together: products and sums of weights, of their logarithms, or sums and
maxima of logarithms."""

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
    """Space for the rows of a join; `slots` is a hash table of them."""

    keys: Words
    weights: Floats
    slots: Slots


@helper()
def slot_of(keys: Words, row: int, masks: Words, slots: int) -> int:
    """Where a hash table of 2^n slots looks first for the bits of a key under the masks."""
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


@kernel(_nrt=False)
def place(keys: Words, count: int, masks: Words, slots: Slots) -> None:
    """Enter the first rows, all different, into an empty hash table."""
    for r in range(count):
        s = slot_of(keys, r, masks, slots.size)
        while slots[s] >= 0:
            s = (s + 1) & (slots.size - 1)
        slots[s] = r


@kernel(_nrt=False)
def join(a: Rows, b: Groups, masks: Words, out: Output, state: Ints, how: int) -> None:
    """Join the rows of a with those of b that agree with them, and put rows together that agree
    under the mask of what is kept.

    Parameters
    ----------
    b : laid out so that what it shares with a has the same bits, and what it does not has others.
    masks : of what a and b share, and of what is kept, shape (2, words).
    out : without slots, rows are not put together.
    state : next row of a, rows of out, and how many more pairs to join before a return. It returns
        early, too, where out may be too small; the caller continues.
    how : `SUM`, `LOG_SUM` or `MAXIMUM`.
    """
    shared, kept = masks[0], masks[1]
    r, size, left = state[0], state[1], state[2]
    capacity = out.weights.size
    while r < a.weights.size and left > 0:
        s = slot_of(a.keys, r, shared, b.slots.size)
        while b.slots[s] >= 0 and not same(a.keys, r, b.keys, b.bounds[b.slots[s]], shared):
            s = (s + 1) & (b.slots.size - 1)
        g = b.slots[s]
        if g >= 0:
            if size + b.bounds[g + 1] - b.bounds[g] > capacity:
                break
            left -= b.bounds[g + 1] - b.bounds[g]
            for q in range(b.bounds[g], b.bounds[g + 1]):
                weight = a.weights[r] * b.weights[q] if how == SUM else a.weights[r] + b.weights[q]
                for w in range(kept.size):
                    out.keys[size, w] = (a.keys[r, w] | b.keys[q, w]) & kept[w]
                if out.slots.size > 0:
                    s = slot_of(out.keys, size, kept, out.slots.size)
                    while out.slots[s] >= 0 and not same(out.keys, size, out.keys, out.slots[s], kept):
                        s = (s + 1) & (out.slots.size - 1)
                    t = out.slots[s]
                    if t >= 0:
                        old = out.weights[t]
                        if how == SUM:
                            out.weights[t] = old + weight
                        elif how == LOG_SUM:
                            top = max(old, weight)
                            out.weights[t] = top + np.log1p(np.exp(min(old, weight) - top))
                        else:
                            out.weights[t] = max(old, weight)
                        continue
                    out.slots[s] = size
                out.weights[size] = weight
                size += 1
        left -= 1
        r += 1
    state[0], state[1], state[2] = r, size, left
