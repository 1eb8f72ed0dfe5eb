import csv
import json

import pytest

from thesis_cli.privacy.accounting.ledger import HOLDS, Ledger
from thesis_cli.privacy.mechanisms.mechanism import Budget

LIMIT = Budget(1.0, 1e-3)


@pytest.fixture
def heads(tmp_path):
    """Heads of a ledger of two tables after each spend."""
    ledger = Ledger(tmp_path / "ledger.json")
    spends = [("People", 0.25), ("houses", 0.5), (" people ", 0.5)]
    return [ledger.spend(name, Budget(epsilon), name, limit=LIMIT).head for name, epsilon in spends]


def test_accounts_entries_and_the_chain(cli, heads, tmp_path):
    result = cli("dp-ledger", "ledger.json", "--out", "l.csv", "--figure", "l.png", "--quiet")
    assert (result.status, result.err) == (0, "")
    assert HOLDS in result.out
    assert f"whole; head {heads[2]}" in result.out
    assert "(0.75, 0) spent, which counts" in result.out
    with open(tmp_path / "l.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["entry"], row["table"].strip(), row["total_epsilon"]) for row in rows] == [
        ("1", "People", "0.25"),
        ("2", "houses", "0.5"),
        ("3", "people", "0.75"),
    ]
    assert [row["digest"] for row in rows] == heads
    assert (tmp_path / "l.png").exists()


def test_one_table_as_json(cli, heads):
    found = json.loads(cli("dp-ledger", "ledger.json", "--table", "PEOPLE", "--json", "--no-out").out)
    (account,) = found["accounts"]
    assert (account["table"], account["rule"], account["releases"]) == ("People", "zCDP", 2)
    assert set(account["totals"]) == {"basic", "zCDP"}
    assert account["spent"] == {"epsilon": 0.75, "delta": 0, "rule": "basic"}
    assert found["chain"] == {"chained": True, "whole": True, "breaks": [], "contains_noted": None, "head": heads[2]}
    missing = cli("dp-ledger", "ledger.json", "--table", "peple")
    assert missing.status == 2
    assert "'People' is nearest" in missing.err


def test_a_broken_chain_and_a_missing_head_have_status_1(cli, heads, tmp_path):
    assert cli("dp-ledger", "ledger.json", "--no-out", "--noted", heads[1][:16].upper()).status == 0
    path = tmp_path / "ledger.json"
    found = json.loads(path.read_text())
    found["entries"][0]["epsilon"] = 1e-9
    path.write_text(json.dumps(found))
    broken = cli("dp-ledger", "ledger.json", "--no-out")
    assert broken.status == 1
    assert "BROKEN" in broken.out
    assert "entry 1 was edited" in broken.out
    path.unlink()
    Ledger(path).spend("people", Budget(0.1), limit=LIMIT)
    lost = cli("dp-ledger", "ledger.json", "--no-out", "--noted", heads[1])
    assert lost.status == 1
    assert "WITHOUT the noted head" in lost.out


def test_bad_arguments_are_one_line(cli):
    assert "no such ledger" in cli("dp-ledger", "none.json").err
    assert "16 or more digits" in cli("dp-ledger", "none.json", "--noted", "12").err
