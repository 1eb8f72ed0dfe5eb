"""Inner products, norms and distances of expansions, against sums over all pairs."""

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Laplace, median_distance

KERNELS = [Gaussian(0.7), Laplace(0.7)]


def directly(kernel, a, b):
    def value(x, y):
        t = abs(x - y) / kernel.bandwidth
        return np.exp(-(t**2) / 2) if isinstance(kernel, Gaussian) else np.exp(-t)

    return sum(p * q * value(x, y) for x, p in zip(*a, strict=True) for y, q in zip(*b, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_are_those_over_all_points(kernel):
    """Points near and far, far from 0, equal, at the ends of the range of numbers, and of any sign of weight."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=60), 100 * rng.standard_cauchy(60), 1e12 + rng.normal(size=20), [0.5, 0.5]])
    x, w = np.append(x, [1.7e308, -1.7e308]), rng.normal(size=len(x) + 2)
    places = np.concatenate([x, rng.normal(size=40) * 5, 1e12 + rng.normal(size=5), [1e308]])
    found, _ = kernel.prepared(Expansion(x, w)).at(places)
    with np.errstate(over="ignore"):
        wanted = [directly(kernel, (x, w), ([y], [1.0])) for y in places]
    assert np.abs(found - wanted).max() < 2e-15 * np.abs(w).sum()


def test_places_between_groups_of_points_meet_both():
    """Fourteen bandwidths apart, and places from the middle, where both count alike, outwards."""
    points, places = np.array([0.0, 14.0]), np.linspace(-9, 23, 65)
    wanted = np.exp(-0.5 * np.subtract.outer(places, points) ** 2) @ [1.0, 2.0]
    found = Gaussian(1.0).values(Expansion(points, np.array([1.0, 2.0])), places[:, np.newaxis])
    assert found == pytest.approx(wanted, rel=1e-3, abs=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_are_differences(kernel):
    rng = np.random.default_rng(2)
    sums = kernel.prepared(Expansion(rng.normal(size=30), rng.normal(size=30)))
    places, step = rng.normal(size=50) * 3, 1e-6
    differences = (sums.at(places + step)[0] - sums.at(places - step)[0]) / (2 * step)
    assert sums.at(places)[1] == pytest.approx(differences, abs=1e-7)
    alone = kernel.prepared(Expansion(np.array([2.0]), np.array([3.0])))
    assert alone.at(np.array([2.0]))[1] == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dimension", [1, 2])
def test_norms_and_distances(kernel, dimension):
    rng = np.random.default_rng(3)
    a, b = (Expansion(rng.normal(size=(n, dimension)), rng.normal(size=n)) for n in (7, 5))
    parts = {
        (p, q): u.weights @ kernel.matrix(u.points, v.points) @ v.weights
        for p, u in (("a", a), ("b", b))
        for q, v in (("a", a), ("b", b))
    }
    assert kernel.inner(a, b) == pytest.approx(parts["a", "b"], abs=1e-14)
    assert kernel.norm(a) ** 2 == pytest.approx(parts["a", "a"])
    assert kernel.distance(a, b) ** 2 == pytest.approx(parts["a", "a"] - 2 * parts["a", "b"] + parts["b", "b"])
    assert kernel.distance(a, a) == 0


def test_points_shared_by_two_expansions_cancel():
    """Where the points are equal, the distance is as accurate as the weights."""
    x = np.linspace(0, 1, 50)
    w = np.full(50, 1 / 50)
    moved = w.copy()
    moved[[0, 49]] += [1e-12, -1e-12]
    apart = np.sqrt(2 - 2 * np.exp(-0.5))
    assert Gaussian(1.0).distance(Expansion(x, w), Expansion(x, moved)) == pytest.approx(1e-12 * apart, rel=1e-4)


def test_the_median_distance_is_that_of_all_pairs():
    x = np.random.default_rng(4).normal(size=40)
    pairs = np.abs(np.subtract.outer(x, x))[np.triu_indices(40, 1)]
    assert median_distance(Expansion(x)) == pytest.approx(np.median(pairs))
    assert median_distance(Expansion(np.array([3.0]))) == 1
    assert median_distance(Expansion(np.array([3.0, 3.0, 3.0, 3.0, 5.0]))) > 0


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_is_a_finite_number_above_0(bandwidth):
    with pytest.raises(InputError, match="bandwidth"):
        Laplace(bandwidth)
