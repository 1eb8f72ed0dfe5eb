import time

import numpy as np
import pytest

from thesis_cli.studies.synthesis.thesis_programs import SHOWN
from thesis_cli.studies.synthesis.timing import SOLVERS, examine, solver, time_limits, timed, unsolvable, until_found
from thesis_cli.synthesis.language.dsl import INT, LIST
from thesis_cli.synthesis.language.program import search_space
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.language.task import check
from thesis_cli.synthesis.search.depth_first import Examination
from thesis_cli.synthesis.search.solver import Limits, Order, Solution

MIRROR = next(shown for shown in SHOWN if shown.name == "mirror")


def test_time_limits_are_those_of_the_thesis():
    """Its example in section 5.5.1: tasks of 2, 3, 1 and 4 seconds."""
    assert time_limits([2, 3, 1, 4], [0.25, 0.26, 0.5, 0.75, 1]) == [1, 2, 2, 3, 4]


def test_what_is_not_solved_takes_for_ever():
    assert time_limits([np.inf, 1, np.inf, 2, 3]) == [1, 2, 3]
    assert time_limits([np.inf, 1, np.inf]) == [1, np.inf, np.inf]


def test_a_search_that_the_user_stops_is_no_result(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    solver("dfs")  # everything is loaded
    monkeypatch.setattr(Examination, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        timed("dfs", MIRROR.task(), Order.uniform(), Limits(2))


def test_the_time_to_a_program_is_its_share_of_the_processor_time():
    program = MIRROR.program
    assert until_found(Solution((program,), "dfs", 1, 4.0, 0, "", 1.0), 2.0) == 0.5
    assert until_found(Solution((), "dfs", 1, 4.0, 0), 2.0) == np.inf


@pytest.mark.parametrize("inputs", SIGNATURES, ids=", ".join)
@pytest.mark.parametrize("lazily", [False, True])
def test_every_program_is_examined_and_none_fits(inputs, lazily):
    task = unsolvable(inputs, np.random.default_rng(0))
    for length in (1, 2):
        assert examine(task, length, lazily)[0] == search_space(inputs, length)


def test_an_unsolvable_task_contradicts_itself_once():
    task = unsolvable((INT, LIST), np.random.default_rng(1), examples=4)
    assert task.inputs == (INT, LIST)
    *_, before, last = task.examples
    assert before.inputs == last.inputs
    assert before.output != last.output
    assert len({example.inputs for example in task.examples}) == 3


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_is_timed(name):
    task = MIRROR.task()
    began = time.process_time()
    solution, seconds = timed(name, task, Order.uniform(), Limits(2))
    assert check(solution.program, task)
    assert 0 <= seconds <= time.process_time() - began


def test_a_solver_has_answered_before_it_is_timed(monkeypatch):
    calls = []

    class Counted:
        def solve(self, task, order, limits):
            calls.append(task.name)
            return Solution((), "counted", 0, 0.0, 0)

    monkeypatch.setitem(SOLVERS, "counted", Counted())
    solver("counted")
    solver("counted")
    assert calls == ["any"]
    timed("counted", MIRROR.task(), Order.uniform(), Limits(2))
    assert calls == ["any", "mirror"]
