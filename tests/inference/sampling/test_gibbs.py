"""Gibbs sweeps beside a plain reference and the conditional distributions that they draw from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.inference.sampling import gibbs
from thesis_cli.inference.sampling.gibbs import GibbsPath
from thesis_cli.models.factor_graph import Factor, FactorGraph


def sweep_reference(uses, tables, uniforms, states, entries):
    """`sweep`, one variable of all chains at a time."""
    rows = np.arange(len(states))
    for p, v in enumerate(uses.variables):
        unary = uses.unary[uses.offsets[v] : uses.offsets[v + 1]]
        own = slice(uses.first[p], uses.first[p + 1])
        factors, strides = uses.factors[own], uses.strides[own]
        base = entries[:, factors] - states[:, v, None] * strides
        logits = unary + tables[base[:, :, None] + strides[:, None] * np.arange(unary.size)].sum(axis=1)
        sums = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        new = (sums <= uniforms[:, p, None] * sums[:, -1:])[:, :-1].sum(axis=1)
        entries[np.ix_(rows, factors)] = base + new[:, None] * strides
        states[:, v] = new


@settings(max_examples=examples(15))
@given(factor_graphs(), st.floats(0, 1), st.integers(0, 2**32))
def test_sweeps_are_the_reference_and_keep_the_entries(graph, b, seed):
    try:
        path = GibbsPath(graph, 4)
    except NoConfiguration:
        return
    chains = path.start(np.random.default_rng(seed), 4)
    plain = path.at(chains.states.copy())
    uniforms = np.random.default_rng(seed + 1).random((4, path.moves))
    sweep_reference(path._uses, b * path._soft, uniforms, plain.states, plain.entries)
    path.sweep(chains, b, np.random.default_rng(seed + 1))
    np.testing.assert_array_equal(chains.states, plain.states)
    np.testing.assert_array_equal(chains.entries, path.at(chains.states).entries)


@given(factor_graphs())
def test_the_path_ends_at_the_model(graph):
    """ln of the product's normaliser, and the potential of possible configurations."""
    try:
        path = GibbsPath(graph, 1)
    except NoConfiguration:
        return
    states = all_states(graph)
    chains = path.at(states)
    possible = path.possible(chains)
    phi = graph.log_potential(states)
    start = sum(path._unary[i][states[:, i]] for i in range(states.shape[1]))
    np.testing.assert_array_equal(possible & np.isfinite(start), np.isfinite(phi))
    finite = np.isfinite(phi)
    np.testing.assert_allclose((start + path.rest(chains))[finite], phi[finite], atol=1e-9)
    assert np.logaddexp.reduce(start) == pytest.approx(path.log_z0)


def test_a_move_draws_from_the_conditional_distribution():
    """Equally spaced uniforms give each state in proportion to its probability."""
    rng = np.random.default_rng(3)
    unary, pair = rng.normal(size=3), rng.normal(size=(2, 3))
    path = GibbsPath(FactorGraph([2, 3], [Factor((1,), unary), Factor((0, 1), pair)]), 1000)
    chains = path.at(np.repeat([[1, 0]], 1000, axis=0))
    levels = np.stack([np.full(1000, 0.999999), (np.arange(1000) + 0.5) / 1000], axis=1)

    class Spaced:
        def random(self, shape):
            assert shape == levels.shape
            return levels

    path.sweep(chains, 0.7, Spaced())
    assert (chains.states[:, 0] == 1).all()
    weights = np.exp(unary + 0.7 * pair[1])
    shares = np.bincount(chains.states[:, 1], minlength=3) / 1000
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=1.01e-3)


def test_many_chains_are_refused(monkeypatch):
    monkeypatch.setattr(gibbs, "DEFAULT_MEMORY", 10**6)
    with pytest.raises(ModelTooLarge, match=r"1,000,000 chains take [\d.]+ MiB; take fewer"):
        GibbsPath(FactorGraph([2, 2], [Factor((0, 1), np.zeros((2, 2)))]), 10**6)


def test_a_variable_without_a_possible_state():
    graph = FactorGraph([2], [Factor((0,), np.array([0, -np.inf])), Factor((0,), np.array([-np.inf, 0]))])
    with pytest.raises(NoConfiguration):
        GibbsPath(graph, 2)
