import decimal
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp, polygamma

from thesis_cli.base.errors import InputError
from thesis_cli.entropy.estimators import EntropyMaxima, Noise, entropy_maxima, renyi_entropy
from thesis_cli.entropy.quantities import check_quantity, estimate_quantity, target, value_of
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation.tricks.tricks import power

C = np.euler_gamma
PHI = np.array([1.2, -0.3, -np.inf, 0.9, 2.0, -1.5, 0.1])
LOG_Z = float(logsumexp(PHI))
P = np.exp(PHI - LOG_Z)

CASES = [
    ("collision-probability", 2.0),
    ("inverse-participation-ratio", 2.0),
    ("tsallis", 0.0),
    ("tsallis", 0.5),
    ("tsallis", 2.0),
    ("tsallis", 3.0),
]


def truth(quantity, alpha, p=P):
    """By definition."""
    p = p[p > 0]
    if quantity == "collision-probability":
        return (p**2).sum()
    if quantity == "inverse-participation-ratio":
        return 1 / (p**2).sum()
    return -(p * np.log(p)).sum() if alpha == 1 else (1 - (p**alpha).sum()) / (alpha - 1)


def perturbed(count, seed=0, **noise):
    alphas = np.array([0.0, 0.5, 2.0, 3.0])
    return entropy_maxima(LogPotentials(PHI), alphas, count, np.random.SeedSequence(seed), Noise(**noise))


def made(alpha, clocks, clocks_at_one, share_above=math.inf):
    """Maxima whose clocks are given."""
    m = len(clocks)
    return EntropyMaxima(
        np.array([alpha]),
        (-C - np.log(clocks))[:, np.newaxis],
        -C - np.log(clocks_at_one),
        np.full(m, PHI.max()),
        float(PHI.max()),
        share_above,
        np.arange(m),
    )


def parts(maxima, m):
    for start in range(0, maxima.samples - m + 1, m):
        at = slice(start, start + m)
        yield replace(
            maxima,
            values=maxima.values[at],
            at_one=maxima.at_one[at],
            potential=maxima.potential[at],
            replicates=np.arange(m),
        )


# Known entropies


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=8), st.sampled_from([0.0, 0.3, 0.9, 1.0, 1.5, 2.0, 7.0]))
def test_values_are_direct_sums(weights, alpha):
    p = np.array(weights) / sum(weights)

    def renyi(order):
        return -(p * np.log(p)).sum() if order == 1 else math.log((p**order).sum()) / (1 - order)

    assert value_of("tsallis", alpha, renyi(alpha)) == (pytest.approx(truth("tsallis", alpha, p), abs=1e-12), 0)
    assert value_of("renyi", alpha, 1.25) == (1.25, 0)
    for quantity in ("collision-probability", "inverse-participation-ratio"):
        assert value_of(quantity, 2.0, renyi(2)) == (pytest.approx(truth(quantity, 2, p), rel=1e-12), 0)
    for quantity, order in (("shannon", 1.0), ("hartley", 0.0), ("min", math.inf)):
        assert value_of(quantity, order, 0.75) == (0.75, 0)


@pytest.mark.parametrize("entropy", [0.0, 1e-3, 3.0, 650.0, 700.0, 2000.0])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1 - 1e-9, 1 + 1e-12, 1.5, 2.0, 100.0])
def test_tsallis_entropies_of_any_size_by_decimals(entropy, alpha):
    with decimal.localcontext(prec=50):
        value, exponent = value_of("tsallis", alpha, entropy)
        expected = (1 - ((1 - Decimal(alpha)) * Decimal(entropy)).exp()) / (Decimal(alpha) - 1)
        scaled = expected / Decimal(10) ** exponent
        assert math.isfinite(value)
        assert float(Decimal(float(value)) - scaled) == pytest.approx(0, abs=1e-11 * abs(float(scaled)))


@pytest.mark.parametrize("entropy", [0.0, 1e-3, 3.0, 650.0, 700.0, 2000.0, 1e6])
def test_collision_probabilities_of_any_size_by_decimals(entropy):
    for quantity, sign in (("collision-probability", -1), ("inverse-participation-ratio", 1)):
        with decimal.localcontext(prec=50, Emin=-(10**6), Emax=10**6):
            value, exponent = value_of(quantity, 2.0, entropy)
            expected = (sign * Decimal(entropy)).exp() / Decimal(10) ** exponent
        assert value == pytest.approx(float(expected), rel=1e-9)
        assert (exponent == 0) == (entropy <= 690)
        assert exponent == 0 or 0.999 <= value <= 10.001


