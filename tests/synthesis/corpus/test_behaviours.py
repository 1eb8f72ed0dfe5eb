"""Comparison of programs by behaviour, against the plain interpreter; random programs, against all
of them."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from thesis_cli.synthesis.corpus.behaviours import Behaviours, distinct, enumerated, probes
from thesis_cli.synthesis.corpus.sampling_kernels import count_completions, sample
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, INT, LIST, WIDEST, Semantics
from thesis_cli.synthesis.language.program import Line, Program, run, search_space
from thesis_cli.synthesis.language.program_codes import SIGNATURES, arrangements, decode, encode, operation_of

WIDE = Semantics(low=-WIDEST, high=WIDEST)


@cache
def usual_probes(inputs):
    return probes(inputs, DEFAULT)


def every(inputs, length):
    """All well-typed programs."""
    rows = [((), tuple(inputs))]
    for _ in range(length):
        rows = [
            ((*lines, Line(o.id, arguments)), (*types, o.output))
            for lines, types in rows
            for o in DEEPCODER.operations
            for arguments in product(*([i for i, t in enumerate(types) if t is kind] for kind in o.inputs))
        ]
    return [Program(tuple(inputs), lines) for lines, _ in rows]


def behaviour(program, semantics, columns=None):
    """What the plain interpreter gives on all probes."""
    columns = columns or usual_probes(program.inputs)
    return tuple(run(program, row, semantics) for row in zip(*columns, strict=True))


@pytest.mark.parametrize("inputs", SIGNATURES)
def test_the_number_of_programs_without_unused_variables(inputs):
    ways = count_completions(2).ways
    numbers = inputs.count(INT)
    lists = len(inputs) - numbers
    for length in (1, 2):
        programs = every(inputs, length)
        assert len(programs) == search_space(inputs, length)
        assert ways[length, numbers, lists, numbers, lists] == sum(not program.unused for program in programs)


@pytest.mark.parametrize("inputs", [(LIST,), (INT, LIST)])
def test_programs_are_drawn_uniformly(inputs):
    kinds = np.array([kind is INT for kind in inputs])
    codes = np.zeros((200_000, 2), dtype=np.int32)
    sample(count_completions(2), kinds, np.array([7], dtype=np.uint64), codes)
    found, counts = np.unique(codes, axis=0, return_counts=True)
    programs = [program for program in every(inputs, 2) if not program.unused]
    assert {decode(inputs, row) for row in found} == set(programs)
    expected = len(codes) / len(programs)
    freedom = len(programs) - 1
    assert abs(((counts - expected) ** 2 / expected).sum() - freedom) < 5 * np.sqrt(2 * freedom)


def test_programs_are_drawn_by_weight():
    weights = np.arange(1, len(DEEPCODER.operations) + 1) % 7 + 1
    completions = count_completions(2, weights)
    codes = np.zeros((200_000, 2), dtype=np.int32)
    sample(completions, np.array([True, False]), np.array([7], dtype=np.uint64), codes)
    found, counts = np.unique(codes, axis=0, return_counts=True)
    expected = weights[operation_of(found)].prod(axis=1) / completions.ways[2, 1, 1, 1, 1] * len(codes)
    assert expected.sum() == pytest.approx(len(codes))
    freedom = len(found) - 1
    assert abs(((counts - expected) ** 2 / expected).sum() - freedom) < 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("length", [5, 10])
@pytest.mark.parametrize("inputs", SIGNATURES[:3])
def test_longer_programs_are_well_typed_and_use_all(inputs, length):
    codes = np.zeros((300, length), dtype=np.int32)
    sample(count_completions(length), np.array([kind is INT for kind in inputs]), np.array([3], dtype=np.uint64), codes)
    programs = [decode(inputs, row) for row in codes]
    assert not any(program.unused for program in programs)
    assert all((encode(program) == row).all() for program, row in zip(programs, codes, strict=True))


@pytest.mark.parametrize("semantics", [DEFAULT, Semantics("floor", -30, 90)])
@pytest.mark.parametrize("inputs", [(LIST,), (INT, LIST), (LIST, LIST, LIST)])
def test_hashes_are_alike_where_the_plain_interpreter_is(inputs, semantics):
    behaviours = Behaviours(inputs, semantics)
    codes = np.zeros((350, 3), dtype=np.int32)
    sample(count_completions(3), behaviours.kinds, np.array([1], dtype=np.uint64), codes)
    _, hashes = behaviours._judge(codes, fresh=False)
    columns = probes(inputs, semantics)
    for place, plain in enumerate((Semantics(semantics.division, -WIDEST, WIDEST), semantics)):
        programs = [decode(inputs, row) for row in codes]
        values = [(program.output, behaviour(program, plain, columns)) for program in programs]
        pairs = set(zip(values, hashes[:, place].tolist(), strict=True))
        assert len(pairs) == len(set(values)) == len(set(hashes[:, place].tolist()))


def test_the_fewest_lines_of_every_behaviour_are_known():
    inputs = (LIST,)
    known = enumerated(inputs, DEFAULT, 2)
    columns = probes(inputs, DEFAULT)
    fewest = {(kind, tuple(column)): 0 for kind, column in zip(inputs, columns, strict=True)}
    for length in (1, 2):
        programs = [p for p in every(inputs, length) if not [v for v in p.unused if v >= len(inputs)]]
        values = [(program.output, behaviour(program, WIDE)) for program in programs]
        for value in values:
            fewest.setdefault(value, length)
        _, hashes = known._judge(np.stack([encode(program) for program in programs]), fresh=False)
        lengths = known._table.lengths(hashes[:, 0])
        alive = [any(x is not None for x in value[1]) for value in values]
        assert lengths[alive].tolist() == [fewest[value] for value, ok in zip(values, alive, strict=True) if ok]


@pytest.mark.parametrize("inputs", [(LIST,), (INT, LIST), (LIST, LIST, LIST)])
def test_whatever_a_short_program_does_is_known(inputs):
    known = enumerated(inputs, DEFAULT, 3)
    columns = probes(inputs, DEFAULT)
    codes = np.zeros((10_000, 3), dtype=np.int32)
    sample(count_completions(3), known.kinds, np.array([5], dtype=np.uint64), codes)
    _, hashes = known._judge(codes, fresh=False)
    lengths = known._table.lengths(hashes[:, 0])
    nothing = {(None,) * len(columns[0]), *map(tuple, columns)}
    assert (lengths > 0).mean() > 0.9
    assert all(behaviour(decode(inputs, row), WIDE) in nothing for row in codes[lengths == 0])


def test_short_programs_differ():
    inputs = (LIST,)
    seen = set()
    for length in (1, 2):
        for program in (decode(inputs, row) for row in enumerated(inputs, DEFAULT, 2).enumerate(length)):
            assert not program.unused
            for semantics in (WIDE, DEFAULT):
                value = (semantics, program.output, behaviour(program, semantics))
                assert value not in seen
                seen.add(value)


def test_what_is_selected_depends_on_every_input():
    inputs = (INT, LIST)
    known = enumerated(inputs, DEFAULT, 3)
    columns = probes(inputs, DEFAULT)
    rng = np.random.default_rng(0)
    for row in known.short(3, rng)[:200]:
        program = decode(inputs, row)
        plain = behaviour(program, DEFAULT)
        assert sum(value is not None for value in plain) >= 8
        for i in range(len(inputs)):
            moved = [column[1:] + column[:1] if j == i else column for j, column in enumerate(columns)]
            other = behaviour(program, DEFAULT, moved)
            assert any(None not in pair and pair[0] != pair[1] for pair in zip(plain, other, strict=True))


def test_programs_that_are_drawn_differ_from_each_other_and_from_short_ones():
    inputs = (LIST,)
    known = enumerated(inputs, DEFAULT, 4)
    shorter = [program for length in (1, 2) for program in every(inputs, length) if not program.unused]
    seen = {(s, p.output, behaviour(p, s)) for p in shorter for s in (WIDE, DEFAULT)}
    for row in next(distinct(known, 4, np.random.default_rng(0), 300)):
        program = decode(inputs, row)
        for semantics in (WIDE, DEFAULT):
            value = (semantics, program.output, behaviour(program, semantics))
            assert value not in seen
            seen.add(value)


def test_copies_do_not_change_each_other():
    first, second = (enumerated((LIST,), DEFAULT, 3) for _ in range(2))
    batches = [next(distinct(b, 4, np.random.default_rng(0), 500)) for b in (first, second)]
    assert np.array_equal(*batches)


def test_arrangements_take_inputs_in_every_order():
    program = Program((LIST, INT, LIST), (Line(28, (0, 2)), Line(2, (1, 3))))
    found = list(arrangements(program))
    assert {p.inputs for p in found} == {(INT, LIST, LIST)}
    assert {p.lines[0].arguments for p in found} == {(1, 2), (2, 1)}
    assert all(run(p, (2, (5, 6, 7), (1, 1, 1))) == (6, 7) for p in found)
