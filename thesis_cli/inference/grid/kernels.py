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
    """Writes instructions on vectors, from what numba hands to an intrinsic: sums of products, or maxima of sums."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, *, largest: bool) -> None:
        self._context, self._builder, self._largest = context, builder, largest
        self._arrays = dict(zip(arguments, signature.args, strict=True))
        self._ones = ir.Constant(_WEIGHTS, [0.0 if largest else 1.0] * 4)
        add = builder.module.add_metadata
        self._apart = add([add(["weights", add(["grid"])])])

    def add(self, at: Any, more: Any) -> Any:
        return self._builder.add(at, more)

    def scale(self, at: Any, factor: int) -> Any:
        return self._builder.mul(at, _LONG(factor))

    def _address(self, array: Any, at: Any, kind: Any) -> Any:
        data = self._context.make_array(self._arrays[array])(self._context, self._builder, array).data
        return self._builder.bitcast(self._builder.gep(data, [at]), kind.as_pointer())

    def load(self, array: Any, at: Any) -> Any:
        return self._builder.load(self._address(array, at, _VECTOR), align=8)

    def weight(self, array: Any, at: Any, kind: Any = _DOUBLE) -> Any:
        """Load from an array into which nothing is stored, so that it may be loaded once in a loop."""
        found = self._builder.load(self._address(array, at, kind), align=8)
        found.set_metadata("alias.scope", self._apart)
        return found

    def store(self, vector: Any, array: Any, at: Any) -> None:
        done = self._builder.store(vector, self._address(array, at, _VECTOR), align=8)
        done.set_metadata("noalias", self._apart)

    def pick(self, vector: Any, places: list[int]) -> Any:
        """Entries of a vector of four weights and of four ones after it, or of one vector."""
        other = self._ones if vector.type == _WEIGHTS else ir.Constant(vector.type, ir.Undefined)
        return self._builder.shuffle_vector(vector, other, ir.Constant(ir.VectorType(_INT, WIDE), places))

    def spread(self, array: Any, at: Any, *, many: bool) -> Any:
        """A vector of weights, one for each of many problems, or of one weight for all."""
        if many:
            return self.weight(array, self.scale(at, WIDE), _VECTOR)
        empty = ir.Constant(_VECTOR, ir.Undefined)
        vector = self._builder.insert_element(empty, self.weight(array, at), _INT(0))
        return self._builder.shuffle_vector(vector, empty, ir.Constant(ir.VectorType(_INT, WIDE), [0] * WIDE))

    def times(self, x: Any, y: Any) -> Any:
        return (self._builder.fadd if self._largest else self._builder.fmul)(x, y, flags=_FUSE)

    def plus(self, x: Any, y: Any) -> Any:
        if self._largest:  # a select is one instruction
            return self._builder.select(self._builder.fcmp_ordered(">", x, y), x, y)
        return self._builder.fadd(x, y, flags=_FUSE)


def _low_column(code: _Code, column: int, weights: Any, at: Any, vectors: list[Any]) -> None:
    """Replace a column whose two states lie within a vector."""
    four = code.weight(weights, at, _WEIGHTS)
    upper = [k >> column & 1 for k in range(WIDE)]
    left = [k >> column - 1 & 1 if column else 0 for k in range(WIDE)]
    g, h = (code.pick(four, [2 * b + w if a else 4 for a, b in zip(upper, left, strict=True)]) for w in (0, 1))
    for j, vector in enumerate(vectors):
        first = code.pick(vector, [k & ~(1 << column) for k in range(WIDE)])
        second = code.pick(vector, [k | 1 << column for k in range(WIDE)])
        vectors[j] = code.plus(code.times(first, g), code.times(second, h))


def _replace_columns(largest: bool, within: int, beyond: int, *, many: bool = False) -> Any:
    """An intrinsic that replaces columns: `within` vectors, then `beyond`, whose states are in
    vectors of their own.

    many : the entries of a vector are problems, each with weights of its own.
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
                pairs = [
                    [code.spread(weights, code.add(own, _LONG(2 * b + w)), many=many) for w in (0, 1)] for b in (0, 1)
                ]
            elif within:
                four = code.weight(weights, own, _WEIGHTS)
                pairs = [[code.pick(four, [2 * (k >> within - 1 & 1) + w for k in range(WIDE)]) for w in (0, 1)]]
            else:
                own = code.add(own, code.scale(left, 2))
                pairs = [[code.spread(weights, code.add(own, _LONG(w)), many=many) for w in (0, 1)]]
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


