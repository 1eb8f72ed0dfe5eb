"""Coupled chains beside one chain from each configuration, and samples beside the distribution."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.inference.sampling import coupling
from thesis_cli.inference.sampling.coupling import CoupledChains, coupled_samples
from thesis_cli.models.factor_graph import Factor, FactorGraph


def plain_sweep(graph, states, noise):
    """Each variable of each row drawn anew, by the largest log-potential plus noise."""
    at = np.cumsum([0, *graph.cardinalities])
    for i, k in enumerate(graph.cardinalities):
        tries = np.repeat(states[:, np.newaxis], k, axis=1)
        tries[:, :, i] = np.arange(k)
        totals = graph.log_potential(tries.reshape(-1, states.shape[1])).reshape(-1, k)
        states[:, i] = (totals + noise[at[i] : at[i + 1]]).argmax(axis=1)


def soft(graph, rng):
    """The same model without zeros but in unary factors, where one state of each variable stays possible."""
    factors = []
    for f in graph.factors:
        table = f.table.copy()
        if len(f.scope) == 1:
            table[0] = max(table[0], 0.0)
        else:
            table[np.isneginf(table)] = rng.normal()
        factors.append(Factor(f.scope, table))
    return FactorGraph(graph.cardinalities, factors)


@pytest.mark.parametrize("places", [3, coupling.PLACES])
def test_no_chain_leaves_the_possible_states(monkeypatch, places):
    monkeypatch.setattr(coupling, "PLACES", places)
    met = 0

    @settings(max_examples=examples(25))
    @given(factor_graphs(), st.integers(0, 2**32))
    def check(graph, seed):
        nonlocal met
        rng = np.random.default_rng(seed)
        graph = soft(graph, rng)
        chains = CoupledChains(graph)
        every = all_states(graph)
        every = every[np.isfinite(graph.log_potential(every))]
        states, at = chains.any_states(), np.cumsum([0, *graph.cardinalities])
        for _ in range(4):
            chains.sweep(states, np.random.default_rng(seed))
            plain_sweep(graph, every, np.random.default_rng(seed).gumbel(size=at[-1]))
            seed += 1
            assert (every == states).all(axis=1).any()
            for i, low in enumerate(at[:-1]):
                assert chains.possible[low + every[:, i]].all()
                assert chains.possible[low : at[i + 1]].sum() == chains.counts[i]
        if chains.met:
            met += 1
            assert (every == states).all()

    check()
    assert met  # else no chains were compared


def test_samples_have_the_distribution_of_the_model():
    rng = np.random.default_rng(0)
    factors = [Factor((i,), rng.normal(size=3)) for i in range(3)]
    factors += [Factor((i, j), rng.normal(size=(3, 3))) for i, j in ((0, 1), (1, 2), (0, 2))]
    factors.append(Factor((2, 0, 1), rng.normal(size=(3, 3, 3))))
    graph = FactorGraph([3] * 3, factors)
    count = 4000
    found = coupled_samples(graph, count, rng, time.monotonic() + 1e4)
    p = np.exp(graph.log_potential(all_states(graph)))
    p /= p.sum()
    seen = np.bincount(found @ [9, 3, 1], minlength=27)
    square = float(((seen - count * p) ** 2 / (count * p)).sum())
    assert square < 26 + 5 * np.sqrt(2 * 26)


def test_a_model_whose_chains_do_not_meet_ends_in_time():
    rng = np.random.default_rng(0)
    pair = np.array([[40.0, 0.0], [0.0, 40.0]])
    graph = FactorGraph([2] * 3, [Factor((0, 1), pair), Factor((1, 2), pair)])
    with pytest.raises(OutOfTime, match="do not meet"):
        coupled_samples(graph, 1, rng, time.monotonic() + 0.2)


def test_zeros_are_refused_unless_unary():
    zero = np.array([[0.0, -np.inf], [0.0, 0.0]])
    with pytest.raises(UnsuitableModel, match="without zeros"):
        CoupledChains(FactorGraph([2, 2], [Factor((0, 1), zero)]))
    with pytest.raises(NoConfiguration):
        CoupledChains(FactorGraph([2], [Factor((0,), np.array(ends)) for ends in ([-np.inf, 0.0], [0.0, -np.inf])]))
    assert CoupledChains(FactorGraph([2], [Factor((0,), np.array([-np.inf, 0.0]))])).any_states() == [1]
