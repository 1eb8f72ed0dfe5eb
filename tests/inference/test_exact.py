import numpy as np
import pytest

from thesis_cli.errors import ModelTooLarge
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import exact_log_partition_function
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
