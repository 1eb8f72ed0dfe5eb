"""Experiments on the tricks with noise on every configuration (Thesis 2.1, 2.2, 2.5.1, 2.5.2), against closed forms."""

import math

import numpy as np
import pytest
from scipy.special import digamma, gammainc, gammaln, polygamma

from tests.conftest import MODELS
from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.models.quadrature import log_densities
from thesis_cli.models.targets import log_ratios, published_regression

UNIT = math.pi**2 / 6
SCALED_DISTANCES = 0.3, 2.9
"""The root of the sample size times a Kolmogorov distance is outside in fewer than one sample of 100,000."""


def exact_moments(target, trick, m):
    """Bias and variance at Z = 1 of estimates from M samples."""
    if target == "lnZ":
        return (0 * m, UNIT / m) if trick == "gumbel" else (np.log(m) - digamma(m), polygamma(1, m))
    if trick == "exponential":  # M / Gamma(M)
        return 1 / (m - 1), m**2 / ((m - 1) ** 2 * (m - 2))
    first, second = (np.exp(m * gammaln(1 - k / m) - k * np.euler_gamma) for k in (1, 2))
    return first - 1, second - first**2


@pytest.fixture(scope="module")
def figure_2_1():
    return whole("fig-2-1", most=1000, estimators=4000)


@pytest.mark.parametrize("target", ["Z", "lnZ"])
@pytest.mark.parametrize("trick", ["gumbel", "exponential"])
def test_figure_2_1_has_the_moments_of_the_tricks(figure_2_1, target, trick):
    m = np.array([5.0, 10.0, 30.0, 100.0])
    bias, variance = exact_moments(target, trick, m)
    exact = {"bias": bias, "variance": variance, "mse": bias**2 + variance}
    of = rows(figure_2_1, target=target, trick=trick)
    for quantity, values in exact.items():
        analytic = rows(of, method="analytic", quantity=quantity).set_index("samples").value
        np.testing.assert_allclose(analytic[m], values, rtol=1e-9, atol=1e-12)
        drawn = rows(of, method="simulated", quantity=quantity).set_index("samples").loc[m]
        enough = m > 8  # from there the squares of all errors have a variance
        assert_near(drawn.value[enough], drawn.standard_error[enough], values[enough])
        if quantity == "bias":
            spread = np.sqrt(rows(of, method="simulated", quantity="variance").set_index("samples").value.loc[m] / 4000)
            np.testing.assert_allclose(drawn.standard_error, spread, rtol=1e-9)


def test_figure_2_1_finds_the_least_ratios_and_the_printed_biases(figure_2_1):
    m = np.arange(3.0, 1001.0)
    for target, name in (("Z", "least MSE ratio"), ("lnZ", "least MSE ratio on ln Z")):
        top, bottom = ((lambda b, v: b**2 + v)(*exact_moments(target, trick, m)) for trick in ("gumbel", "exponential"))
        found = one(figure_2_1, method="every M", quantity=name)
        if target == "Z":
            assert found.value == pytest.approx((top / bottom).min(), rel=1e-9)
        else:
            assert 1 < found.value <= (top / bottom).min()
    debiased = one(figure_2_1, quantity="least MSE ratio on ln Z, debiased")
    assert debiased.value == pytest.approx(UNIT / 2 / polygamma(1, 2), rel=1e-9)
    for trick, squared in (("gumbel", math.gamma(0.8) ** 5 * math.exp(-np.euler_gamma) - 1), ("exponential", 1 / 4)):
        printed = one(figure_2_1, method="as printed", trick=trick, samples=5)
        assert printed.value == pytest.approx(math.sqrt(squared), rel=1e-9)


def test_figure_2_2_meets_the_closed_forms_at_alpha_0_and_1():
    """Between points of the grid, by a parabola; the grid's step is 0.02."""
    frame = whole("fig-2-2", samples=[4, 16, 64], estimators=1000)
    for target in ("Z", "lnZ"):
        for m in (16, 64):
            found = rows(frame, target=target, samples=m)
            sharp, plain = rows(found, method="conditioned"), rows(found, method="plain")
            assert_near(plain.mse, np.hypot(plain.standard_error, sharp.standard_error), sharp.mse)
            spread = np.sqrt(plain.mse - plain.bias**2)
            assert_near(plain.bias, spread / math.sqrt(1000), sharp.bias)
            for alpha, trick in ((0.0, "gumbel"), (1.0, "exponential")):
                bias, variance = exact_moments(target, trick, np.float64(m))
                near = sharp.iloc[(sharp.alpha - alpha).abs().argsort()[:3]]
                mse, mean = (np.polyval(np.polyfit(near.alpha, near[name], 2), alpha) for name in ("mse", "bias"))
                error = near.standard_error.max()
                assert_near(mse, error, bias**2 + variance, rounding=1e-5)
                assert_near(mean, spread.max() / math.sqrt(1000) if alpha == 0 else 0.0, bias, rounding=1e-5)


@pytest.fixture(scope="module")
def figure_2_3a():
    return whole("fig-2-3a", values=4000, most=5, drawn={"a-star": 3, "os-star": 1, "rejection": 1})


