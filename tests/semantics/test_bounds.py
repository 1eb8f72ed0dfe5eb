"""Bounds of errors, against the distances themselves."""

import math

import numpy as np
import pytest

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion, push_forward, wasserstein
from thesis_cli.embeddings.kernels import Gaussian, Laplace
from thesis_cli.semantics.bounds import from_wasserstein, independent_sum, monotone, scaling

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
def test_multiples(kernel):
    for rng, p, q in pairs():
        factor = float(rng.choice([-4, -1, -0.3, 0, 0.01, 0.5, 1, 2]))
        error = kernel.distance(p.map(lambda x, c=factor: c * x + 3), q.map(lambda x, c=factor: c * x + 3))
        assert error <= scaling(kernel, factor) * max(kernel.distance(p, q), 1e-300) + 1e-7
    assert scaling(kernel, -1) == 1
    assert scaling(Gaussian(1.0), 1.01) == math.inf


def test_the_norms_of_scaling_are_attained():
    """The norm of the adjoint, g -> g(c x), on the g that attains it."""
    wide = Expansion(np.linspace(-400, 400, 4001), np.full(4001, 1.0))  # nearly constant: frequencies near 0
    for kernel, factor in ((Gaussian(1.0), 0.25), (Laplace(1.0), 0.25)):
        ratio = kernel.norm(wide.map(lambda x, c=factor: c * x)) / kernel.norm(wide)
        assert ratio == pytest.approx(scaling(kernel, factor), rel=0.01)
    window = np.sin(np.arange(4000) * math.pi / 4000) ** 2
    steep = Expansion(np.arange(4000) * 1e-4, window * (-1.0) ** np.arange(4000))  # frequencies near infinity
    laplace = Laplace(1.0)
    ratio = laplace.norm(steep.map(lambda x: 4 * x)) / laplace.norm(steep)
    assert ratio == pytest.approx(scaling(laplace, 4), rel=0.01)


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


def test_no_bound_for_a_contraction_that_is_not_affine():
    """Differences of order n that are steeper the larger n: tanh takes them further and further apart in the Gaussian
    RKHS, x / 2 does not."""
    kernel = Gaussian(1.0)
    ratios = []
    for order in (2, 4, 6, 8):
        signs = np.array([math.comb(order, k) * (-1.0) ** k for k in range(order + 1)])
        g = Expansion(0.3 * (np.arange(order + 1) - order / 2) + 0.3, signs)
        assert kernel.norm(g.map(lambda x: x / 2)) <= scaling(kernel, 0.5) * kernel.norm(g)
        ratios.append(kernel.norm(g.map(np.tanh)) / kernel.norm(g))
    assert (np.diff(np.log(ratios)) > np.log(1.5)).all()
