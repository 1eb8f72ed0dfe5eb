import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, Calibration, Noised
from thesis_cli.studies.privacy.evaluation import (
    GaussianMixture,
    Ranges,
    histogram_release,
    project_to_simplex,
    random_ranges,
    squared_distance,
)

KERNEL = RowKernel(np.array([2.0, 5.0]), np.array([0.3, 0.6]))
CARDINALITIES = 2, 4


def table(seed, size):
    rng = np.random.default_rng(seed)
    return Rows(rng.random((size, 2)), rng.integers(0, CARDINALITIES, (size, 2)))


def equal(rows):
    return np.full(len(rows), 1 / len(rows))


def test_ranges_are_answered_row_by_row():
    rows, other = table(7, 100), table(8, 40)
    weights = np.random.default_rng(9).dirichlet(np.ones(40))
    ranges = random_ranges(rows, CARDINALITIES, np.random.default_rng(10), 60)
    for of, w in ((rows, equal(rows)), (other, weights)):
        expected = [
            sum(
                w[n]
                for n in range(len(of))
                if (ranges.low[q] <= of.reals[n]).all()
                and (of.reals[n] <= ranges.high[q]).all()
                and all(levels[q, code] for levels, code in zip(ranges.levels, of.codes[n], strict=True))
            )
            for q in range(60)
        ]
        np.testing.assert_allclose(ranges.shares(of, w), expected, atol=1e-12)


def test_random_ranges_restrict_three_columns_by_values_and_levels():
    rows = table(11, 30)
    ranges = random_ranges(rows, CARDINALITIES, np.random.default_rng(12), 500)
    restricted = np.isfinite(ranges.low).sum(1) + sum((~levels.all(1)).astype(int) for levels in ranges.levels)
    assert (restricted == 3).all()
    assert (np.isfinite(ranges.low) == np.isfinite(ranges.high)).all()
    assert set(ranges.low[np.isfinite(ranges.low)]) <= set(rows.reals.ravel())
    assert all(levels.any(1).all() for levels in ranges.levels)
    assert {*ranges.levels[1].sum(1)} == {1, 2, 3, 4}
    one = random_ranges(Rows.of_reals(rows.reals[:, :1]), (), np.random.default_rng(0), 3)
    assert isinstance(one, Ranges)
    assert np.isfinite(one.low).all()


def test_a_table_without_rows_is_refused():
    with pytest.raises(InputError, match="no rows"):
        release(table(0, 0), Silent())


def test_the_embedding_of_a_mixture_is_that_of_many_draws():
    """Compared with means of the kernel over draws, to five standard errors."""
    rng = np.random.default_rng(13)
    mixture = GaussianMixture(np.array([0.5, 0.3, 0.2]), rng.random((3, 2)), 0.2)
    kernel, points, draws = RowKernel(np.array([3.0, 8.0]), np.zeros(0)), Rows.of_reals(rng.random((4, 2))), 200_000
    rows = mixture.draw(2 * draws, rng)
    values = kernel.matrix(rows[:draws], points)
    error = values.std(0) / draws**0.5
    assert (np.abs(values.mean(0) - mixture.embedding(kernel, points)) < 5 * error).all()
    pairs = np.exp(-((rows.reals[:draws] - rows.reals[draws:]) ** 2) @ kernel.gamma)
    assert abs(pairs.mean() - mixture.squared_norm(kernel)) < 5 * pairs.std() / draws**0.5


def test_a_narrow_mixture_is_its_centres():
    centres = Rows.of_reals(np.random.default_rng(14).random((3, 2)))
    weights, kernel = np.array([0.5, 0.3, 0.2]), RowKernel(np.array([3.0, 8.0]), np.zeros(0))
    mixture, points = GaussianMixture(weights, centres.reals, 1e-9), table(15, 5)
    points = Rows.of_reals(points.reals)
    expected = squared_distance(kernel, centres, weights, points, equal(points)) ** 0.5
    assert mixture.distance(kernel, points, equal(points)) == pytest.approx(expected, abs=1e-7)


@settings(max_examples=examples(20))
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_the_projection_is_the_nearest_of_the_simplex(values):
    vector = np.array(values)
    found = project_to_simplex(vector)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    # A projection makes no acute angle with any direction to a corner of the simplex.
    assert max((np.eye(len(vector)) - found) @ (vector - found)) < 1e-9


class Silent:
    """Noise of 0 that records its arguments."""

    def calibrate(self, size, l2_sensitivity, budget):
        return Calibration(mechanism="", scale=0, granularity=0, epsilon=0, delta=0, sensitivity=l2_sensitivity)

    def add(self, vector, l2_sensitivity, budget):
        self.vector = vector
        return Noised(vector, self.calibrate(vector.size, l2_sensitivity, budget))


def release(rows, noise, *, joint=True, count=2000, bins=5):
    rng = np.random.default_rng(23)
    return histogram_release(rows, CARDINALITIES, bins, noise, Budget(1, 1e-6), count, rng, joint=joint)


@pytest.mark.parametrize("joint", [True, False])
def test_histograms_without_noise_keep_their_cells(joint):
    """The drawn rows match each cell up to one row, jointly or column by column."""
    rows, count = table(24, 50), 2000
    drawn = release(rows, Silent(), joint=joint, count=count)

    def cells(of):
        return np.concatenate([np.floor(of.reals * 5).astype(int), of.codes], 1)

    parts = [slice(None)] if joint else [slice(i, i + 1) for i in range(4)]
    for part in parts:
        every = np.unique(np.concatenate([cells(rows)[:, part], cells(drawn)[:, part]]), axis=0)
        for cell in every:
            share, found = ((cells(of)[:, part] == cell).all(1).mean() for of in (rows, drawn))
            assert abs(share - found) <= 1.000001 / count
    assert ((drawn.reals >= 0) & (drawn.reals <= 1)).all()


@pytest.mark.parametrize("joint", [True, False])
def test_the_sensitivity_of_histograms_covers_neighbours_and_is_reached(joint):
    """The two tables differ in opposite corners, so that every column differs."""
    corner, opposite = (Rows(np.full((1, 2), float(x)), np.array([[x, 3 * x]])) for x in (0, 1))
    rest, found = table(25, 4), []
    for row in (corner, opposite):
        noise = Silent()
        release(Rows.concatenate([rest, row]), noise, joint=joint)
        found.append(noise.vector)
    largest = math.sqrt(2 * (1 if joint else 4)) / 5
    apart = float(np.linalg.norm(found[0] - found[1]))
    assert apart == pytest.approx(largest, rel=1e-9)
    given = []
    noise = Silent()
    noise.add = lambda vector, sensitivity, budget: (
        given.append(sensitivity) or Silent().add(vector, sensitivity, budget)
    )
    release(Rows.concatenate([rest, row]), noise, joint=joint)
    assert apart <= given[0] <= largest * 1.001
