"""Experiments on Renyi entropies (Thesis chapter 3), against exact entropies and variances."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.models.spin_glass import published_spin_glass

UNIT = math.pi**2 / 6
FINITE = [0.25, 0.5, 2, 4]


def geometric(q):
    log_p = math.log(1 - q) * np.arange(500)
    return log_p - np.logaddexp.reduce(log_p)


@pytest.fixture(scope="module")
def figure_3_1():
    return whole("fig-3-1", paths=300, moments=2000)


def test_figure_3_1_has_the_entropies_of_the_geometric_distribution(figure_3_1):
    log_p = geometric(0.3)
    for alpha, found in figure_3_1.groupby("alpha"):
        if alpha in (0, 1, math.inf):
            exact = {0: math.log(500), 1: -np.exp(log_p) @ log_p, math.inf: -log_p[0]}[alpha]
        else:
            exact = np.logaddexp.reduce(alpha * log_p) / (1 - alpha)
        assert found.exact.to_numpy() == pytest.approx(exact, abs=1e-7)
    variance = np.exp(log_p) @ log_p**2 - (np.exp(log_p) @ log_p) ** 2
    assert rows(figure_3_1, part="moments").log_p_variance.to_numpy() == pytest.approx(variance)


def test_figure_3_1_has_unbiased_moments_with_the_variances_of_theory(figure_3_1):
    found = rows(figure_3_1, part="moments")
    for name in ("plain", "shared"):
        known = found[found[name].notna()]
        assert len(known) >= 8
        assert_near(known[name], known[f"{name}_error"], known.exact)
        variances = known[f"{name}_variance"]
        np.testing.assert_allclose(known[f"{name}_error"], np.sqrt(variances / 2000))
    known = found[found.plain.notna()]
    assert_near(known.plain_variance, known.plain_variance_error, UNIT / (1 - known.alpha) ** 2)
    limits = {0.0: UNIT, 1.0: UNIT + found.log_p_variance[0], math.inf: UNIT}
    for alpha, exact in limits.items():
        at = one(found, alpha=alpha)
        assert_near(at.shared_variance, at.shared_variance_error, exact)
    for alpha in (0.0, math.inf):
        assert 0.3 < one(found, alpha=alpha).scaled_distance < 2.9


def test_figure_3_1_has_paths_that_share_their_noise(figure_3_1):
    paths = rows(figure_3_1, part="paths")
    inner = paths[paths.plain.notna() & (paths.alpha > 0)]
    at_one = ((inner.plain - inner.shared) * (1 - inner.alpha) / inner.alpha).groupby(inner.path)
    assert at_one.std().max() < 1e-6
    maxima = at_one.mean()
    assert len(maxima) == 300
    assert_near(maxima.mean(), math.sqrt(UNIT / 300), 0)
    assert_near(maxima.var(), UNIT * math.sqrt(4.4 / 300), UNIT)
    for alpha in (0.0, 0.5, 1.0, 2.0):
        found = rows(paths, alpha=alpha)
        assert_near(found.shared.mean(), found.shared.std() / math.sqrt(300), found.exact[0])


@pytest.fixture(scope="module")
def evaluation():
    return whole(
        "renyi-evaluation",
        **{
            "full rank": {
                "models": [["geometric", 0, 0], ["near-certain", 0, 0]],
                "sizes": {"samples": [10, 100], "repetitions": 300, "perturbations": 3000, "stratified": 20},
            },
            "low rank": {
                "models": [["ising-4x4", 0, 0], ["mixed", 0, 2], ["mixed", 3, 2]],
                "sizes": {"instances": 1, "samples": 100},
            },
        },
    )


def test_estimators_are_evaluated_against_the_exact_entropies(evaluation):
    potentials = {"geometric": geometric(0.3), "near-certain": np.repeat(np.log([0.99, 1e-6]), [1, 10_000])}
    for model, log_p in potentials.items():
        found = rows(evaluation, part="full rank", model=model)
        orders = found.alpha.unique()
        exact = dict(zip(orders, exact_entropies(LogPotentials(log_p), orders).entropies, strict=True))
        np.testing.assert_allclose(found.exact, found.alpha.map(exact), atol=1e-8)
        surprise = -log_p
        variance = np.exp(log_p) @ surprise**2 - (np.exp(log_p) @ surprise) ** 2
        np.testing.assert_allclose(found.variance, variance, rtol=1e-5)


GUMBEL = ["Gumbel, shared", "Gumbel, independent", "Gumbel, ln Z known"]


def test_unbiased_estimators_have_no_bias(evaluation):
    found = rows(evaluation, part="full rank")
    repeated = found[found.estimator != "Gumbel, stratified"]
    assert (repeated.repetitions == np.minimum(300, 3000 // repeated.samples)).all()
    unbiased = [*GUMBEL, "Gumbel, stratified", "Exponential, shared", "Exponential, ln Z known", "hybrid"]
    for name in unbiased:
        of = rows(found, estimator=name)
        assert_near(of.bias, of.bias_error, 0, rounding=1e-9)
        assert (of.rmse**2 >= of.bias**2 * (1 - 1e-4)).all()
        spread = of.bias_error * np.sqrt(of.repetitions - 1)
        np.testing.assert_allclose(of.rmse**2, of.bias**2 + spread**2, rtol=0.02, atol=1e-15)


def test_the_exponential_trick_is_biased_by_what_theory_says(evaluation):
    found = rows(evaluation, part="full rank", samples=10)
    found = found[np.isfinite(found.alpha) & (found.alpha != 1)]
    bias = math.log(10) - digamma(10)
    for name, divisor in (("Exponential, shared", 1), ("Exponential, ln Z known", 1 - found.alpha.unique())):
        of, biased = (rows(found[found.model == "geometric"], estimator=name + more) for more in ("", ", biased"))
        np.testing.assert_allclose(biased.bias - of.bias, bias / divisor, atol=1e-4)
    apart = rows(found, estimator="Exponential, independent, biased")
    assert_near(apart.bias, apart.bias_error, bias)


def test_errors_of_estimators_are_those_of_theory(evaluation):
    found = rows(evaluation, part="full rank", samples=10)
    inner = found[np.isfinite(found.alpha) & (found.alpha != 1)]
    exact = {
        "Gumbel, independent": UNIT / 10 * (1 + inner.alpha**2) / (1 - inner.alpha) ** 2,
        "Gumbel, ln Z known": UNIT / 10 / (1 - inner.alpha) ** 2,
    }
    for name, variance in exact.items():
        of = inner[inner.estimator == name]
        assert len(of) >= 10
        assert_near(of.rmse, of.rmse_error, np.sqrt(variance[of.index]))
    at_one = rows(found, estimator="Gumbel, shared", alpha=1.0)
    assert_near(at_one.rmse, at_one.rmse_error, np.sqrt((UNIT + at_one.variance) / 10))


def test_bounds_are_evaluated_against_the_exact_entropies(evaluation):
    """Without couplings the entropies are sums over the variables, and all bounds hold."""
    found = rows(evaluation, part="low rank")
    for (model, coupling), of in found.groupby(["model", "coupling"]):
        assert (np.diff(of.groupby("alpha").exact.first()) <= 1e-8).all()
        for side, sign in (("upper", 1), ("lower", -1)):
            bounds = of[of.estimator.str.startswith(side)]
            assert (sign * bounds.bias > -5 * bounds.bias_error - 1e-8).all(), (model, coupling)
            assert (bounds.bias + bounds.exact > -5 * bounds.bias_error - 20).all()
    free = rows(found, model="mixed", coupling=0)
    bethe = free[free.estimator.str.startswith("Bethe")]
    np.testing.assert_allclose(bethe.bias, 0, atol=1e-4)
    assert len(bethe) == 4
    exact = one(rows(free, estimator="upper, ln Z known"), alpha=0.0)
    assert exact.exact == pytest.approx(4 * math.log(2))
    for end in ("lower", "upper"):
        for log_z in ("known", "unknown"):
            number = one(free, alpha=0.0, estimator=f"{end}, ln Z {log_z}")
            expected = math.log(2) - 4 * math.log(2) if end == "lower" else 0.0
            assert_near(number.bias, number.bias_error, expected, rounding=1e-9)


def test_variances_are_those_of_theory():
    """At 1,000 perturbations; quantities without a measurement have no error."""
    chosen = ("geometric", "uniform", "uniform on 1 of 2", "uniform on 500 of 1,000")
    frames = [run("renyi-variance", distribution=name, perturbations=1000) for name in chosen]
    frame = pd.concat(frames, ignore_index=True)
    drawn = frame[frame.value.notna()]
    spread = drawn[drawn.quantity.isin(["shared", "plain", "mean maximum"])]
    assert_near(spread.value, spread.standard_error, spread.expected, rounding=1e-9)
    plain = rows(drawn, quantity="plain")
    np.testing.assert_allclose(plain.expected, UNIT / (1 - plain.alpha) ** 2)
    for name, log_p in (("geometric", geometric(0.3)), ("uniform", np.full(1000, -math.log(1000)))):
        of = rows(frame, distribution=name)
        variance = np.exp(log_p) @ log_p**2 - (np.exp(log_p) @ log_p) ** 2
        assert one(of, quantity="shared", alpha=1.0).expected == pytest.approx(UNIT + variance)
    uniform = rows(frame, distribution="uniform", quantity="shared")
    uniform = uniform[np.isclose(uniform.mass, 1)]
    np.testing.assert_allclose(uniform.expected, UNIT, rtol=1e-9)
    apart = rows(frame, distribution="geometric", quantity="shared", mass=0.0)
    np.testing.assert_allclose(apart.expected, UNIT * (1 + apart.alpha**2) / (1 - apart.alpha) ** 2)
    mean = rows(frame, quantity="mean maximum")
    assert (mean.expected == 2).all()
    np.testing.assert_allclose(rows(frame, quantity="error at inf").value, 0, atol=1e-9)
    two = rows(drawn, quantity="ratio apart")
    np.testing.assert_allclose(two.expected, (1 - two.alpha) ** 2)
    assert_near(two.value, two.standard_error, two.expected)


@pytest.mark.parametrize("target", ["gaussian", "regression"])
def test_differential_entropies_agree_with_quadrature(target):
    found = run("renyi-continuous", target=target, samples=20, replicates=50)
    exact = rows(found, trick="exact", quantity="entropy").set_index("alpha").value
    if target == "gaussian":
        spreads = math.log(0.75 * 2 * math.pi)
        closed = {0.25: math.log(4) / 0.75, 0.5: 2 * math.log(2), 1: 1.0, 2: math.log(2), 4: math.log(4) / 3}
        for alpha, more in {**closed, math.inf: 0.0}.items():
            assert exact[alpha] == pytest.approx(spreads + more, abs=1e-6)
            assert one(found, trick="closed form", alpha=alpha).value == pytest.approx(spreads + more, abs=1e-12)
    else:
        assert one(found, quantity="ln Z less quadrature").value == pytest.approx(0, abs=1e-8)
    theory = rows(found, trick="exact", quantity="M variance").set_index("alpha").value
    for alpha in FINITE:
        assert theory[alpha] == pytest.approx(UNIT * (1 + alpha**2) / (1 - alpha) ** 2)
    assert theory[math.inf] == pytest.approx(UNIT)
    if target == "gaussian":
        assert theory[1] == pytest.approx(UNIT + 1, abs=1e-6)  # half a nat^2 for each dimension
    for trick in ("gumbel", "exponential"):
        of = rows(found, trick=trick)
        bias, spread, every = (
            rows(of, quantity=quantity).set_index("alpha").loc[exact.index]
            for quantity in ("bias", "M variance", "all perturbations")
        )
        assert_near(bias.value, bias.standard_error, 0)
        assert_near(every.value, every.standard_error, exact)
        np.testing.assert_allclose(bias.standard_error**2, spread.value / 1000 * 49 / 50, rtol=1e-6)
        if trick == "gumbel":
            assert_near(spread.value, spread.standard_error, theory)
            np.testing.assert_allclose(every.standard_error, np.sqrt(theory / 1000), rtol=0.35)
        covered = rows(of, quantity="coverage")
        assert_near(covered.value, covered.standard_error, 0.95, rounding=0.05)
        first = rows(of, quantity="one estimate").set_index("alpha").loc[exact.index]
        assert_near(first.value, np.sqrt(theory / 20), exact)


def test_identities_hold_by_direct_sums():
    found = run("renyi-identities", model="half impossible", perturbations=1000)
    p = np.where(np.arange(100) % 2, 0, np.exp(-np.arange(100) / 20))
    p /= p.sum()
    seen = p[p > 0]
    limits = {"0": math.log(50), "inf": -math.log(p.max()), "1, below": -seen @ np.log(seen)}
    for name, exact in limits.items():
        of = one(found, quantity="limit", argument=name)
        assert of.value == pytest.approx(exact, abs=1e-4)
        assert of.expected == pytest.approx(exact)
    fs = {
        "p": p,
        "1 / root of p": np.where(p > 0, p, 1) ** -0.5,
        "x": np.arange(1, 101),
        "x <= 10": np.arange(100) < 10,
    }
    for name, f in fs.items():
        of = one(found, quantity="integral", argument=name)
        assert of.expected == pytest.approx(math.log(p @ f))
        assert_near(of.value, of.standard_error, of.expected)
    of = one(found, quantity="participation")
    assert_near(of.value, of.standard_error, 1)
    sums = run("renyi-identities", model="asia", perturbations=10)
    np.testing.assert_allclose(sums.value, sums.expected, rtol=1e-10)
    assert len(sums) == 4
    apart = run("renyi-identities", model="geometric", perturbations=500)
    for name, exact in (("mean given x*", 2.0), ("variance given x*", UNIT)):
        of = rows(apart, quantity=name)
        np.testing.assert_allclose(of.expected, exact)
        assert_near(of.value, of.standard_error, exact)


def test_relatives_bound_the_entropy_and_estimate_it():
    bounds = run("renyi-relatives", part="bounds", kind="mixed", thirds=3, order=2.0, samples=500)
    of = rows(bounds, quantity="upper")
    assert len(of) == 6
    assert (of.value > -5 * of.standard_error).all()
    low = rows(bounds, quantity="lower")
    assert (low.value < 5 * low.standard_error).all()
    errors = run("renyi-relatives", part="errors", kind="attractive", thirds=5, order=2.0, estimators=20, samples=10)
    mse, saving = (rows(errors, quantity=name).set_index("trick").value for name in ("mse", "saving"))
    np.testing.assert_allclose(saving, 1 - mse / mse[0], atol=1e-9)
    assert mse[0] > 0


@pytest.mark.parametrize("order", [0.5, 2.0])
def test_relatives_are_exact_without_couplings(order):
    """The bound from sum-unary noise is ln Z_alpha for every trick."""
    common = {"kind": "mixed", "thirds": 0, "order": order}
    found = run("renyi-relatives", part="bounds", **common, samples=2000)
    phi = published_spin_glass(0.0, "mixed", 3, 3).graph()
    entropy = exact_entropies(phi, [order]).entropies[0]
    assert one(found, quantity="entropy").value == pytest.approx(entropy)
    tight, loose = ("upper", "lower") if order < 1 else ("lower", "upper")
    of = rows(found, quantity=tight)
    assert_near(of.value, of.standard_error, 0)
    gumbel = one(of, trick=0.0)
    assert gumbel.standard_error == pytest.approx(math.sqrt(UNIT * 9 / 2000) / abs(1 - order), rel=0.1)
    of = rows(found, quantity=loose)
    assert (of.value * (1 if loose == "upper" else -1) > 0).all()
    errors = run("renyi-relatives", part="errors", **common, estimators=150, samples=10)
    gumbel = one(errors, quantity="mse", trick=0.0)
    assert_near(gumbel.value, gumbel.standard_error, UNIT * 100 / 10 / (1 - order) ** 2)
    saving, mse = (rows(errors, quantity=quantity) for quantity in ("saving", "mse"))
    np.testing.assert_allclose(saving.value, 1 - mse.value / gumbel.value, atol=1e-12)
    variance = one(errors, quantity="variance")
    assert_near(variance.value, variance.standard_error, UNIT / 4)
    assert 0 < one(errors, quantity="deviation").value < 1
