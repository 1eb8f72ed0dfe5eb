import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from thesis_cli.perturbation.tricks.tricks import GammaPosterior, estimate, power

T = np.random.default_rng(0).standard_exponential(5) / 3
POSTERIOR = GammaPosterior.from_log_times(np.log(T))
GAMMA = stats.gamma(5, scale=1 / T.sum())


def test_density_is_likelihood_times_jeffreys_prior():
    z = np.array([0.5, 2.0, 9.0])
    unnormalised = lambda v: v ** (len(T) - 1) * np.exp(-v * T.sum())  # noqa: E731  eq. 2.5
    total = quad(unnormalised, 0, np.inf)[0]
    np.testing.assert_allclose(np.exp(POSTERIOR.log_density(np.log(z))), unnormalised(z) / total, rtol=1e-9)


def test_moments_and_quantiles():
    assert POSTERIOR.mean_log_z == pytest.approx(GAMMA.expect(np.log))
    assert POSTERIOR.deviation_log_z == pytest.approx(
        math.sqrt(GAMMA.expect(lambda z: np.log(z) ** 2) - GAMMA.expect(np.log) ** 2)
    )
    np.testing.assert_allclose(np.exp(POSTERIOR.interval(0.9)), GAMMA.interval(0.9))


def test_posterior_means_are_the_exponential_trick():
    values = -np.euler_gamma - np.log(T)
    assert estimate(power(1.0), values).value == pytest.approx(POSTERIOR.mean_log_z)
    assert estimate(power(1.0), values, target="Z", debias=False).value == pytest.approx(GAMMA.mean())  # eq. 2.6


def test_one_sample_and_extreme_quantiles():
    one = GammaPosterior.from_log_times(np.array([1e5]))
    assert one.log_quantile(0.5) == pytest.approx(math.log(math.log(2)) - 1e5)
    assert one.log_quantile(1e-320) == pytest.approx(math.log(1e-320) - 1e5)
