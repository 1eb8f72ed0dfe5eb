"""Bands of programs: all programs of a length, each in one band, the more probable ones first."""

from __future__ import annotations

from itertools import pairwise
from math import log

import pytest

from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEFAULT, LIST
from thesis_cli.synthesis.language.program import parse, run, search_space
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search import depth_first
from thesis_cli.synthesis.search.depth_first import NONE, DepthFirst, Examination, Space, bands
from thesis_cli.synthesis.search.solver import Limits, Order

ROWS = ((5, -2, 7, 3), (1, 4, 4, -6, 2), (-3, 8, 0))

LIKELY = {"MAP": 0.9, "(*2)": 0.7, "ZIPWITH": 0.6, "(+)": 0.4, "REVERSE": 0.3}
SHARP = Order(tuple(LIKELY.get(name, 0.002 + 0.001 * place) for place, name in enumerate(ATTRIBUTES)))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bands at lengths that tests can go through."""
    monkeypatch.setattr(depth_first, "SMALL", 1e3)
    monkeypatch.setattr(depth_first, "FIRST", 1e2)
    monkeypatch.setattr(depth_first, "bands", bands.__wrapped__)
    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.bands", bands.__wrapped__)
    monkeypatch.setattr("thesis_cli.synthesis.join.join.bands", bands.__wrapped__)


def task_of(text: str, name: str = "drawn") -> Task:
    """A task on one list, of a program."""
    program = parse(text)
    outputs = [run(program, (row,)) for row in ROWS]
    return Task(name, tuple(Example((row,), out) for row, out in zip(ROWS, outputs, strict=True) if out is not None))


def examined(task: Task, length: int, space: Space) -> int:
    it = Examination(task, DEFAULT, length, space, 1000, NONE)
    while it.advance():
        pass
    return it.nodes


@pytest.mark.usefixtures("narrow")
def test_each_program_is_in_one_band() -> None:
    task = task_of("a <- [int]; b <- MAP (*2) a; c <- SORT b; d <- SCANL1 (+) c")
    found = bands.__wrapped__(SHARP, 3)
    assert len(found) > 2
    assert sum(examined(task, 3, space) for space in found) == search_space((LIST,), 3)
    assert all(one.most == two.least for one, two in pairwise(found))


@pytest.mark.parametrize("place", [1, 4])
def test_the_last_line_costs_nothing(place: int) -> None:
    """A band of one cost has the first line of that cost, and any last line."""
    operations = SHARP.operations
    band = Space(operations, (), tuple(range(len(operations))), place, place + 1)
    it = Examination(task_of("a <- [int]; b <- REVERSE a; c <- REVERSE b"), DEFAULT, 2, band, 1000, NONE)
    while it.advance():
        pass
    assert {program[0].operation for program in it.found} == {operations[place]}
    assert len({program[1].operation for program in it.found} - {operations[place]}) > 0


def test_more_probable_programs_come_first() -> None:
    found = bands(SHARP, 6)
    probability = SHARP.of_operations
    assert len(found) > 3
    assert found[0].costs == tuple(round(-10 * log(max(probability[id], 1e-4))) for id in SHARP.operations)
    assert bands(SHARP, 3) == (Space(SHARP.operations),)
    assert bands(Order.uniform(), 6) == (Space(Order.uniform().operations),)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("solver", [DepthFirst(), Auto()], ids=["dfs", "auto"])
def test_a_guide_changes_the_order_and_not_the_set(solver: Auto | DepthFirst) -> None:
    task = Task("one example", task_of("a <- [int]; b <- FILTER (>0) a; c <- SCANL1 MIN b").examples[:1])
    limits = Limits(3, count=10_000, distinct=True, shortest=True)
    found = [solver.solve(task, order, limits) for order in (SHARP, Order.uniform())]
    one, two = ({program.one_line for program in it.programs} for it in found)
    assert one == two
    assert len(one) > 1
