"""The table of many tasks: parameters, then results, and no column twice."""

import csv
import io
import json
import os
import resource

import pytest

from tests.reproduction.test_task_file import Echo
from thesis_cli.base.errors import WorkFailed
from thesis_cli.reproduction.publication import publish_sweep
from thesis_cli.reproduction.tasks import TaskFile, TaskSpec


@pytest.fixture
def make(tmp_path):
    """A task file of (parameters, seed, result or None), and the rows of its table."""

    def made(*given):
        tasks = TaskFile.write(tmp_path / "run/tasks.json", [TaskSpec("map", p, s) for p, s, _ in given], Echo())
        for task, (_, _, text) in zip(tasks, given, strict=True):
            if text is not None:
                task.save(text, "code", 1.0)
        out = tmp_path / "run.csv"
        publish_sweep(tasks, out)
        return tasks, out, read(out) if out.exists() else None

    return made


def read(out):
    return list(csv.reader(io.StringIO(out.read_bytes().decode(), newline="")))


def test_parameters_and_the_seed_come_first(make):
    _, out, rows = make(
        ({"size": "3x3", "c": 0.5}, 0, "value,low\n1.50,1\n2,0\n"), ({"size": "3x3", "c": 2}, 1, "value,low\n3,2\n")
    )
    assert rows == [
        ["size", "c", "seed", "value", "low"],
        ["3x3", "0.5", "0", "1.50", "1"],
        ["3x3", "0.5", "0", "2", "0"],
        ["3x3", "2", "1", "3", "2"],
    ]
    assert out.read_bytes().count(b"\r") == 0


def test_a_command_without_seed_has_no_such_column(make):
    assert make(({"c": 1}, None, "x\n1\n"))[2] == [["c", "x"], ["1", "1"]]


def test_rows_are_in_the_order_of_the_tasks(make):
    given = [({"k": k}, 0, f"x\n{k}\n") for k in (5, 3, 9, 1)]
    assert [row[0] for row in make(*given)[2][1:]] == ["5", "3", "9", "1"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [(1e-6, "0.000001"), (2, "2.0"), (0.1, "0.1000"), ("inf", "inf"), ("nan", "nan"), ("a", "a"), (True, "true"), ("", "")],  # noqa: E501
)  # fmt: skip
def test_a_result_that_repeats_a_parameter_is_left_out(make, asked, found):
    rows = make(({"a": asked}, 0, f"b,a,seed\n1,{found},0\n2,{found},0\n"))[2]
    assert rows[0] == ["a", "seed", "b"]


@pytest.mark.parametrize(
    ("asked", "found"), [(1, "2"), ("auto", "grid"), ([0, -0.1], "0"), (0.1, "0.10000001"), ("1", ""), (1, "nan")]
)
def test_a_result_that_differs_from_its_parameter_has_a_name_of_its_own(make, asked, found):
    """Also if it does so in the last row alone."""
    text = json.dumps(asked) if not isinstance(asked, str) else asked
    rows = make(({"a": 7}, 0, "a,b\n7,1\n"), ({"a": asked}, 0, f"a,b\n{found},2\n"))[2]
    assert rows == [["a", "seed", "result_a", "b"], ["7", "0", "7", "1"], [text, "0", found, "2"]]


def test_a_result_has_columns_that_are_no_parameters(make):
    """Two grids, of which one leaves an option at its default."""
    for given in ([({"a": 1}, 0, "a\n1\n"), ({}, 0, "a\n9\n")], [({}, 0, "a\n9\n"), ({"a": 1}, 0, "a\n1\n")]):
        rows = make(*given)[2]
        assert sorted(rows[0]) == ["a", "result_a", "seed"]
        found = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        assert sorted((row["a"], row["result_a"]) for row in found) == [("", "9"), ("1", "1")]


def test_columns_are_those_of_all_results(make):
    rows = make(
        ({"a": 1}, 0, "x,y\n1,2\n"), ({"b": 1}, 0, "z,y\n3,4\n"), ({"a": 2, "c": 3}, 0, "w\n5\n"),
    )[2]  # fmt: skip
    assert rows == [
        ["a", "seed", "b", "c", "x", "y", "z", "w"],
        ["1", "0", "", "", "1", "2", "", ""],
        ["", "0", "1", "", "", "4", "3", ""],
        ["2", "0", "", "3", "", "", "", "5"],
    ]