def test_figure_2_3a_integrates_and_samples_the_posterior(figure_2_3a):
    target, grid = published_regression(), np.linspace(-6.0, 4.0, 100_001)[:, np.newaxis]
    phi = log_densities(target, grid)
    log_z = phi.max() + math.log(np.exp(phi - phi.max()).sum() * 1e-4)
    numbers = rows(figure_2_3a, part="integral").set_index("quantity").value
    assert numbers["ln Z"] == pytest.approx(log_z, abs=1e-9)
    assert numbers["grid less ln Z"] == pytest.approx(0, abs=1e-9)
    assert numbers["published less ln Z"] == pytest.approx(-532.4139431339 - log_z, abs=1e-9)
    values = rows(figure_2_3a, part="values")
    mean = one(values, quantity="mean less ln Z")
    assert_near(mean.value, mean.standard_error, 0)
    assert mean.standard_error == pytest.approx(math.sqrt(UNIT / 4000), rel=0.15)
    for name in ("values", "locations"):
        low, high = SCALED_DISTANCES
        assert low < one(values, quantity=f"{name}, scaled distance").value < high
    expected = math.exp(log_ratios(target, grid).max() - log_z)
    assert one(figure_2_3a, part="rejection", quantity="expected").value == pytest.approx(expected, rel=1e-6)
    drawn = one(figure_2_3a, part="rejection", quantity="drawn")
    assert_near(drawn.value, drawn.standard_error, expected)


def test_figure_2_3a_measures_the_errors_of_the_tricks(figure_2_3a):
    values, m = rows(figure_2_3a, part="values"), np.arange(1, 6)
    for trick, exact in (("gumbel", UNIT / m), ("exponential", polygamma(1, m))):
        for quantity in ("sharp", "plain", "plain, published ln Z"):
            found = rows(values, trick=trick, quantity=quantity)
            assert found.x.tolist() == m.tolist()
            assert_near(found.value, found.standard_error, exact)
    saved = rows(values, quantity="saved")
    assert_near(saved.value.iloc[-1], saved.standard_error.iloc[-1], 1 - 4.0 / 5.5, rounding=0.1)


@pytest.mark.parametrize("delta", [1e-6, 0.3])
def test_figure_2_3b_has_exact_maxima_but_for_what_racing_loses(delta):
    """A uniform p with ln Z = 0: the values are Gumbel(-c), less the losses."""
    task = {"part": "curve", "bound": "normal", "delta": delta, "sigma": 1e-3, "factors": 200}
    frame = run("fig-2-3b", **task, races=4000, samples=10, estimators=400).set_index("quantity")
    found = frame[frame.alpha.isna()]
    value, loss, wrong = found.loc["value"], found.loc["loss"], found.loc["wrong"]
    assert_near(value["mean"] + loss["mean"], math.hypot(value.standard_error, loss.standard_error), 0)
    assert value.standard_error == pytest.approx(math.sqrt(UNIT / 4000), rel=0.15)
    assert_near(found.loc["variance", "mean"], found.loc["variance", "standard_error"], UNIT)
    assert 0 <= wrong["mean"] <= delta
    assert 0 <= loss["mean"] <= wrong["mean"] * 1e-3 * math.sqrt(200) * 10
    assert 0 < found.loc["share", "mean"] < 1
    assert 1 <= found.loc["looks", "mean"] <= 3
    for method in ("plain", "sharp"):
        curve = frame.loc[f"mse, {method}"]
        for alpha, exact in ((0.0, UNIT / 10), (1.0, polygamma(1, 10) + (math.log(10) - digamma(10)) ** 2)):
            point = curve[curve.alpha == alpha].iloc[0]
            assert_near(point["mean"], point.standard_error, exact, rounding=1e-12)
        least = curve["mean"].min()
        assert found.loc[f"best alpha, {method}", "mean"] == curve.alpha.iloc[curve["mean"].argmin()]
        over = curve["mean"][curve.alpha == 1].iloc[0] / least
        assert found.loc[f"exponential over least, {method}", "mean"] == pytest.approx(over)


TABLE_2_1 = {
    "gumbel": lambda z: (math.log(z), UNIT, UNIT * z**2),
    "exponential": lambda z: (1 / z, 1 / z**2, z**2),
    "weibull(2)": lambda z: (2 / z**2, 20 / z**4, 5 / 4 * z**2),
    "frechet(-0.2)": lambda z: (
        math.gamma(0.8) * z**0.2,
        (math.gamma(0.6) - math.gamma(0.8) ** 2) * z**0.4,
        25 * (math.gamma(0.6) / math.gamma(0.8) ** 2 - 1) * z**2,
    ),
    "tail(0.2)": lambda z: (math.exp(-0.2 * z), math.exp(-0.2 * z) - math.exp(-0.4 * z), math.expm1(0.2 * z) / 0.04),
}
"""Mean and variance of g(T), T ~ Exp(z), and the asymptotic variance of Z^."""


