"""Merging factors by scope and lifting large ones keep phi."""

import numpy as np
import pytest
from hypothesis import assume, given

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.pairwise import lifted, pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph


@given(factor_graphs(most_variables=4))
def test_phi_is_kept(graph):
    flat = lifted(graph)
    assume(flat.size <= 50_000)
    form, x = pairwise(flat), all_states(flat)
    value = form.constant + form.unary[form.offsets[:-1] + x].sum(axis=1)
    for (i, j), table in zip(form.edges, form.tables, strict=True):
        value += table[x[:, i], x[:, j]]
    each = value.reshape(graph.size, -1)  # the variables that were added come last
    assert ((each > -np.inf).sum(axis=1) <= 1).all()  # one extension at most
    np.testing.assert_allclose(each.max(axis=1), graph.log_potential(all_states(graph)), rtol=1e-12, atol=1e-12)


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
