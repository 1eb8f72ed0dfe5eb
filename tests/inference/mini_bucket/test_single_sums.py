"""The quickest upper bound beside brute force."""

import numpy as np
from hypothesis import given, settings

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.inference.mini_bucket.single_sums import single_sums_bound
from thesis_cli.studies.models.families import causes


@settings(max_examples=examples(60))
@given(factor_graphs(most_variables=6))
def test_it_holds(graph):
    assert single_sums_bound(graph) >= np.logaddexp.reduce(graph.log_potential(all_states(graph)))


def test_evidence_of_a_bayesian_network_is_at_most_certain():
    """Of 2,760 variables, whose largest entries alone give hundreds of nats."""
    network = causes(3, 120, 10, 0.2, np.random.default_rng(0))
    assert single_sums_bound(network.conditioned()) < 1e-6
