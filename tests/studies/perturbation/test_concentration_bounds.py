"""Bounds on moments and deviations against closed forms, quadrature and samples."""

import math

import numpy as np
import pytest

from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation import concentration as bounds
from thesis_cli.studies.perturbation import poincare
from thesis_cli.studies.perturbation.concentration import EDGE, proof_steps, quotient
from thesis_cli.studies.perturbation.sample_means import tail_bound

GUMBEL = poincare.measures()["Gumbel"]
T = GUMBEL.nodes - np.euler_gamma  # of mean 0
RATES = np.array([-0.9, -0.3, 0.2, 0.6])


def test_the_moment_and_the_entropy_of_a_gumbel_variable_agree_with_quadrature():
    moments = np.array([GUMBEL.mean(np.exp(u * T)) for u in RATES])
    entropies = np.array([GUMBEL.mean(u * T * np.exp(u * T)) for u in RATES]) - moments * np.log(moments)
    np.testing.assert_allclose(bounds.gumbel_moment(RATES), np.log(moments), rtol=1e-6)
    np.testing.assert_allclose(bounds.gumbel_moment(RATES, 9), 9 * bounds.gumbel_moment(RATES / 3), rtol=1e-12)
    np.testing.assert_allclose(bounds.entropy_ratio(RATES), entropies / moments, rtol=1e-5)
    squares = np.array([GUMBEL.mean(T**2 * np.exp(u * T)) for u in RATES])
    np.testing.assert_allclose(bounds.weighted_square(RATES), squares / moments, rtol=1e-5)
    u = RATES[2:]
    np.testing.assert_allclose(bounds.lemma_3(u), 2 * u**2 * ((1 + u) / (1 - u)) ** 2, rtol=1e-12)


def test_the_product_of_lemma_4_is_the_recursion_of_corollary_9():
    u = np.array([0.1, 0.5, 0.9])
    halved = -np.log1p(-(u**2)) + 2 * bounds.product_moment(u / 2)
    np.testing.assert_allclose(bounds.product_moment(u), halved, rtol=1e-12)


def test_deviations_of_a_mean():
    for r in (-0.5, 0.1, 2.0):
        assert bounds.exceeds(1, r) == pytest.approx(1 - math.exp(-math.exp(-r - np.euler_gamma)), abs=1e-10)
    means = gumbel(np.random.default_rng(0), 20_000, 7).mean(axis=1)
    share = (means > 0.4).mean()
    assert share == pytest.approx(bounds.exceeds(7, 0.4), abs=5 * math.sqrt(share / 20_000))
    assert bounds.exceeds(7, bounds.exact_deviation(7, 0.1)) == pytest.approx(0.1)
    assert bounds.exceeds(7, -bounds.exact_deviation(7, 0.1, -1)) == pytest.approx(0.9)
    found = bounds.chernoff_deviation(lambda u: u**2 / 2, np.array([0.1, 0.3]))
    np.testing.assert_allclose(found, np.sqrt([0.2, 0.6]), rtol=1e-5)


def test_log_moments_of_samples():
    values = np.random.default_rng(1).standard_normal(50_000) + 3
    rates = np.array([0.2, 0.7])
    found, errors = bounds.log_moment(values, rates)
    assert (np.abs(found - rates**2 / 2) < 5 * errors).all()
    exact = np.sqrt((np.exp(rates**2) - 1 - rates**2) / 50_000)
    np.testing.assert_allclose(errors, exact, rtol=0.1)


CASES = [(a, m, tail) for a in (0.3, 1.0, 10.0) for m in (1, 10, 1000) for tail in (0.4, 0.05, 1e-6)]


@pytest.mark.parametrize(("gradient", "count", "tail"), CASES)
def test_deviations_follow_from_the_moment_bounds(gradient, count, tail):
    """Corollary 10 follows from 9, and 12 from 11; neither is twice what follows."""
    pairs = (
        (bounds.poincare_moment, bounds.poincare_deviation),
        (bounds.log_sobolev_moment, bounds.log_sobolev_deviation),
    )
    for moment, bound in pairs:
        (best,) = bounds.chernoff_deviation(moment, np.array([math.log(1 / tail) / count]))
        assert gradient * best <= bound(gradient, count, tail) * (1 + 1e-9) < 2 * gradient * best * (1 + 0.01)


def test_published_numbers():
    assert bounds.poincare_deviation(1.0, 2, math.exp(-4)) == 2 * (1 + 1) ** 2
    assert bounds.log_sobolev_deviation(3.0, 8, math.exp(-1)) == pytest.approx(3 * 2)
    assert bounds.log_sobolev_deviation(3.0, 8, math.exp(-32)) == pytest.approx(3 * 16)


def test_the_interval_uses_the_better_bound_with_half_the_risk_on_each_side():
    for count in (1, 10, 100, 10_000):
        both = (bounds.poincare_deviation, bounds.log_sobolev_deviation)
        pair = [bound(2.0, count, (1 - 0.9) / 2) for bound in both]
        assert bounds.deviation(2.0, count, 0.9) == min(pair)
    assert bounds.deviation(2.0, 10_000, 0.9) == bounds.log_sobolev_deviation(2.0, 10_000, (1 - 0.9) / 2)


@pytest.mark.parametrize(("count", "confidence"), [(1, 0.5), (1, 0.999), (10, 0.95)])
def test_the_tail_bound_is_the_deviation_turned_round(count, confidence):
    r = bounds.deviation(3.0, count, confidence)
    assert float(tail_bound(3.0, count, np.array(r))) == pytest.approx(1 - confidence)


def test_poincare_constants():
    for eta in (0.2, 0.5, 0.8):
        assert poincare.constant(eta) == pytest.approx(poincare.printed_constant(eta))
    wave = np.exp(0.3 * T)
    assert poincare.exponential_quotient(0.3) == pytest.approx(
        GUMBEL.variance(wave) / GUMBEL.mean(0.09 * wave**2), rel=1e-6
    )
    short, long = (poincare.cut_constant(length, 0.05) for length in (20, 60))
    assert short < long < 4
    assert 4 - long == pytest.approx(16 * math.pi**2 / 60**2, rel=0.15)


def test_variance_bounds_have_closed_forms_where_the_derivative_is_1():
    measures, (values, derivative) = poincare.measures(), poincare.functions()["t"]
    assert GUMBEL.variance(values) == pytest.approx(math.pi**2 / 6)
    assert measures["logistic"].variance(values) == pytest.approx(math.pi**2 / 3)
    assert measures["Laplace"].bound(derivative, 0.2) == pytest.approx(1 / (0.8 * 0.2))
    assert measures["normal"].bound(derivative, 0.0) == pytest.approx(1)
    for values, derivative in poincare.functions().values():
        slopes = np.gradient(values, poincare.STEP)
        assert np.abs(slopes - derivative)[(np.abs(T) < 30)].max() < 0.6  # a kink counts half
        np.testing.assert_allclose(slopes[3100], derivative[3100], atol=1e-4)


def test_steps_of_the_proofs():
    steps = proof_steps()
    assert float(quotient(np.array(steps["largest rate"]))) == pytest.approx(8)
    assert EDGE < steps["largest rate"] < EDGE + 0.01
    crossing = np.array(steps["moments cross"])
    assert bounds.poincare_moment(crossing) == pytest.approx(bounds.log_sobolev_moment(crossing))
    assert steps["deviations, ratio"] > 1
    assert steps["Corollary 9, lambda = -1/2"] == pytest.approx(math.log(1 / 3) - math.lgamma(1.5) - np.euler_gamma / 2)
