"""Shares of a corpus against its programs and tasks, one by one."""

import numpy as np
import pytest

from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.corpus.shares import effective_size, shares_of
from thesis_cli.synthesis.language.dsl import DEEPCODER, FUNCTIONS, LAMBDAS


def test_shares_are_those_of_the_programs_and_tasks():
    made = make_corpus(CorpusPlan(2, 150, shorter=True, balance=("function",)), np.random.default_rng(1))
    plain, weighted = shares_of(made)

    def check(kind, name, found):
        assert plain[kind][name] == pytest.approx(np.mean(found))
        assert weighted[kind][name] == pytest.approx(np.average(found, weights=made.weights))

    programs = made.programs()
    texts = [program.one_line for program in programs]
    for kind, parts in (("function", FUNCTIONS[: DEEPCODER.functions]), ("lambda", LAMBDAS[: DEEPCODER.lambdas])):
        for part in parts:
            check(kind, part.name, [part.name in text.replace(";", " ").split() for text in texts])
    for name in ("int", "[int]"):
        check("output", name, [program.output == name for program in programs])
    for length in (1, 2):
        check("length", f"{length} lines", [len(program) == length for program in programs])
    outputs = [[example.output for example in made.task(row).examples] for row in range(len(made))]
    check("examples", "empty output", [() in row for row in outputs])
    check("examples", "repeated output", [len(set(row)) < 5 for row in outputs])
    twice = [any(len(line.arguments) == 2 and len(set(line.arguments)) == 1 for line in p.lines) for p in programs]
    check("lines", "equal arguments", twice)


def test_the_effective_size():
    assert effective_size(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 0, 0])) == 1
