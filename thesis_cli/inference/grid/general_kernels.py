"""Compiled maximisation over grids of sites with any number of states; `grid.py` says what it
computes.

A table holds a number for each assignment of a boundary of `width` sites, one in each column,
column 0 the fastest digit, and for each of `lanes` problems that are solved side by side, fastest
of all.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel

LANES = 32
"""Problems side by side, a constant so that the innermost loop is compiled into vectors."""

_u: Any = numba.uint64


def _larger_of(context: Any, a: Any, b: Any) -> Any:
    """The larger of two numbers, neither NaN: one instruction, where max() is a branch."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = arguments
        return builder.select(builder.fcmp_ordered(">", x, y), x, y)

    return a(a, b), generate


_larger: Any = intrinsic(_larger_of)

FAST = {"nnan", "nsz"}
"""No table holds NaN, and the sign of 0 does not matter."""


@kernel()
def maximise_general(unary: Floats, right: Floats, down: Floats, width: int, values: Floats, states: Ints) -> None:
    """Grids of sites with any one number of states, some log-potentials -inf.

    unary : shape (blocks, rows * width, states, lanes).
    right : log-potentials by the left neighbour's state and one's own, shape (rows * width, states, states).
    down : log-potentials by the upper neighbour's state and one's own, likewise.
    values, states : written, shapes (blocks, lanes) and (blocks, rows * width, lanes).
    """
    blocks, sites, count, lanes = unary.shape
    before = np.empty((sites // width + 1, count**width * lanes))
    folded = np.empty(2 * before.shape[1])
    extra = np.zeros((width, count, lanes))
    tops, index = np.empty(lanes), np.empty(lanes, np.int64)
    old = np.empty((count, lanes))
    for block in range(blocks):
        before[0] = 0.0
        for t in range(sites):
            row, column = divmod(t, width)
            table = before[row + 1]
            if column == 0:
                for i in range(table.size):
                    table[i] = before[row, i]
            step = count**column * lanes
            part = step if column == 0 else step // count
            for start in range(0, table.size, count * step):
                for left in range(step // part):
                    for i in range(start + left * part, start + left * part + part, lanes):
                        for y in range(count):
                            for k in range(lanes):
                                old[y, k] = table[i + y * step + k]
                        for x in range(count):
                            gain = right[t, left, x] if column else 0.0
                            for k in range(lanes):
                                best = -np.inf
                                for y in range(count):
                                    best = _larger(old[y, k] + down[t, y, x], best)
                                table[i + x * step + k] = best + unary[block, t, x, k] + gain
        for row in range(sites // width, 0, -1):
            for column in range(width):
                for k in range(lanes):
                    t = row * width + column
                    for y in range(count):
                        extra[column, y, k] = down[t, y, states[block, t, k]] if t < sites else 0.0
            found = states[block, (row - 1) * width : row * width]
            _trace(before[row], folded, extra, tops, index, found)
            if row * width == sites:
                for k in range(lanes):
                    values[block, k] = tops[k]


@helper()
def _trace(table: Floats, folded: Floats, extra: Floats, tops: Floats, index: Ints, states: Ints) -> None:
    """Maximise table + sum over columns of extra, column by column, and go back for the maximiser.

    extra : shape (width, count, lanes).
    folded : room for twice the table.
    tops : maxima, shape (lanes,); written.
    index : scratch, shape (lanes,).
    states : written, shape (width, lanes).
    """
    width, count, lanes = extra.shape
    for i in range(table.size):
        folded[i] = table[i]
    start, size = 0, table.size  # of the table over columns 0 .. c
    for c in range(width - 1, -1, -1):
        _fold(folded[start : start + size], extra[c], folded[start + size : start + size + size // count])
        start, size = start + size, size // count
    for k in range(lanes):
        tops[k], index[k] = folded[start + k], k
    for c in range(width):
        start, size = start - size * count, size * count
        step = size // count
        for k in range(lanes):
            chosen = 0
            best = folded[start + index[k]] + extra[c, 0, k]
            for y in range(1, count):
                here = folded[start + y * step + index[k]] + extra[c, y, k]
                if here > best:
                    best, chosen = here, y
            states[c, k] = chosen
            index[k] += chosen * step


@helper(fastmath=FAST)
def _fold(table: Floats, extra: Floats, result: Floats) -> None:
    """Maximise table + extra over the slowest digit."""
    count, lanes = extra.shape
    size = _u(result.size)
    for i in range(_u(0), size, _u(lanes)):
        for k in range(_u(lanes)):
            result[i + k] = _larger(table[i + k] + extra[_u(0), k], table[size + i + k] + extra[_u(1), k])
        for y in range(_u(2), _u(count)):
            for k in range(_u(lanes)):
                result[i + k] = _larger(table[y * size + i + k] + extra[y, k], result[i + k])
