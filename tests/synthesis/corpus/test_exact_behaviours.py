"""Exact behaviours and the corpora they keep apart, against the plain interpreter on whole numbers
of any size."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest

from thesis_cli.synthesis.corpus.behaviours import probes
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.corpus.exact_behaviours import ExactBehaviours
from thesis_cli.synthesis.corpus.sampling_kernels import count_completions, sample
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, Semantics
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.program_codes import decode, encode


def orders(inputs):
    """Orders of the inputs that keep their types."""
    places = range(len(inputs))
    return [order for order in permutations(places) if all(inputs[order[i]] == inputs[i] for i in places)]


def behaviour(program, rows, semantics=DEFAULT, ranged=False):
    """What a program does with inputs in each order that keeps their types, whatever the order of
    these."""
    found = (
        [run(program, [row[i] for i in order], semantics, ranged) for row in rows] for order in orders(program.inputs)
    )
    return tuple(sorted(map(repr, found)))


@pytest.mark.parametrize("semantics", [DEFAULT, Semantics("floor", -30, 90)])
@pytest.mark.parametrize("inputs", [(INT, LIST), (LIST, LIST)])
def test_keys_are_alike_where_the_plain_interpreter_is(inputs, semantics):
    codes = np.zeros((300, 3), dtype=np.int32)
    sample(count_completions(3), np.array([kind is INT for kind in inputs]), np.array([1], dtype=np.uint64), codes)
    columns = probes(inputs, semantics)
    rows = list(zip(*columns, strict=True))
    keys = ExactBehaviours(inputs, semantics, columns).keys(codes)
    programs = [decode(inputs, row) for row in codes]
    for place, ranged in enumerate((False, True)):
        values = [behaviour(program, rows, semantics, ranged) for program in programs]
        pairs = set(zip(values, keys[:, place].tolist(), strict=True))
        assert len(pairs) == len(set(values)) == len(set(keys[:, place].tolist())) < len(codes)


SQUARES = "b <- MAP (**2) a; c <- SCANL1 (*) b; d <- SCANL1 (*) c"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (f"a <- [int]; {SQUARES}", "a <- [int]; b <- SCANL1 (*) a; c <- MAP (**2) b; d <- SCANL1 (*) c", True),
        (f"a <- [int]; {SQUARES}; e <- MAXIMUM d", f"a <- [int]; {SQUARES}; e <- LAST d", False),
        (f"a <- [int]; {SQUARES}; e <- COUNT (>0) d", f"a <- [int]; {SQUARES}; e <- COUNT (%2==1) d", False),
        ("a <- [int]; b <- [int]; c <- ZIPWITH (-) a b", "a <- [int]; b <- [int]; c <- ZIPWITH (-) b a", True),
        ("a <- int; b <- [int]; c <- TAKE a b; d <- TAKE a c", "a <- int; b <- [int]; c <- TAKE a b", False),
    ],
)
def test_beyond_64_bits_and_in_another_order(first, second, same):
    programs = parse(first), parse(second)
    exact = ExactBehaviours(programs[0].inputs, DEFAULT, probes(programs[0].inputs, DEFAULT))
    keys = [exact.keys(encode(program)[None])[0, 0] for program in programs]
    assert (keys[0] == keys[1]) == same


def alike(programs, rng):
    """Groups of programs that agree on fresh inputs: on 10, and then also on 500 more."""
    groups = [programs]
    for count in (10, 500):
        inputs = {kinds: [row(kinds, rng) for _ in range(count)] for kinds in {p.inputs for p in programs}}
        split = [defaultdict(list) for _ in groups]
        for found, group in zip(split, groups, strict=True):
            for program in group:
                found[program.inputs, program.output, behaviour(program, inputs[program.inputs])].append(program)
        groups = [group for found in split for group in found.values() if len(group) > 1]
    return groups


def row(kinds, rng):
    magnitude = 2 ** int(rng.integers(1, 9))
    lists = (rng.integers(-magnitude, magnitude + 1, rng.integers(1, 8)).tolist() for kind in kinds)
    return [int(rng.integers(-5, 9)) if kind is INT else tuple(next(lists)) for kind in kinds]


@pytest.mark.parametrize("inputs", [(INT, LIST), (LIST, LIST)])
def test_no_two_programs_of_a_corpus_do_the_same_without_regard_to_the_range(inputs):
    """To train on or to test on, on inputs in any order."""
    made = make_corpus(CorpusPlan(3, 300, 100, signatures=[inputs]), np.random.default_rng(1))
    assert alike(made.programs(), np.random.default_rng(0)) == []
