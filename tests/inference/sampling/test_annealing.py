"""Annealing beside exact partition functions."""

import math

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.sampling.annealing import (
    _integrated,
    annealed,
    log_mean_bound,
    reversely_annealed,
    thermodynamic_integral,
)
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.inference.sampling.gibbs import GibbsPath
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model

ISING, ASIA, SAT = (load_model(MODELS / name) for name in ("ising-4x4.uai", "asia.uai", "sat-16-60.uai"))


def seed(number=0):
    return np.random.SeedSequence(number)


@pytest.mark.parametrize("graph", [ISING, ASIA, SAT], ids=["soft", "hard", "counting"])
def test_estimates_agree_with_the_exact_answer(graph):
    log_z = exact_log_partition_function(graph)[0]
    found = annealed(graph, 400, 100, seed())
    assert 0 < found.standard_error < 0.2
    assert abs(math.expm1(found.value - log_z)) < 5 * found.standard_error
    assert found.lower(0.99) < log_z
    states, _ = exact_samples(graph, 100, np.random.default_rng(1))
    back = reversely_annealed(graph, states, found.steps, np.random.default_rng(2))
    assert log_z < -back.lower(0.99) < log_z + 2


def test_a_product_needs_no_samples():
    """Variables that nothing ties: all weights are Z, and the integrand is 0."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([2, 3, 1], [Factor((i,), rng.normal(size=k)) for i, k in enumerate([2, 3, 1])])
    log_z = exact_log_partition_function(graph)[0]
    found = annealed(graph, 3, 2, seed())
    np.testing.assert_allclose(found.logs, log_z)
    assert found.standard_error == math.inf  # 3 chains
    integral = thermodynamic_integral(graph, 3, 2, seed())
    assert (integral.value, integral.lower, integral.upper) == pytest.approx((log_z,) * 3)


def test_integrals_agree_with_the_exact_answer():
    log_z = exact_log_partition_function(ISING)[0]
    found = thermodynamic_integral(ISING, 40, 60, seed())
    assert 0 < found.standard_error < 0.1
    assert abs(found.value - log_z) < 5 * found.standard_error
    assert found.lower < found.value < found.upper
    assert np.all(np.diff(found.steps) > 0)
    assert (found.steps[0], found.steps[-1]) == (0, 1)


def test_integrals_of_models_with_zeros_count_the_possible_end():
    log_z = exact_log_partition_function(SAT)[0]
    found = thermodynamic_integral(SAT, 60, 100, seed(1))
    assert abs(found.value - log_z) < 5 * found.standard_error + 0.5  # chains stay in one solution


def test_integrals_of_exact_moments_have_the_error_of_the_corrected_trapezoidal_rule():
    """h^4 / 720 times the largest fourth derivative of the integrand at most (Euler and Maclaurin), which is
    the fifth cumulant of r in {0, 2}.
    """
    graph = FactorGraph([2, 2], [Factor((0, 1), np.diag([2.0, 2.0]))])
    steps = np.linspace(0, 1, 5)
    chances = 1 / (1 + np.exp(-2 * steps))
    moments = np.concatenate([2 * chances, 4 * chances, [1.0]])
    found = _integrated(GibbsPath(graph, 2), steps, np.stack([moments, moments], axis=1))
    p = np.linspace(0, 1, 1001)
    cumulants = 2**5 * p * (1 - p) * (1 - 2 * p) * (1 - 12 * p * (1 - p))
    error = abs(found.value - exact_log_partition_function(graph)[0])
    assert error < 0.25**4 / 720 * np.abs(cumulants).max()
    assert found.standard_error == 0


def test_results_do_not_depend_on_the_number_of_threads():
    one, two = (annealed(ISING, 40, 5, seed(), jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.logs, two.logs)


def test_the_bound_on_a_mean_by_hand():
    assert log_mean_bound(np.full(50, 2.0), 0.95) == pytest.approx(2 + math.log(0.05 / 3) / 50)
    one = log_mean_bound(np.array([0.0] + [-math.inf] * 9), 0.9)  # every other grouping has an empty group
    assert one == pytest.approx(-math.log(10) + math.log(0.1 / 3))
    assert log_mean_bound(np.full(4, -math.inf), 0.9) == -math.inf


def test_the_bound_holds_as_often_as_it_says():
    """Weights whose logarithms are normal with variance 4: their mean is exp(2)."""
    rng = np.random.default_rng(5)
    bounds = np.array([log_mean_bound(rng.normal(0, 2, 30), 0.8) for _ in range(300)])
    assert (bounds > 2).mean() < 0.2
    assert np.median(bounds) > 0  # the mean logarithm, 0, is a bound by Jensen's inequality


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: annealed(ISING, 1, 5, seed()), "there is 1 chain; take at least 2"),
        (lambda: annealed(ISING, 2, 0, seed()), "there are 0 temperatures; take at least 1"),
        (lambda: thermodynamic_integral(ISING, 2, 2, seed(), sweeps=1), "1 sweeps at each temperature; it must be"),
    ],
)
def test_refusals(work, message):
    with pytest.raises(InputError) as raised:
        work()
    assert message in str(raised.value)
