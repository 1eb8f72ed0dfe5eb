"""Analytic errors against quadrature over the sum of times (Exponential) and simulation (Gumbel)."""

import math

import numpy as np
import pytest
from scipy import stats

from thesis_cli.perturbation.tricks.tricks import exponential_log_z_error, exponential_z_error, gumbel_z_error


@pytest.mark.parametrize("m", [3, 5, 20])
def test_exponential_by_quadrature(m):
    total = stats.gamma(m)
    bias, variance = exponential_z_error(np.float64(m))
    first = total.expect(lambda s: m / s)
    assert float(bias) == pytest.approx(first - 1)
    assert float(variance) == pytest.approx(total.expect(lambda s: (m / s - first) ** 2))
    bias, variance = exponential_log_z_error(np.float64(m))
    mean = total.expect(lambda s: np.log(m / s))
    assert float(bias) == pytest.approx(mean)
    assert float(variance) == pytest.approx(total.expect(lambda s: (np.log(m / s) - mean) ** 2))


def test_gumbel_by_simulation():
    m, count = 10, 400_000
    z = np.exp(-np.euler_gamma - np.log(np.random.default_rng(0).standard_exponential((count, m))).mean(axis=1))
    bias, variance = gumbel_z_error(np.float64(m))
    assert abs(z.mean() - 1 - bias) < 5 * z.std() / math.sqrt(count)
    squares = (z - z.mean()) ** 2
    assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(count)


def test_infinite_below_three_samples():
    m = np.array([1.0, 2.0, 3.0])
    for formula in (gumbel_z_error, exponential_z_error):
        bias, variance = formula(m)
        np.testing.assert_array_equal(np.isinf(bias), [True, False, False])
        np.testing.assert_array_equal(np.isinf(variance), [True, True, False])


def test_large_m_keeps_its_digits():
    """M var(Z^) tends to pi^2/6 and M var(ln Z^) to 1, without cancellation."""
    m = np.float64(1e7)
    assert float(m * gumbel_z_error(m)[1]) == pytest.approx(math.pi**2 / 6, rel=1e-6)
    assert float(m * exponential_log_z_error(m)[1]) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("m", [51, 60, 100, 200])
def test_the_series_for_many_samples_is_the_formula(m):
    """ln E[Z^ / Z] = M (ln Gamma(1 - 1/M) - c / M), and errors of some eps in ln Gamma are M^2 eps of it."""
    bias, _ = gumbel_z_error(np.array([float(m)]))
    expected = m * (math.lgamma(1 - 1 / m) - np.euler_gamma / m)
    np.testing.assert_allclose(np.log1p(bias[0]), expected, rtol=10 * m**2 * np.finfo(float).eps)
