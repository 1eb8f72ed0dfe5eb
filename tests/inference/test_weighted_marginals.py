"""Weighted marginals beside brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference import weighted_marginals as module
from thesis_cli.inference.mini_bucket import mini_bucket
from thesis_cli.inference.weighted_marginals import _by_chains, _by_draws, weighted_marginals
from thesis_cli.models.spin_glass import random_spin_glass


def brute_force(graph):
    states = all_states(graph)
    logs = graph.log_potential(states)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    found = [np.bincount(states[:, i], p, k) for i, k in enumerate(graph.cardinalities)]
    return np.logaddexp.reduce(logs), np.concatenate(found)


@pytest.fixture(scope="module", autouse=True)
def _little_work():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MOST_TEMPERATURES", 50)
        patched.setattr(module, "DRAWS", 2000)
        yield


@settings(max_examples=examples(20))
@given(factor_graphs(most_variables=5), st.integers(0, 9))
def test_marginals_are_within_their_errors_and_sure_ones_are_right(graph, seed):
    stream = np.random.SeedSequence(seed)
    if not np.isfinite(graph.log_potential(all_states(graph)).max()):
        with pytest.raises(NoConfiguration):
            weighted_marginals(graph, stream)
        return
    log_z, expected = brute_force(graph)
    found = weighted_marginals(graph, stream)
    assert found.effective > 10
    assert found.log_z == pytest.approx(log_z, abs=5 / np.sqrt(found.effective))
    assert (abs(found.probabilities - expected) <= 5 * found.standard_errors + 1e-9).all()
    assert (found.standard_errors <= 0.5).all()


def test_chains_that_agree_but_miss_the_mode_are_not_believed(monkeypatch):
    """Chains whose estimate of Z is 50 nats below that of the draws have missed most of Z, however equal they are."""
    wide = random_spin_glass(3, 3, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    _, expected = brute_force(wide)
    lost = _by_chains(wide, np.random.SeedSequence(0), 1)[0]
    missed = replace(lost, log_z=lost.log_z - 50, effective=lost.effective * 1e6, probabilities=1 - expected)
    monkeypatch.setattr(module, "ENOUGH", np.inf)
    monkeypatch.setattr(module, "_by_chains", lambda *_: [missed])
    found = weighted_marginals(wide, np.random.SeedSequence(1))
    assert found.method == "draws from mini-buckets"
    assert (abs(found.probabilities - expected) <= 5 * found.standard_errors + 1e-9).all()


@pytest.mark.parametrize("sampled", [_by_draws, lambda graph, seed, _: _by_chains(graph, seed, 1)[0]])
def test_errors_have_the_size_of_their_standard_errors(sampled, monkeypatch):
    monkeypatch.setattr(mini_bucket, "FIRST", 4.0)  # divided buckets, so that draws have weights
    monkeypatch.setattr(mini_bucket, "WORK", 1)
    graph = random_spin_glass(3, 3, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    _, expected = brute_force(graph)
    scores = []
    for seed in range(20):
        found = sampled(graph, np.random.SeedSequence(seed), 2**27)
        assert 10 < found.effective < 0.95 * found.samples
        scores.append((found.probabilities - expected) / found.standard_errors)
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3
