"""Folders of sweeps: whose they are, and who works on them."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import tasks as task_module
from thesis_cli.reproduction.sweep_file import RunFolder
from thesis_cli.reproduction.tasks import Driver, check_free, driver_of, driving


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "runs/x", "map", tmp_path, tmp_path / "runs/x.csv", 2)


def test_what_is_saved_is_loaded(folder):
    folder.save()
    folder.save()
    assert RunFolder.load(folder.path) == folder
    assert folder.tasks == folder.path / "tasks.json"
    assert os.listdir(folder.path) == ["run.json"]


def test_a_relative_folder_is_loaded_as_an_absolute_one(folder, monkeypatch):
    folder.save()
    monkeypatch.chdir(folder.path.parent)
    assert RunFolder.load(Path("x")) == folder


def test_a_folder_of_another_layout_is_refused(folder):
    folder.save()
    file = folder.path / "run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "layout": 9, "version": "7.0"}))
    before = file.read_bytes()
    message = re.escape(f"{folder.path}: written by thesis-cli 7.0, whose folders have another layout (9, not 1)")
    for act in (folder.save, lambda: RunFolder.load(folder.path)):
        with pytest.raises(InputError, match=message):
            act()
    assert file.read_bytes() == before


def test_a_newer_layout_may_have_other_fields(folder):
    folder.save()
    (folder.path / "run.json").write_text('{"layout": 2, "version": "7.0", "other": 1}')
    with pytest.raises(InputError, match="another layout"):
        RunFolder.load(folder.path)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", '"x"', "null", "{}", '{"layout": 1}', b"\xff",
     '{"layout": 1, "version": "0.1", "command": "map"}',
     '{"layout": 1, "version": "0.1", "command": "map", "base": 7, "table": "t.csv", "cores": 1}',
     '{"layout": 1, "version": "0.1", "command": "map", "base": "/", "table": "t.csv", "cores": "many"}',
     "[" * 200_000],
)  # fmt: skip
def test_a_damaged_record_is_refused(folder, content):
    folder.path.mkdir(parents=True)
    file = folder.path / "run.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for act in (folder.save, lambda: RunFolder.load(folder.path)):
        with pytest.raises(InputError, match=r"run.json: damaged "):
            act()


def test_what_is_no_folder_of_a_sweep_is_left_alone(folder):
    folder.path.mkdir(parents=True)
    folder.save()  # an empty one is taken
    for there in ("notes.txt", "tasks.json"):
        (folder.path / "run.json").unlink(missing_ok=True)
        (folder.path / there).write_text("mine")
        with pytest.raises(InputError, match=r"runs/x: .*no folder of a sweep; .*--out"):
            folder.save()
        assert os.listdir(folder.path) == [there]
        (folder.path / there).unlink()


def test_a_file_in_the_place_of_the_folder(folder):
    folder.path.parent.mkdir()
    folder.path.write_text("mine")
    with pytest.raises(InputError, match=r"no folder of a sweep; .*--out"):
        folder.save()
    with pytest.raises(InputError, match="no folder of a sweep"):
        RunFolder.load(folder.path)
    assert folder.path.read_text() == "mine"


def test_what_a_killed_process_left_half_written_does_not_count(folder):
    folder.path.mkdir(parents=True)
    (folder.path / ".run.json.x3k9").write_text("{")
    folder.save()
    assert RunFolder.load(folder.path) == folder


def test_a_missing_folder(folder):
    with pytest.raises(InputError, match=r"runs/x: no folder of a sweep .*run.json"):
        RunFolder.load(folder.path)


@pytest.fixture
def other():
    """Another process, which runs until its input ends."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def driver(process, **changes):
    """What it would have written as a driver."""
    what = {"host": task_module.socket.gethostname(), "pid": process.pid, "started": task_module._started(process.pid)}
    return json.dumps({**what, "jobs": 2, **changes})


@pytest.fixture
def tasks(tmp_path):
    return tmp_path / "tasks.json"


