"""Private tables: CSV and Parquet files, DataFrames and database queries, read in parts of constant
size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import Values
from thesis_cli.privacy.tables.schema import Schema, Unknown
from thesis_cli.privacy.tables.table_kinds import (
    CHUNK,
    STANDARD_INPUT,
    CsvTable,
    FrameTable,
    ParquetTable,
    QueryTable,
    Table,
    given_delimiter,
)

if TYPE_CHECKING:
    import pandas as pd

_URL = re.compile(r"\w+(\+\w+)?://|(sqlite|postgres\w*)(\+\w+)?:")
_PARQUET = (".parquet", ".pq")


def open_table(
    source: str | Path | pd.DataFrame, query: str | None = None, *, names: Sequence[str] = (), delimiter: str = ""
) -> Table:
    """Open a CSV file (with a header; plain or in gzip), a Parquet file (*.parquet, *.pq), a
    database query, or a DataFrame.

    Parameters
    ----------
    source : a path, `-` for CSV on standard input, a URL sqlite:///FILE or
        postgresql://USER:PASSWORD@HOST/DATABASE, or a DataFrame.
    query : SELECT to read; only for a database.
    names : columns of the schema, as for `CsvTable`.
    delimiter : character between the cells of a CSV file, as for `CsvTable`; other tables ignore
        it.

    Raises
    ------
    InputError : there is no such table, it cannot be read, or a package is not installed; never has
        a password.
    """
    given_delimiter(delimiter)
    if not isinstance(source, str | Path):
        return FrameTable(source, query)
    source = str(source)
    if _URL.match(source):
        return QueryTable(source, query)
    if query is not None:
        raise InputError("--query is for a database", "give a URL such as sqlite:///FILE", source=source)
    if source == STANDARD_INPUT:
        return CsvTable(source, names, delimiter)
    path = Path(source)
    if not path.is_file():
        problem = "it is not a file" if path.exists() else "no such file"
        raise InputError(problem, "give a CSV or Parquet file, - or the URL of a database", source=source)
    return ParquetTable(source) if path.suffix.lower() in _PARQUET else CsvTable(source, names, delimiter)


def is_csv(source: object) -> bool:
    """Whether `open_table` reads a source as CSV."""
    if not isinstance(source, str | Path):
        return False
    return not _URL.match(str(source)) and Path(source).suffix.lower() not in _PARQUET


def encoded_rows(table: Table, schema: Schema, chunk: int = CHUNK, unknown: Unknown = "error") -> Iterator[Rows]:
    """Encoded rows of the table, at most `chunk` at a time; only the schema's columns are read.

    Raises
    ------
    InputError : the table lacks a column (at once); what `Table.chunks` and `Schema.encode` raise
        (while it is read).
    """
    return (rows for _, rows in encoded_blocks(table, schema, chunk, unknown))


def encoded_blocks(
    table: Table, schema: Schema, chunk: int = CHUNK, unknown: Unknown = "error", beside: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Values], Rows]]:
    """Parts of a table: values as stored, by column, and encoded rows; raises as `encoded_rows`.

    Parameters
    ----------
    chunk : largest number of rows of a part.
    unknown : treatment of values that cannot be read, as for `Schema.encode`.
    beside : further columns to return, which need not be in the schema.
    """
    try:
        schema.check_names(table.columns)
    except InputError as error:
        raise error.at(table.source) from None
    return _encoded(table, schema, chunk, unknown, beside)


def _encoded(
    table: Table, schema: Schema, chunk: int, unknown: Unknown, beside: tuple[str, ...]
) -> Iterator[tuple[dict[str, Values], Rows]]:
    first_row = 1
    for block in table.chunks(chunk, (*schema.names_read, *beside)):
        try:
            encoded = schema.encode(block, first_row, unknown)
        except InputError as error:
            raise error.at(table.source) from None
        yield block, encoded
        first_row += len(encoded)
