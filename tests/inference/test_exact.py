import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.errors import InputError, ModelTooLarge
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import exact_log_partition_function, exact_map
from thesis_cli.models.examples import ising, zipf
from thesis_cli.models.factor_graph import LogPotentials


def test_each_model_takes_its_route_to_the_same_number():
    graph = ising(3, 3, 1.0, np.random.default_rng(0))
    expected = pytest.approx(log_partition_function(graph), rel=1e-13)
    assert exact_log_partition_function(graph) == (expected, "elimination")
    assert exact_log_partition_function(graph, memory=10) == (expected, "enumeration")
    with pytest.raises(ModelTooLarge, match="width 3"):
        exact_log_partition_function(graph, memory=10, max_configurations=10)
    vector = LogPotentials(zipf(10, 1.0))
    assert exact_log_partition_function(vector) == (pytest.approx(log_partition_function(vector)), "enumeration")


@given(factor_graphs(), st.booleans())
def test_map_is_brute_force_by_either_route(graph, narrow):
    phi = graph.log_potential(all_states(graph))
    if phi.max() == -np.inf:
        with pytest.raises(InputError, match="no configuration is possible"):
            exact_map(graph, memory=1 if narrow else 2**30)
        return
    value, states, method = exact_map(graph, memory=1 if narrow else 2**30)
    assert method == ("enumeration" if narrow else "elimination")
    assert value == pytest.approx(phi.max(), rel=1e-12, abs=1e-11)
    assert graph.log_potential(states[np.newaxis])[0] == pytest.approx(value, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("memory", [1, 2**30])
def test_states_under_evidence_are_those_of_the_model(memory):
    graph = ising(2, 3, 1.0, np.random.default_rng(0))
    evidence = {1: 1, 4: 0}
    _, states, _ = exact_map(graph.condition(evidence), memory=memory)
    every = all_states(graph)
    agree = every[(every[:, 1] == 1) & (every[:, 4] == 0)]
    np.testing.assert_array_equal(states, agree[graph.log_potential(agree).argmax()])


def test_map_of_a_vector_is_its_index():
    values = np.zeros(200_000)
    values[150_000] = 1.0
    assert exact_map(LogPotentials(values))[:2] == (1.0, np.array([150_000]))
