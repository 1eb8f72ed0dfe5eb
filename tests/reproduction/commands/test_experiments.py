import json
import shutil
import subprocess

import pytest

from tests.conftest import ROOT
from tests.reproduction.test_runner import SOURCE
from thesis_cli.base.provenance import git_state
from thesis_cli.reproduction import experiment
from thesis_cli.reproduction.claims import NOT_RUN, judge, write_csv
from thesis_cli.reproduction.experiment import Checkout


@pytest.fixture
def toy(tmp_path):
    """A checkout with one experiment; `cli` runs in it."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "thesis_cli").mkdir()
    (tmp_path / "experiments" / "toy.py").write_text(SOURCE)
    experiment.load.cache_clear()
    return tmp_path


def test_from_nothing_to_claims_and_figures(cli, toy):
    result = cli("reproduce", "--jobs", 1)
    assert result.status == 0, result.err
    assert "2 checks of the sources at preset quick: 1 agree, 1 do not hold\n" in result.out
    assert "see docs/errata.md, some finding" in result.out
    assert "4 tasks run" in result.err
    assert sorted(p.name for p in (toy / "results/quick").iterdir()) == [
        "claims.csv", "toy.csv", "toy.json", "toy.pdf", "toy.png",
    ]  # fmt: skip
    assert result.out.endswith("\ntoy  new\n\n1 table at preset quick: 1 new\n")
    again = cli("reproduce", "--jobs", 1)
    assert "0 tasks run,    4 kept" in again.err
    record = toy / "results/quick/toy.json"
    (before, drawn) = record.read_text(), (toy / "results/quick/toy.png").read_bytes()
    assert json.loads(before)["caption"] == "Draws against their number."
    source = toy / "experiments" / "toy.py"
    source.write_text(SOURCE.replace("Draws", "Numbers"))
    experiment.load.cache_clear()
    assert cli("plot", "--preset", "quick").status == 0  # what is drawn and computed stays
    assert record.read_text() == before.replace("Draws", "Numbers")
    assert (toy / "results/quick/toy.png").read_bytes() == drawn
    source.write_text(SOURCE)
    experiment.load.cache_clear()
    again = cli("reproduce", "--jobs", 1)
    assert again.out.endswith("\ntoy  identical\n\n1 table at preset quick: 1 identical\n")


def test_a_committed_table_that_differs_is_status_1_and_stays(cli, toy):
    source = toy / "experiments" / "toy.py"
    source.write_text(SOURCE.replace('"count": 8, "pause": 0.1', '"count": 2, "pause": 0'))
    command = ["reproduce", "toy", "--preset", "paper", "--jobs", 1]
    assert cli(*command).status == 0
    csv = toy / "results/toy.csv"
    new = csv.read_text()
    last = new.splitlines()[-1]
    csv.write_text(old := new.replace(last, "1,9"))
    drawn = (toy / "results/toy.png").read_bytes()
    result = cli(*command)
    assert result.status == 1
    assert f"toy  differs in 1 cell (largest: x, row 6: 9, now {last[2:]})\n" in result.out
    assert result.out.endswith("\n1 table at preset paper: 1 differs\n")
    assert "results/.store/toy/paper-0.csv" in result.err
    assert "--replace" in result.err
    assert csv.read_text() == old
    assert (toy / "results/toy.png").read_bytes() != drawn  # of the table that stands
    (found,) = json.loads(cli(*command, "--json").out)["tables"]
    assert (found["verdict"], found["cells"], found["replaced"]) == ("differs", 1, "")
    assert found["largest"] == {"column": "x", "row": 6, "old": "9", "new": last[2:]}
    result = cli(*command, "--replace")
    assert (result.status, csv.read_text()) == (0, new)
    assert "now" in result.out
    assert "replaced (--replace)" in result.out
    assert (toy / "results/toy.png").read_bytes() == drawn


def test_an_incomplete_table_is_counted(cli, toy):
    (toy / "experiments" / "fail-2").touch()
    assert cli("reproduce", "--jobs", 1).out.endswith("\n1 table at preset quick: 1 incomplete\n")


def test_claims_of_one_experiment_load_no_other_and_keep_its_rows(cli, toy):
    other = toy / "experiments" / "other.py"
    other.write_text(SOURCE.replace('id="toy"', 'id="other"'))
    assert cli("reproduce", "--jobs", 1).status == 0
    table = toy / "results/quick/claims.csv"
    before = table.read_text()
    assert [line.split(",")[0] for line in before.splitlines()] == ["experiment", "other", "other", "toy", "toy"]
    other.write_text("raise SystemExit('loaded')\n")
    (toy / "results/quick/other.csv").write_text("")
    csv = toy / "results/quick/toy.csv"
    csv.write_text(csv.read_text() + "9,100\n")
    result = cli("claims", "toy", "--preset", "quick")
    assert result.status == 0, result.err
    after = table.read_text()
    assert after.splitlines()[:3] == before.splitlines()[:3]
    assert after.splitlines()[3:] != before.splitlines()[3:]
    other.unlink()
    cli("claims", "toy", "--preset", "quick")
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == ["experiment", "toy", "toy"]


def test_claims_and_list_as_json(cli, toy):
    verdicts = json.loads(cli("claims", "--json").out)["claims"]
    assert [v["verdict"] for v in verdicts] == ["not run", "not run"]
    assert verdicts[0]["measured"] is None
    (row,) = json.loads(cli("list", "--json").out)["experiments"]
    assert (row["id"], row["results"]) == ("toy", [])
    assert cli("list").out == "toy                    A toy (none; results: none)\n"


def test_a_claim_that_fails_without_a_finding_is_status_1(cli, toy):
    (toy / "experiments" / "toy.py").write_text(SOURCE.replace('finding="some finding"', 'finding=""'))
    assert cli("reproduce", "--jobs", 1).status == 1
    assert cli("claims", "--preset", "quick").status == 1


def test_a_task_that_fails_is_status_1_and_names_what_goes_on(cli, toy):
    (toy / "experiments" / "fail-2").touch()
    result = cli("reproduce", "--jobs", 1)
    assert result.status == 1
    assert "made to fail" in result.err
    assert "error: 1 task failed" in result.err
    (toy / "experiments" / "fail-2").unlink()
    assert cli("reproduce", "--jobs", 1).status == 0


def test_plot_redraws_from_the_csv_alone(cli, toy):
    cli("reproduce", "--jobs", 1)
    drawn = {p: p.read_bytes() for p in (toy / "results/quick").glob("toy.p*")}
    for path in drawn:
        path.unlink()
    shutil.rmtree(toy / "results/.store")
    result = cli("plot", "toy", "--preset", "quick")
    assert result.out.splitlines() == ["results/quick/toy.pdf new", "results/quick/toy.png new"]
    assert {p: p.read_bytes() for p in drawn} == drawn
    assert cli("plot", "toy", "--preset", "quick").out.split()[1::2] == ["unchanged", "unchanged"]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["reproduce", "nope"], ["no experiment", "nope", "toy"]),
        (["reproduce", "--preset", "huge"], ["toy has no preset huge", "quick, paper"]),
        (["claims", "--preset", "huge"], ["toy has no preset huge", "quick, paper"]),
        (["claims", "nope"], ["no experiment", "nope"]),
        (["plot", "toy"], ["results/toy.csv: ", "thesis-cli reproduce toy"]),
    ],
)
def test_bad_input(cli, toy, arguments, fragments):
    result = cli(*arguments)
    assert result.status == 2
    assert all(fragment in result.err for fragment in fragments), result.err
    assert result.err.count("\n") == 1


def test_outside_a_checkout(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "__file__", str(tmp_path / "lib" / "thesis_cli" / "reproduction" / "experiment.py"))
    for command in ("reproduce", "claims", "list"):
        result = cli(command)
        assert result.status == 2
        assert "checkout" in result.err


@pytest.mark.long
def test_committed_claims_are_those_of_the_committed_results(tmp_path):
    """And every one holds, or has its finding: CI has `thesis-cli claims` say so."""
    results = ROOT / "results"
    verdicts = [v for path in Checkout(ROOT).files().values() for v in judge(experiment.load(path), results)]
    write_csv(verdicts, tmp_path / "claims.csv")
    assert (tmp_path / "claims.csv").read_text() == (results / "claims.csv").read_text()
    assert not [v.id for v in verdicts if v.verdict == NOT_RUN or v.unexplained]


@pytest.mark.parametrize("name", Checkout(ROOT).files())
def test_committed_records_have_the_caption_of_their_figure(name):
    caption = experiment.load(Checkout(ROOT).files()[name]).caption
    assert caption
    assert json.loads((ROOT / "results" / f"{name}.json").read_text())["caption"] == caption


def test_a_broken_experiment_is_named_in_one_line(cli, toy):
    (toy / "experiments" / "broken.py").write_text("x = 1\ny = x / 0\n")
    result = cli("list")
    assert result.status == 2
    assert result.err.startswith(f"error: {toy}/experiments/broken.py:2: ")
    assert "ZeroDivisionError: division by zero" in result.err
    assert result.err.count("\n") == 1


def test_a_damaged_result_is_one_line_and_reproduce_mends_it(cli, toy):
    cli("reproduce", "--jobs", 1)
    csv = toy / "results/quick/toy.csv"
    before = csv.read_bytes()
    for damage in (b"", before[:1]):
        csv.write_bytes(damage)
        for command in (["plot", "toy"], ["claims"]):
            result = cli(*command, "--preset", "quick")
            assert result.status in (1, 2)
            assert result.err.count("\n") == 1, result.err
        assert cli("reproduce", "--jobs", 1).status == 0
        assert csv.read_bytes() == before


def test_all_figures_that_have_a_result(cli, toy):
    result = cli("plot")
    assert (result.status, result.out, result.err) == (0, "", "warning: toy has no result at preset paper\n")
    cli("reproduce", "--jobs", 1)
    result = cli("plot", "--preset", "quick")
    assert (result.status, result.out.split()[::2]) == (0, ["results/quick/toy.pdf", "results/quick/toy.png"])


def test_results_to_commit_come_from_code_that_others_can_check_out(cli, toy):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *arguments], cwd=toy, check=True)

    source = toy / "experiments" / "toy.py"
    source.write_text(SOURCE.replace('"count": 8, "pause": 0.1', '"count": 2, "pause": 0'))
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "toy")
    command = ["reproduce", "--preset", "paper", "--jobs", 1]
    source.write_text(source.read_text() + "\n")
    git_state.cache_clear()
    experiment.load.cache_clear()
    dirty = cli(*command)
    assert (dirty.status, dirty.out) == (2, "")
    assert "files are not committed; --any-code computes all the same" in dirty.err
    git("commit", "-q", "-a", "-m", "toy")
    git_state.cache_clear()
    git("remote", "add", "origin", str(toy / "elsewhere"))
    assert "no branch of a remote has" in cli(*command).err
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert cli(*command).status == 0
    git("update-ref", "-d", "refs/remotes/origin/main")
    assert cli(*command).status == 0  # nothing is left to compute
    assert cli("reproduce", "--preset", "quick", "--jobs", 1).status == 0
    assert cli(*command, "--seed", 1, "--any-code").status == 0
