"""A ledger in a database: the checks of `test_ledger`, with the database as an adversary."""

import contextlib
import os
import re
import signal
import warnings

import pytest

from tests.commands.test_dp_release import BUDGET, SCHEMA, write
from tests.conftest import ROOT
from tests.privacy.conftest import PASSWORD, free_port
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.accounting import postgresql
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.accounting.postgresql import PostgreSQLStorage
from thesis_cli.privacy.mechanisms.mechanism import Budget

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.integration

LIMIT, EACH = Budget(1.0, 1e-6), Budget(2.0**-4)


def forked(work):
    """Number of a process that does some work; its status is 0 if that ends without an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, which this copy does not need
        process = os.fork()
    if process == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return process


def status(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.fixture(scope="session")
def database(postgres):
    """A database of these tests, as old as the server, since a process may come back to them after others. To
    make one for each test, and to remove them, takes half a minute."""
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("create database ledgers")
    return postgres.replace("/postgres", "/ledgers")


@pytest.fixture
def base(database, monkeypatch):
    """The database, empty, and its owner's connection; the password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with psycopg.connect(database, autocommit=True) as connection:
        own = "datname = current_database() and pid <> pg_backend_pid()"
        connection.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {own}")
        connection.execute("drop schema if exists thesis_cli, public cascade; create schema public")
        for (name,) in connection.execute("select rolname from pg_roles where rolname like 'reader%'").fetchall():
            connection.execute(f"drop owned by {name}; drop role {name}")
        connection.execute("grant connect on database ledgers to public")
        yield connection


@pytest.fixture
def url(database, base):
    return database.replace(f":{PASSWORD}", "")


@pytest.fixture
def ledger(url):
    return Ledger(url)


def role(base, url, *grants):
    """URL for a role of these rights."""
    name = f"reader_{base.info.dbname}"
    base.execute(f"create role {name} login password '{PASSWORD}'")
    for grant in grants:
        base.execute(f"grant {grant} to {name}")
    return url.replace("steward@", f"{name}@")


INSERTING = "usage on schema thesis_cli", "select, insert on thesis_cli.ledger"


def one_line(url, match, *arguments, **options):
    with pytest.raises(InputError, match=match) as caught:
        Ledger(url, wait=0.05).spend(*arguments, **options)
    told = str(caught.value)
    assert "\n" not in told
    assert PASSWORD not in told
    return told


def rows(base):
    return base.execute("select count(*) from thesis_cli.ledger").fetchone()[0]


def test_spends_add_up_and_the_chain_is_that_of_a_file(ledger, url, base, tmp_path):
    assert ledger.storage.read() is None
    ledger.check("people", EACH, limit=LIMIT)
    one_line(url, "no budget is set", "people", EACH)
    assert ledger.storage.read() is None
    first = ledger.spend("people", Budget(0.25, 1e-7), "first", limit=LIMIT)
    total = Ledger(url).spend("\uff30eople", Budget(0.5, 2e-7), "caf\u00e9")
    assert (first.epsilon, total.epsilon, rows(base)) == (0.25, 0.75, 3)
    book = ledger.book()
    assert (book.head, book.breaks, book.entries[1].spend.note) == (total.head, (), "caf\u00e9")
    copy = Ledger(tmp_path / "copy.json")
    copy.storage.source.write_text(book.to_json())
    assert copy.book() == book
    one_line(url, r"would exceed the budget .* epsilon 0.25", "people", Budget(0.5))
    one_line(url, "looks like people", "pe0ple", EACH, limit=LIMIT)
    one_line(url, "cannot be changed", "people", EACH, limit=Budget(9.0))
    assert rows(base) == 3


def test_processes_never_overspend(ledger, url, base):
    ledger.spend("people", EACH, limit=LIMIT)

    def spend_all():
        with contextlib.suppress(InputError):
            while True:
                Ledger(url).spend("people", EACH)

    others = [forked(spend_all) for _ in range(2)]
    assert [status(other) for other in others] == [0, 0]
    (account,) = ledger.accounts().values()
    assert (len(account.spent), account.total().epsilon) == (16, 1.0)
    assert ledger.book().breaks == ()


def test_a_table_that_another_process_makes_meanwhile_is_not_called_removed(ledger, url, base, monkeypatch):
    connect = psycopg.connect

    class Slow(psycopg.Connection):
        """The first release of another process ends after the first statement about the ledger."""

        def execute(self, query, *arguments):
            result = super().execute(query, *arguments)
            if "thesis_cli" in str(query) and psycopg.connect != connect:
                monkeypatch.setattr(psycopg, "connect", connect)
                Ledger(url).spend("people", EACH, limit=LIMIT)
            return result

    monkeypatch.setattr(psycopg, "connect", Slow.connect)
    assert len(ledger.book().entries) == 1


