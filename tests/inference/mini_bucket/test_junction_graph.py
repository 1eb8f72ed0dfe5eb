"""Propagation on join graphs beside brute force and the Bethe approximation."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.mini_bucket.junction_graph import junction_graph_log_partition_function
from thesis_cli.models.spin_glass import random_spin_glass


@settings(max_examples=examples(40))
@given(factor_graphs(most_variables=6), st.sampled_from([1, 8, 4096]))
def test_a_junction_tree_is_exact_and_zeros_are_no_obstacle(graph, size):
    exact = np.logaddexp.reduce(graph.log_potential(all_states(graph)))
    try:
        found = junction_graph_log_partition_function(graph, size)
    except NoConfiguration:
        assert exact == -np.inf
        return
    assert np.isfinite(found.value)
    assert found.exact >= (size == 4096)
    if found.exact:
        assert found.converged
        assert found.value == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_larger_clusters_are_nearer_to_the_exact_answer():
    graph = random_spin_glass(7, 7, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    exact, _ = exact_log_partition_function(graph)
    coarse, fine = (junction_graph_log_partition_function(graph, size) for size in (4, 64))
    assert fine.converged
    assert abs(fine.value - exact) < 0.1 < abs(coarse.value - exact)
    assert fine == junction_graph_log_partition_function(graph, 64)
    assert junction_graph_log_partition_function(graph, deadline=time.monotonic() + 60).exact
