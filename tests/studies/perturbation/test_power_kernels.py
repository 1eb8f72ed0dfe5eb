import numpy as np
from scipy.special import gammaln

from thesis_cli.perturbation.tricks.tricks import log_mean_exp
from thesis_cli.studies.perturbation.power_kernels import log_z_on_grid


def log_z_on_grid_reference(log_t, first, step, count):
    """`log_z_on_grid` in plain NumPy."""
    alphas = first + step * np.arange(count)
    return np.stack([(gammaln(1 + a) - log_mean_exp(a * log_t)) / a for a in alphas], axis=1)


def test_the_grid_of_powers_is_the_plain_one():
    log_t = np.log(np.random.default_rng(0).standard_exponential((20, 30)))
    grid = (-0.15, 2.15 / 99, 100)
    np.testing.assert_allclose(
        log_z_on_grid(log_t, *grid), log_z_on_grid_reference(log_t, *grid), rtol=1e-10, atol=1e-11
    )
