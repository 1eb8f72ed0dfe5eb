"""Merge the results of tasks into tables with records, and draw figures from the tables alone.

The table of an experiment is held against the one that stands, which it replaces on purpose or not
at all. The table of a sweep has columns for the parameters of its tasks. A digest in the record
tells whether a table was changed by hand.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, WorkFailed, without_secrets
from thesis_cli.base.figures import difference, render
from thesis_cli.base.files import atomic, describes, to_json, write_atomic
from thesis_cli.base.provenance import provenance
from thesis_cli.reproduction import comparison
from thesis_cli.reproduction.comparison import DIFFERS, IDENTICAL, Comparison
from thesis_cli.reproduction.experiment import Checkout, Experiment
from thesis_cli.reproduction.tasks import Stored, Task, TaskFile

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


DIGEST = "sha256"
"""Field of a record that says which table it describes."""


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def was_changed(table: Path, record: Mapping[str, Any]) -> bool:
    """Whether a table is not the one that its record describes; a record without a digest tells nothing."""
    return DIGEST in record and record[DIGEST] != digest(table)


NEW = "new"


@dataclass(frozen=True)
class Published:
    """Outcome for a recomputed table.

    Attributes
    ----------
    experiment : id.
    comparison : comparison with the table that stood; None if there was none, or no readable one.
    replaced : why the new table has taken the place of one that stood; empty if it has not.
    beside : file of a new table that differs and has not taken the place.
    """

    experiment: str
    comparison: Comparison | None = None
    replaced: str = ""
    beside: Path | None = None

    @property
    def verdict(self) -> str:
        """`new`, `identical`, `equal` or `differs`."""
        return self.comparison.verdict if self.comparison else NEW

    def __str__(self) -> str:
        words = str(self.comparison or NEW)
        return f"{words}; replaced ({self.replaced})" if self.replaced else words

    def to_dict(self) -> dict[str, Any]:
        """JSON values: verdict, number of cells that differ, the largest of them, what was written."""
        found = self.comparison
        largest = found.largest if found else None
        return {
            "experiment": self.experiment,
            "verdict": self.verdict,
            "text": str(self),
            "cells": found.cells if found else 0,
            "largest": vars(largest) if largest else None,
            "shape": found.shape if found else "",
            "replaced": self.replaced,
            "beside": str(self.beside) if self.beside else None,
        }


def publish(
    experiment: Experiment,
    preset: str,
    checkout: Checkout,
    seed: int,
    results: Sequence[Stored],
    replace: bool = False,
) -> Published:
    """Merge results, and write the table and its record if they are to take the place of those that
    stand.

    A table that is equal within the tolerances of its columns does not. One that differs does if
    nothing committed would be lost (the preset is not `paper`, or the file is damaged), if its
    record describes other settings, another version or seed, or if `replace` is true; otherwise it
    goes to the store. The record of an identical table stays, unless `replace` is true.

    Raises
    ------
    InputError : the tasks disagree on the columns.
    """
    merged = _merge(experiment, results)
    csv = checkout.results(preset) / f"{experiment.id}.csv"
    record = csv.with_suffix(".json")
    computation: dict[str, Any] = {
        "preset": preset,
        "settings": dict(experiment.settings(preset)),
        "version": experiment.version,
        "seed": seed,
    }
    what = {
        "experiment": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        **computation,
        "tasks": len(results),
    }
    found, reason = _against(csv, merged, experiment), ""
    beside = checkout.store / experiment.id / f"{preset}-{seed}.csv"
    beside.unlink(missing_ok=True)
    if found and found.verdict != IDENTICAL:
        changed = _changed(record, computation)
        scratch = "" if preset == "paper" or found.verdict != DIFFERS else "not committed"
        reason = "--replace" if replace else changed or scratch
        if not reason:
            if found.verdict == DIFFERS:
                write_atomic({beside: merged})
                return Published(experiment.id, found, beside=beside)
            return Published(experiment.id, found)
    code = sorted({result.code for result in results})
    if replace or not (found and found.verdict == IDENTICAL and describes(record, what)):
        seconds = [result.seconds for result in results]
        times = {"task_seconds": round(sum(seconds), 1), "slowest_seconds": round(max(seconds), 1)}
        of_table = {**times, DIGEST: hashlib.sha256(merged.encode()).hexdigest()}
        write_atomic({csv: merged, record: to_json({**what, "code": code, **of_table, **provenance(checkout.root)})})
    return Published(experiment.id, found, reason)


def _merge(experiment: Experiment, results: Sequence[Stored]) -> str:
    """One table of the results, without rounding noise about 0."""
    texts = [result.text for result in results]
    heading = texts[0].split("\n", 1)[0]
    for text in texts:
        if text.split("\n", 1)[0] != heading:
            raise InputError(f"the tasks of {experiment.id} have different columns", f"all must have {heading}")
    merged = heading + "\n" + "".join(text.split("\n", 1)[1] for text in texts)
    return comparison.without_noise(merged, experiment.tolerances)


def _against(csv: Path, merged: str, experiment: Experiment) -> Comparison | None:
    """The comparison with the table that stands, if it is one."""
    try:
        old = csv.read_bytes().decode()
        return comparison.compare(old, merged, experiment.tolerances, experiment.rows)
    except (FileNotFoundError, UnicodeDecodeError, comparison.NoTable):
        return None


def _changed(record: Path, computation: dict[str, Any]) -> str:
    """Difference between a record and this computation in words; empty if there is none."""
    if describes(record, computation):
        return ""
    try:
        old = json.loads(record.read_text())
    except (OSError, ValueError):
        old = None
    if not isinstance(old, dict):
        return "it had no record"
    new = json.loads(to_json(computation))
    other = [name for name, value in new.items() if old.get(name) != value]
    return f"other {' and '.join(other)}"


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
    WorkFailed : a result is damaged or gone.
    """
    columns = _Columns()
    while True:
        try:
            with atomic(path, keep_equal=True) as file:
                return _write_rows(tasks, places, columns, file)
        except _NewColumns:  # the next pass knows them
            continue


