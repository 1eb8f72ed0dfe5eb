import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.errors import ModelTooLarge
from thesis_cli.inference import elimination
from thesis_cli.inference.elimination import Elimination, elimination_order
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.examples import ising
from thesis_cli.models.factor_graph import Factor, FactorGraph


@settings(max_examples=1000)
@given(factor_graphs())
def test_sum_is_brute_force(graph):
    phi = graph.log_potential(all_states(graph))
    assert Elimination(graph).log_partition_function() == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-11)


@settings(max_examples=1000)
@given(factor_graphs(), st.integers(0, 2**32), st.integers(1, 4))
def test_maximum_is_brute_force(graph, seed, batch):
    states = all_states(graph)
    noise = np.random.default_rng(seed).gumbel(size=(batch, sum(graph.cardinalities)))
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    perturbed = graph.log_potential(states)[None] + noise[:, states + offsets].sum(axis=-1)
    values, found = Elimination(graph).maximise(noise)
    np.testing.assert_allclose(values, perturbed.max(axis=1), rtol=1e-12, atol=1e-11)
    attained = graph.log_potential(found) + np.take_along_axis(noise, found + offsets, axis=1).sum(axis=1)
    np.testing.assert_allclose(attained, values, rtol=1e-12, atol=1e-11)


def test_small_memory_means_small_batches_of_the_same_result(monkeypatch):
    graph = ising(4, 4, 0.5, np.random.default_rng(0))
    noise = np.random.default_rng(1).gumbel(size=(50, 32))
    large, small = Elimination(graph), Elimination(graph, memory=3000)
    assert small._memory // small._cost < 10
    expected = large.maximise(noise)
    batches = []
    whole = small._maximise
    monkeypatch.setattr(small, "_maximise", lambda part: batches.append(len(part)) or whole(part))
    for a, b in zip(expected, small.maximise(noise), strict=True):
        np.testing.assert_array_equal(a, b)
    assert sum(batches) == 50
    assert max(batches) * small._cost <= 3000


def test_a_grid_beyond_enumeration():
    """12 x 12 by elimination and by a transfer matrix."""
    graph = ising(12, 12, 0.4, np.random.default_rng(3))
    theta = np.array([f.table[1] for f in graph.factors[:144]]).reshape(12, 12)
    rows = np.array(np.meshgrid(*[[-1, 1]] * 12, indexing="ij")).reshape(12, -1).T
    along = 0.4 * (rows[:, 1:] * rows[:, :-1]).sum(axis=1)
    total = rows @ theta[0] + along
    for row in theta[1:]:
        for site in range(12):  # turn one site of the row over, summing out the old one
            cube = total.reshape(2**site, 2, -1)
            same, other = cube + 0.4, cube[:, ::-1] - 0.4
            total = np.logaddexp(same, other).reshape(-1)
        total = total + rows @ row + along
    found = Elimination(graph)
    assert found.log_partition_function() == pytest.approx(np.logaddexp.reduce(total), rel=1e-12)


def test_too_wide_a_model_says_its_width_before_anything_is_allocated():
    graph = FactorGraph([2] * 60, [Factor((i, j), np.zeros((2, 2))) for i in range(60) for j in range(i)])
    with pytest.raises(ModelTooLarge, match=r"elimination needs 17 EiB at width 59; raise the memory from 2 GiB"):
        Elimination(graph)


def test_a_chain_has_width_1_and_a_tree_is_eliminated_from_its_leaves():
    order, cliques = elimination_order([2] * 6, [(i, i + 1) for i in range(5)])
    assert max(map(len, cliques)) == 2
    star, cliques = elimination_order([2] * 6, [(0, i) for i in range(1, 6)])
    assert star.index(0) >= 4
    assert sorted(order) == sorted(star) == list(range(6))


@given(factor_graphs(most_variables=6))
def test_cliques_cover_the_scopes(graph):
    _, cliques = elimination_order(graph.cardinalities, [f.scope for f in graph.factors])
    for factor in graph.factors:
        assert any(set(factor.scope) <= set(c) for c in cliques)


def test_agrees_with_enumeration_on_a_larger_model():
    graph = ising(4, 5, 1.0, np.random.default_rng(5))
    assert Elimination(graph).log_partition_function() == pytest.approx(log_partition_function(graph), rel=1e-13)


@pytest.mark.parametrize(
    ("count", "text"), [(5, "5 bytes"), (2048, "2 KiB"), (3 * 2**30, "3 GiB"), (2**100, "2^100 bytes")]
)
def test_bytes(count, text):
    assert elimination._bytes(count) == text
