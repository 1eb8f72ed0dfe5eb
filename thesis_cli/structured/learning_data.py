"""Tables of inputs and labels, and trees of labels, from CSV files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.structured.observations import Observed
from thesis_cli.structured.tasks import BadRow, Task, Tree

Cells = npt.NDArray[Any]
"""A column: numbers, or text in an array of objects."""

MOST_CELLS = 10**8
"""Largest number of cells of a table."""

LARGEST = 1e100
"""Largest absolute value of a cell, whose square is far from overflow."""

REMEDY = f"it must be a number, at most {LARGEST:g} in absolute value"


MISSING = ("", "NA", "NaN", "nan", "?")
"""Cells without a value."""


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of numbers or of text.

    Attributes
    ----------
    names : names of the columns.
    cells : each column: finite numbers, nan where one is missing, shape (m,); or text, empty where it is
        missing, an array of objects.
    source : file, or type of the object.
    lines : line of each row in the file; empty for an object.
    """

    names: tuple[str, ...]
    cells: tuple[Cells, ...]
    source: str
    lines: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.cells[0])

    def columns(self, names: Sequence[str]) -> list[Cells]:
        """Some columns, in the order of their names. Raises InputError if there is no column of a
        name."""
        lost = [name for name in names if name not in self.names]
        if lost:
            needed = ", ".join(repr(name) for name in names[:8]) + ", ..." * (len(names) > 8)
            raise InputError(f"there is no column {lost[0]!r}", f"it must have {needed}", source=self.source)
        return [self.cells[self.names.index(name)] for name in names]

    def numbers(self, names: Sequence[str], missing: bool = False) -> Floats:
        """Some columns of numbers, shape (m, columns). Raises InputError as for `columns`, and for a
        cell that is no number or, unless `missing`, has none."""
        found = np.empty((self.count, len(names)))
        for at, (name, cells) in enumerate(zip(names, self.columns(names), strict=True)):
            wrong = cells != "" if cells.dtype == object else np.isnan(cells) & (not missing)
            if wrong.any():
                row = int(wrong.argmax())
                cell = str(cells[row])[:40]
                raise self.error(
                    BadRow.at_row(row, f"{name!r} is {'missing' if cell == 'nan' else repr(cell)}", REMEDY)
                )
            found[:, at] = np.nan if cells.dtype == object else cells
        return found

    def error(self, found: BadRow) -> InputError:
        """An error of a row, with the line that it is on."""
        if self.lines:
            return InputError(found.problem, found.remedy, source=self.source, line=self.lines[found.row])
        return InputError(f"row {found.row + 1}: {found.problem}", found.remedy, source=self.source)


def read_table(source: Any) -> Table:
    """A table with a heading: a CSV file, a pandas DataFrame or a `Table`.

    A column of a file is text if most of its values are no numbers. Raises InputError if the file
    cannot be read; it has no heading, no rows, a name twice, a row of another length, or a cell among
    numbers that is no finite number; the message names file and line.
    """
    if isinstance(source, Table):
        return source
    if not isinstance(source, str | Path):
        return _from_frame(source)
    name = str(source)
    rows, lines = _rows(source)
    if not rows:
        raise InputError("it is empty", "give a heading and a row for each observation", source=name)
    heading = tuple(cell.strip() for cell in rows[0])
    if all(_number(cell) is not None for cell in heading):
        raise InputError(
            "its first line has numbers", "give the names of the columns there", source=name, line=lines[0]
        )
    _check_names(heading, name)
    for row, line in zip(rows[1:], lines[1:], strict=True):
        if len(row) != len(heading):
            raise InputError(f"it has {len(row)} cells", f"the heading has {len(heading)}", source=name, line=line)
    if len(rows) == 1:
        raise InputError("it has no rows", "give a row for each observation", source=name)
    texts = [np.array([row[at].strip() for row in rows[1:]], object) for at in range(len(heading))]
    table = Table(heading, tuple(texts), name, tuple(lines[1:]))
    return Table(heading, tuple(map(partial(_parsed, table), heading, texts)), name, table.lines)


def _parsed(table: Table, name: str, texts: Cells) -> Cells:
    """A column of a table as numbers, or as text if most of its values are no numbers."""
    numbers: list[float | None] = [math.nan if text in MISSING else _number(text) for text in texts]
    wrong = [row for row, number in enumerate(numbers) if number is None]
    words = [row for row in wrong if not _is_float(texts[row])]
    if 2 * len(words) > sum(text not in MISSING for text in texts):
        return np.array(["" if text in MISSING else text for text in texts], object)
    if wrong:
        raise table.error(BadRow.at_row(wrong[0], f"{name!r} is {str(texts[wrong[0]])[:40]!r}", REMEDY))
    return np.array(numbers, np.float64)


