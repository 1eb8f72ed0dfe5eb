"""Experiments on schedules, META and gradients of structured predictors: closed forms at tiny sizes."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.studies.structured.families import family


def test_ratios_of_the_three_schedules():
    found = run("structured-schedule", part="ratios", family="needle 1", method="opposite", bound=0.0, runs=0)
    where = {"p": 3, "bound": 8.04}
    # l = 3 * 9 with q = 24.12: beta_26 = 26 / q; written out, the last step is 0.04 / 8.04
    assert one(found, method="formula", quantity="largest beta", **where).value == pytest.approx(26 / 24.12)
    assert one(found, method="formula", quantity="reach", **where).value == pytest.approx(3 * (26 / 24.12 - 1) * 8.04)
    assert one(found, method="written out", quantity="reach", p=3, bound=7.96).value == pytest.approx(3 * 0.96)
    assert one(found, method="corrected", quantity="reach", **where).value == pytest.approx(1)
    # rho of potentials -1/2 and 1/2, one step: cosh(0) / cosh(1/6) at beta = 1/3 with theta = 1/2
    share = one(found, method="corrected", quantity="sinh", p=3, bound=0.5).value
    assert share == pytest.approx(1)


def test_errors_of_products():
    """Their mean square is that of the exact relative variance of the product."""
    found = run("structured-schedule", part="products", family="needle 4", method="corrected", bound=2.1, runs=30)
    space, theta = family("needle 4"), 2.1
    betas = np.append(np.arange(7) / 6.3, 1.0)
    log_z = space.log_partition(np.outer(np.concatenate([betas, 2 * betas[:-1] - betas[1:]]), [theta]))
    low, high, beyond = log_z[:7], log_z[1:8], log_z[8:]
    samples = math.ceil(65 * 4 * 7 * math.exp(2 / 3))
    variance = np.expm1(beyond + high - 2 * low).sum() / samples
    square = one(found, quantity="root mean square").value ** 2
    assert_near(square, variance * math.sqrt(2 / 30), variance)
    assert one(found, quantity="covered").value == 1
    assert one(found, quantity="samples").value == 7 * samples


def test_needed_samples_of_uniform_averages():
    found = run("structured-schedule", part="sizes", family="labels", method="random", bound=1.0, runs=2)
    assert (np.diff(found.value) < 0).all()


def test_coupling_mixing_and_work():
    found = run("structured-chains", name="needle 4", length=1.0, runs=300, products=5)
    z = math.e + 15 / math.e
    accepted = z / 16 / math.e
    assert one(found, quantity="expected steps").value == pytest.approx(1 / accepted)
    steps = one(found, quantity="steps")
    assert_near(steps.value, steps.standard_error, 1 / accepted)
    blind = one(found, quantity="blind steps")
    assert_near(blind.value, blind.standard_error, math.exp(2))
    assert_near(one(found, quantity="gap").value, 0, 0, rounding=1e-9)
    assert one(found, quantity="Theorem B.2", at=0.01).value == math.ceil(math.log(0.01) / math.log1p(-math.exp(-2)))
    # from the needle the distance is (1 - a)^t (1 - p), from elsewhere it is less for t >= 1
    needle = math.e / z
    for t in (8, 16):
        assert one(found, quantity="distance", at=t).value == pytest.approx((1 - accepted) ** t * (1 - needle))
    assert one(found, quantity="least work").value > 1
    growth = run("structured-chains", name="growth", length=0.0, runs=0, products=0)
    np.testing.assert_allclose(growth.value, growth.bound * math.log(2 * math.e / (1 + math.e)))


def test_gradients_of_labels():
    found = run("structured-gradients", name="labels", runs=300)
    gradients = rows(found, quantity="gradient")
    assert_near(gradients.value, gradients.standard_error, 0)
    width = one(found, quantity="width").value
    assert 0 < width <= 0.5  # |z|_1 / (2 sqrt(8)), z of length 1
    shares = rows(found, quantity="exceeded", samples=10)
    assert (np.diff(shares.value) <= 0).all()


def test_all_claims_read_the_tables():
    whole("structured-schedule", ratios=["needle 1"], products=["needle 2"], methods=[["corrected", 1.0]], runs=5)
    whole("structured-chains", families=["needle 2"], lengths=[0.5], runs=5, products=3)
    whole("structured-gradients", families=["labels"], runs=50)
