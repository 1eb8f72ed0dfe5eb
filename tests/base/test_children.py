"""Several attempts at one question."""

import time
from collections.abc import Iterator

import pytest

from thesis_cli.base import child
from thesis_cli.base.child import Attempt, Failed, attempts
from thesis_cli.base.errors import InputError, OutOfTime


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