def test_a_tsallis_entropy_of_tiny_power_sums_is_a_plain_number():
    """T_alpha <= 1 / (alpha - 1), however small sum p^alpha: nothing calls for a power of ten."""
    value, exponent = value_of("tsallis", 2.0, 800.0)
    assert (value, exponent) == (pytest.approx(1.0, rel=1e-15), 0)
    found = estimate_quantity(made(2.0, np.full(20, math.exp(600.0)), np.ones(20)), "tsallis", 2.0, log_z=300.0)
    assert (found.value, found.exponent10) == (pytest.approx(1.0, rel=1e-15), 0)
    assert (found.low, found.high) == (pytest.approx(1.0, rel=1e-15), pytest.approx(1.0, rel=1e-15))
    assert found.standard_error == pytest.approx(0, abs=1e-300)


# Unbiased estimates: of a sum of clocks that is Gamma(M) / Z_alpha


def power_of(quantity):
    return -1.0 if quantity == "inverse-participation-ratio" else 1.0


def expectation(function, m, rate):
    """E f(S), S ~ Gamma(M) / rate, by quadrature."""
    law = stats.gamma(m, scale=1 / rate)
    edges = law.ppf([1e-15, 1e-6, 0.01, 0.5, 0.99, 1 - 1e-6, 1 - 1e-15])
    spans = zip([0.0, *edges], edges, strict=False)
    return sum(integrate.quad(lambda s: function(s) * law.pdf(s), a, b, epsabs=0, epsrel=1e-9)[0] for a, b in spans)


@pytest.mark.parametrize(("quantity", "alpha"), CASES)
@pytest.mark.parametrize("m", [3, 5, 9])
def test_of_known_ln_z_estimates_are_unbiased_and_intervals_exact(quantity, alpha, m):
    """As integrals, not as averages: value, square and coverage."""
    exact = truth(quantity, alpha)
    rate = (P[P > 0] ** alpha).sum() * math.exp(alpha * LOG_Z)

    def found(s):
        return estimate_quantity(
            made(alpha, np.full(m, s / m), np.ones(m)), quantity, alpha, log_z=LOG_Z, confidence=0.9
        )

    assert expectation(lambda s: found(s).value, m, rate) == pytest.approx(exact, rel=1e-6)
    one = found(m / rate)
    assert one.kind == "unbiased"
    # the standard error is relative to the estimate of the power sum, its own ratio to it is fixed
    scale = abs(one.value * (alpha - 1) - 1) if quantity == "tsallis" else one.value
    ratio = one.standard_error * (abs(alpha - 1) if quantity == "tsallis" else 1) / scale
    power_sum = abs(exact * (alpha - 1) - 1) if quantity == "tsallis" else exact
    if m > 2 * power_of(quantity):
        variance = expectation(lambda s: (found(s).value - exact) ** 2, m, rate)
        unit = abs(alpha - 1) if quantity == "tsallis" else 1
        assert ratio == pytest.approx(math.sqrt(variance) * unit / power_sum, rel=1e-5)
    law = stats.gamma(m, scale=1 / rate)
    # the interval's ends are monotone in S: it covers between two quantiles, each missed with 5%
    for q, inside in ((0.0499, False), (0.0501, True), (0.9499, True), (0.9501, False)):
        e = found(law.ppf(q))
        assert (e.low <= exact <= e.high) == inside


@given(st.integers(0, 2**32), st.sampled_from(CASES), st.integers(3, 12))
def test_only_the_sum_of_the_clocks_matters(seed, case, m):
    quantity, alpha = case
    rng = np.random.default_rng(seed)
    clocks = rng.exponential(size=m)
    even = np.full(m, clocks.mean())
    ones = rng.exponential(size=m)
    for log_z in (None, 0.3):
        found, other = (estimate_quantity(made(alpha, c, ones), quantity, alpha, log_z=log_z) for c in (clocks, even))
        for field in ("value", "standard_error", "low", "high"):
            assert getattr(found, field) == pytest.approx(getattr(other, field), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("quantity", "alpha"), CASES)
def test_estimates_of_independent_noise_are_unbiased(quantity, alpha):
    """End to end. M = 7 gives every factor a variance: of S, powers from -2 to 3 are taken."""
    m = 7
    rows = [estimate_quantity(x, quantity, alpha) for x in parts(perturbed(m * 800, 1, share_above=math.inf), m)]
    values = np.array([e.value for e in rows])
    exact = truth(quantity, alpha)
    assert abs(values.mean() - exact) < 5 * values.std() / math.sqrt(values.size)
    assert {(e.kind, e.map_calls) for e in rows} == {("unbiased", m * (1 if alpha == 0 else 2))}
    # relative variance of a product of independent factors: the product of second moments, less 1
    s = power_of(quantity)

    def second(k):
        return math.exp(gammaln(m) + gammaln(m - 2 * k) - 2 * gammaln(m - k))

    expected = math.sqrt(second(s) * (second(-s * alpha) if alpha else 1) - 1)
    power_sums = 1 + (1 - alpha) * values if quantity == "tsallis" else values
    errors = np.array([e.standard_error for e in rows]) * (abs(1 - alpha) if quantity == "tsallis" else 1)
    np.testing.assert_allclose(errors / power_sums, expected, rtol=1e-7)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("share", [-math.inf, math.inf])
