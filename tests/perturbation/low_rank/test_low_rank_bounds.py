import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import Misses, Worse, product, seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import (
    bound_curve,
    effective_samples,
    entropy_bound,
    jackknife_error,
    lower_bound,
    power_bounds,
    second_moment,
    slope_at_zero,
    upper_bound,
)
from thesis_cli.perturbation.noise import gumbel

# --- bounds on ln Z ---

ALPHAS = np.array([-0.2, -0.1, -1e-3, 0.0, 1e-3, 0.1, 0.5, 1.0])


@pytest.mark.parametrize("cardinalities", [[7], [2, 3, 1, 4]])
def test_a_product_has_bounds_without_gap(cardinalities):
    """U is a sum of independent Gumbel variables of means ln Z_i: U(alpha) = ln Z, and var U = n
    pi^2/6.
    """
    graph = product(cardinalities)
    maxima = low_rank_maxima(Elimination(graph), 20_000, seed(1))
    bounds, errors = bound_curve(maxima, ALPHAS)
    log_z = Elimination(graph).log_partition_function()
    assert (np.abs(bounds - log_z) < 5 * errors).all()
    assert (errors < 0.03).all()
    slope, error = slope_at_zero(maxima)
    assert abs(slope) < 5 * error
    assert error < 0.1


@settings(max_examples=examples(20))
@given(factor_graphs(most_variables=4), st.integers(0, 2**32))
def test_bounds_hold(graph, entropy):
    log_z = Elimination(graph).log_partition_function()
    assume(log_z > -np.inf)
    terms = sum(k > 1 for k in graph.cardinalities)
    alphas = ALPHAS[-0.5 / math.sqrt(max(1, terms)) < ALPHAS]
    slack = 1e-11 * max(1, abs(log_z))
    bounds, errors = bound_curve(low_rank_maxima(Elimination(graph), 500, seed(entropy)), alphas)
    assert (bounds > log_z - 5 * errors - slack).all()
    average = low_rank_maxima(Elimination(graph), 500, seed(entropy), scale="average")
    bounds, errors = bound_curve(average, alphas)
    assert (bounds < log_z + 5 * errors + slack).all()


def test_bounds_leave_a_gap_where_the_model_is_no_product():
    log_z = Elimination(triangle()).log_partition_function()
    upper = upper_bound(low_rank_maxima(Elimination(triangle()), 10_000, seed()), 0.0)
    lower = lower_bound(low_rank_maxima(Elimination(triangle()), 10_000, seed(), scale="average"), 0.0)
    assert lower.value + 10 * lower.standard_error < log_z < upper.value - 10 * upper.standard_error


def test_noise_on_a_variable_with_one_state_would_do_harm():
    """Noise on every configuration alike keeps U(alpha), adds variance to it, and loosens L(0)."""
    solver = Elimination(triangle())
    noise = gumbel(np.random.default_rng(0), 20_000, 8)
    extra = gumbel(np.random.default_rng(1), 20_000, 1)[:, 0]
    values = solver.maximise(noise)[0]
    (plain, plain_error), (more, more_error) = (
        power_bounds(values, 4, ALPHAS),
        power_bounds(values + extra, 5, ALPHAS),
    )
    assert (np.abs(plain - more) < 5 * np.hypot(plain_error, more_error)).all()
    assert (more_error > plain_error).all()
    shortfall = solver.maximise(noise / 4)[0] - solver.maximise(noise / 5)[0] - extra / 5
    assert shortfall.mean() > 5 * shortfall.std() / math.sqrt(20_000)


