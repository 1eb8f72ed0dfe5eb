"""Compiled sweeps over the boundary of a grid of binary sites; `grid.py` says what they compute.

A table holds a number for each assignment of a boundary of `width` sites, column c the digit of
2^c. A step replaces a column's site by the one below it: the entries a and b of its states 0 and 1
become

    a + b  and  g a + h b  (sums), or  max(a, b)  and  max(g + a, h + b)  (maxima),

where the weights g and h depend on the state of the left neighbour. Three columns or more are
replaced while their entries are in registers, and a block of the table is done with as many columns
as lie within it before the next one is read, so that most steps find their entries in a cache. The
instructions on vectors are written down here, since compilers do not find them for the lowest
columns, whose two states lie within a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel

WIDE = 8
"""Numbers in a vector: those of three binary columns."""

_DOUBLE, _LONG, _INT = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_VECTOR, _WEIGHTS = ir.VectorType(_DOUBLE, WIDE), ir.VectorType(_DOUBLE, 4)
_FUSE = ("contract",)
_THREE: Any = np.int64(3)


class _Code:
    """Writes instructions on vectors.

    Parameters
    ----------
    context, builder, signature, arguments : as numba hands them to an intrinsic.
    largest : maxima and sums instead of sums and products.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, *, largest: bool) -> None:
        self._context, self._builder, self._largest = context, builder, largest
        self._arrays = dict(zip(arguments, signature.args, strict=True))
        self._ones = ir.Constant(_WEIGHTS, [0.0 if largest else 1.0] * 4)

    def add(self, at: Any, more: Any) -> Any:
        return self._builder.add(at, more)

    def scale(self, at: Any, factor: int) -> Any:
        return self._builder.mul(at, _LONG(factor))

    def _address(self, array: Any, at: Any, kind: Any) -> Any:
        data = self._context.make_array(self._arrays[array])(self._context, self._builder, array).data
        return self._builder.bitcast(self._builder.gep(data, [at]), kind.as_pointer())

    def load(self, array: Any, at: Any, kind: Any = _VECTOR) -> Any:
        return self._builder.load(self._address(array, at, kind), align=8)

    def store(self, vector: Any, array: Any, at: Any) -> None:
        self._builder.store(vector, self._address(array, at, _VECTOR), align=8)

    def pick(self, vector: Any, places: list[int]) -> Any:
        """Entries of a vector of four weights and of four ones after it, or of one vector."""
        other = self._ones if vector.type == _WEIGHTS else ir.Constant(vector.type, ir.Undefined)
        return self._builder.shuffle_vector(vector, other, ir.Constant(ir.VectorType(_INT, WIDE), places))

    def everywhere(self, array: Any, at: Any) -> Any:
        """A vector of one number."""
        empty = ir.Constant(_VECTOR, ir.Undefined)
        vector = self._builder.insert_element(empty, self.load(array, at, _DOUBLE), _INT(0))
        return self._builder.shuffle_vector(vector, empty, ir.Constant(ir.VectorType(_INT, WIDE), [0] * WIDE))

    def times(self, x: Any, y: Any) -> Any:
        return (self._builder.fadd if self._largest else self._builder.fmul)(x, y, flags=_FUSE)

    def plus(self, x: Any, y: Any) -> Any:
        if self._largest:  # a select is one instruction
            return self._builder.select(self._builder.fcmp_ordered(">", x, y), x, y)
        return self._builder.fadd(x, y, flags=_FUSE)


def _low_column(code: _Code, column: int, weights: Any, at: Any, vectors: list[Any]) -> None:
    """Replace a column whose two states lie within a vector."""
    four = code.load(weights, at, _WEIGHTS)
    upper = [k >> column & 1 for k in range(WIDE)]
    left = [k >> column - 1 & 1 if column else 0 for k in range(WIDE)]
    g, h = (code.pick(four, [2 * b + w if a else 4 for a, b in zip(upper, left, strict=True)]) for w in (0, 1))
    for j, vector in enumerate(vectors):
        first = code.pick(vector, [k & ~(1 << column) for k in range(WIDE)])
        second = code.pick(vector, [k | 1 << column for k in range(WIDE)])
        vectors[j] = code.plus(code.times(first, g), code.times(second, h))


