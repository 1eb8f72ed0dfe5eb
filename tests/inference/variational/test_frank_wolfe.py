"""Frank-Wolfe over the marginal polytope beside its vertices, trees and exact partition functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import approx_fprime, minimize

from tests.conftest import MODELS, all_states
from tests.inference.message_passing.test_belief_propagation import binary_graphs, forests
from tests.tiers import examples
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
from thesis_cli.inference.message_passing.trw import trw_log_partition_function, uniform_spanning_trees
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.inference.variational.frank_wolfe import Objective, _Mixture, _start, frank_wolfe
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model

ASIA = load_model(MODELS / "asia.uai")


def log_z(graph):
    return np.logaddexp.reduce(graph.log_potential(all_states(graph)))


def ring(seed=0, states=3):
    rng = np.random.default_rng(seed)
    scopes = [(0, 1), (1, 2), (2, 0)]
    factors = [Factor((i,), rng.normal(size=states)) for i in range(3)]
    return FactorGraph([states] * 3, factors + [Factor(s, rng.normal(0, 2, (states, states))) for s in scopes])


@settings(max_examples=examples(10))
@given(binary_graphs())
def test_bounds_hold_after_every_call(graph):
    exact = log_z(graph)
    found = frank_wolfe(graph, 15)
    assert found.guarantee == "exact"
    assert found.map_calls == len(found.trace) <= 15
    assert (found.trace[:, 1] >= exact - 1e-9 * max(1, abs(exact))).all()
    assert (np.diff(found.trace[:, 1]) <= 0).all()
    assert found.upper == found.trace[-1, 1]


@settings(max_examples=examples(5))
@given(forests(impossible=False))
def test_forests_are_exact(graph):
    found = frank_wolfe(graph, 300, tolerance=1e-3)
    exact = log_z(graph)
    assert abs(found.value - exact) <= max(found.gap, 0) + 1e-9 * max(1, abs(exact))
    if found.converged:
        assert found.upper - exact <= 2e-3 * max(1, abs(found.value))


@pytest.mark.parametrize(("steps", "within"), [("corrective", 1e-3), ("plain", 0.02), ("pairwise", 0.02)])
def test_the_maximum_is_that_over_mixtures_of_all_configurations(steps, within, monkeypatch):
    monkeypatch.setattr("thesis_cli.inference.variational.frank_wolfe._turn", lambda *ignored: False)
    graph = ring(states=2)
    form = pairwise(graph)
    objective = Objective(form, uniform_spanning_trees(3, form.edges))
    corners = np.zeros((8, objective.size))
    np.put_along_axis(corners, objective.vertices(all_states(graph)), 1.0, axis=1)

    def loss(logits):
        shares = np.exp(logits - np.logaddexp.reduce(logits))
        value, gradient = objective.value(shares @ corners)
        slopes = corners @ gradient
        return -value, -shares * (slopes - shares @ slopes)

    best = -minimize(loss, np.zeros(8), jac=True, method="BFGS").fun
    found = frank_wolfe(graph, 100, steps=steps, tolerance=1e-5)
    assert best - within <= found.value <= best + 1e-7
    assert max(best - 1e-7, log_z(graph)) <= found.upper <= best + 10 * within


def test_a_pairwise_step_takes_weight_from_a_vertex_that_has_some():
    """So the objective rises, whichever vertex has no weight, the worst one too."""
    form = pairwise(ring(states=2))
    objective = Objective(form, uniform_spanning_trees(3, form.edges))
    corners = objective.vertices(all_states(ring(states=2)))
    for idle in range(8):
        mixture = _Mixture(objective, _start(objective))
        mixture._vertices, weights = corners, (np.arange(9) != 1 + idle) / 8
        mixture._weights, mixture.mu = weights, mixture._mixed(weights)
        before, gradient = objective.value(mixture.mu)
        mixture.add(corners[gradient[corners].sum(axis=1).argmax()], "pairwise", 1)
        assert objective.value(mixture.mu)[0] > before


def test_gradients_are_differences():
    graph = ring(1)
    form = pairwise(graph)
    objective = Objective(form, np.array([0.5, 0.7, 0.9]))
    mu = objective.independent(np.random.default_rng(0).dirichlet(np.ones(3), 3).reshape(-1))
    _, gradient = objective.value(mu)
    np.testing.assert_allclose(gradient, approx_fprime(mu, lambda m: objective.value(m)[0], 1e-8), rtol=1e-3, atol=1e-4)
    states = all_states(graph)
    potential = objective.potential(gradient).log_potential(states)
    np.testing.assert_allclose(potential, gradient[objective.vertices(states)].sum(axis=1))
    assert objective.information(mu) == pytest.approx(np.zeros(3), abs=1e-12)


def test_the_polytope_of_marginals_is_tighter_than_that_of_messages():
    """A frustrated ring: agreement of edges and variables is far from being marginals."""
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph = FactorGraph([2] * 3, [Factor(s, c * sign) for s, c in (((0, 1), 3.0), ((1, 2), 3.0), ((0, 2), -3.0))])
    by_messages, found = trw_log_partition_function(graph).value, frank_wolfe(graph, 60)
    assert log_z(graph) <= found.upper < by_messages - 0.5


def test_bethe_over_marginals_agrees_with_belief_propagation_where_that_is_right():
    graph = ring(2)
    weak = graph.tempered(0.2)
    found = frank_wolfe(weak, 200, entropy="bethe", tolerance=1e-5)
    assert found.value == pytest.approx(bethe_log_partition_function(weak).value, abs=1e-3)
    assert (found.weights == 1).all()


def test_observed_variables_and_models_without_edges():
    graph = ring().condition({1: 2})
    assert frank_wolfe(graph, 200).upper == pytest.approx(log_z(graph), abs=0.02)
    alone = FactorGraph([3, 1], [Factor((0,), np.array([0.0, 1.0, 2.0])), Factor((), np.array(0.5))])
    assert frank_wolfe(alone, 200).upper == pytest.approx(log_z(alone), abs=0.02)


@pytest.mark.parametrize(
    ("graph", "calls", "message"),
    [
        (ASIA, 1, "has 3 variables"),
        (FactorGraph([2, 2], [Factor((0, 1), np.array([[0.0, -np.inf], [0, 0]]))]), 1, "no impossible configurations"),
        (ring(), 0, "0 MAP calls; it must be at least one"),
    ],
)
def test_refusals(graph, calls, message):
    with pytest.raises((InputError, UnsuitableModel)) as raised:
        frank_wolfe(graph, calls)
    assert message in str(raised.value)
