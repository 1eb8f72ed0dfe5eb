"""Commands as the work of tasks: same task, same bytes; what fails says so; the process stays as it was."""

import logging
import os
import pickle
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest
import threadpoolctl
from thesis_cli.cli.command_work import COMMANDS, CommandWork, arguments, options_of

from tests.commands.test_dp_test import table, write_csv, write_release
from tests.conftest import MODELS, ROOT
from thesis_cli.base.errors import WorkFailed
from thesis_cli.cli import app, command_work
from thesis_cli.reproduction import store
from thesis_cli.reproduction.store import Task, task_key
from thesis_cli.reproduction.worker import run_task

GLASS = {"size": "3x3", "samples": 50, "coupling": 0.5, "alpha": [0, -0.1]}


@pytest.fixture
def folder(tmp_path):
    """What tasks read, in a folder that they are not started from."""
    made = tmp_path / "inputs"
    made.mkdir()
    data = (*(MODELS / name for name in ("asia.uai", "ising-4x4.uai", "line.csv")), ROOT / "data/tasks/candy.json")
    for file in (*data, ROOT / "data/tables/people.csv", ROOT / "data/tables/people.toml"):
        shutil.copy(file, made)
    return made


def task(folder, command, parameters, seed=None):
    key = task_key(command, 1, parameters, seed)
    return Task(command, parameters, seed, key, folder.parent / "store" / key[:2] / f"{key}.csv")


def run(folder, command, parameters, seed=None, cores=1):
    return CommandWork(command, folder, cores).run(task(folder, command, parameters, seed))


@pytest.mark.parametrize(
    ("command", "parameters", "seed"),
    [
        ("spin-glass", GLASS, 3),
        ("estimate-z", {"model": "ising-4x4.uai", "trick": "all", "exact": True, "debias": False}, 1),
        ("estimate-z", {"model": "ising-4x4.uai", "method": "unary", "alpha": -0.1}, 1),
        ("estimate-z", {"target": "line.csv", "samples": 20, "exact": True}, 1),
        ("renyi", {"model": "asia.uai", "order": [0.5, 2, "inf"], "samples": 40}, 0),
        ("map", {"model": "asia.uai"}, None),
        ("sample", {"model": "asia.uai", "count": 20}, 5),
        ("sample", {"model": "ising-4x4.uai", "count": 5, "method": "perturb"}, 5),
    ],
)
def test_a_task_gives_the_table_of_its_command_whatever_the_cores(cli, folder, monkeypatch, command, parameters, seed):
    made = run(folder, command, parameters, seed)
    assert run(folder, command, parameters, seed, cores=2) == made
    monkeypatch.chdir(folder)
    line = arguments(command, parameters, seed)
    assert cli(line[0], "--out", "by-hand.csv", *line[1:]).status == 0
    assert (folder / "by-hand.csv").read_text() == made


def test_a_release_can_be_made(folder):
    """It gives other bytes each time: its noise has no seed."""
    given = {"table": "people.csv", "schema": "people.toml", "method": "subspace", "size": 10, "rows": 5}
    tables = [run(folder, "dp-release", {**given, "epsilon": 1, "delta": 1e-6}, cores=cores) for cores in (1, 2)]
    assert [made.count("\n") for made in tables] == [6, 6]
    assert tables[0] != tables[1]


@pytest.mark.parametrize(
    ("command", "parameters", "seed"),
    [
        ("dp-query", {"queries": ["mean(height)", "prob(height > 1.7)"]}, None),
        ("dp-test", {"other": "other.csv", "permutations": 50}, 1),
    ],
)
def test_a_release_can_be_asked(folder, command, parameters, seed):
    write_release(folder / "r.csv")
    write_csv(folder / "other.csv", table(5, 100))
    answers = run(folder, command, {"release": "r.csv", **parameters}, seed)
    assert len(answers.splitlines()) == 3
    assert run(folder, command, {"release": "r.csv", **parameters}, seed, cores=2) == answers


def test_a_table_that_holds_no_answer_is_a_table(folder):
    """synthesize ends with status 1 where no program fits."""
    tasks = {"tasks": "candy.json", "max_length": 1, "solver": "dfs"}
    made = run(folder, "synthesize", tasks)
    assert "no program of at most 1 line was found" in made
    again = run(folder, "synthesize", tasks, cores=2)
    without_seconds = [re.sub(r",[\d.]+,(?=no program)", ",", text) for text in (made, again)]
    assert without_seconds[0] == without_seconds[1]


