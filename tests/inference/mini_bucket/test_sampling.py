"""Importance sampling from mini-buckets beside brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.mini_bucket import sampler
from thesis_cli.inference.mini_bucket.mini_bucket import tightened
from thesis_cli.inference.mini_bucket.sampler import MiniBucketSampler
from thesis_cli.inference.mini_bucket.sampling import importance_estimate
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.families import lineage
from thesis_cli.studies.models.network import bipartite


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=6), st.sampled_from([1, 4, 16]))
def test_the_interval_covers_and_no_weight_exceeds_the_bound(graph, limit):
    exact = np.logaddexp.reduce(graph.log_potential(all_states(graph)))
    try:
        found = importance_estimate(graph, np.random.default_rng(1), limit=limit, samples=500, confidence=1 - 1e-9)
    except NoConfiguration:
        assert exact == -np.inf
        return
    slack = 1e-12 * max(1.0, abs(exact)) if np.isfinite(exact) else 0.0
    assert found.low <= exact + slack
    assert found.high >= exact - slack
    assert found.value <= found.bound + slack


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=6), st.sampled_from([1, 4, 16]))
def test_weight_times_probability_is_the_potential(graph, limit):
    """The frequency of a configuration, times its weight, is its share of Z: exact where it is drawn
    most."""
    best = tightened(graph, 2**31, None, sides=("upper",), limit=limit)["upper"]
    if best.value == -np.inf:
        return
    count = 4000
    states, ratios = MiniBucketSampler(best.passes_again(), len(graph.cardinalities)).draw(
        np.random.default_rng(2), count
    )
    _, first, times = np.unique(states, axis=1, return_index=True, return_counts=True)
    at = first[times.argmax()]
    share = times.max() / count
    potential = graph.log_potential(states.T[[at]])[0]
    if ratios[at] == -np.inf:
        assert potential == -np.inf
        return
    free = math.prod(k for i, k in enumerate(graph.cardinalities) if i not in best.plan.order)  # never drawn
    expected = free * math.exp(potential - best.value - ratios[at])  # its probability
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - min(1.0, expected)) / count) + 1e-6


@pytest.mark.parametrize("count", [1, 2, 3])
def test_independent_variables_are_drawn_by_their_own_factors(count):
    """The table of a variable without neighbours is kept although the next one is larger."""
    logs = [np.array([0.0, 0.2, 1.5]), np.array([2.0, 0.0]), np.linspace(0, 1, 7)][:count]
    graph = FactorGraph([len(table) for table in logs], [Factor((i,), table) for i, table in enumerate(logs)])
    best = tightened(graph, 2**31, None, sides=("upper",), limit=1)["upper"]
    draws = 4000
    states, ratios = MiniBucketSampler(best.passes_again(), count).draw(np.random.default_rng(3), draws)
    assert (ratios == 0).all()
    for own, table in zip(states, logs, strict=True):
        share, expected = np.bincount(own, minlength=len(table)) / draws, np.exp(table) / np.exp(table).sum()
        assert (np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_the_estimate_is_unbiased_within_its_error():
    graph = random_spin_glass(7, 7, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    exact, _ = exact_log_partition_function(graph)
    found = importance_estimate(graph, np.random.default_rng(3), limit=16, samples=20_000)
    assert found.trusted
    assert abs(found.value - exact) < 5 * found.standard_error < 0.3
    assert found.low < exact < found.high
    few = importance_estimate(graph, np.random.default_rng(3), limit=16, samples=20)
    assert not few.trusted


@pytest.mark.parametrize(("seed", "stride"), [(1, 1), (2, 2)])
def test_resampled_populations_estimate_z_without_bias(monkeypatch, seed, stride):
    monkeypatch.setattr(sampler, "STRIDE", stride)
    monkeypatch.setattr(sampler, "RESAMPLED", 1.1)
    rng = np.random.default_rng(seed)
    pairs = itertools.combinations(range(7), 2)
    graph = FactorGraph([2] * 7, [Factor(pair, rng.normal(0, 1.5, (2, 2))) for pair in pairs])
    best = tightened(graph, 2**31, None, sides=("upper",), limit=1)["upper"]
    drawer = MiniBucketSampler(best.passes_again(), 7)
    found = np.exp([drawer.population(rng, 4) for _ in range(4000)])
    exact = np.exp(np.logaddexp.reduce(graph.log_potential(all_states(graph))) - best.value)
    assert found.std() > 0.2 * exact
    assert (found <= 1 + 1e-12).all()
    assert abs(found.mean() - exact) <= 4 * found.std(ddof=1) / math.sqrt(4000)


def test_populations_serve_where_too_few_samples_would_be_effective():
    graph = lineage(6, 6, 2, 3, 0.3, np.random.default_rng(0)).conditioned()
    exact, _ = exact_log_partition_function(graph)
    found = importance_estimate(graph, np.random.default_rng(3), limit=64, samples=20_000)
    assert found.unit == "populations"
    assert not found.trusted
    assert exact - 4 < found.low < exact < found.high


@pytest.mark.parametrize("floor", [-math.inf, -4.0, 0.5])
def test_weights_below_a_floor_are_only_rounded_up(floor):
    graph = bipartite(9, 9, 1.0, np.random.default_rng(3)).graph
    upper = tightened(graph, 2**31, None, sides=("upper",), limit=2**5)["upper"]
    sampler, rng = MiniBucketSampler(upper.passes_again(), 18), np.random.default_rng(0)
    weights = np.exp(np.concatenate([sampler.ratios(rng, 2000, floor) for _ in range(10)]))
    z = math.exp(exact_log_partition_function(graph)[0] - upper.value)
    error = 5 * weights.std() / math.sqrt(weights.size)
    assert z - error < weights.mean() < z + math.exp(floor) + error
    if floor > -4:
        assert weights.mean() > z + error  # they ended early
