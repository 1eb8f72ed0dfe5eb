"""Both sides of the statements of chapter 4, against sums over all pairs of rows."""

import math

import numpy as np
import pytest

from thesis_cli.privacy.mechanisms.mechanism import Budget, classical_scale, gaussian_delta
from thesis_cli.studies.privacy import bounds
from thesis_cli.studies.privacy.bounds import COUNT, POINTS, random_table


def sides(found):
    return {side.statement: side for side in found}


def length(kernel, rows, weights):
    """RKHS norm of a weighted sum of rows, in one sum over pairs."""
    return math.sqrt(max(0.0, weights @ kernel.matrix(rows, rows) @ weights))


def test_the_embeddings_of_neighbours_are_as_far_apart_as_their_rows() -> None:
    kernel, table, other, _ = random_table(2, np.random.default_rng(3))
    found = sides(bounds.subspace_sides(2, np.random.default_rng(3)))
    apart = math.sqrt(2 - 2 * kernel.matrix(table[-1:], other[-1:])[0, 0]) / COUNT
    assert found["Lemma 6"].left == pytest.approx(apart, rel=1e-9)
    assert found["Lemma 6"].right == 2 / COUNT
    assert found["eq. C.20"].left <= apart


def test_uniform_weights_of_public_rows_are_the_baseline() -> None:
    kernel, table, _, _ = random_table(1, np.random.default_rng(4))
    found = sides(bounds.subspace_sides(1, np.random.default_rng(4)))
    weights = np.full(COUNT, -1 / COUNT)
    weights[:POINTS] += 1 / POINTS
    assert found["eq. C.17"].right == pytest.approx(length(kernel, table, weights), rel=1e-6)


def test_the_random_features_error_vanishes_with_many_features() -> None:
    """Both of its sides are those of the same table: with more features the inner products are better."""
    few, many = (sides(bounds.feature_sides(2, count, np.random.default_rng(5)))["Lemma 7"] for count in (4, 4000))
    assert many.right < few.right / 3


def test_opposite_features_need_all_of_the_noise() -> None:
    for epsilon in (0.1, 10.0):
        found = sides(bounds.privacy_sides(2, epsilon, np.random.default_rng(6)))["Proposition 14"]
        apart = (2 / COUNT) / classical_scale(2 / COUNT, Budget(epsilon, bounds.DELTA))
        assert found.left == pytest.approx(gaussian_delta(apart, epsilon) / bounds.DELTA, rel=1e-9)


def test_printed_features_are_longer_than_one() -> None:
    assert bounds.printed_norm(2, 1000, np.random.default_rng(7))[0].left > 1


def test_the_mechanism_moves_if_the_tables_differ() -> None:
    found = [bounds.exponential_sides(np.random.default_rng(seed))[0] for seed in range(5)]
    assert 0 < max(side.left for side in found) <= found[0].right