def test_table_2_1_has_the_moments_of_each_trick():
    frame = whole("table-2-1", z=[3.0], estimators=1000, samples=100)
    for trick, exact in TABLE_2_1.items():
        found = rows(frame, trick=trick)
        assert found.quantity.tolist() == ["mean", "variance", "asymptotic variance"]
        np.testing.assert_allclose(found.corrected, exact(3.0), rtol=1e-9)
        assert_near(found.measured[:2], found.standard_error[:2], found.corrected[:2])
        assert found.standard_error.iloc[0] == pytest.approx(math.sqrt(found.corrected.iloc[1] / 1e5), rel=0.05)
        last = found.iloc[2]
        assert_near(last.measured, last.standard_error, last.corrected, rounding=0.1 * last.corrected)  # M is finite
        if trick in ("gumbel", "exponential"):
            assert last.standard_error == pytest.approx(last.corrected * math.sqrt(2 / 1000), rel=0.3)
    assert rows(frame, trick="gumbel").printed.tolist() == rows(frame, trick="gumbel").corrected.tolist()


def test_the_map_values_of_models_are_gumbel():
    frame = whole("full-rank-models", samples=1000)
    for name, found in frame.groupby("model"):
        numbers = found.set_index("statistic")
        assert numbers.value["ln Z"] == pytest.approx(log_partition_function(load_model(MODELS / name)), rel=1e-12)
        for statistic, exact in (("mean - ln Z", 0), ("variance", UNIT)):
            assert_near(numbers.value[statistic], numbers.standard_error[statistic], exact)
        assert numbers.standard_error["mean - ln Z"] == pytest.approx(math.sqrt(UNIT / 1000), rel=0.25)
        quantiles = numbers.loc["quantile"]
        level, exact = quantiles.level, -np.euler_gamma - np.log(-np.log(quantiles.level))
        error = np.sqrt(level * (1 - level) / 1000) / (-level * np.log(level))
        assert_near(quantiles.value, error, exact, rounding=0.02)
        reached = np.exp(-np.exp(-np.euler_gamma - quantiles.value))
        low, high = (x / math.sqrt(1000) for x in SCALED_DISTANCES)
        assert low < (reached - level).abs().max() <= numbers.value["Kolmogorov distance"] + 1e-3 < high
        assert 0 < numbers.value["distance of the configurations"] < high
        means = numbers[numbers.index.str.startswith("mean of ")]
        assert_near(means.value, means.standard_error, 1)
        assert means.standard_error["mean of T^1"] == pytest.approx(1 / math.sqrt(1000), rel=0.2)
        assert means.standard_error["mean of T > 1/Z"] == pytest.approx(math.sqrt((math.e - 1) / 1000), rel=0.2)
        assert numbers.value["posterior mean over estimate"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("alpha", [-0.4, -0.3])
def test_the_tail_of_the_frechet_tricks_is_the_bound_at_one_sample(alpha):
    z = np.geomspace(1, 1000, 31)
    found = rows(whole("frechet-z-tail", samples=[1], estimators=20_000), alpha=alpha, samples=1)
    exact = -np.expm1(-(math.gamma(1 + alpha) ** (1 / alpha)) / z)
    np.testing.assert_allclose(found.bound, exact, rtol=1e-9)
    assert_near(found.probability, np.sqrt(exact * (1 - exact) / 20_000), exact)
    np.testing.assert_allclose(found.standard_error**2 * 20_000, found.probability * (1 - found.probability))
    two = run("frechet-z-tail", alpha=alpha, samples=2, estimators=20_000)
    np.testing.assert_allclose(two.bound, -np.expm1(-2 * (2 * math.gamma(1 + alpha)) ** (1 / alpha) / z), rtol=1e-9)
    assert (two.probability >= two.bound - 5 * np.sqrt(two.bound / 20_000)).all()


def test_the_tail_of_the_exponential_trick_is_that_of_a_gamma_variable():
    z, found = np.geomspace(1, 1000, 31), run("frechet-z-tail", alpha=1.0, samples=2, estimators=20_000)
    assert (found.bound == 0).all()
    exact = gammainc(2, 2 / z)
    assert_near(found.probability, np.sqrt(exact * (1 - exact) / 20_000), exact)


def test_optima_under_weibull_and_frechet_noise_have_their_laws():
    frame = whole("weibull-frechet-noise", samples=1000)
    low, high = (x / math.sqrt(1000) for x in SCALED_DISTANCES)
    for (_, alpha), found in frame.groupby(["model", "alpha"]):
        numbers = found.set_index("statistic")
        mean = numbers.loc["mean"]
        assert_near(mean.value, mean.standard_error, 1)
        if alpha > 0:  # a Frechet variable of this alpha has no fourth moment
            spread = math.sqrt(math.gamma(1 + 2 * alpha) / math.gamma(1 + alpha) ** 2 - 1)
            assert mean.standard_error == pytest.approx(spread / math.sqrt(1000), rel=0.2)
        assert low < numbers.value["distance"] < high
        assert numbers.value["level"].abs().max() <= numbers.value["distance"] + 1e-9
        assert numbers.value["place"] < high
