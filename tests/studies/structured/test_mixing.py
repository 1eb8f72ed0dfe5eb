"""META as a matrix, held against its closed forms (Liu 1996)."""

import math

import numpy as np
import pytest

from tests.structured.toy import potentials
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.catalogue import space
from thesis_cli.studies.structured import mixing

VALUES = np.array([0.0, 1.0, -1.0, 2.0, 1.5, 1.5])
A = mixing.acceptance(VALUES)


def test_the_matrix_keeps_the_distribution():
    masses = np.exp(VALUES) / np.exp(VALUES).sum()
    matrix = mixing.transition_matrix(VALUES)
    np.testing.assert_allclose(masses @ matrix, masses)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    np.testing.assert_allclose(masses[:, None] * matrix, (masses[:, None] * matrix).T)


def test_the_gap_is_the_probability_that_all_states_accept():
    assert mixing.spectral_gap(VALUES) == pytest.approx(A)
    assert pytest.approx(np.exp(VALUES).sum() / 6 / math.exp(2)) == A


def test_from_the_best_state_the_distance_is_known():
    """The chain stays there until all states accept, and is stationary from then on."""
    p = np.exp(2) / np.exp(VALUES).sum()
    for steps in (1, 5, 20):
        row = np.linalg.matrix_power(mixing.transition_matrix(VALUES), steps)[3]
        distance = np.abs(row - np.exp(VALUES) / np.exp(VALUES).sum()).sum() / 2
        assert distance == pytest.approx((1 - A) ** steps * (1 - p))
        assert distance * (1 - 1e-9) <= mixing.distances(VALUES, [steps])[0] <= (1 - A) ** steps


@pytest.mark.parametrize("distance", [0.9, 0.3, 0.01, 1e-6])
def test_mixing_time_is_the_least(distance):
    found = mixing.mixing_time(VALUES, distance)
    assert mixing.distances(VALUES, [found])[0] <= distance
    assert found == 0 or mixing.distances(VALUES, [found - 1])[0] > distance
    assert found <= mixing.printed_mixing_bound(2.0, distance)


def test_equal_potentials_mix_at_once():
    assert mixing.mixing_time(np.zeros(5), 0.1) == 1
    assert mixing.mixing_time(np.zeros(1), 0.1) == 0
    assert mixing.spectral_gap(np.zeros(4)) == pytest.approx(1)


def test_refusals():
    with pytest.raises(InputError):
        mixing.mixing_time(VALUES, 0.0)
    with pytest.raises(ModelTooLarge):
        mixing.all_potentials(space("hypercube", 20), np.zeros(20))
    toy, one = potentials(VALUES)
    np.testing.assert_array_equal(mixing.all_potentials(toy, one), VALUES)
