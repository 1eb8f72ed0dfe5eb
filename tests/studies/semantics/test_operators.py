"""Norms of maps between embeddings, against images of expansions."""

import math

import numpy as np
import pytest

from tests.semantics.test_bounds import KERNELS, pairs
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.studies.semantics.operators import largest_ratio, monotone, scaling


@pytest.mark.parametrize("kernel", KERNELS)
def test_multiples(kernel):
    for rng, p, q in pairs():
        factor = float(rng.choice([-4, -1, -0.3, 0, 0.01, 0.5, 1, 2]))
        error = kernel.distance(p.map(lambda x, c=factor: c * x + 3), q.map(lambda x, c=factor: c * x + 3))
        assert error <= scaling(kernel, factor) * max(kernel.distance(p, q), 1e-300) + 1e-7
    assert scaling(kernel, -1) == 1
    assert scaling(Gaussian(1.0), 1.01) == math.inf


def test_the_norms_of_scaling_are_attained():
    for kernel, factor in ((Gaussian(2.0), 0.25), (Laplace(2.0), -0.25), (Laplace(2.0), 4.0)):
        assert largest_ratio(kernel, factor) == pytest.approx(scaling(kernel, factor), rel=0.01)


def test_functions_with_slopes_bounded_on_both_sides():
    laplace = Laplace(0.6)
    for _, p, q in pairs():
        points = np.concatenate([p.points, q.points])
        p, q = (Expansion(e.points / np.abs(points).max(), e.weights) for e in (p, q))
        error = laplace.distance(p.map(np.exp), q.map(np.exp))
        assert error <= monotone(laplace, math.exp(-1), math.e) * laplace.distance(p, q) + 1e-7
    assert monotone(Gaussian(1.0), 0.5, 1) == math.inf
    assert monotone(laplace, 0, 1) == math.inf
    assert monotone(laplace, 3, 3) == pytest.approx(math.sqrt(3))
    with pytest.raises(InputError, match="slopes"):
        monotone(laplace, 2, 1)
