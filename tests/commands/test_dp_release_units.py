import json
import secrets
import sys

import numpy as np
import pandas as pd
import pytest

import thesis_cli
import thesis_cli.privacy.release.release  # takes the true noises before a test replaces them
from tests.conftest import ROOT
from tests.privacy.mechanisms.test_unit_stages import Held
from tests.privacy.release.test_subspace import Recorder
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release import copula, vectors

SCHEMA = """\
[columns.score]
type = "real"
low = 0
high = 100

[columns.smokes]
type = "boolean"
"""
PERSONS = "--person", "who", "--most", 2


def visits(persons, rows, seed=0):
    """A table of visits; each person has some."""
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.arange(persons), rng.integers(0, max(persons, 1), rows - persons)])
    values = {"score": rng.integers(0, 101, rows), "smokes": rng.random(rows) < 0.3}
    return pd.DataFrame({"who": [f"p{i}" for i in who], **values})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    visits(40, 100).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


def arguments(*options, table="t.csv", delta=5e-4):
    return "dp-release", table, "--schema", "schema.toml", "--epsilon", 1, "--delta", delta, "--rows", 20, *options


@pytest.fixture
def held(monkeypatch):
    """Noise that forgets the vectors, and public draws that are the same each time."""
    answer = 30 + np.random.default_rng(0).random(100)
    found = []

    def recorder():
        found.append(Recorder(answer))
        return found[-1]

    def stages():
        found.append(Held())
        return found[-1]

    monkeypatch.setattr(vectors, "NOISES", dict.fromkeys(vectors.NOISES, recorder))
    monkeypatch.setattr(copula, "OpenDPStages", stages)
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "features", "--size", 20, *PERSONS),
        ("--method", "subspace", "--size", 9, *PERSONS, "--neighbours", "add-remove", "--weights", "raw"),
        ("--method", "copula", *PERSONS),
        ("--method", "copula", "--neighbours", "add-remove"),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_not_a_byte_changes_with_the_number_of_rows_or_the_persons(cli, folder, held, options):
    """Tables of other numbers of rows and persons, in another order, with other names, or empty."""
    first = visits(40, 100)
    renamed = first.sample(frac=1, random_state=1).assign(who=["x" * (7 + n % 30) for n in range(100)])
    found = set()
    for table in (first, renamed, visits(41, 130, 1), first[:0]):
        table.to_csv(folder / "t.csv", index=False)
        given = [x for x in arguments(*options) if not ("raw" in options and x in ("--rows", 20))]
        result = cli(*given, "--out", "r.csv", "--ledger", "l.json", "--limit", 2, 0.1, "-q")
        assert result.status == 0, result.err
        printed = [line for line in result.out.splitlines() if not line.startswith(("cost ", "ledger "))]
        files = [folder / name for name in ("r.csv", "r.json")]
        found.add((result.err, *printed, *(file.read_bytes() for file in files)))
        for file in (*files, *folder.glob("l.json*")):
            file.unlink()
    assert len(found) == 1
    assert json.loads(next(iter(found))[-1])["promise"]["rows"] is None
    vectors = [str(noise.calls[0][0].tolist()) if isinstance(noise, Recorder) else str(noise.vectors) for noise in held]
    assert len(set(vectors)) >= 3


def test_a_persons_release_reads_as_many_rows_of_each_as_count(folder, held):
    """With as many rows as anybody has, the names of the persons change no vector."""
    table = visits(40, 100)
    others = table.assign(who=["q" + who for who in table.who])
    given = {"schema": "schema.toml", "epsilon": 1, "delta": 5e-4, "method": "features", "size": 20, "person": "who"}
    for frame in (table, others):
        thesis_cli.dp_release(frame, **given, contribution_bound=100, rows=5)
    (first, second) = (noise.calls[0][0] for noise in held)
    assert first.tobytes() == second.tobytes()
    assert first[-1] == pytest.approx(np.sqrt(3) * 100)
    found = thesis_cli.dp_release(table, **given, contribution_bound=1, rows=5)
    assert held[2].calls[0][0][-1] == pytest.approx(np.sqrt(3) * 40)
    assert "one row of each person counts" in found.summary()


def test_queries_use_the_noisy_number_of_rows(cli, folder, held):
    assert cli(*arguments("--method", "features", "--size", 20, *PERSONS, "--out", "r.csv", "-q")).status == 0
    counted = json.loads((folder / "r.json").read_text())["counted"]
    assert (counted["most"], counted["rows"]) == (2, pytest.approx(held[0].answer[20] / np.sqrt(3)))
    found = json.loads(cli("dp-query", "r.csv", "count(True)", "--json").out)
    assert found["answers"][0]["value"] == pytest.approx(counted["rows"])
    assert found["private"]["deviation"] == counted["deviation"]
    assert "N = 17 +- 1 private" in cli("dp-query", "r.csv", "count(True)").out
    again = cli("dp-release", "--again", "r.json", "--rows", 30, "--out", "a.csv", "-q")
    assert again.status == 0
    tested = cli("dp-test", "r.csv", "t.csv", "--seed", 1)
    assert "rows of one person may be alike" in tested.err
    assert tested.status == 0


