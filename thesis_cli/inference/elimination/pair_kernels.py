"""Compiled sums of products of two tables, of exponentials of sums, and maxima of sums; tests compare them
with einsum and enumeration.

The table that is made is filled in blocks of its fastest axes. Within a block an input is one number, a
run of consecutive entries, or gathered by offsets, once for all rows that read the same entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ONE, ZERO, helper, kernel

ONE_NUMBER: Any = np.int64(0)
RUN: Any = np.int64(1)
GATHERED: Any = np.int64(2)
"""How a block reads an input."""


class ProductIndex(NamedTuple):
    """Indices by which a product of two tables reads its inputs.

    Attributes
    ----------
    dims : numbers of states along the slower axes of the table that is made, slowest first.
    strides : of both inputs along these axes, shape (2, axes).
    offsets : of the entries of a block in both inputs, shape (2, block).
    inner : of the states that are summed over in both inputs, shape (2, states).
    kinds : how a block reads both inputs.
    """

    dims: Ints
    strides: Ints
    offsets: Ints
    inner: Ints
    kinds: Ints


@helper()
def bases_of(pair: ProductIndex, row: int, turns: Ints, bases: Ints) -> None:
    """Starts of both inputs for a row, and the state of each slower axis."""
    bases[0] = bases[1] = 0
    for a in range(pair.dims.size - 1, -1, -1):
        turns[a] = row % pair.dims[a]
        row //= pair.dims[a]
        bases[0] += turns[a] * pair.strides[0, a]
        bases[1] += turns[a] * pair.strides[1, a]


@helper()
def move_on(pair: ProductIndex, turns: Ints, bases: Ints) -> None:
    """Go to the next row."""
    a = pair.dims.size - 1
    while a >= 0:
        turns[a] += 1
        bases[0] += pair.strides[0, a]
        bases[1] += pair.strides[1, a]
        if turns[a] < pair.dims[a]:
            return
        bases[0] -= pair.dims[a] * pair.strides[0, a]
        bases[1] -= pair.dims[a] * pair.strides[1, a]
        turns[a] = 0
        a -= 1


@helper()
def gather(pair: ProductIndex, side: int, source: Floats, base: int, buffer: Floats) -> None:
    """The entries of an input of one row, block after block for each state that is summed over."""
    block = pair.offsets.shape[1]
    for k in range(pair.inner.shape[1]):
        at = base + pair.inner[side, k]
        to = buffer[k * block : k * block + block]
        for i in range(to.size):
            to[i] = source[at + pair.offsets[side, i]]


@kernel(fastmath={"nnan", "nsz", "contract"})
def sum_products(
    pair: ProductIndex, left: Floats, right: Floats, scale: float, start: int, stop: int, out: Floats
) -> tuple[float, float]:
    """Write rows start to stop of scale * sum(left * right); returns the largest entry, and the smallest
    positive one.
    """
    block, states = pair.offsets.shape[1], pair.inner.shape[1]
    turns, bases, last = np.empty(pair.dims.size, np.int64), np.empty(2, np.int64), np.full(2, -1)
    bases_of(pair, start, turns, bases)
    one, two = pair.kinds[0], pair.kinds[1]
    gathered_left = np.empty(states * block if one == GATHERED else 0)
    gathered_right = np.empty(states * block if two == GATHERED else 0)
    high, least = 0.0, np.inf
    for row in range(start, stop):
        if one == GATHERED and bases[0] != last[0]:
            last[0] = bases[0]
            gather(pair, ZERO, left, bases[0], gathered_left)
        if two == GATHERED and bases[1] != last[1]:
            last[1] = bases[1]
            gather(pair, ONE, right, bases[1], gathered_right)
        to = out[row * block : row * block + block]
        for k in range(states):
            at_left, at_right = bases[0] + pair.inner[0, k], bases[1] + pair.inner[1, k]
            a = (
                gathered_left[k * block : k * block + block]
                if one == GATHERED
                else left[at_left : at_left + (block if one == RUN else 1)]
            )
            b = (
                gathered_right[k * block : k * block + block]
                if two == GATHERED
                else right[at_right : at_right + (block if two == RUN else 1)]
            )
            if one == ONE_NUMBER or two == ONE_NUMBER:
                number = scale * (a[0] if one == ONE_NUMBER else b[0])
                run = b if one == ONE_NUMBER else a
                if k == 0:
                    for i in range(to.size):
                        to[i] = run[i] * number
                elif number != 0.0:
                    for i in range(to.size):
                        to[i] += run[i] * number
            elif k == 0:
                for i in range(to.size):
                    to[i] = scale * a[i] * b[i]
            else:
                for i in range(to.size):
                    to[i] += scale * a[i] * b[i]
        for i in range(to.size):
            high = max(high, to[i])
        for i in range(to.size):
            value = to[i] if to[i] > 0.0 else np.inf
            least = min(least, value)
        move_on(pair, turns, bases)
    return high, least


@kernel()
def sum_exponentials(
    pair: ProductIndex, left: Floats, right: Floats, start: int, stop: int, out: Floats
) -> tuple[float, float]:
    """Write rows start to stop of ln sum(exp(left + right)); returns the largest entry, and the smallest
    finite one.
    """
    block, states = pair.offsets.shape[1], pair.inner.shape[1]
    turns, bases, sums = np.empty(pair.dims.size, np.int64), np.empty(2, np.int64), np.empty(states)
    bases_of(pair, start, turns, bases)
    high, least = -np.inf, np.inf
    for row in range(start, stop):
        for i in range(block):
            at_left, at_right = bases[0] + pair.offsets[0, i], bases[1] + pair.offsets[1, i]
            top = -np.inf
            for k in range(states):
                sums[k] = left[at_left + pair.inner[0, k]] + right[at_right + pair.inner[1, k]]
                top = max(top, sums[k])
            total = 0.0
            if top > -np.inf:
                for k in range(states):
                    total += np.exp(sums[k] - top)
                top += np.log(total)
                least = min(least, top)
            high = max(high, top)
            out[row * block + i] = top
        move_on(pair, turns, bases)
    return high, least


@kernel()
def max_sums(
    pair: ProductIndex,
    left: Floats,
    right: Floats,
    rows: int,
    out: Floats,
    choices: npt.NDArray[np.unsignedinteger],
) -> None:
    """Write max(left + right), and the state at which each is attained.

    Parameters
    ----------
    left, right : logarithms, `-inf` included.
    choices : as long as `out`, or empty if nothing is maximised over.
    """
    block, states = pair.offsets.shape[1], pair.inner.shape[1]
    turns, bases, last = np.empty(pair.dims.size, np.int64), np.empty(2, np.int64), np.full(2, -1)
    bases_of(pair, ZERO, turns, bases)
    one, two = pair.kinds[0], pair.kinds[1]
    gathered_left = np.empty(states * block if one == GATHERED else 0)
    gathered_right = np.empty(states * block if two == GATHERED else 0)
    for row in range(rows):
        if one == GATHERED and bases[0] != last[0]:
            last[0] = bases[0]
            gather(pair, ZERO, left, bases[0], gathered_left)
        if two == GATHERED and bases[1] != last[1]:
            last[1] = bases[1]
            gather(pair, ONE, right, bases[1], gathered_right)
        to = out[row * block : row * block + block]
        for k in range(states):
            at_left, at_right = bases[0] + pair.inner[0, k], bases[1] + pair.inner[1, k]
            a = (
                gathered_left[k * block : k * block + block]
                if one == GATHERED
                else left[at_left : at_left + (block if one == RUN else 1)]
            )
            b = (
                gathered_right[k * block : k * block + block]
                if two == GATHERED
                else right[at_right : at_right + (block if two == RUN else 1)]
            )
            alone = one == ONE_NUMBER or two == ONE_NUMBER
            number = 0.0
            if alone:
                number = a[0] if one == ONE_NUMBER else b[0]
                a = b if one == ONE_NUMBER else a
            if k == 0:
                for i in range(to.size):
                    to[i] = a[i] + (number if alone else b[i])
                if choices.size:
                    choices[row * block : row * block + block] = 0
                continue
            chosen = choices[row * block : row * block + block]
            if alone:
                for i in range(to.size):
                    value = a[i] + number
                    better = value > to[i]
                    to[i] = value if better else to[i]
                    chosen[i] = k if better else chosen[i]
            else:
                for i in range(to.size):
                    value = a[i] + b[i]
                    better = value > to[i]
                    to[i] = value if better else to[i]
                    chosen[i] = k if better else chosen[i]
        move_on(pair, turns, bases)
