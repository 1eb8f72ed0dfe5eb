"""Reduced expansions and their measured errors."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings import reductions
from thesis_cli.embeddings.expansion import Expansion, push_forward
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.embeddings.reductions import METHODS, GaussCells, reduce

X = np.random.default_rng(0).normal(size=40)
GIVEN = push_forward(np.multiply, Expansion(X), Expansion(X + 0.5))

GAUSSIAN = Gaussian(0.7)


def reduced(method, size=30, kernel=GAUSSIAN, given=GIVEN):
    return reduce(given, size, method, kernel, np.random.default_rng(1))


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplace(0.7)])
@pytest.mark.parametrize("method", METHODS)
def test_errors_are_measured(method, kernel):
    found = reduced(method, kernel=kernel)
    assert len(found.expansion) <= 30
    weights = np.concatenate([GIVEN.weights, -found.expansion.weights])
    points = np.concatenate([GIVEN.points, found.expansion.points])
    squared = weights @ kernel.matrix(points, points) @ weights
    assert found.rkhs_error**2 == pytest.approx(squared, abs=1e-13)
    if found.wasserstein is None:
        assert method == "nystrom"
    else:
        given, small = GIVEN, found.expansion
        wanted = wasserstein_distance(given.points[:, 0], small.points[:, 0], given.weights, small.weights)
        assert found.wasserstein == pytest.approx(wanted)


def test_what_each_reduction_gains():
    """Each method is nearer than the one it improves on, by the distance that it makes small."""
    found = {method: reduced(method) for method in METHODS}
    error = {method: found[method].rkhs_error for method in METHODS}
    assert error["quantiles"] < error["random"] / 3
    assert error["herding"] < error["random"] / 3
    assert error["atoms"] < error["quantiles"] / 2
    assert error["frank-wolfe"] < error["herding"] / 5
    assert error["nystrom"] < error["herding"] / 100
    assert found["quantiles"].wasserstein < min(found[m].wasserstein for m in ("random", "herding", "frank-wolfe"))


@pytest.mark.parametrize("method", METHODS)
def test_fewer_points_than_the_size_stay(method):
    given = Expansion(np.array([2.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]))
    found = reduced(method, size=2, given=given)
    assert found.expansion.points[:, 0].tolist() == [1, 2]
    assert found.expansion.weights.tolist() == [0.5, 0.5]
    assert (found.rkhs_error, found.wasserstein) == (0, 0)


@pytest.mark.parametrize("method", METHODS)
def test_totals_are_kept(method):
    """Weights of total 3; the projection of `nystrom` keeps no total, but nearly."""
    given = Expansion(GIVEN.points, 3 * GIVEN.weights)
    assert reduced(method, given=given).expansion.total == pytest.approx(3, abs=0.02 if method == "nystrom" else 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_larger_weights_have_the_same_points(method):
    """A factor of 4 rounds nothing."""
    one, four = (reduced(method, given=Expansion(GIVEN.points, c * GIVEN.weights)).expansion for c in (1, 4))
    np.testing.assert_array_equal(four.points, one.points)
    np.testing.assert_array_equal(four.weights, 4 * one.weights)


def test_steps_never_take_weight_from_a_point(monkeypatch):
    """Nor from the last ones that are left, though the best step would go away from them."""
    monkeypatch.setattr(reductions, "REFIT", 0)
    given = Expansion(X, np.random.default_rng(0).dirichlet(np.ones(40)))
    found = reduced("frank-wolfe", 39, given=given).expansion
    assert len(found) == 39
    assert found.total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("method", ["random", "nystrom"])
def test_signed_weights(method):
    given = Expansion(GIVEN.points, GIVEN.weights - 2 / len(GIVEN) * (GIVEN.points[:, 0] > 0))
    found = reduced(method, given=given)
    assert (found.expansion.weights < 0).any()
    assert found.wasserstein is None
    for other in ("quantiles", "atoms"):
        with pytest.raises(InputError, match="negative weights"):
            reduced(other, given=given)


def test_several_coordinates():
    points = np.random.default_rng(2).normal(size=(300, 2))
    for method in ("random", "herding", "frank-wolfe", "nystrom"):
        found = reduced(method, given=Expansion(points))
        assert found.wasserstein is None
        assert found.rkhs_error < 0.25
    for method in ("quantiles", "atoms"):
        with pytest.raises(InputError, match="2 coordinates"):
            reduced(method, given=Expansion(points))


def test_refusals():
    with pytest.raises(InputError, match="'herding' is nearest"):
        reduced("herdin")
    with pytest.raises(InputError, match="size is 0"):
        reduced("random", size=0)
    nothing = Expansion(np.arange(50.0), np.zeros(50))
    with pytest.raises(InputError, match="are 0"):
        reduced("random", given=nothing)
    with pytest.raises(InputError, match="sum to 0"):
        reduced("herding", given=nothing)


@pytest.mark.parametrize("size", [2, 20, 200])
def test_gauss_quadratures_of_parts_keep_moments_and_bound_their_error(size):
    """Of a heavy tail, a law with atoms, and a normal sample."""
    rng = np.random.default_rng(0)
    for x in (rng.standard_cauchy(500), rng.integers(0, 5, 500).astype(float), rng.normal(size=500)):
        given = Expansion(x, rng.dirichlet(np.ones(500))).merged()
        found = GaussCells.of(given, size // 2)
        small = found.expansion
        assert len(small) <= size
        assert small.is_distribution()
        assert given.points.min() <= small.points.min() <= small.points.max() <= given.points.max()
        assert small.mean() == pytest.approx(given.mean(), abs=1e-12 * np.abs(x).max())
        assert small.var() == pytest.approx(given.var(), rel=1e-10)
        for width in (0.1, 1.0):
            assert Gaussian(width).distance(given, small) <= found.rkhs_error(width) + 1e-7
    assert found.rkhs_error(1.0) < 50 * size**-2.0
