"""What holds for every row of the registry of solvers, whatever the examples: empty lists, single
numbers, extremes, repeated examples, in any order. A new row is held to it, too."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thesis_cli as tc
from tests.synthesis.test_fuzz import Case, cases, cases_of
from thesis_cli.synthesis.language.dsl import DEFAULT, WIDEST
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.networks.network_guide import line_guide, network_guide
from thesis_cli.synthesis.prior import Guide, orders_of
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.solvers import SOLVERS, solver

NEED_NOT_BE_SHORTEST = {"join", "sort-and-add", "beam", "guided"}
"""Rows that promise any program; all others promise the shortest one, proven."""

MEMORY = 0.001
"""GiB; they bound the work of those searches, as no clock may decide a test."""


@cache
def guide_of(name: str) -> Guide:
    """The network that a row is made for."""
    weights = SOLVERS[name].weights
    return line_guide(weights, Order.uniform()) if weights == "next-line" else network_guide(weights or "network")


LONG = Case(
    Task(
        "long",
        (
            Example((3, (4, 1, 2, 8)), (-7, 0, 0)),
            Example((-1, (6, -2, 9, 4)), (-6, 6, 0)),
            Example((5, ()), ()),
        ),
    ),
    Order.uniform(),
    Limits(),
    DEFAULT,
)
"""Takes four lines, so that every search of fewer goes to its end."""


def variants(case: Case, rng: Random) -> list[Case]:
    """The case with its examples in three orders, those with the fewest items first, last and
    anywhere; and with one of them twice."""
    rising = sorted(case.task.examples, key=items)
    twice = [*rising, rng.choice(rising)]
    found = rising, rising[::-1], rng.sample(rising, len(rising)), rng.sample(twice, len(twice))
    return [replace(case, task=replace(case.task, examples=tuple(each))) for each in found]


def items(example: Example) -> int:
    """How many numbers the lists of its inputs have."""
    return sum(len(value) for value in example.inputs if not isinstance(value, int))


@pytest.mark.parametrize("name", SOLVERS)
@cases_of(3)
@example(case=LONG, rng=Random(0))
@given(case=cases(3, widest=WIDEST, degenerate=True), rng=st.randoms(use_true_random=False))
def test_neither_the_order_of_examples_nor_a_repeated_one_matters(name: str, case: Case, rng: Random) -> None:
    length = 2 if SOLVERS[name].compiled else 1
    case = replace(case, limits=Limits(length, memory=MEMORY if name in NEED_NOT_BE_SHORTEST else 1))
    for order in (case.order, *orders_of(guide_of(name), [case.task], case.order)):
        answered = set()
        for each in variants(replace(case, order=order), rng):
            if name in NEED_NOT_BE_SHORTEST:
                found = each.solve(solver(name))
                if found.stopped:
                    assert found.stopped == "memory"
                else:
                    answered.add(found.program is not None)
            else:
                each.solve_wholly(solver(name))
        assert len(answered) <= 1


EDGES = [
    Task("no items", (Example(((),), ()), Example(((),), ()))),
    Task("none of two", (Example(((), ()), ()), Example(((1, 2), ()), ()))),
    Task("no items last", (Example((2, (7, 8)), (7, 8)), Example((5, ()), ()))),
    Task("one number", (Example(((7,),), 7),)),
    Task("the input", (Example(((-256, 255),), (-256, 255)),)),
    Task("twenty", (Example(((1,) * 20,), 20), Example(((2,) * 20,), 40))),
    Task("nothing of nothing", (Example(((),), 3),)),
]
"""All but the last have a program of one line."""

BAD = [
    Task("contradictory", (Example(((1,),), 1), Example(((1,),), 2))),
    Task("too small", (Example(((-257,),), 1),)),
    Task("too large", (Example(((1,),), 256),)),
    Task("too long", (Example(((1,) * 21,), 1),)),
    Task("without examples", ()),
]


@pytest.mark.parametrize("name", SOLVERS)
def test_bad_tasks_of_a_batch_take_no_other_with_them(name: str) -> None:
    mixed = [task for pair in zip(BAD, EDGES, strict=False) for task in pair] + EDGES[len(BAD) :]
    found = tc.synthesize(mixed, solver=name, max_length=1, skip_bad=True, jobs=1)
    assert [task.name for task in found.bad.values()] == [task.name for task in BAD]
    assert [task.name for task in found.tasks] == [task.name for task in EDGES]
    *most, last = found.solutions
    for task, solution in zip(EDGES, most, strict=False):
        assert solution.program is not None
        assert check(solution.program, task)
    assert last.program is None
    assert last.refuted
