"""Entropies from perturbed maxima: the Gumbel trick, designs, limits and refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp, polygamma

from tests.entropy.conftest import LOG_Z, ORDERS, PHI, VARIANCE, entropy, error_of_variance, maxima_of, parts, repeated
from thesis_cli.base.errors import InputError
from thesis_cli.entropy.estimators import LEAST_SETS, renyi_entropy
from thesis_cli.perturbation.tricks.tricks import gumbel, pareto, power, tail

# The Gumbel trick


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("shared", ["many", "partly", "unshared"])
def test_the_gumbel_estimate_is_a_mean_with_its_standard_error(request, alpha, shared):
    """Eqs. 3.8, 3.12, 3.17 and the limits; a mean is unbiased at every M if it converges to the
    entropy.
    """
    maxima = request.getfixturevalue(shared)
    exact = entropy(PHI, alpha)
    bottom = maxima.at_one
    for log_z in (None, LOG_Z):
        if alpha == 1:
            each = (bottom if log_z is None else log_z) - maxima.potential
        elif alpha == math.inf:
            each = (bottom if log_z is None else np.full(1, log_z)) - PHI.max()
        else:
            each = (maxima.column(alpha) - alpha * (bottom if log_z is None else log_z)) / (1 - alpha)
        found, _ = renyi_entropy(maxima, alpha, log_z=log_z, control=False)
        # differences of maxima some 10 in size, to rounding, over 1 - alpha
        assert found.value == pytest.approx(each.mean(), rel=1e-11, abs=1e-11)
        if alpha == math.inf and log_z is not None:
            assert found.standard_error == 0.0
            assert found.value == pytest.approx(exact, rel=1e-14)
            continue
        assert found.standard_error == pytest.approx(each.std(ddof=1) / math.sqrt(each.size), rel=1e-9)
        assert abs(found.value - exact) < 5 * found.standard_error
        half = stats.t(each.size - 1).ppf(0.975) * found.standard_error
        assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), rel=1e-9)


@pytest.mark.parametrize(("sets", "quantile"), [(2, 12.706204736), (3, 4.302652730), (6, 2.570581836)])
def test_intervals_of_few_sets_are_students(many, sets, quantile):
    """Of one degree of freedom less than there are sets of perturbations, whatever their sizes."""
    one = next(parts(many, sets))
    two = replace(next(parts(many, 2 * sets)), replicates=np.repeat(np.arange(sets), 2))
    for maxima in (one, two):
        for order in (0.5, 1.0, math.inf):
            found, _ = renyi_entropy(maxima, order)
            assert found.high - found.value == pytest.approx(quantile * found.standard_error, rel=1e-8)
            assert found.value - found.low == pytest.approx(quantile * found.standard_error, rel=1e-8)


@pytest.mark.parametrize(("trick", "repetitions"), [(None, 1000), (power(1.0), 250)], ids=["gumbel", "exponential"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_the_control_variate_leaves_estimates_of_few_perturbations_unbiased(many, trick, repetitions, alpha):
    exact, m = entropy(PHI, alpha), LEAST_SETS
    values, errors, low, high = repeated(next(parts(many, m * repetitions)), m, alpha, log_z=LOG_Z, trick=trick)
    assert values.size == repetitions
    assert abs(values.mean() - exact) < 5 * values.std() / math.sqrt(repetitions)
    covered = ((low <= exact) & (exact <= high)).mean()
    # two means and two coefficients are fitted, where Student's interval reckons with one
    assert abs(covered - 0.95) < 1 / m + 5 * math.sqrt(0.95 * 0.05 / repetitions)
    spread = np.hypot(error_of_variance(values), (errors**2).std() / math.sqrt(repetitions))
    assert abs(values.var(ddof=1) - (errors**2).mean()) < 5 * spread + 3 / m * values.var()


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.999, 1.0, 2.0])
def test_the_control_variate_takes_off_what_correlates(many, alpha):
    """b = cov / var and the variance left, 1 - r^2, of the population; at 1 it leaves var ln p
    (section 3.4.2).
    """
    plain, none = renyi_entropy(many, alpha, log_z=LOG_Z, control=False)
    found, variate = renyi_entropy(many, alpha, log_z=LOG_Z)
    top, bottom = many.column(alpha), many.at_one
    if alpha == 1:
        log_p = PHI[np.isfinite(PHI)] - LOG_Z
        left = np.exp(log_p) @ (log_p - np.exp(log_p) @ log_p) ** 2
        assert plain == found
        assert variate.coefficient == 1
        each = (many.potential - many.potential.mean()) ** 2
        assert abs(found.standard_error**2 * many.samples - left) < 5 * each.std() / math.sqrt(each.size)
        assert variate.saved == pytest.approx(1 - left / (left + VARIANCE), abs=0.01)
    else:
        assert none is None
        b, r = np.cov(top, bottom)[0, 1] / bottom.var(ddof=1), np.corrcoef(top, bottom)[0, 1]
        assert variate.coefficient == pytest.approx(b, abs=1e-3)
        assert variate.saved == pytest.approx(r**2, abs=1e-3)
        assert found.standard_error == pytest.approx(plain.standard_error * math.sqrt(1 - r**2), rel=1e-2)
    assert abs(found.value - entropy(PHI, alpha)) < 5 * found.standard_error


def test_the_coefficient_used_on_a_half_is_the_other_halfs(many):
    """So that one wild perturbation does not choose its own correction."""
    m = LEAST_SETS + 1
    few = next(parts(many, m))
    found, variate = renyi_entropy(few, 2.0, log_z=LOG_Z)
    even, odd = np.arange(m) % 2 == 0, np.arange(m) % 2 == 1
    top, bottom = few.column(2.0), few.at_one
    b = {half: np.cov(top[on], bottom[on])[0, 1] / bottom[on].var(ddof=1) for half, on in (("e", even), ("o", odd))}
    each = np.where(even, top - b["o"] * (bottom - LOG_Z), top - b["e"] * (bottom - LOG_Z))
    assert found.value == pytest.approx((each.mean() - 2 * LOG_Z) / (1 - 2), rel=1e-12)
    assert variate.coefficient == pytest.approx((b["e"] + b["o"]) / 2, rel=1e-12)


# Limits


def test_the_orders_near_0_1_and_inf_are_near_their_limits():
    """Proposition 9, and "Limiting cases": on each set of perturbations, not only on average."""
    near = [0.0, 1e-9, 1 - 1e-7, 1 + 1e-7, 1e9]
    for share in (-math.inf, math.inf):
        maxima = maxima_of(PHI, 300, seed=4, orders=near, share_above=share)
        for part in (maxima, *list(parts(maxima, 1))[:20]):
            at = {a: renyi_entropy(part, a)[0].value for a in (*near, 1.0, math.inf)}
            assert at[1e-9] == pytest.approx(at[0.0], abs=1e-7)
            assert at[1e9] == pytest.approx(at[math.inf], abs=1e-6)
            if share == -math.inf:
                assert at[1 - 1e-7] == pytest.approx(at[1.0], abs=1e-6)
                assert at[1 + 1e-7] == pytest.approx(at[1.0], abs=1e-6)
    maxima = maxima_of(PHI, 30_000, seed=4, orders=near)
    at = {a: renyi_entropy(maxima, a, log_z=LOG_Z)[0] for a in (*near, 1.0, math.inf)}
    assert at[1 - 1e-7].value == pytest.approx(at[1.0].value, abs=1e-3)  # coefficients differ by 1 / sqrt(M)
    assert at[1 + 1e-7].standard_error == pytest.approx(at[1.0].standard_error, rel=1e-2)
    assert at[1e9].value == pytest.approx(at[math.inf].value, abs=1e-6)
    assert at[1e-9].value == pytest.approx(at[0.0].value, abs=1e-7)


@pytest.mark.parametrize("size", [1, 2, 40])
@pytest.mark.parametrize("design", ["independent", "stratified"])
def test_a_uniform_distribution_of_known_ln_z_has_no_error(size, design):
    """V_alpha - alpha phi is the same maximum of noise at every alpha: the control variate is all
    of it.
    """
    phi = np.append(np.full(size, 0.7), -np.inf)
    maxima = maxima_of(phi, 1100, seed=5, design=design)
    assert maxima.sets >= LEAST_SETS
    for alpha in ORDERS:
        found, variate = renyi_entropy(maxima, alpha, log_z=0.7 + math.log(size))
        scale = 1e-12 / abs(1 - alpha) if alpha not in (1, math.inf) else 1e-12
        assert found.value == pytest.approx(math.log(size), abs=scale)
        assert found.standard_error <= scale
        assert alpha == math.inf or variate.saved == pytest.approx(1, abs=1e-12)
        assert alpha == math.inf or variate.coefficient == pytest.approx(1, abs=1e-12)
        # unknown ln Z: |ln N + noise| varies as the Gumbel distribution does at every alpha
        free = renyi_entropy(maxima, alpha)[0]
        assert free.value == pytest.approx(maxima.at_one.mean() - 0.7, abs=1e-9)


# Variances of the thesis


def test_variances_are_those_of_the_theorems(many, partly, unshared):
    log_p = PHI[np.isfinite(PHI)] - LOG_Z
    p = np.exp(log_p)
    for maxima in (many, partly, unshared):  # Theorem 9
        each = maxima.at_one - maxima.potential
        expected = VARIANCE + p @ (log_p - p @ log_p) ** 2
        assert abs(each.var() - expected) < 5 * error_of_variance(each)
        assert renyi_entropy(maxima, 1.0)[0].standard_error == pytest.approx(
            each.std() / math.sqrt(each.size), rel=1e-5
        )
    for alpha in (0.25, 0.5, 2.0, 4.0):  # Proposition 8
        found = [renyi_entropy(x, alpha)[0].standard_error ** 2 * x.samples for x in (many, partly, unshared)]
        each = (unshared.column(alpha) - alpha * unshared.at_one) / (1 - alpha)
        bound = (1 + alpha**2) / (1 - alpha) ** 2 * VARIANCE
        assert abs(found[2] - bound) < 5 * error_of_variance(each)
        assert found[0] < found[1] < found[2]


@given(st.floats(0.01, 5).filter(lambda a: abs(a - 1) > 1e-3), st.integers(1, 6))
def test_for_a_uniform_distribution_the_control_variate_pays_below_2(alpha, size):
    """Proposition 19: eq. 3.12 for ln Z known after all has (1 - alpha)^2 of the variance of eq.
    3.8.
    """
    maxima = maxima_of(np.zeros(size), 20, seed=size, orders=[alpha])
    control = renyi_entropy(maxima, alpha)[0].standard_error
    plain = renyi_entropy(maxima, alpha, log_z=math.log(size), control=False)[0].standard_error
    assert control == pytest.approx(plain * abs(1 - alpha), rel=1e-6)


# Standard errors and intervals


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_standard_errors_and_intervals_are_honest(many, alpha, known):
    exact = entropy(PHI, alpha)
    options = {"log_z": LOG_Z} if known else {}
    values, errors, low, high = repeated(many, 100, alpha, **options)
    spread = np.hypot(error_of_variance(values), (errors**2).std() / math.sqrt(errors.size))
    # the fitted coefficients cost 1 / (M - 1) of the variance, which the error leaves out
    assert abs(values.var(ddof=1) - (errors**2).mean()) < 5 * spread + values.var() / 99
    covered = (low <= exact) & (exact <= high)
    # Student's interval of a skewed mean of 100 covers 95% to some 0.5%
    assert abs(covered.mean() - 0.95) < 0.005 + 5 * math.sqrt(0.95 * 0.05 / values.size)
    other = [renyi_entropy(part, alpha, confidence=0.5, **options)[0] for part in parts(many, 200)]
    covered = np.mean([e.low <= exact <= e.high for e in other])
    assert abs(covered - 0.5) < 5 * 0.5 / math.sqrt(len(other))


def test_the_standard_error_of_the_debiased_exponential_trick(unshared):
    """var ln of a sum of M exponential clocks is trigamma(M), 1 / M to first order."""
    m = 100
    few = next(parts(unshared, 30_000))
    values, errors, low, high = repeated(few, m, 2.0, trick=power(1.0))
    expected = (1 + 4) * float(polygamma(1, m))
    assert abs(values.var() - expected) < 5 * error_of_variance(values)
    assert (errors**2).mean() == pytest.approx(expected, rel=2 / m + 5 * errors.std() / errors.mean() / math.sqrt(300))
    covered = np.mean((low <= entropy(PHI, 2.0)) & (entropy(PHI, 2.0) <= high))
    assert abs(covered - 0.95) < 0.005 + 5 * math.sqrt(0.95 * 0.05 / values.size)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_stratified_errors_are_honest(stratified, alpha, known):
    exact = entropy(PHI, alpha)
    rows = [renyi_entropy(maxima, alpha, log_z=LOG_Z if known else None)[0] for maxima in stratified]
    values, errors = (np.array([getattr(e, f) for e in rows]) for f in ("value", "standard_error"))
    assert abs(values.mean() - exact) < 5 * values.std() / math.sqrt(values.size)
    spread = np.hypot(error_of_variance(values), (errors**2).std() / math.sqrt(errors.size))
    assert abs(values.var(ddof=1) - (errors**2).mean()) < 5 * spread
    covered = np.mean([e.low <= exact <= e.high for e in rows])
    assert abs(covered - 0.95) < 5 * math.sqrt(0.95 * 0.05 / len(rows))
    assert {e.kind for e in rows} == {"unbiased"}


def test_stratified_estimates_vary_less(stratified):
    """Than M perturbations that are independent, whose maxima at 0 have variance pi^2 / 6M."""
    values = np.array([renyi_entropy(maxima, 0.0)[0].value for maxima in stratified])
    assert values.var() + 5 * error_of_variance(values) < VARIANCE / stratified[0].samples


def test_the_control_variate_harms_no_stratified_design():
    """Its coefficient is the one that is best for means of sets, within which noise does not add
    up.
    """
    phi = np.random.default_rng(0).normal(0, 2, 300)
    log_z = float(logsumexp(phi))
    designs = [maxima_of(phi, 1024, seed=s, orders=[0.0, 2.0], design="stratified") for s in range(60)]
    for alpha in (0.0, 2.0):
        found = [renyi_entropy(maxima, alpha, log_z=log_z) for maxima in designs]
        with_control = np.array([e.value for e, _ in found])
        without = np.array([renyi_entropy(x, alpha, log_z=log_z, control=False)[0].value for x in designs])
        spread = np.hypot(error_of_variance(with_control), error_of_variance(without))
        assert with_control.var() < without.var() + 5 * spread
        assert np.mean([variate.saved for _, variate in found]) > -0.1


# Few samples, and what an estimate says of itself


@pytest.mark.parametrize("trick", [None, power(1.0), power(0.5)])
@pytest.mark.parametrize("log_z", [None, LOG_Z])
def test_one_perturbation_tells_no_error(many, trick, log_z):
    one = next(parts(many, 1))
    for alpha in ORDERS:
        found, variate = renyi_entropy(one, alpha, trick=trick, log_z=log_z)
        assert math.isfinite(found.value)
        if alpha == math.inf and log_z is not None:
            assert (found.standard_error, found.low, found.high) == (0.0, found.value, found.value)
        else:
            assert (found.standard_error, found.low, found.high) == (math.inf, -math.inf, math.inf)
        assert (variate is not None) == (alpha == 1 and log_z is not None)


@pytest.mark.parametrize("m", [2, 3, 4, LEAST_SETS - 1, LEAST_SETS])
def test_few_perturbations(many, m):
    few = next(parts(many, m))
    for alpha in (0.0, 0.5, 2.0):
        for trick in (gumbel(), power(1.0)):
            found, variate = renyi_entropy(few, alpha, log_z=LOG_Z, trick=trick)
            assert 0 < found.standard_error < math.inf
            assert found.low < found.value < found.high
            assert (variate is not None) == (m >= LEAST_SETS)
            if variate is None:
                assert found == renyi_entropy(few, alpha, log_z=LOG_Z, trick=trick, control=False)[0]


def test_one_stratified_set_tells_no_error():
    maxima = maxima_of(PHI, 2, design="stratified")
    assert maxima.sets == 1
    for alpha in (0.0, 0.5, 1.0):
        assert renyi_entropy(maxima, alpha)[0].standard_error == math.inf
    assert renyi_entropy(maxima, math.inf, log_z=LOG_Z)[0].standard_error == 0


@pytest.mark.parametrize(
    ("alpha", "log_z", "control", "per_sample"),
    [
        (0.0, None, True, 1),
        (0.0, LOG_Z, False, 1),
        (0.0, LOG_Z, True, 2),
        (0.5, None, True, 2),
        (0.5, None, False, 2),
        (0.5, LOG_Z, True, 2),
        (0.5, LOG_Z, False, 1),
        (1.0, None, True, 1),
        (1.0, LOG_Z, True, 1),
        (1.0, LOG_Z, False, 1),
        (math.inf, None, True, 1),
        (math.inf, LOG_Z, True, 0),
        (math.inf, LOG_Z, False, 0),
    ],
)
def test_perturbed_map_problems_that_an_estimate_rests_on(many, alpha, log_z, control, per_sample):
    few = next(parts(many, LEAST_SETS))
    found, variate = renyi_entropy(few, alpha, log_z=log_z, control=control)
    assert found.map_calls == LEAST_SETS * per_sample
    other = replace(few, at_one=few.at_one + 1, potential=few.potential - 0.25, values=few.values)
    depends_on_one = renyi_entropy(other, alpha, log_z=log_z, control=control)[0].value != found.value
    other = replace(few, values=few.values + 1)
    depends_on_alpha = renyi_entropy(other, alpha, log_z=log_z, control=control)[0].value != found.value
    assert int(depends_on_one) + int(depends_on_alpha) == per_sample
    assert {type(getattr(found, f)) for f in ("value", "standard_error", "low", "high")} == {float}
    assert found.target == f"H_{alpha:g}"
    assert (found.confidence, found.exponent10) == (0.95, 0)
    assert (variate is not None) == (log_z is not None and alpha != math.inf and (control or alpha == 1))


def test_what_is_refused(many):
    few = next(parts(many, 10))
    for trick in (pareto(0.0), tail(0.0)):
        with pytest.raises(InputError, match="needs a scale"):
            renyi_entropy(few, 2.0, trick=trick)
    stratified = maxima_of(PHI, 100, design="stratified")
    for trick in (power(1.0), power(0.5), power(-0.3)):
        with pytest.raises(InputError, match=r"stratified design does not go with the .* trick"):
            renyi_entropy(stratified, 2.0, trick=trick)
    with pytest.raises(InputError, match=r"^no maxima at order 3; it must be 0, 0\.25, 0\.5, 0\.999, 1, 1\.001, 2, 4$"):
        renyi_entropy(few, 3.0)
    for alpha in (-1.0, math.nan):
        with pytest.raises(InputError, match=r"^the order is .*; it must be 0 or more, or inf$"):
            renyi_entropy(few, alpha)
    for confidence in (0.0, 1.0, math.nan, 1.5):
        with pytest.raises(InputError, match="confidence"):
            renyi_entropy(few, 2.0, confidence=confidence)


@pytest.mark.parametrize("constant", [-1e5, 1e5])
def test_a_constant_in_the_potential_changes_no_entropy(constant):
    maxima, moved = (maxima_of(PHI + c, 200, seed=8) for c in (0.0, constant))
    for alpha in ORDERS:
        for known in (False, True):
            one, _ = renyi_entropy(maxima, alpha, log_z=LOG_Z if known else None)
            other, _ = renyi_entropy(moved, alpha, log_z=LOG_Z + constant if known else None)
            scale = 1 / abs(1 - alpha) if alpha not in (1, math.inf) else 1
            assert other.value == pytest.approx(one.value, abs=1e-10 * scale)
            assert other.standard_error == pytest.approx(one.standard_error, rel=1e-7, abs=1e-10 * scale)


@pytest.mark.parametrize("alpha", [1e17, 1e308])
def test_orders_whose_multiples_overflow_are_as_inf(alpha):
    maxima = maxima_of(PHI, 20, seed=9, orders=[alpha])
    for log_z in (None, LOG_Z):
        expected = renyi_entropy(maxima, math.inf, log_z=log_z)[0]
        found = renyi_entropy(maxima, alpha, log_z=log_z)[0]
        assert (found.value, found.standard_error) == pytest.approx((expected.value, expected.standard_error), abs=1e-9)