def test_without_the_lock_the_primary_key_refuses_the_second(ledger, url, base, monkeypatch):
    """Of two that have read the same entries, one is refused."""
    ledger.spend("people", Budget(0.25), limit=LIMIT)
    before = ledger.book()
    ledger.spend("people", Budget(0.5))
    monkeypatch.setattr(PostgreSQLStorage, "_book", lambda *_: before)
    one_line(url, "in use by another process; run the command again", "people", Budget(0.5))
    assert rows(base) == 3


def test_one_that_waits_too_long_is_told(ledger, url, base):
    ledger.spend("people", EACH, limit=LIMIT)
    with psycopg.connect(url) as other:
        other.execute("select pg_advisory_xact_lock(%s)", [postgresql.LOCK])
        one_line(url, "in use by another process", "people", EACH)
    ledger.spend("people", EACH)


def test_a_killed_transaction_leaves_nothing(ledger, url, base, monkeypatch):
    """Neither of the first spend, which makes the table, nor of another."""
    for spent in (0.0, 0.5):
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "commit", lambda self: os.kill(os.getpid(), signal.SIGKILL))
            killed = forked(lambda: Ledger(url).spend("people", Budget(0.5), limit=LIMIT))
        assert status(killed) == -signal.SIGKILL
        assert sum(account.total().epsilon for account in ledger.accounts().values()) == spent
        ledger.spend("people", Budget(0.5), limit=LIMIT)
    assert ledger.accounts()["people"].total().epsilon == 1.0


@pytest.mark.parametrize(
    "change",
    [
        "update thesis_cli.ledger set content = content where number = 1",
        "delete from thesis_cli.ledger where number = 1",
        "truncate thesis_cli.ledger",
        "set session_replication_role to replica; delete from thesis_cli.ledger",
        "insert into thesis_cli.ledger values (1, '') on conflict (number) do update set content = ''",
    ],
)
def test_entries_are_never_changed(ledger, url, base, change):
    """Also by the owner, who is an administrator of this server."""
    ledger.spend("people", EACH, limit=LIMIT)
    with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
        base.execute(change)
    base.execute("reset session_replication_role")
    with psycopg.connect(role(base, url, *INSERTING), autocommit=True) as inserting:  # noqa: SIM117
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            inserting.execute(change)
    assert ledger.spend("people", EACH).epsilon == 2 * EACH.epsilon


@pytest.mark.parametrize(
    "change",
    [
        "alter table thesis_cli.ledger disable trigger append_only",
        "alter table thesis_cli.ledger enable trigger append_only",
        "drop trigger append_only on thesis_cli.ledger",
        *(
            f"create or replace trigger append_only before update{of} or delete or truncate on thesis_cli.ledger "
            f"for each statement{when} execute function thesis_cli.refuse(); "
            "alter table thesis_cli.ledger enable always trigger append_only"
            for of, when in ((" of number", ""), ("", " when (false)"))
        ),
        "create or replace function thesis_cli.refuse() returns trigger language plpgsql as 'begin return null; end'",
        "alter table thesis_cli.ledger set unlogged",
        "alter table thesis_cli.ledger drop constraint ledger_pkey",
        "insert into thesis_cli.ledger values (7, '{}')",
        "insert into thesis_cli.ledger select 2, content from thesis_cli.ledger where number = 1",
    ],
)
def test_a_table_that_does_not_keep_entries_takes_no_spend(ledger, url, base, change):
    ledger.spend("people", EACH, limit=LIMIT)
    base.execute(change)
    try:
        broken = bool(ledger.book().breaks)
    except InputError as error:
        broken = "not a privacy ledger" in str(error)
    assert broken
    before = rows(base)
    one_line(url, "chain of the ledger is broken|not a privacy ledger", "people", EACH)
    assert rows(base) == before


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("create rule lost as on insert to thesis_cli.ledger do instead nothing", "changes what is stored|0A000"),
        (
            "create function less() returns trigger language plpgsql as"
            " $$ begin new.content = replace(new.content, '0.0625', '0.01'); return new; end $$;"
            " create trigger less before insert on thesis_cli.ledger for each row execute function less()",
            "the database changes what is stored",
        ),
        (
            "create policy first on thesis_cli.ledger for select using (number = 0);"
            " create policy all_new on thesis_cli.ledger for insert with check (true)",
            "query would be affected by row-level security",
        ),
        ("drop table thesis_cli.ledger", "without the table ledger, which was removed"),
        ("revoke insert on thesis_cli.ledger from {role}", "may not write the ledger"),
        ("revoke select on thesis_cli.ledger from {role}", "permission denied"),
        ("revoke usage on schema thesis_cli from {role}", "permission denied for schema"),
        ("alter role {role} set default_transaction_read_only to on", "the database is read-only"),
        ("revoke connect on database {base} from public", "permission denied for database"),
        ("alter role {role} nologin", "not permitted to log in"),
    ],
)
def test_what_hides_or_alters_entries_takes_no_spend(ledger, url, base, change, match):
    ledger.spend("people", EACH, limit=LIMIT)
    reader = role(base, url, *INSERTING)
    base.execute("alter table thesis_cli.ledger enable row level security" * ("policy" in change))
    base.execute(change.format(role=reader.partition("//")[2].partition("@")[0], base=base.info.dbname))
    one_line(url if "drop" in change else reader, match, "people", EACH, limit=LIMIT)
    if "drop" not in change:
        assert rows(base) == 2


