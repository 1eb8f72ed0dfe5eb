"""Public cells of the columns of a schema: every encoded row has one cell in each column.

Levels, and whole numbers of a short range, have cells of their own. Other numbers have equal cells
on their encoded line, and both ends of the line have a cell, since values are clamped there. A
missing value is the last cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.columns import Category, Column, Integer
from thesis_cli.privacy.dates import Date
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.schema import Schema

WHOLE = 256
"""Largest number of whole numbers or ordered levels that have cells of their own."""
LINE = 512
"""Equal cells of any other number, apart from one at each end."""
COARSE = 32
"""Equal groups of cells in which a long line is counted too."""


@dataclass(frozen=True)
class Cells:
    """Cells of one column.

    Attributes
    ----------
    real, code : places of the column among the reals and the codes of an encoded row; -1 if it has
        none.
    line : number of cells on the line; 0 for a category without order.
    whole : whether each cell on the line is one value.
    count : number of cells.
    """

    real: int
    code: int
    line: int
    whole: bool
    count: int

    @property
    def gap(self) -> bool:
        """Whether the last cell is a missing value of a number."""
        return self.line > 0 and self.count > self.line

    def groups(self) -> Ints | None:
        """Group of each cell, for a line of many cells: ends and missing values are groups of their
        own.
        """
        if self.line <= 2 * COARSE:
            return None
        inner = np.arange(self.line) if self.whole else np.arange(-1, self.line - 1)
        size = self.line if self.whole else self.line - 2
        groups = np.clip(inner * COARSE // size, 0, COARSE - 1)
        if not self.whole:
            groups[0], groups[-1] = COARSE, COARSE + 1
        return np.append(groups, groups.max() + 1) if self.gap else groups

    def of(self, rows: Rows) -> Ints:
        """Cell of each row, shape (N,)."""
        if not self.line:
            return rows.codes[:, self.code]
        x = rows.reals[:, self.real]
        if self.whole:
            found = np.rint(x * (self.line - 1)).astype(np.int64)
        else:
            inner = self.line - 2
            found = 1 + np.minimum((x * inner).astype(np.int64), inner - 1)
            found[x <= 0] = 0
            found[x >= 1] = self.line - 1
        if self.gap:
            found[rows.codes[:, self.code] == 1] = self.line
        return found

    def write(self, found: Ints, within: Floats, rows: Rows) -> None:
        """Set the column of encoded rows to the cells `found`, at places in [0, 1) within them."""
        if not self.line:
            rows.codes[:, self.code] = found
            return
        if self.whole:
            x = found / (self.line - 1)
        else:
            x = np.clip((found - 1 + within) / (self.line - 2), 0, 1)
            x[found == 0] = 0
            x[found == self.line - 1] = 1
        if self.gap:
            rows.codes[:, self.code] = found == self.line
            x[found == self.line] = 0.5
        rows.reals[:, self.real] = x


def schema_cells(schema: Schema, most: int = WHOLE, inner: int = LINE) -> tuple[Cells, ...]:
    """Cells of each column.

    Parameters
    ----------
    most : largest number of whole numbers or ordered levels that have cells of their own.
    inner : equal cells of any other number, apart from one at each end.
    """
    found = []
    real = code = 0
    for column in schema.columns:
        line, whole = _line(column, most, inner)
        places = real if column.on_line else -1, code if column.cardinality else -1
        count = line + column.missing if column.on_line else column.cardinality
        found.append(Cells(*places, line, whole, count))
        real, code = real + column.on_line, code + bool(column.cardinality)
    return tuple(found)


def _line(column: Column, most: int, inner: int) -> tuple[int, bool]:
    if not column.on_line:
        return 0, False
    span = most + 1
    if isinstance(column, Integer):
        span = column.high - column.low + 1
    elif isinstance(column, Date):
        span = column.last - column.first + 1
    elif isinstance(column, Category):
        span = len(column.levels)
    return (span, True) if span <= most else (inner + 2, False)


def cells_of(cells: tuple[Cells, ...], rows: Rows) -> Ints:
    """Cells of rows, shape (N, columns)."""
    return np.stack([column.of(rows) for column in cells], 1)
