"""Public cells of the columns of a schema: every encoded row has one cell in each column.

Levels, and whole numbers of a short range, have cells of their own. Other numbers go up to the next
round number, such as a multiple of 0.05: a real column often has values that occur many times. A
missing value is the last cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.columns import Category, Column, Integer, Real
from thesis_cli.privacy.tables.dates import Date
from thesis_cli.privacy.tables.schema import Schema

WHOLE = 256
"""Largest number of whole numbers that have cells of their own."""
STEPS = 2000
"""Least number of round numbers of another column, unless it has fewer whole numbers."""
DECADES = 20
"""Largest number of decades between bounds of a logarithm with round numbers."""
MANTISSAS = (100, 200, 1), (100, 250, 2), (100, 200, 5)
"""First and last multiple, and what they are multiples of, for round numbers of three digits."""
SCALES = 16, 128
"""Equal groups of cells in which a line of many cells is counted too."""


def round_numbers(column: Real | Integer) -> Floats:
    """Round numbers inside a column's bounds, and the bounds.

    They are multiples of 1, 2 or 5 times a power of ten: `STEPS` to 2.5 `STEPS` of them, or, if
    logarithms are encoded, at most 1 % apart. Each is computed by one division, so that 3/10 is the
    number that is read from 0.3. If the bounds are too close for their size, the numbers are just
    equally spaced.
    """
    low, high = float(column.low), float(column.high)
    if isinstance(column, Real) and column.log:
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        if len(decades) > DECADES:
            return np.geomspace(low, high, STEPS + 1)
        parts = [_multiples(*part, exponent - 2) for exponent in decades for part in MANTISSAS]
    else:
        exponent = math.floor(math.log10((high - low) / STEPS))
        factor = max(f for f in (1, 2, 5) if f * 10.0**exponent <= (high - low) / STEPS or f == 1)
        if isinstance(column, Integer) and exponent < 0:
            factor, exponent = 1, 0
        unit = factor * 10.0**exponent
        if max(-low, high) > 2**40 * unit or not -300 < exponent < 300:
            return np.asarray(low + np.arange(STEPS + 1) * ((high - low) / STEPS), np.float64)
        parts = [_multiples(math.ceil(low / unit), math.floor(high / unit) + 1, factor, exponent)]
    found = np.concatenate(parts)
    return np.concatenate([[low], found[(found > low) & (found < high)], [high]])


def _multiples(first: int, end: int, factor: int, exponent: int) -> Floats:
    """Multiples k factor 10^exponent for k from `first` to `end` - 1."""
    k = np.arange(first, end) * float(factor)
    return np.asarray(k * 10.0**exponent if exponent >= 0 else k / 10.0**-exponent, np.float64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one column.

    Attributes
    ----------
    real, code : places of the column among the reals and the codes of an encoded row; -1 if it has
        none.
    points : encoded numbers of the cells on the line, rising from 0 to 1; none for a category
        without order. A number has the cell of the least point that is not below it.
    count : number of cells.
    whole : whether no other number than the points can occur.
    """

    real: int
    code: int
    points: Floats
    count: int
    whole: bool

    @property
    def line(self) -> int:
        """Number of cells on the line."""
        return len(self.points)

    @property
    def gap(self) -> bool:
        """Whether the last cell is a missing value of a number."""
        return 0 < self.line < self.count

    def scales(self) -> list[Ints]:
        """Group of each cell at nested scales, the coarsest first; the last has single cells.

        Both ends of the line, where values are clamped, and missing values are groups of their own.
        """
        found = []
        for groups in SCALES:
            if self.line > 2 * groups:
                own = 1 + np.minimum((self.points * groups).astype(np.int64), groups - 1)
                own[0], own[-1] = 0, groups + 1
                own = np.append(own, [groups + 2] * (self.count - self.line)).astype(np.int64)
                found.append(np.unique(own, return_inverse=True)[1])
        return [*found, np.arange(self.count)]

    def of(self, rows: Rows) -> Ints:
        """Cell of each row, shape (N,)."""
        if not self.line:
            return rows.codes[:, self.code]
        found = np.minimum(np.searchsorted(self.points, rows.reals[:, self.real]), self.line - 1)
        return np.where(rows.codes[:, self.code] == 1, self.line, found) if self.gap else found

    def write(self, found: Ints, rows: Rows, within: Floats | None = None) -> None:
        """Set the column of encoded rows to the points of the cells `found`, or to numbers at places
        in [0, 1) below them.
        """
        if self.code >= 0:
            rows.codes[:, self.code] = found == self.line if self.line else found
        if self.line:
            x = np.append(self.points, 0.5)[found]
            if within is not None and not self.whole:
                x -= within * np.concatenate([[0.0], np.diff(self.points), [0.0]])[found]
            rows.reals[:, self.real] = x


def schema_cells(schema: Schema, most: int = WHOLE, equal: int | None = None) -> tuple[Cells, ...]:
    """Cells of each column.

    Parameters
    ----------
    most : largest number of whole numbers that have cells of their own.
    equal : number of equal cells of any other number, instead of round numbers.
    """
    found = []
    real = code = 0
    for column in schema.encoded:
        points, whole = _points(column, most, equal)
        places = real if column.on_line else -1, code if column.cardinality else -1
        count = len(points) + column.missing if column.on_line else column.cardinality
        found.append(Cells(*places, points, count, whole))
        real, code = real + column.on_line, code + bool(column.cardinality)
    return tuple(found)


def _points(column: Column, most: int, equal: int | None) -> tuple[Floats, bool]:
    """Encoded numbers of the cells on a column's line, encoded as its values are, and whether no
    other number can occur.
    """
    if isinstance(column, Category) and column.ordered and (equal is None or len(column.levels) <= most):
        return column.read(np.array(column.levels, object)), True
    if isinstance(column, Integer) and column.high - column.low < most:
        return column.read(np.arange(column.low, column.high + 1)), True
    if isinstance(column, Date) and (span := column.last - column.first) < (most if equal else 2 * STEPS):
        return np.arange(span + 1) / span, True
    if equal is None and isinstance(column, Real | Integer):
        return np.unique(column.read(round_numbers(column))), False
    return np.linspace(0, 1, (equal or STEPS) + 1) if column.on_line else np.zeros(0), False


def cells_of(cells: tuple[Cells, ...], rows: Rows) -> Ints:
    """Cells of rows, shape (N, columns)."""
    return np.stack([column.of(rows) for column in cells], 1)
