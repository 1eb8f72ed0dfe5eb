"""Properties decoded from embeddings that have them, and from noise."""

import numpy as np
import pytest

from thesis_cli.studies.synthesis.integer_embedding import DECODERS, decoded

X = np.arange(-100, 101)


@pytest.mark.parametrize("decoder", DECODERS)
def test_integers_that_are_left_out_do_not_decode_themselves(decoder):
    points = np.random.default_rng(0).normal(size=(len(X), 2))
    found = decoded(points, X, decoder, 100, np.random.default_rng(0))
    assert abs(found.score) < 5 / np.sqrt(len(X) - 1)
    assert 0.5 < found.spread * np.sqrt(len(X) - 1) < 2


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_is_in_an_embedding_is_decoded_and_what_is_not_is_chance(decoder):
    rng = np.random.default_rng(0)
    points = np.column_stack([np.abs(X) / 100, (X % 2 == 0) + 0.1 * rng.normal(size=len(X))])
    for values, there in ((X % 2 == 0, True), (np.abs(X), True), (X > 0, False), (rng.permutation(X), False)):
        found = decoded(points, values, decoder, 200, rng)
        if there:
            assert found.score > 0.95
            assert found.score > found.chance + 5 * found.spread
        else:
            assert abs(found.score - found.chance) < 5 * found.spread
