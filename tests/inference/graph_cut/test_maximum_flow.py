"""Minimum cuts of networks against brute force, a plain augmenting-path algorithm and PyMaxflow."""

import itertools

import maxflow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.inference.graph_cut import maximum_flow
from thesis_cli.inference.graph_cut.maximum_flow import Network


def cost_of(arcs, capacities, costs, labels):
    """Of a labelling; no product of 0 and infinity."""
    i, j = labels[arcs].T
    return (
        costs[labels == 1].sum() + capacities[(i == 0) & (j == 1), 0].sum() + capacities[(i == 1) & (j == 0), 1].sum()
    )


def plain_labels(arcs, capacities, costs):
    """1 where the sink can be reached once no path is left, by shortest augmenting paths."""
    n = len(costs)
    residual = np.zeros((n + 2, n + 2))
    for (i, j), (there, back) in zip(arcs, capacities, strict=True):
        residual[i, j] += there
        residual[j, i] += back
    residual[n, :n], residual[:n, n + 1] = np.maximum(costs, 0), np.maximum(-costs, 0)

    def reach(start, ahead):
        """Previous nodes, -1 where none, of a breadth-first search."""
        previous = np.full(n + 2, -1)
        previous[start], layer = start, [start]
        for k in layer:
            for m in np.flatnonzero((ahead[k] > 0) & (previous < 0)):
                previous[m] = k
                layer.append(m)
        return previous

    while (previous := reach(n, residual))[n + 1] >= 0:
        path = [n + 1]
        while path[-1] != n:
            path.append(previous[path[-1]])
        steps = list(itertools.pairwise(path))
        amount = min(residual[a, b] for b, a in steps)
        for b, a in steps:
            residual[a, b] -= amount
            residual[b, a] += amount
    return (reach(n + 1, residual.T)[:n] >= 0).astype(int)


def grid_arcs(rows, columns, rng, share=1.0):
    """Arcs of a grid numbered along its rows, either way round, some of them missing."""
    at = np.arange(rows * columns).reshape(rows, columns)
    arcs = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))]
    arcs = np.concatenate(arcs)
    arcs = arcs[rng.random(len(arcs)) < share]
    turned = rng.random(len(arcs)) < 0.5
    return np.where(turned[:, None], arcs[:, ::-1], arcs)