def read_tree(path: str | Path) -> Tree:
    """The tree of a CSV file with the columns node and parent, the root's parent empty. Raises
    InputError as for `read_table` and `Tree.of`; the message names the file."""
    rows, lines = _rows(path)
    rows = [[cell.strip() for cell in row] for row in rows]
    if not rows or rows[0] != ["node", "parent"]:
        raise InputError("its first line is not node,parent", "give a line NODE,PARENT for each node", source=path)
    for row, line in zip(rows[1:], lines[1:], strict=True):
        if len(row) != 2 or not row[0]:
            raise InputError(
                f"{','.join(row)[:60]!r} is no node with its parent", "give two cells", source=path, line=line
            )
    if len(rows) == 1:
        raise InputError("it has no nodes", "give a line NODE,PARENT for each node", source=path)
    try:
        return Tree.of([(node, parent) for node, parent in rows[1:]])
    except InputError as error:
        raise error.at(path) from None


def split(table: Table, labels: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs, and of the labels in the last columns. Raises InputError if there are fewer
    columns than labels."""
    if not 0 < labels <= len(table.names):
        problem = f"it has {len(table.names)} columns, of which {labels} are to be labels"
        raise InputError(problem, "there must be as many", source=table.source)
    return table.names[:-labels], table.names[-labels:]


def items_of(table: Table, column: str) -> tuple[str, ...]:
    """Items in a column of preferences, sorted. Raises InputError as for `observed`, and if there are none."""
    found = {item for _, levels in _statements(table, column) for level in levels for item in level}
    if not found:
        raise InputError(f"{column!r} has no preferences", "give some, such as a > b", source=table.source)
    return tuple(sorted(found))


def observed(table: Table, task: Task) -> Observed:
    """Structures of the rows of a table, as far as the rows tell them. Raises InputError naming the line
    whose labels make no structure."""
    if not task.preferences:
        missing = task.name == "ranking"
        try:
            return task.observed(table.numbers(task.labels, missing=missing))
        except BadRow as error:
            raise table.error(error) from None
    found = _statements(table, task.preferences)
    place = {item: at for at, item in enumerate(task.labels)}
    levels = np.full((len(found), len(place)), -1)
    for at, (row, order) in enumerate(found):
        for level, items in enumerate(order):
            for item in items:
                if item not in place:
                    names = ", ".join(task.labels[:8]) + ", ..." * (len(task.labels) > 8)
                    raise table.error(BadRow.at_row(row, f"{item[:40]!r} is no item", f"must be one of: {names}"))
                levels[at, place[item]] = level
    return Observed.ranked(levels, task.unranked, np.array([row for row, _ in found]))


def _statements(table: Table, column: str) -> list[tuple[int, list[list[str]]]]:
    """The row of each preference such as `a > b = c`, and its items, those of a level in a list."""
    found = []
    (cells,) = table.columns([column])
    for row, cell in enumerate(cells if cells.dtype == object else np.full(len(cells), "")):
        for text in filter(None, map(str.strip, re.split("[,;]", str(cell)))):
            levels = [[item.strip() for item in level.split("=")] for level in text.split(">")]
            items = [item for level in levels for item in level]
            twice = len(set(items)) < len(items)
            if twice or "" in items or len(items) < 2:
                problem = f"{text[:60]!r} {'names an item twice' if twice else 'is no preference'}"
                raise table.error(BadRow.at_row(row, problem, "give one such as a > b = c, or several with commas"))
            found.append((row, levels))
    return found


def _rows(path: str | Path) -> tuple[list[list[str]], list[int]]:
    """Rows of a CSV file that are not blank, and the line that each ends on."""
    rows, lines = [], []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            cells = 0
            for row in reader:
                if any(cell.strip() for cell in row):
                    rows.append(row)
                    lines.append(reader.line_num)
                    cells += len(row)
                if cells > MOST_CELLS:
                    raise InputError(f"it has more than {MOST_CELLS:,} cells", "give fewer rows", source=path)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", "give a CSV file", source=path) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("it is no CSV text", "give a CSV file in UTF-8", source=path) from None
    return rows, lines


def _from_frame(source: Any) -> Table:
    name = f"<{type(source).__name__}>"
    if not hasattr(source, "columns") or not hasattr(source, "to_numpy"):
        raise InputError(f"the data are of type {type(source).__name__}", "give a CSV file or a DataFrame")
    names = tuple(str(column) for column in source.columns)
    _check_names(names, name)
    table = Table(names, tuple(_from_series(source.iloc[:, at], name) for at in range(len(names))), name)
    if not table.count:
        raise InputError("it has no rows", "give a row for each observation", source=name)
    return table


def _from_series(column: Any, source: str) -> Cells:
    """A column of a DataFrame as numbers, or as text if it holds other objects."""
    try:
        if hasattr(column.dtype, "categories"):
            raise TypeError
        values = np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        present = column.notna()
        return np.array([str(value) if there else "" for value, there in zip(column, present, strict=True)], object)
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{str(column.name)!r} of row {row + 1} is {values[row]}", REMEDY, source=source)
    return values


def _check_names(names: tuple[str, ...], source: str) -> None:
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice or "" in names:
        problem = f"two columns are called {twice[0]!r}" if twice and twice[0] else "a column has no name"
        raise InputError(problem, "give each column a name of its own", source=source)


def _number(cell: str) -> float | None:
    """A number; None if the cell is none, or too large."""
    try:
        found = float(cell)
    except ValueError:
        return None
    return found if abs(found) <= LARGEST and "_" not in cell else None


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