@settings(max_examples=examples(25))
@given(
    arrays(np.float64, st.integers(2, 40), elements=st.floats(-1000, 1000)),
    st.integers(0, 50),
    st.floats(-0.99, 10).filter(lambda a: abs(a) > 0.05),
)
def test_sample_versions_are_the_formula(values, terms, alpha):
    top = (-alpha * values).max()
    log_mean = top + math.log(np.exp(-alpha * values - top).mean())
    expected = terms * (math.lgamma(1 + alpha) / alpha + np.euler_gamma) - log_mean / alpha
    bounds, errors = power_bounds(values, terms, np.array([alpha]))
    assert bounds[0] == pytest.approx(expected, rel=1e-11, abs=1e-10)
    assert (errors[0] < np.inf) == (alpha > -0.5)


@given(arrays(np.float64, (3, 9), elements=st.floats(-50, 50)))
def test_many_estimators_at_once_equal_each_alone(values):
    bounds, errors = power_bounds(values, 4, ALPHAS)
    for k in range(3):
        np.testing.assert_array_equal((bounds[k], errors[k]), power_bounds(values[k], 4, ALPHAS))


@settings(max_examples=examples(25))
@given(arrays(np.float64, st.integers(2, 40), elements=st.floats(-100, 100)), st.floats(1e-12, 1e-3), st.booleans())
def test_the_bound_is_smooth_through_zero(values, size, negative):
    """By Taylor's formula, U(alpha) = mean + slope alpha + ... (Propositions 3 and 4)."""
    alpha, terms = -size if negative else size, 7
    (bound,), (error,) = power_bounds(values, terms, np.array([alpha]))
    (mean,), (plain,) = power_bounds(values, terms, np.array([0.0]))
    assert mean == values.mean()
    assert plain == pytest.approx(values.std(ddof=1) / math.sqrt(values.size))
    slope = (terms * math.pi**2 / 6 - values.var()) / 2
    third = (np.ptp(values) ** 3 + terms * 2.5) / 6  # |third cumulant| <= range^3 times 1, and terms * 2 zeta(3)
    room = 1e-13 * (1 + np.abs(values).max())
    assert abs(bound - mean - slope * alpha) <= 2 * third * alpha**2 + room
    assert abs(error - plain) <= 2 * np.ptp(values) ** 2 * size + room


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_term_of_gamma_functions_loses_no_digits(sign):
    """If all maxima are 0, the bound is n (ln Gamma(1 + alpha) / alpha + c), by series up to 0.02."""
    for alpha in sign * np.array([1e-300, 1e-12, 1e-8, 1e-5]):
        (bound,), _ = power_bounds(np.zeros(2), 1, np.array([alpha]))
        assert bound == pytest.approx(math.pi**2 / 12 * alpha - 0.400685634386531 * alpha**2, rel=1e-9)  # zeta(3) / 3
    for alpha in sign * np.array([0.01, 0.019999999, 0.02, 0.05]):
        (bound,), _ = power_bounds(np.zeros(2), 1, np.array([alpha]))
        assert bound == pytest.approx(math.lgamma(1 + alpha) / alpha + np.euler_gamma, rel=0, abs=1e-13)


def test_slope_is_the_derivative_and_its_error_is_right():
    maxima = low_rank_maxima(Elimination(triangle()), 4000, seed())
    slope, error = slope_at_zero(maxima)
    (low, high), _ = bound_curve(maxima, np.array([-1e-4, 1e-4]))
    unbiased = maxima.values.var(ddof=1) - maxima.values.var()
    assert slope == pytest.approx((high - low) / 2e-4 - unbiased / 2, abs=1e-6)
    rng = np.random.default_rng(0)
    again = rng.choice(maxima.values, (1000, 4000)).var(axis=1, ddof=1) / 2
    assert error == pytest.approx(again.std(ddof=1), rel=5 / math.sqrt(2000))
    average = low_rank_maxima(Elimination(triangle()), 4000, seed(), scale="average")
    (low, high), _ = bound_curve(average, np.array([-1e-4, 1e-4]))
    assert slope_at_zero(average)[0] == pytest.approx((high - low) / 2e-4, abs=1e-2)
    with pytest.raises(InputError, match="one MAP value"):
        slope_at_zero(low_rank_maxima(Elimination(triangle()), 1, seed()))


