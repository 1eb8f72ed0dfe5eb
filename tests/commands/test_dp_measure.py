import csv
import json
import os

import numpy as np
import pandas as pd
import pytest

import thesis_cli
from tests.commands.test_dp_release import SCHEMA, write
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import locked
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.measure import measure
from thesis_cli.privacy.mechanisms.mechanism import Noised

QUERIES = "mean(years)", "count(wage > 400, by=region)", "quantile(wage, 0.9)"
RUN = "people.csv", *QUERIES, "--schema", "schema.toml", "--epsilon", 1, "--quiet"
OUT = "results/runs/dp-measure-people.csv"


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 200, 1)
    return tmp_path


class Forgetful:
    """Noise that forgets what it is given: its answer is always the same."""

    def __init__(self, real):
        self.calibrate = real.calibrate

    def add(self, vector, l2_sensitivity, budget):
        answer = np.random.default_rng(0).normal(size=vector.size)
        return Noised(answer, self.calibrate(vector.size, l2_sensitivity, budget))


def test_answers_record_and_ledger(cli, people):
    result = cli("dp-measure", *RUN, "--delta", 1e-4, "--ledger", "l.json", "--limit", 2, 1e-4)
    assert (result.status, result.err) == (0, "")
    assert "(1, 0.0001)-differential privacy of each of the 200 rows" in result.out
    assert f"head {Ledger('l.json').book().head}" in result.out
    with open(people / OUT) as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query", "group", "statistic", "value", "low", "high", "note"]
    assert [(row["query"], row["group"]) for row in rows] == [
        (QUERIES[0], ""),
        (QUERIES[1], "north"),
        (QUERIES[1], "south"),
        (QUERIES[2], ""),
    ]
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)
    record = json.loads((people / OUT).with_suffix(".json").read_text())
    assert record["promise"]["rows"] == 200
    assert (len(record["vector"]), len(record["choices"])) == (3, 3)
    assert "make_gaussian" in record["mechanism"]["mechanism"]
    (account,) = Ledger("l.json").accounts().values()
    assert account.spent[0].rho == record["rho"]
    assert account.spent[0].note == "measurement, dp-measure-people.csv"


def test_measurements_and_releases_share_an_account(cli, people):
    account = "--ledger", "l.json", "--limit", 1.5, 0
    assert cli("dp-measure", *RUN, *account).status == 0
    release = "dp-release", "people.csv", "--schema", "schema.toml", "--epsilon", 1, "--noise", "laplace", "--size", 20
    second = cli(*release, *account, "--quiet")
    assert second.status == 2
    assert "would exceed the budget (1.5, 0) of table people; epsilon 0.5" in second.err


@pytest.mark.parametrize("delta", [0, 1e-3])
def test_not_a_byte_changes_with_the_table_when_the_noise_does_not(cli, people, monkeypatch, delta):
    real = measure.Plan.noise
    monkeypatch.setattr(measure.Plan, "noise", lambda plan: Forgetful(real(plan)))
    monkeypatch.setattr(measure, "opendp_choose", lambda scores, scale, gaussian: 7)
    found = []
    for seed in (1, 2):
        write(people / "people.csv", 200, seed)
        arguments = (
            "mean(wage, by=region)",
            "count(by=[region, wage > 9], whole=True)",
            "histogram(years)",
            "prob(wage > years, where=years > 3)",
        )
        result = cli("dp-measure", *RUN, *arguments, "--delta", delta, "--ledger", "l.json", "--limit", 2, 0.1)
        assert result.status == 0, result.err
        timed = "cost ", "ledger "
        printed = [line for line in result.out.splitlines() if not line.startswith(timed)]
        files = sorted((people / "results" / "runs").iterdir())
        assert len(files) == 2
        found.append((printed, result.err, [file.read_bytes() for file in files]))
        for file in (*files, people / "l.json"):
            file.unlink()
    assert found[0] == found[1]


def test_a_measurement_of_persons_hides_their_number_and_is_charged_for_them(cli, people, monkeypatch):
    real = measure.Plan.noise
    monkeypatch.setattr(measure.Plan, "noise", lambda plan: Forgetful(real(plan)))
    found = []
    for count in (200, 90):
        write(people / "people.csv", count, count)
        table = pd.read_csv(people / "people.csv", dtype=str, keep_default_na=False)
        table.assign(who=[f"p{i % 70}" for i in range(count)]).to_csv(people / "people.csv", index=False)
        persons = "--person", "who", "--contribution-bound", 2, "--delta", 1e-5
        queries = "people.csv", "count()", "mean(years)", "count(by=[region])", *RUN[4:]
        result = cli(
            "dp-measure", *queries, *persons, "--out", f"{count}.csv", "--ledger", "l.json", "--limit", 3, 1e-4
        )
        assert result.status == 0, result.err
        shown = [
            line for line in result.out.splitlines() if not line.startswith(("cost", "ledger", "spent", "answers"))
        ]
        files = [(people / f"{count}.{kind}").read_bytes() for kind in ("csv", "json")]
        found.append((shown, result.err, files))
    assert found[0] == found[1]
    assert "tables that differ in all rows of one person; at most 2 rows of each person count" in found[0][0][-4]
    assert "is guessed right no more often than 56.2 %" in found[0][0][-3]
    assert {account.unit for account in Ledger("l.json").accounts().values()} == {"person who, replace"}
    alone = cli("dp-measure", *RUN, "--person", "who")
    assert "--person and --contribution-bound go together" in alone.err


