"""Counts that add up, and the time left by the times of results alone."""

import time
from unittest import mock

import pytest

from tests.reproduction.test_task_file import Echo
from thesis_cli.reproduction.arrays import Array
from thesis_cli.reproduction.commands import status
from thesis_cli.reproduction.commands.status import Survey
from thesis_cli.reproduction.tasks import TaskFile, TaskSpec, driving


@pytest.fixture
def tasks(tmp_path):
    return TaskFile.write(tmp_path / "run/tasks.json", [TaskSpec("map", {}, i) for i in range(40)], Echo())


def finish(tasks, places, at=lambda i: 1000.0 + i):
    for i in places:
        with mock.patch("time.time", return_value=at(i)):
            tasks[i].save("x\n1\n", "code", 1.0)


def fail(tasks, places):
    for i in places:
        tasks[i].save("no\n", "", 1.0)


def submit(tasks, name, *groups):
    Array(tasks.path.with_suffix(".jobs") / name, tasks.path.parent, groups).save(tasks)


def counts(found):
    assert found.done + found.running + found.waiting + found.failed + found.missing == found.tasks
    return found.done, found.running, found.waiting, found.failed, found.missing


def test_nothing_is_done_yet(tasks):
    found = status.survey(tasks, {})
    assert found == Survey(40, 0, 0, 0, 0, 40, None)


def test_every_state(tasks):
    finish(tasks, range(5))
    fail(tasks, [3, 5, 6, 20, 30])
    submit(tasks, "a", [4, 20, 21], [22, 23], [24])
    submit(tasks, "b", [30, 31])
    queue = {"a": {0: "RUNNING", 1: "PENDING"}, "b": {0: "CONFIGURING"}, "other": {0: "RUNNING"}}
    assert counts(status.survey(tasks, queue)) == (5, 4, 2, 2, 27)
    assert counts(status.survey(tasks, {})) == (5, 0, 0, 4, 31)


def test_a_task_of_two_jobs_counts_once(tasks):
    submit(tasks, "a", [1, 2, 3])
    submit(tasks, "b", [2, 3, 4])
    assert counts(status.survey(tasks, {"a": {0: "PENDING"}, "b": {0: "RUNNING"}})) == (0, 3, 1, 0, 36)


def test_a_process_here_works_on_as_many_as_it_records(tasks):
    finish(tasks, range(30))
    fail(tasks, range(30, 35))
    with driving(tasks.path, 2):
        assert counts(status.survey(tasks, {})) == (30, 2, 0, 5, 3)
    with driving(tasks.path, 9):
        assert counts(status.survey(tasks, {})) == (30, 5, 0, 5, 0)
    assert counts(status.survey(tasks, {})) == (30, 0, 0, 5, 5)


def test_results_of_tasks_that_left_the_file_do_not_count(tasks):
    finish(tasks, range(30))
    smaller = TaskFile.write(tasks.path, [TaskSpec("map", {}, i) for i in range(25, 35)], Echo())
    assert counts(status.survey(smaller, {})) == (5, 0, 0, 0, 5)


@pytest.mark.parametrize("clock", [0, 10**6, 4 * 10**9])
def test_the_time_left_is_by_the_clock_of_the_results(tasks, clock):
    """Whatever the time is here: one in 3 seconds, 28 left, of which 2 failed."""
    finish(tasks, range(12), lambda i: clock + 3 * i)
    fail(tasks, [38, 39])
    with driving(tasks.path, 1):
        assert status.survey(tasks, {}).seconds_left == pytest.approx(26 * 3)
    assert status.survey(tasks, {}).seconds_left is None


def test_only_the_speed_of_late_counts(tasks):
    finish(tasks, range(10), lambda i: 1000 * i)
    finish(tasks, range(10, 15), lambda i: 10_000 + 10 * i)
    with driving(tasks.path, 1):
        assert status.survey(tasks, {}).seconds_left == pytest.approx(25 * 10)


@pytest.mark.parametrize("times", [[], [5], [5, 5], [5, 10_000]])
def test_too_few_results_tell_no_speed(tasks, times):
    finish(tasks, range(len(times)), times.__getitem__)
    with driving(tasks.path, 1):
        assert status.survey(tasks, {}).seconds_left is None


def test_two_results_give_a_speed(tasks):
    finish(tasks, range(2), lambda i: 7 * i)
    with driving(tasks.path, 1):
        assert status.survey(tasks, {}).seconds_left == pytest.approx(38 * 7)


def test_one_result_of_the_future_is_not_believed(tasks):
    finish(tasks, range(10), lambda i: time.time() + (10**6 if i == 9 else i))
    with driving(tasks.path, 1):
        assert status.survey(tasks, {}).seconds_left is None