@pytest.mark.parametrize("scale", ["sum", "average"])
def test_standard_errors_are_those_of_the_bootstrap(scale):
    maxima = low_rank_maxima(Elimination(triangle()), 2000, seed(), scale=scale)
    _, errors = bound_curve(maxima, ALPHAS)
    rows = np.random.default_rng(0).integers(0, 2000, (1000, 2000))
    factor = 1 if scale == "sum" else 4
    again, _ = power_bounds(factor * maxima.values[rows], 4, ALPHAS)
    np.testing.assert_allclose(errors, again.std(axis=0, ddof=1) / factor, rtol=5 / math.sqrt(2000))


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-100, 100)), st.floats(-0.99, -1e-9))
def test_the_lower_bound_is_not_arbitrarily_worse_than_its_mean(values, alpha):
    """Thesis Proposition 15, which by Jensen's inequality holds for every sample."""
    (bound, mean), _ = power_bounds(values, 1, np.array([alpha, 0.0]))
    rounding = 8 * np.finfo(float).eps / -alpha  # of 1 + alpha and of lgamma near 1
    assert bound >= mean + math.lgamma(1 + alpha) / alpha + np.euler_gamma - rounding - 1e-11


def test_second_moments_are_at_most_those_of_independent_variables():
    """Independent variables attain it: for a uniform one, e^{-alpha U} is a power of an exponential
    variable.
    """
    assert second_moment(0.0, 7) == 1.0
    assert second_moment(1.0, 3) == pytest.approx(8.0)
    assert second_moment(-0.25, 1) == pytest.approx(math.gamma(0.5) / math.gamma(0.75) ** 2)
    assert second_moment(-0.5, 1) == second_moment(1000.0, 1000) == math.inf
    values = low_rank_maxima(Elimination(triangle()), 20_000, seed()).values
    for alpha in (-0.15, 0.2):
        x = np.exp(-alpha * (values - values.mean()))
        ratio = x**2 / x.mean() ** 2
        assert ratio.mean() < second_moment(alpha, 4) + 5 * ratio.std() / math.sqrt(ratio.size)


def test_alphas_out_of_range_are_refused_with_the_limit():
    maxima = low_rank_maxima(Elimination(triangle()), 5, seed())
    message = r"alpha is -0\.25; it must be above -0\.25 = -1/\(2 sqrt\(4\)\)"
    for use in (lambda: upper_bound(maxima, -0.25), lambda: bound_curve(maxima, np.array([0.0, -0.25]))):
        with pytest.raises(InputError, match=message):
            use()
    assert upper_bound(maxima, -0.25, unsafe=True).standard_error < np.inf
    wide = upper_bound(maxima, -0.5, unsafe=True)
    assert (wide.standard_error, wide.low, wide.high) == (np.inf, -np.inf, np.inf)
    for bad in (-1.0, np.nan, np.inf, 1e300):
        with pytest.raises(InputError, match="above -1 and at most 1000"):
            upper_bound(maxima, bad, unsafe=True)


def test_kinds_of_bounds():
    kinds = {a: upper_bound(low_rank_maxima(Elimination(triangle()), 5, seed()), a).kind for a in (-0.1, 0.0, 0.1)}
    assert kinds == {
        -0.1: "upper bound in the limit",
        0.0: "upper bound in expectation",
        0.1: "upper bound in expectation",
    }
    for solver in (Elimination(triangle()), Worse(triangle())):
        average = low_rank_maxima(solver, 5, seed(), scale="average")
        assert [lower_bound(average, a).kind for a in (-0.1, 0.0, 0.1)] == [
            "lower bound in expectation",
            "lower bound in expectation",
            "lower bound in the limit",
        ]
    worse = low_rank_maxima(Worse(triangle()), 5, seed())
    assert {upper_bound(worse, a).kind for a in (-0.1, 0.0, 0.1)} == {"approximate upper bound"}
    assert entropy_bound(worse).kind == "approximate upper bound"
    with pytest.raises(InputError, match="alpha = 0 and an exact solver"):
        upper_bound(worse, 0.0, interval="concentration")


