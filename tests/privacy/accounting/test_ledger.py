import ast
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import file_identity, locked
from thesis_cli.privacy.accounting import ledger as ledger_module
from thesis_cli.privacy.accounting.chain import FORMAT_1, Book
from thesis_cli.privacy.accounting.ledger import FORMAT, HOLDS, Ledger
from thesis_cli.privacy.accounting.storage import FileStorage
from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian, zcdp_epsilon

LIMIT = Budget(1.0, 1e-6)
SPENDING = """
import sys
from thesis_cli.privacy.accounting.ledger import Budget, Ledger
for _ in range(20):
    Ledger(sys.argv[1]).spend("people", Budget(2.0**-6))
"""


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.json")


def one_line(ledger, match, *arguments, **options):
    with pytest.raises(InputError, match=match) as caught:
        ledger.spend(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert str(ledger.storage.source) in str(caught.value)


def left_over(ledger):
    return sorted(path.name for path in ledger.storage.source.parent.iterdir() if path != ledger.storage.source)


def test_spends_add_up_on_the_disk(ledger):
    assert ledger.accounts() == {}
    assert ledger.spend("people", Budget(0.25, 1e-7), "first", limit=LIMIT).epsilon == 0.25
    total = Ledger(ledger.storage.source).spend("people", Budget(0.5, 2e-7), "second")
    assert (total.epsilon, total.delta, total.rule) == (0.75, pytest.approx(3e-7), "basic")
    found = json.loads(ledger.storage.source.read_text())
    assert found["format"] == FORMAT
    assert [(e["table"], e["limit"], e["note"]) for e in found["entries"]] == [
        ("people", {"epsilon": 1.0, "delta": 1e-6}, note) for note in ("first", "second")
    ]
    assert left_over(ledger) == []


def test_overspending_is_refused_with_what_is_left(ledger):
    ledger.spend("people", Budget(0.75, 4e-7), limit=LIMIT)
    before = ledger.storage.source.read_bytes()
    one_line(
        ledger, r"\(0.5, 0\) more .* \(1, 1e-06\) of table people; epsilon 0.25 and delta 6e-07", "people", Budget(0.5)
    )
    one_line(ledger, "delta 6e-07 are left", "people", Budget(0.1, 7e-7))
    assert ledger.storage.source.read_bytes() == before
    ledger.spend("people", Budget(0.25, 6e-7))  # all that is left
    one_line(ledger, "epsilon 0 and delta 0 are left", "people", Budget(1e-9))


def test_tables_have_limits_of_their_own(ledger):
    one_line(ledger, "no budget is set for table people", "people", Budget(0.5))
    assert not ledger.storage.source.exists()
    ledger.spend("people", Budget(1.0), limit=LIMIT)
    ledger.spend("houses", Budget(2.0), limit=Budget(3.0))
    assert ledger.spend("houses", Budget(0.5), limit=Budget(3.0)).epsilon == 2.5
    one_line(ledger, r"budget of table houses is \(3, 0\); it cannot", "houses", Budget(0.1), limit=Budget(30.0))
    one_line(ledger, "would exceed", "fields", Budget(2.0), limit=Budget(1.0))
    assert set(ledger.accounts()) == {"people", "houses"}


def test_gaussian_releases_add_up_by_zcdp(ledger):
    """Basic composition would allow 4 of these."""
    each = OpenDPGaussian().calibrate(3, 1.0, Budget(0.25, 1e-7))
    for spent in range(1, 40):
        total = ledger.spend("people", Budget(0.25, 1e-7), rho=each.rho, limit=LIMIT)
        if zcdp_epsilon((spent + 1) * each.rho, 1e-6) > 1:
            break
        if spent > 1:
            assert total.rule == "zCDP"
            assert total.delta == 1e-6
            assert total.epsilon == pytest.approx(zcdp_epsilon(spent * each.rho, 1e-6))
            assert total.epsilon < 0.25 * spent
    assert spent > 8
    one_line(ledger, "would exceed .* by zCDP composition", "people", Budget(0.25, 1e-7), rho=each.rho)


def test_a_release_that_fits_its_limit_alone_is_taken(ledger):
    found = OpenDPGaussian().calibrate(5, 1.0, LIMIT)
    ledger.spend("people", LIMIT, rho=found.rho, limit=LIMIT)


def test_many_pure_releases_add_up_by_zcdp(ledger):
    """Each has rho = epsilon^2 / 2."""
    limit = Budget(2.0, 1e-3)
    totals = [ledger.spend("people", Budget(0.1), limit=limit) for _ in range(20)]
    assert {total.rule for total in totals[:5]} == {"basic"}
    for spent, total in enumerate(totals, start=1):
        joint = zcdp_epsilon(spent * 0.1**2 / 2, 1e-3)
        assert total.epsilon == pytest.approx(min(0.1 * spent, joint))
        assert total.rule == ("zCDP" if joint < 0.1 * spent else "basic")
    assert totals[-1].rule == "zCDP"


def test_a_release_of_unknown_rho_leaves_basic_composition(ledger):
    ledger.spend("people", Budget(0.1, 1e-7), limit=LIMIT)
    for _ in range(4):
        total = ledger.spend("people", Budget(0.1, 1e-7), rho=1e-9)
    assert total.rule == "basic"
    assert total.epsilon == pytest.approx(0.5)


def test_a_limit_without_delta_takes_pure_releases_only(ledger):
    one_line(ledger, "would exceed", "people", Budget(0.1, 1e-9), rho=1e-9, limit=Budget(1.0))
    for _ in range(10):
        total = ledger.spend("people", Budget(0.1), limit=Budget(1.0))
    assert (total.rule, total.delta) == ("basic", 0)
    one_line(ledger, "epsilon 0 and delta 0 are left", "people", Budget(1e-12))


@pytest.mark.parametrize("rho", [-1.0, float("nan"), float("inf")])
def test_rho_is_checked(ledger, rho):
    with pytest.raises(InputError, match="rho is"):
        ledger.spend("people", Budget(0.1, 1e-9), rho=rho, limit=LIMIT)


SPENT = {"epsilon": 0.1, "delta": 0.0, "rho": None, "note": "", "time": ""}


def written(**spent):
    table = {"limit": {"epsilon": 1, "delta": 0}, "spent": [{**SPENT, **spent}]}
    return json.dumps({"format": FORMAT_1, "tables": {"people": table}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": "another"}',
        json.dumps({"format": FORMAT}),
        json.dumps({"format": FORMAT, "tables": {"people": {"limit": {"epsilon": 1}}}}),
        written(epsilon=-1),
        written(epsilon="1"),
        written(delta=float("nan")),
        written(rho=-1),
        written(rho=float("nan")),
        written(more=1),
        "[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
def test_a_file_that_is_not_a_ledger_is_left_alone(ledger, text):
    content = text if isinstance(text, bytes) else text.encode()
    ledger.storage.source.write_bytes(content)
    one_line(ledger, "a ledger that thesis-cli wrote", "people", Budget(0.1), limit=Budget(1.0))
    assert ledger.storage.source.read_bytes() == content
    assert left_over(ledger) == []


def test_a_ledger_of_format_1_is_read_and_gets_a_chain_with_the_next_spend(ledger):
    ledger.storage.source.write_text(written())
    assert not ledger.book().chained
    assert ledger.accounts()["people"].total().epsilon == 0.1
    assert ledger.spend("people", Budget(0.5)).epsilon == 0.6
    book = ledger.book()
    assert book.chained
    assert (len(book.entries), book.breaks) == (2, ())


def test_a_ledger_in_use_is_one_line(ledger):
    with locked(ledger.storage.source):
        brief = Ledger(ledger.storage.source, wait=0.05)
        one_line(brief, f"in use by process {os.getpid()} for 0.05 s; run", "people", Budget(0.1), limit=LIMIT)
    assert not ledger.storage.source.exists()
    ledger.spend("people", Budget(0.1), limit=LIMIT)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_kill_loses_nothing(ledger, moment):
    ledger.spend("people", Budget(0.5), limit=LIMIT)
    before = ledger.storage.source.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, which this copy does not need
        process = os.fork()
    if process == 0:
        setattr(os, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        try:
            Ledger(ledger.storage.source).spend("people", Budget(0.25), "dies")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert ".ledger.json.lock" in left_over(ledger)
    assert ledger.storage.source.read_bytes() == before
    assert ledger.spend("people", Budget(0.5)).epsilon == 1.0
    assert left_over(ledger) == []


def test_processes_and_threads_lose_no_spend(ledger):
    ledger.spend("people", Budget(2.0**-6), limit=Budget(2.0))
    others = [subprocess.Popen([sys.executable, "-c", SPENDING, ledger.storage.source]) for _ in range(3)]
    code = compile(SPENDING.replace("sys.argv[1]", repr(str(ledger.storage.source))), "spending", "exec")
    threads = [threading.Thread(target=exec, args=(code, {})) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait() for other in others] == [0, 0, 0]
    account = ledger.accounts()["people"]
    assert len(account.spent) == 101
    assert account.total().epsilon == 101 * 2.0**-6
    assert left_over(ledger) == []


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_spends_nothing_and_leaves_nothing(ledger, broken, monkeypatch):
    ledger.spend("people", Budget(0.5), limit=LIMIT)
    before = ledger.storage.source.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"thesis_cli.privacy.accounting.storage.os.{broken}", full)
        with pytest.raises(OSError, match="No space left") as caught:
            ledger.spend("people", Budget(0.1))
    assert caught.value.filename == str(ledger.storage.source)
    assert ledger.storage.source.read_bytes() == before
    assert left_over(ledger) == []


def test_a_link_to_a_ledger_stays_one(ledger, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(ledger.storage.source)
    Ledger(link).spend("people", Budget(0.5), limit=LIMIT)
    assert link.is_symlink()
    assert ledger.spend("people", Budget(0.25)).epsilon == 0.75


def test_names_that_differ_by_case_space_or_composition_share_an_account(ledger):
    ledger.spend("Stra\u00dfe caf\u00e9", Budget(0.25), limit=LIMIT)
    ledger.spend("  STRASSE  cafe\u0301\n", Budget(0.25))
    assert len(ledger.accounts()) == 1
    assert ledger.spend("strasse caf\u00e9", Budget(0.25)).epsilon == 0.75
    one_line(ledger, "name of the table is empty", " \n", Budget(0.1), limit=LIMIT)


def test_accounts_of_format_1_that_are_now_one_share_the_smaller_limit(ledger):
    tables = {
        "People": {"limit": {"epsilon": 3, "delta": 0}, "spent": [SPENT]},
        "people": {"limit": {"epsilon": 1, "delta": 1e-6}, "spent": [SPENT]},
    }
    ledger.storage.source.write_text(json.dumps({"format": FORMAT_1, "tables": tables}))
    (account,) = ledger.accounts().values()
    assert (account.limit, account.total().epsilon) == (Budget(1, 0), 0.2)


def test_an_entry_of_rho_0_costs_nothing_by_zcdp(ledger):
    table = {"limit": {"epsilon": 1, "delta": 1e-6}, "spent": [{**SPENT, "delta": 1e-7, "rho": 0}]}
    ledger.storage.source.write_text(json.dumps({"format": FORMAT_1, "tables": {"people": table}}))
    assert ledger.accounts()["people"].total().epsilon == 0
    assert ledger.spend("people", Budget(0.1, 1e-7), rho=0).epsilon == 0
    huge = Budget(1e308)
    one_line(ledger, "would exceed", "people", huge)
    one_line(ledger, "would exceed", "houses", Budget(1e308, 1e-9), rho=1e300, limit=LIMIT)
    ledger.spend("houses", huge, limit=huge)
    one_line(ledger, "would exceed", "houses", huge)


def test_the_rule_of_an_account_is_fixed_with_its_first_release(ledger):
    """A choice of the smaller total would allow the last spend of each account, and hold at twice
    the delta.
    """
    rho = OpenDPGaussian().calibrate(3, 1.0, Budget(0.1, 1e-8)).rho
    ledger.spend("gauss", Budget(0.1, 1e-8), rho=rho, limit=LIMIT)
    one_line(ledger, "would exceed", "gauss", Budget(0.8))  # 0.9 by plain sums
    one_line(ledger, "add up by zCDP", "gauss", Budget(0.1, 1e-8))
    ledger.spend("plain", Budget(0.1, 1e-7), limit=LIMIT)
    one_line(ledger, "would exceed", "plain", Budget(0.95), rho=1e-9)
    assert {key: account.rule for key, account in ledger.accounts().items()} == {"gauss": "zCDP", "plain": "basic"}


def test_an_account_of_format_1_keeps_the_rule_that_it_is_within(ledger):
    mixed = [{**SPENT, "epsilon": 0.8}, {**SPENT, "delta": 1e-8, "rho": 1e-5}]
    tables = {
        "mixed": {"limit": {"epsilon": 1, "delta": 1e-6}, "spent": mixed},
        "gauss": {"limit": {"epsilon": 1, "delta": 1e-6}, "spent": [mixed[1]] * 9},
        "pure": {"limit": {"epsilon": 1, "delta": 0}, "spent": [SPENT]},
    }
    ledger.storage.source.write_text(json.dumps({"format": FORMAT_1, "tables": tables}))
    assert {k: a.rule for k, a in ledger.accounts().items()} == {"mixed": "basic", "gauss": "zCDP", "pure": "basic"}


def test_what_is_checked_is_not_spent(ledger):
    ledger.check("people", Budget(0.5), limit=LIMIT)
    assert not ledger.storage.source.exists()
    ledger.spend("people", Budget(0.75), limit=LIMIT)
    before = ledger.storage.source.read_bytes()
    with pytest.raises(InputError, match="would exceed"):
        ledger.check("people", Budget(0.5))
    ledger.check("people", Budget(0.25))
    assert ledger.storage.source.read_bytes() == before


def edited(entries, how):
    """Entries of a ledger after somebody changed the file."""
    if how == "less":
        entries[1]["epsilon"] = 0.001
    elif how == "limit":
        entries[2]["limit"]["epsilon"] = 9.0
    elif how == "removed":
        del entries[1]
    elif how == "renumbered":
        del entries[1]
        entries[1]["number"] = 2
    elif how == "moved":
        entries[1], entries[2] = entries[2], entries[1]
    else:
        entries.pop()
    return entries


@pytest.mark.parametrize("how", ["less", "limit", "removed", "renumbered", "moved", "end"])
def test_an_edited_ledger_has_a_broken_chain_and_takes_no_spend(ledger, how):
    for note in "abc":
        ledger.spend("people", Budget(0.1), note, limit=LIMIT)
    found = json.loads(ledger.storage.source.read_text())
    ledger.storage.source.write_text(json.dumps({**found, "entries": edited(found["entries"], how)}))
    assert ledger.book().breaks
    before = ledger.storage.source.read_bytes()
    one_line(ledger, "chain of the ledger is broken: .*nothing is spent", "people", Budget(0.1))
    assert ledger.storage.source.read_bytes() == before


def test_a_noted_head_stays_in_the_chain_and_is_missing_from_a_forged_one(ledger):
    heads = [ledger.spend("people", Budget(0.1), note, limit=LIMIT).head for note in "abc"]
    assert list(ledger.book().digests) == heads
    short = Book.of(ledger.book().entries[:2])
    ledger.storage.source.write_text(short.to_json())  # the end is cut off, and the head is computed anew
    assert ledger.book().breaks == ()
    assert heads[2] not in ledger.book().digests
    assert set(heads[:2]) <= set(ledger.book().digests)


def test_the_file_of_another_account_opens_no_account_by_default(ledger, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("a\n1\n")
    os.link(table, tmp_path / "copy.csv")
    file = file_identity(table)
    assert file == file_identity(tmp_path / "copy.csv")
    ledger.spend("people", Budget(0.1), limit=LIMIT, file=file, named=False)
    options = {"limit": LIMIT, "file": file, "named": False}
    one_line(ledger, "was charged as table people; give --name people", "copy", Budget(0.1), **options)
    assert ledger.spend("copy", Budget(0.1), limit=LIMIT, file=file).epsilon == 0.1
    assert file_identity(tmp_path / "none.csv") is None
    os.utime(table, (1, 1))  # it was written again
    assert file != file_identity(table) == file_identity(tmp_path / "copy.csv")


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "hard link"])
def test_what_is_no_plain_file_is_refused_at_once(ledger, kind, tmp_path):
    path = ledger.storage.source
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = tmp_path / "link"
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        ledger.spend("people", Budget(0.1), limit=LIMIT)
        os.link(path, tmp_path / "other.json")
    with pytest.raises(InputError, match=r"regular file|2 names"):
        Ledger(path).accounts()


def test_temporary_files_follow_no_link_and_are_private(ledger, tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / ".ledger.json.tmp").symlink_to(victim)  # a name that could be guessed
    monkeypatch.setattr("thesis_cli.privacy.accounting.storage.secrets.token_hex", lambda size: "0" * 2 * size)
    modes = []

    def note(file, mode):
        modes.append((os.fstat(file).st_mode & 0o777, mode))

    monkeypatch.setattr("thesis_cli.privacy.accounting.storage.os.fchmod", note)
    ledger.spend("people", Budget(0.1), limit=LIMIT)
    assert modes[-1] == (0o600, 0o600)
    assert victim.read_text() == "untouched"
    assert not ledger.storage.source.is_symlink()


def test_a_spend_under_a_removed_lock_is_refused(ledger, monkeypatch):
    ledger.spend("people", Budget(0.1), limit=LIMIT)
    before = ledger.storage.source.read_bytes()
    read = FileStorage.read

    def meddled(self):
        self.source.with_name(".ledger.json.lock").unlink(missing_ok=True)  # also read before it is locked
        return read(self)

    with monkeypatch.context() as patch:
        patch.setattr(FileStorage, "read", meddled)
        one_line(ledger, "lock was removed meanwhile, and nothing is spent", "people", Budget(0.1))
    assert ledger.storage.source.read_bytes() == before
    assert left_over(ledger) == []


def test_no_message_advises_to_remove_a_lock():
    files = "base/files.py", "privacy/accounting/ledger.py", "privacy/accounting/storage.py"
    texts = "".join((ROOT / "thesis_cli" / name).read_text() for name in files)
    strings = [
        node.value
        for node in ast.walk(ast.parse(texts.replace("from __future__ import annotations", "")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    assert not [text for text in strings if "remove" in text and "removed" not in text]


def test_code_and_pages_say_the_same_of_composition():
    for text in (ledger_module.__doc__, (ROOT / "docs" / "dp-ledger.md").read_text()):
        assert HOLDS in " ".join(text.split()).replace("The limit", "the limit")
