"""Every trick against its definition, by quadrature over T ~ Exp(Z) and by identities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from thesis_cli.base.errors import InputError
from thesis_cli.perturbation.tricks.parameters import TAIL_OPTIMUM
from thesis_cli.perturbation.tricks.tricks import gumbel, pareto, power, tail

TRICKS = [gumbel(), power(1.0), power(0.5), power(2.0), power(-0.2), pareto(), tail(math.log(0.2)), pareto(-1.0)]
ids = pytest.mark.parametrize("trick", TRICKS, ids=lambda t: t.label)


def expectation(function, z, breaks=()):
    """E function(T) for T ~ Exp(z), with the substitution T = e^s / z, which resolves small T."""
    integrand = lambda s: function(np.exp(s) / z) * np.exp(s - np.exp(s))  # noqa: E731
    edges = sorted([-60.0, -5.0, 0.0, 2.0, 3.5, 5.0, *breaks])
    return sum(quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(edges))


@ids
@pytest.mark.parametrize("z", [3.0, 5.0, 10.0])
def test_mean_and_variance_of_g(trick, z):
    breaks = [math.log(0.2 * z)] if trick.name == "tail" else []
    mean = expectation(trick.g, z, breaks)
    assert float(trick.mean(z)) == pytest.approx(mean, rel=1e-6)
    variance = expectation(lambda t: (trick.g(t) - mean) ** 2, z, breaks)
    assert float(trick.variance(np.float64(z))) == pytest.approx(variance, rel=1e-6)


@ids
def test_inverse_undoes_mean(trick):
    z = np.array([2.5, 3.0, 7.0])
    np.testing.assert_allclose(trick.inverse(trick.mean(z)), z, rtol=1e-12)


@ids
@pytest.mark.parametrize("z", [3.0, 5.0])
def test_asymptotic_variance_is_the_delta_method(trick, z):
    step = 1e-6
    slope = (float(trick.mean(z + step)) - float(trick.mean(z - step))) / (2 * step)
    assert float(trick.asymptotic_variance(np.float64(z))) == pytest.approx(
        float(trick.variance(np.float64(z))) / slope**2, rel=1e-6
    )


@ids
def test_estimate_is_the_inverse_of_the_mean_of_g(trick):
    t = np.random.default_rng(0).standard_exponential((3, 50)) / 4
    np.testing.assert_allclose(
        trick.estimate_log_z(np.log(t)), np.log(trick.inverse(trick.g(t).mean(axis=1))), rtol=1e-11
    )


def test_printed_columns_that_are_right_agree_with_the_corrected_ones():
    z = np.array([3.0, 5.0, 10.0])
    for trick in TRICKS[:5]:
        np.testing.assert_allclose(trick.printed_asymptotic_variance(z), trick.asymptotic_variance(z), rtol=1e-12)
    for trick in TRICKS[:7]:
        np.testing.assert_allclose(trick.printed_variance(z), trick.variance(z), rtol=1e-12)


def test_printed_columns_that_are_wrong():
    """The two entries differ from the delta method by the factors that docs/errata.md gives."""
    assert float(pareto().asymptotic_variance(np.float64(5))) == pytest.approx(80 / 3)
    assert float(pareto().printed_asymptotic_variance(np.float64(5))) == pytest.approx(25 / 9)
    assert float(tail(math.log(0.2)).asymptotic_variance(np.float64(5))) == pytest.approx((math.e - 1) / 0.04)
    assert float(tail(math.log(0.2)).printed_asymptotic_variance(np.float64(5))) == pytest.approx(
        (1 - 1 / math.e) ** 2 / 0.04
    )


@given(st.floats(-0.499, 5))
def test_the_exponential_trick_has_the_least_constant_of_the_powers(alpha):
    if abs(alpha) > 1e-6:
        assert float(power(alpha).relative_variance(0.0)) >= 1 - 1e-9


def test_powers_tend_to_the_gumbel_trick():
    log_t = np.log(np.random.default_rng(1).standard_exponential(100))
    target = gumbel().estimate_log_z(log_t)
    for alpha in (1e-5, -1e-5):
        assert power(alpha).estimate_log_z(log_t) == pytest.approx(target, abs=1e-4)
        assert float(power(alpha).relative_variance(0.0)) == pytest.approx(math.pi**2 / 6, rel=1e-4)


def test_the_best_threshold_of_the_tail_trick():
    at = lambda u: float(tail(math.log(u)).relative_variance(np.float64(0)))  # noqa: E731
    assert at(TAIL_OPTIMUM) == pytest.approx(1.5441386523708702)
    assert at(TAIL_OPTIMUM) < min(at(TAIL_OPTIMUM * 1.01), at(TAIL_OPTIMUM / 1.01))


def test_domains():
    z = np.array([0.5, 1.0, 1.5, 2.0, 2.5])
    np.testing.assert_array_equal(np.isnan(pareto().mean(z)), [True, True, False, False, False])
    np.testing.assert_array_equal(np.isinf(pareto().variance(z)), [False, False, True, True, False])
    assert math.isinf(power(-0.5).variance(1.0))
    assert math.isfinite(power(-0.49).variance(1.0))


@pytest.mark.parametrize("alpha", [0.0, -1.0, -2.0, math.nan, math.inf])
def test_powers_outside_the_family_are_refused(alpha):
    with pytest.raises(InputError, match="alpha is"):
        power(alpha)


@ids
@pytest.mark.parametrize("log_z", [1e5, -1e5, 0.0])
@pytest.mark.parametrize("samples", [1, 100])
def test_nothing_overflows(trick, log_z, samples):
    """The scale of Z only shifts the estimate, for tricks whose accuracy does not depend on it."""
    log_t = np.log(np.random.default_rng(2).standard_exponential(samples))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        if trick.name == "pareto":
            scaled = pareto(log_z - math.log(5))
            found = scaled.estimate_log_z(log_t - log_z) - log_z
            expected = pareto(-math.log(5)).estimate_log_z(log_t)
        elif trick.name == "tail":
            middle = float(np.median(log_t)) - 0.01
            if samples == 1:
                return  # every clock rings late: the estimate is Z = 0
            found = tail(middle - log_z).estimate_log_z(log_t - log_z) - log_z
            expected = tail(middle).estimate_log_z(log_t)
        else:
            found = trick.estimate_log_z(log_t - log_z) - log_z
            expected = trick.estimate_log_z(log_t)
    assert np.isfinite(found)
    assert float(found) == pytest.approx(float(expected), abs=1e-9)
