"""A release on disk: rows in a CSV file, and beside it, in JSON, the record of how they were made."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.schema import Real, Schema, Values
from thesis_cli.privacy.table import open_table, rows

FORMAT = "thesis-cli private release 1"
WEIGHT = "weight"
"""Name of the column of weights, in a CSV file that has one."""
DIGITS = 5
"""Reals are written to this many digits of their range, at least."""


@dataclass(frozen=True)
class Release:
    """Rows that were released, their weights, and their record; all of it public.

    Attributes
    ----------
    schema : of the columns.
    points : the rows, encoded, M of them.
    weights : of the rows, of any sign for a release in the span of points (Algorithm 2), shape (M,).
    record : as `release` makes it.
    """

    schema: Schema
    points: Rows
    weights: Floats
    record: dict[str, Any]

    @property
    def kernel(self) -> Kernel:
        """The kernel of the release."""
        return self.schema.kernel()

    @property
    def columns(self) -> dict[str, Values]:
        """The rows decoded, an array of M values by name of column."""
        return self.schema.decode(self.points)


def record_path(path: str | Path) -> Path:
    """Of the record that belongs to a CSV file."""
    return Path(path).with_suffix(".json")


def record_text(record: dict[str, Any]) -> str:
    """The record as JSON."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def rows_text(release: Release, *, weighted: bool) -> str:
    """The rows as CSV, with a column `weight` if `weighted`."""
    decoded = release.columns
    columns = {column.name: _texts(column, decoded[column.name]) for column in release.schema.columns}
    if weighted:
        columns[WEIGHT] = list(map(repr, release.weights.tolist()))
    out = io.StringIO(newline="\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def read_record(path: str | Path) -> dict[str, Any]:
    """The record of a release, by the name of its CSV file or its own.

    Raises
    ------
    InputError : no such file, or no record.
    """
    found = record_path(path)
    try:
        record: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise ValueError
    except OSError as error:
        problem = f"the record of the release cannot be read ({error.strerror})"
        raise InputError(problem, "dp-release writes it beside the CSV file", source=found) from None
    except (KeyError, TypeError, ValueError, RecursionError):  # also of text that is no JSON
        raise InputError("it is no record of a release", "one that dp-release wrote is wanted", source=found) from None
    return record


def read_release(path: str | Path) -> Release:
    """A release, by the name of its CSV file or of its record; weights are equal if the file has none.

    Raises
    ------
    InputError : one of both files is lacking, or is not what dp-release writes.
    """
    record = read_record(path)
    schema = Schema.parse(record["schema"])
    table = open_table(str(Path(path).with_suffix(".csv")), named=True)
    points = Rows.concatenate(list(rows(table, schema)) or [_no_rows(schema)])
    if not len(points):
        raise InputError("the release has no rows", "one or more are wanted", source=table.source)
    if WEIGHT in table.columns and WEIGHT not in schema.names:
        weights = np.concatenate([_numbers(part[WEIGHT], table.source) for part in table.chunks(names=[WEIGHT])])
    else:
        weights = np.full(len(points), 1 / len(points))
    return Release(schema, points, weights, record)


def _no_rows(schema: Schema) -> Rows:
    return Rows(np.zeros((0, schema.reals)), np.zeros((0, len(schema.cardinalities)), np.int64))


def _numbers(texts: Values, source: str) -> Floats:
    try:
        found = texts.astype(np.float64)
    except ValueError:
        found = np.array([math.nan])
    if not np.isfinite(found).all():
        raise InputError(f"a {WEIGHT} that is no number", "the file that dp-release wrote is wanted", source=source)
    return np.asarray(found)


def _texts(column: object, values: Values) -> list[str]:
    if isinstance(column, Real):
        digits = max(0, DIGITS - math.floor(math.log10(column.high - column.low)))
        numbers = [float(f"{x:.{DIGITS + 1}g}") if column.log else round(x, digits) for x in values.tolist()]
        return ["" if math.isnan(x) else repr(x) for x in numbers]
    return ["" if x is None else str(x) for x in values.tolist()]
