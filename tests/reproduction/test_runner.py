"""The runtime on a small experiment of its own: resumed, killed, changed, damaged."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict

import pytest
from distributed import LocalCluster

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.reproduction import dask_engine, experiment, runner
from thesis_cli.reproduction.dask_engine import DaskEngine
from thesis_cli.reproduction.engines import LocalEngine
from thesis_cli.reproduction.experiment import Checkout, find_checkout
from thesis_cli.reproduction.publication import publish_sweep
from thesis_cli.reproduction.tasks import Driver, TaskFile, _started, task_key

SOURCE = """
import os, signal, sys, time
import numpy as np
from pathlib import Path
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.base.figures import panels

HERE = Path(__file__).parent

def tasks(settings):
    return [{"k": k, "pause": settings["pause"]} for k in range(settings["count"])]

class Table:
    # What a worker needs of the data frames of pandas, which takes longer to import than all else.
    def __init__(self, columns):
        self.columns = columns

    def to_csv(self, index, float_format, lineterminator):
        k, x = self.columns["k"], self.columns["x"]
        return "k,x" + lineterminator + "".join(f"{k},{float_format % value}{lineterminator}" for value in x)

def run(seed, k, pause):
    time.sleep(pause)
    if (HERE / f"fail-{k}").exists():
        raise ValueError("made to fail")
    try:
        (HERE / f"kill-{k}").unlink()
    except FileNotFoundError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(HERE / "runs", "a") as log:
        log.write(f"{k}\\n")
    frame = sys.modules["pandas"].DataFrame if "pandas" in sys.modules else Table
    return frame({"k": k, "x": np.random.default_rng(seed).normal(size=3)})

def plot(frame):
    figure, ax = panels(1, 1)
    ax.plot(frame.k, frame.x, "o")
    ax.set_axis_off()  # the fonts of a PDF take longest to draw
    return figure

EXPERIMENT = Experiment(
    id="toy", title="A toy", source="none", version=1,
    presets={"quick": {"count": 4, "pause": 0}, "paper": {"count": 8, "pause": 0.1}},
    tasks=tasks, run=run, plot=plot,
    claims=[
        Claim("mean", "none", "identity", "=", 0.0, lambda f: Measurement(f.x.mean(), f.x.std() / len(f) ** 0.5),
              "the mean is 0", scale=9.0),
        Claim("wrong", "none", "identity", "=", 9.0, lambda f: Measurement(f.x.mean()), "the mean is 9",
              finding="some finding"),
    ],
    caption="Draws against their number.",
)
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "thesis_cli").mkdir()
    (tmp_path / "experiments" / "toy.py").write_text(SOURCE)
    experiment.load.cache_clear()
    return Checkout(tmp_path)


def run(checkout, *args, name="toy", **options):
    return run_all(checkout, [name], *args, **options)[name]


def run_all(checkout, names, preset="quick", jobs=1, seed=0, refresh=False, engine=None):
    experiment.load.cache_clear()
    found = runner.reproduce(
        checkout.select(names),
        preset,
        checkout,
        engine or LocalEngine(jobs),
        seed=seed,
        refresh=refresh,
        bar=lambda total, name: nullcontext(lambda done: None),
    )
    return dict(found)


def runs(checkout):
    log = checkout.experiments / "runs"
    return sorted(map(int, log.read_text().split())) if log.exists() else []


def result(checkout, preset="quick"):
    return (checkout.results(preset) / "toy.csv").read_bytes()


def test_a_second_run_computes_nothing_and_changes_no_byte(checkout):
    first = run(checkout)
    assert (first.computed, first.kept) == (4, 0)
    files = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (checkout.root / "results").rglob("*") if p.is_file()}
    assert {p.name for p in files} >= {"toy.csv", "toy.json", "toy.pdf", "toy.png"}
    second = run(checkout)
    assert (second.computed, second.kept) == (0, 4)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files} == files


def test_recomputing_gives_the_same_bytes_and_keeps_the_record(checkout):
    run(checkout)
    before = result(checkout), (checkout.results("quick") / "toy.json").read_bytes()
    shutil.rmtree(checkout.store)
    assert run(checkout, jobs=2).computed == 4
    assert (result(checkout), (checkout.results("quick") / "toy.json").read_bytes()) == before


