import math

import numpy as np
import pytest

from thesis_cli.privacy.embedding.means import distance, mean_of_matrix
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian
from thesis_cli.privacy.release.subspace import uniform_weights
from thesis_cli.studies.privacy import published
from thesis_cli.studies.privacy.published import (
    DELTA,
    EPSILONS,
    ROWS,
    Projection,
    algorithm_2,
    kernel,
    mixture,
    private_table,
    public_points,
)
from thesis_cli.studies.published_data import shipped


def test_the_table_is_the_published_one():
    """Mean of the kernel's matrix of the published table."""
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


@pytest.fixture(scope="module")
def projection():
    table = private_table(2)
    return Projection.of(2, public_points(2, "leak", table)[0][:60], table, jobs=2)


def test_distances_of_projection_and_baseline(projection):
    for i in 4, len(projection.numbers) - 1:
        m = projection.numbers[i]
        points, values = projection.points[:m], projection.values[:m]
        weights = np.linalg.lstsq(projection.kernel.matrix(points, points), values, rcond=1e-9)[0]
        ours = [projection.distances[i], projection.baseline[i]]
        theirs = [
            distance(projection.kernel, points, w, values, projection.squared_norm)
            for w in (weights, uniform_weights(points))
        ]
        assert ours[1] == pytest.approx(theirs[1], rel=1e-12)
        assert theirs[0] * (1 - 1e-9) <= ours[0] <= theirs[0] * (1 + 1e-2)  # the basis leaves some points out


def test_released_distances_are_those_of_released_weights(projection):
    scales = np.array([1e-2, 1e-4])
    released = projection.released(scales, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for i, m in enumerate(projection.numbers):
        for e, scale in enumerate(scales):
            found = projection.constrained(m, scale, "raw", rng)
            assert released[e, i] == pytest.approx(found, rel=1e-8)


def test_weights_on_the_simplex_are_nearer(projection):
    def mean(constraint):
        rngs = map(np.random.default_rng, range(10))
        return np.mean([projection.constrained(60, 0.02, constraint, rng) for rng in rngs])

    assert mean("simplex") < 0.7 * mean("raw")


def test_scales_of_the_noise(projection):
    published, today = projection.scales("published"), projection.scales("today")
    np.testing.assert_allclose(published, np.sqrt(8 * np.log(1.25 / DELTA)) / (ROWS * np.array(EPSILONS)), rtol=1e-15)
    sensitivity = projection.basis.l2_sensitivity(projection.kernel, projection.points, ROWS)
    size = len(projection.coordinates)
    for epsilon, scale in zip(EPSILONS, today, strict=True):
        assert scale == OpenDPGaussian().calibrate(size, sensitivity, Budget(epsilon, DELTA)).scale
    assert (today < 0.65 * published).all()


def test_rows_of_algorithm_2():
    """Excess squared distances come from the same draws of noise, in the ratio of the scales."""
    found = algorithm_2(2, "random", np.random.SeedSequence(1), 40, 2, [10, 37])
    assert len(found) == len(set(found)) == len({row[:5] for row in found})
    distances = {row[:5]: row[5] for row in found}
    table = private_table(2)
    points, stream = public_points(2, "random")
    projection = Projection.of(2, points[:40], table)
    numbers, scales = projection.numbers, [projection.scales(setting) for setting in ("published", "today")]
    run = projection.released(scales[0], stream)
    for i, m in enumerate(numbers):
        squared = projection.distances[i] ** 2
        assert distances["baseline", "none", math.nan, 0, m] == projection.baseline[i]
        for e, epsilon in enumerate(EPSILONS):
            assert distances["Algorithm 2", "run", epsilon, 0, m] == run[e, i]
            excess = [distances["Algorithm 2", noise, epsilon, 1, m] ** 2 - squared for noise in ("published", "today")]
            assert excess[1] * scales[0][e] ** 2 == pytest.approx(excess[0] * scales[1][e] ** 2, rel=1e-3, abs=1e-20)
    on_simplex = [distances["simplex", "today", 0.01, draw, 37] for draw in (0, 1)]
    assert on_simplex[0] != on_simplex[1]
    assert len(found) == len(numbers) * (2 + 3 * (1 + 2 * 2)) + 3 * 2 * 2


def test_embedding_of_the_mixture():
    """Compared with samples, whose squared distance is (1 - |mu|^2) / n on average."""
    found, k, rng = mixture(2), RowKernel(np.array([5e-5, 1e-4]), np.zeros(0)), np.random.default_rng(2)
    n, samples = 20_000, 200
    sample, points = found.draw(n, rng), Rows.of_reals(rng.normal(100, 200, (20, 2)))
    each = k.matrix(points, sample)
    assert (abs(found.embedding(k, points) - each.mean(1)) < 5 * each.std(1) / n**0.5).all()
    norm, rows = found.squared_norm(k), 100
    squared = []
    for _ in range(samples):
        sample = found.draw(rows, rng)
        squared.append(k.matrix(sample, sample).mean() - 2 * found.embedding(k, sample).mean() + norm)
    error = np.std(squared) / samples**0.5
    assert error < 0.1 * np.mean(squared)
    assert abs(np.mean(squared) - (1 - norm) / rows) < 5 * error


@pytest.mark.parametrize(("dimension", "most"), [(2, 400), (5, 200)])
def test_published_distances(dimension, most):
    """Figure 4.1 at D = 2 and Figure 4.2 at D = 5, with the noise of the published run."""
    (theirs,) = (e for e in shipped("fig-4") if (e["algorithm"], e["dimension"]) == (2, dimension))
    table = private_table(dimension)
    points, rng = public_points(dimension, theirs["points"], table)
    found = Projection.of(dimension, points[:most], table, jobs=2)
    numbers = [number for number in theirs["numbers"] if number <= most]
    places = [found.numbers.index(number) for number in numbers]
    np.testing.assert_allclose(found.distances[places], theirs["projection"][: len(numbers)], rtol=1e-5)
    np.testing.assert_allclose(found.baseline[places], theirs["baseline"][: len(numbers)], rtol=1e-9)
    for ours, released in zip(found.released(found.scales("published"), rng), theirs["released"], strict=True):
        np.testing.assert_allclose(ours[places], released[: len(numbers)], rtol=1e-6)
