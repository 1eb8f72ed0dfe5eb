"""Held-out programs and programs to train on."""

import numpy as np
import pytest

from thesis_cli.studies.synthesis.held_out import made, shown
from thesis_cli.synthesis.corpus.behaviours import probes
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus
from thesis_cli.synthesis.corpus.exact_behaviours import ExactBehaviours
from thesis_cli.synthesis.language.dsl import DEFAULT, MOST_INPUTS
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.language.task import check
from thesis_cli.synthesis.training.corpora import EXAMPLES, TESTED, held_out, training_corpus


def behaviours(corpus: Corpus) -> set[tuple[object, ...]]:
    """What the programs do: their types and both keys."""
    found = set()
    for inputs in SIGNATURES:
        types = [*map(TYPES.index, inputs), *[0] * (MOST_INPUTS - len(inputs))]
        rows = (corpus.types[:, :MOST_INPUTS] == types).all(axis=1)
        exact = ExactBehaviours(inputs, DEFAULT, probes(inputs, DEFAULT))
        for length in np.unique(corpus.lengths[rows]):
            codes = np.ascontiguousarray(corpus.codes[rows & (corpus.lengths == length), :length])
            found |= {(inputs, place, key) for keys in exact.keys(codes).tolist() for place, key in enumerate(keys)}
    return found


def test_held_out_programs_differ_and_fit_their_examples() -> None:
    corpus = held_out()
    assert {length: len(held_out(length)) for length in TESTED} == TESTED
    assert len(behaviours(corpus)) == 2 * len(corpus)
    for row in range(0, len(corpus), 50):
        task = corpus.task(row)
        assert len(task.examples) == EXAMPLES
        assert check(corpus.program(row), task)
    tens = corpus.subset(~corpus.test)
    assert behaviours(tens) == behaviours(shown())
    assert tens.labelled() == shown().labelled()


@pytest.mark.parametrize("length", [1, 2])
def test_programs_to_train_on_differ_from_held_out_ones(length: int) -> None:
    corpus = training_corpus(length, examples=EXAMPLES)
    assert set(corpus.lengths) == {length}
    assert not behaviours(corpus) & behaviours(held_out())
    assert not corpus.test.any()
    if length == 1:
        assert corpus.attributes.any(axis=0).all()
        assert len(corpus) + len(held_out(1)) == 39


@pytest.mark.long
def test_the_held_out_programs_can_be_made_again() -> None:
    corpus, again = held_out(), made()
    for name in ("codes", "types", "numbers", "test"):
        assert np.array_equal(getattr(corpus, name), getattr(again, name)), name
