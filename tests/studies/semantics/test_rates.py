"""Errors of embeddings of functions of two variables."""

import math

import numpy as np
import pytest

from thesis_cli.embeddings.closed_forms import Laws
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.studies.semantics.cases import PAIRS, normal
from thesis_cli.studies.semantics.rates import WEIGHTS, TargetEmbedding, dense, log_slope, mean_errors, spread

KERNEL = Gaussian(1.0)


def test_a_dense_expansion_stands_for_its_law():
    """Against the closed form, and against distances between expansions."""
    law = dense(normal(0.5, 1.2), 2000)
    assert Laws.normal(0.5, 1.2).distance(law, KERNEL) < 1e-3
    some = Expansion(np.array([0.0, 1.0, 7.0]))
    for kernel in (KERNEL, Laplace(1.0)):
        assert TargetEmbedding(law, kernel).distance(some) == pytest.approx(kernel.distance(law, some), abs=1e-7)


def test_the_error_of_monte_carlo():
    target, rng = TargetEmbedding(dense(normal(0, 1), 2000), KERNEL), np.random.default_rng(1)
    squares = np.array([target.distance(Expansion(rng.normal(size=20))) ** 2 for _ in range(100)])
    assert abs(squares.mean() - target.monte_carlo(20) ** 2) < 5 * squares.std() / math.sqrt(100)


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_sum_to_1_and_their_squares_vanish(name):
    for size in (2, 16, 1000):
        weights = WEIGHTS[name](size)
        assert weights.shape == (size,)
        assert weights.sum() == pytest.approx(1)
    assert spread(WEIGHTS[name](4000)) < 0.55 * spread(WEIGHTS[name](100))


def test_mean_errors_are_those_of_the_variance():
    """For one sample each the mean squared error is 2 - 2 <mu, mu> up to that of the mean."""
    ((rate, error, standard_error),) = mean_errors(PAIRS["X > Y"], KERNEL, "equal", [1], 100, np.random.default_rng(2))
    p = PAIRS["X > Y"].law(np.linspace(0, 1, 4001)).mean()
    apart = math.sqrt(2 - 2 * math.exp(-0.5))
    wanted = 2 * p * (1 - p) * apart  # the difference is (indicator - p) (Phi(1) - Phi(0))
    assert rate == 2
    assert abs(error - wanted) < 5 * standard_error + 1e-3


def test_weights_that_depend_on_the_samples_leave_an_error():
    (_, chosen, _), (_, least, _) = (
        mean_errors(PAIRS["X + Y"], KERNEL, name, [40], 20, np.random.default_rng(3))[0] for name in ("chosen", "equal")
    )
    assert chosen > 3 * least


def test_slopes():
    x = np.array([1.0, 10.0, 100.0])
    found = log_slope(x, 3 * x**-0.5, 0.1 * x**-0.5)
    assert found.value == pytest.approx(-0.5)
    relative = 0.1 / 3
    assert found.standard_error == pytest.approx(relative / (math.log(10) * math.sqrt(2)))