def test_a_driver_is_recorded_while_it_drives(tasks):
    with driving(tasks, 3):
        me = driver_of(tasks)
        assert (me.pid, me.jobs, me.alive) == (os.getpid(), 3, True)
        check_free(tasks)  # for this very process
    assert driver_of(tasks) is None
    assert not tasks.with_suffix(".driver").exists()


def test_it_stops_to_say_so_when_it_fails(tasks):
    with pytest.raises(KeyboardInterrupt), driving(tasks, 1):
        raise KeyboardInterrupt
    assert not tasks.with_suffix(".driver").exists()


def test_a_second_driver_is_refused_while_the_first_lives(tasks, other):
    place = tasks.with_suffix(".driver")
    place.write_text(driver(other))
    message = f"tasks.json \\(process {other.pid}\\);"
    with pytest.raises(InputError, match=message), driving(tasks, 1):
        pass
    with pytest.raises(InputError, match=message):
        check_free(tasks)
    assert json.loads(place.read_text())["pid"] == other.pid
    other.kill()
    other.wait()
    assert driver_of(tasks).alive is False
    with driving(tasks, 1):
        assert driver_of(tasks).pid == os.getpid()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks into /proc")
def test_a_process_that_has_ended_unnoticed_drives_nothing(tasks, other):
    """Killed below a parent that does not wait for it, it is a zombie."""
    tasks.with_suffix(".driver").write_text(driver(other))
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    os.kill(other.pid, 0)  # it is still listed
    assert driver_of(tasks).alive is False
    with driving(tasks, 1):
        assert driver_of(tasks).pid == os.getpid()


def test_without_proc_a_listed_process_is_alive(tasks, other, monkeypatch):
    monkeypatch.setattr(task_module, "Path", lambda name: tasks.parent / "no-such")
    tasks.with_suffix(".driver").write_text(driver(other))
    assert driver_of(tasks).started == "unknown"
    assert driver_of(tasks).alive is True


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks into /proc")
def test_a_later_process_of_the_same_number_is_none(tasks, other):
    tasks.with_suffix(".driver").write_text(driver(other, started="1"))
    assert driver_of(tasks).alive is False
    with driving(tasks, 1):
        assert driver_of(tasks).pid == os.getpid()


def test_whether_a_driver_of_another_machine_lives_is_not_known(tasks, other):
    tasks.with_suffix(".driver").write_text(driver(other, host="elsewhere"))
    assert driver_of(tasks).alive is None
    with driving(tasks, 1):
        assert driver_of(tasks).host != "elsewhere"


def test_who_took_over_is_not_forgotten_by_who_was_before(tasks, other):
    with driving(tasks, 1):
        tasks.with_suffix(".driver").write_text(driver(other))
    assert driver_of(tasks).pid == other.pid


@pytest.mark.parametrize("content", ["", "{", "7", '{"pid": 1}', "[]", b"\xff"])
def test_a_damaged_file_is_no_driver(tasks, content):
    tasks.with_suffix(".driver").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert driver_of(tasks) is None
    with driving(tasks, 1):
        pass
    assert not tasks.with_suffix(".driver").exists()


def test_no_process_has_started():
    process = subprocess.Popen(["true"])
    process.wait()
    started = task_module._started(os.getpid())
    time.sleep(0.02)
    assert started == task_module._started(os.getpid())
    assert Driver(task_module.socket.gethostname(), process.pid, started, 1).alive is False


DRIVING = """
import sys
from pathlib import Path
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.tasks import driving
print("ready", flush=True)
input()
try:
    with driving(Path(sys.argv[1]), 1):
        print("drives", flush=True)
        input()
except InputError:
    print("refused", flush=True)
"""


def test_of_several_processes_that_start_at_once_one_drives(tasks):
    (tasks.parent / ".tasks.driver.killed").write_text("of a process that was killed while it wrote")
    command = [sys.executable, "-c", DRIVING, tasks]
    others = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert [other.stdout.readline() for other in others] == ["ready\n"] * 6
    for other in others:
        other.stdin.write("\n")
        other.stdin.flush()
    assert sorted(other.stdout.readline() for other in others) == ["drives\n"] + ["refused\n"] * 5
    for other in others:
        other.communicate("\n")
    assert list(tasks.parent.iterdir()) == []
