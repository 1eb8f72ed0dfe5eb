"""The reduced set method of the thesis's published code, against its definitions and the published run."""

import math

import numpy as np
import pytest

from thesis_cli.privacy.embedding.means import distance, mean_at, mean_of_matrix
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.studies.privacy.reduced_set import (
    STEPS,
    PhasedFeatures,
    lasso,
    pre_image,
    projection_loss,
    reduced_sets,
)

GAMMA, ROWS = 5e-5, 200


@pytest.fixture(scope="module")
def phi():
    return PhasedFeatures.draw(GAMMA, 2, 300, np.random.RandomState(1))


@pytest.fixture(scope="module")
def table():
    return Rows.of_reals(np.random.default_rng(2).normal(50, 150, (ROWS, 2)))


def test_features_are_cosines_and_their_mean_is_that_of_the_rows(phi, table):
    each = math.sqrt(2 / 300) * np.cos(table.reals @ phi.frequencies + phi.phases)
    np.testing.assert_allclose([phi.embed(x) for x in table.reals], each, atol=1e-14)
    np.testing.assert_allclose(phi.mean(table), each.mean(0), atol=1e-13)


def test_gradient_is_that_of_the_loss(phi, table):
    residual, point = phi.mean(table), np.array([120.0, -40.0])
    loss, gradient = projection_loss(phi, residual, point)
    at = phi.embed(point)
    left = residual - residual @ at / (at @ at) * at
    assert residual @ residual + loss == pytest.approx(left @ left, rel=1e-12)
    step = 1e-3
    for d, unit in enumerate(np.eye(2)):
        high, low = (projection_loss(phi, residual, point + sign * step * unit)[0] for sign in (1, -1))
        assert (high - low) / (2 * step) == pytest.approx(gradient[d], rel=1e-6)


def test_descent_is_adam(phi, table):
    """With the formulas of Kingma and Ba (2015), Algorithm 1."""
    residual, point = phi.mean(table), np.array([120.0, -40.0])
    found, first, second = pre_image(phi, residual, point), 0.0, 0.0
    for step in range(1, STEPS + 1):
        gradient = projection_loss(phi, residual, point)[1]
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        point = point - 100.0 * math.sqrt(1 - 0.999**step) / (1 - 0.9**step) * first / (np.sqrt(second) + 1e-8)
    np.testing.assert_allclose(found, point, rtol=1e-6)


def test_without_noise_more_points_are_nearer_to_the_table(phi, table):
    starts = np.random.default_rng(3).normal(0, 500, (12, 2))
    # So large an N leaves the Lasso hardly any penalty.
    points, weights = reduced_sets(phi, phi.mean(table), starts, (1, 4, 12), rows=10**7)
    kernel = RowKernel(np.full(2, GAMMA), np.zeros(0))
    values, squared = mean_at(kernel, [table], Rows.of_reals(points)), mean_of_matrix(kernel, table)
    reached = [distance(kernel, Rows.of_reals(points[: len(w)]), w, values[: len(w)], squared) for w in weights]
    assert reached[0] > 1.5 * reached[1] > 1.5 * 1.2 * reached[2]
    assert reached[2] < 0.2


def test_lasso_meets_the_conditions_of_its_minimum(phi, table):
    """The gradient of the square is -penalty sign(w) where a weight is not 0, and no larger elsewhere."""
    features = np.array([phi.embed(x) for x in table.reals[:6]]).T
    target = phi.mean(table)
    sums = []
    for penalty in (0.01, 0.2):
        weights = lasso(features, target, penalty)
        slope = 2 * features.T @ (target - features @ weights)
        kept = weights != 0
        np.testing.assert_allclose(slope[kept], penalty * np.sign(weights[kept]), atol=0.01 * penalty)
        assert (np.abs(slope) <= 1.01 * penalty).all()
        sums.append(np.abs(weights).sum())
    assert sums[1] < 0.9 * sums[0]