def test_a_wrong_password_and_a_server_that_is_away_are_one_line(ledger, url, base, monkeypatch, tmp_path):
    ledger.spend("people", EACH, limit=LIMIT)
    one_line(url.replace("127.0.0.1:", "127.0.0.1:1"), "port|range", "people", EACH)
    away = re.sub(r":\d+/", f":{free_port()}/", url)
    one_line(away, r"[Cc]onnection refused.*the server must be reachable, and PGPASSWORD or ~/.pgpass", "people", EACH)
    monkeypatch.setenv("PGPASSWORD", f"{PASSWORD}x")
    one_line(url, "password authentication failed for user", "people", EACH)
    monkeypatch.delenv("PGPASSWORD")
    one_line(url, "no password supplied", "people", EACH)
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:*:*:steward:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert ledger.spend("people", EACH).epsilon == 2 * EACH.epsilon


@pytest.mark.parametrize(
    "form",
    [
        "postgresql://u:{}@h/b",
        "postgres://u:{}@h/b?sslmode=require",
        "postgresql+psycopg://u@h/b?password={}",
        "postgresql://u@h/b?sslpassword={}",
        "postgresql:/u:{}@h/b",
        "sqlite:///{}",
        "mysql://u:{}@h/b",
    ],
)
def test_a_url_with_a_password_or_of_another_database_is_refused(form):
    with pytest.raises(
        InputError, match=r"list of processes; leave it out, and set PGPASSWORD|no SQLite|known kind"
    ) as told:
        Ledger(form.format(PASSWORD))
    assert PASSWORD not in str(told.value).replace(f"sqlite:///{PASSWORD}", "")


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("%00", "a character"),
        ("?autocommit=true", "the parameter autocommit; it may have application_name"),
        ("?row_factory=x", "the parameter row_factory"),
        ("?conninfo=dbname%3Db", "the parameter conninfo"),
        ("?port=1&port=2", "ports"),
    ],
)
def test_a_url_that_steers_the_driver_is_refused(rest, problem):
    with pytest.raises(InputError, match=problem):
        Ledger("postgresql://u@h/b" + rest)
    with pytest.raises(InputError, match="a character"):
        Ledger("postgresql://u%3Apassword@h/b")


@pytest.mark.parametrize("moment", ["before", "commit"])
def test_a_lost_connection_is_one_line_that_says_what_is_spent(ledger, url, base, monkeypatch, moment):
    ledger.spend("people", EACH, limit=LIMIT)

    def cut(*_):
        base.execute("select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory'")

    owner, name = (Ledger, "_after") if moment == "before" else (psycopg.Connection, "commit")
    right = getattr(owner, name)

    def meddled(self, *arguments):
        cut()
        return right(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, meddled)
        match = "nothing is spent" if moment == "before" else "charge was not confirmed: .*; it may count as spent, as"
        one_line(url, match, "people", EACH)
    assert ledger.accounts()["people"].total().epsilon == EACH.epsilon


def test_a_role_that_may_only_insert_needs_the_table_of_the_page(ledger, url, base):
    reader = role(base, url)
    one_line(reader, "this role may not write the ledger", "people", EACH, limit=LIMIT)
    page = (ROOT / "docs" / "dp-ledger.md").read_text()
    (block,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    name = reader.partition("//")[2].partition("@")[0]
    base.execute(block.replace("stewards", name))
    assert Ledger(reader).book().breaks == ()
    assert Ledger(reader).spend("people", EACH, limit=LIMIT).epsilon == EACH.epsilon
    assert ledger.spend("people", EACH).epsilon == 2 * EACH.epsilon
    assert " ".join(postgresql.TABLE.split()) in " ".join(block.split())


def test_releases_of_a_command_share_a_database_and_write_no_password(cli, url, base, tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 20, 1)
    spend = *BUDGET, "--size", 20, "--rows", 10, "--schema", "schema.toml", "--ledger", url, "--quiet"
    first = cli("dp-release", "people.csv", *spend, "--limit", 1.5, 1e-3, "--out", "a.csv")
    assert first.status == 0, first.err
    assert f"head {Ledger(url).book().head}" in first.out
    second = cli("dp-release", "people.csv", *spend, "--out", "b.csv")
    assert (second.status, "would exceed the budget" in second.err) == (2, True)
    shown = cli("dp-ledger", url, "--out", "l.csv")
    assert (shown.status, f"whole; head {Ledger(url).book().head}" in shown.out) == (0, True)
    assert "no such ledger" in cli("dp-ledger", url.replace(base.info.dbname, "postgres")).err
    assert PASSWORD not in first.out + second.err + shown.out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
