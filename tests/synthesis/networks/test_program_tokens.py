"""Tokens of lines."""

from __future__ import annotations

import numpy as np
import pytest

from thesis_cli.synthesis.language.dsl import DEEPCODER, INT, LIST, OPERATIONS
from thesis_cli.synthesis.networks.program_decoder import slots, table, tokens, tokens_of, typed
from thesis_cli.synthesis.training.corpora import held_out


@pytest.mark.parametrize("lines", [1, 3])
def test_each_operation_with_its_slots_has_a_token_of_its_own(lines: int) -> None:
    places = 2 + lines
    found = table(lines)
    assert sorted(found[found >= 0]) == list(range(tokens(lines)))
    for operation, rows in zip(DEEPCODER.operations, found, strict=True):
        assert np.count_nonzero(rows >= 0) == places ** len(operation.inputs)
        assert (np.diag(rows) >= 0).all()


def test_slots_count_inputs_from_the_first_and_results_from_the_line() -> None:
    assert slots((LIST, INT, LIST), 0).tolist() == [1, 0, 2]  # numbers come first
    assert slots((LIST,), 3).tolist() == [0, 5, 4, 3]


@pytest.mark.parametrize("lines", [3, 4])
def test_tokens_of_a_corpus_are_those_of_its_lines_and_fit_their_types(lines: int) -> None:
    corpus = held_out(3, 40)
    found, fits = tokens_of(corpus, lines), typed(corpus, lines)
    for row, program in enumerate(corpus.programs()):
        for number, line in enumerate(program.lines):
            slot = slots(program.inputs, number)
            x, y = slot[line.arguments[0]], slot[line.arguments[-1]]
            assert found[row, number] == table(lines)[line.operation, x, y]
            assert fits[row, number, found[row, number]]
            kinds = {int(place): program.types[variable] for variable, place in enumerate(slot)}
            for id, one, two in np.argwhere(table(lines) >= 0):
                expected = tuple(map(kinds.get, (one, two)[: len(OPERATIONS[id].inputs)])) == OPERATIONS[id].inputs
                assert fits[row, number, table(lines)[id, one, two]] == expected
        if row == 1:
            break


def test_a_shorter_program_has_no_token_after_its_last_line() -> None:
    corpus = held_out()
    chosen = np.flatnonzero((corpus.lengths == 1) & corpus.test)
    found = tokens_of(corpus.subset(chosen), corpus.codes.shape[1])
    assert (found[:, 0] >= 0).all()
    assert (found[:, 1:] == -1).all()