def publish_sweep(tasks: TaskFile, path: Path) -> tuple[int, int]:
    """Write the table of finished tasks, if there are any, and its record.

    Files that are the same already are left alone.

    Returns
    -------
    The number of tasks with a result, and the number of rows.

    Raises
    ------
    OSError : naming the file.
    WorkFailed : a result was damaged or removed meanwhile.
    """
    finished = tasks.indices(tasks.finished())
    if not finished:
        return 0, 0
    done, rows = write_table(tasks, finished, path)
    counts = {"tasks": len(tasks), "finished": done, "rows": rows}
    what = {"command": tasks[0].command, "task_file": str(tasks.path), **counts, DIGEST: digest(path)}
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
            if not all(_same_number(row[column], cells.get(name, "")) for row in rows):
                self.apart.add(name)
        return before != (len(self.parameters), len(self.found), len(self.apart))

    @property
    def results(self) -> dict[str, str]:
        """The name in the table of each column of results."""
        kept = [name for name in self.found if name in self.apart or name not in self.parameters]
        return {name: f"result_{name}" if name in self.apart else name for name in kept}


def _write_rows(tasks: TaskFile, places: Sequence[int], columns: _Columns, file: IO[bytes]) -> tuple[int, int]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    done = count = 0
    for task, stored in zip(tasks.some(places), tasks.results(places), strict=True):
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


def _same_number(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return float(one) == float(other)
    except ValueError:
        return False


CHANGED, UNCHANGED = "changed", "unchanged"


def read_result(csv: Path) -> pd.DataFrame:
    """Read a merged result.

    Raises
    ------
    InputError : there is none, or the file is no table.
    """
    import pandas as pd

    try:
        return pd.read_csv(csv)
    except FileNotFoundError:
        raise InputError("no such result", f"run thesis-cli reproduce {csv.stem}", source=csv) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"not a table ({error})", f"run thesis-cli reproduce {csv.stem}", source=csv) from error


def picture(experiment: Experiment, frame: pd.DataFrame, kinds: Sequence[str] = ("png", "pdf")) -> dict[str, bytes]:
    """The figure of a result; returns the file of each kind.

    Raises
    ------
    WorkFailed : the experiment's `plot` raised.
    """

    def plot() -> Figure:
        try:
            return experiment.plot(frame)
        except Exception as error:
            raise WorkFailed(stale(f"the figure of {experiment.id}", error)) from error

    return render(plot, kinds)


def draw(experiment: Experiment, folder: Path) -> dict[Path, str]:
    """Draw an experiment's figure from its CSV in `folder`, as PDF and PNG.

    A PNG that looks the same is not replaced, because processors may round differently. The caption, and
    the table if the figure is one, go into the record of the result.

    Returns
    -------
    changes : "new", "unchanged", or "changed" with the difference, for each file.

    Raises
    ------
    InputError : there is no CSV.
    WorkFailed : the experiment's `plot` raised.
    """
    frame = read_result(folder / f"{experiment.id}.csv")
    found = {}
    for kind, data in sorted(picture(experiment, frame).items()):
        path = folder / f"{experiment.id}.{kind}"
        found[path] = _change(path, data)
        if found[path] != UNCHANGED:
            write_atomic({path: data})
    _describe(experiment, frame, folder / f"{experiment.id}.json")
    return found


def _describe(experiment: Experiment, frame: pd.DataFrame, record: Path) -> None:
    """Put the caption, and the table, into the record of a result, if there is a readable one."""
    try:
        values = json.loads(record.read_text())
    except (OSError, ValueError):
        return
    if not isinstance(values, dict):
        return
    new = {name: value for name, value in values.items() if name != "cells"} | {"caption": experiment.caption}
    if experiment.cells:
        new["cells"] = asdict(experiment.cells(frame))
    if (text := to_json(new)) != to_json(values):
        write_atomic({record: text})


def _change(path: Path, data: bytes) -> str:
    if not path.is_file():
        return NEW
    old = path.read_bytes()
    if path.suffix == ".png":
        words = difference(old, data)
        return f"{CHANGED}: {words}" if words else UNCHANGED
    return UNCHANGED if old == data else CHANGED


def stale(what: str, error: Exception) -> str:
    """The message if an experiment cannot read its own result."""
    return (
        f"{what} failed ({type(error).__name__}: {error}); its CSV is damaged or comes from older code: "
        "run thesis-cli reproduce --refresh"
    )
