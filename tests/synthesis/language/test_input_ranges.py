"""Ranges of inputs, against the plain interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.strategies import programs
from tests.tiers import examples
from thesis_cli.synthesis.corpus.sampling_kernels import count_completions, sample
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, INT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.input_range_kernels import propagate
from thesis_cli.synthesis.language.packing import bounds_of
from thesis_cli.synthesis.language.program import Line, Program, parse
from thesis_cli.synthesis.language.program_codes import SIGNATURES, decode, encode

SEMANTICS = [Semantics(), Semantics("floor"), Semantics(low=-7, high=300, longest=3), Semantics("floor", 1, 40, 6)]


def input_ranges(program, semantics=DEFAULT):
    """A range for each input, within which no line leaves the range; None if one is empty."""
    inputs = len(program.inputs)
    least, most = np.zeros((2, inputs + len(program)), dtype=np.int64)
    if not propagate(encode(program), inputs, semantics.longest, bounds_of(semantics), least, most):
        return None
    return tuple(zip(map(int, least[:inputs]), map(int, most[:inputs]), strict=True))


def leaves_the_range(program, inputs, semantics):
    """Whether a line gives a number out of range, before any that gives NULL."""
    values = list(inputs)
    for line in program.lines:
        operation = OPERATIONS[line.operation]
        rule = operation.floor if semantics.division == "floor" else operation.trunc
        value = rule(*(values[i] for i in line.arguments))
        if value is None:
            return False
        if not semantics.holds(value):
            return True
        values.append(value)
    return False


@pytest.mark.parametrize("semantics", SEMANTICS)
@given(program=programs(5), data=st.data())
@settings(max_examples=examples(20))
def test_no_input_within_the_ranges_leaves_the_range(semantics, program, data):
    ranges = input_ranges(program, semantics)
    if ranges is None:
        return
    inputs = []
    for kind, (least, most) in zip(program.inputs, ranges, strict=True):
        assert semantics.low <= least <= most <= semantics.high
        number = st.sampled_from([least, most]) | st.integers(least, most)
        size = data.draw(st.sampled_from([1, semantics.longest]))
        inputs.append(data.draw(number if kind is INT else st.lists(number, min_size=size, max_size=size).map(tuple)))
    assert not leaves_the_range(program, inputs, semantics)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_nor_do_the_numbers_at_their_ends_in_long_lists(semantics):
    rng = np.random.default_rng(0)
    ways = count_completions(5)
    checked = 0
    for inputs in SIGNATURES:
        codes = np.zeros((150, 5), dtype=np.int32)
        kinds = np.array([kind is INT for kind in inputs])
        sample(ways, kinds, rng.integers(2**64, size=1, dtype=np.uint64), codes)
        for program in (decode(inputs, row) for row in codes):
            ranges = input_ranges(program, semantics) or ()
            checked += bool(ranges)
            for pick in ([0], [1], [0, 1]) if ranges else ():
                ends = [[end[i] for i in rng.choice(pick, semantics.longest)] for end in ranges]
                values = [x[0] if kind is INT else tuple(x) for kind, x in zip(inputs, ends, strict=True)]
                assert not leaves_the_range(program, values, semantics)
    assert checked > (600 if semantics.low < 0 else 100)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize(
    "operation", [o for o in DEEPCODER.operations if o.name.startswith("MAP")], ids=lambda o: o.name
)
def test_the_range_of_a_map_is_all_that_there_is(semantics, operation):
    program = Program(operation.inputs, (Line(operation.id, (0,)),))
    valid = [x for x in range(semantics.low, semantics.high + 1) if not leaves_the_range(program, [(x,)], semantics)]
    assert input_ranges(program, semantics) == (((min(valid), max(valid)),) if valid else None)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("a <- [int]; b <- SUM a", [(-12, 12)]),
        ("a <- [int]; b <- SCANL1 (*) a", [(-1, 1)]),
        ("a <- [int]; b <- MAP (*4) a; c <- MAP (**2) b", [(-3, 3)]),
        ("a <- [int]; b <- FILTER (>0) a; c <- MAP (**2) b", [(-256, 15)]),
        ("k <- int; a <- [int]; b <- ZIPWITH (+) a a; c <- TAKE k b", [(-256, 255), (-128, 127)]),
        ("a <- [int]; b <- [int]; c <- ZIPWITH (-) a b", [(-129, 128), (-127, 127)]),
        ("a <- [int]; b <- [int]; c <- ZIPWITH (*) a b", [(-15, 15), (-15, 15)]),
        ("a <- [int]; b <- MAP (/3) a; c <- MAP (**2) b", [(-47, 47)]),
        ("a <- [int]; b <- COUNT (>0) a", [(-256, 255)]),
    ],
)
def test_ranges(text, ranges):
    assert input_ranges(parse(text)) == tuple(ranges)


def test_an_empty_range_is_none():
    assert input_ranges(parse("a <- [int]; b <- COUNT (>0) a"), Semantics(low=0, high=5)) is None


def test_a_function_of_which_nothing_is_known_restricts_nothing():
    from numba import njit

    from thesis_cli.synthesis.language.input_range_kernels import RULES

    unknown = RULES["unknown"]
    rule = njit(lambda bounds: unknown(0, 3, 4, 20, bounds))
    assert rule(bounds_of(Semantics())) == ((-256, 255), (-256, 255))
