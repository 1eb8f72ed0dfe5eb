"""The kinds of private tables: CSV files, Parquet files, DataFrames, and queries of SQLite and PostgreSQL;
and what all share: passes over the rows, counts, and notice of changes.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from thesis_cli.base.errors import InputError, is_number
from thesis_cli.base.files import open_regular
from thesis_cli.base.modules import extra
from thesis_cli.privacy.tables.column import UNREADABLE_VALUE, Values

if TYPE_CHECKING:
    import pandas as pd


CHUNK = 8192
"""Rows of a part of a table: as Python's objects, some MB of it are in memory at a time."""

REFUSALS = (ValueError, ArithmeticError, TypeError, LookupError, RuntimeError, AttributeError)
"""Errors that packages raise about a value that they cannot convert; the messages may quote it."""

Block = tuple[int, dict[str, Values]]  # number of rows, and the array of each column


class Table(ABC):
    """A table that can be read several times, and that notices changes between two passes.

    Attributes
    ----------
    source : name of the table in errors, without passwords.
    columns : storage type by name: `real`, `integer`, `boolean`, `date`, `datetime`, or `text` for
        anything else. It comes from the header of the file or of the query's result, not from
        values; all columns of a CSV file are `text`.
    """

    def __init__(self, source: str, columns: dict[str, str]) -> None:
        self.source, self.columns = source, columns
        self._rows: int | None = None
        self._digests: dict[tuple[str, ...], int] = {}
        self._watched: tuple[str, ...] = ()

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
        digests = dict.fromkeys({chosen, self._watched} if set(self._watched) <= set(chosen) else {chosen}, 0)
        rows = 0
        for count, block in self._blocks(size, chosen):
            rows += count
            cells = {name: block[name].tolist() for name in chosen}
            for found in digests:
                digests[found] += _digest(zip(*(cells[name] for name in found), strict=True))
            if chosen:
                yield block
        if self._rows not in (None, rows) or any(self._digests.get(key, x) != x for key, x in digests.items()):
            raise self.changed()
        self._rows = rows
        self._digests |= digests

    def watch(self, names: Sequence[str]) -> None:
        """Note what is in the named columns in each pass that reads them and others, too, so that a later
        pass over the named ones alone ends if they changed.
        """
        self._watched = tuple(names)

    def changed(self) -> InputError:
        """The error that two passes see other tables."""
        return InputError("the table changed while it was read", "read one that does not change", source=self.source)

    def count(self) -> int:
        """Number of rows; the table is read unless a pass has counted them."""
        if self._rows is None:
            for _ in self.chunks(names=()):
                pass
        assert self._rows is not None
        return self._rows

    @abstractmethod
    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        """Blocks of one pass over the named columns."""


def unique_columns(columns: dict[str, str], names: Sequence[str], source: str) -> dict[str, str]:
    """The columns; `InputError` if there are none, or two have one name."""
    if not columns or len(columns) < len(names):
        problem = "two columns have one name" if columns else "the table has no columns"
        raise InputError(problem, "it must have columns of different names", source=source)
    return columns


def objects(values: list[Any]) -> Values:
    """Array of objects, shape (N,)."""
    found = np.empty(len(values), object)
    found[:] = values
    return found


def converted(whole: Callable[[], list[Any]], one: Callable[[int], Any], count: int) -> Values:
    """Values that a package converts, as objects; those that it refuses are unreadable.

    Parameters
    ----------
    whole : converts all values.
    one : converts the value of an index, if `whole` refuses some value.
    count : number of values.
    """
    try:
        return objects(whole())
    except REFUSALS:
        pass  # one by one below, so that an error can name the row
    found = []
    for index in range(count):
        try:
            found.append(one(index))
        except REFUSALS:
            found.append(UNREADABLE_VALUE)
    return objects(found)


def _digest(rows: Iterable[tuple[Any, ...]]) -> int:
    """Sum of the hashes of rows; of their texts, because each NaN has its own hash."""
    total = 0
    for row in rows:
        try:
            total += hash(repr(row))
        except REFUSALS:  # a whole number of more digits than Python writes, or an object without text
            total += hash(tuple(hex(x) if isinstance(x, int) else type(x).__name__ for x in row))
    return total


STANDARD_INPUT = "-"
DELIMITERS = ",;\t"
"""Delimiters that are detected in the header."""

LONGEST_LINE = 2**24
"""Largest number of characters in a line."""

MOST_UNPACKED = 2**38
"""Largest number of characters that a file in gzip may hold."""

