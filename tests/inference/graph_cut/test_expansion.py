"""Alpha-expansion against enumeration on tiny grids."""

import itertools

import numpy as np
import pytest

from thesis_cli.inference.graph_cut.expansion import Expansion
from thesis_cli.learning.grid_model import neighbours

HEIGHT, WIDTH = 2, 4
NODES = HEIGHT * WIDTH
ARCS = neighbours(HEIGHT, WIDTH)


def model(seed, labels):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0, 1.5, len(ARCS)) * (rng.random(len(ARCS)) < 0.9)
    return Expansion(ARCS, costs, NODES), costs, rng.normal(0, 1, (NODES, labels))


def score(costs, unary, labelling):
    """From the definition, pair by pair."""
    total = sum(unary[node, label] for node, label in enumerate(labelling))
    return total - sum(c for c, (a, b) in zip(costs, ARCS, strict=True) if labelling[a] != labelling[b])


@pytest.mark.parametrize("seed", range(12))
def test_no_expansion_improves_a_labelling(seed):
    expansion, costs, unary = model(seed, 3)
    found = expansion.maximise(unary)
    reached = score(costs, unary, found)
    assert expansion.score(unary, found) == pytest.approx(reached)
    for offered, takers in itertools.product(range(3), itertools.product((False, True), repeat=NODES)):
        assert score(costs, unary, np.where(takers, offered, found)) <= reached + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_the_first_move_is_the_best_of_all(seed):
    expansion, costs, unary = model(seed, 4)
    labels = np.random.default_rng(seed).integers(0, 4, NODES)
    for offered in range(4):
        found = np.where(expansion._takers(unary, labels, offered), offered, labels)
        moves = (np.where(takers, offered, labels) for takers in itertools.product((False, True), repeat=NODES))
        assert score(costs, unary, found) == pytest.approx(max(score(costs, unary, move) for move in moves))


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_is_at_most_twice_the_least(seed):
    """The bound of the source, over the best labels of single nodes; with two labels it is exact."""
    for labels in (2, 3):
        expansion, costs, unary = model(seed, labels)
        top = unary.max(axis=1).sum()
        least = top - max(score(costs, unary, one) for one in itertools.product(range(labels), repeat=NODES))
        found = top - score(costs, unary, expansion.maximise(unary))
        assert least - 1e-9 <= found <= (1 if labels == 2 else 2) * least + 1e-9


def test_labels_without_costs_are_the_best_of_each_node():
    unary = np.random.default_rng(0).normal(size=(NODES, 5))
    assert np.array_equal(Expansion(ARCS, np.zeros(len(ARCS)), NODES).maximise(unary), unary.argmax(axis=1))
    one = Expansion(np.zeros((0, 2), np.int64), np.zeros(0), 1)
    assert one.maximise(unary[:1]).tolist() == [unary[0].argmax()]