@pytest.mark.parametrize("alpha", [-0.25, 0.0, 0.3])
def test_expectations_of_sample_versions_are_on_the_side_of_their_kind(alpha):
    """By Jensen's inequality, a single sample is biased up for alpha > 0 and down for alpha < 0."""
    many = low_rank_maxima(Elimination(product([3, 2])), 60_000, seed()).values.reshape(-1, 6)
    bounds, _ = power_bounds(many, 2, np.array([alpha]))
    log_z = Elimination(product([3, 2])).log_partition_function()
    bias, error = bounds.mean() - log_z, bounds.std() / math.sqrt(bounds.size)
    assert np.sign(alpha) * bias > 5 * error if alpha else abs(bias) < 5 * error


def test_an_approximate_solver_keeps_lower_bounds():
    alphas = np.array([-0.1, 0.0, 0.1])
    exact, approximate = (
        bound_curve(low_rank_maxima(kind(triangle()), 500, seed(), scale="average"), alphas)[0]
        for kind in (Elimination, Worse)
    )
    assert (approximate < exact).all()


def test_estimates_name_their_target_method_and_source():
    maxima = low_rank_maxima(Elimination(triangle()), 500, seed())
    found = upper_bound(maxima, 0.1, confidence=0.6826894921370859)
    bounds, errors = bound_curve(maxima, np.array([0.1]))
    assert (found.value, found.standard_error) == (bounds[0], errors[0])
    assert found.high - found.value == pytest.approx(errors[0], rel=1e-12)
    assert (found.target, found.method, found.source) == ("ln Z", "U(0.1)", "Thesis eq. 2.8")
    assert (found.map_calls, found.confidence) == (500, 0.6826894921370859)
    average = low_rank_maxima(Elimination(triangle()), 500, seed(), scale="average")
    assert (lower_bound(average, 0).method, lower_bound(average, 0).source) == ("L(0)", "Thesis eq. 2.14")
    with pytest.raises(InputError, match="average-unary maxima"):
        upper_bound(average, 0.0)
    with pytest.raises(InputError, match="sum-unary maxima"):
        lower_bound(maxima, 0.0)
    with pytest.raises(InputError, match="confidence is 1"):
        upper_bound(maxima, 0.0, confidence=1.0)


def test_without_free_variables_every_bound_is_the_potential():
    graph = triangle().condition(dict.fromkeys(range(4), 1))
    for scale, bound in (("sum", upper_bound), ("average", lower_bound)):
        found = bound(low_rank_maxima(Elimination(graph), 3, seed(), scale=scale), -0.3)
        assert (found.value, found.standard_error) == (
            pytest.approx(triangle().log_potential(np.ones((1, 4), int))[0]),
            0,
        )


@pytest.mark.parametrize(("scale", "cardinalities"), [("sum", [2, 3, 1, 4]), ("average", [6, 1])])
def test_entropy_bounds_are_tight_for_products(scale, cardinalities):
    graph = product(cardinalities)
    phi = graph.log_potential(all_states(graph))
    p = np.exp(phi - np.logaddexp.reduce(phi))
    found = entropy_bound(low_rank_maxima(Elimination(graph), 20_000, seed(), scale=scale))
    assert abs(found.value + (p * np.log(p)).sum()) < 5 * found.standard_error < 0.1


