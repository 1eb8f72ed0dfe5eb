"""Deviations of sample means of known laws, and gradients of both functions on models of two variables."""

import math

import numpy as np
import pytest

from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.sample_means import (
    EXPONENTIAL,
    NORMAL,
    decay,
    deviations,
    maximum_and_noise,
    shape,
    squared_gradients,
    steepest,
)


def test_deviations_have_the_variance_of_independent_means():
    values = np.random.default_rng(0).standard_normal((4000, 10)) + 7 * np.arange(4000)[:, None]
    for count in (1, 3, 5):
        found = deviations(values, count)
        assert found.shape == (4000, 10 // count)
        square = (found**2).mean()
        assert square == pytest.approx(1 / count, abs=5 * math.sqrt(2 / found.size) / count * 2)


@pytest.mark.parametrize(("name", "law"), [("standard_normal", NORMAL), ("standard_exponential", EXPONENTIAL)])
def test_the_shape_tells_the_laws_apart(name, law):
    draws = getattr(np.random.default_rng(1), name)((300, 400))
    value, error = shape(draws)
    assert value == pytest.approx(law, abs=5 * error)
    each, errors = zip(*map(shape, draws), strict=True)
    assert np.std(each) == pytest.approx(np.mean(errors), rel=0.25)


def test_the_rate_of_an_exponential_law():
    sizes = np.random.default_rng(2).standard_exponential((1000, 400)) / 3
    shares = zip((sizes > 0.2).mean(axis=1), (sizes > 0.6).mean(axis=1), strict=True)
    rates, errors = zip(*(decay(pair, (0.2, 0.6), 400) for pair in shares), strict=True)
    assert np.mean(rates) == pytest.approx(3, abs=5 * np.mean(errors) / math.sqrt(1000) + 0.05)
    assert np.std(rates) == pytest.approx(np.mean(errors), rel=0.1)


def test_gradients_and_jumps_of_both_functions():
    rng = np.random.default_rng(3)
    glass = random_spin_glass(1, 2, 2.0, 1.0, "attractive", rng)
    solver = GraphCut(glass.graph())
    noise = gumbel(rng, 6, 4)
    maximum, at_maximum = maximum_and_noise(solver, noise)
    states = solver.maximise(noise)[1]
    np.testing.assert_allclose(maximum - at_maximum, glass.graph().log_potential(states))
    np.testing.assert_allclose(squared_gradients(solver, 3, rng), 2, rtol=1e-4)
    smooth, jumping = steepest(solver, 0.01, 2000, rng)
    assert smooth <= 1 + 1e-9
    assert jumping > 10
