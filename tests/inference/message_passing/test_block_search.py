"""Moves of blocks against brute force."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from tests.conftest import all_states
from thesis_cli.base.compiled import interpreted
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


@pytest.mark.parametrize("seed", range(20))
def test_each_connected_part_of_what_has_changed_is_kept_if_it_gains(seed):
    """Parts do not touch, so that together they must give the best of all choices of parts."""
    rng = np.random.default_rng(seed)
    factors = [Factor((i,), rng.normal(size=3)) for i in range(12)]
    pairs = [(j, i) for i in range(12) for j in range(i) if rng.random() < 0.2]
    graph = FactorGraph([3] * 12, [*factors, *(Factor(pair, rng.normal(size=(3, 3))) for pair in pairs)])
    search = BlockSearch(graph)
    old, new = rng.integers(3, size=(2, 12))
    new = np.where(rng.random(12) < 0.5, new, old)
    search._block.region[:], search._block.states[:] = np.arange(12), new
    found = old.copy()
    settle = interpreted("thesis_cli.inference.message_passing.block_kernels").settle
    settle(search._model, search._unary, 12, found, search._block)
    touching = np.zeros((12, 12), bool)
    touching[tuple(np.array(pairs).T)] = True
    changed = np.flatnonzero(old != new)
    parts = [
        changed[labels == k]
        for count, labels in [connected_components(touching[np.ix_(changed, changed)], directed=False)]
        for k in range(count)
    ]
    rows = np.tile(old, (2 ** len(parts), 1))
    for row, some in zip(rows, np.ndindex(*[2] * len(parts)), strict=True):
        for part, on in zip(parts, some, strict=True):
            row[part] = new[part] if on else old[part]
    assert graph.log_potential(found[None])[0] == pytest.approx(graph.log_potential(rows).max(), rel=1e-12)
    assert search._block.states.tolist() == found.tolist()


def test_a_dense_model_of_like_states_is_begun_anew():
    """From all variables in one state, which no region leaves, the best configuration has two states."""
    n, strong = 40, np.where(np.arange(40) % 2, 1.0, -1.0)
    tied = [Factor((j, i), strong[i] * strong[j] * np.eye(2)) for i in range(n) for j in range(i)]
    value, states = BlockSearch(FactorGraph([2] * n, tied)).improve(np.zeros(n, np.int64), visits=20_000)
    best = np.arange(n) % 2
    assert value == 2 * (20 * 19 / 2)
    assert states.tolist() in (best.tolist(), (1 - best).tolist())


def test_a_single_variable_and_wide_factors():
    value, states = BlockSearch(FactorGraph([3], [Factor((0,), np.array([1.0, 5.0, 2.0]))])).improve(
        np.zeros(1, np.int64), visits=10
    )
    assert (value, states.tolist()) == (5.0, [1])
    with pytest.raises(UnsuitableModel):
        BlockSearch(FactorGraph([2, 2, 2], [Factor((0, 1, 2), np.zeros((2, 2, 2)))]))
