"""One tidy table of many tasks: their parameters, then the columns of their results."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from thesis_cli.base.files import atomic, describes, to_json, write_atomic
from thesis_cli.base.provenance import provenance
from thesis_cli.base.wording import without_secrets
from thesis_cli.reproduction import store
from thesis_cli.reproduction.store import Task
from thesis_cli.reproduction.task_file import TaskFile


def write_table(tasks: TaskFile, places: Sequence[int], path: Path) -> tuple[int, int]:
    """Write the rows of finished tasks, in the order of places.

    The columns are the parameters and the seed, then the columns of results, each in the order of
    first appearance. A column of results with the name of a parameter is left out if both are equal
    in every row, and called `result_NAME` otherwise.

    Returns
    -------
    The number of tasks and the number of rows.

    Raises
    ------
    OSError : naming the file.
    """
    columns = _Columns()
    while True:
        try:
            with atomic(path, keep_equal=True) as file:
                return _write(tasks, places, columns, file)
        except _NewColumns:  # the next pass knows them
            continue


def publish(tasks: TaskFile, path: Path) -> tuple[int, int]:
    """Write the table of finished tasks, if there are any, and its record.

    Files that are the same already are left alone.

    Returns
    -------
    The number of tasks with a result, and the number of rows.

    Raises
    ------
    OSError : naming the file.
    """
    finished = tasks.indices(tasks.finished())
    if not finished:
        return 0, 0
    done, rows = write_table(tasks, finished, path)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    counts = {"tasks": len(tasks), "finished": done, "rows": rows}
    what = {"command": tasks[0].command, "task_file": str(tasks.path), **counts, "sha256": digest}
    record = path.with_suffix(".json")
    if not describes(record, what):
        write_atomic({record: to_json({**what, **provenance()})})
    return done, rows


class _NewColumns(Exception):
    """A result has columns that the heading lacks."""


class _Columns:
    """Columns so far: of parameters, of results, and of both if they differ."""

    def __init__(self) -> None:
        self.parameters: dict[str, None] = {}
        self.found: dict[str, None] = {}
        self.apart = set[str]()

    def learn(self, cells: Mapping[str, str], heading: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
        """Add the columns of a result; returns whether any is new."""
        before = len(self.parameters), len(self.found), len(self.apart)
        self.parameters |= dict.fromkeys(cells)
        self.found |= dict.fromkeys(heading)
        for name in (set(heading) & self.parameters.keys()) - self.apart:
            column = heading.index(name)
            if not all(_same(row[column], cells.get(name, "")) for row in rows):
                self.apart.add(name)
        return before != (len(self.parameters), len(self.found), len(self.apart))

    @property
    def results(self) -> dict[str, str]:
        """The name in the table of each column of results."""
        kept = [name for name in self.found if name in self.apart or name not in self.parameters]
        return {name: f"result_{name}" if name in self.apart else name for name in kept}


def _write(tasks: TaskFile, places: Sequence[int], columns: _Columns, file: IO[bytes]) -> tuple[int, int]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    done = count = 0
    for task in tasks.some(places):
        stored = store.read(task.file)
        if stored is None:
            continue
        heading, *rows = csv.reader(io.StringIO(stored.text, newline=""))
        cells = _parameters(task)
        if columns.learn(cells, heading, rows) and done:
            text.detach()
            raise _NewColumns
        if not done:
            writer.writerow([*columns.parameters, *columns.results.values()])
        ahead = [cells.get(name, "") for name in columns.parameters]
        order = [heading.index(name) if name in heading else None for name in columns.results]
        writer.writerows([*ahead, *("" if k is None else row[k] for k in order)] for row in rows)
        done, count = done + 1, count + len(rows)
    text.detach()
    return done, count


def _parameters(task: Task) -> dict[str, str]:
    cells = {name: _cell(value) for name, value in task.parameters.items()}
    return cells if task.seed is None else {**cells, "seed": str(task.seed)}


def _cell(value: Any) -> str:
    """A parameter in the table, without the password of a database."""
    return without_secrets(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return float(one) == float(other)
    except ValueError:
        return False
