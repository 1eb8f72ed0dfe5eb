"""Algorithm 2 with a rough kernel, against least squares in the values of all functions."""

import math

import numpy as np
import pytest

from thesis_cli.privacy.mechanisms.mechanism import Budget, classical_scale
from thesis_cli.studies.privacy.seeded import kernel_matrix, rough_release


def test_errors_are_those_of_the_expanded_release() -> None:
    """The release written as weights of the points, and its distances by the kernel's matrix."""
    rng = np.random.default_rng(0)
    points, values, shares, budget = rng.random((12, 2)), rng.random((3, 2)), np.array([0.5, 0.3, 0.2]), Budget(9, 0.01)
    found = rough_release(points, values, shares, 40, budget, np.random.default_rng(1))
    again = np.random.default_rng(1)
    sampled = again.multinomial(40, shares) / 40
    matrix = kernel_matrix(points, points)
    projected = np.linalg.solve(matrix, kernel_matrix(points, values) @ sampled)
    noise = classical_scale(2 / 40, budget) * again.standard_normal(12)
    released = projected + np.linalg.solve(np.linalg.cholesky(matrix).T, noise)
    everything = kernel_matrix(np.concatenate([points, values]), np.concatenate([points, values]))

    def distance(weights: list[float], of_values: list[float]) -> float:
        both = np.concatenate([weights, of_values])
        return math.sqrt(both @ everything @ both)

    assert found.total == pytest.approx(distance(released, -shares), rel=1e-9)
    assert found.projection == pytest.approx(distance(projected, -sampled), rel=1e-9)
    assert found.privacy == pytest.approx(distance(released - projected, np.zeros(3)), rel=1e-9)
    assert found.sample == pytest.approx(distance(np.zeros(12), sampled - shares), rel=1e-9)
    assert found.total <= found.sample + found.projection + found.privacy