def _replace_columns(largest: bool, within: int, beyond: int) -> Any:
    """An intrinsic that replaces columns: `within` vectors, then `beyond`, whose states are in
    vectors of their own.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target, start, step, weights, site, left = arguments
        code = _Code(context, builder, signature, arguments, largest=largest)
        places = [start]
        for j in range(1, 1 << beyond):
            places.append(code.add(places[j & (j - 1)], code.scale(step, j & -j)))
        vectors = [code.load(source, at) for at in places]
        at = code.scale(site, 4)
        for column in range(within):
            _low_column(code, column, weights, code.add(at, _LONG(4 * column)), vectors)
        for c in range(beyond):
            own = code.add(at, _LONG(4 * (within + c)))
            if c:
                pairs = [[code.everywhere(weights, code.add(own, _LONG(2 * b + w))) for w in (0, 1)] for b in (0, 1)]
            elif within:
                four = code.load(weights, own, _WEIGHTS)
                pairs = [[code.pick(four, [2 * (k >> within - 1 & 1) + w for k in range(WIDE)]) for w in (0, 1)]]
            else:
                own = code.add(own, code.scale(left, 2))
                pairs = [[code.everywhere(weights, code.add(own, _LONG(w))) for w in (0, 1)]]
            for j in range(1 << beyond):
                if not j >> c & 1:
                    g, h = pairs[j >> c - 1 & 1 if c else 0]
                    a, b = vectors[j], vectors[j | 1 << c]
                    vectors[j] = code.plus(a, b)
                    vectors[j | 1 << c] = code.plus(code.times(a, g), code.times(b, h))
        for vector, place in zip(vectors, places, strict=True):
            code.store(vector, target, place)
        return context.get_dummy_value()

    def replace_columns(
        typing: Any, source: Any, target: Any, start: Any, step: Any, weights: Any, site: Any, left: Any
    ) -> Any:
        long = types.int64
        return types.void(source, target, long, long, weights, long, long), generate

    return intrinsic(replace_columns)


@intrinsic
def _fold_three(typing: Any, table: Any, step: Any, extra: Any, column: Any, folded: Any, start: Any, to: Any) -> Any:
    """Maximise the sum of a table and of what state 1 gains over three columns, for eight states
    of those below.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, step, extra, column, folded, start, to = arguments
        code = _Code(context, builder, signature, arguments, largest=True)
        vectors = [code.load(table, code.add(start, code.scale(step, j))) for j in range(8)]
        for c in range(3):
            gain = code.everywhere(extra, code.add(column, _LONG(c)))
            vectors = [code.plus(a, code.times(b, gain)) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        code.store(vectors[0], folded, to)
        return context.get_dummy_value()

    long = types.int64
    return types.void(table, long, extra, long, folded, long, long), generate


def _sweep(largest: bool) -> tuple[Callable[..., None], Callable[..., None]]:
    """Compiled functions that replace the columns of a row in blocks, and three columns of a whole
    table.
    """
    one, two, three = (_replace_columns(largest, n, 0) for n in (1, 2, 3))
    four, five, six = (_replace_columns(largest, 3, n) for n in (1, 2, 3))
    next_three = _replace_columns(largest, 0, 3)

    @helper()
    def group(table: Floats, weights: Floats, site: int, column: int, start: int, first: int, last: int) -> None:
        """Replace `column` and the two after it.

        start : of eight runs of 2^column entries each.
        first, last : slice of the first half of a run, of which the second half follows suit.
        """
        step = 1 << column
        for left in range(2):
            base = start + left * (step >> 1)
            for i in range(base + first, base + last, WIDE):
                next_three(table, table, i, step, weights, site + column, left)

    @helper()
    def blocks(
        source: Floats, target: Floats, weights: Floats, site: int, width: int, top: int, first: int, last: int
    ) -> None:
        """Replace the columns below `top` in the entries from `first` to `last`.

        site : row of `weights` of the first column.
        """
        low = width if width < 4 else width - 3 * ((width - 4) // 3)
        size = max(WIDE, 1 << low)
        for start in range(first, last, size):
            if low == 6:
                six(source, target, start, WIDE, weights, site, 0)
            elif low == 5:
                five(source, target, start, WIDE, weights, site, 0)
            elif low == 4:
                four(source, target, start, WIDE, weights, site, 0)
            elif low == 3:
                three(source, target, start, WIDE, weights, site, 0)
            elif low == 2:
                two(source, target, start, WIDE, weights, site, 0)
            else:
                one(source, target, start, WIDE, weights, site, 0)
            column, end = low, start + size
            while column < top and end & ((WIDE << column) - 1) == 0:
                group(target, weights, site, column, end - (WIDE << column), ZERO, 1 << (column - 1))
                column += 3

    return blocks, group


_sum_blocks, _sum_group = _sweep(largest=False)
_max_blocks, _ = _sweep(largest=True)


@kernel()
def sum_row(source: Floats, target: Floats, weights: Floats, width: int, whole: bool, first: int, last: int) -> None:
    """Replace the sites of a row by those below them, in sums.

    source, target : the table, and where the new one is written; may be the same. Of fewer columns
        than three, copies follow each other to make up eight numbers.
    weights : of each site g and h beside state 0, then beside state 1, shape (width, 4).
    whole : replace the last three columns in a slice of the runs (see `_sweep`). Otherwise replace
        all (of up to six) or all but these in the entries from `first` to `last`.
    """
    if whole:
        _sum_group(target, weights, ZERO, width - 3, ZERO, first, last)
    else:
        _sum_blocks(source, target, weights, ZERO, width, width - 3, first, last)


@kernel()
def maximise_binary(field: Floats, right: Floats, down: Floats, width: int, values: Floats, states: Ints) -> None:
    """Maximise over grids of which only gains of state 1 over state 0 count.

    field : gain of state 1 at a site, shape (batch, rows * width).
    right, down : interactions with the left and with the upper neighbour, both in state 1, shape
        (rows * width,).
    values : written, shape (batch,).
    states : written, shape (batch, rows * width).
    """
    batch, sites = field.shape
    rows, size = sites // width, max(WIDE, 1 << width)
    before = np.zeros((rows + 1, size))
    folded, totals = np.empty(max(WIDE, size // 4)), np.zeros(32)
    weights, extra = np.empty((sites, 4)), np.zeros(width)
    for block in range(batch):
        for t in range(sites):
            weights[t, 0] = field[block, t]
            weights[t, 1] = field[block, t] + down[t]
            weights[t, 2] = field[block, t] + right[t]
            weights[t, 3] = field[block, t] + right[t] + down[t]
        for row in range(rows):
            _max_blocks(before[row], before[row + 1], weights, row * width, width, width, ZERO, size)
        for row in range(rows, 0, -1):
            for column in range(width):
                t = row * width + column
                extra[column] = down[t] if row < rows and states[block, t] else 0.0
            top = _trace(before[row], folded, extra, totals, states[block, (row - 1) * width : row * width])
            if row == rows:
                values[block] = top


@helper()
def _trace(table: Floats, folded: Floats, extra: Floats, totals: Floats, states: Ints) -> float:
    """Maximum of a table plus what the states 1 gain; three columns at a time are folded, then one
    goes back for the maximiser.

    extra : gain of state 1, shape (width,).
    folded, totals : room for a quarter of the table, and for 32 numbers.
    states : written, shape (width,).
    """
    columns, at, current = extra.size, 0, table
    while columns >= 6:
        columns -= 3
        step = 1 << columns
        to = at + 8 * step if columns + 3 < extra.size else 0
        for i in range(0, step, WIDE):
            _fold_three(current, step, extra, columns, folded, at + i, to + i)
        current, at = folded, to
    chosen, top = _best(current, at, ZERO, columns, extra, totals)
    for column in range(columns):
        states[column] = chosen >> column & 1
    while columns < extra.size:
        last = columns + 3 == extra.size
        at = 0 if last else at - (8 << columns)
        three, _ = _best(table if last else folded, at + chosen, columns, _THREE, extra, totals)
        for column in range(3):
            states[columns + column] = three >> column & 1
        chosen += three << columns
        columns += 3
    return top


@helper()
def _best(table: Floats, at: int, column: int, count: int, extra: Floats, totals: Floats) -> tuple[int, float]:
    """States of `count` columns from `column` on that maximise a table plus what they gain, and the
    maximum.
    """
    for c in range(count):
        for state in range(1 << c):
            totals[state + (1 << c)] = totals[state] + extra[column + c]
    best, chosen = -np.inf, 0
    for state in range(1 << count):
        here = table[at + (state << column)] + totals[state]
        if here > best:
            best, chosen = here, state
    return chosen, best
