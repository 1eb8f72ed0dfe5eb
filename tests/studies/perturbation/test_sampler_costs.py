import numpy as np
import pytest

from thesis_cli.models.targets import published_regression
from thesis_cli.studies.perturbation.sampler_costs import STREAMS, Capped, by_doubling, costs


def test_by_doubling_averages_ranges():
    table = np.tile(np.arange(1, 8), (STREAMS, 1))
    first, mean, error = by_doubling(table)
    assert first.tolist() == [1, 2, 4]
    assert mean.tolist() == [1, 2.5, 5.5]
    assert error == pytest.approx([0, 0, 0])


def test_capped_target_has_one_bound():
    target, points = published_regression(), np.linspace(-6, 4, 1001)[:, np.newaxis]
    capped = Capped(target, points)
    low, high = np.array([0.0]), np.array([0.1])
    assert capped.bound(low, high) == capped.most
    assert capped.log_ratio(points[500]) == target.log_ratio(points[500]) <= capped.most


def test_costs_have_a_row_for_each_stream():
    found = costs(published_regression(), "os-star", 3, np.random.SeedSequence(0))
    assert found.evaluations.shape == found.bounds.shape == (STREAMS, 3)
    assert (found.evaluations >= 1).all()
