"""Digital nets: how evenly they fill the cube, and that scrambling is uniform."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from thesis_cli.semantics.nets import Net


def points(count, dimensions, seed):
    net = Net(count, np.random.default_rng(seed))
    return np.stack([net.column() for _ in range(dimensions)], axis=-1)


@pytest.mark.parametrize("count", [1, 2, 256])
def test_each_coordinate_has_one_point_in_each_part(count):
    """Also beyond those that have direction numbers."""
    found = points(count, 40, 0)
    assert ((found > 0) & (found < 1)).all()
    assert (np.sort(np.floor(found * count), axis=0) == np.arange(count)[:, np.newaxis]).all()


def test_counts_that_are_no_powers_of_two_begin_the_same_net():
    assert points(100, 5, 3).shape == (100, 5)
    assert (np.sort(np.floor(points(96, 5, 3)[:64] * 64), axis=0) == np.arange(64)[:, np.newaxis]).all()


@pytest.mark.parametrize("dimensions", [2, 3, 5, 8])
def test_they_are_as_even_as_those_of_scipy(dimensions):
    """Discrepancies of ten nets of each; those of independent points are many times larger."""
    ours = np.mean([qmc.discrepancy(points(256, dimensions, seed)) for seed in range(10)])
    peer = np.mean([qmc.discrepancy(qmc.Sobol(dimensions, seed=seed).random(256)) for seed in range(10)])
    plain = np.mean([qmc.discrepancy(np.random.default_rng(seed).random((256, dimensions))) for seed in range(10)])
    assert ours < 1.5 * peer
    assert ours < plain / 3


def test_pairs_of_coordinates_are_even():
    """Of 2^m points, each of the rectangles of sides 2^-a and 2^-b has its share, as far as a + b is m - 4 or less."""
    found, m = points(2**10, 12, 1), 10
    for j in range(12):
        for i in range(j):
            for a in range(1, m - 4):
                b = m - 4 - a
                cells = np.floor(found[:, i] * 2**a) * 2**b + np.floor(found[:, j] * 2**b)
                assert (np.bincount(cells.astype(int), minlength=2 ** (m - 4)) == 2**4).all()


def test_means_are_unbiased_and_errors_fall_fast():
    """The mean of a smooth function over 200 nets is within five standard errors, and 64 times more points have an
    error that is far less than an eighth.
    """
    spread = []
    for count in (64, 4096):
        found = np.array([np.exp(points(count, 3, seed) @ [1, -2, 0.5]).mean() for seed in range(200)])
        exact = (np.e - 1) * (1 - np.exp(-2)) / 2 * 2 * (np.exp(0.5) - 1)
        assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(200)
        spread.append(found.std())
    assert spread[1] < spread[0] / 64
