"""Merging factors by scope and lifting large ones keep phi."""

import numpy as np
import pytest
from hypothesis import given

from tests.conftest import all_states, factor_graphs
from thesis_cli.errors import UnsuitableModel
from thesis_cli.inference.pairwise import lifted, pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph


@given(factor_graphs())
def test_phi_is_kept(graph):
    flat = lifted(graph)
    states = all_states(graph)
    form = pairwise(flat)
    n = len(graph.cardinalities)
    best = np.full(len(states), -np.inf)
    index = {tuple(s): k for k, s in enumerate(states)}
    for x in all_states(flat):
        value = form.constant + sum(form.unary[form.offsets[i] + s] for i, s in enumerate(x))
        value += sum(t[x[i], x[j]] for (i, j), t in zip(form.edges, form.tables, strict=True))
        k = index[tuple(x[:n])]
        assert value == -np.inf or best[k] == -np.inf  # one extension at most
        best[k] = max(best[k], value)
    np.testing.assert_allclose(best, graph.log_potential(states), rtol=1e-12, atol=1e-12)


def test_edges_are_distinct_and_ascending():
    table = np.arange(6.0).reshape(2, 3)
    form = pairwise(FactorGraph([3, 2], [Factor((1, 0), table), Factor((0, 1), table.T)]))
    assert form.edges.tolist() == [[0, 1]]
    np.testing.assert_array_equal(form.tables[0], 2 * table.T)


def test_three_variables_are_refused_with_the_factor_named():
    with pytest.raises(UnsuitableModel, match="factor 0 has 3 variables; elimination"):
        pairwise(FactorGraph([2, 2, 2], [Factor((0, 1, 2), np.zeros((2, 2, 2)))]))


def test_observed_variables_do_not_count():
    form = pairwise(FactorGraph([2, 2, 1], [Factor((2, 1, 0), np.ones((1, 2, 2)))]))
    assert form.edges.tolist() == [[0, 1]]
