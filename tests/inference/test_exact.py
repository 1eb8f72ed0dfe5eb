import numpy as np
import pytest

from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.studies.models.examples import ising, zipf


def test_each_model_takes_its_route_to_the_same_number():
    graph = ising(3, 3, 1.0, np.random.default_rng(0))
    expected = pytest.approx(log_partition_function(graph), rel=1e-13)
    assert exact_log_partition_function(graph) == (expected, "grid transfer")
    assert exact_log_partition_function(_renumbered(graph)) == (expected, "elimination")
    assert exact_log_partition_function(graph, memory=10) == (expected, "enumeration")
    with pytest.raises(ModelTooLarge, match="width 3"):
        exact_log_partition_function(graph, memory=10, max_configurations=10)
    vector = LogPotentials(zipf(10, 1.0))
    assert exact_log_partition_function(vector) == (pytest.approx(log_partition_function(vector)), "enumeration")


def test_a_grid_whose_weights_would_underflow_is_summed_by_elimination():
    graph = ising(4, 4, 200.0, np.random.default_rng(0))
    assert exact_log_partition_function(graph) == (pytest.approx(log_partition_function(graph)), "elimination")


def _renumbered(graph):
    """The same model, no longer a grid to look at."""
    order = np.random.default_rng(0).permutation(len(graph.cardinalities))
    factors = [Factor(tuple(int(order[i]) for i in f.scope), f.table) for f in graph.factors]
    return FactorGraph([graph.cardinalities[i] for i in np.argsort(order)], factors)
