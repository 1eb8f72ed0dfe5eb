"""Expansions of known elements and their images."""

import math

import numpy as np
import pytest

from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.studies.semantics.operators import (
    distance_from_zero,
    growth,
    oscillation,
    positive,
    vanishing_steps,
)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0)])
def test_an_expansion_of_the_constant_0_has_the_constant_1_as_its_image(kernel):
    steps = vanishing_steps(1000)
    assert kernel.distance(steps, Expansion(np.array([0.001]))) < 1e-7
    assert distance_from_zero(kernel, steps) < 0.05
    one = Expansion(np.ones(1))
    assert kernel.distance(steps.map(positive), one) < 1e-7
    assert distance_from_zero(kernel, one) == pytest.approx(
        math.sqrt(2 - 2 * kernel.matrix(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    )


def test_differences_of_an_order_vanish_on_polynomials():
    g = oscillation(4)
    for power in range(4):
        assert g.weights @ g.points[:, 0] ** power == pytest.approx(0, abs=1e-12)
    assert g.weights @ g.points[:, 0] ** 4 == pytest.approx(math.factorial(4) * 0.3**4)


def test_only_affine_contractions_contract():
    kernel = Gaussian(1.0)
    assert growth(kernel, lambda x: x + 5, 6) == pytest.approx(1)
    assert growth(kernel, lambda x: x / 2, 6) < 0.05
    assert growth(kernel, np.tanh, 6) > 3
