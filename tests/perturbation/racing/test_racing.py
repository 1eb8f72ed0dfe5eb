import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.tiers import examples
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.models.factor_matrix import factor_matrix, load_factor_matrix
from thesis_cli.perturbation.racing import racing
from thesis_cli.perturbation.racing.race_arrays import Field, Outcome
from thesis_cli.perturbation.racing.racing import BOUNDS, RaceRules, _bounds, _ends, _rows
from thesis_cli.perturbation.racing.racing_kernels import race as compiled
from thesis_cli.perturbation.racing.racing_kernels import race_reference
from thesis_cli.perturbation.tricks.tricks import estimate, power
from thesis_cli.studies.published_data import shipped

SEED = np.random.SeedSequence


RULES = {"bound", "first_batch", "log_prior", "width", "exact_value"}


def race(matrix, count, delta, seed, **options):
    rules = RaceRules(**{name: options.pop(name) for name in RULES & set(options)})
    return racing.race(matrix, count, delta, seed, rules, **options)


def noisy(states, factors, sigma, seed=0, phi=None):
    """Normal log-factors whose sums are phi; by default uniform, with ln Z = 0."""
    noise = np.random.default_rng(seed).normal(size=(states, factors))
    noise -= noise.mean(axis=1, keepdims=True)
    noise *= sigma / noise.std(axis=1, keepdims=True)
    phi = np.full(states, -math.log(states)) if phi is None else phi
    return factor_matrix(noise + np.reshape(phi, (-1, 1)) / factors)


def sparse(factors=2**12, rare=20):
    """One factor in 200 raises state 1; the others are equal for both states."""
    values = np.zeros((2, factors))
    values[1, np.random.default_rng(3).choice(factors, rare, replace=False)] = 0.5
    return factor_matrix(values)


def outcome(kernel, rows, prior, ends, bounds, exact, count, seed):
    values, losses = np.empty(count), np.empty(count)
    states, evaluations, looks = (np.empty(count, np.int64) for _ in range(3))
    totals, widths = rows.sum(axis=0, dtype=np.float64), np.ptp(rows, axis=0).astype(np.float64)
    rng = np.random.default_rng(seed)
    field = Field(rows, totals, prior, ends, *bounds, widths)
    kernel(rng, field, exact, Outcome(values, states, evaluations, looks, losses))
    return values, losses, states, evaluations, looks


