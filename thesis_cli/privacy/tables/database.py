"""Queries of SQLite and PostgreSQL as private tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.extras import extra
from thesis_cli.privacy.tables.column import UNREADABLE_VALUE
from thesis_cli.privacy.tables.table_base import REFUSALS, Block, Table, objects, unique_columns

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
