"""All cells of a table that its schema refuses, by their places and never by their values.

The places depend on private values: they are for people who may see the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.column import Column
from thesis_cli.privacy.tables.schema import Schema, Unknown, Values
from thesis_cli.privacy.tables.table_kinds import CHUNK, Table

LISTED = 20
"""Places that are listed; all are counted."""


@dataclass(frozen=True)
class BadCell:
    """A cell that the schema refuses: its row, from 1 on, its column, and what is wrong."""

    row: int
    column: str
    problem: str


@dataclass(frozen=True)
class BadCells:
    """The refused cells of a table.

    Attributes
    ----------
    total : their number.
    first : the first of them, at most `LISTED`, by row.
    rows : number of rows of the table.
    """

    total: int
    first: tuple[BadCell, ...]
    rows: int


def bad_cells(table: Table, schema: Schema, unknown: Unknown = "error", chunk: int = CHUNK) -> BadCells:
    """Read a table once and collect what its schema refuses.

    Raises
    ------
    InputError : the table lacks a column, or cannot be read as a table.
    """
    try:
        schema.check_names(table.columns)
    except InputError as error:
        raise error.at(table.source) from None
    first: list[BadCell] = []
    total, row = 0, 1
    for block in table.chunks(chunk, schema.names_read):
        found = [list(_refused(column, block[column.name], row, unknown)) for column in schema.encoded]
        total += sum(map(len, found))
        here = sorted((cell for cells in found for cell in cells), key=lambda cell: cell.row)
        if not here:
            try:
                schema.encode(block, row, unknown)  # what concerns several columns
            except InputError as error:
                here, total = [BadCell(row, "", error.problem)], total + 1
        first += here[: LISTED - len(first)]
        row += len(next(iter(block.values())))
    return BadCells(total, tuple(first), row - 1)


def _refused(column: Column, values: Values, first_row: int, unknown: Unknown) -> Iterator[BadCell]:
    found = column.read(np.asarray(values))
    gaps, wrong = np.isnan(found), found < 0
    if column.missing:
        gaps[:] = False
        wrong &= unknown != "missing"
    for at in np.flatnonzero(gaps | wrong).tolist():
        problem = f"cannot be read; it must be {column.content}" if wrong[at] else "has no value"
        yield BadCell(first_row + at, column.name, problem)
