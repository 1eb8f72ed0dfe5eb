"""`sweep`, `status`, `collect` and `run-task`: resumed, failing, killed, with bad input."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import MODELS, ROOT
from thesis_cli.cli.app import main
from thesis_cli.commands import map_state
from thesis_cli.reproduction import experiment, sweep_file
from thesis_cli.reproduction.commands import sweep as module
from thesis_cli.reproduction.tasks import Store

MODEL, OTHER = (f"MARKOV\n1\n2\n1\n1 0\n2\n{values}\n" for values in ("1 2", "2 1"))
"""Of one variable, whose state is 1 or 0."""
SWEEP = """
command = "map"
[grid]
model = ["a.uai", "b.uai", "c.uai", "d.uai"]
solver = ["auto", "elimination"]
"""
SEEDED = """
command = "renyi"
seeds = 3
[options]
samples = 10
order = 2
[grid]
model = { files = "[ad].uai" }
"""
SLOW = """
command = "spin-glass"
seeds = 8
[options]
size = "10x10"
samples = 200
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with models and a sweep; no checkout."""
    monkeypatch.setattr(experiment, "__file__", str(tmp_path / "lib" / "thesis_cli" / "reproduction" / "experiment.py"))
    for name in "abcd":
        (tmp_path / f"{name}.uai").write_text(MODEL if name < "d" else OTHER)
    (tmp_path / "s.toml").write_text(SWEEP)
    return tmp_path


def state(folder):
    """Content and time of change of every file."""
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def rows(file):
    with open(file, newline="") as text:
        return list(csv.DictReader(text))


def refused(result, status, *fragments):
    """One line on standard error that has all fragments."""
    assert result.status == status, result.err
    assert re.fullmatch(r"error: [^\n]+\n", result.err)
    assert result.out == ""
    for fragment in fragments:
        assert fragment in result.err


def results(folder):
    store = Store(folder / "results/runs/s")
    store.look()
    return store.results


def start(folder, *arguments):
    """The program in a session of its own, and of the lowest priority, so that it does not end before this process, on
    a busy machine, sees how far it is."""
    command = ["nice", "-n", "19", sys.executable, "-m", "thesis_cli", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )  # fmt: skip


def wait_for(condition, process):
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


# What it does.


def test_a_sweep_becomes_one_table_with_its_parameters(cli, here):
    result = cli("sweep", "s.toml", "--jobs", 1)
    assert result.status == 0, result.err
    assert result.err == ""
    assert result.out == (
        "tasks  8 in results/runs/s/tasks.json: 8 run now, 0 kept\ntable  results/runs/s.csv: 8 rows\n"
    )
    found = rows(here / "results/runs/s.csv")
    asked = [(m, s) for m in ("a.uai", "b.uai", "c.uai", "d.uai") for s in ("auto", "elimination")]
    assert [(row["model"], row["solver"]) for row in found] == asked
    assert [row["state"] for row in found] == list("11111100")
    record = json.loads((here / "results/runs/s.json").read_text())
    assert (record["command"], record["tasks"], record["finished"], record["rows"]) == ("map", 8, 8, 8)


@pytest.mark.parametrize("engine", ["local", "none"])
def test_a_second_run_computes_nothing_and_changes_no_byte(cli, here, engine):
    cli("sweep", "s.toml", "--jobs", 1)
    before = state(here)
    before.pop(here / "results/runs/s/run.json")
    result = cli("sweep", "s.toml", "--jobs", 2, "--engine", engine)
    assert (result.status, result.err) == (0, "")
    assert "0 run now, 8 kept" in result.out
    after = state(here)
    assert {p: after[p] for p in before} == before
    assert len(after) == len(before) + 1


def test_the_bytes_do_not_depend_on_the_processes_nor_on_who_runs_them(cli, here):
    (here / "s.toml").write_text(SEEDED)
    tables = {}
    for name, flags in (("one", ["--jobs", 1]), ("two", ["--jobs", 2]), ("none", ["--engine", "none"])):
        assert cli("sweep", "s.toml", "--out", f"{name}.csv", *flags).status == 0
        if name == "none":
            assert not (here / "none.csv").exists()
            for k in (1, 0):
                assert cli("run-task", "none/tasks.json", k, "--array-size", 2, "--cores", 1 + k).status == 0
            assert cli("collect", "none").status == 0
        tables[name] = (here / f"{name}.csv").read_bytes()
        assert rows(here / f"{name}.csv")[4]["seed"] == "1"
    assert len(set(tables.values())) == 1
    assert (here / "one/tasks.json").read_bytes() == (here / "none/tasks.json").read_bytes()


def test_the_file_may_be_anywhere(cli, here, monkeypatch):
    below = here / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    result = cli("sweep", "../s.toml", "--jobs", 1)
    assert "results/runs/s/tasks.json: 8 run now" in result.out
    assert (below / "results/runs/s.csv").exists()
    assert not (here / "results").exists()


def test_the_table_may_go_elsewhere(cli, here):
    (here / "s.toml").write_text(f'out = "tables/x.csv"\n{SWEEP}')
    assert cli("sweep", "s.toml", "--jobs", 1).status == 0
    assert len(rows(here / "tables/x.csv")) == 8
    for run in ("s.toml", "tables/x", "tables/x.csv"):
        assert "table  tables/x.csv: 8 rows" in cli("collect", run).out
        assert cli("status", run).out.splitlines()[1].split()[:3] == ["x", "8", "8"]
    assert cli("sweep", "s.toml", "--jobs", 1, "--out", "y.csv").status == 0
    assert (here / "y.csv").read_bytes() == (here / "tables/x.csv").read_bytes()


def test_a_table_that_the_sweep_did_not_write_is_kept(cli, here):
    (here / "x.csv").write_text("mine")
    refused(cli("sweep", "s.toml", "--jobs", 1, "--out", "x.csv"), 2, "x.csv exists, and is not from this command")
    assert not (here / "x").exists()
    assert cli("sweep", "s.toml", "--jobs", 1, "--out", "x.csv", "--overwrite").status == 0
    assert cli("collect", "x").status == 0
    for name in ("x.csv", "x.json"):
        (here / name).write_text("mine")
    refused(cli("collect", "x"), 2, "x.csv exists, and is not from this command")


@pytest.mark.parametrize("key", ["options", "grid"])
def test_a_url_with_a_password_is_not_written_into_tasks(cli, here, key):
    url = '"postgresql://steward:pl%40nted@host/x"'
    value = f"[{url}]" if key == "grid" else url
    head = "" if key == "options" else f"[{key}]\n"
    (here / "p.toml").write_text(f'command = "dp-test"\n[options]\nrelease = "r.csv"\n{head}other = {value}\n')
    result = cli("sweep", "p.toml", "--engine", "none")
    refused(result, 2, "has a password or parameters", "~/.pgpass")
    assert "nted" not in result.err
    assert not (here / "results").exists()


def test_the_table_follows_the_file(cli, here):
    cli("sweep", "s.toml", "--jobs", 1)
    whole = (here / "results/runs/s.csv").read_bytes()
    (here / "s.toml").write_text(SWEEP.replace('"a.uai", ', ""))
    result = cli("sweep", "s.toml", "--jobs", 1)
    assert "6 in results/runs/s/tasks.json: 0 run now, 6 kept" in result.out
    assert [row["model"][0] for row in rows(here / "results/runs/s.csv")] == list("bbccdd")
    (here / "s.toml").write_text(SWEEP.replace('"elimination"', '"elimination", "max-product"'))
    assert "4 run now, 8 kept" in cli("sweep", "s.toml", "--jobs", 1).out
    assert len(rows(here / "results/runs/s.csv")) == 12
    (here / "s.toml").write_text(SWEEP)
    assert "0 run now, 8 kept" in cli("sweep", "s.toml", "--jobs", 1).out
    assert (here / "results/runs/s.csv").read_bytes() == whole


def test_changed_inputs_are_warned_of_and_computed_again(cli, here):
    cli("sweep", "s.toml", "--jobs", 1)
    before = (here / "results/runs/s.csv").read_bytes()
    (here / "a.uai").write_text(OTHER)
    result = cli("sweep", "s.toml", "--jobs", 1)
    assert result.status == 0
    assert result.err.startswith("warning: s: 2 ")
    assert "--refresh" in result.err
    assert (here / "results/runs/s.csv").read_bytes() == before
    result = cli("sweep", "s.toml", "--jobs", 1, "--refresh")
    assert (result.status, result.err) == (0, "")
    assert "2 run now, 6 kept" in result.out
    assert [row["state"] for row in rows(here / "results/runs/s.csv")] == list("00111100")


def test_a_task_that_finds_nothing_has_its_row(cli, here):
    """Exit status 1 of a command with a table is an answer."""
    shutil.copy(ROOT / "data/tasks/candy.json", here)
    (here / "t.toml").write_text(
        'command = "synthesize"\n[options]\ntasks = "candy.json"\n[grid]\nmax-length = [1, 2]\n'
    )
    result = cli("sweep", "t.toml", "--jobs", 1)
    assert (result.status, result.err) == (0, "")
    assert len(rows(here / "results/runs/t.csv")) == 2


# What fails.


def break_model(here, name="b"):
    (here / f"{name}.uai").write_text("MARKOV\n2\n2 2\n1\n1 0\n")


def test_a_task_that_fails_stops_no_other(cli, here):
    break_model(here)
    result = cli("sweep", "s.toml", "--jobs", 1)
    assert result.status == 1
    assert "8 in results/runs/s/tasks.json: 6 run now, 0 kept, 2 failed\n" in result.out
    first, last = result.err.splitlines()
    assert first.startswith(f'error: task {{"model": "b.uai", "solver": "auto"}} failed: {here}/b.uai:')
    assert first.endswith(f"; cd {here} && thesis-cli map --solver=auto -- b.uai")
    assert last.startswith("error: 2 of 8 tasks failed; thesis-cli status results/runs/s --failed")
    assert [row["model"][0] for row in rows(here / "results/runs/s.csv")] == list("aaccdd")

    listed = cli("status", "--failed")
    assert listed.out.splitlines()[1].split() == ["s", "8", "6", "0", "0", "2", "0", "nothing", "runs"]
    assert f"s, task 2: {{'model': 'b.uai', 'solver': 'auto'}}, seed None\n    {here}/b.uai:" in listed.out
    assert "-- b.uai\n" in listed.out
    (run,) = json.loads(cli("status", "--failed", "--json").out)["runs"]
    assert [error["task"] for error in run["errors"]] == [2, 3]
    assert (run["done"], run["failed"]) == (6, 2)

    (here / "b.uai").write_text(MODEL)
    again = cli("sweep", "s.toml", "--jobs", 1)
    assert (again.status, again.err) == (0, "")
    assert "2 run now, 6 kept\n" in again.out
    assert len(rows(here / "results/runs/s.csv")) == 8
    (run,) = json.loads(cli("status", "--failed", "--json").out)["runs"]
    assert (run["done"], run["failed"], run["errors"]) == (8, 0, [])


def test_all_tasks_fail(cli, here):
    for name in "abcd":
        break_model(here, name)
    result = cli("sweep", "s.toml", "--jobs", 2)
    assert result.status == 1
    assert "error: 8 of 8 tasks failed; thesis-cli status results/runs/s --failed" in result.err
    assert result.err.count("\n") == 2
    assert not (here / "results/runs/s.csv").exists()


def test_an_error_of_the_program_itself_is_two_lines_and_its_traceback_is_kept(cli, here, monkeypatch):
    monkeypatch.setattr(map_state, "open_model", lambda *_: 1 / 0)
    result = cli("sweep", "s.toml", "--jobs", 1)
    assert result.status == 1
    assert "} failed: ZeroDivisionError: division by zero; cd " in result.err
    assert result.err.count("\n") == 2
    assert "Traceback" in cli("status", "s.toml", "--failed", "--debug").out
    assert "Traceback" in cli("sweep", "s.toml", "--jobs", 1, "--debug").err


def test_a_damaged_result_is_computed_again(cli, here):
    cli("sweep", "s.toml", "--jobs", 1)
    before = (here / "results/runs/s.csv").read_bytes()
    victim, other = [(place.file, place.start) for place in results(here).values()][::4]
    for file, start in (victim, other):
        data = file.read_bytes()
        file.write_bytes(data[: start + 5] + b"?" + data[start + 6 :])
    result = cli("collect", "s.toml")
    assert (result.status, result.err) == (1, "error: 2 of 8 tasks have no result\n")
    assert len(rows(here / "results/runs/s.csv")) == 6
    assert cli("run-task", "results/runs/s/tasks.json", *range(8)).status == 0
    assert cli("collect", "s.toml").status == 0
    assert (here / "results/runs/s.csv").read_bytes() == before
    victim[0].write_bytes(b"# {}\n# []\n# {\n")
    assert "8 run now, 0 kept" in cli("sweep", "s.toml", "--jobs", 1).out
    assert (here / "results/runs/s.csv").read_bytes() == before


@pytest.mark.parametrize(
    "lost", ["s.csv", "s.json", "s/tasks.json", "s", "s/logs", ".", "s/run.json s/tasks.json"]
)  # fmt: skip
def test_what_is_removed_comes_again(cli, here, lost):
    runs = here / "results/runs"
    cli("sweep", "s.toml", "--jobs", 1)
    before = (runs / "s.csv").read_bytes()
    for name in lost.split():
        gone = runs / name
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
    if lost.startswith("s/run.json"):
        refused(cli("sweep", "s.toml"), 2, f"{runs}/s: ", "--out")
        return
    assert cli("sweep", "s.toml", "--jobs", 1).status == 0
    assert (runs / "s.csv").read_bytes() == before
    assert (runs / "s.json").exists()


@pytest.mark.parametrize(("room", "file"), [(1500, r"s/segments/\d+-\w+"), (400, "s/tasks.json")])
def test_a_full_disk_ends_in_one_line_and_leaves_nothing_half_written(cli, here, room, file):
    """Room for some results and half of another one; or none for the task file."""
    (here / "s.toml").write_text(SEEDED)
    assert cli("sweep", "s.toml", "--jobs", 1, "--out", "elsewhere.csv").status == 0  # compiles
    code = "import resource, sys; sys.dont_write_bytecode = True"  # Python would keep half of a file
    code += f"; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))"
    code += "; from thesis_cli.cli.app import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "sweep", "s.toml", "--jobs", "1"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: {here}/results/runs/{file}: file too large\n", done.stderr)
    assert sorted(p.name for p in (here / "results/runs").iterdir()) == ["s"]
    assert len(results(here)) == (2 if room == 1500 else 0)
    assert not [p for p in here.rglob(".*") if p.is_file()]
    assert cli("sweep", "s.toml", "--jobs", 1).status == 0
    assert (here / "results/runs/s.csv").read_bytes() == (here / "elsewhere.csv").read_bytes()


# What is stopped.


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The table of the slow sweep, run at one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "s.toml").write_text(SLOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["sweep", "s.toml", "--jobs", "1"]) == 0
    return (folder / "results/runs/s.csv").read_bytes()


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(cli, here, undisturbed, jobs):
    (here / "s.toml").write_text(SLOW)
    process = start(here, "sweep", "s.toml", "--jobs", jobs)
    wait_for(lambda: results(here), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[0] == "error: interrupted; the same command continues from here"
    assert not (here / "results/runs/s/tasks.driver").exists()
    kept = len(results(here))
    assert 1 <= kept < 8
    again = cli("sweep", "s.toml", "--jobs", 1)
    assert (again.status, again.err) == (0, "")
    assert f"{8 - kept} run now, {kept} kept" in again.out
    assert (here / "results/runs/s.csv").read_bytes() == undisturbed


@pytest.mark.parametrize("count", [pytest.param(0, marks=pytest.mark.long), 3])
def test_a_driver_that_is_killed_is_resumed(cli, here, undisturbed, count):
    (here / "s.toml").write_text(SLOW)
    process = start(here, "sweep", "s.toml", "--jobs", 2)
    wait_for(lambda: (here / "results/runs/s/tasks.driver").exists() and len(results(here)) >= count, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert (here / "results/runs/s/tasks.driver").exists()
    (run,) = json.loads(cli("status", "--json").out)["runs"]
    assert (run["running"], run["failed"], run["seconds_left"]) == (0, 0, None)
    again = cli("sweep", "s.toml", "--jobs", 1)
    assert (again.status, again.err) == (0, "")
    assert (here / "results/runs/s.csv").read_bytes() == undisturbed
    assert not (here / "results/runs/s/tasks.driver").exists()


def test_beside_a_run_that_goes_on(cli, here, undisturbed):
    """Its state and results can be seen; a second run is refused and changes no file."""
    (here / "s.toml").write_text(SLOW)
    process = start(here, "sweep", "s.toml", "--jobs", 1)
    wait_for(lambda: len(results(here)) >= 2, process)
    process.send_signal(signal.SIGSTOP)
    try:
        (run,) = json.loads(cli("status", "--json").out)["runs"]
        assert run["done"] + run["running"] + run["missing"] == run["tasks"] == 8
        assert run["running"] == 1
        assert run["seconds_left"] is None or run["seconds_left"] > 0
        assert len(rows_of_collect(cli, here)) >= 2
        for text in (SLOW, SLOW.replace("= 8", "= 3")):
            (here / "s.toml").write_text(text)
            tasks = (here / "results/runs/s/tasks.json").read_bytes()
            refused(cli("sweep", "s.toml"), 2, f"{here}/results/runs/s/tasks.json", f"process {process.pid}")
            assert (here / "results/runs/s/tasks.json").read_bytes() == tasks
    finally:
        process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert (here / "results/runs/s.csv").read_bytes() == undisturbed


def rows_of_collect(cli, here):
    result = cli("collect", "s.toml")
    assert result.status == 1
    assert re.fullmatch(r"error: \d+ of 8 tasks have no result\n", result.err)
    return rows(here / "results/runs/s.csv")


# Without an engine of ours.


def test_tasks_one_by_one(cli, here):
    assert cli("sweep", "s.toml", "--engine", "none").out == (
        "tasks  8 in results/runs/s/tasks.json: 0 run now, 0 kept, 8 without result\n"
    )
    result = cli("collect", "s.toml")
    assert (result.status, result.err) == (1, "error: 8 of 8 tasks have no result\n")
    file = "results/runs/s/tasks.json"
    assert cli("run-task", file, 5, 1, 5).status == 0
    assert len(results(here)) == 2
    assert cli("run-task", file, 1, 2, "-v").err.count("has a result") == 1
    result = cli("collect", "results/runs/s", "--json")
    assert (result.status, result.err) == (1, "error: 5 of 8 tasks have no result\n")
    assert json.loads(result.out) == {
        "tasks": 8, "kept": 3, "without_result": 5, "rows": 3, "table": f"{here}/results/runs/s.csv",
        "task_file": f"{here}/results/runs/s/tasks.json",
    }  # fmt: skip
    for k in range(3):
        assert cli("run-task", file, k, "--array-size", 3).status == 0
    assert cli("run-task", file, 8, "--of", 9).status == 0  # a job that has nothing to do
    assert cli("collect", "s.toml").status == 0
    by_hand = (here / "results/runs/s.csv").read_bytes()
    assert "0 run now, 8 kept" in cli("sweep", "s.toml").out
    cli("sweep", "s.toml", "--out", "local.csv", "--jobs", 1)
    assert (here / "local.csv").read_bytes() == by_hand


def test_a_task_that_fails_by_itself(cli, here):
    break_model(here)
    cli("sweep", "s.toml", "--engine", "none")
    result = cli("run-task", "results/runs/s/tasks.json", 0, 2, 3)
    assert result.status == 1
    *failures, last = result.err.splitlines()
    assert last == "error: 2 of 3 tasks failed"
    assert [line.split(":")[1] for line in failures] == [" task 2 failed", " task 3 failed"]
    assert cli("collect", "s.toml").err == "error: 7 of 8 tasks have no result\n"
    assert cli("status").out.splitlines()[1].split()[:7] == ["s", "8", "1", "0", "0", "2", "5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([8], "results/runs/s/tasks.json: no task 8; places go from 0 to 7"),
        ([0, 9], "results/runs/s/tasks.json: no task 9; places go from 0 to 7"),
        (["--", -1], "INDEX is -1;"),
        ([3, "--array-size", 3], "results/runs/s/tasks.json: no task 3; places go from 0 to 2"),
        ([-1], "No such option: -1; see thesis-cli run-task --help"),
        (["x"], "INDEX is x;"),
        ([], "INDEX is missing;"),
        ([0, "--array-size", 0], "--array-size is 0;"),
    ],
)
def test_bad_places(cli, here, arguments, message):
    cli("sweep", "s.toml", "--engine", "none")
    result = cli("run-task", "results/runs/s/tasks.json", *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.lower().startswith(f"error: {message}".lower()), result.err
    assert result.err.count("\n") == 1
    assert not results(here)


def test_bad_task_files(cli, here):
    cli("sweep", "s.toml", "--engine", "none")
    file = here / "results/runs/s/tasks.json"
    text = file.read_text()
    for content, place in (
        (json.dumps(json.loads(text), indent=4), "results/runs/s/tasks.json:2: "),
        (json.dumps(json.loads(text)), "results/runs/s/tasks.json: "),
        (text[:-2], "results/runs/s/tasks.json: "),
    ):
        file.write_text(content)
        refused(cli("run-task", "results/runs/s/tasks.json", 7), 2, place)
        for command in ("collect", "status"):
            refused(cli(command, "s.toml"), 2, f"{here}/{place}")
    file.write_text(text.replace('"map"', '"renyi"', 2).replace('"renyi"', '"map"', 1))
    refused(cli("run-task", "results/runs/s/tasks.json", 1), 2, "task 1 ", "renyi", "map")
    file.write_text(text.replace('"map"', '"dance"'))
    refused(cli("run-task", file, 0), 2, "checkout")
    assert "0 run now" in cli("sweep", "s.toml", "--engine", "none").out
    assert file.read_text() == text


@pytest.mark.parametrize("name", ["nothing.json", "."])
def test_no_task_file(cli, here, name):
    refused(cli("run-task", name, 0), 2, f"{name}: is no file")


# Before anything runs.


def test_a_dry_run_writes_nothing(cli, here):
    result = cli("sweep", "s.toml", "--dry-run")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines() == [
        "8 tasks, run in .:",
        "     0  thesis-cli map --solver=auto -- a.uai",
        "     1  thesis-cli map --solver=elimination -- a.uai",
        "     2  thesis-cli map --solver=auto -- b.uai",
        "     3  thesis-cli map --solver=elimination -- b.uai",
        "     4  thesis-cli map --solver=auto -- c.uai",
        "   ...  and 3 more",
        "table results/runs/s.csv",
    ]  # fmt: skip
    assert not (here / "results").exists()


@pytest.mark.parametrize("flags", [[], ["--engine", "none"], ["--refresh", "--json"]])
def test_more_than_a_million_tasks_need_a_yes(cli, here, flags):
    (here / "s.toml").write_text(SLOW.replace("= 8", "= 1_000_001"))
    refused(cli("sweep", "s.toml", *flags), 2, "s.toml: 1,000,001 tasks; ", "--yes")
    assert not (here / "results").exists()
    assert cli("sweep", "s.toml", "--dry-run").out.startswith("1,000,001 tasks, run in")


def test_a_million_is_not_more_than_a_million(cli, here, monkeypatch):
    monkeypatch.setattr(module, "MANY", 8)
    assert cli("sweep", "s.toml", "--engine", "none").status == 0
    monkeypatch.setattr(module, "MANY", 7)
    assert cli("sweep", "s.toml", "--engine", "none").status == 2
    assert cli("sweep", "s.toml", "--engine", "none", "--yes").status == 0


def test_it_is_refused_in_little_memory(here):
    (here / "s.toml").write_text(SLOW.replace("= 8", "= 900_000_000"))
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))"
    code += "; from thesis_cli.cli.app import main; main(['sweep', 's.toml'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("error: s.toml: 900,000,000 tasks; ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--out", "t.txt"], "--out {}/t.txt does not end in .csv"),
        (["--out", "folder.csv"], "--out {}/folder.csv is a folder"),
        (["--out", "a.uai/t.csv"], "--out {}/a.uai/t.csv: {}/a.uai cannot be written to"),
        (["--out", "taken.csv"], "{}/taken: "),
    ],
)  # fmt: skip
def test_bad_places_of_the_table(cli, here, flags, message):
    (here / "folder.csv").mkdir()
    (here / "taken").write_text("mine")
    before = state(here)
    refused(cli("sweep", "s.toml", "--jobs", 1, *flags), 2, message.format(here, here))
    assert state(here) == before


@pytest.mark.parametrize("out", ["in.csv", "in.CSV", "below/../in.csv"])
def test_a_table_that_would_overwrite_an_input_is_refused(cli, here, out):
    (here / "below").mkdir()
    shutil.copy(MODELS / "line.csv", here / out)
    (here / "t.toml").write_text(
        f'command = "renyi"\n[options]\nsamples = 5\n[grid]\nmodel = ["a.uai", "./{out.split("/")[-1]}"]\n'
    )
    result = cli("sweep", "t.toml", "--out", out)
    assert result.status == 2
    assert re.fullmatch(r"error: --out .* would overwrite the input \./in\.\w+; [^\n]*\n", result.err)


def test_a_record_that_would_overwrite_an_input_is_refused(cli, here):
    shutil.copy(ROOT / "data/tasks/candy.json", here)
    (here / "t.toml").write_text('out = "candy.csv"\ncommand = "synthesize"\n[options]\ntasks = "candy.json"\n')
    refused(cli("sweep", "t.toml"), 2, f"--out {here}/candy.csv would overwrite the input candy.json")


def test_bad_sweep_files(cli, here):
    (here / "binary.toml").write_bytes(bytes(range(256)))
    (here / "empty.toml").write_text("")
    (here / "typo.toml").write_text(SWEEP.replace("grid", "gird"))
    (here / "folder.toml").mkdir()
    before = state(here)
    for name, message in (
        ("none.toml", "none.toml: cannot be read (no such file or directory)"),
        ("folder.toml", "folder.toml: cannot be read (is a directory)"),
        ("binary.toml", "binary.toml: not text"),
    ):
        refused(cli("sweep", name), 2, message)
        refused(cli("collect", name), 2, message)
    for name, message in (("empty.toml", "no command; "), ("typo.toml", "unknown key 'gird'; 'grid' is nearest")):
        result = cli("sweep", name)
        assert result.status == 2
        assert result.err.startswith(f"error: {name}: {message}"), result.err
        assert result.err.count("\n") == 1
    assert state(here) == before


def test_a_folder_of_another_version_is_refused_by_all(cli, here):
    cli("sweep", "s.toml", "--engine", "none")
    file = here / "results/runs/s/run.json"
    file.write_text(file.read_text().replace('"layout": 1', '"layout": 2').replace(sweep_file.VERSION, "9.9"))
    before = state(here)
    place, layouts = "results/runs/s: ", "(2, not 1)"
    for command in (["sweep", "s.toml"], ["collect", "s.toml"], ["status", "s.toml"]):
        refused(cli(*command), 2, f"{here}/{place}", "thesis-cli 9.9", layouts)
    refused(cli("run-task", file.with_name("tasks.json"), 0), 2, f"{here}/{place}", layouts)
    warning = cli("status").err
    assert warning.startswith(f"warning: {place}")
    assert layouts in warning
    assert state(here) == before


# What it prints.


def test_summaries_as_json(cli, here):
    break_model(here)
    result = cli("sweep", "s.toml", "--jobs", 1, "--json")
    assert result.status == 1
    assert json.loads(result.out) == {
        "tasks": 8, "run_now": 6, "kept": 0, "failed": 2, "without_result": 0, "rows": 6,
        "table": f"{here}/results/runs/s.csv", "task_file": f"{here}/results/runs/s/tasks.json",
    }  # fmt: skip
    (run,) = json.loads(cli("status", "--json").out)["runs"]
    assert run == {
        "run": "s", "tasks": 8, "done": 6, "running": 0, "waiting": 0, "failed": 2, "missing": 0, "seconds_left": None,
    }  # fmt: skip
    (here / "s.toml").write_text(SWEEP.replace('["a.uai", "b.uai", "c.uai", "d.uai"]', '["b.uai"]'))
    found = json.loads(cli("sweep", "s.toml", "--jobs", 1, "--json").out)
    assert (found["rows"], found["table"], found["failed"]) == (0, None, 2)


def test_status_of_nothing(cli, here):
    assert cli("status").out.startswith("nothing was run here")
    assert cli("status", "--failed").out.startswith("nothing was run here")
    assert json.loads(cli("status", "--json").out) == {"runs": []}


def test_status_of_runs_of_one_name(cli, here):
    for folder in ("x", "y"):
        cli("sweep", "s.toml", "--engine", "none", "--out", f"{folder}/s.csv")
    cli("run-task", "y/s/tasks.json", 0)
    lines = cli("status", "x/s", "y/s").out.splitlines()[1:]
    assert [line.split()[:3] for line in lines] == [["s", "8", "0"], ["s", "8", "1"]]
    found = json.loads(cli("status", "x/s", "y/s", "--failed", "--json").out)["runs"]
    assert [(run["done"], run["errors"]) for run in found] == [(0, []), (1, [])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "nope"], "there is no file or folder nope"),
        (["status", "s.toml"], "s.toml: has not been run"),
        (["collect", "s.toml"], "s.toml: has not been run"),
        (["collect", "nope"], "nope: no folder of a sweep"),
        (["collect", "nope.csv"], "nope: no folder of a sweep"),
        (["collect", "a.uai"], "a.uai: no folder of a sweep"),
        (["status", "."], ".: no folder of a sweep"),
    ],
)  # fmt: skip
def test_no_run(cli, here, arguments, message):
    refused(cli(*arguments), 2, message)


def test_a_run_that_was_killed_before_its_tasks_were_written(cli, here):
    cli("sweep", "s.toml", "--engine", "none")
    (here / "results/runs/s/tasks.json").unlink()
    for command in ("collect", "status"):
        refused(cli(command, "s.toml"), 2, f"{here}/results/runs/s: ", "tasks.json")
    assert cli("status").status == 0


def test_a_damaged_run_hides_no_other(cli, here):
    for name in ("one", "two"):
        cli("sweep", "s.toml", "--engine", "none", "--out", f"results/runs/{name}.csv")
    (here / "results/runs/one/run.json").write_text("{")
    result = cli("status")
    assert result.status == 0
    assert result.out.splitlines()[1].split()[:2] == ["two", "8"]
    assert re.fullmatch(r"warning: results/runs/one/run.json: damaged [^\n]*\n", result.err)


def test_two_sweeps_of_one_name_do_not_share_results(cli, here):
    """The second is refused, until it is told to overwrite or where else to write."""
    for folder, model in (("one", MODEL), ("two", OTHER)):
        (here / folder).mkdir()
        (here / folder / "m.uai").write_text(model)
        (here / folder / "s.toml").write_text('command = "map"\n[grid]\nmodel = ["m.uai"]\n')
    assert cli("sweep", "one/s.toml").status == 0
    first = (here / "results/runs/s.csv").read_bytes()
    for command in ("sweep", "collect"):
        refused = cli(command, "two/s.toml")
        assert refused.status == 2
        assert f"has the results of {here / 'one' / 's.toml'}; give another --out, or --overwrite" in refused.err
        assert (here / "results/runs/s.csv").read_bytes() == first
    assert cli("sweep", "one/s.toml").status == 0
    assert cli("sweep", "two/s.toml", "--out", "results/runs/two.csv").status == 0
    assert cli("sweep", "two/s.toml", "--overwrite").status == 0
    found = (here / "results/runs/s.csv").read_bytes()
    assert found == (here / "results/runs/two.csv").read_bytes() != first