def network(arcs, capacities, nodes):
    return Network(arcs, capacities, np.zeros((nodes, 2), np.bool_))


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_labels_are_the_least_of_the_best(seed, integers, hard):
    """Among them parallel arcs, parts that are not connected, infinite capacities and forbidden
    labels."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7), rng.integers(0, 10)
    arcs = np.array([rng.permutation(n)[:2] for _ in range(m * (n > 1))], np.int64).reshape(-1, 2)
    capacities = rng.integers(0, 4, (len(arcs), 2)) * 1.0 if integers else rng.exponential(size=(len(arcs), 2))
    forbidden = np.zeros((n, 2), np.bool_)
    if hard:
        capacities[rng.random(capacities.shape) < 0.3] = np.inf
        forbidden = rng.random((n, 2)) < 0.15
    found = Network(arcs, capacities, forbidden)
    everything = np.array(list(itertools.product((0, 1), repeat=n)))
    allowed = [not forbidden[np.arange(n), x].any() for x in everything]
    rows = rng.integers(-3, 4, (3, n)) * 1.0 if integers else rng.normal(0, 2, (3, n))
    for costs in rows:
        values = np.array([cost_of(arcs, capacities, costs, x) for x in everything])
        values[np.logical_not(allowed)] = np.inf
        assert found.possible == bool(np.isfinite(values).any())
        if found.possible:
            cost, labels = found.cut(costs)
            assert cost == pytest.approx(values.min(), abs=1e-12)
            least = everything[values <= values.min() + (0 if integers else 1e-12)].min(axis=0)
            np.testing.assert_array_equal(labels, least)
    if found.possible:
        np.testing.assert_array_equal(found.labels(rows)[1], found.cut(rows[1])[1])


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32), st.booleans())
def test_both_kernels_agree_with_the_plain_algorithm_on_grids(seed, integers):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 6), rng.integers(5, 12)
    arcs = grid_arcs(rows, columns, rng, rng.choice([0.7, 1.0]))
    n = rows * columns
    size = (len(arcs), 2)
    capacities = rng.integers(0, 5, size) * 1.0 if integers else rng.exponential(rng.choice([0.3, 2.0]), size)
    costs = rng.integers(-4, 5, (2, n)) * 1.0 if integers else rng.logistic(size=(2, n))
    expected = [plain_labels(arcs, capacities, row) for row in costs]
    with pytest.MonkeyPatch.context() as patch:
        for padded in (10**6, 0):
            patch.setattr(maximum_flow, "PADDED", padded)
            found = network(arcs, capacities, n)
            assert (found._grid is None) == (padded == 0)
            np.testing.assert_array_equal(found.labels(costs), expected)


def by_pymaxflow(arcs, capacities, costs):
    graph = maxflow.GraphFloat(len(costs), len(arcs))
    nodes = graph.add_grid_nodes(len(costs))
    graph.add_edges(*arcs.T, *capacities.T)
    graph.add_grid_tedges(nodes, costs, np.zeros(len(costs)))
    return graph.maxflow(), graph.get_grid_segments(nodes)


@pytest.mark.parametrize("coupling", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("shape", [(30, 30), (9, 150), (150, 9)])
@pytest.mark.parametrize("renumbered", [False, True])
def test_grids_have_the_cuts_of_pymaxflow(coupling, shape, renumbered):
    """Rows of several words, among them, and grids in any numbering."""
    rng = np.random.default_rng(0)
    n = shape[0] * shape[1]
    arcs = grid_arcs(*shape, rng)
    if renumbered:
        arcs = rng.permutation(n)[arcs]
    capacities = rng.uniform(0, coupling, (len(arcs), 2))
    costs = rng.logistic(size=(3, n))
    found = network(arcs, capacities, n)
    assert found._grid is not None
    for row, labels in zip(costs, found.labels(costs), strict=True):
        cost, expected = by_pymaxflow(arcs, capacities, row)
        np.testing.assert_array_equal(labels, expected)
        assert found.cut(row)[0] == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_other_networks_have_the_cuts_of_pymaxflow(seed):
    rng = np.random.default_rng(seed)
    n = 300
    arcs = np.array([rng.permutation(n)[:2] for _ in range(900)])
    capacities = rng.exponential(rng.choice([0.3, 3.0]), (len(arcs), 2))
    costs = rng.logistic(size=(2, n))
    found = network(arcs, capacities, n)
    assert found._grid is None
    for row, labels in zip(costs, found.labels(costs), strict=True):
        cost, expected = by_pymaxflow(arcs, capacities, row)
        np.testing.assert_array_equal(labels, expected)
        assert found.cut(row)[0] == pytest.approx(cost, rel=1e-12)


def test_a_constraint_is_as_hard_whatever_the_costs():
    """A chain of equal labels under costs that differ by 15 digits."""
    n = 60
    arcs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    found = network(arcs, np.full((n - 1, 2), np.inf), n)
    costs = np.zeros(n)
    costs[3], costs[40], costs[59] = 1e15, -1e15, -0.5
    assert found.cut(costs)[1].all()
    assert not found.cut(-costs)[1].any()


@pytest.mark.parametrize("padded", [10**6, 0])
def test_other_capacities_on_the_same_arcs(monkeypatch, padded):
    monkeypatch.setattr(maximum_flow, "PADDED", padded)
    rng = np.random.default_rng(1)
    arcs = grid_arcs(6, 7, rng)
    costs = rng.logistic(size=(2, 42))
    first, second = rng.exponential(size=(2, len(arcs), 2))
    found = network(arcs, first, 42)
    changed = found.with_capacities(second)
    np.testing.assert_array_equal(changed.labels(costs), network(arcs, second, 42).labels(costs))
    np.testing.assert_array_equal(found.labels(costs), [plain_labels(arcs, first, row) for row in costs])