@pytest.mark.parametrize("scale", ["sum", "average"])
def test_entropy_bounds_hold_and_add_up(scale):
    m = 50_000
    maxima = low_rank_maxima(Elimination(triangle()), m, seed(), scale=scale)
    counts = np.bincount(np.ravel_multi_index(tuple(maxima.states.T), (2,) * 4), minlength=16)
    q = counts[counts > 0] / m
    entropy = -(q * np.log(q)).sum() + (q.size - 1) / (2 * m)  # Miller's correction of the plug-in estimate
    error = math.sqrt((q * np.log(q) ** 2).sum() - (q * np.log(q)).sum() ** 2) / math.sqrt(m)
    found = entropy_bound(maxima)
    gap = found.value - entropy if scale == "sum" else entropy - found.value
    assert gap > 10 * math.hypot(error, found.standard_error)
    assert found.target == ("H(x*)" if scale == "sum" else "H(x**)")
    # (2.15): mean of U = mean of phi(x*) + B, sample by sample
    mean = triangle().log_potential(maxima.states).mean() + found.value
    assert mean == pytest.approx(maxima.values.mean(), rel=1e-12)


def over_seeds(maxima, samples, bound, alpha):
    """One estimate from each of 100 disjoint sets of perturbations."""
    assert maxima.map_calls == 100 * samples
    parts = np.split(maxima.values, 100)
    return [bound(replace(maxima, values=part), alpha, unsafe=True) for part in parts]


def share_uncertain(found):
    return np.mean([e.kind.endswith(", error uncertain") for e in found])


def stated_over_true(found):
    """Root mean square of the stated errors over the deviation of the values, which 100 sets give to
    0.07 of itself.
    """
    values, errors = (np.array([getattr(e, name) for e in found]) for name in ("value", "standard_error"))
    return math.sqrt((errors**2).mean()) / values.std(ddof=1)


@pytest.mark.parametrize("samples", [20, 50])
@pytest.mark.parametrize("scale", ["sum", "average"])
def test_stated_errors_are_those_over_seeds_where_nothing_is_uncertain(scale, samples):
    maxima = low_rank_maxima(Elimination(product([2] * 6)), 100 * samples, seed(), scale=scale)
    bound = upper_bound if scale == "sum" else lower_bound
    for alpha in (-0.2, -0.05, 0.0, 0.1, 0.2):
        found = over_seeds(maxima, samples, bound, alpha)
        assert share_uncertain(found) <= 0.1
        assert 2 / 3 < stated_over_true(found) < 3 / 2
    assert share_uncertain(over_seeds(maxima, samples, bound, -0.49)) > 0.25


def test_samples_that_few_outweigh_are_uncertain_and_have_an_error_of_the_right_size():
    """Differences of U that an approximate solver makes have no bound, but the delta method never
    states more than 1 / |alpha|.
    """
    graph = FactorGraph((2,) * 4, [Factor((i,), np.array([0.0, 1.3])) for i in range(4)])
    maxima = low_rank_maxima(Misses(graph), 2000, seed(), scale="average")
    alpha = -0.24
    found = over_seeds(maxima, 20, lower_bound, alpha)
    assert share_uncertain(found) > 0.5
    assert 2 / 3 < stated_over_true(found) < 3 / 2
    for part, estimate in zip(np.split(4 * maxima.values, 100), found, strict=True):
        error = power_bounds(part, 4, np.array([alpha]))[1][0] / 4
        if estimate.kind.endswith(", error uncertain"):
            error = max(error, jackknife_error(part, alpha) / 4)
        assert estimate.standard_error == pytest.approx(error, rel=1e-9)


def test_the_jackknife_leaves_each_sample_out():
    values = np.random.default_rng(0).normal(0, 30, 7)
    for alpha in (-0.3, 1e-3, 2.0):
        left = np.array([power_bounds(np.delete(values, i), 3, np.array([alpha]))[0][0] for i in range(7)])
        expected = math.sqrt(6 * left.var())
        assert jackknife_error(values, alpha) == pytest.approx(expected, rel=1e-9)
    far = np.array([0.0, 1.0, 5000.0])
    assert jackknife_error(far, -1.0) == pytest.approx(2 / 3 * (5000 - 1 - math.log1p(math.exp(-1))), rel=1e-3)
    assert effective_samples(np.zeros(5), -0.3) == 5.0
    assert effective_samples(far, -1.0) == pytest.approx(1.0)