def test_only_times_of_searches_differ_between_runs(folder):
    """Tables have no other column of seconds."""
    tables = {
        "spin-glass": run(folder, "spin-glass", GLASS, 1),
        "dp-audit": run(folder, "dp-audit", {"runs": 40, "whole_runs": 40}),
        "synthesize": run(folder, "synthesize", {"tasks": "candy.json", "max_length": 1}),
    }
    assert [command for command, made in tables.items() if "seconds" in made.partition("\n")[0]] == ["synthesize"]


@pytest.mark.parametrize(
    ("command", "parameters", "seed", "message"),
    [
        ("map", {"model": "no.uai"}, None, r"no\.uai: .*no such file"),
        ("estimate-z", {}, 0, "MODEL"),
        ("spin-glass", {"size": "ten"}, 0, "--size ten; rows x columns is wanted"),
        ("spin-glass", {"samples": "many"}, 0, "--samples.*integer"),
        ("synthesize", {"run": ["a", "b"]}, None, "run is not for the tasks of a sweep"),
        ("spin-glass", {"couplng": 1}, 0, "spin-glass has no option 'couplng'; 'coupling' is nearest"),
        ("make-corpus", {"length": 1}, 0, "make-corpus writes no table"),
        ("nonsense", {}, 0, "no command 'nonsense'"),
    ],
)
def test_failures_are_the_commands_own_words(folder, command, parameters, seed, message):
    with pytest.raises(WorkFailed) as failed:
        run(folder, command, parameters, seed)
    first, *rest = str(failed.value).splitlines()
    assert re.search(message, first)
    assert not first.startswith("error: ")
    if rest:
        line = ["thesis-cli", *arguments(command, parameters, seed)]
        assert rest == [f"cd {shlex.quote(str(folder))} && {shlex.join(line)}"]


