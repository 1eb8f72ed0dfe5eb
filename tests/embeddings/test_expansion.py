"""Expansions, their statistics and functions of them."""

import numpy as np
import pytest

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.embeddings.expansion import Expansion, push_forward, wasserstein


def test_statistics():
    e = Expansion(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.25]))
    assert e.mean() == 2
    assert e.var() == pytest.approx(0.5 + 1)
    assert (e.quantile(0.5), e.quantile(0.51), e.quantile(1)) == (1, 2, 4)
    assert e.probability(e.points[:, 0] > 1) == 0.5
    assert e.is_distribution()


@pytest.mark.parametrize("size", [200, 300, 700])
def test_a_share_that_is_q_but_for_rounding_is_enough(size):
    e = Expansion(np.arange(1.0, size + 1))
    assert [e.quantile(k / 10) for k in range(1, 11)] == [k * size / 10 for k in range(1, 11)]


def test_negative_weights_count_in_means_and_not_in_quantiles():
    """As in queries of private releases."""
    e = Expansion(np.array([1.0, 2.0, 3.0]), np.array([0.75, 0.75, -0.5]))
    assert e.mean() == 0.75
    assert e.total_variation == 2
    assert e.quantile(1) == 2
    assert e.var() == 0.25
    assert not e.is_distribution()
    with pytest.raises(InputError, match="no weight"):
        Expansion(np.array([1.0]), np.array([-1.0])).distribution()


def test_functions_of_independent_variables_take_all_pairs():
    x, y = Expansion(np.array([1.0, 2.0])), Expansion(np.array([3.0, 5.0]), np.array([0.2, 0.8]))
    e = push_forward(lambda a, b: a * b, x, y)
    assert sorted(zip(e.points[:, 0], e.weights, strict=True)) == [(3, 0.1), (5, 0.4), (6, 0.1), (10, 0.4)]
    assert len(push_forward(lambda a, b: 7.0, x, y).merged()) == 1
    assert x.map(np.square).points[:, 0].tolist() == [1, 4]


def test_merging_sorts_and_adds():
    for points in (np.array([3.0, 1.0, 3.0]), np.array([[3.0, 0], [1, 1], [3, 0]])):
        e = Expansion(points, np.array([1.0, 2.0, 4.0])).merged()
        assert e.weights.tolist() == [2, 5]
        assert e.points[:, 0].tolist() == [1, 3]
    assert Expansion(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0])).merged().weights.tolist() == [2, 4, 1]


def test_the_wasserstein_distance_of_moved_mass():
    a, b = Expansion(np.array([0.0, 1.0])), Expansion(np.array([5.0, 1.0]), np.array([0.5, 0.5]))
    assert wasserstein(a, b) == pytest.approx(2.5)
    assert wasserstein(a, Expansion(np.array([0.0]), np.array([2.0]))) is None
    assert wasserstein(a, Expansion(np.array([0.0, 1.0]), np.array([-1.0, 2.0]))) is None


@pytest.mark.parametrize(
    ("points", "weights", "words"),
    [
        (np.zeros(0), np.zeros(0), "shape"),
        (np.zeros((2, 0)), np.zeros(2), "shape"),
        (np.zeros((2, 2, 2)), np.zeros(2), "shape"),
        (np.zeros(2), np.zeros(3), "weights of shape"),
        (np.array([np.nan]), np.ones(1), "points are not finite"),
        (np.ones(1), np.array([np.inf]), "weights are not finite"),
    ],
)
def test_refusals(points, weights, words):
    with pytest.raises(InputError, match=words):
        Expansion(points, weights)


def test_too_many_combinations_are_refused_before_memory_is_taken():
    e = Expansion(np.zeros(10_000))
    with pytest.raises(ModelTooLarge, match="100,000,000"):
        push_forward(np.add, e, e)
