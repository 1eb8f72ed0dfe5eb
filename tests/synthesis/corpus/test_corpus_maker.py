"""Corpora: their programs and examples by the plain interpreter, their splits, and what is
refused."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from tests.synthesis.corpus.test_behaviours import behaviour, every
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus import behaviours, corpus_maker
from thesis_cli.synthesis.corpus.corpus import TYPES, join
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus, parts, random_tasks
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, Semantics, type_of
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.language.task import check


def rng(seed=0):
    return np.random.default_rng(seed)


OTHER = Semantics("floor", -40, 60, 7)


@pytest.mark.parametrize(
    ("length", "semantics"),
    [
        *((length, DEFAULT) for length in (1, 2, 10)),
        (2, OTHER),
        *(pytest.param(n, DEFAULT, marks=pytest.mark.long) for n in (3, 4, 5)),
        *(pytest.param(n, OTHER, marks=pytest.mark.long) for n in (3, 4, 5)),
    ],
)
def test_examples_are_right_and_tell_something(length, semantics):
    count = 30
    made = make_corpus(CorpusPlan(length, count, examples=4, semantics=semantics), rng(length))
    assert len(made) == count
    assert set(made.lengths.tolist()) == {length}
    for row, (task, program) in enumerate((made.task(i), made.program(i)) for i in range(count)):
        assert len(program) == length
        assert not program.unused
        assert check(program, task, semantics)
        assert set(np.flatnonzero(made.attributes[row])) == program.attributes
        kinds = [TYPES[code] for code in made.types[row] if code]
        assert kinds == [*program.inputs, program.output]
        assert len({example.inputs for example in task.examples}) == len(task.examples) == 4
        assert len({example.output for example in task.examples}) > 1
        for i in range(len(program.inputs)):
            assert any(example.inputs[i] != example.output for example in task.examples)
        values = [value for example in task.examples for value in (*example.inputs, example.output)]
        assert all(semantics.holds(value) for value in values)
        assert all(type_of(v) is INT or 0 < len(v) <= semantics.longest for e in task.examples for v in e.inputs)


def test_inputs_differ_even_where_there_are_few():
    made = make_corpus(CorpusPlan(2, 15, semantics=Semantics(low=-2, high=2, longest=2), signatures=[(LIST,)]), rng())
    for labelled in made.labelled():
        assert len({example.inputs for example in labelled.task.examples}) == 5


def test_degenerate_tasks_can_be_refused():
    usual = make_corpus(CorpusPlan(2, 300), rng())
    strict = make_corpus(CorpusPlan(2, 300, distinct=4, empty=1), rng())
    for made, refused in ((usual, False), (strict, True)):
        outputs = [[example.output for example in made.task(row).examples] for row in range(300)]
        assert refused == all(len(set(row)) >= 4 and row.count(()) <= 1 for row in outputs)
        assert all(len(set(row)) >= 2 for row in outputs)


def test_large_and_small_numbers_and_long_and_short_lists_occur():
    made = make_corpus(CorpusPlan(2, 250), rng())
    lists = made.inputs[(made.types[:, 0] == TYPES.index(LIST))][:, :, 0]
    sizes = np.count_nonzero(lists > -300, axis=-1)
    assert set(np.unique(sizes)) == set(range(1, 21))
    magnitudes = np.abs(lists).max(axis=-1, where=lists > -300, initial=0)
    for least, most in ((1, 4), (5, 32), (33, 128), (129, 256)):
        assert ((least <= magnitudes) & (magnitudes <= most)).mean() > 0.05


@pytest.mark.parametrize("length", [2, pytest.param(3, marks=pytest.mark.long)])
def test_no_two_programs_behave_alike(length):
    made = make_corpus(CorpusPlan(length, 300, 60, shorter=True), rng())
    values = [(program.inputs, program.output, behaviour(program, DEFAULT)) for program in made.programs()]
    assert len(set(values)) == len(made)


@cache
def behaviours_of_short_programs():
    shorter = [program for length in (1, 2) for program in every((LIST,), length) if not program.unused]
    return {(program.output, behaviour(program, DEFAULT)) for program in shorter}


def test_no_shorter_program_does_the_same():
    made = make_corpus(CorpusPlan(3, 80, signatures=[(LIST,)]), rng())
    assert not behaviours_of_short_programs() & {(p.output, behaviour(p, DEFAULT)) for p in made.programs()}


def test_splits_have_their_sizes():
    made = make_corpus(CorpusPlan(4, 200, 50, shorter=True), rng())
    sizes = {
        t: (int((~made.test[made.lengths == t]).sum()), int(made.test[made.lengths == t].sum())) for t in range(1, 5)
    }
    assert {t: sizes[t] for t in (2, 3, 4)} == dict.fromkeys((2, 3, 4), (200, 50))
    assert 30 < sum(sizes[1]) < 50
    assert sizes[1][1] == -(-sum(sizes[1]) // 5)  # there are too few: a fifth, as of the others
    assert made.made["distinct"][1] >= sum(sizes[1])
    assert np.allclose(made.incidence, made.attributes[~made.test].mean(axis=0))


def test_a_third_of_the_programs_takes_one_input_two_and_three():
    made = make_corpus(CorpusPlan(4, 3000), rng())
    counts = Counter(program.inputs for program in made.programs())
    for inputs in SIGNATURES:
        p = 1 / 3 / sum(len(inputs) == len(other) for other in SIGNATURES)
        assert abs(counts[inputs] - 3000 * p) < 5 * np.sqrt(3000 * p * (1 - p))


def test_same_seed_same_corpus_whatever_the_threads():
    made = [make_corpus(CorpusPlan(4, 300, 20), rng(seed), jobs=jobs) for seed, jobs in ((1, 1), (1, 3), (2, 1))]
    for name in ("codes", "types", "numbers", "test"):
        one, same, other = (getattr(corpus, name) for corpus in made)
        assert np.array_equal(one, same)
        assert name == "test" or not np.array_equal(one, other)


@pytest.mark.parametrize("done", [1, 5])
def test_a_corpus_goes_on_from_its_first_parts(monkeypatch, done):
    monkeypatch.setattr(corpus_maker, "PART", 64)
    plan = CorpusPlan(4, 150, 31, shorter=True, signatures=[(LIST,), (INT, LIST)])
    whole = list(parts(plan, rng()))
    assert [len(part) for part in whole[3:]] == [64, 64, 53]
    assert [int(part.test.sum()) for part in whole[3:]] == [11, 11, 9]
    rest = list(parts(plan, rng(), made=whole[:done]))
    for part, same in zip(rest, whole[done:], strict=True):
        assert part.labelled() == same.labelled()
        assert part.made == same.made
    programs = join(whole).programs()
    assert len({(p.inputs, p.output, behaviour(p, DEFAULT)) for p in programs}) == len(programs)


def test_all_shorter_programs_can_be_gone_through(monkeypatch, uncached):
    """With what is enumerated cut to 1 line, so that programs of 3 lines are in the place of those
    of 5."""
    monkeypatch.setattr(behaviours, "ENUMERATED", 1)
    uncached(behaviours._enumerated)
    for exhaustive in (False, True):
        made = make_corpus(CorpusPlan(3, 200, signatures=[(LIST,)], exhaustive=exhaustive), rng())
        known = behaviours_of_short_programs() & {(p.output, behaviour(p, DEFAULT)) for p in made.programs()}
        assert bool(known) != exhaustive


@pytest.mark.parametrize("length", [2, 4])
def test_programs_to_keep_apart_from_are_left_out_on_inputs_in_any_order(length):
    whole = make_corpus(CorpusPlan(length, 150, signatures=[(LIST, LIST)]), rng())
    apart = whole.programs()[:40]
    made = make_corpus(CorpusPlan(length, 150, signatures=[(LIST, LIST)]), rng(), apart_from=apart)
    swapped = [Program(p.inputs, tuple(swap(line) for line in p.lines)) for p in apart]
    known = {(p.output, behaviour(p, DEFAULT)) for p in (*apart, *swapped)}
    found = [(p.output, behaviour(p, DEFAULT)) for p in made.programs()]
    assert known & {(p.output, behaviour(p, DEFAULT)) for p in whole.programs()}
    assert not known & set(found)


def swap(line):
    return type(line)(line.operation, tuple({0: 1, 1: 0}.get(v, v) for v in line.arguments))


def test_random_tasks_are_tasks_of_distinct_programs():
    tasks = random_tasks(4, 12, rng())
    assert len({labelled.program for labelled in tasks}) == 12
    assert [labelled.task.name for labelled in tasks] == [f"random-{i}" for i in range(1, 13)]
    assert all(check(labelled.program, labelled.task) for labelled in tasks)
    assert len({labelled.program.inputs for labelled in tasks}) > 3
    assert random_tasks(4, 12, rng()) == tasks
    strict = random_tasks(2, 12, rng(), examples=3, distinct=3, empty=0)
    assert all(len({example.output for example in labelled.task.examples} - {()}) == 3 for labelled in strict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0, "count": 5}, "the length is 0; it must be 1 to 10"),
        ({"length": 11, "count": 5}, "the length is 11"),
        ({"length": 2, "count": 0}, "the number of programs is 0"),
        ({"length": 2, "count": 5, "examples": 0}, "the number of examples is 0"),
        ({"length": 2, "count": 5, "distinct": 6}, "the number of different outputs is 6; it must be 1 to 5"),
        ({"length": 2, "count": 5, "empty": -1}, "the number of empty outputs is -1"),
        ({"length": 2, "count": 5, "semantics": Semantics(longest=32)}, "the length of lists is 32"),
        ({"length": 1, "count": 500}, "500 distinct programs of length 1 are requested; there are 39"),
        ({"length": 1, "count": 5, "signatures": [(LIST, LIST, LIST)]}, "there are 0"),
    ],
)
def test_what_cannot_be_had_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        make_corpus(CorpusPlan(**arguments), rng())
