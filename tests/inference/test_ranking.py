import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.inference.external.test_cost_function_search import Here
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration, UnsuitableModel
from thesis_cli.inference.external import cost_function_search
from thesis_cli.inference.ranking import best_configurations
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.studies.models.examples import ising


def rounded(graph):
    """The same model with log-potentials in halves, so that many configurations tie."""
    return graph.with_factors([Factor(f.scope, np.round(f.table) / 2) for f in graph.factors])


@settings(max_examples=examples(25))
@given(factor_graphs(4), st.integers(1, 40), st.booleans(), st.sampled_from(["auto", "elimination", "toulbar2"]))
def test_a_ranking_is_that_of_brute_force(graph, count, ties, solver):
    if solver == "toulbar2":
        pytest.importorskip("pytoulbar2")
    graph = rounded(graph) if ties else graph
    phi = np.sort(graph.log_potential(all_states(graph)))[::-1]
    phi = phi[phi > -np.inf]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_function_search, "Child", Here)
        if not phi.size:
            with pytest.raises(NoConfiguration):
                best_configurations(graph, count, solver)
            return
        found = best_configurations(graph, count, solver)
    np.testing.assert_allclose(found.values, phi[:count], rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(graph.log_potential(found.states), found.values)
    assert len(np.unique(found.states, axis=0)) == len(found.states)
    assert found.complete == (phi.size < count)
    assert not found.late


@pytest.mark.parametrize("solver", ["grid", "graph-cut"])
def test_solvers_of_grids_rank_under_evidence(solver):
    graph = ising(3, 4, 0.4, np.random.default_rng(0))
    evidence = {2: 1, 7: 0}
    every = all_states(graph)
    agree = every[(every[:, 2] == 1) & (every[:, 7] == 0)]
    order = np.argsort(-graph.log_potential(agree))[:20]
    found = best_configurations(graph.condition(evidence), 20, solver)
    np.testing.assert_array_equal(found.states, agree[order])


@pytest.mark.parametrize("solver", ["elimination", "grid"])
def test_configurations_that_differ_by_all_the_range_are_ranked(solver):
    found = best_configurations(FactorGraph([2], [Factor((0,), np.array([3.5e71, -7e71]))]), 5, solver)
    assert found.complete
    np.testing.assert_array_equal(found.values, [3.5e71, -7e71])


def test_vectors_are_ranked_by_index(monkeypatch):
    values = np.random.default_rng(0).normal(size=200_000)
    values[::3] = -np.inf
    found = best_configurations(LogPotentials(values), 5)
    np.testing.assert_array_equal(found.states[:, 0], np.argsort(-values)[:5])


def test_what_is_known_when_time_is_up(monkeypatch):
    graph = ising(6, 6, 0.4, np.random.default_rng(0))
    best = best_configurations(graph, 10, "grid")
    found = best_configurations(graph, 10, "grid", time_limit=0)
    assert (found.late, found.complete) == (True, False)
    np.testing.assert_array_equal(found.states, best.states[: len(found.states)])


def test_an_approximate_solver_ranks_nothing():
    with pytest.raises(UnsuitableModel, match="--best needs an exact solver, not trw-s; leave --solver out"):
        best_configurations(FactorGraph([2], []), 2, "trw-s")
