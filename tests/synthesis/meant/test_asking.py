"""Questions that tell which program was meant."""

from dataclasses import replace

import numpy as np
import pytest

from tests.synthesis.meant.test_classes import all_programs
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.meant.classes import collect, inputs_like, program_of
from thesis_cli.synthesis.meant.meaning import _candidates, _gain, posterior, questions, variants
from thesis_cli.synthesis.search.solver import Limits

SORTED = parse("a <- [int]; b <- SORT a")
TOTAL = parse("a <- [int]; b <- [int]; c <- ZIPWITH (+) a b; d <- MAXIMUM c")
RAISED = parse("a <- [int]; b <- MAP (/4) a; c <- MAP (+1) b; d <- ZIPWITH MAX a c")
"""Changes 0 alone."""


def task_of(program, *inputs):
    return Task("t", tuple(Example(row, run(program, row)) for row in inputs))


def asked_of(task, longest):
    """A collection, its posterior, and what it asks."""
    collection = collect(task, prior.load(), Limits(longest), DEFAULT)
    found = posterior(collection)
    return collection, found, questions(collection, found, DEFAULT, 3)


def entropy(outputs, shares):
    """Entropy of an output, in nats."""
    mass = np.array([sum(s for o, s in zip(outputs, shares, strict=True) if o == output) for output in set(outputs)])
    return -(mass / mass.sum() * np.log(mass / mass.sum())).sum()


def test_questions_tell_behaviours_apart():
    task = task_of(TOTAL, ((1, 5), (2, 3)))
    collection = collect(task, prior.load(), Limits(2), DEFAULT)
    found = posterior(collection)
    asked = questions(collection, found, DEFAULT, 3)
    assert len(asked) == len(set(asked)) == 3
    programs = [behaviour.program(task) for behaviour in found.behaviours]
    best = run(programs[0], asked[0])
    assert best is not None
    assert any(run(program, asked[0]) != best for program in programs[1:])
    others = inputs_like(task, 10, np.random.default_rng(5))
    gains = [entropy([run(program, row) for program in programs[:64]], found.shares[:64]) for row in others]
    assert entropy([run(program, asked[0]) for program in programs[:64]], found.shares[:64]) > np.median(gains)
    settled = replace(found, shares=np.array([0.995, *[0.0] * (len(programs) - 1)]))
    assert questions(collection, settled, DEFAULT, 3) == []


def test_one_behaviour_alone_is_tested_where_programs_near_it_differ():
    collection, found, asked = asked_of(task_of(RAISED, ((7, 2, 5, 9),), ((2, 7, 1),), ((6, 8, 5, 7, 4),)), 3)
    assert len(found.behaviours) == 1
    answer = found.behaviours[0].program(collection.task)
    assert all(run(RAISED, inputs) != run(answer, inputs) for inputs in asked)
    assert all(len(numbers) <= 5 for (numbers,) in asked)
    assert len(asked) == 3


def test_numbers_at_the_edge_are_asked_about_where_programs_differ_there_alone():
    """Negative numbers come up if a number of the examples is negative, and lists of several lengths if theirs are."""
    first, twice = (
        parse("a <- int; b <- [int]; c <- TAKE a b"),
        parse("a <- int; b <- [int]; c <- TAKE a b; d <- TAKE a c"),
    )
    rows = (2, (3, -1, 7, 5)), (1, (9, 4, -6)), (3, (5, -2, 8, 1, 1))
    _, found, asked = asked_of(task_of(first, *rows), 2)
    assert len(found.behaviours) == 1
    assert run(first, asked[0]) != run(twice, asked[0])
    positive = [(n, tuple(map(abs, numbers))) for n, numbers in rows]
    assert all(n >= 0 for n, _ in _candidates(task_of(first, *positive), DEFAULT))
    total = [len(set(map(len, row))) for row in _candidates(task_of(TOTAL, ((1, 5), (2, 3)), ((4,), (1,))), DEFAULT)]
    assert set(total) == {1}
    total = [len(set(map(len, row))) for row in _candidates(task_of(TOTAL, ((1, 5), (2, 3)), ((4,), (1, 2))), DEFAULT)]
    assert set(total) == {1, 2}


def test_programs_without_a_value_leave_less_to_gain():
    assert _gain(np.array([7, 7, 9, 9], np.uint64), np.full(4, 0.25)) == pytest.approx(np.log(2))
    assert _gain(np.array([7, 0, 9, 0], np.uint64), np.full(4, 0.25)) == pytest.approx(np.log(2) / 2)
    assert _gain(np.array([0, 7, 9, 9], np.uint64), np.full(4, 0.25)) == 0


def test_variants_differ_in_a_line_or_have_one_more():
    task = task_of(SORTED, ((3, 1),))
    changed, longer = ({program_of(task, lines) for lines in rows} for rows in variants(SORTED))
    lists = [program for program in all_programs(SORTED.inputs, 1) if program.output is SORTED.output]
    assert changed == set(lists)
    two = [program for program in all_programs(SORTED.inputs, 2) if program.output is SORTED.output]
    last = {program for program in two if program.lines[0] == SORTED.lines[0]}
    assert last < longer < set(two)
    assert {program.lines[1].operation for program in longer - last} == {SORTED.lines[0].operation}
    task = task_of(TOTAL, ((1, 5), (2, 3)))
    longer = {program_of(task, lines) for lines in variants(TOTAL)[1]}
    for text in (
        "c <- SORT b; d <- ZIPWITH (+) a c; e <- MAXIMUM d",
        "c <- ZIPWITH (+) a b; d <- MAP (/2) c; e <- MAXIMUM d",
    ):
        assert parse(f"a <- [int]; b <- [int]; {text}") in longer
