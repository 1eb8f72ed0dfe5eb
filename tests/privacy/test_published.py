import json

import numpy as np
import pytest

from tests.conftest import ROOT
from thesis_cli.privacy import published
from thesis_cli.privacy.embedding import mean_of_matrix
from thesis_cli.privacy.published import algorithm_2, kernel, numbers_of_points, private_table, public_points

REFERENCE = ROOT.parent / "shared" / "reference" / "fig_4"


def curves_of(name):
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return json.loads(path.read_text())


def test_the_table_is_the_published_one():
    """Its mean of the kernel's matrix."""
    table = private_table(2)
    assert table.reals.shape == (published.ROWS, 2)
    assert mean_of_matrix(kernel(2), table) == pytest.approx(published.MEAN_OF_MATRIX[2], rel=0, abs=1e-15)


def test_rows_are_drawn_one_by_one():
    rng = np.random.RandomState(0)
    centres = rng.normal(100 * np.ones(5), 200, size=(10, 5))
    weights = np.array([1 / n for n in range(1, 11)])
    members = rng.choice(range(10), size=100_000, p=weights / weights.sum())
    rows = [rng.normal(centres[member], 30) for member in members[:100]]
    np.testing.assert_allclose(private_table(5).reals[:100], rows, rtol=0, atol=1e-12)


def test_the_noise_follows_the_points():
    points, rng = public_points(2, "random")
    stream = np.random.RandomState(0).standard_normal(20_003)
    np.testing.assert_array_equal(points.reals.ravel(), 500 * stream[:20_000])
    np.testing.assert_array_equal(rng.standard_normal(3), stream[20_000:])
    points, rng = public_points(2, "leak")
    assert len(points) == 10_000
    np.testing.assert_array_equal(rng.standard_normal(3), stream[:3])


@pytest.mark.parametrize(
    ("name", "dimension", "kind", "most"),
    [("D2_alg1_leak_M10000", 2, "leak", 400), ("D5_alg1_random_M10000", 5, "random", 200)],
)
def test_published_distances(name, dimension, kind, most):
    reference = curves_of(f"{name}.json")
    assert list(numbers_of_points()) == reference["Ns_public"]
    found = algorithm_2(dimension, kind, most, jobs=2)
    n = len(found.points)
    assert list(found.points) == reference["Ns_public"][:n]
    np.testing.assert_allclose(found.projection, reference["dists_proj"][:n], rtol=1e-5)
    np.testing.assert_allclose(found.baseline, reference["dists_base"][:n], rtol=1e-9)
    for ours, theirs in zip(found.released, reference["dists_alg1"], strict=True):
        np.testing.assert_allclose(ours, theirs[:n], rtol=1e-6)
