"""Moves of blocks against brute force."""

import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.message_passing.block_search import BlockSearch
from thesis_cli.models.factor_graph import Factor, FactorGraph


def random_graph(rng, *, hard=False):
    """Some 7 variables of 1 to 4 states, most pairs tied; zeros leave the first configuration possible."""
    sizes = rng.integers(1, 5, 7)
    factors = [Factor((i,), rng.normal(size=k)) for i, k in enumerate(sizes)]
    for i in range(7):
        for j in range(i):
            if rng.random() < 0.6:
                table = rng.normal(size=(sizes[j], sizes[i]))
                if hard:
                    table[rng.random(table.shape) < 0.4] = -np.inf
                    table[0, 0] = 0.0
                factors.append(Factor((j, i), table))
    return FactorGraph(sizes, factors)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_moves_find_the_maximum_of_small_models_from_any_start(seed, hard):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, hard=hard)
    start = rng.integers(graph.cardinalities)
    value, states = BlockSearch(graph).improve(start, visits=50_000)
    assert value == graph.log_potential(states[None])[0]
    assert value == pytest.approx(graph.log_potential(all_states(graph)).max(), rel=1e-12)


def test_a_configuration_never_becomes_worse_and_the_same_seed_gives_the_same():
    graph = random_graph(np.random.default_rng(3))
    found = graph.log_potential(np.zeros((1, 7), int))[0], np.zeros(7, int)
    search, again = BlockSearch(graph), BlockSearch(graph)
    for _ in range(20):
        before = found
        found = search.improve(before[1], visits=1)
        assert found[0] >= before[0]
        assert found[1].tolist() == again.improve(before[1], visits=1)[1].tolist()


def test_a_single_variable_and_wide_factors():
    value, states = BlockSearch(FactorGraph([3], [Factor((0,), np.array([1.0, 5.0, 2.0]))])).improve(
        np.zeros(1, np.int64), visits=10
    )
    assert (value, states.tolist()) == (5.0, [1])
    with pytest.raises(UnsuitableModel):
        BlockSearch(FactorGraph([2, 2, 2], [Factor((0, 1, 2), np.zeros((2, 2, 2)))]))
