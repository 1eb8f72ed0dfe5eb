import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError
from thesis_cli.perturbation.estimate import fixed_estimate
from thesis_cli.perturbation.tricks.tricks import estimate, gumbel, pareto, power, tail

TRICKS = {t.label: t for t in (gumbel(), power(1.0), power(0.5), power(-0.2), pareto(-2.0), tail(math.log(1.5)))}
SIGMAS = 5


def maxima(log_z, shape, seed=0):
    """MAP values drawn from their distribution, Gumbel(ln Z - c)."""
    return log_z - np.euler_gamma - np.log(np.random.default_rng(seed).standard_exponential(shape))


@pytest.mark.parametrize(
    ("trick", "target", "m"),
    [
        ("gumbel", "lnZ", 1),
        ("gumbel", "Z", 6),
        ("exponential", "lnZ", 1),
        ("exponential", "lnZ", 3),
        ("exponential", "Z", 6),
    ],
)
def test_unbiased_estimates_have_no_bias(trick, target, m):
    sets = maxima(1.0, (4000, m))
    found = [estimate(TRICKS[trick], x, target=target) for x in sets]
    assert {e.kind for e in found} == {"unbiased"}
    values = np.array([e.value for e in found])
    truth = 1.0 if target == "lnZ" else math.e
    assert abs(values.mean() - truth) < SIGMAS * values.std() / math.sqrt(len(values))
    if target == "lnZ":
        error = math.sqrt(stats.moment(values, 4) - values.var() ** 2) / math.sqrt(len(values))
        assert abs(values.var() - found[0].standard_error ** 2) < SIGMAS * error


@pytest.mark.parametrize("trick", ["gumbel", "exponential"])
def test_standard_error_of_z_is_its_deviation(trick):
    m = 12  # eight moments of Z^ are finite
    found = [estimate(TRICKS[trick], x, target="Z") for x in maxima(0.0, (4000, m), seed=5)]
    values = np.array([e.value for e in found])
    relative = found[0].standard_error / found[0].value
    error = math.sqrt(stats.moment(values, 4) - values.var() ** 2) / math.sqrt(len(values))
    assert abs(values.var() - relative**2) < SIGMAS * error


@pytest.mark.parametrize("m", [3, 12])
def test_relative_errors_of_z_are_those_of_the_debiased_estimate(m):
    """Of 1 / Gamma(M), and of the product of M Frechet variables."""
    exponential = estimate(power(1.0), maxima(0.0, m), target="Z")
    assert exponential.standard_error / exponential.value == pytest.approx(1 / math.sqrt(m - 2))
    second = (math.gamma(1 - 2 / m) / math.gamma(1 - 1 / m) ** 2) ** m
    product = estimate(gumbel(), maxima(0.0, m), target="Z")
    assert product.standard_error / product.value == pytest.approx(math.sqrt(second - 1))


def test_without_debiasing_the_bias_is_the_analytic_one():
    x = maxima(0.0, 7)
    plain = estimate(power(1.0), x, debias=False)
    assert plain.kind == "consistent"
    assert plain.value - estimate(power(1.0), x).value == pytest.approx(math.log(7) - stats.loggamma(7).mean())
    ratio = estimate(gumbel(), x, target="Z", debias=False).value / estimate(gumbel(), x, target="Z").value
    assert ratio == pytest.approx(math.gamma(1 - 1 / 7) ** 7 * math.exp(-np.euler_gamma))


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("target", ["lnZ", "Z"])
@pytest.mark.parametrize("m", [100])
def test_intervals_cover(trick, target, m):
    """95% intervals cover in 95% of the cases; those of the discrete tail trick in at least as
    many.
    """
    truth = 2.0 if target == "lnZ" else math.exp(2)
    count = 2000
    inside = 0
    for x in maxima(2.0, (count, m), seed=3):
        e = estimate(TRICKS[trick], x, target=target)
        inside += e.low <= truth <= e.high
    margin = SIGMAS * math.sqrt(0.95 * 0.05 / count)
    assert inside / count > 0.95 - margin
    if not trick.startswith("tail"):
        assert inside / count < 0.95 + margin


def test_the_exponential_interval_is_exact_at_m_1():
    inside = sum(e.low <= 0 <= e.high for e in (estimate(power(1.0), x) for x in maxima(0.0, (2000, 1), seed=4)))
    assert abs(inside / 2000 - 0.95) < SIGMAS * math.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize("trick", TRICKS)
def test_f_is_estimated_without_bias(trick):
    chosen = TRICKS[trick]
    found = [estimate(chosen, x, target="f") for x in maxima(1.0, (1500, 4), seed=6)]
    values = np.array([e.value for e in found])
    assert {e.kind for e in found} == {"unbiased"}
    truth = float(chosen.mean(math.e))
    assert abs(values.mean() - truth) < SIGMAS * values.std() / math.sqrt(len(values))


def test_infinite_variance_gives_an_infinite_error():
    for m in (1, 2):
        assert math.isinf(estimate(power(1.0), maxima(0, m), target="Z").standard_error)
        assert math.isinf(estimate(gumbel(), maxima(0, m), target="Z").standard_error)
    assert math.isinf(estimate(power(-0.2), maxima(0, 100), target="Z").standard_error)
    assert math.isinf(estimate(power(-0.5), maxima(0, 100)).standard_error)


@pytest.mark.parametrize("log_z", [1e5, -1e5])
@pytest.mark.parametrize("m", [1, 50])
def test_z_beyond_a_double_has_an_exponent(log_z, m):
    for trick in (gumbel(), power(1.0), power(0.5)):
        e, unit = (estimate(trick, maxima(at, m), target="Z") for at in (log_z, 0.0))
        assert math.log(e.value) + e.exponent10 * math.log(10) == pytest.approx(log_z + math.log(unit.value), abs=1e-9)
        assert e.low < e.value < e.high < math.inf
        assert f"e{e.exponent10:+d}"[:5] in e.text()


def test_a_tail_trick_with_all_clocks_on_one_side_gives_half_an_interval():
    e = estimate(tail(math.log(1e-9)), maxima(0.0, 20))
    assert (e.value, e.low) == (-math.inf, -math.inf)
    assert math.isfinite(e.high)
    e = estimate(tail(math.log(1e9)), maxima(0.0, 20))
    assert (e.value, e.high) == (math.inf, math.inf)
    assert math.isfinite(e.low)


@pytest.mark.parametrize("wrong", [{"target": "Q"}, {"confidence": 0.0}, {"confidence": 1.0}, {"confidence": math.nan}])
def test_bad_settings(wrong):
    with pytest.raises(InputError):
        estimate(gumbel(), maxima(0, 3), **wrong)
    with pytest.raises(InputError, match="no MAP values"):
        estimate(gumbel(), np.empty(0))


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_tail_interval_is_clopper_and_pearsons(confidence):
    x = maxima(0.0, 40, seed=8)
    e = estimate(tail(math.log(0.7)), x, confidence=confidence)
    late = int((-np.euler_gamma - x > math.log(0.7)).sum())
    share = stats.binomtest(late, 40).proportion_ci(confidence, method="exact")
    assert e.low == pytest.approx(math.log(-math.log(share.high) / 0.7))
    assert e.high == pytest.approx(math.log(-math.log(share.low) / 0.7))


def test_text_shows_no_digits_that_a_double_does_not_have():
    row = fixed_estimate(2.079441541679836, "Z unbiased", "ais", "Neal 2001")
    row = replace(row, standard_error=3.3e-17, confidence=0.95)
    assert row.text().startswith("2.07944154168  standard error 0.00000000000  95% interval [2.07944154168, ")
