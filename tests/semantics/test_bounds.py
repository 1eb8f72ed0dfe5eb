"""Bounds of errors, against the distances themselves."""

import math

import numpy as np
import pytest

from tests.tiers import examples
from thesis_cli.embeddings.expansion import Expansion, push_forward, wasserstein
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.semantics.linear import from_wasserstein, independent_sum

KERNELS = [Gaussian(0.6), Laplace(0.6)]


def pairs():
    """Random expansions on a few near and far points; a second one is the first, moved a little, or another."""
    rng = np.random.default_rng(5)
    for _ in range(examples(40)):
        a, b = rng.normal(size=(2, 4)) * rng.choice([0.1, 1, 10], 4)
        b = a + 0.1 * b if rng.random() < 0.5 else b
        weights = rng.dirichlet(np.ones(4), 2)
        yield rng, Expansion(a, weights[0]), Expansion(b, weights[1 if rng.random() < 0.5 else 0])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_wasserstein_distance_bounds_the_distance_in_the_rkhs(kernel):
    for _, p, q in pairs():
        assert kernel.distance(p, q) <= from_wasserstein(kernel, wasserstein(p, q)) + 1e-7
    one, other = Expansion(np.array([1.0])), Expansion(np.array([1.4]))
    assert kernel.distance(one, other) == pytest.approx(from_wasserstein(kernel, 0.4))
    limit = 1e-6 / 0.6 if isinstance(kernel, Gaussian) else math.sqrt(2e-6 / 0.6)
    assert from_wasserstein(kernel, 1e-6) == pytest.approx(limit, rel=1e-5)
    assert from_wasserstein(kernel, math.inf) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_of_independent_variables(kernel):
    """The second of each pair approximates the first; its weights may have any sign."""
    for rng, p, q in pairs():
        r, s = Expansion(rng.normal(size=3)), Expansion(rng.normal(size=3), rng.normal(size=3))
        error = kernel.distance(push_forward(np.add, p, r), push_forward(np.add, q, s))
        variations = (q.total_variation, s.total_variation)
        assert error <= independent_sum(kernel.distance(p, q), kernel.distance(r, s), variations) + 1e-7
    assert independent_sum(0.1, 0.2, (1.0, 3.0)) == pytest.approx(0.3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_multiples_of_a_constant_attain_the_bound_of_sums(kernel):
    one, double, triple = (Expansion(np.zeros(1), np.array([weight])) for weight in (1.0, 2.0, 3.0))
    error = kernel.distance(push_forward(np.add, one, one), push_forward(np.add, double, triple))
    bound = independent_sum(kernel.distance(one, double), kernel.distance(one, triple), (2.0, 3.0))
    assert error == pytest.approx(bound)
