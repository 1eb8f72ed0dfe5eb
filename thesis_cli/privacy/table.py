"""Private tables: CSV and Parquet files, DataFrames and database queries, read in parts of constant
size.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.database import QueryTable
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.schema import Schema, Unknown, Values
from thesis_cli.privacy.table_base import CHUNK, Block, Table, extra_package, objects, unique_columns

if TYPE_CHECKING:
    import pandas as pd


def open_table(source: str | Path | pd.DataFrame, query: str | None = None, *, named: bool = False) -> Table:
    """Open a CSV file (with a header), a Parquet file (*.parquet, *.pq), a database query, or a
    DataFrame.

    Parameters
    ----------
    source : a path, a URL sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, or a
        DataFrame.
    query : SELECT to read; only for a database.
    named : whether the first line of a CSV file is known to have names, which may then be numbers.

    Raises
    ------
    InputError : there is no such table, it cannot be read, or a package is not installed; never has
        a password.
    """
    if not isinstance(source, str | Path):
        return FrameTable(source, query)
    source = str(source)
    if re.match(r"\w+(\+\w+)?://|(sqlite|postgres\w*)(\+\w+)?:", source):
        return QueryTable(source, query)
    if query is not None:
        raise InputError("--query is for a database", "give a URL such as sqlite:///FILE", source=source)
    path = Path(source)
    if not path.is_file():
        problem = "it is not a file" if path.exists() else "no such file"
        raise InputError(problem, "give a CSV or Parquet file, or the URL of a database", source=source)
    return ParquetTable(source) if path.suffix.lower() in (".parquet", ".pq") else CsvTable(source, named)


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
    """Values as stored, of the schema's columns and of those `beside`, and the encoded rows; raises
    as `encoded_rows`.
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
    for block in table.chunks(chunk, (*schema.names, *beside)):
        try:
            encoded = schema.encode(block, first_row, unknown)
        except InputError as error:
            raise error.at(table.source) from None
        yield block, encoded
        first_row += len(encoded)


class CsvTable(Table):
    """A file of comma-separated values in UTF-8, with a line of column names; blank lines are
    skipped.
    """

    def __init__(self, path: str, named: bool = False) -> None:
        self._path = path
        with self._reader() as reader:
            header = next(filter(None, reader), None)
        if header is None:
            raise InputError("the file is empty", "it must have a line of column names, then rows", source=path)
        if not named and any(map(_is_number, header)):
            raise InputError(
                "the header has a number in it", "the first line must be column names", source=path, line=1
            )
        super().__init__(path, unique_columns(dict.fromkeys(header, "text"), header, path))

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        try:
            with open(self._path, encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, strict=True)
                yield reader
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", source=self._path) from None
        except csv.Error as error:
            raise InputError(str(error), "it must be CSV", source=self._path, line=reader.line_num) from None
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8", "it must be CSV in UTF-8", source=self._path) from None

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        widths = {0, len(self.columns)}
        places = {name: list(self.columns).index(name) for name in names}
        with self._reader() as reader:
            next(filter(None, reader), None)
            while part := list(islice(reader, size)):
                if not widths.issuperset(map(len, part)):
                    self._refuse_ragged()
                part = [row for row in part if row]
                yield len(part), {name: objects([row[i] for row in part]) for name, i in places.items()}

    def _refuse_ragged(self) -> None:
        """Raise the error; a second pass finds the line of the first row of another width."""
        width = len(self.columns)
        with self._reader() as reader:
            cells = next((len(row) for row in reader if len(row) not in (0, width)), 0)
            problem = f"{cells} cell{'s' * (cells != 1)} where the header has {width}"
            raise InputError(problem, "every row must have as many", source=self._path, line=reader.line_num)


class ParquetTable(Table):
    """A Parquet file, read in batches; it needs pyarrow."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._file() as file:
            schema = file.schema_arrow
            types = {field.name: _arrow_storage(field.type) for field in schema}
            super().__init__(path, unique_columns(types, schema.names, path))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        parquet, arrow = extra_package("pyarrow.parquet"), extra_package("pyarrow")
        try:
            with parquet.ParquetFile(self._path) as file:
                yield file
        except (arrow.ArrowException, OSError):
            raise InputError("it cannot be read", "it must be a Parquet file", source=self._path) from None

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        with self._file() as file:
            if not names:
                yield file.metadata.num_rows, {}
                return
            for batch in file.iter_batches(batch_size=size, columns=list(names)):
                yield len(batch), {name: _arrow_values(batch.column(name)) for name in names}


class FrameTable(Table):
    """A DataFrame of pandas; its index is ignored."""

    def __init__(self, frame: pd.DataFrame, query: str | None = None) -> None:
        import pandas as pd

        source = f"<{type(frame).__name__}>"
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"{source} is not a table", "give a path, the URL of a database, or a DataFrame")
        if query is not None:
            raise InputError("--query is for a database", "give the URL of a database", source=source)
        if not all(isinstance(name, str) for name in frame.columns):
            raise InputError("the name of a column is not a text", "give names that are texts", source=source)
        self._frame = frame
        types = {name: _pandas_storage(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)}
        super().__init__(source, unique_columns(types, list(frame.columns), source))

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        for start in range(0, len(self._frame), size):
            part = self._frame.iloc[start : start + size]
            yield len(part), {name: _pandas_values(part[name]) for name in names}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _arrow_storage(kind: Any) -> str:
    types = extra_package("pyarrow").types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    return "real" if types.is_floating(kind) or types.is_decimal(kind) else "text"


def _arrow_values(values: Any) -> Values:
    """Values whose type does not depend on where a part begins: whole numbers beside gaps stay
    whole.
    """
    types = extra_package("pyarrow").types
    if types.is_floating(values.type) or (types.is_integer(values.type) and not values.null_count):
        numbers: Values = values.to_numpy(zero_copy_only=False)
        return numbers
    return objects(values.to_pylist())


def _pandas_storage(kind: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(kind):
        return "boolean"
    if types.is_integer_dtype(kind):
        return "integer"
    return "real" if types.is_float_dtype(kind) else "text"


def _pandas_values(values: pd.Series[Any]) -> Values:
    """Numbers of NumPy's types as they are; anything else as objects, with None for missing
    values.
    """
    if values.dtype.kind in "biuf" and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    return objects([None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)])
