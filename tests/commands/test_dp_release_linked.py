"""Two linked tables by dp-release: data/tables/households.csv and persons.csv."""

import json
import secrets

import numpy as np
import pandas as pd
import pytest

import thesis_cli
import thesis_cli.privacy.release.release  # takes the true noises before a test replaces them
from benchmarks.linked_tables import SCORES, errors, released, tables, unlinked
from tests.conftest import ROOT
from tests.privacy.mechanisms.test_unit_stages import Held
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.release import copula
from thesis_cli.privacy.release.files import read_release

FOLDER = ROOT / "data" / "tables"
HOMES, PERSONS = "households.csv", "persons.csv"
LINK = "--households", HOMES, "--household-schema", "households.toml", "--person", "household"
BOUND = "--contribution-bound", 6
CHARGED = "--ledger", "l.json", "--limit", 3, 1e-5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (HOMES, PERSONS, "households.toml", "persons.toml"):
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    return tmp_path


def arguments(*options):
    return "dp-release", PERSONS, "--schema", "persons.toml", "--epsilon", 1, "--delta", 1e-6, "-q", *options


def test_two_linked_tables_two_records_and_one_charge(cli, folder):
    result = cli(*arguments(*LINK, *BOUND, *CHARGED, "--rows", 500, "--out", "r.csv"))
    assert (result.status, result.err) == (0, "")
    assert "(1, 1e-06)-differential privacy between pairs of tables that differ in one household" in result.out
    homes, people = pd.read_csv("r-households.csv"), pd.read_csv("r.csv")
    assert list(homes) == ["household", "region", "owner", "income", "size"]
    assert list(people) == ["household", "age", "employed", "region", "owner", "income", "size"]
    assert homes.household.tolist() == list(range(1, 501))
    assert people.groupby("household").size().reindex(homes.household, fill_value=0).tolist() == homes["size"].tolist()
    assert homes["size"].max() <= 6
    (account,) = Ledger(folder / "l.json").accounts().values()
    assert [(spend.epsilon, spend.delta) for spend in account.spent] == [(1, 1e-6)]
    assert (account.name, account.unit) == ("persons", "person household, replace")
    records = [read_release(name).record for name in ("r.csv", "r-households.csv")]
    assert sum(record.mechanism.rho for record in records) <= account.spent[0].rho
    for name in ("r.csv", "r-households.csv"):
        assert cli("dp-query", name, "prob(owner)").status == 0


@pytest.mark.parametrize(("table", "schema"), [(HOMES, "households.toml"), (PERSONS, "persons.toml")])
def test_the_ledger_knows_each_table_of_the_pair_by_its_rows(cli, folder, table, schema):
    assert cli(*arguments(*LINK, *BOUND, *CHARGED, "--out", "r.csv")).status == 0
    (folder / "other.csv").write_bytes((folder / table).read_bytes())
    alone = cli("dp-release", "other.csv", "--schema", schema, "--epsilon", 1, "--delta", 1e-6, *CHARGED, "-q")
    assert alone.status == 2
    assert "of its rows with table persons; charge it there by --name persons" in alone.err


def test_a_pair_is_charged_to_the_account_of_one_of_its_tables(cli, folder):
    alone = "dp-release", HOMES, "--schema", "households.toml", "--epsilon", 1, "--delta", 1e-6, "-q"
    assert cli(*alone, *CHARGED, "--out", "h.csv").status == 0
    refused = cli(*arguments(*LINK, *BOUND, *CHARGED, "--out", "r.csv"))
    assert (refused.status, (folder / "r.csv").exists()) == (2, False)
    assert "table persons shares about" in refused.err
    assert cli(*arguments(*LINK, *BOUND, *CHARGED, "--name", "households", "--out", "r.csv")).status == 0


def test_not_a_byte_changes_with_the_tables_when_the_noise_does_not(cli, folder, monkeypatch):
    """Nor a word: other households, renamed keys, other numbers of both tables, other order."""
    monkeypatch.setattr(copula, "OpenDPStages", Held)
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)
    homes, people = (pd.read_csv(folder / name) for name in (HOMES, PERSONS))
    fewer = people[people.household % 3 == 0]
    renamed = [frame.assign(household="x" + (frame.household * 7).astype(str))[::-1] for frame in (homes, people)]
    found = set()
    for own in (
        (homes, people),
        renamed,
        (homes, fewer),
        (homes[homes.household % 3 == 0], fewer),
        (homes, people[:0]),
    ):
        for frame, name in zip(own, (HOMES, PERSONS), strict=True):
            frame.to_csv(folder / name, index=False)
        result = cli(*arguments(*LINK, *BOUND, *CHARGED, "--out", "r.csv"))
        assert result.status == 0, result.err
        files = sorted(folder.glob("r*.*"))
        assert len(files) == 4
        printed = [line for line in result.out.splitlines() if not line.startswith(("cost ", "ledger "))]
        found.add((result.err, *printed, *(file.read_bytes() for file in files)))
        for file in (*files, folder / "l.json"):
            file.unlink()
    assert len(found) == 1


