"""Function calls in processes of their own: one, and several attempts at one question."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest

from thesis_cli.base import child
from thesis_cli.base.child import Attempt, Child, Failed, attempts
from thesis_cli.base.errors import InputError, OutOfTime, WorkFailed


def answers(cause: str) -> Iterator[object]:
    sys.stdout.write("not an answer\n")
    sys.stdout.flush()
    yield os.getpid()
    if cause == "crash":
        os.kill(os.getpid(), signal.SIGABRT)
    if cause == "error":
        raise InputError("the table is wrong", "repair it", source="file", line=3)
    if cause == "memory":
        bytearray(2**32)
    if cause == "wait":
        time.sleep(60)
    yield cause


def test_values_come_one_after_another_from_another_process() -> None:
    with Child(answers, "done") as other:
        assert other.next(60) != os.getpid()
        assert other.next(60) == "done"
        for _ in range(2):
            with pytest.raises(StopIteration):
                other.next(60)


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        ("crash", WorkFailed, "a process died \\(signal 6\\)"),
        ("error", InputError, "file:3: the table is wrong; repair it"),
        ("memory", MemoryError, "^$"),
    ],
)
def test_an_end_of_the_work_is_an_error_of_the_call(cause: str, kind: type[Exception], words: str) -> None:
    with Child(answers, cause, memory=2**31) as other:
        other.next(60)
        with pytest.raises(kind, match=words) as raised:
            other.next(60)
    if cause == "error":
        assert raised.value.remedy == "repair it"


def test_a_call_out_of_time_is_stopped() -> None:
    with Child(answers, "wait") as other:
        process = other.next(60)
        with pytest.raises(OutOfTime):
            other.next(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    held = tmp_path / "held"
    with Child(of_grandchild, held) as other:
        other.next(60)
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(held, timeout=0).acquire()
    filelock.FileLock(held, timeout=60).acquire()


def of_grandchild(held: Path) -> Iterator[object]:
    with Child(holding, held) as other:
        yield other.next(60)
        time.sleep(60)


def holding(held: Path) -> Iterator[object]:
    """Hold a lock, and the interpreter, as a compiled library may, for longer than the test waits."""
    with filelock.FileLock(held):
        yield None
        ctypes.PyDLL(None).sleep(600)


def test_the_value_of_one_call() -> None:
    assert child.call(divmod, 17, 5, timeout=60) == (3, 2)


def halves(requests: Iterator[int], offset: int) -> Iterator[float]:
    for request in requests:
        yield request / 2 + offset


def test_a_process_answers_one_request_after_another() -> None:
    with Child(halves, 10, requests=True) as other:
        for request in (1, 2, 3):
            other.send(request)
            assert other.next(60) == request / 2 + 10
        other.stop()
        other.send(4)
        with pytest.raises(WorkFailed, match="signal 9"):
            other.next(60)


def test_closed_standard_streams_are_no_obstacle() -> None:
    code = "from thesis_cli.base.child import call; assert call(len, bytes(2**17), timeout=60) == 2**17"
    done = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" <&- >&-', sys.executable, code], check=False)
    assert done.returncode == 0


def counting(deadline: float, last: int) -> Iterator[object]:
    yield from range(last)


def failing(deadline: float) -> Iterator[object]:
    raise InputError("too wide")
    yield


def endless(deadline: float) -> Iterator[object]:
    yield deadline
    time.sleep(60)


def test_answers_of_all_attempts_come_in_order_of_each() -> None:
    asked = [Attempt("a", counting, (2,), 60), Attempt("b", failing, (), 60), Attempt("c", counting, (3,), 60)]
    found: dict[str, list[object]] = {"a": [], "b": [], "c": []}
    for attempt, answer in attempts(asked, 60, 2):
        found[attempt.name].append(answer.error if isinstance(answer, Failed) else answer)
    assert (found["a"], found["c"]) == ([0, 1], [0, 1, 2])
    assert [str(error) for error in found["b"]] == ["too wide"]


def test_an_attempt_that_overruns_is_stopped_and_the_next_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "GRACE", 0.1)
    asked = [Attempt("slow", endless, (), 0.01), Attempt("next", counting, (1,), 60)]
    found = [(attempt.name, answer) for attempt, answer in attempts(asked, 60, 1)]
    assert [name for name, _ in found][-2:] == ["slow", "next"]
    assert isinstance(found[-2][1].error, OutOfTime)


def test_no_attempt_starts_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "GRACE", 0.1)
    found = list(attempts([Attempt("slow", endless, (), 60), Attempt("next", counting, (1,), 60)], 0.01, 1))
    assert {attempt.name for attempt, _ in found} == {"slow"}


def test_closing_stops_what_runs() -> None:
    began = attempts([Attempt("slow", endless, (), 60)], 60, 1)
    assert next(began)[1] <= time.monotonic() + 60
    began.close()
