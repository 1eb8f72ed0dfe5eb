import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import InputError, ModelTooLarge, UnsuitableModel, WorkFailed
from thesis_cli.inference.best_configuration import best_configuration
from thesis_cli.inference.external import cost_function_search
from thesis_cli.models.factor_graph import Factor, LogPotentials
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ising, random_3_sat


@given(factor_graphs(), st.booleans())
def test_map_is_brute_force_by_either_route(graph, narrow):
    phi = graph.log_potential(all_states(graph))
    if phi.max() == -np.inf:
        with pytest.raises(InputError, match="no configuration is possible"):
            best_configuration(graph, memory=1 if narrow else 2**30)
        return
    found = best_configuration(graph, memory=1 if narrow else 2**30)
    assert found.method in (["graph cut", "enumeration"] if narrow else ["grid transfer", "graph cut", "elimination"])
    assert (found.guarantee, found.bound) == ("exact", found.value)
    assert found.value == pytest.approx(phi.max(), rel=1e-12, abs=1e-11)
    assert graph.log_potential(found.states[np.newaxis])[0] == pytest.approx(found.value, rel=1e-12, abs=1e-11)


@given(factor_graphs(), st.sampled_from(["trw-s", "qpbo", "max-product"]))
def test_an_approximate_solver_says_how_good_its_map_is(graph, name):
    best = graph.log_potential(all_states(graph)).max()
    try:
        found = best_configuration(graph, name)
    except (UnsuitableModel, InputError, WorkFailed):  # it may find no possible configuration
        return
    assert found.value <= best + 1e-9 * max(1, abs(best))
    assert found.bound >= best - 1e-9 * max(1, abs(best))
    if found.guarantee == "exact":
        assert found.value == pytest.approx(best, rel=1e-8, abs=1e-8)


def test_beyond_every_exact_route_there_is_trw_s_with_its_bound():
    graph = random_spin_glass(20, 20, 2.0, 0.1, "mixed", np.random.default_rng(0)).graph()
    best = best_configuration(graph).value
    found = best_configuration(graph, memory=10_000, time_limit=0.5)
    assert found.method in ("TRW-S", "block moves")
    assert found.guarantee == "approximate"
    assert found.value <= best + 1e-9
    assert best < found.bound < np.inf
    assert "not grid: grid transfer needs" in found.why
    assert "frustrated" in found.why
    with pytest.raises(ModelTooLarge, match="elimination needs"):
        best_configuration(graph, "elimination", memory=10_000)


def test_a_bound_holds_after_zeros_are_used(monkeypatch):
    monkeypatch.setattr(cost_function_search, "PACKAGE", "no_such_package")
    glass = random_spin_glass(12, 12, 2.0, 0.1, "mixed", np.random.default_rng(0)).graph()
    held = Factor((0, 1), np.array([[1000.0, -np.inf], [-np.inf, -np.inf]]))
    graph = glass.with_factors([*glass.factors, held])
    best = best_configuration(graph).value
    found = best_configuration(graph, memory=1000, time_limit=0.5)
    assert found.method in ("TRW-S", "block moves")
    assert found.guarantee == "approximate"
    assert found.value == pytest.approx(graph.log_potential(found.states[None])[0], rel=1e-12)
    assert best < found.bound < best + 100


def test_a_solver_that_does_not_take_the_model_is_not_replaced():
    with pytest.raises(UnsuitableModel, match="3 variables"):
        best_configuration(random_3_sat(5, 4, np.random.default_rng(0)), "grid")
    with pytest.raises(UnsuitableModel, match="vector"):
        best_configuration(LogPotentials(np.zeros(3)), "grid")


@pytest.mark.parametrize("memory", [1, 2**30])
def test_states_under_evidence_are_those_of_the_model(memory):
    graph = ising(2, 3, 1.0, np.random.default_rng(0))
    evidence = {1: 1, 4: 0}
    states = best_configuration(graph.condition(evidence), memory=memory).states
    every = all_states(graph)
    agree = every[(every[:, 1] == 1) & (every[:, 4] == 0)]
    np.testing.assert_array_equal(states, agree[graph.log_potential(agree).argmax()])


def test_map_of_a_vector_is_its_index():
    values = np.zeros(200_000)
    values[150_000] = 1.0
    found = best_configuration(LogPotentials(values))
    assert (found.value, found.states) == (1.0, np.array([150_000]))
