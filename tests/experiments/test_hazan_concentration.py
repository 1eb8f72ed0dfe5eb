"""Experiments on section IV of Hazan et al.: closed forms without couplings, and with one variable."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.perturbation.concentration import gumbel_moment, log_sobolev_deviation, poincare_deviation

UNIT = math.pi**2 / 6
SMALL = {"couplings": [0, 2, 4], "size": 5, "models": 2, "samples": 100, "moves": 50}


def test_without_couplings_both_functions_are_sums_of_independent_terms():
    """phi(x*) is then independent of the maximum, and x* has the Gibbs distribution."""
    found = run("hazan-concentration", part="means", coupling=0.0, size=10, models=1, samples=1500)
    tables = np.random.default_rng(np.random.SeedSequence(0).spawn(1)[0].spawn(2)[0])
    field = random_spin_glass(10, 10, 0.0, 1.0, "attractive", tables).fields
    p = 1 / (1 + np.exp(-2 * field))
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p)).sum()
    extra = (4 * field**2 * p * (1 - p)).mean()
    for function, variance, mean in (
        ("maximum", UNIT, np.log(2 * np.cosh(field)).sum()),
        ("noise at the maximiser", UNIT + extra, entropy),
    ):
        mine = rows(found, function=function)
        exact = {"variance": variance, "expectation": mean}
        for quantity, expected in exact.items():
            number = one(mine, quantity=quantity)
            assert_near(number.value, number.standard_error, expected)
        for count in (1, 5, 10):
            part = rows(mine, count=count)
            error = one(part, quantity="error")
            assert_near(error.value, error.standard_error, math.sqrt(2 * 100 * variance / math.pi / count))
            form = one(part, quantity="shape")
            assert_near(form.value, form.standard_error, math.pi / 2)
            beyond = one(part, quantity="exceeded", units=1.0)
            assert_near(beyond.value, beyond.standard_error, math.erfc(math.sqrt(0.5)))
            assert beyond["at"] == pytest.approx(math.sqrt(100 * variance / count), rel=0.1)
            assert one(part, quantity="outside", at=0.5).value == 0


def test_moves_of_the_noise():
    found = run("hazan-concentration", part="moves", coupling=2.0, size=5, models=1, samples=2000)
    np.testing.assert_allclose(rows(found, quantity="squared gradient").value, 1, atol=1e-4)
    steep = rows(found, quantity="steepness")
    assert (steep.value[steep.function == "maximum"] <= 1 + 1e-9).all()
    assert steep.value[steep.function == "noise at the maximiser"].max() > 2


def test_all_claims_read_the_tables():
    for name in ("hazan-concentration", "hazan-histogram"):
        found = whole(name, **SMALL)
        assert (rows(found, quantity="exceeded", units=0.0).value == 1).all()
    whole("hazan-moments", counts=1, couplings=[0], samples=50)


def test_curves_of_figure_2():
    found = run("hazan-moments", part="curves", coupling=0.0, size=2)
    for curve, bound in (("Corollary 10", poincare_deviation), ("Corollary 12", log_sobolev_deviation)):
        for m in (1, 2, 50, 100):
            assert one(found, panel="b", curve=curve, at=m).value == pytest.approx(bound(1.0, m, 0.1))
        assert one(found, panel="c", curve=curve, at=1.5).value == pytest.approx(bound(1.0, 2, math.exp(-3)))
    single = one(found, panel="b", curve="a Gumbel variable", at=1).value
    assert single == pytest.approx(-math.log(-math.log(0.9)) - np.euler_gamma)
    assert one(found, panel="a", curve="Corollary 9", at=0.5).value == pytest.approx(math.log(3))
    beta = 2 * 0.25 * 4.5 / 0.5 - 4 * math.log(2)
    assert one(found, panel="a", curve="Corollary 11", at=0.5).value == pytest.approx(beta)


def test_moments_of_independent_maxima_are_those_of_a_sum():
    found = run("hazan-moments", part="maxima", coupling=0.0, size=4000)
    assert_near(found.value, found.standard_error, gumbel_moment(found["at"].to_numpy(), 100))


def test_variance_bounds_and_constants():
    found = run("hazan-inequalities", lengths=[20, 40], step=0.05)
    whole("hazan-inequalities", lengths=[10], step=0.1)
    ratios = rows(found, part="Theorem 5")
    assert ratios.value.min() > 1 - 1e-5
    laplace = rows(ratios, measure="Laplace", curve="t")
    np.testing.assert_allclose(laplace.value, 1 / (2 * laplace["at"] * (1 - laplace["at"])), rtol=1e-4)
    assert one(ratios, measure="normal", curve="t", at=0.0).value == pytest.approx(1)
    assert rows(found, curve="constant").value.min() == pytest.approx(4)
    assert one(found, curve="second moment of 1").value == pytest.approx(-1)
