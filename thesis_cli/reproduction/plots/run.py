"""A run: the table that a command or a sweep wrote, and the record beside it."""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.publication import DIGEST, was_changed

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.base.arrays import Floats

MOST_BYTES = 2**28
"""Largest table that is read; drawing takes some ten times its size in memory."""
SWEEP = "sweep"
"""Kind of a table of many tasks."""
FORMATS = {"thesis-cli private release": "dp-release", "thesis-cli private measurement": "dp-measure"}
"""Commands by the formats of records that name none."""


@dataclass(frozen=True)
class Run:
    """A table and its record.

    Attributes
    ----------
    table : the table, of at least one row and columns with distinct names.
    record : the values of its JSON file; empty if it is missing or damaged.
    faults : missing and inconsistent parts, one line each.
    """

    path: Path
    table: pd.DataFrame
    record: Mapping[str, Any]
    faults: tuple[str, ...] = field(default=())

    @property
    def command(self) -> str:
        """Name of the command in the shell; empty if it is not known."""
        named = self.record.get("command")
        if isinstance(named, str):
            return named
        format = str(self.record.get("format", ""))
        return next((command for begin, command in FORMATS.items() if format.startswith(begin)), "")

    @property
    def kind(self) -> str:
        """The command, or `sweep`."""
        return SWEEP if "task_file" in self.record else self.command

    @property
    def settings(self) -> Mapping[str, Any]:
        """The request as it was carried out; empty for a sweep."""
        found = self.record.get("settings")
        return found if isinstance(found, Mapping) else {}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Columns of a sweep that are options of its command, the seed last; empty for other runs."""
        from thesis_cli.commands.core.command import command_named, entries

        if self.kind != SWEEP or self.command not in entries():
            return ()
        options = command_named(self.command).fields
        found: list[str] = []
        for name in self.table.columns:
            if str(name).replace("-", "_") not in options:
                break
            found.append(str(name))
            if name == "seed":
                break
        return tuple(found)

    def has(self, *columns: str) -> bool:
        """Whether the table has these columns."""
        return set(columns) <= set(self.table.columns)

    def numbers(self, column: str) -> list[float]:
        """`floats` as plain numbers."""
        found: list[float] = self.floats(column).tolist()
        return found

    def floats(self, column: str) -> Floats:
        """A column of numbers; empty cells are NaN.

        Raises
        ------
        InputError : there is no such column, or a cell is no number.
        """
        import pandas as pd

        if column not in self.table:
            raise InputError(f"has no column {column}", "its command writes one", source=self.path)
        values = self.table[column]
        found = pd.to_numeric(values, errors="coerce")
        wrong = values.notna() & found.isna()
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            problem = f"{str(values.iloc[row])[:40]!r} in row {row + 1} of column {column} is no number"
            raise InputError(problem, "the table was changed by hand", source=self.path)
        return found.to_numpy(dtype="float64")

    def texts(self, column: str) -> list[str]:
        """A column of words; empty cells, and all cells of a column that is missing, are empty."""
        if column not in self.table:
            return [""] * len(self.table)
        values = self.table[column]
        return ["" if missing else _text(value) for value, missing in zip(values, values.isna(), strict=True)]


def _text(value: object) -> str:
    """A cell as it is read: whole numbers without a decimal point."""
    if isinstance(value, float) and math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read_run(path: Path) -> Run:
    """Read a table and the record beside it.

    Raises
    ------
    InputError : the table is missing, empty, too large, or none.
    """
    _check_size(path)
    record, faults = _record(path.with_suffix(".json"))
    table = _table(path)
    faults += _changed(path, table, record)
    return Run(path, table, record, tuple(faults))


def _check_size(path: Path) -> None:
    if not path.exists():
        raise InputError("there is no such file", "give the CSV file of a run", source=path)
    if not path.is_file():
        raise InputError("is no file", "give the CSV file of a run", source=path)
    size = path.stat().st_size
    if size == 0:
        raise InputError("is empty", "run its command again", source=path)
    if size > MOST_BYTES:
        problem = f"has {size / 2**20:,.0f} MiB, and tables of up to {MOST_BYTES / 2**20:,.0f} MiB are drawn"
        raise InputError(problem, "take fewer rows", source=path)


def _table(path: Path) -> pd.DataFrame:
    """The table, if it is one.

    Raises
    ------
    InputError : it has no rows, rows of several lengths, a name twice, or is no text.
    """
    import pandas as pd

    try:
        with path.open(encoding="utf-8", newline="") as file:
            heading = next(csv.reader(file), [])
        _check_heading(path, heading)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(path, index_col=False, low_memory=False)
    except UnicodeDecodeError:
        raise InputError("is no text in UTF-8", "give the CSV file of a run", source=path) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        said = " ".join(str(error).split())[:100]
        raise InputError(f"is no table ({said})", "run its command again", source=path) from None
    if table.empty:
        raise InputError("has a heading and no rows", "run its command again", source=path)
    return table


def _check_heading(path: Path, heading: Sequence[str]) -> None:
    if not any(heading):
        raise InputError("has no heading", "the first line names the columns", source=path)
    if any("\0" in name for name in heading):
        raise InputError("is no table", "give the CSV file of a run", source=path)
    twice = next((name for name in heading if heading.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"has the column {twice!r} twice", "columns have distinct names", source=path)


def _record(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The record, and what is wrong with it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{path.name} is missing: what the table is of is told by its columns"]
    except (OSError, ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, []
    return {}, [f"{path.name} is damaged: what the table is of is told by its columns"]


def _changed(path: Path, table: pd.DataFrame, record: Mapping[str, Any]) -> list[str]:
    """A fault if the record describes another table: by its digest, or by its estimates."""
    estimates = record.get("estimates")
    if DIGEST in record:
        same = not was_changed(path, record)
    elif isinstance(estimates, list) and "value" in table:
        kept = [row.get("value") for row in estimates if isinstance(row, dict)]
        shown = _floats(table["value"][: len(kept)])
        same = len(shown) == len(kept) and all(map(_same, kept, shown))
    else:
        return []
    fault = f"{path.name} is not the table that {path.with_suffix('.json').name} describes: it was changed afterwards"
    return [] if same else [fault]


def _same(kept: object, shown: float) -> bool:
    """Whether a number of a record, null if it is not finite, is that of a cell."""
    if not isinstance(kept, int | float):
        return not math.isfinite(shown)
    return math.isclose(kept, shown, rel_tol=1e-12)


def _floats(values: Any) -> list[float]:
    import pandas as pd

    return [float(value) for value in pd.to_numeric(values, errors="coerce")]
