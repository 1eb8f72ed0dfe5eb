import itertools

import numpy as np
import pytest
from scipy.special import expit

from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.variational.bethe_mesh import (
    Attractive,
    best_pairs,
    bethe_optimum,
    curved_errors,
    mesh_of,
    minimum_on,
    polished,
)
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass

SPIN = np.array([-1.0, 1.0])


def ring(n, coupling, field=0.05):
    """A ring of attractive couplings, with two chords."""
    edges = [(i, (i + 1) % n) for i in range(n)] + [(0, 2), (1, 3)]
    factors = [Factor(e, coupling * np.outer(SPIN, SPIN)) for e in edges]
    return FactorGraph([2] * n, [*factors, *(Factor((i,), field * (i - 1) * SPIN) for i in range(n))])


def test_a_tree_has_its_ln_z_even_if_flipped_and_observed():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (1, 3), (3, 4)]
    factors = [Factor(e, rng.normal(0, 2, (2, 2))) for e in edges]
    graph = FactorGraph([2] * 5, [*factors, Factor((2,), rng.normal(size=2)), Factor((), np.array(0.7))])
    for model in (graph, graph.condition({3: 1}), graph.condition(dict.fromkeys(range(5), 1))):
        found = bethe_optimum(model, 0.01, 10**5)
        assert found.value == pytest.approx(log_partition_function(model), abs=1e-9)
        assert found.upper == pytest.approx(found.value, abs=1e-6)


def test_the_gradient_is_that_of_the_value():
    model = Attractive.of(ring(5, 0.8))
    q, step = np.random.default_rng(1).random(5), 1e-6
    moved = [[model.value(q + sign * step * row) for sign in (1, -1)] for row in np.eye(5)]
    np.testing.assert_allclose(model.gradient(q), [(b - a) / (2 * step) for a, b in moved], atol=1e-7)