def test_a_dry_run_shows_both_tables_and_spends_nothing(cli, folder):
    before = sorted(folder.iterdir())
    result = cli(*arguments(*LINK, "--contribution-bound", 2, *CHARGED, "--dry-run"))
    assert (result.status, sorted(folder.iterdir())) == (0, before)
    assert "persons.csv: 4,326 rows" in result.out
    assert "households.csv: 2,000 rows" in result.out
    assert "at most 2 for each person" in result.out
    assert result.out.count("errors ") == 2
    (folder / HOMES).write_text((folder / HOMES).read_text().replace("north", "nowhere", 3))
    refused = cli(*arguments(*LINK, *BOUND, "--dry-run"))
    assert refused.status == 1
    assert "households.csv: row 1, column 'region': cannot be read" in refused.out


def test_rows_are_made_again_from_both_records(cli, folder):
    assert cli(*arguments(*LINK, *BOUND, "--out", "r.csv")).status == 0
    for name in (HOMES, PERSONS):
        (folder / name).unlink()
    again = "dp-release", "--again", "r.json", "-q"
    refused = cli(*again, "--out", "s.csv")
    assert (
        refused.err == "error: --again is the record of one of two linked tables; give the other one by --households\n"
    )
    assert cli(*again, "--households", "r-households.json", "--out", "s.csv").status == 0
    for name in ("", "-households"):
        assert (folder / f"r{name}.csv").read_bytes() == (folder / f"s{name}.csv").read_bytes()
    swapped = cli("dp-release", "--again", "r-households.json", "--households", "r.json", "-q", "--out", "u.csv")
    assert "the records are not those of two linked tables" in swapped.err
    assert not list(folder.glob("u*"))


def test_interrupted_rows_keep_both_records(cli, folder, monkeypatch):
    def interrupt(*given, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("thesis_cli.privacy.release.linked._persons", interrupt)
        result = cli(*arguments(*LINK, *BOUND, "--out", "a.csv"))
    assert result.status == 130
    command = "thesis-cli dp-release --again a.json --households a-households.json"
    assert f"a.json keeps the noisy embedding, and {command} makes its rows" in result.err
    assert cli(*command.split()[1:], "-q").status == 0
    assert (folder / "a-households.csv").exists()


def test_python_gives_both_tables(folder):
    given = {"schema": "persons.toml", "household_schema": "households.toml", "epsilon": 1, "delta": 1e-6}
    given |= {"person": "household", "contribution_bound": 6, "rows": 50}
    homes, people = (pd.read_csv(folder / name) for name in (HOMES, PERSONS))
    before = sorted(folder.iterdir())
    found = thesis_cli.dp_release(people, households=homes, **given)
    assert sorted(folder.iterdir()) == before
    assert set(found.table.household) <= set(found.households.table.household) == set(range(1, 51))
    again = thesis_cli.dp_release(again=found, households=found.households, rows=50)
    assert again.table.equals(found.table)
    assert [path.name for path in found.save("p.csv")] == ["p.csv", "p.json", "p-households.csv", "p-households.json"]
    summary = found.to_dict()
    assert summary["household_release"]["promise"]["epsilon"] < summary["promise"]["epsilon"] <= 1
    assert json.loads((folder / "p.json").read_text())["link"] == "household"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (LINK, "--person is given without --contribution-bound"),
        (LINK[:4], "--households is given without --person"),
        ((*LINK[:2], *LINK[4:], *BOUND), "--households is given without --household-schema"),
        ((*LINK[2:], *BOUND), "--household-schema is given without --households"),
        ((*LINK[:5], "home", *BOUND), "households.csv: the table has no column 'home'"),
        ((*LINK[:5], "age", *BOUND), "the key 'age' is a column that would be released"),
        ((*LINK, *BOUND, "--households", "double.csv"), "double.csv: column 'household': row 2001 has the key of an"),
        ((*LINK, *BOUND, "--households", "fewer.csv"), "has a key that no row has of fewer.csv"),
        ((*LINK, *BOUND, "--method", "features"), "--households does not go with --method features"),
        ((*LINK, *BOUND, "--delta", 0), "delta is 0"),
        ((*LINK, *BOUND, "--out", "clash.csv"), "clash-households.csv"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, folder, options, message):
    homes = pd.read_csv(folder / HOMES)
    pd.concat([homes, homes[:1]]).to_csv(folder / "double.csv", index=False)
    homes[:-100].to_csv(folder / "fewer.csv", index=False)
    (folder / "clash-households.csv").write_text("a file of somebody\n")
    before = sorted(folder.iterdir())
    words = list(arguments())
    for name in {"--households", "--delta"} & {*options[-2:]}:  # the last of two counts
        given = [*words, *options[:-2]]
        at = given.index(name)
        words, options = given[:at] + given[at + 2 :], options[-2:]
    result = cli(*words, *options)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert [path for path in sorted(folder.iterdir()) if path.suffix != ".lock"] == before


def test_a_release_keeps_sizes_marginals_and_what_links_both_tables():
    """At epsilon 10, of 2,000 households: within twice the largest error that another sample of the law
    has in eight, and the links far better than those of the same persons in random households."""
    rng = np.random.default_rng(1)
    own = tables(2_000, rng)
    samples = np.array([errors(own, tables(2_000, rng)) for _ in range(8)])
    made = released(own, 10)
    found, lost = (np.array(errors(own, other)) for other in (made, unlinked(made, rng)))
    assert np.all(found < 2 * samples.max(0)), dict(zip(SCORES, found, strict=True))
    assert np.all(found[3:] < lost[3:] / 3)
