"""Probabilities of behaviours, questions, and examples that look mistaken."""

from dataclasses import replace

import numpy as np
import pytest

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.meant.classes import OWN, collect
from thesis_cli.synthesis.meant.fitting import FRESH, KINDS, fit, known_examples
from thesis_cli.synthesis.meant.meaning import COLUMNS, meant, posterior, weights, with_doubts
from thesis_cli.synthesis.search.depth_first import DepthFirst
from thesis_cli.synthesis.search.solver import Limits


def task_of(program, *inputs):
    return Task("t", tuple(Example(row, run(program, row)) for row in inputs))


SORTED = parse("a <- [int]; b <- SORT a")
TOTAL = parse("a <- [int]; b <- [int]; c <- ZIPWITH (+) a b; d <- MAXIMUM c")


def solved(task, longest=3):
    order = prior.load()
    return DepthFirst().solve(task, order, Limits(longest), DEFAULT), (task, order, Limits(longest), DEFAULT)


def test_shares_are_a_distribution_over_behaviours_and_the_rest():
    task = task_of(TOTAL, ((1, 5), (2, 3)), ((4,), (4,)), ((9, 2, 1), (3, 7, 8)))
    collection = collect(task, prior.load(), Limits(3), DEFAULT)
    found = posterior(collection)
    assert found.shares.sum() + found.unseen == pytest.approx(1)
    assert list(found.shares) == sorted(found.shares, reverse=True)
    every = list(collection.behaviours.values())
    own = [behaviour.codes[:OWN].tobytes() for behaviour in every]
    kept = [behaviour.codes[:OWN].tobytes() for behaviour in found.behaviours]
    assert len(kept) == len(set(kept)) == len(set(own)) < len(own)
    for behaviour, code in zip(found.behaviours, kept, strict=True):
        same = [other for other, codes in zip(every, own, strict=True) if codes == code]
        assert len(behaviour.lines) == min(len(other.lines) for other in same)
        assert behaviour.count == max(b.count for b in same if len(b.lines) == len(behaviour.lines))
    scores = np.array([score(task, behaviour) for behaviour in found.behaviours])
    assert found.shares / found.shares.sum() == pytest.approx(np.exp(scores) / np.exp(scores).sum())


def test_an_example_that_is_given_again_says_nothing_more():
    task = task_of(TOTAL, ((1, 5), (2, 3)), ((4,), (4,)))
    again = replace(task, examples=task.examples * 3)
    (first, second) = (posterior(collect(each, prior.load(), Limits(3), DEFAULT)) for each in (task, again))
    assert list(first.shares) == list(second.shares)
    assert first.unseen == second.unseen


def score(task, behaviour):
    """The weights of what a program has, added one by one."""
    weight = dict(zip(COLUMNS, weights(), strict=True))
    program = behaviour.program(task)
    ignored = [v for v in range(len(task.inputs)) if all(v not in line.arguments for line in program.lines)]
    found = weight[f"lines {len(program)}"] + np.log(behaviour.count) * weight["log programs"]
    return found + len(ignored) * weight["inputs ignored"]


def test_a_program_that_ignores_an_input_is_improbable():
    task = Task("t", (Example(((1, 5), (2, 3)), (1, 5)), Example(((4, 6), (9, 8)), (4, 6))))
    found, given = solved(task, 2)
    (shortest,) = found.programs
    assert set(shortest.unused) & {0, 1}
    answer = meant(found, *given)
    assert set(answer.program.unused).isdisjoint({0, 1})
    assert answer.meaning.shortest <= len(answer.program)


def test_a_longer_answer_is_not_proven_shortest():
    found, given = solved(task_of(TOTAL, ((1, 5), (2, 3)), ((9, 2, 1), (3, 7, 8))))
    answer = meant(found, *given)
    shorter = replace(answer, meaning=replace(answer.meaning, shortest=len(answer.program) - 1))
    assert found.proven
    assert not shorter.proven


def test_confirmed_answers_leave_less_to_what_was_not_collected():
    task = task_of(SORTED, ((3, 1, 2),), ((9, 4),), ((5, 2, 8, 1),))
    confirmed = task.with_answer(Example(((4, 0),), (0, 4)), SORTED)
    refuted = confirmed.with_answer(Example(((4, 1),), (4, 1)), SORTED)
    assert (task.confirmed, confirmed.confirmed, refuted.confirmed) == (0, 1, 0)
    assert len(refuted.examples) == 5
    wide, beyond = replace(DEFAULT, low=-1000, high=1000), Example(((900, 400),), (400, 900))
    assert task.with_answer(beyond, SORTED, wide).confirmed == 1
    plain, sure = (
        posterior(collect(each, prior.load(), Limits(2), DEFAULT))
        for each in (replace(confirmed, confirmed=0), confirmed)
    )
    weight = dict(zip(COLUMNS, weights(), strict=True))["other, 1 confirmed"]
    assert np.log(sure.unseen / sure.shares[0]) == pytest.approx(np.log(plain.unseen / plain.shares[0]) + weight)
    assert weight < 0


def test_the_example_that_looks_mistaken_is_named():
    rows = (3, 1, 2), (9, 4), (7, 7, 1), (2, 6, 5)
    good = task_of(SORTED, *((row,) for row in rows))
    found, given = solved(good)
    assert with_doubts(found, *given).doubts == ()
    bad = Task("t", (*good.examples[:2], Example((rows[2],), (1, 7, 9)), *good.examples[3:]))
    found, given = solved(bad)
    assert not found.programs
    (doubt,) = with_doubts(found, *given).doubts
    assert doubt.example == 2
    assert doubt.program == SORTED


def test_two_examples_that_cannot_hold_together():
    """SORT fits the first and the last, REVERSE the others."""
    rows = ((3, 1, 2), (1, 2, 3)), ((2, 1, 3), (3, 1, 2)), ((2, 1), (1, 2))
    found, given = solved(Task("t", tuple(Example((row,), output) for row, output in rows)), 1)
    assert [doubt.example for doubt in with_doubts(found, *given).doubts] == [0, 1]


def test_the_fit_is_where_the_likelihood_is_flat():
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(5, len(COLUMNS))), int(rng.integers(5))) for _ in range(20)]
    found = fit(rows, ridge=1.0)
    gradient = -found
    for table, right in rows:
        chances = np.exp(table @ found)
        gradient += table[right] - chances @ table / chances.sum()
    assert abs(gradient).max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_each_kind_are_those_of_the_program(kind):
    found = known_examples(TOTAL, kind, 3, np.random.default_rng(2))
    assert len(found) == 3 + FRESH == len({example.inputs for example in found})
    assert all(run(TOTAL, example.inputs) == example.output for example in found)
    assert len({example.output for example in found[:3]}) == 3
    shortest, longest, _ = KINDS[kind]
    assert all(shortest <= len(value) <= longest for example in found for value in example.inputs)