def test_intervals_cover(known, share):
    for quantity, alpha in CASES:
        maxima = perturbed(100 * 100, 2, share_above=share)
        rows = [estimate_quantity(x, quantity, alpha, log_z=LOG_Z if known else None) for x in parts(maxima, 100)]
        covered = np.mean([e.low <= truth(quantity, alpha) <= e.high for e in rows])
        assert abs(covered - 0.95) < 0.01 + 5 * math.sqrt(0.95 * 0.05 / len(rows))
        values = np.array([e.value for e in rows])
        spread = ((values - values.mean()) ** 2).std() / math.sqrt(values.size)
        errors = np.array([e.standard_error**2 for e in rows])
        # to first order: relative terms of 1 / M are left
        assert abs(values.var() - errors.mean()) < 5 * np.hypot(spread, errors.std() / 10) + 0.05 * values.var()
        kind = "consistent" if share == -math.inf and not known and alpha else "unbiased"
        assert {e.kind for e in rows} == {kind}


@pytest.mark.parametrize("share", [-math.inf, 1.0])
def test_estimates_of_shared_noise_converge(share):
    maxima = perturbed(100_000, 3, share_above=share)
    for quantity, alpha in CASES:
        found = estimate_quantity(maxima, quantity, alpha)
        assert abs(found.value - truth(quantity, alpha)) < 5 * found.standard_error
        assert found.low < found.value < found.high
        assert found.map_calls == maxima.samples * (1 if alpha == 0 else 2)
    entropy, _ = renyi_entropy(maxima, 2.0, trick=power(1.0))
    found = estimate_quantity(maxima, "collision-probability", 2.0)
    assert found.value == pytest.approx(math.exp(-entropy.value), rel=1e-12)
    assert (found.low, found.high) == pytest.approx((math.exp(-entropy.high), math.exp(-entropy.low)), rel=1e-12)


def test_of_unknown_ln_z_the_interval_is_normal_on_the_logarithm():
    m = 30
    rng = np.random.default_rng(0)
    top, bottom = rng.exponential(size=m), rng.exponential(size=m)
    found = estimate_quantity(made(2.0, top, bottom), "collision-probability", 2.0, confidence=0.8)
    log_value = math.log(found.value)
    half = stats.norm.ppf(0.9) * math.sqrt(5 * float(polygamma(1, m)))
    assert math.log(found.high / found.low) / 2 == pytest.approx(half, rel=1e-9)
    # ln S has mean digamma(M) - ln Z
    centre = (math.log(found.high) + math.log(found.low)) / 2
    expected = -(math.log(top.sum()) - stats.loggamma(m).mean()) + 2 * (
        math.log(bottom.sum()) - stats.loggamma(m).mean()
    )
    assert centre == pytest.approx(expected, rel=1e-9)
    assert found.low < math.exp(log_value) < found.high


@pytest.mark.parametrize("m", [1000, 100_000, 1_000_000])
def test_standard_errors_of_many_samples_keep_their_digits(m):
    """Second moments less 1 are some 1 / M: 1 / (M - 2) for 1 / S, and 1 / M for S."""
    maxima = made(2.0, np.ones(m), np.ones(m))
    found = estimate_quantity(maxima, "collision-probability", 2.0, log_z=0.0)
    assert found.standard_error / found.value == pytest.approx(1 / math.sqrt(m - 2), rel=1e-6)
    found = estimate_quantity(maxima, "inverse-participation-ratio", 2.0, log_z=0.0)
    assert found.standard_error / found.value == pytest.approx(1 / math.sqrt(m), rel=1e-6)
    found = estimate_quantity(maxima, "collision-probability", 2.0)  # and (4M + 6) / (M (M + 1)) for S^2
    expected = (1 + 1 / (m - 2)) * (1 + (4 * m + 6) / m / (m + 1)) - 1
    assert found.standard_error / found.value == pytest.approx(math.sqrt(expected), rel=1e-6)


# Extremes


