"""The combination of depth-first search and a bank."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings

from tests.synthesis.brute_force import tasks
from tests.synthesis.search.test_bottom_up import shared
from tests.synthesis.search.test_depth_first import ORDERS, UNIFORM, impossible
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.auto import Auto, MeetInTheMiddle
from thesis_cli.synthesis.join import join
from thesis_cli.synthesis.language.dsl import DEFAULT, LIST
from thesis_cli.synthesis.language.task import Task, check, load_tasks
from thesis_cli.synthesis.search import bottom_up
from thesis_cli.synthesis.search.bottom_up import BottomUp
from thesis_cli.synthesis.search.depth_first import Clock, DepthFirst, Examination
from thesis_cli.synthesis.search.solver import Limits, Order


@settings(max_examples=examples(20))
@given(tasks(3), ORDERS)
def test_it_proves_what_depth_first_search_proves(task: Task, order: Order) -> None:
    exact, found = DepthFirst().solve(task, order, Limits(3)), Auto().solve(task, order, Limits(3))
    assert found.stopped == ""
    assert found.proven == exact.proven
    assert (found.program is None) == (exact.program is None)
    if found.program and exact.program:
        assert len(found.program) == len(exact.program)
        assert check(found.program, task, DEFAULT)
        assert found.solver in ("dfs", "bottom-up")
    else:
        assert found.exhausted == 3


@pytest.mark.parametrize("task", load_tasks("data/tasks/all.jsonl")[:9], ids=lambda task: task.name)
def test_the_thesis_programs_are_solved_by_either(task: Task) -> None:
    found = Auto().solve(task, UNIFORM, Limits(4))
    exact = DepthFirst().solve(task, UNIFORM, Limits(4))
    assert (found.program is None) == (exact.program is None)
    assert found.program is None or exact.program is None or len(found.program) == len(exact.program)


def test_the_solution_names_its_solver() -> None:
    assert Auto().solve(shared(), UNIFORM, Limits(4)).solver == "dfs"  # shares results: too large a tree for the bank
    long = [task for task in load_tasks("data/tasks/all.jsonl") if task.name == "trees"]
    assert Auto().solve(long[0], UNIFORM, Limits(4)).solver in ("dfs", "bottom-up", "join")


def test_several_programs_are_those_of_depth_first_search() -> None:
    limits = Limits(4, count=5)
    assert Auto().solve(shared(), UNIFORM, limits).programs == DepthFirst().solve(shared(), UNIFORM, limits).programs


def test_joins_find_several_programs() -> None:
    """The bank alone would find the second one after a hundred times as many expressions."""
    task = next(task for task in load_tasks("data/tasks/all.jsonl") if task.name == "league")
    found = MeetInTheMiddle().solve(task, UNIFORM, Limits(4, count=5, distinct=True))
    assert len(set(found.programs)) == 5
    assert all(check(program, task, DEFAULT) for program in found.programs)
    assert found.nodes < 10**6


def test_a_full_bank_leaves_the_rest_to_depth_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "LINE", 1e9)  # the bank comes first
    monkeypatch.setattr(bottom_up, "FIRST", 8)
    solution = Auto().solve(impossible((LIST, LIST)), UNIFORM, Limits(3, memory=1e-6))
    assert (solution.program, solution.stopped, solution.exhausted) == (None, "memory", 3)


def test_a_timeout_and_an_interrupt_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = impossible((LIST, LIST))
    solution = Auto().solve(task, UNIFORM, Limits(6, timeout=0.05))
    assert (solution.program, solution.stopped) == (None, "timeout")
    assert 1 <= solution.exhausted < 6

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Examination, "advance", interrupted)
    assert Auto().solve(task, UNIFORM, Limits(5)).stopped == "interrupted"


def test_a_full_bank_is_reported_even_if_the_time_is_up_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    task = impossible((LIST, LIST))
    for solver in (Auto(), BottomUp()):
        looks = count()
        monkeypatch.setattr(Clock, "is_up", property(lambda _, looks=looks: next(looks) >= 300))
        found = solver.solve(task, UNIFORM, Limits(6, memory=1e-5))
        assert found.stopped == "memory, then timeout"


def test_memory_that_nothing_can_count_is_refused() -> None:
    with pytest.raises(InputError, match="1e\\+300 GiB"):
        Limits(memory=1e300)