def test_the_ledger_is_charged_for_the_budget(cli, folder):
    options = "--method", "features", "--size", 20, *PERSONS, "--ledger", "l.json", "--out", "r.csv", "-q"
    assert cli(*arguments(*options, "--limit", 1, 5e-4)).status == 0
    (account,) = Ledger(folder / "l.json").accounts().values()
    assert [(spend.epsilon, spend.delta) for spend in account.spent] == [(1, 5e-4)]
    assert account.spent[0].rho is not None


def test_a_release_for_persons_is_charged_to_rows_and_one_for_rows_not_to_persons(cli, folder):
    Ledger(folder / "l.json").spend("t", Budget(0.1), limit=Budget(9, 5e-4))
    options = "--method", "features", "--size", 20, "--ledger", "l.json", "-q"
    assert cli(*arguments(*options, *PERSONS, "--out", "r.csv")).status == 0
    before = (folder / "l.json").read_bytes()
    refused = cli(*arguments(*options, *PERSONS, "--name", "persons", "--limit", 9, 5e-4, "--out", "s.csv"))
    assert (refused.status, (folder / "l.json").read_bytes()) == (2, before)
    assert "table persons has the rows of table t; charge it there by --name t, or --new-account" in refused.err
    more = "--new-account", "--name", "persons", "--limit", 9, 5e-4
    assert cli(*arguments(*options, *PERSONS, *more, "--out", "s.csv")).status == 0
    refused = cli(*arguments(*options, "--name", "persons", "--out", "u.csv"))
    assert "(person who, replace); a release for (row, replace) says nothing of it" in refused.err
    shown = cli("dp-ledger", "l.json", "--no-out")
    assert (shown.status, shown.err) == (0, "")
    assert "person who, replace" in shown.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--person", "who"), "--person is given without --contribution-bound"),
        (("--contribution-bound", 2), "--contribution-bound is given without --person"),
        (("--person", "nobody", "--most", 2), "t.csv: the table has no column 'nobody'"),
        (("--person", "score", "--most", 2), "t.csv: the schema has the column 'score' of persons"),
        (("--person", "gap", "--most", 2), "t.csv: column 'gap': row 7 has no value"),
        (("--method", "marginals", *PERSONS), "--person does not go with --method marginals"),
        (("--neighbours", "add-remove", "--method", "exponential"), "does not go with --method exponential"),
    ],
)
def test_bad_input_is_one_line(cli, folder, options, message):
    table = visits(40, 100)
    table.assign(gap=[str(n) if n != 6 else "" for n in range(100)]).to_csv(folder / "t.csv", index=False)
    result = cli(*arguments(*options), "-q")
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_options_of_persons_go_with_no_record_that_is_there(folder):
    with pytest.raises(InputError, match="--person does not go with --again"):
        thesis_cli.dp_release(again="r.json", person="who", most=2)


def test_the_former_name_of_the_contribution_bound_works(cli, folder):
    """In the shell and in Python; no help shows it."""
    asked = {"schema": "schema.toml", "epsilon": 1, "delta": 5e-4, "person": "who"}
    (old, new) = (
        thesis_cli.dp_release("t.csv", **asked, **{name: 2}, dry_run=True) for name in ("most", "contribution_bound")
    )
    assert old.settings == new.settings
    assert cli(*arguments("--person", "who", "--most", 2, "--dry-run")).status == 0
    both = cli(*arguments("--person", "who", "--most", 2, "--contribution-bound", 2, "--dry-run"))
    assert "--contribution-bound is given twice; --most is another name of it" in both.err
    shown = cli("dp-release", "--help").out
    assert "--contribution-bound" in shown
    assert "--most" not in shown


def test_without_opendp_nothing_is_spent(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.mod", None)
    mechanism.opendp.cache_clear()
    table = ROOT / "data/tables/people.csv"
    own = ("--schema", table.with_suffix(".toml"), "--epsilon", 1)
    own += ("--ledger", "l.json", "--name", "p", "--limit", 3, 1e-5, "--out", "r.csv")
    for words in (("dp-release", table, "--delta", 1e-6), ("dp-measure", table, "mean(income)", "--delta", 1e-6)):
        result = cli(*words, *own)
        assert result.err.splitlines()[-1] == "error: opendp is not installed; run pip install 'opendp>=0.16,<0.17'"
        assert result.status == 2
        assert not any(tmp_path.iterdir())
