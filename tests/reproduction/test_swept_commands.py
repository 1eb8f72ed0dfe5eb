"""Each command gives the same table as a task and in the shell."""

from __future__ import annotations

import csv
import io
import shutil

import pytest

from tests.conftest import ROOT
from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.reproduction.command_work import CommandWork, shell_words
from thesis_cli.reproduction.tasks import Task, task_key

RELEASE = {"table": "people.csv", "schema": "people.toml", "epsilon": 1, "delta": 1e-6, "size": 10, "rows": 5}
MEASURED = {"table": "people.csv", "schema": "people.toml", "epsilon": 1, "delta": 1e-6}
TASKS = [
    ("estimate-z", {"model": "ising-4x4.uai", "trick": "all", "samples": 20, "exact": True}, 1),
    ("bound", {"model": "ising-4x4.uai", "method": "unary", "alpha": [-0.1], "samples": 20}, 1),
    ("posterior", {"regression": "line.csv", "samples": 20, "exact": True}, 1),
    ("posterior", {"target": "double-well.py:log_density", "low": [-2], "high": [2], "slope": 48, "samples": 5}, 1),
    ("race", {"factors": "factors-5x2000.npy", "samples": 20}, 1),
    ("marginals", {"model": "asia.bif", "evidence": ["xray=yes"]}, 0),
    ("map", {"model": "asia.uai", "evidence": ["asia-xray.evid"]}, None),
    ("sample", {"model": "asia.uai", "count": 20}, 5),
    ("spin-glass", {"size": "3x3", "samples": 50, "coupling": [0.5], "alpha": [0, -0.1]}, 3),
    ("renyi", {"model": "asia.uai", "order": [0.5, 2, "inf"], "samples": 40}, 0),
    ("dp-release", RELEASE, None),
    ("dp-measure", {**MEASURED, "queries": ["mean(age)", "histogram(region)"]}, None),
    ("dp-query", {"release": "release.csv", "queries": ["mean(income)", "prob(age > 65)"], "replicates": 5}, None),
    ("dp-test", {"release": "release.csv", "other": "people.csv", "permutations": 50}, 1),
    ("dp-audit", {"method": "exponential", "runs": 40, "command_runs": 0}, None),
    ("synthesize", {"tasks": "candy.json", "max_length": 1}, None),
    ("explain", {"tasks": "candy.json"}, None),
    ("structured ln-z", {"model": "ring.toml", "method": "perturb", "samples": 20, "exact": True}, 1),
    ("structured sample", {"model": "tour.toml", "count": 20, "method": "meta"}, 1),
    ("structured predict", {"data": "iris-ranking-test.csv", "weights": "iris-ranking.safetensors"}, None),
    ("kernel-eval", {"expression": "log(income) + normal(0, 1)", "table": "release.csv", "size": 20}, 1),
]
REPEATED = ("dp-release", "dp-measure", "dp-audit")
"""Commands whose noise has no seed: each run differs."""
TIMES = ("seconds",)


@pytest.fixture
def folder(tmp_path):
    """What tasks read, in a folder that is not the working folder."""
    made = tmp_path / "inputs"
    made.mkdir()
    for name in ("labels", "models", "tables"):
        shutil.copytree(ROOT / "data" / name, made, dirs_exist_ok=True)
    shutil.copy(ROOT / "data/tasks/candy.json", made)
    for suffix in ("csv", "json"):
        shutil.copy(ROOT / f"data/releases/people.{suffix}", made / f"release.{suffix}")
    return made


def rows(text):
    found = csv.DictReader(io.StringIO(text, newline=""))
    return [{key: value for key, value in row.items() if key not in TIMES} for row in found]


def test_all_commands_that_can_be_swept_are_tried():
    swept = {name for name in entries() if not command_named(name).not_swept}
    assert {name for name, _, _ in TASKS} >= swept


@pytest.mark.parametrize(("name", "parameters", "seed"), TASKS)
def test_a_task_gives_the_table_of_the_shell_whatever_the_cores(cli, folder, monkeypatch, name, parameters, seed):
    if name not in entries():
        pytest.skip("not a command yet")
    key = task_key(name, 2, parameters, seed)
    task = Task(name, parameters, seed, key, folder.parent / "store" / key[:2] / f"{key}.csv")
    found = CommandWork(name, folder, 2).run(task)
    assert str(folder) not in found
    monkeypatch.chdir(folder)
    line = shell_words(name, parameters, seed)
    own = len(name.split())
    jobs = ["--jobs", 1] if "jobs" in command_named(name).fields else []
    assert cli(*line[:own], "--out", "by-hand.csv", *jobs, *line[own:]).status in (0, 1)
    by_hand = (folder / "by-hand.csv").read_text()
    assert [set(row) for row in rows(found)] == [set(row) for row in rows(by_hand)]
    if name not in REPEATED:
        assert rows(found) == rows(by_hand)
