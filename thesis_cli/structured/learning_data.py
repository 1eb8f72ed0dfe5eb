"""Tables of inputs and labels, and trees of labels, from CSV files."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.structured.tasks import BadRow, Task, Tree

MOST_CELLS = 10**8
"""Largest number of cells of a table."""

LARGEST = 1e100
"""Largest absolute value of a cell, whose square is far from overflow."""

REMEDY = f"it must be a number, at most {LARGEST:g} in absolute value"


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of finite numbers.

    Attributes
    ----------
    names : names of the columns.
    values : shape (m, columns).
    source : file, or type of the object.
    lines : line of each row in the file; empty for an object.
    """

    names: tuple[str, ...]
    values: Floats
    source: str
    lines: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.values)

    def columns(self, names: tuple[str, ...]) -> Floats:
        """Some columns, in the order of their names. Raises InputError if there is no column of a
        name."""
        lost = [name for name in names if name not in self.names]
        if lost:
            needed = ", ".join(repr(name) for name in names[:8]) + ", ..." * (len(names) > 8)
            raise InputError(f"there is no column {lost[0]!r}", f"it must have {needed}", source=self.source)
        return self.values[:, [self.names.index(name) for name in names]]

    def error(self, found: BadRow) -> InputError:
        """An error of a row, with the line that it is on."""
        if self.lines:
            return InputError(found.problem, found.remedy, source=self.source, line=self.lines[found.row])
        return InputError(f"row {found.row + 1}: {found.problem}", found.remedy, source=self.source)


def read_table(source: Any) -> Table:
    """A table with a heading: a CSV file, a pandas DataFrame or a `Table`. Raises InputError if the
    file cannot be read; it has no heading, no rows, a name twice, a row of another length or a cell
    that is no finite number; the message names file and line."""
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
    values = np.empty((len(rows) - 1, len(heading)))
    for k, (row, line) in enumerate(zip(rows[1:], lines[1:], strict=True)):
        if len(row) != len(heading):
            raise InputError(f"it has {len(row)} cells", f"the heading has {len(heading)}", source=name, line=line)
        for at, cell in enumerate(row):
            number = _number(cell)
            if number is None:
                problem = f"{heading[at]!r} is {cell.strip()[:40]!r}"
                raise InputError(problem, REMEDY, source=name, line=line)
            values[k, at] = number
    return _not_empty(Table(heading, values, name, tuple(lines[1:])))


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
    """Names of the inputs, and of the labels in the last columns. Raises InputError if no column is
    left for the inputs."""
    if not 0 < labels < len(table.names):
        problem = f"it has {len(table.names)} columns, of which {labels} are to be labels"
        raise InputError(problem, "there must be inputs and labels", source=table.source)
    return table.names[:-labels], table.names[-labels:]


def labelled(table: Table, task: Task) -> Any:
    """Structures of the rows of a table, shape (m, width). Raises InputError naming the line whose
    labels make no structure."""
    try:
        return task.structures(table.columns(task.labels))
    except BadRow as error:
        raise table.error(error) from None


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
    try:
        values = np.array(source.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("it has cells that are no numbers", "give numbers", source=name) from None
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        raise InputError(f"{names[at]!r} of row {row + 1} is {values[row, at]}", REMEDY, source=name)
    return _not_empty(Table(names, values, name))


def _check_names(names: tuple[str, ...], source: str) -> None:
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice or "" in names:
        problem = f"two columns are called {twice[0]!r}" if twice and twice[0] else "a column has no name"
        raise InputError(problem, "give each column a name of its own", source=source)


def _not_empty(table: Table) -> Table:
    if not table.count:
        raise InputError("it has no rows", "give a row for each observation", source=table.source)
    return table


def _number(cell: str) -> float | None:
    """A number; None if the cell is none, or too large."""
    try:
        found = float(cell)
    except ValueError:
        return None
    return found if abs(found) <= LARGEST and "_" not in cell else None
