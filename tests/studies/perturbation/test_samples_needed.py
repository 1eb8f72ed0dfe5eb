import numpy as np
import pytest

from thesis_cli.studies.perturbation.sampler_costs import (
    CHUNKS,
    THEORY,
    needed,
    plain_mse,
    saved,
    saved_with_error,
    sharp_mse,
)


def test_needed_inverts_a_power_law():
    m = np.arange(1, 51)
    assert needed(2.0 / m, np.array([2.0, 0.5, 0.05])) == pytest.approx([1, 4, 40])


def test_saved_compares_the_two_tricks():
    m = np.arange(1, 51)
    assert saved(2.0 / m, 1.5 / m, np.array([0.3])) == pytest.approx([0.25])
    value, error = saved_with_error(np.tile(2.0 / m, (CHUNKS, 1)), np.tile(1.5 / m, (CHUNKS, 1)), np.array([0.3]))
    assert value == pytest.approx([0.25])
    assert error == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize("trick", THEORY)
def test_mse_is_the_formula(trick):
    rng = np.random.default_rng(0)
    values, m = rng.gumbel(-np.euler_gamma, 1, 40_000), np.array([2, 5])
    expected = THEORY[trick](m.astype(float))[1]
    plain, error = plain_mse(values, trick, m)
    assert (np.abs(plain - expected) < 5 * error).all()
    sharp = sharp_mse(values, trick, m, rng)
    spread = sharp.std(axis=0, ddof=1) / CHUNKS**0.5
    assert (np.abs(sharp.mean(axis=0) - expected) < 5 * spread).all()
