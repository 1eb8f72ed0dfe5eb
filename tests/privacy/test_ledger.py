import errno
import json
import os
import subprocess
import sys
import threading

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.base.locks import locked
from thesis_cli.privacy.ledger import FORMAT, Ledger
from thesis_cli.privacy.mechanism import Budget, OpenDPGaussian, zcdp_epsilon

LIMIT = Budget(1.0, 1e-6)
DYING = """
import os, signal, sys
from thesis_cli.privacy import ledger
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(ledger.os, sys.argv[2], die)
ledger.Ledger(sys.argv[1]).spend("people", ledger.Budget(0.25), "dies")
"""
SPENDING = """
import sys, time
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.ledger import Budget, Ledger
done = 0
while done < 20:
    try:
        Ledger(sys.argv[1]).spend("people", Budget(2.0**-6))
        done += 1
    except InputError as error:
        assert "in use" in str(error), error
        time.sleep(0.001)
"""


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.json")


def one_line(ledger, match, *arguments, **options):
    with pytest.raises(InputError, match=match) as caught:
        ledger.spend(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert str(ledger.path) in str(caught.value)


def left_over(ledger):
    return sorted(path.name for path in ledger.path.parent.iterdir() if path != ledger.path)


def test_spends_add_up_on_the_disk(ledger):
    assert ledger.accounts() == {}
    assert ledger.spend("people", Budget(0.25, 1e-7), "first", limit=LIMIT).epsilon == 0.25
    total = Ledger(ledger.path).spend("people", Budget(0.5, 2e-7), "second")
    assert (total.epsilon, total.delta, total.rule) == (0.75, pytest.approx(3e-7), "basic")
    found = json.loads(ledger.path.read_text())
    assert found["format"] == FORMAT
    assert found["tables"]["people"]["limit"] == {"epsilon": 1.0, "delta": 1e-6}
    assert [s["note"] for s in found["tables"]["people"]["spent"]] == ["first", "second"]
    assert left_over(ledger) == []


def test_overspending_is_refused_with_what_is_left(ledger):
    ledger.spend("people", Budget(0.75, 4e-7), limit=LIMIT)
    before = ledger.path.read_bytes()
    one_line(
        ledger, r"\(0.5, 0\) more .* \(1, 1e-06\) of table people; epsilon 0.25 and delta 6e-07", "people", Budget(0.5)
    )
    one_line(ledger, "delta 6e-07 are left", "people", Budget(0.1, 7e-7))
    assert ledger.path.read_bytes() == before
    ledger.spend("people", Budget(0.25, 6e-7))  # all that is left
    one_line(ledger, "epsilon 0 and delta 0 are left", "people", Budget(1e-9))


def test_tables_have_limits_of_their_own(ledger):
    one_line(ledger, "no budget is set for table people", "people", Budget(0.5))
    assert not ledger.path.exists()
    ledger.spend("people", Budget(1.0), limit=LIMIT)
    ledger.spend("houses", Budget(2.0), limit=Budget(3.0))
    assert ledger.spend("houses", Budget(0.5), limit=Budget(3.0)).epsilon == 2.5
    one_line(ledger, r"budget of table houses is \(3, 0\); it cannot", "houses", Budget(0.1), limit=Budget(30.0))
    one_line(ledger, "would exceed", "fields", Budget(2.0), limit=Budget(1.0))
    assert set(ledger.accounts()) == {"people", "houses"}


def test_gaussian_releases_add_up_by_zcdp(ledger):
    """Basic composition would allow 10 of these."""
    each = OpenDPGaussian().calibrate(3, 1.0, Budget(0.1, 1e-7))
    for spent in range(1, 200):
        total = ledger.spend("people", Budget(0.1, 1e-7), rho=each.rho, limit=LIMIT)
        if zcdp_epsilon((spent + 1) * each.rho, 1e-6) > 1:
            break
        if spent > 1:
            assert total.rule == "zCDP"
            assert total.delta == 1e-6
            assert total.epsilon == pytest.approx(zcdp_epsilon(spent * each.rho, 1e-6))
            assert total.epsilon < 0.1 * spent
    assert spent > 50
    one_line(ledger, "would exceed .* by zCDP composition", "people", Budget(0.1, 1e-7), rho=each.rho)


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
    return json.dumps({"format": FORMAT, "tables": {"people": table}})


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
    ledger.path.write_bytes(content)
    one_line(ledger, "a ledger that thesis-cli wrote", "people", Budget(0.1), limit=Budget(1.0))
    assert ledger.path.read_bytes() == content
    assert left_over(ledger) == []


def test_written_is_a_ledger(ledger):
    ledger.path.write_text(written())
    assert ledger.spend("people", Budget(0.5)).epsilon == 0.6


def test_a_ledger_in_use_is_one_line(ledger):
    with locked(ledger.path):
        one_line(ledger, f"in use by process {os.getpid()}; wait", "people", Budget(0.1), limit=LIMIT)
    assert not ledger.path.exists()
    ledger.spend("people", Budget(0.1), limit=LIMIT)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_kill_loses_nothing(ledger, moment):
    ledger.spend("people", Budget(0.5), limit=LIMIT)
    before = ledger.path.read_bytes()
    killed = subprocess.run([sys.executable, "-c", DYING, ledger.path, moment], capture_output=True)
    assert killed.returncode == -9
    assert ".ledger.json.lock" in left_over(ledger)
    assert ledger.path.read_bytes() == before
    assert ledger.spend("people", Budget(0.5)).epsilon == 1.0
    assert left_over(ledger) == []


def test_processes_and_threads_lose_no_spend(ledger):
    ledger.spend("people", Budget(2.0**-6), limit=Budget(2.0))
    others = [subprocess.Popen([sys.executable, "-c", SPENDING, ledger.path]) for _ in range(3)]
    code = compile(SPENDING.replace("sys.argv[1]", repr(str(ledger.path))), "spending", "exec")
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
    before = ledger.path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"thesis_cli.privacy.ledger.os.{broken}", full)
        with pytest.raises(OSError, match="No space left") as caught:
            ledger.spend("people", Budget(0.1))
    assert caught.value.filename == str(ledger.path)
    assert ledger.path.read_bytes() == before
    assert left_over(ledger) == []


def test_a_link_to_a_ledger_stays_one(ledger, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(ledger.path)
    Ledger(link).spend("people", Budget(0.5), limit=LIMIT)
    assert link.is_symlink()
    assert ledger.spend("people", Budget(0.25)).epsilon == 0.75
