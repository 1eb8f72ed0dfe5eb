"""Beam search: with beams that hold everything it is exhaustive, and with narrow ones it goes by
probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from tests.synthesis.search.test_moves import broken, written
from thesis_cli.synthesis.guided import beam_search
from thesis_cli.synthesis.guided.beam_search import Beam, OrderScores, best
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, BY_NAME, DEEPCODER, INT, LIST
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import NONE
from thesis_cli.synthesis.search.execution import moves, start
from thesis_cli.synthesis.search.solver import Limits, Order

ROWS = ((3, (5, 1, 4, 2)), (2, (7, 9, 0)), (1, (6, 3, 8, 2, 5)))


def task_of(text: str) -> Task:
    program = parse(text)
    rows = [tuple(value for value in row if (value.__class__ is int) <= (INT in program.inputs)) for row in ROWS]
    rows = [row if len(program.inputs) == len(row) else row[-1:] for row in rows]
    outputs = [run(program, row) for row in rows]
    return Task("task", tuple(Example(row, output) for row, output in zip(rows, outputs, strict=True)))


UNFIT = Task("unfit", (Example((2, (5, 1, 4)), (250, -250)), Example((2, (5, 1, 4, 0)), (-250, 250))))
"""No short program fits."""


def prefer(*names: str) -> Order:
    return Order(tuple(0.9 if name in names else 0.1 for name in ATTRIBUTES))


@pytest.mark.parametrize("length", [1, 2])
def test_a_wide_beam_runs_every_legal_program_once(length, monkeypatch):
    programs = []
    monkeypatch.setattr(beam_search, "step", recording(beam_search.step, programs, length))
    found = Beam(10**5).solve(UNFIT, Order.uniform(), Limits(length))
    monkeypatch.setattr("tests.synthesis.search.test_moves.ORDER", range(len(DEEPCODER.operations)))
    legal = {
        p for p in written((INT, LIST), length) if p.output is LIST and broken(p) == NONE and begins_with_values(p)
    }
    assert len(programs) == len(set(programs))
    assert set(programs) == legal
    assert (found.exhausted, found.stopped, found.programs) == (length, "", ())


def recording(step, programs, length):
    def recorded(pool, lines, parents):
        found = step(pool, lines, parents)
        if pool.lines.shape[1] == length and found.lines[0, -1, 0] >= 0:
            programs.extend(found.program(row) for row in range(len(found)))
        return found

    return recorded


def begins_with_values(program):
    above = type(program)(program.inputs, program.lines[:-1]) if len(program) > 1 else None
    return above is None or all(run(above, example.inputs) is not None for example in UNFIT.examples)


def test_only_a_beam_from_which_nothing_is_cut_proves_something():
    narrow = Beam(width=1)
    found = narrow.solve(task_of("a <- int; b <- [int]; c <- TAKE a b"), prefer("TAKE"), Limits(2))
    assert (found.program.one_line, found.nodes) == ("a <- int; b <- [int]; c <- TAKE a b", 1)
    assert found.exhausted == 0
    unfit = narrow.solve(UNFIT, Order.uniform(), Limits(1))
    assert unfit.exhausted == 1  # after some doublings
    assert unfit.nodes > len(moves(start([UNFIT], 1)).lines)  # programs run again count again


def test_a_beam_may_lose_all_its_beginnings():
    empty = Task("empty", (Example(((), (4, 2)), 4), Example(((), (3, 9)), 9)))
    found = Beam().solve(empty, prefer("HEAD"), Limits(2))  # HEAD of the empty list is NULL
    assert found.program.one_line == "a <- [int]; b <- [int]; c <- MAXIMUM b"
    assert Beam().solve(empty, prefer("HEAD"), Limits(1)).nodes > 1


def test_the_order_weighs_operations():
    task = task_of("a <- [int]; b <- SORT a; c <- REVERSE b")
    nodes = [Beam().solve(task, order, Limits(2)).nodes for order in (prefer("SORT", "REVERSE"), prefer("HEAD", "MAP"))]
    assert nodes[0] < nodes[1]


def test_probabilities_of_next_lines_add_up_and_go_by_the_order():
    pool = start([UNFIT], 2)
    found = moves(pool)
    _, scores = OrderScores(prefer("SORT")).lines(np.zeros((1, 0), np.float32), pool, found, 0)
    assert np.exp(scores).sum() == pytest.approx(1)
    chosen = {id: np.exp(scores[found.lines[:, 0] == id]).sum() for id in set(found.lines[:, 0])}
    assert chosen[BY_NAME["SORT"].id] == pytest.approx(9 * chosen[BY_NAME["REVERSE"].id])
    assert chosen[BY_NAME["REVERSE"].id] == pytest.approx(chosen[BY_NAME["ZIPWITH (+)"].id])


def test_several_programs_each_once():
    task = task_of("a <- [int]; b <- MAXIMUM a")
    found = Beam().solve(task, Order.uniform(), Limits(2, count=4))
    assert len(set(found.programs)) == 4
    assert all(check(program, task) for program in found.programs)
    lengths = list(map(len, found.programs))
    assert lengths == sorted(lengths)
    narrow, wide = (
        Beam(width).solve(task, Order.uniform(), Limits(2, count=99, distinct=True)) for width in (1, 10**4)
    )
    assert sum(narrow.same) == sum(wide.same) > 0  # one found again in a wider beam is not another one
    assert len(narrow.programs) == len(wide.programs)
    assert narrow.exhausted == wide.exhausted == 2


class Ticks:
    """A clock that is up after some looks at it."""

    seconds, nodes, stop = 0.5, 0, "timeout"

    def __init__(self, looks: int) -> None:
        self.looks = looks

    @property
    def is_up(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.mark.parametrize("looks", [0, 1, 7])
def test_the_clock_is_looked_at_before_each_part(looks, monkeypatch):
    listed = []
    monkeypatch.setattr(beam_search.execution, "moves", lambda pool: listed.append(len(pool)) or moves(pool))
    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.Clock", lambda limits: Ticks(looks))
    monkeypatch.setattr(beam_search, "PART", 4)
    found = Beam().solve(UNFIT, Order.uniform(), Limits(3, timeout=1))
    assert (found.stopped, len(listed)) == ("timeout", looks)
    assert max(listed, default=0) <= 4


def test_memory_bounds_the_beam():
    found = Beam(width=64).solve(UNFIT, Order.uniform(), Limits(3, memory=0.001))
    assert found.stopped == "memory"
    assert found.exhausted < 3


def test_the_best_are_the_largest_and_of_equal_ones_the_first():
    scores = np.array([0.0, 2.0, 1.0, 2.0, 1.0, 1.0])
    assert best(scores, 4).tolist() == [1, 3, 2, 4]
    assert best(scores, 9).tolist() == [1, 3, 2, 4, 5, 0]
