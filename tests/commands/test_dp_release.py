import csv
import json
import os
import secrets
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thesis_cli
import thesis_cli.privacy.release.release  # takes the true noises before a test replaces them
from tests.privacy.release.test_subspace import Recorder
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.commands import dp_release
from thesis_cli.commands.core.command import command_named
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.release import features, vectors
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.tables import table as privacy_table

ROOT = Path(__file__).parents[2]
SCHEMA = """\
[columns.wage]
type = "real"
low = 10
high = 5000
log = true

[columns.years]
type = "integer"
low = 0
high = 20

[columns.region]
type = "category"
levels = ["north", "south"]
missing = true
"""
BUDGET = "--epsilon", 1, "--delta", 1e-3
FAST = *BUDGET, "--size", 40, "--rows", 30, "--quiet"
OUT = "results/runs/dp-release-people.csv"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """200 rows, a schema, and 9 public rows, in the folder where the program runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 200, 1)
    write(tmp_path / "public.csv", 9, 2)
    return tmp_path


def write(path, count, seed):
    rng = np.random.default_rng(seed)
    wage = np.exp(rng.normal(6, 0.5, count)).round(2)
    region = np.array(["north", "south", ""])[rng.integers(0, 3, count)]
    rest = {"years": rng.integers(0, 21, count), "region": region, "name": "a name that no one may see"}
    pd.DataFrame({"wage": wage, **rest}).to_csv(path, index=False)


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_rows_of_the_schema_and_a_record(cli, people):
    result = cli("dp-release", "people.csv", "--schema", "schema.toml", *FAST)
    assert (result.status, result.err) == (0, "")
    assert "(1, 0.001)-differential privacy of each of the 200 rows" in result.out
    rows = read(people / OUT)
    assert len(rows) == 30
    assert list(rows[0]) == ["wage", "years", "region"]
    assert {row["region"] for row in rows} <= {"north", "south", ""}
    assert all(10 <= float(row["wage"]) <= 5000 and 0 <= int(row["years"]) <= 20 for row in rows)
    record = json.loads((people / OUT).with_suffix(".json").read_text())
    assert record["promise"]["rows"] == 200
    assert record["mechanism"]["epsilon"] <= 1
    assert len(record["vector"]) == 40


def test_no_option_seeds_a_release(cli):
    assert "seed" not in cli("dp-release", "--help").out.lower()
    assert not [name for name in command_named("dp-release").fields if "seed" in name or "entropy" in name]


def test_what_is_printed_as_json(cli, people):
    result = cli("dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--json", "--out", "r.csv")
    found = json.loads(result.out)
    assert (found["rows"], found["promise"]["delta"], found["out"]) == (30, 1e-3, "r.csv")
    assert (found["method"], found["size"], found["table"]) == ("features", 40, "people.csv")


@pytest.mark.parametrize(
    "options",
    [(), ("--public", "public.csv"), ("--method", "subspace"), ("--noise", "laplace"), ("--weights", "simplex")],
)
def test_not_a_byte_changes_with_the_table_when_the_noise_does_not(cli, people, monkeypatch, options):
    """Nor a word of what is printed: the noise is a fake that forgets what it is given."""
    answer = np.random.default_rng(0).normal(size=100) / 10
    noise = Recorder(answer)
    monkeypatch.setattr(vectors, "NOISES", dict.fromkeys(vectors.NOISES, lambda: noise))
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)
    size = () if "--public" in options else ("--size", 40)
    budget = BUDGET[:2] if "laplace" in options else BUDGET
    arguments = "people.csv", "--schema", "schema.toml", *budget, *size, "--rows", 30, "--ledger", "ledger.json"
    found = []
    for seed in (1, 2):
        write(people / "people.csv", 200, seed)
        figure = () if options else ("--figure", "results/runs/f.png")
        result = cli("dp-release", *arguments, "--limit", 2, 0.1, *figure, *options)
        files = sorted(people.glob("results/runs/*"))
        assert len(files) == (4 if figure else 2)
        timed = "cost ", "ledger "  # the head of the ledger depends on the clock
        printed = [line for line in result.out.splitlines() if not line.startswith(timed)]
        shown = result.status, printed, result.err
        found.append((shown, [file.read_bytes() for file in files if file.suffix != ".pdf"]))
        for file in (*files, people / "ledger.json"):
            file.unlink()
    assert found[0][0][0] == 0
    assert found[0] == found[1]
    assert noise.calls[0][0].tolist() != noise.calls[1][0].tolist()


def test_a_template_is_made_of_names_alone(cli, people):
    result = cli("dp-release", "people.csv", "--init-schema", "new.toml")
    assert (result.status, result.err) == (0, "")
    assert "names and types of the columns alone" in result.out
    first = (people / "new.toml").read_text()
    write(people / "people.csv", 5, 3)
    cli("dp-release", "people.csv", "--init-schema", "again.toml")
    assert (people / "again.toml").read_text() == first
    assert "--init-schema new.toml exists" in cli("dp-release", "people.csv", "--init-schema", "new.toml").err
    found = thesis_cli.dp_release(pd.read_csv("people.csv"), init_schema="frame.toml")
    assert found.template == (people / "frame.toml").read_text() != first
    assert found.table.storage.tolist() == ["real", "integer", "text", "text"]
    unfinished = cli("dp-release", "people.csv", "--schema", "new.toml", *FAST)
    assert "new.toml: column 'wage': it has no type" in unfinished.err


@pytest.mark.parametrize("person", [(), ("--person", "name", "--contribution-bound", 200)])
def test_a_file_that_changes_after_the_ledger_knew_it_is_not_released(cli, people, monkeypatch, person):
    """It would be released for the account of another table."""
    options = "--schema", "schema.toml", *FAST, "--accept-delta", "--ledger", "ledger.json", "--limit", 4, 0.1, *person
    assert cli("dp-release", "people.csv", *options, "--out", "first.csv").status == 0
    before, right = (people / "ledger.json").read_bytes(), privacy_table.rows_that_count

    def later(*arguments):
        write(people / "people.csv", 200, 9)
        return right(*arguments)

    monkeypatch.setattr(privacy_table, "rows_that_count", later)
    result = cli("dp-release", "people.csv", *options)
    assert (result.status, "the table changed while it was read" in result.err) == (2, True)
    assert not (people / OUT).exists()
    assert (people / "ledger.json").read_bytes() == before


def test_a_ledger_adds_up_and_refuses(cli, people):
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--ledger", "ledger.json"
    assert "give --limit EPSILON DELTA" in cli(*arguments, "--out", "a.csv").err
    first = cli(*arguments, "--out", "a.csv", "--limit", 1.7, 1e-2)
    assert "by all releases of the table so far" in first.out
    second = cli(*arguments, "--out", "b.csv", "--noise", "laplace", "--epsilon", 0.5, "--delta", 0)
    assert second.status == 0
    third = cli(*arguments, "--out", "c.csv")
    assert (third.status, third.out) == (2, "")
    assert "would exceed the budget (1.7, 0.01) of table people" in third.err
    assert not list(people.glob("c.*"))
    (account,) = Ledger(people / "ledger.json").accounts().values()
    assert [(spend.epsilon, spend.note) for spend in account.spent] == [
        (1, "features, a.csv"),
        (0.5, "features, b.csv"),
    ]
    assert account.spent[0].rho is not None


def test_rows_made_anew_cost_nothing_and_need_no_table(cli, people):
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "a.csv"
    cli(*arguments)
    record = (people / "a.json").read_bytes()
    os.remove(people / "people.csv")
    result = cli("dp-release", "--again", "a.json", "--rows", 20, "--weights", "simplex", "--out", "b.csv", "--quiet")
    assert (result.status, result.err) == (0, "")
    rows = read(people / "b.csv")
    assert len(rows) == 20
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(1)
    assert json.loads((people / "b.json").read_text())["vector"] == json.loads(record)["vector"]
    assert (people / "a.json").read_bytes() == record


def test_points_with_weights_in_the_span_of_public_rows(cli, people):
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *BUDGET, "--public", "public.csv", "--quiet"
    assert cli(*arguments, "--out", "a.csv", "--weights", "raw").status == 0
    rows = read(people / "a.csv")
    assert [row["years"] for row in rows] == [row["years"] for row in read(people / "public.csv")]
    refused = cli(*arguments, "--out", "c.csv", "--weights", "simplex", "--rows", 5)
    assert refused.status == 2
    assert "--rows does not go with weights" in refused.err
    again = "dp-release", "--again", "a.json", "--out", "b.csv", "--rows", 50, "--quiet"
    assert "--public" in cli(*again).err
    assert cli(*again, "--public", "public.csv").status == 0
    assert len(read(people / "b.csv")) == 50


def test_a_table_that_the_exponential_mechanism_chooses(cli, tmp_path):
    (tmp_path / "schema.toml").write_text('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"\n')
    (tmp_path / "t.csv").write_text("a,b\n" + "yes,no\n" * 60 + "no,no\n" * 30)
    options = "--schema", "schema.toml", "--method", "exponential", "--epsilon", 100, "--quiet", "--json"
    found = json.loads(cli("dp-release", "t.csv", *options).out)
    assert found["promise"]["delta"] == 0
    rows = [(row["a"], row["b"]) for row in read(tmp_path / "results/runs/dp-release-t.csv")]
    assert sorted(rows) == [("False", "False"), ("True", "False"), ("True", "False")]


def test_a_query_of_a_database(cli, people):
    with sqlite3.connect(people / "base.db") as connection:
        pd.read_csv(people / "people.csv").to_sql("people", connection, index=False)
    connection.close()
    query = "select wage, years, region from people where years > 3"
    result = cli("dp-release", "sqlite:///base.db", "--query", query, "--schema", "schema.toml", *FAST)
    assert (result.status, result.err) == (0, "")
    assert len(read(people / "results/runs/dp-release-base.csv")) == 30


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), MemoryError(), KeyboardInterrupt()])
def test_a_release_that_fails_once_it_has_spent_says_so(cli, people, monkeypatch, failure):
    def fail(files):
        raise failure

    monkeypatch.setattr(dp_release, "write_atomic", fail)
    arguments = "people.csv", "--schema", "schema.toml", *FAST, "--ledger", "ledger.json", "--limit", 2, 0.1
    result = cli("dp-release", *arguments)
    assert result.status == (130 if isinstance(failure, KeyboardInterrupt) else 1)
    assert "the budget (1, 0.001) counts as spent" in result.err
    assert Ledger(people / "ledger.json").accounts()["people"].total().epsilon <= 1
    assert not list(people.glob("results/**/*.csv"))


def test_interrupted_rows_keep_the_record(cli, people, monkeypatch):
    def interrupt(*given, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(features, "synthesise", interrupt)
        result = cli("dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "a.csv")
    assert (result.status, result.out) == (130, "")
    assert "the budget (1, 0.001) counts as spent; a.json keeps the noisy embedding" in result.err
    assert "thesis-cli dp-release --again a.json makes its rows" in result.err
    assert not (people / "a.csv").exists()
    assert cli("dp-release", "--again", "a.json", "--quiet").status == 0
    assert len(read(people / "a.csv")) == 1000


BAD = [
    (["nowhere.csv"], "nowhere.csv: no such file"),
    (["people.csv", "--epsilon", "0"], "--epsilon is 0"),
    (["people.csv", "--delta", "0"], "delta is 0"),
    (["people.csv", "--delta", "1"], "--delta is 1"),
    (["people.csv", "--noise", "laplace"], "--delta does not go with --noise laplace"),
    (["people.csv", "--size", "7"], "features is 7"),
    (["people.csv", "--schema", "nowhere.toml"], "nowhere.toml: it cannot be read"),
    (["people.csv", "--weights", "raw", "--method", "features"], "no raw weights"),
    (["people.csv", "--weights", "raw", "--time-limit", "9"], "--weights raw does not go with --time-limit"),
    (["people.csv", "--time-limit", "0"], "--time-limit is 0"),
    (["people.csv", "--weights", "l1", "--weight-bound", "0.5"], "--weight-bound is 0.5"),
    (["people.csv", "--weight-bound", "2"], "--weight-bound does not go with --weights uniform"),
    (["people.csv", "--public", "public.csv"], "--size does not go with --public"),
    (["people.csv", "--public", "public.csv", "--method", "features"], "--public does not go with --method features"),
    (["people.csv", "--method", "exponential", "--delta", "0"], "wage"),
    (["people.csv", "--method", "exponential"], "--delta does not go with --method exponential"),
    (["people.csv", "--name", "x"], "--name is given without --ledger"),
    (["people.csv", "--limit", "1", "0.1"], "--limit is given without --ledger"),
    (["people.csv", "--again", "a.json"], "TABLE does not go with --again"),
    (["--again", "a.json", "--ledger", "l.json"], "--ledger does not go with --again"),
    (["--again", "half.json"], "half.json: it is not the record of a release"),
    (["people.csv", "--init-schema", "a.toml"], "does not go with --init-schema"),
    (["people.csv", "--figure", "a.pdf"], "--figure a.pdf"),
    (["people.csv", "--out", "a.txt"], "--out a.txt"),
    (["people.csv", "--ledger", "schema.toml", "--limit", "1", "0.1"], "schema.toml"),
    (["empty.csv"], "empty.csv: the table has no rows"),
    (["people.csv", "--out", "half.csv"], "half.json is a release without rows; thesis-cli dp-release --again half"),
    (["wrong.csv"], "wrong.csv: column 'years': row 2 cannot be read"),
    (["unknown.csv"], "unknown.csv: column 'region': row 1 cannot be read"),
    (["nan.csv"], "nan.csv: column 'wage': row 1 has no value"),
    (["other.csv"], "other.csv: the table has no column 'years'"),
    ([], "TABLE is missing"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(cli, people, arguments, message):
    head = "wage,years,region\n"
    (people / "empty.csv").write_text(head)
    (people / "wrong.csv").write_text(f"{head}20,3,north\n20,three,north\n")
    (people / "unknown.csv").write_text(f"{head}20,3,east\n")
    (people / "nan.csv").write_text(f"{head}NaN,3,north\n")
    (people / "other.csv").write_text("wage,year,region\n20,3,north\n")
    (people / "half.json").write_text('{"format": "thesis-cli private release 0"}')
    before = sorted(os.listdir(people))
    defaults = {"--epsilon": "1", "--delta": "1e-3", "--size": "40", "--schema": "schema.toml"}
    for key in defaults.keys() & set(arguments):
        del defaults[key]
    given = [word for pair in defaults.items() for word in pair] if "--again" not in arguments else []
    result = cli("dp-release", *arguments, *given, "--quiet")
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert sorted(name for name in os.listdir(people) if not name.endswith(".lock")) == before


def test_a_release_is_not_overwritten(cli, people):
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST
    cli(*arguments)
    before = (people / OUT).read_bytes()
    result = cli(*arguments)
    assert result.status == 2
    assert f"{OUT[:-4]}.json is the record of a release, and its budget was spent" in result.err
    assert (people / OUT).read_bytes() == before


def test_python_writes_nothing_and_keeps_the_record(people, monkeypatch):
    """The shell writes the same rows, where noise and public draws are the same."""
    made = {"schema": "schema.toml", "epsilon": 1, "delta": 1e-3, "size": 40, "rows": 30}
    answer = np.random.default_rng(0).normal(size=40) / 10
    monkeypatch.setattr(vectors, "NOISES", dict.fromkeys(vectors.NOISES, lambda: Recorder(answer)))
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)
    before = sorted(people.rglob("*"))
    frame = pd.read_csv("people.csv", keep_default_na=False)
    found = thesis_cli.dp_release(frame, **made)
    assert sorted(people.rglob("*")) == before
    assert found.settings["table"] == "<DataFrame>"
    written = thesis_cli.dp_release("people.csv", **made, out="a.csv")
    assert (people / "a.csv").read_text() == found.columns.csv() == written.columns.csv()
    assert parse_record((people / "a.json").read_text()) == found.record
    assert [path.name for path in found.save(people / "b.csv")] == ["b.csv", "b.json"]
    for kind in ("csv", "json"):
        assert (people / f"a.{kind}").read_bytes() == (people / f"b.{kind}").read_bytes()
    more = thesis_cli.dp_release(again=found, rows=50, weights="simplex")
    assert (len(more.table), list(more.table)) == (50, ["wage", "years", "region", "weight"])
    with pytest.raises(InputError, match="--again is <int>"):
        thesis_cli.dp_release(again=7)


def test_what_stops_a_release_that_keeps_no_file_says_so(people, monkeypatch):
    monkeypatch.setattr(features, "synthesise", lambda *given, **options: 1 / 0)
    given = {"schema": "schema.toml", "epsilon": 1, "delta": 1e-3, "size": 40}
    with pytest.raises(WorkFailed, match=r"ZeroDivisionError, an error .* no file keeps the noisy embedding"):
        thesis_cli.dp_release("people.csv", **given)

    def full(*given, **options):
        raise MemoryError

    monkeypatch.setattr(features, "synthesise", full)
    with pytest.raises(WorkFailed, match=r"out of memory; the budget .* --again 'a b.json' makes its rows"):
        thesis_cli.dp_release("people.csv", **given, out="a b.csv")


def test_the_record_of_another_release_is_not_overwritten(cli, people):
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST
    cli(*arguments, "--out", "a.csv")
    cli(*arguments, "--out", "b.csv")
    assert "b.json is the record of another release" in cli("dp-release", "--again", "a.json", "--out", "b.csv").err
    more = "dp-release", "--again", "a.json", "--rows", 5, "--out", "a.csv"
    assert "a.csv exists, and is not from this command with these settings" in cli(*more).err
    assert cli(*more, "--overwrite").status == cli(*more).status == 0
    assert len(read(people / "a.csv")) == 5


def test_a_figure_that_fails_hides_no_release(cli, people, monkeypatch):
    def full(*given, **options):
        raise OSError(28, "No space left on device", "f.png")

    monkeypatch.setattr("thesis_cli.base.figures.save", full)
    result = cli("dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "a.csv", "--figure", "f.png")
    assert (result.status, result.err) == (1, "error: f.png: no space left on device\n")
    assert "a.csv, 30 rows" in result.out


def test_a_ledger_needs_a_name_for_a_table_without_one(people):
    given = {"schema": "schema.toml", "epsilon": 1, "delta": 1e-3, "size": 40, "rows": 9, "limit": (2, 0.1)}
    frame = pd.read_csv("people.csv", keep_default_na=False)
    with pytest.raises(InputError, match="give --name"):
        thesis_cli.dp_release(frame, **given, ledger="l.json")
    found = thesis_cli.dp_release(frame, **given, ledger="l.json", name="people")
    assert found.total.epsilon <= 1
    assert list(Ledger(people / "l.json").accounts()) == ["people"]


def test_auto_takes_the_method_that_heeds_the_options():
    def method(**values):
        given = {"table": "t.csv", "schema": "s.toml", "epsilon": 1, "delta": 1e-3, **values}
        return dp_release.ReleaseRequest(**given).chosen_method()

    assert method() == method(favour="rows") == method(rows=9) == "copula"
    assert method(weights="simplex") == method(time_limit=9) == method(size=10) == method(delta=0.0) == "features"
    assert method(noise="laplace", delta=0.0) == "features"
    assert method(algorithm="aim") == "marginals"
    assert method(public="p.csv") == method(weights="raw") == method(weights="l1", weight_bound=2) == "subspace"


def test_no_password_is_recorded_or_shown(people, monkeypatch):
    frame = pd.read_csv("people.csv", keep_default_na=False)
    monkeypatch.setattr(privacy_table, "QueryTable", lambda url, query: privacy_table.FrameTable(frame))
    url = "postgresql://me:secret@host/base?password=secret"
    given = {"schema": "schema.toml", "epsilon": 1, "delta": 1e-3, "size": 40, "rows": 9, "query": "SELECT 1"}
    found = thesis_cli.dp_release(url, **given, ledger="l.json", limit=(2, 0.1), out="a.csv")
    assert found.settings["table"] == "postgresql://me:***@host/base?***"
    assert "base" in Ledger(people / "l.json").accounts()
    files = [people / name for name in ("a.csv", "a.json", "l.json")]
    shown = [found.summary(), str(found.to_dict()), *(file.read_text() for file in files)]
    assert "secret" not in "".join(shown)
