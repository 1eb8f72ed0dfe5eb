"""Task files: tasks are read as they were written; other files are refused in one line."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.tasks import Driver, Task, TaskFile, TaskSpec, _started, head, read_tasks, task_key


@dataclass(frozen=True)
class Echo:
    """Work whose result repeats the task."""

    version: int = 1

    def code(self, task: Task) -> str:
        return "code"

    def run(self, task: Task) -> str:
        return f"seed\n{task.seed}\n"


ENTRIES = [
    TaskSpec("map", {"model": 'a, "b"\n[ü\u2028].uai', "alpha": [0, -0.1], "any": True}, None),
    TaskSpec("map", {}, 0),
    TaskSpec("map", {"x": 1e-300, "y": float("inf"), "big": 2**70}, 7),
]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run" / "tasks.json"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), texts)


@settings(max_examples=examples(15))
@given(
    st.lists(
        st.tuples(
            texts,
            st.dictionaries(texts, values | st.lists(values)),
            st.lists(st.none() | st.integers(0), min_size=1, max_size=3),
        )
    )
)
def test_what_is_written_is_read_again(tmp_path_factory, found):
    """Also tasks that differ in their seeds alone."""
    shared = [TaskSpec(command, parameters, seed) for command, parameters, seeds in found for seed in seeds]
    entries = [TaskSpec("map", {}, None), *shared]
    tasks = TaskFile.write(tmp_path_factory.mktemp("tasks") / "tasks.json", entries, Echo())
    for read in (tasks, TaskFile(tasks.path, Echo())):
        assert [TaskSpec(t.command, t.parameters, t.seed) for t in read] == entries
        assert read.keys == [task_key(entry.command, 1, entry.parameters, entry.seed) for entry in entries]
    assert json.loads(tasks.path.read_text()) == [entry._asdict() for entry in entries]
    assert tasks.path.read_bytes().count(b"\n") == len(entries) + 2


def test_the_file_is_a_json_list_of_one_task_a_line(file):
    TaskFile.write(file, ENTRIES, Echo())
    assert json.loads(file.read_text()) == [entry._asdict() for entry in ENTRIES]
    lines = file.read_text().split("\n")
    assert (lines[0], lines[-2:]) == ("[", ["]", ""])
    assert [json.loads(line.rstrip(","))["seed"] for line in lines[1:-2]] == [None, 0, 7]
    assert "ü" in lines[1]


def test_keys_and_places_of_results(file):
    tasks = TaskFile.write(file, ENTRIES, Echo(3))
    for i, (entry, task) in enumerate(zip(ENTRIES, tasks, strict=True)):
        assert task.key == tasks.keys[i] == task_key("map", 3, entry.parameters, entry.seed)
        assert task.folder == file.parent
        assert task.log == file.parent / "logs" / task.key[:2] / f"{task.key}.log"
    assert TaskFile(file, Echo(4)).keys != tasks.keys
    assert TaskFile(file, Echo(3)).keys == tasks.keys


def test_relative_paths_are_those_of_the_moment(file, monkeypatch):
    TaskFile.write(file, ENTRIES, Echo())
    monkeypatch.chdir(file.parent)
    tasks = TaskFile(Path("tasks.json"), Echo())
    monkeypatch.chdir("/")
    assert tasks[0].folder == file.parent


def test_an_equal_file_is_left_alone(file):
    TaskFile.write(file, ENTRIES, Echo())
    os.utime(file, (1, 1))
    TaskFile.write(file, iter(ENTRIES), Echo())
    assert file.stat().st_mtime == 1
    TaskFile.write(file, ENTRIES[:2], Echo())
    assert file.stat().st_mtime > 1
    assert os.listdir(file.parent) == ["tasks.json"]


def test_random_access(file):
    tasks = TaskFile.write(file, [TaskSpec("map", {"x": "é" * i}, i) for i in range(50)], Echo())
    assert len(tasks) == 50
    assert [tasks[i].seed for i in (49, 0, 17, -1, -50)] == [49, 0, 17, 49, 0]
    assert [t.seed for t in tasks[3:20:7]] == [3, 10, 17]
    assert [t.seed for t in tasks.some([9, 2, 9])] == [9, 2, 9]
    assert tasks[7].parameters == {"x": "é" * 7}
    for place in (50, -51):
        with pytest.raises(IndexError):
            tasks[place]


@pytest.mark.parametrize("other", ["mup", "m"])
def test_tasks_of_a_file_that_was_replaced_are_refused(file, other):
    """Whether or not its lines start where those of the old file did; keys are those of the old tasks."""
    entries = [TaskSpec("map", {"x": 1}, seed) for seed in (0, 1)]
    tasks = TaskFile.write(file, entries, Echo())
    TaskFile.write(file, [entry._replace(command=other) for entry in entries], Echo())
    for i in range(2):
        with pytest.raises(InputError, match=r"tasks.json: another run has replaced it; run this again"):
            tasks[i]


def test_a_file_that_another_process_works_on_is_not_replaced(file):
    TaskFile.write(file, ENTRIES, Echo())
    before = file.read_bytes()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        driver = Driver(socket.gethostname(), other.pid, _started(other.pid), 1)
        file.with_suffix(".driver").write_text(json.dumps(asdict(driver)))
        with pytest.raises(InputError, match=f"another run works on .*process {other.pid}"):
            TaskFile.write(file, ENTRIES[:1], Echo())
        other.kill()
    assert file.read_bytes() == before
    TaskFile.write(file, ENTRIES[:1], Echo())
    assert file.read_bytes() != before


def test_some_tasks_of_a_copy(file, tmp_path):
    tasks = TaskFile.write(file, ENTRIES, Echo(2))
    copy = tmp_path / "copy.json"
    copy.write_bytes(file.read_bytes())
    assert list(read_tasks(copy, Echo(2), {2, 0}, file.parent)) == [tasks[0], tasks[2]]
    assert list(read_tasks(copy, Echo(2), [], file.parent)) == []


def test_tasks_after_the_last_place_are_not_read(file):
    TaskFile.write(file, ENTRIES, Echo())
    file.write_bytes(file.read_bytes()[:-20])
    assert [t.seed for t in read_tasks(file, Echo(), [1], file.parent)] == [0]


def test_the_head_has_the_command_and_the_number_of_tasks(file):
    TaskFile.write(file, ENTRIES, Echo())
    assert head(file) == ("map", 3)


def test_line_ends_of_other_systems_and_a_last_line_without_one(file):
    keys = TaskFile.write(file, ENTRIES, Echo()).keys
    text = file.read_bytes()
    for other in (text.replace(b"\n", b"\r\n"), text.rstrip()):
        file.write_bytes(other)
        tasks = TaskFile(file, Echo())
        assert tasks.keys == keys
        assert [t.seed for t in tasks] == [None, 0, 7]
        assert head(file) == ("map", 3)


TASK = '{"command": "map", "parameters": {}, "seed": 0}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "tasks.json: not a list of tasks; "),
        ("[]\n", "tasks.json: not a list of tasks"),
        ("[\n]\n", r"tasks.json:2: not a task; "),
        ("{}", "tasks.json: not a list of tasks"),
        ("[\n", "tasks.json: its end is missing; "),
        (f"[\n{TASK},\n", "tasks.json: its end is missing"),
        (f"[\n{TASK},\n{TASK[:-9]}", "tasks.json:3: not a task"),
        (f"[{TASK}]", "tasks.json: not a list of tasks"),
        (json.dumps([json.loads(TASK)] * 2, indent=2), "tasks.json:2: not a task"),
        (f"[\n{TASK},\n7\n]\n", "tasks.json:3: not a task"),
        (f"[\n{TASK},\n\n{TASK}\n]\n", "tasks.json:3: not a task"),
        (f"[\n{TASK},\n{TASK} {TASK}\n]\n", "tasks.json:3: not a task"),
        (f"[\n{TASK[:-1]}, \"cores\": 1}}\n]\n", "tasks.json:2: not a task"),
        ('[\n{"command": "map", "parameters": {}}\n]\n', "tasks.json:2: not a task"),
        (f"[\n{TASK.replace('{}', '[]')}\n]\n", "tasks.json:2: not a task"),
        (f"[\n{TASK.replace('0', 'NaN')}\n]\n", "tasks.json:2: not a task"),
        (f"[\n{TASK.replace('0', 'true')}\n]\n", "tasks.json:2: not a task"),
        (f"[\n{TASK.replace('0', '0.5')}\n]\n", "tasks.json:2: not a task"),
        ('[\n{"command": 1, "parameters": {}, "seed": 0}\n]\n', "tasks.json:2: not a task"),
        ("[\n" + "[" * 200_000 + "\n]\n", "tasks.json:2: not a task"),
        (f"[\n{TASK}\n]\n".encode().replace(b"map", b"m\xff"), "tasks.json:2: not a task"),
        (bytes(range(256)) * 9, "tasks.json: not a list of tasks"),
    ],
)  # fmt: skip
def test_what_is_no_task_file(file, content, problem):
    file.parent.mkdir()
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=problem):
        TaskFile(file, Echo())
    with pytest.raises(InputError, match=problem):
        list(read_tasks(file, Echo(), range(10), file.parent))


def test_finished_and_failed_see_results_alone(file):
    tasks = TaskFile.write(file, ENTRIES, Echo())
    assert (tasks.finished(), tasks.failed()) == (set(), set())
    tasks[0].save("x\n1\n", "code", 1.0)
    for task in tasks[:2]:
        task.save("no\n", "", 1.0)
    (file.parent / "notes.csv").write_text("")
    (file.parent / "xy").write_text("a file where a folder might be")
    (file.parent / "segments" / ".hidden").write_text("half")
    assert (tasks.finished(), tasks.failed()) == ({tasks.keys[0]}, {tasks.keys[1]})
    assert tasks.indices(tasks.finished()) == [0]
    assert tasks.indices({"other"}) == []


def test_a_full_disk_leaves_the_old_file(file, monkeypatch):
    TaskFile.write(file, ENTRIES, Echo())
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*tasks.json'"):
        TaskFile.write(file, ENTRIES[:1], Echo())
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["tasks.json"]