IN_MEMORY = 2**26
"""Bytes of standard input that are kept in memory; more go to a file without a name."""

GZIP = b"\x1f\x8b"  # no text in UTF-8 begins so
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
_spools: WeakKeyDictionary[Any, IO[bytes]] = WeakKeyDictionary()


class CsvTable(Table):
    """Separated values in UTF-8, with a line of column names; blank lines are skipped.

    Parameters
    ----------
    path : file, plain or in gzip; `-` is standard input, which is kept in memory or in a temporary
        file that has no name and that nobody else can open.
    names : public names of columns, of a schema. If the first line has all of them, it is the line
        of names even where names are numbers.
    delimiter : character between cells, or `tab`; by default detected from the first line, never
        from values.

    Raises
    ------
    InputError : the file cannot be read, is empty, or its first line is none of names.
    """

    def __init__(self, path: str, names: Sequence[str] = (), delimiter: str = "") -> None:
        self._path = path
        source = "<standard input>" if path == STANDARD_INPUT else path
        self.source = source
        with self._text() as lines:
            first = _first_record(lines)
        if not first:
            raise InputError("the file is empty", "it must have a line of column names, then rows", source=source)
        self._delimiter = given_delimiter(delimiter) or _detected(first, names, source)
        with self._reader() as reader:
            header: list[str] = next(filter(None, reader), [])
        known = bool(names) and set(names) <= set(header)
        if delimiter and not known and self._delimiter not in first and (others := _delimiters(first)):
            problem = f"the header has {_listed(others)} and no {_listed([self._delimiter])}"
            raise InputError(problem, "give another --delimiter, or leave it out", source=source, line=1)
        if any(map(is_number, header)) and not known:
            raise InputError(
                "the header has a number in it",
                "the first line must be column names; names that are numbers must be those of the schema",
                source=source,
                line=1,
            )
        super().__init__(source, unique_columns(dict.fromkeys(header, "text"), header, source))

    @contextmanager
    def _text(self) -> Iterator[Iterator[str]]:
        """Lines of the text."""
        try:
            with _opened(self._path) as (file, unpacked):
                yield _lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), unpacked, self.source)
        except DAMAGE:
            raise InputError("it is damaged", "it must be a whole file in gzip", source=self.source) from None
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", source=self.source) from None
        except UnicodeDecodeError:
            raise InputError(
                "it is not UTF-8", "it must be CSV in UTF-8", source=self.source, line=self._not_utf8()
            ) from None

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        with self._text() as lines:
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            try:
                yield reader
            except csv.Error as error:
                problem, remedy = str(error), "it must be CSV"
                if "field limit" in problem:
                    problem = f"a cell has more than {csv.field_size_limit():,} characters"
                    remedy = "cells must be shorter; a quotation mark may lack its partner"
                raise InputError(problem, remedy, source=self.source, line=reader.line_num) from None

    def _not_utf8(self) -> int | None:
        """Number of the first line that is not UTF-8."""
        with suppress(*DAMAGE, OSError), _opened(self._path) as (file, _):
            for number, line in enumerate(iter(partial(file.readline, 4 * LONGEST_LINE), b""), 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
        return None

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        widths = {0, len(self.columns)}
        places = {name: list(self.columns).index(name) for name in names}
        with self._reader() as reader:
            if next(filter(None, reader), []) != list(self.columns):
                raise self.changed()
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
            raise InputError(problem, "every row must have as many", source=self.source, line=reader.line_num)


def given_delimiter(text: str) -> str:
    """The character that `--delimiter` names; `InputError` if it names none."""
    found = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(text, text)
    if found and (len(found) > 1 or found.isalnum() or found in '"\r\n\0\ufeff'):
        raise InputError(f"--delimiter is {text[:20]!r}", "it must be one character such as ';', or tab")
    return found


def _detected(first: str, names: Sequence[str], source: str) -> str:
    """Delimiter of the line of names: the one that gives the schema's names, or the only one in
    it.
    """
    found = _delimiters(first) or [","]
    for character in dict.fromkeys([",", *found]) if names else ():
        if set(names) <= set(_cells(first, character)):
            return character
    if len(found) > 1:
        raise InputError(f"the header has {_listed(found)}", "give --delimiter", source=source, line=1)
    return found[0]


def _delimiters(first: str) -> list[str]:
    """The characters of a line of names, outside of quotation marks, that may be its delimiter."""
    unquoted = re.sub(r'"(?:[^"]|"")*"', "", first)
    return [character for character in DELIMITERS if character in unquoted]


def _listed(characters: Sequence[str]) -> str:
    return " and ".join("a tab" if character == "\t" else repr(character) for character in characters)


def _cells(first: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def _first_record(lines: Iterator[str]) -> str:
    """Text of the first line that is not blank, and of those that its quoted names go on in."""
    found = ""
    for line in lines:
        found += line if found or line.strip("\r\n") else ""
        if found and (found.count('"') % 2 == 0 or len(found) > LONGEST_LINE):
            break
    return found


def _lines(text: io.TextIOWrapper, unpacked: bool, source: str) -> Iterator[str]:
    """Lines of bounded length, and of bounded sum if they are unpacked: a small file may hold
    any number.
    """
    total = 0
    for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE + 1), ""), 1):
        total += len(line)
        if len(line) > LONGEST_LINE:
            problem = f"the line has more than {LONGEST_LINE:,} characters"
            raise InputError(problem, "every row must be a line", source=source, line=number)
        if unpacked and total > MOST_UNPACKED:
            raise InputError(f"it holds more than {MOST_UNPACKED:,} characters", "unpack it", source=source)
        yield line


