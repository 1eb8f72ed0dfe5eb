"""Marginals against brute force, and pseudo-marginals against the slope of the bound that they
belong to.
"""

import numpy as np
import pytest
from hypothesis import given

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.inference import marginals
from thesis_cli.inference.marginals import BackwardRoute, _by_parts, exact_marginals
from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
from thesis_cli.inference.message_passing.trw import trw_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising
from thesis_cli.studies.models.families import causes


def expected_marginals(graph):
    """By enumeration; the model has a possible configuration."""
    states = all_states(graph)
    phi = graph.log_potential(states)
    p = np.exp(phi - phi.max())
    p /= p.sum()
    return np.concatenate([np.bincount(states[:, i], p, k) for i, k in enumerate(graph.cardinalities)])


@given(factor_graphs())
def test_both_algorithms_agree_with_brute_force(graph):
    states = all_states(graph)
    phi = graph.log_potential(states)
    if phi.max() == -np.inf:
        for memory in (2**20, 0):
            with pytest.raises(NoConfiguration):
                exact_marginals(graph, memory=memory)
        return
    expected = expected_marginals(graph)
    for memory, method in ((2**20, "elimination"), (0, "enumeration")):
        found = exact_marginals(graph, memory=memory)
        assert found.method == method
        np.testing.assert_allclose(found.probabilities, expected, atol=1e-12)
        assert found.log_z == pytest.approx(np.logaddexp.reduce(phi), abs=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_nodes_below_the_evidence_come_part_by_part(seed):
    """Causes of 3 findings, one of which is observed, against enumeration."""
    network = causes(2, 3, 2, 0.5, np.random.default_rng(seed))
    graph = network.graph.condition(dict(list(network.evidence.items())[:1]))
    found = _by_parts(graph, 2**20)
    np.testing.assert_allclose(found.probabilities, expected_marginals(graph), atol=1e-12)
    assert found.log_z == pytest.approx(np.logaddexp.reduce(graph.log_potential(all_states(graph))), abs=1e-10)


def test_a_part_may_depend_on_nothing_that_is_left():
    found = _by_parts(FactorGraph([3, 3], [Factor((0, 1), np.eye(3))]), 2**20)
    assert found.log_z == pytest.approx(np.log(3 * (np.e + 2)), abs=1e-12)
    np.testing.assert_allclose(found.probabilities, np.full(6, 1 / 3))


def test_no_parts_where_one_does_not_fit():
    assert _by_parts(causes(2, 3, 2, 0.5, np.random.default_rng(0)).conditioned(), 0) is None


def test_enumeration_adds_up_over_blocks():
    graph = ising(3, 6, 0.7, np.random.default_rng(0))
    by_elimination = exact_marginals(graph)
    done = []
    by_enumeration = exact_marginals(graph, memory=0, progress=done.append)
    np.testing.assert_allclose(by_enumeration.probabilities, by_elimination.probabilities, atol=1e-12)
    assert sum(done) == 2**18
    with pytest.raises(ModelTooLarge):
        exact_marginals(graph, memory=0, max_configurations=2**17)


def slope(value, graph, variable):
    """Derivative of ln Z by the log-potential of state 0 of a variable, which is a marginal."""
    step, field = 1e-3, np.array([1.0, 0.0])
    up, down = (graph.with_factors([*graph.factors, Factor((variable,), s * step * field)]) for s in (1, -1))
    return (value(up) - value(down)) / (2 * step)


def bethe(graph):
    return bethe_log_partition_function(graph, tolerance=1e-12)


def trw(graph):
    return trw_log_partition_function(graph, tolerance=1e-10, weight_steps=0)


@pytest.mark.parametrize("method", [bethe, trw])
@pytest.mark.parametrize("hard", [False, True])
def test_pseudo_marginals_are_slopes(method, hard):
    graph = ising(3, 3, 0.4, np.random.default_rng(1))
    if hard:
        never = np.zeros((2, 2, 2))
        never[0, 1, 1] = -np.inf
        graph = graph.with_factors([*graph.factors, Factor((0, 4, 8), never)])
    found = method(graph).marginals.reshape(-1, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    for variable in (0, 4, 7):
        assert found[variable, 0] == pytest.approx(slope(lambda g: method(g).value, graph, variable), abs=2e-5)


def test_an_observed_variable_has_its_one_state():
    graph = FactorGraph([2, 3], [Factor((0, 1), np.arange(6.0).reshape(2, 3))]).condition({1: 2})
    for found in (exact_marginals(graph).probabilities, bethe(graph).marginals, trw(graph).marginals):
        np.testing.assert_allclose(found, [1 / (1 + np.e**3), 1 / (1 + np.e**-3), 1], atol=1e-9)


class _Named:
    def __init__(self, name):
        self.name = name

    def marginals(self):
        return 0.0, np.ones(1)


def test_marginals_take_the_route_whose_pass_back_is_quickest(monkeypatch):
    routes = [BackwardRoute(_Named("elimination"), 1.0, 5.0), BackwardRoute(_Named("contraction"), 1.2, 3.0)]
    monkeypatch.setattr(marginals, "backward_routes", lambda *_: (routes, []))
    assert exact_marginals(FactorGraph([1], [])).method == "contraction"