def test_the_seed_belongs_to_the_key_and_not_to_the_position(checkout):
    run(checkout)
    rows = result(checkout).splitlines()
    source = checkout.experiments / "toy.py"
    source.write_text(
        SOURCE.replace("for k in range(settings", "for k in reversed(range(settings").replace(
            '"count"])]', '"count"]))]'
        )
    )
    assert run(checkout).computed == 0
    assert sorted(result(checkout).splitlines()) == sorted(rows)
    assert result(checkout).splitlines() != rows
    run(checkout, seed=1)
    assert not set(result(checkout).splitlines()[1:]) & set(rows[1:])


def test_every_task_has_its_own_random_numbers(checkout):
    run(checkout)
    values = [line.split(b",")[1] for line in result(checkout).splitlines()[1:]]
    assert len(set(values)) == len(values) == 12


ENGINES = [
    pytest.param(LocalEngine(2), id="local"),
    pytest.param(DaskEngine(jobs=2), id="dask", marks=pytest.mark.long),  # test_experiments_run_together has it
]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_that_is_killed_costs_nothing(checkout, engine):
    run(checkout, "paper")
    undisturbed = result(checkout, "paper")
    shutil.rmtree(checkout.store)
    (checkout.experiments / "kill-3").touch()
    (checkout.experiments / "kill-6").touch()
    outcome = run(checkout, "paper", engine=engine)
    assert outcome.errors == []
    assert not list(checkout.experiments.glob("kill-*"))
    assert result(checkout, "paper") == undisturbed


@pytest.mark.parametrize("engine", ENGINES)
def test_results_that_cannot_be_stored_end_the_run(checkout, engine):
    """At once, with the name of the file; not after all tasks have been tried in vain."""
    folder = checkout.store / "toy" / "segments"
    folder.parent.mkdir(parents=True)
    folder.touch()
    with pytest.raises(OSError, match="segments"):
        run(checkout, "paper", engine=engine)
    assert len(runs(checkout)) < 8


def test_results_that_are_damaged_after_they_were_read_are_no_lost_rows(checkout, tmp_path):
    run(checkout)
    tasks = runner.plan(checkout.files()["toy"], "quick", checkout, 0)
    tasks.finished()
    (segment,) = checkout.store.rglob("segments/*")
    os.truncate(segment, segment.stat().st_size - 1)
    with pytest.raises(WorkFailed, match=r"toy was damaged or removed meanwhile; run this again"):
        publish_sweep(tasks, tmp_path / "table.csv")
    assert not list(tmp_path.glob("*table*"))


def test_a_run_that_is_refused_drops_no_results(checkout):
    """Of two with --refresh that begin at once, the second would drop what the first has computed."""
    run(checkout)
    (checkout.experiments / "toy.py").write_text(SOURCE.replace("size=3)", "size=3) + 1"))
    experiment.load.cache_clear()
    tasks = runner.plan(checkout.files()["toy"], "quick", checkout, 0)
    bar = lambda total, name: nullcontext(lambda done: None)  # noqa: E731
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        driver = Driver(socket.gethostname(), other.pid, _started(other.pid), 1)
        tasks.path.with_suffix(".driver").write_text(json.dumps(asdict(driver)))
        with pytest.raises(InputError, match="another run works on"):
            list(runner.complete({"toy": tasks}, LocalEngine(1), refresh=True, bar=bar))
        other.kill()
    assert len(TaskFile(tasks.path, tasks.work).finished()) == 4


def test_a_dask_scheduler_that_does_not_answer(checkout, monkeypatch):
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.1)
    with pytest.raises(InputError, match="no dask scheduler answers at tcp"):
        run(checkout, engine=DaskEngine("tcp://127.0.0.1:1"))


