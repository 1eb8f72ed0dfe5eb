"""Private tables: CSV and Parquet files, DataFrames and database queries, read in parts of constant
size.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.schema import Schema, Unknown, Values

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 65_536
_SALT = secrets.token_bytes(32)
_EXPLAINED = ("0A", "25", "42", "SQLITE_")  # classes of errors that are about the query and quote no values
_POSTGRESQL_TYPES = {16: "boolean", 20: "integer", 21: "integer", 23: "integer", 700: "real", 701: "real", 1700: "real"}

Block = tuple[int, dict[str, Values]]  # number of rows, and the array of each column


class Table(ABC):
    """A table that can be read several times, and that notices changes between two passes.

    Attributes
    ----------
    source : name of the table in errors, without passwords.
    columns : storage type by name: `real`, `integer`, `boolean`, or `text` for anything else. It
        comes from the header of the file or of the query's result, not from values; all columns of
        a CSV file are `text`.
    """

    def __init__(self, source: str, columns: dict[str, str]) -> None:
        self.source, self.columns = source, columns
        self._rows: int | None = None
        self._digests: dict[tuple[str, ...], int] = {}

    def chunks(self, size: int = CHUNK, names: Sequence[str] | None = None) -> Iterator[dict[str, Values]]:
        """Rows in order, at most `size` at a time: an array for each of the named columns (by
        default, all).

        Values are as stored: texts in a CSV file (so that 01 stays 01), numbers if the storage has
        numbers.

        Raises
        ------
        InputError : the table cannot be read, or a pass ends with other rows than an earlier pass.
            Their order may differ: a database guarantees none.
        """
        chosen = tuple(self.columns if names is None else names)
        rows = digest = 0
        for count, block in self._blocks(size, chosen):
            rows += count
            # repr, because each NaN has its own hash; hash, because Python salts it in each process.
            digest += sum(map(hash, map(repr, zip(*(block[name].tolist() for name in chosen), strict=True))))
            if chosen:
                yield block
        known = self._rows, self._digests.get(chosen, digest)
        if known[0] not in (None, rows) or known[1] != digest:
            raise InputError("the table changed while it was read", "read one that does not change", source=self.source)
        self._rows, self._digests[chosen] = rows, digest

    def count(self) -> int:
        """Number of rows; the table is read unless a pass has counted them."""
        if self._rows is None:
            for _ in self.chunks(names=()):
                pass
        assert self._rows is not None
        return self._rows

    def fingerprint(self) -> str:
        """Digest that is equal for tables of the same rows in any order.

        The table is read unless a pass has read all columns. The digest comes from private values:
        compare it within the process and write it nowhere. Its key is drawn for each process, so
        that it is worthless outside.
        """
        every = tuple(self.columns)
        if every not in self._digests:
            for _ in self.chunks():
                pass
        content = repr((self._rows, every, self._digests[every])).encode()
        return hashlib.blake2b(content, key=_SALT).hexdigest()

    @abstractmethod
    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        """Blocks of one pass over the named columns."""


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


def rows(table: Table, schema: Schema, chunk: int = CHUNK, unknown: Unknown = "error") -> Iterator[Rows]:
    """Encoded rows of the table, at most `chunk` at a time; only the schema's columns are read.

    Raises
    ------
    InputError : the table lacks a column (at once); what `Table.chunks` and `Schema.encode` raise
        (while it is read).
    """
    try:
        schema.check_names(table.columns)
    except InputError as error:
        raise error.at(table.source) from None
    return _encoded(table, schema, chunk, unknown)


def _encoded(table: Table, schema: Schema, chunk: int, unknown: Unknown) -> Iterator[Rows]:
    first_row = 1
    for block in table.chunks(chunk, schema.names):
        try:
            encoded = schema.encode(block, first_row, unknown)
        except InputError as error:
            raise error.at(table.source) from None
        yield encoded
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
        super().__init__(path, _unique(dict.fromkeys(header, "text"), header, path))

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
                yield len(part), {name: _objects([row[i] for row in part]) for name, i in places.items()}

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
            super().__init__(path, _unique(types, schema.names, path))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        parquet, arrow = _extra("pyarrow.parquet"), _extra("pyarrow")
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
        super().__init__(source, _unique(types, list(frame.columns), source))

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        for start in range(0, len(self._frame), size):
            part = self._frame.iloc[start : start + size]
            yield len(part), {name: _pandas_values(part[name]) for name in names}


class QueryTable(Table):
    """Streamed rows of a query of SQLite or PostgreSQL, which can write nothing; it needs
    SQLAlchemy.
    """

    def __init__(self, url: str, query: str | None) -> None:
        self._url = _parsed(url)
        source = self._url.set(query={}).render_as_string(hide_password=True)
        if query is None:
            raise InputError("a database needs --query", "give one SELECT", source=source)
        self._query = query
        if self._url.get_backend_name() == "sqlite":
            if not (self._url.database and Path(self._url.database).is_file()):
                raise InputError("no such file", "give an SQLite file", source=source)
            self._url = self._url.set(query={})
        else:
            self._url = self._url.set(drivername="postgresql+psycopg")
            _extra("psycopg")
        self.source = source
        with self._result(1) as result:
            head = [(entry[0], _POSTGRESQL_TYPES.get(entry[1], "text")) for entry in result.cursor.description]
        super().__init__(source, _unique(dict(head), [name for name, _ in head], source))

    @contextmanager
    def _result(self, size: int) -> Iterator[Any]:
        """Result of the query before its rows are fetched, in a transaction that cannot write."""
        alchemy = _extra("sqlalchemy")
        engine = alchemy.create_engine(self._url, poolclass=alchemy.pool.NullPool)
        options = {"stream_results": True, "max_row_buffer": size, "no_parameters": True}
        try:
            with engine.connect() as connection:
                if engine.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA query_only = ON")
                else:
                    options["postgresql_readonly"] = True
                result = connection.execution_options(**options).exec_driver_sql(self._query)
                if not result.returns_rows:
                    raise InputError("the query returns no rows", "give one SELECT", source=self.source)
                yield result
        except alchemy.exc.DBAPIError as error:
            raise self._refusal(error.orig) from None

    def _refusal(self, error: Any) -> InputError:
        """Error of the database in one line without passwords; only its class, if it may quote
        values.
        """
        state = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
        postgresql = self._url.get_backend_name() == "postgresql"
        unreached = not state and postgresql and isinstance(error, _extra("psycopg").OperationalError)
        if not (unreached or (state or "").startswith(_EXPLAINED)):
            problem = f"the query failed ({state or type(error).__name__})"
            return InputError(problem, "give one SELECT that the database can answer", source=self.source)
        text = " ".join(str(error).partition("\nLINE")[0].split())
        passwords = {key: value for key, value in self._url.query.items() if "password" in key.lower()}
        for password in filter(None, (self._url.password, *passwords.values())):
            text = text.replace(str(password), "***")
        remedy = "the database must be reachable" if unreached else "give one SELECT that the database accepts"
        return InputError(text, remedy, source=self.source)

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        places = {name: list(self.columns).index(name) for name in names}
        with self._result(size) as result:
            for part in result.partitions(size):
                yield len(part), {name: _objects([row[i] for row in part]) for name, i in places.items()}


def _parsed(url: str) -> Any:
    """Parsed URL of a database of a known kind; an error shows only its first word."""
    alchemy = _extra("sqlalchemy")
    try:
        parsed = alchemy.make_url(url)
    except (alchemy.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in ("sqlite", "postgresql", "postgres"):
        remedy = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
        raise InputError("it is not the URL of a known kind of database", remedy, source=url.partition(":")[0] + ":...")
    return parsed


def _extra(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InputError(f"{name} is not installed", "install it by pip install 'thesis-cli[db]'") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unique(columns: dict[str, str], names: Sequence[str], source: str) -> dict[str, str]:
    """The columns; `InputError` if there are none, or two have one name."""
    if not columns or len(columns) < len(names):
        problem = "two columns have one name" if columns else "the table has no columns"
        raise InputError(problem, "it must have columns of different names", source=source)
    return columns


def _objects(values: list[Any]) -> Values:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _arrow_storage(kind: Any) -> str:
    types = _extra("pyarrow").types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    return "real" if types.is_floating(kind) or types.is_decimal(kind) else "text"


def _arrow_values(values: Any) -> Values:
    """Values whose type does not depend on where a part begins: whole numbers beside gaps stay
    whole.
    """
    types = _extra("pyarrow").types
    if types.is_floating(values.type) or (types.is_integer(values.type) and not values.null_count):
        numbers: Values = values.to_numpy(zero_copy_only=False)
        return numbers
    return _objects(values.to_pylist())


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
    return _objects([None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)])