def _folding(*, many: bool) -> Any:
    """An intrinsic that maximises the sum of a table and of what state 1 gains over three columns,
    for a vector of states below or of problems."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, start, step, extra, column, folded, to = arguments
        code = _Code(context, builder, signature, arguments, largest=True)
        vectors = [code.load(table, code.add(start, code.scale(step, j))) for j in range(8)]
        for c in range(3):
            gain = code.spread(extra, code.add(column, _LONG(c)), many=many)
            vectors = [code.plus(a, code.times(b, gain)) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        code.store(vectors[0], folded, to)
        return context.get_dummy_value()

    def fold(typing: Any, table: Any, start: Any, step: Any, extra: Any, column: Any, folded: Any, to: Any) -> Any:
        return types.void(table, types.int64, types.int64, extra, types.int64, folded, types.int64), generate

    return intrinsic(fold)


_fold, _fold_many = _folding(many=False), _folding(many=True)


def _group(largest: bool, *, many: bool = False) -> Any:
    """A compiled function that replaces three columns of which neither is one of the lowest."""
    three = _replace_columns(largest, 0, 3, many=many)

    @helper()
    def group(table: Floats, weights: Floats, site: int, start: int, step: int, first: int, last: int) -> None:
        """Replace three columns.

        site : row of `weights` of the first of them.
        start : first entry of eight runs of `step` entries each.
        first, last : slice of the first half of a run, of which the second half follows suit.
        """
        for left in range(2):
            base = start + left * (step >> 1)
            for i in range(base + first, base + last, WIDE):
                three(table, table, i, step, weights, site, left)

    return group


def _blocks(largest: bool, group: Any) -> Any:
    """A compiled function that replaces columns, block by block."""
    one, two, three = (_replace_columns(largest, n, 0) for n in (1, 2, 3))
    four, five, six, seven = (_replace_columns(largest, 3, n) for n in (1, 2, 3, 4))

    @helper()
    def blocks(
        source: Floats, target: Floats, weights: Floats, site: int, width: int, top: int, first: int, last: int
    ) -> None:
        """Replace the columns below `top` (or the lowest) in the entries from `first` to `last`."""
        low = width if width < 5 else width - 3 * ((width - 5) // 3)
        size = max(WIDE, 1 << low)
        for start in range(first, last, size):
            if low == 7:
                seven(source, target, start, WIDE, weights, site, 0)
            elif low == 6:
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
                group(target, weights, site + column, end - (WIDE << column), 1 << column, ZERO, 1 << (column - 1))
                column += 3

    return blocks


_sum_group, _max_group, _max_group_many = _group(False), _group(True), _group(True, many=True)
_sum_blocks, _max_blocks = _blocks(False, _sum_group), _blocks(True, _max_group)
_one_many, _two_many, _three_many = (_replace_columns(True, 0, n, many=True) for n in (1, 2, 3))


@helper()
def _max_blocks_many(source: Floats, target: Floats, weights: Floats, site: int, width: int) -> None:
    """Replace all columns in the tables of WIDE problems, which are the fastest digit."""
    low = 1 + (width - 1) % 3
    for start in range(0, source.size, WIDE << low):
        if low == 3:
            _three_many(source, target, start, WIDE, weights, site, 0)
        elif low == 2:
            _two_many(source, target, start, WIDE, weights, site, 0)
        else:
            _one_many(source, target, start, WIDE, weights, site, 0)
        column, end = low, start + (WIDE << low)
        while column < width and end & ((WIDE * WIDE << column) - 1) == 0:
            step = WIDE << column
            _max_group_many(target, weights, site + column, end - WIDE * step, step, ZERO, step >> 1)
            column += 3


@kernel()
def sum_row(source: Floats, target: Floats, weights: Floats, width: int, whole: bool, first: int, last: int) -> None:
    """Replace the sites of a row by those below them, in sums.

    source, target : the table, and where the new one is written; may be the same. Of fewer columns
        than three, copies follow each other to make up eight numbers.
    weights : g and h of each site beside state 0, then beside state 1, shape (width, 4).
    whole : replace the last three columns in a slice of the runs (see `_group`). Otherwise replace
        all (of up to seven) or all but these in the entries from `first` to `last`.
    """
    if whole:
        _sum_group(target, weights, width - 3, ZERO, 1 << (width - 3), first, last)
    else:
        _sum_blocks(source, target, weights, ZERO, width, width - 3, first, last)


@kernel()
def maximise_binary(
    field: Floats, right: Floats, down: Floats, width: int, lanes: int, values: Floats, states: Ints
) -> None:
    """Maximise over grids of which only gains of state 1 over state 0 count.

    field : gain of state 1 at a site, shape (batch, rows * width).
    right, down : interactions with the left and with the upper neighbour, both in state 1, shape
        (rows * width,).
    lanes : problems side by side, WIDE or 1, a divisor of the batch.
    values : written, shape (batch,).
    states : written, shape (batch, rows * width).
    """
    batch, sites = field.shape
    rows, size = sites // width, max(WIDE, lanes << width)
    before = np.empty((rows + 1, size))
    for i in range(size):
        before[0, i] = 0.0
    folded, totals = np.empty(max(WIDE, size // 4)), np.zeros(32)
    weights, extra = np.empty(4 * sites * lanes), np.zeros(width * lanes)
    for start in range(0, batch, lanes):
        for t in range(sites):
            for k in range(lanes):
                own, at = field[start + k, t], 4 * t * lanes + k
                weights[at] = own
                weights[at + lanes] = own + down[t]
                weights[at + 2 * lanes] = own + right[t]
                weights[at + 3 * lanes] = own + right[t] + down[t]
        for row in range(rows):
            if lanes == WIDE:
                _max_blocks_many(before[row], before[row + 1], weights, row * width, width)
            else:
                _max_blocks(before[row], before[row + 1], weights, row * width, width, width, ZERO, size)
        for row in range(rows, 0, -1):
            for column in range(width):
                t = row * width + column
                for k in range(lanes):
                    extra[column * lanes + k] = down[t] if row < rows and states[start + k, t] else 0.0
            first = (row - 1) * width
            _trace(
                before[row],
                folded,
                extra,
                totals,
                states[start : start + lanes, first : first + width],
                values[start : start + lanes],
                row == rows,
            )


@helper()
def _trace(
    table: Floats, folded: Floats, extra: Floats, totals: Floats, states: Ints, values: Floats, last: bool
) -> None:
    """Maximum of a table plus what the states 1 gain, and the maximiser: three columns at a time
    are folded, then one goes back.

    extra : gain of state 1 in each column of each problem, shape (width * lanes,).
    folded, totals : room for a quarter of the table, and for 32 numbers.
    states : written, shape (lanes, width).
    values : written if `last`, shape (lanes,).
    """
    lanes, width = states.shape
    columns, at, current = width, 0, table
    while columns >= (6 if lanes == 1 else 4):
        columns -= 3
        step = lanes << columns
        to = 0 if columns + 3 == width else at + 8 * step
        for i in range(0, step, WIDE):
            if lanes == 1:
                _fold(current, at + i, step, extra, columns, folded, to + i)
            else:
                _fold_many(current, at + i, step, extra, columns, folded, to + i)
        current, at = folded, to
    lowest, base = columns, at
    for k in range(lanes):
        chosen, top = _best(current, base + k, lanes, k, lanes, lowest, extra, totals)
        for column in range(lowest):
            states[k, column] = chosen >> column & 1
        if last:
            values[k] = top
        columns, at = lowest, base
        while columns < width:
            whole = columns + 3 == width
            at = 0 if whole else at - (8 * lanes << columns)
            three, _ = _best(
                table if whole else folded,
                at + k + chosen * lanes,
                lanes << columns,
                columns * lanes + k,
                lanes,
                _THREE,
                extra,
                totals,
            )
            for column in range(3):
                states[k, columns + column] = three >> column & 1
            chosen += three << columns
            columns += 3


@helper()
def _best(
    table: Floats, at: int, step: int, first: int, lanes: int, count: int, extra: Floats, totals: Floats
) -> tuple[int, float]:
    """States of `count` columns that maximise a table plus what they gain, and the maximum.

    first : place in `extra` of the first column.
    """
    for c in range(count):
        for state in range(1 << c):
            totals[state + (1 << c)] = totals[state] + extra[first + c * lanes]
    best, chosen = -np.inf, 0
    for state in range(1 << count):
        here = table[at + state * step] + totals[state]
        if here > best:
            best, chosen = here, state
    return chosen, best
