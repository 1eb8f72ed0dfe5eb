import pytest

from tests.commands.test_dp_release import BUDGET, SCHEMA, write
from thesis_cli.base.errors import InputError
from thesis_cli.commands.release.budget import Spending, table_name
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.mechanisms.mechanism import Budget

SPEND = *BUDGET, "--size", 20, "--rows", 10, "--schema", "schema.toml", "--ledger", "l.json", "--quiet"


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 20, 1)
    return tmp_path


def test_links_and_other_names_of_a_file_open_no_account(cli, people):
    (people / "link.csv").symlink_to("people.csv")
    first = cli("dp-release", "people.csv", *SPEND, "--limit", 1.5, 1e-3, "--out", "a.csv")
    assert first.status == 0, first.err
    assert f"head {Ledger('l.json').book().head}" in first.out
    linked = cli("dp-release", "link.csv", *SPEND, "--limit", 1.5, 1e-3, "--out", "b.csv")
    assert linked.status == 2
    assert "would exceed the budget" in linked.err
    (people / "hard.csv").hardlink_to(people / "people.csv")
    hard = cli("dp-release", "hard.csv", *SPEND, "--limit", 1.5, 1e-3, "--out", "c.csv")
    assert hard.status == 2
    assert "was charged as table people" in hard.err
    assert len(Ledger("l.json").book().entries) == 1


def test_a_budget_that_is_spent_is_refused_before_the_table_is_read(cli, people, monkeypatch):
    Ledger("l.json").spend("people", Budget(1.4), limit=Budget(1.5))

    def read(*_, **__):
        raise AssertionError("the table is read")

    monkeypatch.setattr("thesis_cli.privacy.tables.table.open_table", read)
    before = (people / "l.json").read_bytes()
    result = cli("dp-release", "people.csv", *SPEND, "--out", "a.csv")
    assert result.status == 2
    assert "would exceed" in result.err
    assert (people / "l.json").read_bytes() == before
    other = cli("dp-release", "people.csv", *SPEND, "--name", "others", "--limit", 9, 1e-3, "--out", "a.csv")
    assert "AssertionError" in other.err


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("people.csv", "people"),
        ("../{folder}/./people.csv", "people"),
        ("link.csv", "people"),
        ("sqlite:///link.csv?mode=ro", "people"),
        ("people.csv.gz", "people"),
        ("postgresql://me:secret@host/survey?sslkey=k", "survey"),
        ("-", ""),
        (object(), ""),
    ],
)
def test_default_names(people, table, name):
    (people / "link.csv").symlink_to("people.csv")
    assert table_name(table.format(folder=people.name) if isinstance(table, str) else table) == name


def test_a_table_without_a_name_has_no_account(tmp_path):
    with pytest.raises(InputError, match="give --name"):
        Spending.of(tmp_path / "l.json", object(), None, None, "")