def test_cells_are_quoted_as_they_must_be(make):
    asked = {"model": 'a,"b"\nc.uai', "alpha": [0, -0.1], "names": ["x", "y,z"], "any": False, "ü": "é"}
    rows = make((asked, 0, 'said\n"two\nlines, ""quoted"""\n'))[2]
    assert rows[1] == ['a,"b"\nc.uai', "[0, -0.1]", '["x", "y,z"]', "false", "é", "0", 'two\nlines, "quoted"']


def test_results_without_rows(make):
    empty, two = "x,a\n", "x,a,b\n1,1,2\n"
    assert make(({"a": 1}, 0, empty), ({"a": 1}, 1, two))[2] == [["a", "seed", "x", "b"], ["1", "1", "1", "2"]]
    assert make(({"a": 1}, 0, two), ({"a": 1}, 1, "x,c\n"))[2][0] == ["a", "seed", "x", "b", "c"]
    assert make(({"a": 1}, 0, empty))[2] == [["a", "seed", "x"]]


def test_a_table_of_what_there_is(make):
    rows = make(({"a": 0}, 0, None), ({"a": 1}, 0, "x\n1\n"), ({"a": 2}, 0, None), ({"a": 3}, 0, "x\n3\n"))[2]
    assert rows == [["a", "seed", "x"], ["1", "0", "1"], ["3", "0", "3"]]


def test_nothing_is_written_of_nothing(make):
    tasks, out, rows = make(({"a": 0}, 0, None))
    assert publish_sweep(tasks, out) == (0, 0)
    assert rows is None
    assert not out.with_suffix(".json").exists()


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_a_damaged_result_is_none(make, damaged):
    """A run that has seen it whole writes no table without it; the next one lacks its row, also where it is the
    first, which others have their heading from.
    """
    given = [({"a": k}, 0, "x\n1\n") for k in range(3)]
    tasks, out, before = make(*given)
    (segment,) = (tasks.path.parent / "segments").iterdir()
    place = tasks.store.results[tasks.keys[damaged]]
    data = segment.read_bytes()
    segment.write_bytes(data[: place.start] + data[place.start :].replace(b"\n1\n", b"\n2\n", 1))
    with pytest.raises(WorkFailed, match="was damaged or removed meanwhile; run this again"):
        publish_sweep(tasks, out)
    assert read(out) == before
    assert publish_sweep(TaskFile(tasks.path, tasks.work), out) == (2, 2)
    assert read(out) == before[: 1 + damaged] + before[2 + damaged :]
    assert json.loads(out.with_suffix(".json").read_text())["finished"] == 2


def test_what_is_the_same_is_left_alone(make):
    given = [({"a": 1}, 0, "x\n1\n"), ({"a": 2}, 0, "x\n2\n")]
    tasks, out, _ = make(*given)
    record = out.with_suffix(".json")
    for file in (out, record):
        os.utime(file, (1, 1))
    assert publish_sweep(tasks, out) == (2, 2)
    assert (out.stat().st_mtime, record.stat().st_mtime) == (1, 1)
    tasks[1].save("x\n3\n", "code", 1.0)
    publish_sweep(tasks, out)
    assert min(out.stat().st_mtime, record.stat().st_mtime) > 1
    assert os.listdir(out.parent / "run")
    assert sorted(p.name for p in out.parent.iterdir()) == ["run", "run.csv", "run.json"]


def test_the_record_names_the_tasks(make):
    tasks, out, _ = make(({"a": 1}, 0, "x\n1\n2\n"), ({"a": 2}, 0, None))
    record = json.loads(out.with_suffix(".json").read_text())
    assert {k: record[k] for k in ("command", "tasks", "finished", "rows")} == {
        "command": "map", "tasks": 2, "finished": 1, "rows": 2,
    }  # fmt: skip
    assert record["task_file"] == str(tasks.path)
    assert set(record) >= {"sha256", "versions", "git_commit", "when"}


def test_a_full_disk_leaves_the_old_table(make, monkeypatch):
    tasks, out, _ = make(({"a": 1}, 0, "x\n1\n"))
    before = out.read_bytes()
    tasks[0].save("x\n2\n", "code", 1.0)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*run.csv'"):
        publish_sweep(tasks, out)
    assert out.read_bytes() == before
    assert sorted(p.name for p in out.parent.iterdir()) == ["run", "run.csv", "run.json"]


def test_a_disk_that_is_full_half_way_leaves_the_old_table(make):
    tasks, out, _ = make(({"a": 1}, 0, "x\n1\n"))
    before = out.read_bytes()
    tasks[0].save("x\n" + "2\n" * 20_000, "code", 1.0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*run.csv'"):
            publish_sweep(tasks, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert out.read_bytes() == before
    assert sorted(p.name for p in out.parent.iterdir()) == ["run", "run.csv", "run.json"]
