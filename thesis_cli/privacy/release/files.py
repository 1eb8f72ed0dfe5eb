"""A release on disk: rows in a CSV file, and beside it their record in JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.release.record import NOT_A_RECORD, Record
from thesis_cli.privacy.tables.schema import Real, Schema, Values
from thesis_cli.privacy.tables.table import encoded_rows, open_table

WEIGHT = "weight"
"""Name of the column of weights, if the CSV file has one."""


@dataclass(frozen=True)
class Release:
    """Released rows, their weights and their record; all of it is public.

    Attributes
    ----------
    schema : columns of the rows.
    points : encoded rows, M of them.
    weights : weights of the rows, shape (M,); of any sign for a release in the span of points
        (Algorithm 2).
    record : promise and origin of the rows.
    """

    schema: Schema
    points: Rows
    weights: Floats
    record: Record

    @property
    def kernel(self) -> Kernel:
        """Kernel on the encoded rows."""
        return self.schema.kernel()

    @property
    def columns(self) -> dict[str, Values]:
        """Decoded rows: an array of M values by name of column."""
        return self.schema.decode(self.points)


def record_path(path: str | Path) -> Path:
    """Path of the record that belongs to a CSV file."""
    return Path(path).with_suffix(".json")


def rows_columns(release: Release, *, weighted: bool) -> Columns:
    """The rows, with reals rounded as in the file, and a column `weight` if `weighted`."""
    decoded = release.columns
    columns = dict(decoded)
    for column in release.schema.encoded:
        if isinstance(column, Real):
            columns[column.name] = column.rounded(decoded[column.name])
    return Columns({**columns, WEIGHT: release.weights} if weighted else columns)


def rows_text(release: Release, *, weighted: bool) -> str:
    """Rows as CSV text, with a column `weight` if `weighted`."""
    return rows_columns(release, weighted=weighted).csv()


def read_record(path: str | Path) -> Record:
    """Read the record of a release, given its path or that of the CSV file.

    Raises
    ------
    InputError : there is no such file, or it is no record.
    """
    found = record_path(path)
    try:
        text = found.read_text(encoding="utf-8")
    except OSError as error:
        problem = f"the record of the release cannot be read ({error.strerror})"
        raise InputError(problem, "dp-release writes it beside the CSV file", source=found) from None
    except UnicodeDecodeError:
        raise InputError(*NOT_A_RECORD, source=found) from None
    return Record.from_json(text, found)


def read_release(path: str | Path) -> Release:
    """Read a release, given the path of its CSV file or of its record; without a column of weights,
    they are equal.

    Raises
    ------
    InputError : one of the two files is missing, or is not what dp-release writes.
    """
    record = read_record(path)
    schema = record.schema
    table = open_table(str(Path(path).with_suffix(".csv")), names=schema.names_read, delimiter=",")
    points = Rows.concatenate(list(encoded_rows(table, schema)) or [_no_rows(schema)])
    if not len(points):
        raise InputError("the release has no rows", "it must have at least one", source=table.source)
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
        raise InputError(f"a {WEIGHT} is not a number", "the file must be one that dp-release wrote", source=source)
    return np.asarray(found)
