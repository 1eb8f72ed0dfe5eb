"""Compiled sweeps over the boundary of a grid; `grid.py` says what they compute.

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


@helper(fastmath=FAST)
def _binary_site(table: Floats, column: int, gain: Floats, below: float, zero: float) -> None:
    """Replace a column's site by the one below it, LANES problems side by side.

    gain : of state 1 over state 0, by the state of the left neighbour, shape (2, LANES).
    below : interaction of the two sites, which counts when both are in state 1.
    zero : 0, which the compiler must not know, lest it store only where the maximum is not yet
        there.
    """
    lanes = _u(LANES)
    step = lanes << _u(column)
    half = step if column == 0 else step >> _u(1)
    for start in range(_u(0), _u(table.size), _u(2) * step):
        for left in range(_u(1) if column == 0 else _u(2)):
            for i in range(start + left * half, start + left * half + half, lanes):
                for k in range(lanes):
                    a, b = table[i + k], table[i + step + k]
                    table[i + k] = _larger(a, b) + zero
                    table[i + step + k] = _larger(a, b + below) + gain[left, k]


@helper(fastmath=FAST)
def _binary_two_sites(
    table: Floats, column: int, gain: Floats, below: float, next_gain: Floats, next_below: float, zero: float
) -> None:
    """`_binary_site` of a column and then of the next, in one pass over the table."""
    lanes = _u(LANES)
    step = lanes << _u(column)
    half = step if column == 0 else step >> _u(1)
    for start in range(_u(0), _u(table.size), _u(4) * step):
        for left in range(_u(1) if column == 0 else _u(2)):
            for i in range(start + left * half, start + left * half + half, lanes):
                for k in range(lanes):
                    a, b = table[i + k], table[i + step + k]
                    c, d = table[i + _u(2) * step + k], table[i + _u(3) * step + k]
                    a, b = _larger(a, b), _larger(a, b + below) + gain[left, k]
                    c, d = _larger(c, d), _larger(c, d + below) + gain[left, k]
                    table[i + k] = _larger(a, c) + zero
                    table[i + step + k] = _larger(b, d) + zero
                    table[i + _u(2) * step + k] = _larger(a, c + next_below) + next_gain[_u(0), k]
                    table[i + _u(3) * step + k] = _larger(b, d + next_below) + next_gain[_u(1), k]


@helper(fastmath=FAST)
def _binary_site_alone(table: Floats, column: int, gain: Floats, below: float, zero: float) -> None:
    """`_binary_site` for one problem."""
    step = _u(1) << _u(column)
    half = step if column == 0 else step >> _u(1)
    for start in range(_u(0), _u(table.size), _u(2) * step):
        for left in range(_u(1) if column == 0 else _u(2)):
            g = gain[left, 0]
            first = start + left * half
            for k in range(half):
                a, b = table[first + k], table[first + step + k]
                table[first + k] = _larger(a, b) + zero
                table[first + step + k] = _larger(a, b + below) + g


@kernel()
def maximise_binary(
    field: Floats, right: Floats, down: Floats, width: int, zero: float, values: Floats, states: Ints
) -> None:
    """Grids of binary sites without hard constraints, where only gains of state 1 over state 0
    count.

    field : gain of state 1 at a site, shape (blocks, rows * width, lanes); lanes is LANES or 1.
    right, down : interactions with the left and with the upper neighbour, both in state 1, shape
        (rows * width,).
    values : written, shape (blocks, lanes).
    states : written, shape (blocks, rows * width, lanes).
    """
    blocks, sites, lanes = field.shape
    before = np.empty((sites // width + 1, lanes << width))
    folded = np.empty(2 * lanes << width)
    gains = np.empty((sites, 2, lanes))
    extra = np.zeros((width, 2, lanes))
    tops, index = np.empty(lanes), np.empty(lanes, np.int64)
    for block in range(blocks):
        for t in range(sites):
            for k in range(lanes):
                gains[t, 0, k] = field[block, t, k]
                gains[t, 1, k] = field[block, t, k] + right[t]
        before[0] = 0.0
        for row in range(sites // width):
            table = before[row + 1]
            for i in range(table.size):
                table[i] = before[row, i]
            first, last = row * width, (row + 1) * width
            if lanes != LANES:
                for t in range(first, last):
                    _binary_site_alone(table, t - first, gains[t], down[t], zero)
                continue
            for t in range(first, last - 1, 2):
                _binary_two_sites(table, t - first, gains[t], down[t], gains[t + 1], down[t + 1], zero)
            if width % 2:
                _binary_site(table, width - 1, gains[last - 1], down[last - 1], zero)
        for row in range(sites // width, 0, -1):
            for column in range(width):
                for k in range(lanes):
                    t = row * width + column
                    extra[column, 1, k] = down[t] if t < sites and states[block, t, k] else 0.0
            found = states[block, (row - 1) * width : row * width]
            _trace(before[row], folded, extra, tops, index, found)
            if row * width == sites:
                for k in range(lanes):
                    values[block, k] = tops[k]


@kernel()
def maximise_general(unary: Floats, right: Floats, down: Floats, width: int, values: Floats, states: Ints) -> None:
    """Grids of sites with any one number of states, some log-potentials -inf.

    unary : shape (blocks, rows * width, states, lanes).
    right : of the left neighbour's state and one's own, shape (rows * width, states, states).
    down : of the upper neighbour's state and one's own, likewise.
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


@kernel()
def sum_site(table: Floats, column: int, count: int, unary: Floats, right: Floats, down: Floats) -> None:
    """Replace a column's site by the one below it in a table of weights, shape (count ** width,).

    unary, right, down : weights (not logarithms) of one site, shapes (count,), (count, count),
        (count, count) as in `maximise_general`.
    """
    old, gain = np.empty(count), np.empty((count, count))
    for left in range(count):
        for x in range(count):
            gain[left, x] = right[left, x] * unary[x]
    step = count**column
    part = step if column == 0 else step // count
    for start in range(0, table.size, count * step):
        for left in range(step // part):
            first = start + left * part
            if count == 2:
                for i in range(first, first + part):
                    a, b = table[i], table[i + step]
                    table[i] = (a * down[0, 0] + b * down[1, 0]) * gain[left, 0]
                    table[i + step] = (a * down[0, 1] + b * down[1, 1]) * gain[left, 1]
                continue
            for i in range(first, first + part):
                for y in range(count):
                    old[y] = table[i + y * step]
                for x in range(count):
                    total = 0.0
                    for y in range(count):
                        total += old[y] * down[y, x]
                    table[i + x * step] = total * gain[left, x]
