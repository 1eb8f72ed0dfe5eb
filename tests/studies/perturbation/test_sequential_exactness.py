import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.studies.perturbation.sequential_paths import one_factor, total_variation, without_drawing

PHI = 0.3 * np.random.default_rng(0).standard_normal((2, 3, 2))


def test_one_factor_holds_the_table():
    states = np.indices(PHI.shape).reshape(3, -1).T
    assert one_factor(PHI).log_potential(states) == pytest.approx(PHI.ravel())


def test_total_variation_of_a_point_mass():
    p = np.exp(PHI - logsumexp(PHI)).ravel()
    states = np.zeros((10, 3), np.int64)
    assert total_variation(states, PHI, p) == pytest.approx(1 - p[0])


@pytest.mark.parametrize("shared", [True, False])
def test_draws_are_exact_unless_steps_are_clipped(shared):
    found = without_drawing(np.zeros((2, 2)), 0.0, 20_000, np.random.SeedSequence(1), shared)
    assert 0 < found.acceptance <= 1
    if found.clipped == 0:
        assert found.distance == pytest.approx(0, abs=1e-12)
    else:
        assert found.distance < 0.05
