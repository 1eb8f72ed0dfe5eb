"""Searches over the larger language, and what an answer says where the smaller one has no program."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thesis_cli as tc
from tests.synthesis.brute_force import fitting, tasks
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEEPCODER, EXTENDED, LANGUAGES, Semantics
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task, check, load_tasks
from thesis_cli.synthesis.search.depth_first import NONE, DepthFirst
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.solvers import SOLVERS, solver

WIDE = Semantics(dsl="extended")
COMPLETE = [name for name, entry in SOLVERS.items() if "extended" in entry.dsls and name != "join"]
UNIQUE = [[[[3, 1, 3, 2]], [3, 1, 2]], [[[5, 5]], [5]], [[[4, 7, 4, 9, 7]], [4, 7, 9]]]


@pytest.mark.parametrize("semantics", [Semantics(dsl=name) for name in LANGUAGES], ids=lambda one: one.dsl)
@pytest.mark.parametrize("name", COMPLETE)
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_a_search_finds_a_program_no_longer_than_the_hidden_one(name: str, semantics: Semantics, data: st.DataObject):
    """And one of the fewest lines, if it proves that."""
    length = data.draw(st.integers(2, 3))
    task = data.draw(tasks(length, semantics))
    found = solver(name).solve(task, prior.load(semantics.language), Limits(length), semantics)
    assert found.program
    assert check(found.program, task, semantics)
    assert len(found.program) <= length
    assert found.program.language in (DEEPCODER, semantics.language)
    exact = DepthFirst().solve(task, Order.uniform(semantics.language), Limits(length), semantics)
    assert not found.proven or len(found.program) == len(exact.program)


@settings(max_examples=examples(30), deadline=None)
@given(tasks(2, WIDE))
def test_no_pruning_of_the_larger_language_loses_a_program(task: Task):
    plain = next((n for n in (1, 2) if next(fitting(task, n, WIDE), None)), None)
    found = DepthFirst().solve(task, Order.uniform(EXTENDED), Limits(2), WIDE)
    assert len(found.program) == plain
    assert len(DepthFirst(NONE).solve(task, Order.uniform(EXTENDED), Limits(2), WIDE).program) == plain


def test_the_language_of_the_thesis_has_no_program_of_the_larger_one():
    found = tc.synthesize(UNIQUE, max_length=3)
    assert not found.solutions[0].programs
    assert all(program.language is DEEPCODER for program in tc.synthesize([[[[2, 1]], 2]]).solutions[0].programs)
    with pytest.raises(InputError, match="34 or"):
        Order((0.5,) * 35)


def test_numbers_alone_are_inputs_of_the_larger_language():
    task = [[[n], list(range(1, n + 1))] for n in (3, 5, 1)]
    assert tc.synthesize(task, dsl="extended").solutions[0].program == parse("a <- int; b <- RANGE a")
    with pytest.raises(InputError, match="no list among its inputs"):
        tc.synthesize(task)
    assert tc.run_program("a <- int; b <- RANGE a", [3]).value == (1, 2, 3)
    with pytest.raises(InputError, match="no list among its inputs"):
        tc.run_program("a <- [int]; b <- SORT a", [3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guide": "network"}, "--dsl extended does not go with --guide network; leave out --guide"),
        ({"guide": "lines-4"}, "--dsl extended does not go with --guide lines-4"),
        ({"solver": "smt"}, "--dsl extended does not go with --solver smt; it is for auto, join"),
        ({"solver": "beam"}, "--dsl extended does not go with --solver beam"),
        ({"prior": Order.uniform()}, "an order is of deepcoder; it must be of --dsl extended"),
        ({"prior": {"SORT": 0.5}}, "--prior lacks HEAD"),
        ({"dsl": "other"}, "dsl"),
    ],
)
def test_what_cannot_take_the_larger_language_is_refused(options, message):
    with pytest.raises(InputError, match=message) as error:
        tc.synthesize(UNIQUE, **{"dsl": "extended", **options})
    assert "\n" not in str(error.value)


def test_answers_and_questions_are_of_the_language():
    found = tc.synthesize([[[5, [7, 3, 9]], 2], [[3, [1, 4]], 1]], dsl="extended", max_length=2)
    meant = parse("a <- int; b <- [int]; c <- TALLY (>) a b")
    while found.question() is not None and len(found.answers) < 5:
        found = found.answer(run(meant, found.question(), WIDE))
    assert run(found.solutions[0].program, (2, (1, 2, 3, 4)), WIDE) == 2


def test_a_journal_of_another_language_is_not_gone_on_with(tmp_path, caplog):
    batch = [{"name": str(n), "examples": UNIQUE[:n]} for n in (2, 3)]
    out = tmp_path / "t.csv"
    journal = tmp_path / "t.csv.journal"
    tc.synthesize(batch, out=out, max_length=2)
    kept = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert kept["settings"]["dsl"] == "deepcoder"
    journal.write_text(json.dumps({"dsl": "deepcoder"}) + "\n", encoding="utf-8")
    tc.synthesize(batch, out=tmp_path / "t.csv", max_length=2, dsl="extended")
    assert "belongs to another batch" in caplog.text


def test_where_no_program_fits_the_larger_language_is_named():
    found = tc.synthesize(UNIQUE, max_length=3)
    assert found.solutions[0].larger == parse("a <- [int]; b <- UNIQUE a")
    assert "with --dsl extended: `a <- [int]; b <- UNIQUE a`" in found.summary()
    assert found.facts()["meant"][0]["extended"] == "a <- [int]; b <- UNIQUE a"
    assert tc.synthesize(UNIQUE, max_length=3, dsl="extended").solutions[0].larger is None


def test_where_no_program_fits_the_closest_one_is_named():
    rows = [((3, 1, 2), (1, 2, 3)), ((9, 4), (4, 9)), ((2, 7, 5, 1), (1, 2, 5, 7)), ((6, 2), (77, 3)), ((8,), (99,))]
    task = Task("t", tuple(Example((xs,), ys) for xs, ys in rows))
    found = tc.synthesize(task, max_length=2)
    assert found.solutions[0].closest.missed == (3, 4)
    assert "fits 3 of 5 examples: `a <- [int]; b <- SORT a`; not examples 4 and 5" in found.summary()
    assert found.facts()["meant"][0]["closest"] == {"missed": [4, 5], "program": "a <- [int]; b <- SORT a"}
    one = Task("t", task.examples[:4])  # a doubt says it
    solution = tc.synthesize(one, max_length=2).solutions[0]
    assert solution.closest is None
    assert [doubt.example for doubt in solution.doubts] == [3]


@pytest.mark.parametrize("task", load_tasks("data/tasks/daily.jsonl", WIDE), ids=lambda task: task.name)
def test_tasks_of_daily_life_need_the_larger_language(task):
    assert tc.synthesize(task, dsl="extended").solutions[0].program
    program = parse(task.program)
    assert check(program, task, WIDE)
    assert program.language is EXTENDED