def test_the_budget_is_spent_before_the_noise_and_a_failure_says_so(cli, people, monkeypatch):
    class Failing(Forgetful):
        def add(self, vector, l2_sensitivity, budget):
            assert len(Ledger("l.json").book().entries) == 1
            raise OSError(28, "No space left on device")

    real = measure.Plan.noise
    monkeypatch.setattr(measure.Plan, "noise", lambda plan: Failing(real(plan)))
    result = cli("dp-measure", *RUN, "--ledger", "l.json", "--limit", 2, 0)
    assert result.status == 1
    assert "the budget (1, 0) counts as spent, and no file keeps the measurement" in result.err
    assert not (people / OUT).exists()


def test_nothing_is_overwritten_and_nothing_is_spent_for_a_name_that_is_taken(cli, people):
    spending = "--ledger", "l.json", "--limit", 5, 0
    assert cli("dp-measure", *RUN, *spending).status == 0
    before = (people / OUT).read_bytes()
    for more in ((), ("--overwrite",)):
        again = cli("dp-measure", *RUN, *spending, *more)
        assert again.status == 2
        assert "its budget was spent" in again.err
    (people / "r.json").write_text("{}")
    assert cli("dp-measure", *RUN, *spending, "--out", "r.csv").status == 2
    with locked(people / "s.json"):
        busy = cli("dp-measure", *RUN, *spending, "--out", "s.csv")
    assert f"in use by process {os.getpid()}" in busy.err
    assert (people / OUT).read_bytes() == before
    assert len(Ledger("l.json").book().entries) == 1


def test_a_dry_run_spends_and_writes_nothing(cli, people):
    before = sorted(people.rglob("*"))
    result = cli("dp-measure", *RUN, "--dry-run", "--ledger", "l.json", "--limit", 2, 0)
    assert result.status == 0
    assert "mean +- " in result.out
    assert "share of ranks" in result.out
    assert sorted(people.rglob("*")) == before
    refused = cli("dp-measure", *RUN, "--dry-run", "--ledger", "l.json", "--limit", 0.5, 0)
    assert "would exceed" in refused.err


def test_bad_cells_name_their_place_and_spend_nothing(cli, people):
    with open(people / "people.csv", "a") as file:
        file.write("secret,3,north,x\n")
    result = cli("dp-measure", *RUN, "--ledger", "l.json", "--limit", 2, 0)
    assert result.status == 2
    assert "row 201" in result.err
    assert "secret" not in result.err
    assert not (people / "l.json").exists()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("people.csv", "mean(years)", "--epsilon", 1), "--schema is missing"),
        (("people.csv", "mean(years)", "--schema", "schema.toml"), "--epsilon is missing"),
        ((*RUN, "--name", "x"), "without --ledger"),
        (("people.csv", "mean(1 / years)", "--schema", "schema.toml", "--epsilon", 1), "clamp"),
        (("none.csv", *RUN[1:]), "no such file"),
    ],
)
def test_bad_arguments_are_one_line(cli, people, arguments, match):
    result = cli("dp-measure", *arguments)
    assert result.status == 2
    assert match in result.err
    assert result.err.count("\n") == 1


def test_python_writes_no_file_and_a_large_budget_is_exact(people):
    before = sorted(people.rglob("*"))
    found = thesis_cli.dp_measure("people.csv", ["mean(years)", "median(years)"], schema="schema.toml", epsilon=1e4)
    with open(people / "people.csv") as file:
        years = [float(row["years"]) for row in csv.DictReader(file)]
    assert found.table["value"].tolist() == pytest.approx([np.mean(years), sorted(years)[99]], abs=0.01)
    assert found.figure() is not None
    assert sorted(people.rglob("*")) == before
    dry = thesis_cli.dp_measure("people.csv", ["mean(years)"], schema="schema.toml", epsilon=1, dry_run=True)
    with pytest.raises(InputError, match="dry run"):
        dry.figure()