def test_a_run_ends_where_no_dask_worker_is_left(checkout, monkeypatch):
    """It would wait for ever: workers that are killed while they start are not started again."""
    monkeypatch.setattr(dask_engine, "PATIENCE", 2)
    (checkout.experiments / "toy.py").write_text(SOURCE.replace('"pause": 0}', '"pause": 600}'))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        threading.Timer(2, cluster.scale, [0]).start()
        with pytest.raises(InputError, match="no dask worker is left"):
            run(checkout, engine=DaskEngine(cluster.scheduler_address))


def test_a_task_that_always_dies_is_given_up(checkout):
    source = checkout.experiments / "toy.py"
    source.write_text(SOURCE.replace(").unlink()\n", ').exists() or (HERE / "nothing").unlink()\n'))
    (checkout.experiments / "kill-2").touch()
    outcome = run(checkout, "paper", jobs=2)
    assert [error for _, error in outcome.errors] == ["its process was killed 3 times"]
    assert outcome.computed == 7
    assert not (checkout.results("paper") / "toy.csv").exists()


def test_a_task_that_raises_is_reported_and_not_kept(checkout):
    (checkout.experiments / "fail-1").touch()
    outcome = run(checkout)
    assert len(outcome.errors) == 1
    assert "made to fail" in outcome.errors[0][1]
    assert not (checkout.results("quick") / "toy.csv").exists()
    (checkout.experiments / "fail-1").unlink()
    again = run(checkout)
    assert (again.computed, again.kept) == (1, 3)


def test_damaged_records_count_as_missing(checkout):
    run(checkout)
    before = result(checkout)
    (segment,) = checkout.store.rglob("segments/*")
    records = segment.read_bytes().split(b"\n# ")
    segment.write_bytes(b"\n# ".join([b"", records[1][1:], records[2].replace(b"\n1,", b"\n2,"), *records[3:]])[:-9])
    assert run(checkout).computed == 3
    assert result(checkout) == before


def test_changed_code_is_warned_of_and_refreshed(checkout, caplog):
    run(checkout)
    before = result(checkout)
    (checkout.experiments / "toy.py").write_text(SOURCE.replace("size=3)", "size=3) + 1"))
    assert run(checkout).computed == 0
    assert "4 stored results come from older code; --refresh" in caplog.text
    assert result(checkout) == before
    record = json.loads((checkout.results("quick") / "toy.json").read_text())
    assert run(checkout, refresh=True).computed == 4
    assert record["code"] != json.loads((checkout.results("quick") / "toy.json").read_text())["code"]
    assert result(checkout) != before
    caplog.clear()
    assert run(checkout, refresh=True).computed == 0
    assert caplog.text == ""


def test_a_raised_version_starts_again(checkout):
    run(checkout)
    (checkout.experiments / "toy.py").write_text(SOURCE.replace("version=1", "version=2"))
    assert run(checkout).computed == 4


def test_tasks_that_two_experiments_share_are_run_once(checkout):
    shared = SOURCE.replace('id="toy"', 'id="other"').replace("claims=[", 'shares="toy", claims=[')
    (checkout.experiments / "other.py").write_text(shared)
    assert run(checkout, name="other").computed == 4
    assert run(checkout).computed == 0
    assert (checkout.results("quick") / "other.csv").read_bytes() == result(checkout)
    assert runs(checkout) == [0, 1, 2, 3]


def test_experiments_run_together_the_slowest_first(checkout):
    twin = SOURCE.replace('id="toy"', 'id="twin"')
    for old in ('-{k}"', "{k}\\n"):  # names of files, lines of the log
        twin = twin.replace(old, old.replace("{k}", "{k + 10}"))
    (checkout.experiments / "twin.py").write_text(twin)
    names, folder = ["toy", "twin"], checkout.results("quick")
    for name, seconds in zip(names, (1, 5), strict=True):
        run(checkout, name=name)
        record = json.loads((folder / f"{name}.json").read_text())
        (folder / f"{name}.json").write_text(json.dumps(record | {"slowest_seconds": seconds}))
    alone = {name: (folder / f"{name}.csv").read_bytes() for name in names}
    shutil.rmtree(checkout.store)
    (checkout.experiments / "runs").unlink()
    found = run_all(checkout, names)
    assert {name: (o.computed, o.published.verdict) for name, o in found.items()} == dict.fromkeys(
        names, (4, "identical")
    )
    order = (checkout.experiments / "runs").read_text().split()
    assert order == ["10", "11", "12", "13", "0", "1", "2", "3"]
    for engine in (LocalEngine(2), DaskEngine(jobs=2)):
        shutil.rmtree(checkout.store)
        for file in ("fail-2", "kill-12", "fail-13"):
            (checkout.experiments / file).touch()
        found = run_all(checkout, names, engine=engine)
        assert {name: [where for where, _ in o.errors] for name, o in found.items()} == {
            "toy": ['{"k": 2, "pause": 0}'],
            "twin": ['{"k": 3, "pause": 0}'],
        }
        for file in ("fail-2", "fail-13"):
            (checkout.experiments / file).unlink()
        assert [o.computed for o in run_all(checkout, names, engine=engine).values()] == [1, 1]
        assert {name: (folder / f"{name}.csv").read_bytes() for name in names} == alone


