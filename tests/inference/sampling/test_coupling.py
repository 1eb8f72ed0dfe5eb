"""Coupled chains beside one chain from each configuration, and samples beside the distribution."""

import math
import time

import numpy as np
import pytest

from tests.conftest import all_states
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.sampling import coupling
from thesis_cli.inference.sampling.coupling import CoupledChains, coupled_samples
from thesis_cli.models.factor_graph import Factor, FactorGraph


def plain_sweep(graph, states, noise):
    """Draw each variable of each row anew, by the largest log-potential plus noise."""
    at = np.cumsum([0, *graph.cardinalities])
    for i, k in enumerate(graph.cardinalities):
        tries = np.repeat(states[:, np.newaxis], k, axis=1)
        tries[:, :, i] = np.arange(k)
        totals = graph.log_potential(tries.reshape(-1, states.shape[1])).reshape(-1, k)
        states[:, i] = (totals + noise[at[i] : at[i + 1]]).argmax(axis=1)


def soft_model(rng):
    """Up to five variables of up to four states; only unary factors forbid any, and one state stays possible."""
    cardinalities = rng.integers(1, 5, rng.integers(2, 6)).tolist()
    factors = []
    for i, k in enumerate(cardinalities):
        table = rng.normal(size=k)
        table[1:][rng.random(k - 1) < 0.2] = -np.inf
        factors.append(Factor((i,), table))
    for _ in range(6):
        scope = rng.permutation(len(cardinalities))[: rng.integers(2, 4)].tolist()
        factors.append(Factor(tuple(scope), rng.normal(0, 1, [cardinalities[i] for i in scope])))
    return FactorGraph(cardinalities, factors)


@pytest.mark.parametrize("places", [3, coupling.PLACES])
def test_no_chain_leaves_the_possible_states(monkeypatch, places):
    monkeypatch.setattr(coupling, "PLACES", places)
    met, reached, kept = 0, 0, 0
    for seed in range(examples(40)):
        graph = soft_model(np.random.default_rng(seed))
        chains = CoupledChains(graph)
        every = all_states(graph)
        every = every[np.isfinite(graph.log_potential(every))]
        states, at = chains.any_states(), np.cumsum([0, *graph.cardinalities])
        for turn in range(3):
            chains.sweep(states, np.random.default_rng([seed, turn]))
            plain_sweep(graph, every, np.random.default_rng([seed, turn]).gumbel(size=at[-1]))
            assert (every == states).all(axis=1).any()
            for i, low in enumerate(at[:-1]):
                assert chains.possible[low + every[:, i]].all()
                assert chains.possible[low : at[i + 1]].sum() == chains.counts[i]
                reached, kept = reached + len(np.unique(every[:, i])), kept + chains.counts[i]
        if chains.met:
            met += 1
            assert (every == states).all()
    assert met  # else chains never meet
    assert places == 3 or kept < 1.3 * reached  # nearly the states that chains are in, and few more


def test_samples_have_the_distribution_of_the_model(monkeypatch):
    """Also where chains meet in some blocks only, in which they end in likely states more often."""
    monkeypatch.setattr(coupling, "PILOTS", 1)
    rng = np.random.default_rng(0)
    alike = [Factor((i, j), 2.0 * np.eye(2) + rng.normal(0, 0.3, (2, 2))) for i, j in ((0, 1), (1, 2), (0, 2))]
    graph = FactorGraph([2] * 3, [*alike, Factor((2, 0, 1), rng.normal(0, 0.3, (2, 2, 2))), Factor((0,), np.eye(2)[0])])
    count = 10_000
    found = coupled_samples(graph, count, rng, math.inf)
    expected = count * np.exp(graph.log_potential(all_states(graph)) - log_partition_function(graph))
    square = ((np.bincount(found @ [4, 2, 1], minlength=8) - expected) ** 2 / expected).sum()
    assert square < 7 + 5 * math.sqrt(2 * 7)


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