@contextmanager
def _opened(path: str) -> Iterator[tuple[Any, bool]]:
    """The bytes of a file or of standard input, and whether they were in gzip; the content shows
    it.
    """
    with open_regular(path) if path != STANDARD_INPUT else io.BufferedReader(_Again(_spool())) as file:
        packed = file.peek(2)[:2] == GZIP
        if packed:
            with gzip.open(file) as inner:
                yield inner, True
        else:
            yield file, False


def _spool() -> IO[bytes]:
    """Everything on standard input, which can be read once, for the passes over it."""
    if sys.stdin is None:
        raise InputError("there is no standard input", "give a file", source=STANDARD_INPUT)
    kept = _spools.get(sys.stdin)
    if kept is None:
        kept = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        while part := sys.stdin.buffer.read(2**20):
            kept.write(part)
        _spools[sys.stdin] = kept
    return kept


class _Again(io.RawIOBase):
    """A pass over a spool, with a place of its own."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool, self._at = spool, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._spool.seek(self._at, os.SEEK_SET)
        part = self._spool.read(len(buffer))
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


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
        parquet, arrow = extra("pyarrow.parquet"), extra("pyarrow")
        try:
            open_regular(self._path).close()
            with parquet.ParquetFile(self._path) as file:
                yield file
        except (arrow.ArrowException, OSError):
            raise InputError("it cannot be read", "it must be a Parquet file", source=self._path) from None
        except UnicodeDecodeError:
            problem = "the name of a column is not UTF-8"
            raise InputError(problem, "it must be a Parquet file", source=self._path) from None

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


def _arrow_storage(kind: Any) -> str:
    types = extra("pyarrow").types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date" if types.is_date(kind) else "datetime"
    return "real" if types.is_floating(kind) or types.is_decimal(kind) else "text"


def _arrow_values(values: Any) -> Values:
    """Values whose type does not depend on where a part begins: whole numbers beside gaps stay
    whole.
    """
    types = extra("pyarrow").types
    if types.is_floating(values.type) or (types.is_integer(values.type) and not values.null_count):
        numbers: Values = values.to_numpy(zero_copy_only=False)
        return numbers
    return converted(values.to_pylist, lambda index: values[index].as_py(), len(values))


def _pandas_storage(kind: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(kind):
        return "boolean"
    if types.is_integer_dtype(kind):
        return "integer"
    if types.is_datetime64_any_dtype(kind):
        return "datetime"
    return "real" if types.is_float_dtype(kind) else "text"


def _pandas_values(values: pd.Series[Any]) -> Values:
    """Numbers of NumPy's types as they are; anything else as objects, with None for missing
    values.
    """
    if values.dtype.kind in "biuf" and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    return converted(lambda: _pandas_list(values), lambda i: _pandas_list(values.iloc[i : i + 1])[0], len(values))


def _pandas_list(values: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)]


_EXPLAINED = ("0A", "25", "42", "SQLITE_")  # classes of errors that are about the query and quote no values
_POSTGRESQL_TYPES = {16: "boolean", 20: "integer", 21: "integer", 23: "integer", 700: "real", 701: "real", 1700: "real"}
_POSTGRESQL_TYPES |= {1082: "date", 1114: "datetime", 1184: "datetime"}


class QueryTable(Table):
    """Streamed rows of a query of SQLite or PostgreSQL, which can write nothing; it needs
    SQLAlchemy.
    """

    def __init__(self, url: str, query: str | None) -> None:
        self._url = parsed_url(url, "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")
        source = shown_url(self._url)
        if query is None:
            raise InputError("a database needs --query", "give one SELECT", source=source)
        self._query = query
        if self._url.get_backend_name() == "sqlite":
            if not (self._url.database and Path(self._url.database).is_file()):
                raise InputError("no such file", "give an SQLite file", source=source)
            self._url = self._url.set(query={})
        else:
            self._url = self._url.set(drivername="postgresql+psycopg")
            extra("psycopg")
        self.source = source
        with self._result(1) as result:
            head = [(entry[0], _POSTGRESQL_TYPES.get(entry[1], "text")) for entry in result.cursor.description]
        super().__init__(source, unique_columns(dict(head), [name for name, _ in head], source))

    @contextmanager
    def _result(self, size: int) -> Iterator[Any]:
        """Result of the query before its rows are fetched, in a transaction that cannot write."""
        alchemy = extra("sqlalchemy")
        engine = alchemy.create_engine(self._url, poolclass=alchemy.pool.NullPool)
        options = {"stream_results": True, "max_row_buffer": size, "no_parameters": True}
        try:
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                if engine.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA query_only = ON")
                    driver.text_factory = _sqlite_text
                else:
                    _read_all_times(driver.adapters)
                    options["postgresql_readonly"] = True
                result = connection.execution_options(**options).exec_driver_sql(self._query)
                if not result.returns_rows:
                    raise InputError("the query returns no rows", "give one SELECT", source=self.source)
                yield result
        except InputError:
            raise
        except alchemy.exc.DBAPIError as error:
            raise self._refusal(error.orig) from None
        except REFUSALS as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Any) -> InputError:
        """Error of the database in one line without passwords; only its class, if it may quote
        values.
        """
        state = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
        postgresql = self._url.get_backend_name() == "postgresql"
        unreached = not state and postgresql and isinstance(error, extra("psycopg").OperationalError)
        if not (unreached or (state or "").startswith(_EXPLAINED)):
            problem = f"the query failed ({state or type(error).__name__})"
            return InputError(problem, "give one SELECT that the database can answer", source=self.source)
        text = without_passwords(str(error).partition("\nLINE")[0], self._url)
        remedy = "the database must be reachable" if unreached else "give one SELECT that the database accepts"
        return InputError(text, remedy, source=self.source)

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        places = {name: list(self.columns).index(name) for name in names}
        with self._result(size) as result:
            for part in result.partitions(size):
                yield len(part), {name: objects([row[i] for row in part]) for name, i in places.items()}


def _sqlite_text(data: bytes) -> str:
    """Text that may be invalid UTF-8; no level and no number is then equal to it."""
    return data.decode("utf-8", "surrogateescape")


def _read_all_times(adapters: Any) -> None:
    """Make psycopg return dates and times beyond Python's range, whose texts its errors quote, as
    unreadable; infinity is a text.
    """
    kinds, refusals = extra("psycopg.types.datetime"), (extra("psycopg").Error, *REFUSALS)

    def tolerant(plain: Any) -> Any:
        class Loader(plain):  # type: ignore[misc]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except refusals:
                    return bytes(data).decode() if bytes(data).endswith(b"infinity") else UNREADABLE_VALUE

        return Loader

    for name in ("Date", "Time", "Timetz", "Timestamp", "Timestamptz", "Interval"):
        adapters.register_loader(name.lower(), tolerant(getattr(kinds, f"{name}Loader")))


def parsed_url(url: str, remedy: str) -> Any:
    """Parsed URL of a database of a known kind; an error shows only its first word."""
    alchemy = extra("sqlalchemy")
    try:
        parsed = alchemy.make_url(url)
    except (alchemy.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in ("sqlite", "postgresql", "postgres"):
        problem = "it is not the URL of a known kind of database"
        raise InputError(problem, remedy, source=url.partition(":")[0] + ":...")
    return parsed


def shown_url(url: Any) -> str:
    """A parsed URL without password and parameters."""
    return str(url.set(query={}).render_as_string(hide_password=True))


def without_passwords(text: str, url: Any) -> str:
    """A message in one line, with `***` for the passwords of a parsed URL."""
    text = " ".join(text.split())
    passwords = {key: value for key, value in url.query.items() if "password" in key.lower()}
    for password in filter(None, (url.password, *passwords.values())):
        text = text.replace(str(password), "***")
    return text
