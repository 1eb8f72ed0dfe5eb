"""Open what a command takes as a table, a file, a query of a database or a DataFrame, and as a private
release, its CSV file or an object of Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, without_secrets
from thesis_cli.commands.core.fields import argument, option

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.base.arrays import Floats
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.tables.schema import Schema, Unknown

    TableSource = str | Path | pd.DataFrame
    """A path of a CSV or Parquet file, the URL of a database, or a DataFrame."""
else:
    TableSource = str


def delimiter_option(**about: Any) -> Any:
    """The character between the cells of a CSV file; its type is `str | None`."""
    return option(
        None,
        "Character between the cells of a CSV file, or tab.",
        metavar="CHARACTER",
        default_text="comma, semicolon or tab, by the line of names",
        **about,
    )


def check_delimiter(delimiter: str | None, *sources: object) -> None:
    """Refuse `--delimiter` if it is no delimiter, or if no source is a CSV file (`InputError`)."""
    from thesis_cli.privacy.tables.table import is_csv
    from thesis_cli.privacy.tables.table_kinds import given_delimiter

    if delimiter is not None and not (given_delimiter(delimiter) and any(map(is_csv, sources))):
        raise InputError("--delimiter is given without a CSV file", "leave it out")


def read_rows(
    source: TableSource,
    schema: Schema,
    query: str | None = None,
    unknown: Unknown = "error",
    delimiter: str | None = None,
) -> Rows:
    """All rows of a table, encoded by a schema.

    Raises
    ------
    InputError : the table cannot be read, has no rows, or has a value that the schema does not
        take.
    """
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.tables.table import encoded_rows, open_table

    table = open_table(source, query, names=schema.names_read, delimiter=delimiter or "")
    found = list(encoded_rows(table, schema, unknown=unknown))
    if not found:
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    return Rows.concatenate(found)


def plain_columns(source: TableSource) -> tuple[dict[str, Floats], dict[str, tuple[str, ...]]]:
    """The columns of a table without a schema, and the levels of those that are categories.

    Returns
    -------
    columns : numbers, or the places of levels, NaN if missing, shape (rows,) each.
    levels : texts in order, of each column that has one that is no number.

    Raises
    ------
    InputError : the table cannot be read, has no rows, or an infinite number.
    """
    import numpy as np

    from thesis_cli.privacy.tables.column import MISSING_TEXTS, looked_up, read_numbers, text_of
    from thesis_cli.privacy.tables.table import open_table

    table = open_table(source)
    chunks = list(table.chunks())
    if not chunks or not len(next(iter(chunks[0].values()))):
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    columns: dict[str, Floats] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for name in table.columns:
        values = np.concatenate([chunk[name] for chunk in chunks])
        numbers, unreadable = read_numbers(values)
        if unreadable.any():
            levels[name] = tuple(sorted({text_of(value) for value in values.tolist()} - set(MISSING_TEXTS)))
            numbers = looked_up(values, {level: float(i) for i, level in enumerate(levels[name])}, str)
        if np.isinf(numbers).any():
            row = int(np.argmax(np.isinf(numbers))) + 1
            raise InputError(f"the column {name!r} is infinite in row {row}", "numbers are finite", source=table.source)
        columns[name] = numbers
    return columns, levels


def table_label(source: TableSource) -> str:
    """Name of a table in tables and messages: its path, its URL without a password, or its
    type.
    """
    return without_secrets(str(source)) if isinstance(source, str | Path) else f"<{type(source).__name__}>"


def table_stem(source: TableSource | None) -> str:
    """Name of a table without folder, suffixes and parameters of a URL; empty for standard input
    and for an object of Python.
    """
    text = without_secrets(str(source)).partition("?")[0] if isinstance(source, str | Path) else ""
    path = Path(text.removesuffix(".gz"))
    return "" if text == "-" else path.stem


if TYPE_CHECKING:
    from thesis_cli.commands.core.result import Result
    from thesis_cli.privacy.release.record import Release

    ReleaseSource = str | Path | Release | Result
    """The CSV file of a release, its record beside it; a release; or what `dp_release` returns."""
else:
    ReleaseSource = str


def release_argument() -> Any:
    """A private release; its type is `ReleaseSource`."""
    return argument("Release: the CSV file that dp-release wrote, its record beside it.", names="release", objects=True)


def open_release(source: ReleaseSource) -> Release:
    """The release that a source stands for.

    Raises
    ------
    InputError : the file or its record cannot be read, or the object is no release.
    """
    from thesis_cli.privacy.release.files import read_release
    from thesis_cli.privacy.release.record import Release

    if isinstance(source, str | Path):
        return read_release(source)
    release = getattr(source, "release", source)
    if not isinstance(release, Release):
        name = f"<{type(source).__name__}>"
        raise InputError(f"{name} is no release", "give the CSV file of one, or what dp_release returns")
    return release


def release_of(source: object) -> Release | None:
    """The release that a source stands for: a CSV file with a record beside it, or an object. None for any other."""
    from thesis_cli.privacy.release.files import read_release, record_path
    from thesis_cli.privacy.release.record import Release

    if isinstance(source, str | Path):
        return read_release(source) if record_path(source).is_file() else None
    release = getattr(source, "release", source)
    return release if isinstance(release, Release) else None
