import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import locked

HOLDING = """
import sys, time
from pathlib import Path
from thesis_cli.base.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
COUNTING = """
import sys, time
from pathlib import Path
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import locked
path, done = Path(sys.argv[1]), 0
while done < 50:
    try:
        with locked(path):
            number = int(path.read_text())
            time.sleep(0.0005)
            path.write_text(str(number + 1))
            done += 1
    except InputError:
        time.sleep(0.001)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a file, and the file."""
    path = tmp_path / "table.csv"
    with subprocess.Popen([sys.executable, "-c", HOLDING, path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process, path
        process.kill()


def take(path):
    with locked(path):
        return True


def refused(path, match):
    with pytest.raises(InputError, match=match) as caught:
        take(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_held_lock_names_its_holder(holder):
    process, path = holder
    refused(path, f"in use by process {process.pid}; wait")
    (path.parent / ".table.csv.lock").write_text("")
    refused(path, "in use by another process")


def test_threads_of_one_process_exclude_each_other(tmp_path):
    path, found = tmp_path / "t", []
    with locked(path):
        thread = threading.Thread(target=lambda: refused(path, f"process {os.getpid()}") or found.append("refused"))
        thread.start()
        thread.join()
        refused(path, "in use")
    assert found == ["refused"]
    assert take(path)


def test_the_kernel_releases_the_lock_of_a_killed_process(holder):
    """Also of a zombie: its parent has not waited for it."""
    process, path = holder
    os.kill(process.pid, signal.SIGKILL)
    status = Path(f"/proc/{process.pid}/stat")
    for _ in range(500):
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break
        time.sleep(0.01)
    assert take(path)


def test_what_a_dead_process_left_in_the_lock_file_holds_nothing(tmp_path):
    (tmp_path / ".t.lock").write_text(str(os.getpid()))
    assert take(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "t"):
        raise ZeroDivisionError
    assert take(tmp_path / "t")


def test_processes_lose_no_update(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    others = [subprocess.Popen([sys.executable, "-c", COUNTING, path]) for _ in range(4)]
    assert [other.wait() for other in others] == [0] * 4
    assert path.read_text() == "200"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        take(tmp_path / "file" / "t")


def test_a_lock_is_waited_for_with_a_message(tmp_path, caplog):
    path, entered = tmp_path / "t", threading.Event()

    def hold():
        with locked(path):
            entered.set()
            time.sleep(0.1)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    with caplog.at_level("INFO", "thesis_cli"), locked(path, wait=30):
        pass
    thread.join()
    assert f"is in use by process {os.getpid()}: waiting for up to 30 s" in caplog.text
    with locked(path), pytest.raises(InputError, match=r"in use by process \d+ for 0.05 s; wait"):
        take_waiting(path, 0.05)


def take_waiting(path, wait):
    with locked(path, wait=wait):
        return True


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
def test_a_planted_lock_file_is_neither_followed_nor_waited_for(tmp_path, kind):
    victim, lock = tmp_path / "victim", tmp_path / ".t.lock"
    victim.write_text("untouched")
    make = {"symlink": lambda: lock.symlink_to(victim), "fifo": lambda: os.mkfifo(lock), "folder": lock.mkdir}
    make[kind]()
    with pytest.raises(InputError, match="link or no regular file"):
        take(tmp_path / "t")
    assert victim.read_text() == "untouched"


def test_a_removed_lock_file_is_noticed(tmp_path):
    with locked(tmp_path / "t") as lock:
        assert lock.visible
        lock.file.unlink()
        assert not lock.visible
        with locked(tmp_path / "t") as other:  # the lock of somebody else, who sees none
            assert other.visible
            assert not lock.visible
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("umask", "private", "mode"), [(0o027, False, 0o640), (0o002, False, 0o664), (0, True, 0o600)])
def test_the_mode_of_a_lock_file(tmp_path, umask, private, mode):
    before = os.umask(umask)
    try:
        with locked(tmp_path / "t", private=private) as lock:
            assert stat.S_IMODE(lock.file.stat().st_mode) == mode
    finally:
        os.umask(before)