def test_correlations_have_the_bound_of_their_marginal():
    """The largest r / (1 - r) over the other marginal is (sqrt(1 + 4 v sinh(w / 2)^2) - 1) / 2."""
    q = np.array([0.02, 0.3, 0.5, 0.9])[:, None]
    r = expit(np.linspace(-12, 12, 4001))
    for w in (0.1, 2.0, 6.0):
        covariance = best_pairs(np.array(w), q, r) - q * r
        squared = covariance**2 / (q * (1 - q) * r * (1 - r))
        bound = (np.sqrt(1 + 4 * q * (1 - q) * np.sinh(w / 2) ** 2) - 1) / 2
        np.testing.assert_allclose((squared / (1 - squared)).max(axis=1, keepdims=True), bound, rtol=1e-4)
        assert (squared / (1 - squared) <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("coupling", [0.2, 0.7, 1.5])
def test_the_maximum_is_between_its_bounds(coupling):
    """Against descents from many points; ln Z is above, as for every attractive model."""
    graph = ring(6, coupling, 0.003)
    model = Attractive.of(graph)
    found = bethe_optimum(graph, 0.02, 10**5)
    low, high = model.stationary()
    rng = np.random.default_rng(2)
    best = max(model.value(polished(model, q, low - 9, high + 9)) for q in rng.random((30, 6)))
    assert found.value == pytest.approx(best, abs=1e-7)
    assert best <= found.upper <= found.value + 0.02
    assert found.value <= log_partition_function(graph)
    assert model.value(found.marginals) == found.value
    assert (found.sizes.max() > 1) == (coupling > 0.3)


def test_one_cut_finds_the_best_point_of_a_mesh():
    model = Attractive.of(ring(4, 0.5, 0.2))
    low, high = np.full(4, -6.0), np.full(4, 6.0)
    mesh = mesh_of(model, low, high, np.array([4, 3, 1, 5]))
    found, least = minimum_on(model, mesh)
    values = []
    for states in itertools.product(*map(range, (4, 3, 1, 5))):
        q = np.array([points[k] for points, k in zip(mesh.points, states, strict=True)])
        taken = sum(errors[k] for errors, k in zip(mesh.errors, states, strict=True))
        values.append((-model.value(q) - taken, q, -model.value(q)))
    lowest, expected, plain = min(values, key=lambda found: found[0])
    assert plain > min(found[2] for found in values)
    assert least == pytest.approx(lowest, abs=1e-9)
    np.testing.assert_array_equal(found, expected)


def test_errors_bound_the_second_order_of_moves():
    """Moves of the same size by all variables, in directions of all signs, from random points."""
    rng, step = np.random.default_rng(4), 1e-3
    for coupling in (0.0, 0.4, 2.0):
        model = Attractive.of(ring(5, coupling)) if coupling else Attractive.of(FactorGraph([2] * 5, []))
        for q in rng.uniform(0.1, 0.9, (20, 5)):
            bound = sum(
                curved_errors(model.coupling[(model.edges == v).any(axis=1)], q[[[v], [v]]] + [[-step], [step]], q[[v]])
                for v in range(5)
            )
            for signs in rng.choice([-1.0, 1.0], (8, 5)):
                moved = q + signs * step
                second = model.value(q) - model.value(moved) - model.gradient(q) @ (moved - q)
                assert second <= bound * (1 + 1e-4) + 1e-13
                if not coupling:
                    assert second >= bound * 0.95


def test_errors_bound_the_way_to_a_middle_and_fall_with_the_square_of_the_cells():
    model = Attractive.of(ring(5, 1.2))
    low, high = model.stationary()
    best = max((polished(model, expit(x), low, high) for x in (low, high, (low + high) / 2)), key=model.value)
    totals = []
    for size in (2, 5, 40, 80):
        mesh = mesh_of(model, low, high, np.full(5, size))
        angles = [np.arcsin(np.sqrt(points)) for points in mesh.points]
        at = [np.abs(a - x).argmin() for a, x in zip(angles, np.arcsin(np.sqrt(best)), strict=True)]
        middle = np.array([p[k] for p, k in zip(mesh.points, at, strict=True)])
        error = sum(e[k] for e, k in zip(mesh.errors, at, strict=True))
        assert 0 <= model.value(best) - model.value(middle) <= error
        totals.append(sum(e.max() for e in mesh.errors))
    assert 3 < totals[2] / totals[3] < 5


def test_a_grid_beyond_enumeration():
    rng = np.random.default_rng(3)
    graph = SpinGlass(rng.uniform(-0.1, 0.1, (8, 8)), rng.random((8, 7)), rng.random((7, 8))).graph()
    found = bethe_optimum(graph, 0.5, 10**5)
    assert found.value <= found.upper <= found.value + 0.5


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (FactorGraph([3, 2], []), "variable 0 has 3 states"),
        (FactorGraph([2, 2], [Factor((0, 1), np.array([[0, -np.inf], [0, 0]]))]), "forbids a configuration"),
        (ring(5, -1.0), "frustrated"),
    ],
)
def test_unsuitable_models_are_refused(graph, message):
    with pytest.raises(UnsuitableModel, match=message):
        bethe_optimum(graph, 0.1, 1000)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("strength", [354.0, 9000.0])
def test_marginals_that_round_to_zero(strength):
    field = Factor((0,), np.array([2 * strength - 18, 0.0]))
    found = bethe_optimum(FactorGraph([2, 2], [field, Factor((0, 1), strength * np.outer(SPIN, SPIN))]), 0.01, 10**5)
    assert found.value == pytest.approx(3 * strength - 18, abs=1e-9)
    assert found.upper == pytest.approx(3 * strength - 18, abs=1e-6)


def test_epsilon_is_positive():
    with pytest.raises(InputError, match="epsilon is nan"):
        bethe_optimum(ring(4, 1.0), float("nan"), 1000)
