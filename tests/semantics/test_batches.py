"""Choosing points of many environments at once."""

from __future__ import annotations

import numpy as np
import pytest

from thesis_cli.semantics.batches import Batch, chosen, combined, strata


def test_shares_choose_points_by_weight_in_each_world():
    batch = Batch(np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]]), np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]))
    points, factors = chosen(batch, np.array([[0.1, 0.49, 0.51, 0.95], [0.05, 0.35, 0.45, 0.99]]))
    assert points.tolist() == [[1, 1, 2, 3], [4, 5, 6, 6]]
    assert factors == pytest.approx(1)


def test_signs_and_sums_of_weights_are_kept():
    """A mean over chosen points estimates the sum over all points."""
    batch = Batch(np.array([[0.0, 1.0, 2.0]]), np.array([[0.5, -0.25, 0.75]]))
    shares = (np.arange(6000)[np.newaxis] + 0.5) / 6000
    points, factors = chosen(batch, shares)
    assert (factors * points**2).mean() == pytest.approx(2.75, abs=1e-3)
    assert factors.mean() == pytest.approx(1)


def test_strata_are_even_in_rows_and_columns():
    found = strata(50, 8, np.random.default_rng(0))
    assert (np.sort(np.floor(found * 8), axis=1) == np.arange(8)).all()
    places = np.sort((found * 8) % 1, axis=0)
    assert found.shape == (50, 8)
    assert abs(places.mean() - 0.5) < 0.05


def test_a_sample_of_combinations_is_even_in_each_argument():
    """In one environment, each of the points of equal weight is chosen as often."""
    rng = np.random.default_rng(0)
    parts = [Batch(rng.normal(size=(1, 40)), np.full((1, 40), 1 / 40)) for _ in range(2)]
    full = combined(parts, 1600, rng)
    assert not full.sampled
    assert np.unique(np.stack([c[0] for c in full.columns]), axis=1).shape == (2, 1600)
    some = combined(parts, 400, rng)
    assert some.sampled
    for column in some.columns:
        assert np.unique(column, return_counts=True)[1].tolist() == [10] * 40
    x, y = (column[0] - column.mean() for column in some.columns)
    assert abs((x * y).mean()) < 5 * x.std() * y.std() / 20