@pytest.mark.parametrize("log_power_sum", [-2000.0, -800.0, 0.0])
def test_powers_of_ten_are_kept_apart(log_power_sum):
    """Clocks at 2 of mean e^{-(ln sum p^2 + 2 ln Z)}."""
    m, log_z = 50, 1500.0
    log_clock = -(log_power_sum + 2 * log_z)
    maxima = replace(
        made(2.0, np.ones(m), np.ones(m)), values=np.full((m, 1), -C - log_clock), at_one=np.full(m, -C + log_z)
    )
    for quantity, sign in (("collision-probability", 1), ("inverse-participation-ratio", -1)):
        for known in (log_z, None):
            found = estimate_quantity(maxima, quantity, 2.0, log_z=known)
            log_value = math.log(found.value) + found.exponent10 * math.log(10)
            k = (sign,) if known else (sign, -2 * sign)
            factor = sum(gammaln(m) - gammaln(m - x) - x * math.log(m) for x in k)
            assert log_value == pytest.approx(sign * log_power_sum + factor, abs=1e-9)
            assert (found.exponent10 == 0) == (log_power_sum == 0)
            assert 0 < found.low < found.value < found.high < math.inf
            assert 0.1 < found.standard_error / found.value < 0.5
            assert found.exponent10 in (0, math.floor(log_value / math.log(10)))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_too_few_samples(m):
    unshared = made(2.0, np.ones(m), np.ones(m))
    cases = [
        ("collision-probability", 0.0, 1),
        ("collision-probability", None, 1),
        ("inverse-participation-ratio", 0.0, -1),
        ("inverse-participation-ratio", None, 2),
        ("tsallis", None, 1),
    ]
    for quantity, log_z, k in cases:
        if m <= k:
            message = f"the number of samples is {m}; it must be above {k} "
            with pytest.raises(InputError, match=message):
                estimate_quantity(unshared, quantity, 2.0, log_z=log_z)
        else:
            found = estimate_quantity(unshared, quantity, 2.0, log_z=log_z)
            assert math.isfinite(found.value)
            assert (found.standard_error < math.inf) == (m > 2 * k)
            assert math.isfinite(found.high)


def test_one_sample_of_shared_noise_tells_no_error():
    found = estimate_quantity(made(2.0, np.ones(1), np.ones(1), share_above=-math.inf), "collision-probability", 2.0)
    assert found.standard_error == math.inf
    assert (found.low, found.high) == (0.0, math.inf)


# Names


def test_tsallis_at_1_is_shannons():
    for design in ("independent", "stratified"):
        maxima = perturbed(500, 4, design=design)
        for log_z in (None, LOG_Z):
            shannon = renyi_entropy(maxima, 1.0, log_z=log_z, confidence=0.8)[0]
            found = estimate_quantity(maxima, "tsallis", 1.0, log_z=log_z, confidence=0.8)
            assert found == replace(shannon, target="T_1")
            assert abs(found.value - truth("tsallis", 1.0)) < 5 * found.standard_error


def test_targets():
    assert [target(q, a) for q, a in CASES[:3]] == ["collision probability", "inverse participation ratio", "T_0"]
    assert [target("renyi", 0.5), target("shannon", 1.0), target("min", math.inf)] == ["H_0.5", "H_1", "H_inf"]


def test_what_is_refused():
    maxima = perturbed(20, 5)
    for quantity in ("collision-probability", "inverse-participation-ratio"):
        with pytest.raises(InputError, match=f"the order of {quantity} is 3; it must be 2"):
            check_quantity(quantity, 3.0)
        with pytest.raises(InputError, match="it must be 2"):
            estimate_quantity(maxima, quantity, 0.5)
        with pytest.raises(InputError, match="it must be 2"):
            value_of(quantity, math.nan, 1.0)
    for quantity, order in (("shannon", 1), ("hartley", 0), ("min", math.inf)):
        check_quantity(quantity, order)
        with pytest.raises(InputError, match=f"it must be {order}"):
            check_quantity(quantity, 2.0)
    for call in (check_quantity, lambda q, a: estimate_quantity(maxima, q, a), lambda q, a: value_of(q, a, 1.0)):
        with pytest.raises(InputError, match="order of the Tsallis entropy is inf"):
            call("tsallis", math.inf)
    with pytest.raises(InputError, match="no maxima at order 4"):
        estimate_quantity(maxima, "tsallis", 4.0)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match="confidence"):
            estimate_quantity(maxima, "tsallis", 0.5, confidence=confidence)
    stratified = perturbed(100, 5, design="stratified")
    with pytest.raises(InputError, match="a stratified design does not go with tsallis"):
        estimate_quantity(stratified, "tsallis", 0.5)


def test_entropies_are_estimated_elsewhere():
    with pytest.raises(InputError, match="use renyi_entropy"):
        estimate_quantity(perturbed(10), "renyi", 2.0)