def test_a_crash_keeps_its_traceback_and_says_how_to_run_it_by_hand(folder, monkeypatch):
    monkeypatch.setattr(app, "main", lambda line: 1 // 0)
    given = task(folder, "map", {"model": "asia.uai"})
    report = run_task(given, CommandWork("map", folder))
    assert "ZeroDivisionError" in report
    assert report.rstrip().endswith("&& thesis-cli map -- asia.uai")


def test_a_command_that_says_nothing_and_writes_nothing_has_failed(folder, monkeypatch):
    monkeypatch.setattr(app, "main", lambda line: 0)
    with pytest.raises(WorkFailed, match="exit status 0, and no table"):
        run(folder, "map", {"model": "asia.uai"})


def test_an_interruption_is_no_failure(folder, monkeypatch):
    monkeypatch.setattr(app, "main", lambda line: app.INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        run_task(task(folder, "map", {"model": "asia.uai"}), CommandWork("map", folder))
    assert not (folder.parent / "store").exists()


def test_the_log_has_warnings_alone(folder):
    """No word of the temporary table, and no log where nothing was said."""
    (folder / "p.csv").write_text("0.2\n0.8\n")
    given = task(folder, "renyi", {"model": "p.csv", "samples": 10}, 0)
    work = CommandWork("renyi", folder)
    assert run_task(given, work) is None
    (line,) = given.log.read_text().splitlines()
    assert line.startswith("warning: ")
    (folder / "p.csv").write_text("-1\n0.5\n")
    assert run_task(given, work) is None
    assert not given.log.exists()


def _of_the_process():
    root, library = logging.getLogger(), logging.getLogger("thesis_cli")
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    blas = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    streams = (sys.stdin, sys.stdout, sys.stderr)
    messages = (root.handlers[:], root.level, library.handlers[:], library.level)
    return os.getcwd(), streams, messages, signals, dict(os.environ), sys.path[:], blas


@pytest.mark.parametrize("parameters", [{"model": "asia.uai"}, {"model": "no.uai"}, {"evidence": "x"}])
def test_the_process_stays_as_it_was(folder, tmp_path, monkeypatch, capsys, parameters):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    handler, library = logging.FileHandler(tmp_path / "mine.log"), logging.getLogger("thesis_cli")
    logging.getLogger().addHandler(handler)
    level = library.level
    library.setLevel(logging.CRITICAL)
    try:
        command_work._threads()  # loads libraries
        before = _of_the_process()
        run_task(task(folder, "map", parameters), CommandWork("map", folder))
        assert _of_the_process() == before
        assert handler.stream is not None
        assert (tmp_path / "mine.log").read_text() == ""
    finally:
        library.setLevel(level)
        logging.getLogger().removeHandler(handler)
        handler.close()
    assert capsys.readouterr() == ("", "")
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("cores", [1, 2])
def test_a_task_has_the_cores_it_is_given(folder, monkeypatch, cores):
    seen = []

    def main(line):
        pools = threadpoolctl.threadpool_info()
        seen.append((line, {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}, os.getcwd()))
        return 0

    monkeypatch.setattr(app, "main", main)
    command_work._threads().limit(limits=2, user_api="blas")
    for command in ("spin-glass", "map"):
        with pytest.raises(WorkFailed):
            run(folder, command, {}, cores=cores)
    (glass, threads, where), (plain, *_) = seen
    assert f"--jobs={cores}" in glass
    assert not any("--jobs" in word for word in plain)
    assert threads == {cores}
    assert where == str(folder)


def test_work_can_be_sent_to_other_processes(folder):
    work = CommandWork("map", folder, 3)
    assert pickle.loads(pickle.dumps(work)) == work


def test_the_code_of_a_task_covers_every_file_that_it_names(folder):
    def code(**parameters):
        return CommandWork("dp-query", folder).code(task(folder, "dp-query", parameters))

    def changes(file, **parameters):
        """Whether the code does, with the file's content."""
        path = folder / file
        path.write_text("a")
        os.utime(path, ns=(1, 1))
        before = code(**parameters)
        assert code(**parameters) == before
        path.write_text("b")  # as large
        os.utime(path, ns=(2, 2))
        return code(**parameters) != before

    assert changes("r.csv", release="r.csv")
    assert changes("r.json", release="r.csv")  # its record
    assert changes("x.csv", queries=["no file", "x.csv"])
    assert changes("x.csv", holdout=str(folder / "x.csv"))
    assert changes("mine.py", define="mine:thing.part")
    assert changes("mine.py", define="mine.py:thing")
    assert not changes("x.csv", release="r.csv")
    assert len({code(n=1), code(n=2)}) == 1  # which are the key's part


def test_codes_of_commands_differ_and_follow_the_fingerprint(folder, monkeypatch):
    codes = {CommandWork(command, folder).code(task(folder, command, {})) for command in COMMANDS}
    assert len(codes) == len(COMMANDS)
    monkeypatch.setattr(command_work, "_code_of", lambda command: "other code")
    assert CommandWork("map", folder).code(task(folder, "map", {})) not in codes


def test_a_file_is_read_once_for_many_tasks(folder, monkeypatch):
    opened = []
    read = open
    monkeypatch.setattr(command_work, "open", lambda *a: opened.append(a[0]) or read(*a), raising=False)
    work = CommandWork("map", folder)
    codes = [work.code(task(folder, "map", {"model": "asia.uai"})) for _ in range(3)]
    assert codes[0] == codes[1] == codes[2]
    assert opened == [str(folder / "asia.uai")]


@pytest.mark.parametrize("text", ["", "a" * 5000, "\0", "sqlite:///x.db?mode=ro", "/", "."])
def test_what_names_no_file_changes_nothing(folder, text):
    work = CommandWork("map", folder)
    assert work.code(task(folder, "map", {"model": text})) == work.code(task(folder, "map", {}))


def test_every_command_of_a_sweep_takes_out():
    assert all("out" in options_of(command) for command in COMMANDS)


def test_results_are_stored_with_their_code(folder):
    given, work = task(folder, "spin-glass", GLASS, 2), CommandWork("spin-glass", folder)
    assert run_task(given, work) is None
    stored = store.read(given.file)
    assert stored.text == work.run(given)
    assert stored.code == work.code(given)
    assert "/tmp" not in stored.text
    assert Path(folder).name not in stored.text