@given(
    st.integers(1, 8),
    st.integers(1, 300),
    st.sampled_from([1e-4, 0.05, 3.0]),
    st.sampled_from(BOUNDS),
    st.booleans(),
    st.integers(0, 2**32),
)
@settings(max_examples=examples(20))
def test_the_compiled_race_is_the_plain_one(states, factors, sigma, bound, exact, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(rng.normal(0, 1 / factors, states), sigma, (factors, states))
    prior = np.where(rng.random(states) < 0.2, -np.inf, rng.normal(size=states))
    prior[0] = 0.0
    ends = _ends(5, factors)
    bounds = _bounds(bound, ends, factors, 0.02)
    one, two = (outcome(kernel, rows, prior, ends, bounds, exact, 10, seed) for kernel in (compiled, race_reference))
    for ours, plain in zip(one[:2], two[:2], strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-9)
    for ours, plain in zip(one[2:], two[2:], strict=True):
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("bound", BOUNDS)
def test_without_error_the_maxima_are_gumbel_and_the_winners_samples(bound):
    """With delta near 0 factors are seen until the bounds are certain."""
    m, phi = 20_000, np.log([0.5, 0.3, 0.15, 0.05]) + 2.0
    found = race(noisy(4, 400, 0.03, phi=phi), m, 1e-9, SEED(1), bound=bound)
    assert found.errors == 0
    np.testing.assert_array_equal(found.losses, 0.0)
    assert stats.kstest(found.values, stats.gumbel_r(2.0 - np.euler_gamma).cdf).pvalue > 1e-6
    assert stats.chisquare(np.bincount(found.states, minlength=4), m * np.exp(phi - 2.0)).pvalue > 1e-6
    estimated = estimate(power(1.0), found.values)
    assert abs(estimated.value - 2.0) < 5 * estimated.standard_error


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_error_at_the_least_delta(bound):
    found = race(noisy(10, 1000, 0.1), 500, 5e-324, SEED(1), bound=bound)
    assert found.errors == 0
    np.testing.assert_array_equal(found.evaluations, 10 * 1000)
    assert found.share == 1.0


@pytest.mark.parametrize("sigma", [1e-3, 0.1])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_racing_normal_errs_with_probability_delta_at_most(sigma, delta):
    m = 4000
    found = race(noisy(10, 1000, sigma), m, delta, SEED(2))
    assert found.errors / m < delta + 5 * math.sqrt(delta * (1 - delta) / m)
    if sigma == 0.1:  # and it does err, or the test would show nothing
        assert found.errors / m > delta / 10


def test_two_states_err_as_often_as_the_bound_lets_them():
    """With one look, one rival and a tiny gap, the leader is wrong half the time, and drops out
    with delta.
    """
    m, delta = 20_000, 0.2
    matrix = noisy(2, 1000, 1.0)
    found = race(matrix, m, delta, SEED(3), first_batch=500)
    assert found.looks.max() == 1
    expected = delta * m
    assert abs(found.errors - expected) < 5 * math.sqrt(expected * (1 - delta)) + 0.1 * expected


def test_rare_large_factors_deceive_the_normal_bound_and_no_other():
    m, delta = 2000, 0.05
    normal, free = (race(sparse(), m, delta, SEED(4), bound=bound) for bound in BOUNDS)
    assert normal.errors / m > 5 * delta
    assert free.errors / m < delta
    assert free.share == 1.0


def test_sharper_states_take_fewer_factors():
    phi = np.array([0.0, -30.0, -60.0])
    close, far = (noisy(3, 10_000, 0.005, phi=scale * phi) for scale in (1 / 30, 1))
    for bound in BOUNDS:
        wide = race(far, 200, 0.01, SEED(5), bound=bound, exact_value=False)
        narrow = race(close, 200, 0.01, SEED(5), bound=bound, exact_value=False)
        assert wide.share < narrow.share
    assert race(far, 200, 0.01, SEED(5), exact_value=False).share < 0.03


def test_evaluations_count_the_remaining_states_and_then_the_winner():
    matrix = noisy(2, 1000, 1e-6, phi=np.array([50.0, 0.0]))
    full = race(matrix, 50, 0.01, SEED(6), first_batch=10)
    np.testing.assert_array_equal(full.looks, 1)
    np.testing.assert_array_equal(full.evaluations, 2 * 10 + 990)
    assert full.share == pytest.approx(1010 / 2000)
    part = race(matrix, 50, 0.01, SEED(6), first_batch=10, exact_value=False)
    np.testing.assert_array_equal(part.evaluations, 2 * 10)
    np.testing.assert_array_equal(part.states, full.states)
    np.testing.assert_allclose(part.values, full.values, atol=1e-3)
    assert (part.values != full.values).any()


def test_every_perturbation_sees_factors_of_its_own():
    """Estimated values of a certain winner vary like means of independent subsamples."""
    sigma, s, t, m = 0.1, 1000, 20, 4000
    matrix = noisy(2, s, sigma, phi=np.array([1e6, 0.0]))
    part, full = (race(matrix, m, 0.01, SEED(7), first_batch=t, exact_value=exact) for exact in (False, True))
    noise = part.values - full.values
    variance = s**2 * sigma**2 / t * (1 - t / s) * s / (s - 1)
    assert abs(noise.mean()) < 5 * math.sqrt(variance / m)
    assert abs(noise.var() / variance - 1) < 5 * math.sqrt(2 / m)


def test_a_prior_adds_to_phi_and_can_exclude_states():
    matrix = noisy(3, 200, 0.01, phi=np.zeros(3))
    prior = np.array([math.log(0.2), -np.inf, math.log(0.8)])
    m = 10_000
    found = race(matrix, m, 1e-6, SEED(8), log_prior=prior)
    counts = np.bincount(found.states, minlength=3)
    assert counts[1] == 0
    assert stats.binomtest(int(counts[0]), m, 0.2).pvalue > 1e-6
    assert stats.kstest(found.values, stats.gumbel_r(-np.euler_gamma).cdf).pvalue > 1e-6
    assert found.evaluations.max() <= 2 * 200


@pytest.mark.parametrize("exact", [True, False])
def test_one_state_and_few_factors_are_just_summed(exact):
    alone = race(noisy(1, 300, 0.1), 20, 0.1, SEED(9), exact_value=exact)
    few = race(noisy(4, 50, 0.1), 20, 0.1, SEED(9), exact_value=exact)
    single = race(factor_matrix(np.array([[0.5], [0.1]])), 20, 0.1, SEED(9), exact_value=exact)
    for found in (alone, few, single):
        np.testing.assert_array_equal(found.looks, 0)
        assert found.share == 1.0
        assert found.errors == 0


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_result_does_not_depend_on_jobs(monkeypatch, bound):
    monkeypatch.setattr(racing, "WORK", 3000)  # several calls a group
    seen = []
    one = race(noisy(5, 300, 0.05), 150, 0.1, SEED(10), bound=bound, progress=seen.append)
    two = race(noisy(5, 300, 0.05), 150, 0.1, SEED(10), bound=bound, jobs=2)
    for name in ("values", "states", "evaluations", "looks", "losses"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert sum(seen) == 150
    assert len(set(one.values)) == 150


def mapped(tmp_path, kind):
    path = tmp_path / "terms.npy"
    np.save(path, np.asarray(noisy(4, 500, 0.01).values, dtype=kind))
    return load_factor_matrix(path)


@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_a_mapped_file_is_read_in_place(tmp_path, kind):
    matrix = mapped(tmp_path, kind)
    copied, in_place = (_rows(matrix, memory) for memory in (10**6, 0))
    assert np.shares_memory(in_place, matrix.values)
    assert not np.shares_memory(copied, matrix.values)
    np.testing.assert_array_equal(copied, in_place)


@pytest.mark.long  # two more kernels are compiled
@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_a_race_on_a_mapped_file_is_that_on_a_copy(tmp_path, kind):
    matrix = mapped(tmp_path, kind)
    copied, in_place = (race(matrix, 15, 0.1, SEED(11), memory=memory) for memory in (10**6, 0))
    np.testing.assert_array_equal(copied.values, in_place.values)
    np.testing.assert_array_equal(copied.evaluations, in_place.evaluations)


def test_a_large_file_of_another_type_is_refused(tmp_path):
    np.save(tmp_path / "terms.npy", np.ones((4, 500), dtype=">f8"))
    matrix = load_factor_matrix(tmp_path / "terms.npy")
    assert race(matrix, 5, 0.1, SEED(12)).errors == 0
    with pytest.raises(InputError, match=r"terms.npy: holds >f8"):
        race(matrix, 5, 0.1, SEED(12), memory=100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "0 perturbations"),
        ({"delta": 0.0}, "delta is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"delta": math.nan}, "delta is nan"),
        ({"bound": "hoeffding"}, "the bound is 'hoeffding'"),
        ({"first_batch": 1}, "the first batch has 1 factors"),
        ({"log_prior": np.zeros(2)}, r"the prior has shape \(2,\)"),
        ({"log_prior": np.array([0.0, np.nan, 0.0])}, "NaN"),
        ({"width": 1e-3}, "the width is 0.001"),
        ({"width": math.inf}, "the width is inf"),
    ],
)
def test_bad_input_is_refused_in_one_line(options, message):
    arguments = {"count": 5, "delta": 0.1, **options}
    with pytest.raises(InputError, match=message):
        race(noisy(3, 100, 0.1), seed=SEED(13), **arguments)


def test_no_possible_state_is_refused():
    with pytest.raises(NoConfiguration):
        race(noisy(3, 100, 0.1), 5, 0.1, SEED(13), log_prior=np.full(3, -np.inf))


def test_a_wider_range_costs_more():
    matrix = noisy(3, 2000, 1e-4)
    known, given_wide = (race(matrix, 100, 0.1, SEED(14), bound=BOUNDS[1], width=w) for w in (None, 1.0))
    assert known.share < given_wide.share == 1.0


def test_bounds_are_those_of_the_papers():
    """Against the formulas for one look, at up to half of the factors and at more than half."""
    level, s = 0.01, 1000
    for t in (100, 600):
        spread, reach = _bounds("normal", np.array([t]), s, level)
        assert spread[0] == pytest.approx(s * stats.t(t - 1).isf(level) * math.sqrt((1 - t / s) / t))
        assert reach[0] == 0
        spread, reach = _bounds("bernstein-serfling", np.array([t]), s, level)
        rho = 1 - (t - 1) / s if t <= s / 2 else (1 - t / s) * (1 + 1 / t)
        unbiased = math.sqrt(t / (t - 1))
        assert spread[0] * unbiased == pytest.approx(s * math.sqrt(2 * rho * math.log(5 / level) / t))
        assert reach[0] == pytest.approx(s * (7 / 3 + 3 / math.sqrt(2)) * math.log(5 / level) / t)


def test_values_are_distributed_as_the_published_ones():
    """Their numbers between the published percentiles, by a test of homogeneity, and their mean."""
    (published,) = shipped("fig-2-3b")
    ours = race(noisy(10, 10_000, 0.1), 2000, 0.01, SEED(15)).values
    between = np.histogram(ours, [-np.inf, *published["percentiles"][4::5], np.inf])[0]
    theirs = np.full(between.size, published["count"] // between.size)
    assert stats.chi2_contingency([between, theirs]).pvalue > 1e-6
    assert abs(ours.mean() - published["mean"]) < 5 * math.hypot(ours.std() / ours.size**0.5, published["mean_error"])
