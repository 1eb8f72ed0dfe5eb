"""A ledger in a PostgreSQL database, for releases from several machines.

The entries are rows of the table `thesis_cli.ledger`: row 0 has the format and the key, and row n the
entry of that number. Two processes cannot both append entry n, because the number is the primary key;
an advisory lock, which ends with its transaction, lets the second one wait instead of failing. A role
that may only read and insert suffices, and cannot change entries. A trigger refuses changes of all
other roles, until the owner of the table removes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import extra
from thesis_cli.privacy.accounting.chain import FORMAT, Book
from thesis_cli.privacy.accounting.storage import AGAIN, FINAL, REMEDY, Append, Storage, loads
from thesis_cli.privacy.tables.table_kinds import parsed_url, shown_url, without_passwords

logger = logging.getLogger("thesis_cli")

LOCK = 0x7468657369730001
"""Number of the advisory lock."""
REFUSAL = "begin raise exception 'entries of a ledger are never changed'; end"
"""Body of the trigger's function."""
TABLE = f"""
create schema thesis_cli;
create table thesis_cli.ledger (number integer primary key, content text not null);
create function thesis_cli.refuse() returns trigger language plpgsql as $$ {REFUSAL} $$;
create trigger append_only before update or delete or truncate on thesis_cli.ledger
    for each statement execute function thesis_cli.refuse();
alter table thesis_cli.ledger enable always trigger append_only;
"""
SAFE = f"""
select t.relkind = 'r' and t.relpersistence = 'p'
    and exists (select from pg_index i where i.indrelid = t.oid and i.indisprimary and i.indimmediate
                and i.indnkeyatts = 1 and i.indkey[0] = 1)
    and exists (select from pg_trigger g join pg_proc f on f.oid = g.tgfoid where g.tgrelid = t.oid
                and g.tgname = 'append_only' and g.tgenabled = 'A' and g.tgtype = 58
                and g.tgqual is null and g.tgattr = ''::int2vector
                and f.prosrc = $$ {REFUSAL} $$)
    from pg_class t where t.oid = to_regclass('thesis_cli.ledger')
"""
"""Whether the table is an ordinary one, whose rows outlast a crash (not `unlogged`), with the key and the
trigger: before each statement (2) that deletes (8), updates (16) or truncates (32), whatever its columns and
without a condition; no row without a table.
"""
UNSAFE = "the database does not keep entries: the table is not as thesis-cli makes it, or its trigger is off"
WRITABLE = """
select current_setting('transaction_read_only') = 'off',
    coalesce(has_table_privilege(to_regclass('thesis_cli.ledger'), 'INSERT'),
             has_database_privilege(current_database(), 'CREATE'))
"""
SESSION = """
set local search_path to pg_catalog, pg_temp;
set local row_security to off;
set local synchronous_commit to on;
"""
"""No function or operator of others is called; rows that a policy hides are an error; what was charged
outlasts a crash.
"""
CONNECTION = {"connect_timeout": 10, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""Settings by which a server that is gone is noticed."""
FORM = "give a file, or postgresql://USER@HOST/DATABASE"
PARAMETERS = {
    *("host", "port", "service", "options", "application_name", "target_session_attrs", "channel_binding"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"),
}
"""Parameters that a URL may have: of libpq, none of the driver, which could take transactions apart."""


class PostgreSQLStorage(Storage):
    """Rows of a table that nobody may change.

    Parameters
    ----------
    url : `postgresql://USER@HOST/DATABASE` without a password, which libpq takes from `PGPASSWORD` or
        `~/.pgpass`.
    """

    def __init__(self, url: str) -> None:
        found = parsed_url(url, FORM)
        self.source = shown_url(found)
        if found.get_backend_name() == "sqlite":
            raise self._error("a ledger is no SQLite database", FORM)
        if found.password is not None or any("password" in key.lower() for key in found.query):
            problem = "the URL of a ledger has a password, which others may see in the list of processes"
            raise self._error(problem, "leave it out, and set PGPASSWORD or write ~/.pgpass")
        user = found.username or ""
        if ":" in user or not f"{url}{user}{found.host}{found.database}".isprintable():
            raise self._error("the URL has a character that no URL of a ledger has", FORM)
        if unknown := sorted(found.query.keys() - PARAMETERS):
            raise self._error(f"the URL has the parameter {unknown[0]}", f"it may have {', '.join(sorted(PARAMETERS))}")
        self._url = found.set(drivername="postgresql+psycopg")
        self._driver = extra("psycopg")
        try:
            self._arguments = self._url.get_dialect()().create_connect_args(self._url)
        except extra("sqlalchemy").exc.ArgumentError as error:
            raise self._error(without_passwords(str(error), found), FORM) from None

    def read(self) -> Book | None:
        """See `Storage.read`; a table that lets entries be changed is a break of the chain."""
        with self._connection() as connection:
            return self._book(connection)

    def check_writable(self) -> None:
        """Refuse a database that is read-only, and a role that may not insert."""
        with self._connection() as connection:
            changing, allowed = connection.execute(WRITABLE).fetchone()
        if not changing:
            raise self._error("the database is read-only", FINAL)
        if not allowed:
            remedy = "its owner can grant usage on schema thesis_cli, and select and insert on thesis_cli.ledger"
            raise self._error("this role may not write the ledger, and nothing is spent", remedy)

    @contextmanager
    def locked(self, wait: float) -> Iterator[tuple[Book, Append]]:
        """See `Storage.locked`; the transaction ends with the context."""
        with self._connection() as connection:
            self._lock(connection, wait)
            before = self._book(connection)

            def append(book: Book) -> None:
                if before is None:
                    connection.execute(TABLE)
                if not (before and before.key):
                    self._insert(connection, 0, {"format": FORMAT, "key": book.key})
                self._insert(connection, len(book.entries), book.stored()[-1])

            yield before or Book(), append
            try:
                connection.commit()
            except self._driver.Error as error:
                problem = f"the charge was not confirmed: {self._said(error)}"
                raise self._error(problem, "it may count as spent, as thesis-cli dp-ledger shows") from None

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection in a transaction, which is rolled back unless the body commits it."""
        arguments, settings = self._arguments
        connection = None
        try:
            connection = self._driver.connect(*arguments, **{**CONNECTION, **settings})
            connection.isolation_level = self._driver.IsolationLevel.READ_COMMITTED  # statements see what is stored
            connection.execute(SESSION)
            yield connection
        except self._driver.Error as error:
            raise self._refusal(error) from None
        finally:
            if connection is not None:
                connection.close()

    def _refusal(self, error: Any) -> InputError:
        """Error of the database in one line."""
        if error.sqlstate is None:
            remedy = "the server must be reachable, and PGPASSWORD or ~/.pgpass have the password"
            return self._error(f"{self._said(error)}; nothing is spent", remedy)
        if error.sqlstate in ("55P03", "23505"):  # a lock that is not available, a number that is taken
            return self._error("it is in use by another process", AGAIN)
        if error.sqlstate == "25006":
            return self._error("the database is read-only", FINAL)
        return self._error(f"{self._said(error)} ({error.sqlstate})", "nothing is spent")

    def _said(self, error: Any) -> str:
        """Text of an error without rows of the table, which its details may quote."""
        return without_passwords(error.diag.message_primary or str(error), self._url)

    def _lock(self, connection: Any, wait: float) -> None:
        if not connection.execute("select pg_try_advisory_xact_lock(%s)", [LOCK]).fetchone()[0]:
            logger.info("%s is in use by another process: waiting for up to %g s", self.source, wait)
            connection.execute(f"set local lock_timeout to {max(1, round(1000 * wait))}")
            connection.execute("select pg_advisory_xact_lock(%s)", [LOCK])

    def _book(self, connection: Any) -> Book | None:
        """Entries of the table; None if there is no table.

        The schema is looked for first, since the table comes with it, perhaps at this moment.
        """
        (schema,) = connection.execute("select to_regnamespace('thesis_cli')").fetchone()
        safe = connection.execute(SAFE).fetchone()
        if safe is None:
            if schema:
                problem = "the database has the schema thesis_cli without the table ledger, which was removed"
                raise self._error(problem, "restore it, or drop the schema to begin a new ledger; nothing is spent")
            return None
        rows = connection.execute("select number, content from only thesis_cli.ledger order by number").fetchall()
        book = Book()
        if rows:
            book = self._parsed(lambda: _content([loads(content) for _, content in rows]))
        if [number for number, _ in rows] != list(range(len(rows))):
            book = replace(book, breaks=(*book.breaks, "the rows of the table are not numbered from 0"))
        return book if safe[0] else replace(book, breaks=(*book.breaks, UNSAFE))

    def _insert(self, connection: Any, number: int, content: dict[str, Any]) -> None:
        """Add a row, and see that the database has it as it is."""
        row = number, json.dumps(content)
        added = connection.execute("insert into thesis_cli.ledger values (%s, %s) returning number, content", row)
        if added.fetchall() != [row]:
            raise self._error("the database changes what is stored, and nothing is spent", REMEDY)


def _content(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows in the form of a file."""
    first, *entries = rows
    return {**first, "entries": entries, "head": entries[-1]["digest"] if entries else ""}