def test_the_record_of_a_result(checkout):
    run(checkout)
    record = json.loads((checkout.results("quick") / "toy.json").read_text())
    assert record["settings"] == {"count": 4, "pause": 0}
    assert record["tasks"] == 4
    assert 0 <= record["slowest_seconds"] <= record["task_seconds"]
    assert set(record) >= {
        "experiment",
        "preset",
        "seed",
        "version",
        "code",
        "versions",
        "git_commit",
        "machine",
        "when",
    }


def test_keys_depend_on_content_alone():
    a = task_key("e", 1, {"a": 1, "b": 2}, 0)
    assert a == task_key("e", 1, {"b": 2, "a": 1}, 0)
    others = [
        ("f", 1, {"a": 1, "b": 2}, 0),
        ("e", 2, {"a": 1, "b": 2}, 0),
        ("e", 1, {"a": 1}, 0),
        ("e", 1, {"a": 1, "b": 2}, 1),
    ]
    assert len({a, *(task_key(*o) for o in others)}) == 5


def test_unknown_names(checkout, tmp_path):
    with pytest.raises(InputError, match=r"no preset huge; .*quick, paper"):
        run(checkout, "huge")
    with pytest.raises(InputError, match=r"no experiment 'nope'; .*toy"):
        checkout.select(["nope"])
    (checkout.experiments / "other.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="declares no EXPERIMENT"):
        experiment.load(checkout.files()["other"])
    (checkout.experiments / "misnamed.py").write_text(SOURCE)
    with pytest.raises(InputError, match=r"declares the id toy; .*misnamed"):
        experiment.load(checkout.files()["misnamed"])


def test_the_checkout_is_found_from_below():
    assert find_checkout(ROOT / "data" / "models").root == ROOT


@pytest.mark.parametrize("moment", [1.3, *(pytest.param(m, marks=pytest.mark.long) for m in (0.9, 2.0))])
def test_a_driver_that_is_killed_is_resumed(checkout, moment):
    """After kill -9 at any moment, the next run gives the bytes of an undisturbed one."""
    run(checkout, "paper")
    undisturbed = result(checkout, "paper")
    for file in (checkout.root / "results").rglob("*"):
        if file.is_file():
            file.unlink()
    command = [sys.executable, "-m", "thesis_cli", "reproduce", "--preset", "paper", "--jobs", "2", "--quiet"]
    process = subprocess.Popen(
        command, cwd=checkout.root, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert run(checkout, "paper", jobs=2).errors == []
    assert result(checkout, "paper") == undisturbed


def alive(driver):
    """Processes of the driver's session."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == driver and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_workers_end_with_their_driver(checkout, how):
    (checkout.experiments / "toy.py").write_text(SOURCE.replace('"pause": 0.1', '"pause": 4'))
    command = [sys.executable, "-m", "thesis_cli", "reproduce", "--preset", "paper", "--jobs", "2", "--quiet"]
    process = subprocess.Popen(
        command, cwd=checkout.root, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while len(alive(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(0.5)
    process.send_signal(how)
    process.wait()
    while alive(process.pid) and time.monotonic() < deadline + 30:
        time.sleep(0.2)
    assert alive(process.pid) == []
