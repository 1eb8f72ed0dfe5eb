"""What stops a release before it spends, and what it reports once it has."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading

import pandas as pd
import pytest

import thesis_cli
from tests.commands.test_dp_release import BUDGET, FAST, ROOT, people, read  # noqa: F401  a fixture
from thesis_cli.base import files
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import locked
from thesis_cli.commands.core.result import PLACEHOLDER
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.release import release

GIVEN = {"schema": "schema.toml", "epsilon": 1, "delta": 1e-3, "size": 40, "rows": 30}
PUBLIC = "dp-release", "people.csv", "--schema", "schema.toml", *BUDGET, "--rows", 9, "--quiet"


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_private_table_is_no_public_table(cli, people):  # noqa: F811
    os.symlink("people.csv", people / "link.csv")
    table = pd.read_csv(people / "people.csv", dtype=str, keep_default_na=False)
    table.sample(frac=1, random_state=1).to_csv(people / "shuffled.csv", index=False)
    before = files_in(people)
    for name, more in (("people.csv", ()), ("link.csv", ("--confirm-public",)), ("shuffled.csv", ())):
        result = cli(*PUBLIC, "--public", name, *more)
        assert (result.status, result.out) == (2, "")
        assert re.fullmatch(r"error: --public (is the|has the very rows of the) private table[^\n]*\n", result.err)
    assert files_in(people) == before


def test_public_rows_that_the_table_has_are_to_be_confirmed(cli, people):  # noqa: F811
    table = pd.read_csv(people / "people.csv", dtype=str, keep_default_na=False)
    pd.concat([pd.read_csv(people / "public.csv", dtype=str, keep_default_na=False), table[:4]]).to_csv(
        people / "mixed.csv", index=False
    )
    result = cli(*PUBLIC, "--public", "mixed.csv")
    assert result.status == 2
    assert "4 of the 13 rows of --public are rows of the private table" in result.err
    assert "--confirm-public" in result.err
    assert cli(*PUBLIC, "--public", "mixed.csv", "--confirm-public").status == 0


def test_no_file_is_both_read_and_written(cli, people):  # noqa: F811
    os.symlink("people.csv", people / "link.csv")
    before = {name: (people / name).read_bytes() for name in files_in(people)}
    release = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--overwrite"
    measure = "dp-measure", "people.csv", "mean(age)", "--schema", "schema.toml", "--epsilon", 1, "--overwrite"
    ledger = "--limit", 9, 0.1, "--ledger"
    for command in (release, measure):
        for wrong in (
            ("--out", "people.csv"),
            ("--out", "link.csv"),
            ("--out", "r.csv", *ledger, "r.json"),
            ("--out", "r.csv", *ledger, "r.csv"),
            (*ledger, "schema.toml"),
            (*ledger, "people.csv"),
        ):
            result = cli(*command, *wrong)
            assert (result.status, result.out) == (2, "")
            assert re.fullmatch(
                r"error: (--out|--ledger|the record) \S+ is (a file|the file) [^\n]* as well;[^\n]*\n", result.err
            )
            assert {name: (people / name).read_bytes() for name in files_in(people)} == before


def test_the_promise_excludes_public_rows(cli, people):  # noqa: F811
    result = cli(*PUBLIC, "--public", "public.csv", "--out", "r.csv")
    assert (result.status, result.err) == (0, "")
    assert "not of the rows of --public" in result.out
    assert (
        "public rows are published as they are" in json.loads((people / "r.json").read_text())["promise"]["neighbours"]
    )
    again = cli("dp-release", "--again", "r.json", "--public", "public.csv", "--out", "s.csv")
    assert "not of the rows of --public" in again.out


def test_of_releases_into_one_name_one_spends(people):  # noqa: F811
    found, ready = [], threading.Barrier(3)

    def release_it():
        ready.wait()
        try:
            found.append(thesis_cli.dp_release("people.csv", **GIVEN, out="r.csv", ledger="l.json", limit=(9, 0.1)))
        except InputError as error:
            found.append(error)

    threads = [threading.Thread(target=release_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, InputError) for one in found) == 2
    assert len(Ledger("l.json").accounts()["people"].spent) == 1
    assert [name for name in files_in(people) if name.startswith((".", "r."))] == ["r.csv", "r.json"]


def test_names_are_held_and_given_back(cli, people, monkeypatch):  # noqa: F811
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "new/r.csv"
    with locked(people / "new" / "r.json"):
        assert "r.json: it is in use by process" in cli(*arguments).err
    shutil.rmtree(people / "new")
    assert cli(*arguments, "--delta", 0, "--noise", "laplace", "--ledger", "no.json").status == 2
    assert not (people / "new").exists()
    (people / "new").mkdir()
    (people / "new/r.json").write_text(json.dumps({"format": PLACEHOLDER, "process": 1}))
    for other in (("marginals", "schema.toml", "--overwrite"), ("dp-release", "--again", "new/r.json")):
        assert cli(*other, "--out", "new/r.csv").status == 2
    result = cli(*arguments)
    assert result.status == 0
    assert "new/r.json: a release was killed before this file was complete" in result.err
    assert len(read(people / "new/r.csv")) == 30


def test_a_record_is_never_replaced_and_other_files_are_if_asked(cli, people):  # noqa: F811
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "r.csv"
    for name in ("r.csv", "r.json"):
        (people / name).write_text("mine")
        assert f"{name} exists, and is not from this command" in cli(*arguments).err
        (people / name).unlink()
    (people / "r.json").write_text("mine")
    assert cli(*arguments, "--overwrite").status == 0
    before = (people / "r.json").read_bytes()
    result = cli(*arguments, "--overwrite")
    assert result.status == 2
    assert "r.json is the record of a release, and its budget was spent" in result.err
    other = thesis_cli.dp_release("people.csv", **GIVEN)
    with pytest.raises(InputError, match="the record of another release"):
        other.save("r.csv")
    assert (people / "r.json").read_bytes() == before


def test_what_a_promise_is_worth_is_reported_before_it_is_spent(cli, people):  # noqa: F811
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", "--epsilon", 0.1, "--rows", 5, "--quiet"
    result = cli(*arguments, "--delta", 0.001, "--size", 100)
    assert result.status == 0
    assert re.search(r"warning: the noise has norm [\d.]+ and dominates the signal", result.err)


ROW = "is 1/N or more, for {}: such a guarantee allows publishing a row as it is; give a smaller one; --accept-delta"


@pytest.mark.parametrize("command", [("dp-release", "--rows", 9), ("dp-measure", "mean(years)")])
def test_a_delta_of_one_row_is_refused_before_anything_is_spent(cli, people, command):  # noqa: F811
    name, *words = command
    arguments = name, "people.csv", *words, "--schema", "schema.toml", "--epsilon", 1, "--out", "r.csv"
    arguments += "--ledger", "l.json", "--limit", 2, 0.1
    refusal = f"error: --delta 0.005 {ROW.format('N = 200')}"
    result = cli(*arguments, "--delta", 0.005)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(refusal)
    assert not {path.name for path in people.iterdir()} & {"l.json", "r.csv", "r.json"}
    dry = cli(*arguments, "--delta", 0.005, "--dry-run")
    assert dry.status != 0
    assert "is 1/N or more" in dry.out + dry.err
    assert cli(*arguments, "--delta", 0.0049).status == 0
    assert cli(*arguments[:-5], "--out", "s.csv", "--delta", 0.005, "--accept-delta").status == 0


@pytest.mark.parametrize("rows", [100, 200, 5000])
def test_a_refusal_of_delta_does_not_tell_a_secret_number_of_rows(cli, people, rows):  # noqa: F811
    table = pd.read_csv(people / "people.csv")
    pd.concat([table] * 25).head(rows).to_csv(people / "t.csv", index=False)
    arguments = "dp-release", "t.csv", "--schema", "schema.toml", "--epsilon", 1, "--neighbours", "add-remove"
    said = cli(*arguments, "--delta", 0.001, "--rows", 9).err
    secret = "a table of 1,000 rows, as the number of rows is secret"
    assert said == f"error: --delta 0.001 {ROW.format(secret)} releases all the same\n"
    result = cli(*arguments, "--delta", 0.0009, "--rows", 9, "--quiet")
    assert result.status == 0
    assert ("warning: delta 0.0009 is 1/N or more, for N, of which the estimate is" in result.err) == (rows == 5000)


def test_the_record_of_a_measurement_makes_no_rows(cli, people):  # noqa: F811
    (people / "r.json").write_text('{\n "format": "thesis-cli private measurement 1"\n}')
    result = cli("dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "r.csv", "--overwrite")
    assert result.status == 2
    assert "r.json is the record of a measurement" in result.err
    assert "--again" not in result.err


@pytest.mark.parametrize("method", ["copula", "marginals", "exponential"])
def test_noise_of_every_method_is_reported(cli, people, method, monkeypatch):  # noqa: F811
    (people / "small.csv").write_text("a,b\n" + "1,0\n" * 200)
    columns = [f"[columns.{name}]\ntype = 'category'\nlevels = ['0', '1']" for name in "ab"]
    (people / "small.toml").write_text("\n".join(columns))
    plan = "small.csv", "--schema", "small.toml", "--method", method, "--epsilon", 0.001
    plan += () if method == "exponential" else ("--delta", 0.001)
    dry = cli("dp-release", *plan, "--dry-run")
    assert "dominates the signal" in dry.out
    assert "errors" in dry.out
    spent = []

    def stop(*given, **options):
        spent.append(given)
        raise InputError("stopped", "here")

    monkeypatch.setattr("thesis_cli.commands.release.budget.Spending.spend", stop)
    monkeypatch.setattr("thesis_cli.privacy.release.marginals.extra_packages", lambda: (None, None))
    monkeypatch.setattr("thesis_cli.privacy.release.marginals.opendp_marginals", lambda *given: given[-1]())
    result = cli("dp-release", *plan, "--quiet")
    assert "dominates the signal" in result.err
    assert len(spent) == 1


def test_an_unforeseen_error_is_one_line_without_values(cli, people, monkeypatch):  # noqa: F811
    def fail(*given, **options):
        try:
            float("a secret value")
        except ValueError as error:
            raise RuntimeError("about a secret value") from error

    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "r.csv", "--debug"
    for name, spent in (("private_record", False), ("synthetic", True)):
        with monkeypatch.context() as patch:
            patch.setattr(release, name, fail)
            result = cli(*arguments)
        assert (result.status, result.out) == (1, "")
        assert "RuntimeError, an error of this program" in result.err.splitlines()[-1]
        assert "secret value" not in result.err.replace('float("a secret value")', "").replace('"about a secret', "")
        assert ("--again r.json makes its rows" in result.err) == spent
    assert cli("dp-release", "--again", "r.json").status == 0


def test_a_full_disk_reports_whether_the_vector_is_lost(cli, people, monkeypatch):  # noqa: F811
    arguments = "dp-release", "people.csv", "--schema", "schema.toml", *FAST, "--out", "r.csv"
    to_disk = files._to_disk
    for writes, kept in ((0, False), (1, True)):
        left = [writes]

        def full(file, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            to_disk(file)

        with monkeypatch.context() as patch:
            patch.setattr(files, "_to_disk", full)
            result = cli(*arguments)
        assert result.status == 1
        assert "no space left on device; the budget (1, 0.001) counts as spent" in result.err
        assert ("r.json keeps the noisy embedding" in result.err) == kept
        assert ("which is lost" in result.err) != kept
        assert (people / "r.json").exists() == kept
    assert cli("dp-release", "--again", "r.json").status == 0


def test_a_signal_after_spending_reports_how_to_go_on(people):  # noqa: F811
    """The rows of a large release take seconds; the signal comes while they are made."""
    command = [sys.executable, "-m", "thesis_cli", *map(str, PUBLIC[:-3]), "--method", "features", "--out", "r.csv"]
    code = (
        "import signal, sys; from thesis_cli.__main__ import main; from thesis_cli.privacy.release import release\n"
        "def stop(*given, **options): signal.raise_signal(signal.SIGTERM)\n"
        "release.synthetic = stop; main()"
    )
    done = subprocess.run([command[0], "-c", code, *command[3:], "-q"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "")
    assert "counts as spent; r.json keeps the noisy embedding" in done.stderr
    assert done.stderr.splitlines()[-1] == "error: interrupted"
    assert (people / "r.json").exists()


def test_a_dry_run_finds_all_that_is_wrong_and_spends_nothing(cli, people):  # noqa: F811
    table = pd.read_csv(people / "people.csv", dtype=str, keep_default_na=False)
    table.loc[[3, 70], "years"] = "secret"
    table.loc[5:40, "wage"] = ""
    table.to_csv(people / "bad.csv", index=False)
    before = files_in(people)
    arguments = "--schema", "schema.toml", *FAST, "--ledger", "l.json", "--dry-run"
    result = cli("dp-release", "bad.csv", *arguments, "--limit", 0.05, 0.1, "--json")
    found = json.loads(result.out)
    assert (result.status, found["bad_cells"], len(found["problems"])) == (1, 38, 22)
    assert found["problems"][0] == "row 4, column 'years': cannot be read; it must be a whole number"
    assert "18 more: 38 cells" in found["problems"][20]
    assert "l.json" in found["problems"][21]
    assert "secret" not in result.out + result.err
    result = cli("dp-release", "people.csv", *arguments, "--limit", 2, 0.1)
    assert (result.status, result.err) == (0, "")
    for line in (
        r"noise .* norm 0\.",
        r"errors .* shares of rows to 0\.",
        r"time .* about [\d.]+ s of one core\n",
        r"memory .* about [\d,]+ MiB, of which [\d,]+ MiB are the program",
        "verdict .* would be made",
    ):
        assert re.search(line, result.out)
    assert files_in(people) == before


def test_a_dry_run_reports_files_and_public_rows(cli, people):  # noqa: F811
    (people / "r.json").write_text("mine")
    result = cli(*PUBLIC, "--public", "people.csv", "--dry-run", "--out", "r.csv")
    assert result.status == 1
    assert "--public is the private table itself" in result.out
    assert "r.json exists" in result.out


SECRET = "pl%40nted-Secret"


@pytest.mark.parametrize(
    "arguments",
    [
        ("dp-query", "r.csv", "mean(age)", "--holdout", f"postgresql://me:{SECRET}@127.0.0.1:1/x", "--holdout-query",
         "q"),
        ("dp-query", "r.csv", "classify(smoker, age)", "--holdout", f"sqlite:///h.db?key={SECRET}", "--holdout-query",
         "select * from people", "--replicates", 2),
        ("dp-test", "r.csv", f"sqlite:///h.db?key={SECRET}", "--query", "select * from people"),
        ("dp-test", "r.csv", f"postgresql://127.0.0.1:1/x?user=me&password={SECRET}", "--query", "q"),
        ("dp-release", f"host=h password={SECRET}", "--schema", "schema.toml", "--epsilon", 1),
        ("dp-release", f"me:{SECRET}@host/x", "--schema", "schema.toml", "--epsilon", 1),
        ("dp-release", "people.csv", f"sqlite:///h.db?key={SECRET}"),
    ],
)  # fmt: skip
def test_no_file_and_no_message_has_a_password(cli, people, arguments):  # noqa: F811
    for kind in ("csv", "json"):
        shutil.copy(ROOT / f"data/releases/people.{kind}", people / f"r.{kind}")
    with sqlite3.connect(people / "h.db") as connection:
        pd.read_csv(ROOT / "data/tables/people.csv")[:50].to_sql("people", connection, index=False)
    connection.close()
    result = cli(*arguments, "--debug", "--verbose", "--json")
    assert (result.status == 0) == ("h.db" in str(arguments) and arguments[0] != "dp-release"), result.err
    written = b"".join(path.read_bytes() for path in people.rglob("*") if path.is_file())
    for text in (result.out, result.err, written.decode("latin-1"), *files_in(people)):
        assert "nted-Secret" not in text


def test_noise_beyond_numbers_is_refused_before_it_is_spent(cli, people):  # noqa: F811
    arguments = "people.csv", "--schema", "schema.toml", "--epsilon", 1e-300, "--noise", "laplace", "--out", "r.csv"
    result = cli("dp-release", *arguments)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "the noise would have norm" in result.err
    assert not list(people.glob("*r.*son"))
