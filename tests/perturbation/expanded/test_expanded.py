import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.expanded import blocks as expanded_blocks
from thesis_cli.perturbation.expanded.copies import bytes_of_copies, copy_noise, variable_noise
from thesis_cli.perturbation.expanded.expanded import ExpandedModel, expanded_maximum, log_corollary_epsilon
from thesis_cli.perturbation.expanded.kernels import ascend, ascend_reference
from thesis_cli.perturbation.expanded.pairs import Box, PairwiseCopies


def extended_values(graph, copies, root):
    """Eqs. (18) and (19) at every configuration of the copies, read literally."""
    sizes = graph.cardinalities
    owners = np.repeat(np.arange(len(sizes)), copies)
    states = np.array(list(itertools.product(*(range(sizes[i]) for i in owners))))
    chosen = itertools.product(range(copies), repeat=len(sizes))
    columns = [[i * copies + k for i, k in enumerate(picks)] for picks in chosen]
    values = np.mean([graph.log_potential(states[:, c]) for c in columns], axis=0)
    for i, k in enumerate(sizes):
        if k > 1:
            noise = variable_noise(root, i, copies, k)
            own = states[:, i * copies : (i + 1) * copies]
            values = values + noise[np.arange(copies), own].mean(axis=1)
    return values


def mean_potentials(graph, ones):
    """E_q[phi] of binary variables for each row of probabilities of state 1."""
    states = all_states(graph)
    weights = np.where(states == 1, ones[:, None], 1 - ones[:, None]).prod(axis=2)
    return weights @ graph.log_potential(states)


def log_z(graph):
    return np.logaddexp.reduce(graph.log_potential(all_states(graph)))


def grid(rows, columns, coupling, field, kind, entropy=0):
    return random_spin_glass(rows, columns, coupling, field, kind, np.random.default_rng(entropy)).graph()


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=3), st.integers(0, 2**32))
def test_values_are_those_of_configurations_of_the_copies(graph, entropy):
    copies = 2 if math.prod(graph.cardinalities) > 9 else 3
    values = extended_values(graph, copies, seed(entropy))
    if values.max() == -np.inf:
        with pytest.raises(NoConfiguration):
            expanded_maximum(graph, copies, seed(entropy))
        return
    found = expanded_maximum(graph, copies, seed(entropy))
    tolerance = 1e-9 * (1 + np.abs(values[values > -np.inf]).max())
    assert np.abs(values - found.value).min() < tolerance
    assert found.upper is None or found.upper > values.max() - tolerance
    assert not found.exact or found.value == pytest.approx(values.max(), abs=tolerance)
    assert found.mean_field < log_z(graph) + tolerance
    for q, k in zip(found.frequencies, graph.cardinalities, strict=True):
        assert q.shape == (k,)
        np.testing.assert_allclose(q * copies, np.round(q * copies), atol=1e-12)


def cases_tables():
    return [Factor((0, 1), np.random.default_rng(8).normal(0, 2, (3, 2)))]


def cases():
    rng = np.random.default_rng(5)
    barred = rng.normal(size=(3, 2))
    barred[0, 1] = barred[2, 0] = -np.inf
    yield FactorGraph([3, 3], [Factor((0, 1), rng.normal(0, 2, (3, 3)))]), 3
    yield FactorGraph([3, 2], [Factor((0, 1), barred), Factor((1,), rng.normal(size=2))]), 3
    yield FactorGraph([2, 2, 2], [Factor((0, 1, 2), rng.normal(0, 2, (2, 2, 2)))]), 3
    yield FactorGraph([2, 1, 3], [Factor((2, 1, 0), rng.normal(0, 2, (3, 1, 2)))]), 2
    for kind in ("attractive", "mixed"):
        yield grid(1, 3, 2.0, 1.0, kind), 4


@pytest.mark.parametrize(("graph", "copies"), list(cases()))
def test_it_is_the_maximum_over_all_configurations_of_the_copies(graph, copies):
    for entropy in range(5):
        found = expanded_maximum(graph, copies, entropy)
        assert found.value == pytest.approx(extended_values(graph, copies, seed(entropy)).max(), abs=1e-12)


def over_counts(graph, pairs):
    """Every vector of counts of binary variables, and its value."""
    n, copies = len(graph.cardinalities), pairs.noise.copies
    counts = np.array(list(itertools.product(range(copies + 1), repeat=n)))
    means = np.stack([pairs.mean_noise(np.full(n, c)) for c in range(copies + 1)])
    return counts, mean_potentials(graph, counts / copies) + means[counts, np.arange(n)].sum(axis=1)


@pytest.mark.parametrize("kind", ["attractive", "mixed"])
def test_what_is_proven_and_the_upper_bound_hold_over_all_counts(kind):
    """Weak and strong couplings, so that both proofs are seen."""
    proven = set()
    for entropy, coupling in itertools.product(range(2), (0.3, 1.0, 3.0)):
        graph = grid(2, 2, coupling, 0.5, kind, entropy)
        pairs = PairwiseCopies.of(graph, copy_noise(graph.cardinalities, 5, seed(entropy)))
        counts, values = over_counts(graph, pairs)
        found = expanded_maximum(graph, 5, seed(entropy), tries=2)
        assert found.value <= values.max() + 1e-12
        assert found.upper >= values.max() - 1e-12
        box, best = pairs.bracket(), counts[values.argmax()]
        assert (box.low <= best).all()
        assert (best <= box.high).all()
        assert pairs.upper(box) >= values.max() - 1e-12
        if found.exact:
            assert found.value == pytest.approx(values.max(), abs=1e-12)
            proven.add(box.single)
    assert True in proven
    assert kind == "mixed" or proven == {True, False}


@pytest.mark.parametrize("coupling", [1.0, 2.5])
def test_bounds_over_blocks_come_down_to_the_maximum(coupling, monkeypatch):
    monkeypatch.setattr(expanded_blocks, "ARCS", 150)
    graph = grid(2, 2, coupling, 1.0, "attractive", 3)
    pairs = PairwiseCopies.of(graph, copy_noise(graph.cardinalities, 11, seed(3)))
    counts, values = over_counts(graph, pairs)
    blocks = expanded_blocks.Blocks.around(pairs, Box(counts[0], counts[-1]), counts[0])
    assert max(s.size for s in blocks.starts) < 12
    bound = blocks.bound()
    bounds = [bound.upper]
    while not bound.chosen.single:
        blocks = blocks.split(bound.chosen)
        bound = blocks.bound()
        bounds.append(bound.upper)
    assert bounds[0] > values.max() + 0.01
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(values.max(), abs=1e-9)
    np.testing.assert_array_equal(bound.chosen.low, counts[values.argmax()])


@pytest.mark.parametrize("fixed", [0, 1, 3])
def test_a_variable_of_one_block_stays_in_it(fixed):
    """The others are in blocks of one count, so that the bound is the maximum."""
    graph = grid(2, 2, 1.0, 1.0, "attractive", 3)
    pairs = PairwiseCopies.of(graph, copy_noise(graph.cardinalities, 11, seed(3)))
    counts, values = over_counts(graph, pairs)
    best, low, high = counts[values.argmax()], counts[0].copy(), counts[-1].copy()
    low[fixed] = high[fixed] = best[fixed]
    bound = expanded_blocks.Blocks.around(pairs, Box(low, high), best).bound()
    assert bound.upper == pytest.approx(values.max(), abs=1e-9)
    np.testing.assert_array_equal(bound.chosen.low, best)
    assert bound.chosen.single


@settings(max_examples=examples(20))
@given(factor_graphs(most_variables=4), st.integers(1, 40), st.integers(0, 2**32))
def test_kernel_and_reference_agree(graph, copies, entropy):
    noise = copy_noise(graph.cardinalities, copies, seed(entropy))
    tables, near = ExpandedModel(graph, noise).arrays
    start = np.concatenate([np.random.default_rng(entropy).dirichlet(np.ones(k)) for k in graph.cardinalities])
    found = []
    for climb in (ascend, ascend_reference):
        q, means = start.copy(), np.zeros(len(graph.cardinalities))
        found.append((climb(tables, near, noise, q, means, 50), q, means))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(10))
@given(factor_graphs(most_variables=4), st.sampled_from([1, 7, 300]), st.integers(0, 2**32))
def test_the_mean_field_bound_is_below_log_z(graph, copies, entropy):
    if log_z(graph) == -np.inf:
        return
    found = expanded_maximum(graph, copies, entropy, tries=1)
    assert found.mean_field <= log_z(graph) + 1e-10 * (1 + abs(found.mean_field))
    assert found.value == pytest.approx(found.mean_field + found.certain_epsilon * max(1, found.variables))


@settings(max_examples=examples(10))
@given(factor_graphs(most_variables=4), st.integers(0, 2**32))
def test_one_copy_is_a_perturbed_maximum(graph, entropy):
    if log_z(graph) == -np.inf:
        return
    noise = [
        variable_noise(seed(entropy), i, 1, k)[0] if k > 1 else np.zeros(1) for i, k in enumerate(graph.cardinalities)
    ]
    value = Elimination(graph).maximise(np.concatenate(noise)[None])[0][0]
    found = expanded_maximum(graph, 1, entropy)
    assert (found.value, found.upper) == (pytest.approx(value, rel=1e-12, abs=1e-10), found.value)
    assert found.exact


def best_mean_field(graph):
    """The best mean-field bound on ln Z, by ascent from many starts."""
    rng, best = np.random.default_rng(0), -np.inf
    states = all_states(graph)
    phi = graph.log_potential(states)
    for _ in range(12):
        ones = rng.random(len(graph.cardinalities))
        for _ in range(60):
            for i in range(ones.size):
                held = np.where(states == 1, ones, 1 - ones)
                held[:, i] = 1.0
                weights = held.prod(axis=1) * phi
                ones[i] = 1 / (1 + np.exp(weights[states[:, i] == 0].sum() - weights[states[:, i] == 1].sum()))
        q = np.stack([ones, 1 - ones])
        best = max(best, mean_potentials(graph, ones[None])[0] - (q * np.log(q)).sum())
    return best


@pytest.mark.parametrize("graph", [triangle(), grid(2, 2, 1.0, 0.5, "attractive")], ids=["triangle", "grid"])
def test_many_copies_tend_to_the_best_mean_field_bound(graph):
    """The mean noise of copies deviates from the entropy by sqrt(pi^2 / 6 / M) a variable at most."""
    best, copies = best_mean_field(graph), 40_000
    found = [expanded_maximum(graph, copies, entropy) for entropy in range(4)]
    error = math.pi / math.sqrt(6 * copies * len(graph.cardinalities)) * len(graph.cardinalities)
    for one in found:
        assert abs(one.value - best) < 5 * error
        assert best - 0.01 * error < one.mean_field + error
        assert one.mean_field <= best + 1e-9
    assert best < log_z(graph) - 0.1


@pytest.mark.parametrize("graph", [triangle(), FactorGraph([3, 2], cases_tables())], ids=["triangle", "ternary"])
def test_nested_expected_maxima_are_log_z(graph):
    """Theorem 2, with each expected maximum by integration of its distribution function.

    E max = integral of [t > 0] - F(t), where F is the product of those of the noise, shifted.
    """
    t = np.linspace(-60, 60, 60_001)
    values = graph.log_potential(all_states(graph)).reshape(graph.cardinalities)
    while values.ndim:
        rows = values.reshape(-1, values.shape[-1])
        below = [np.exp(-np.exp(-np.minimum(t[:, None] - row + np.euler_gamma, 700))).prod(axis=1) for row in rows]
        values = np.trapezoid((t > 0) - np.array(below) + 0.5 * (t == 0), t).reshape(values.shape[:-1])
    assert values == pytest.approx(log_z(graph), abs=1e-6)


def test_epsilon_of_equation_20():
    """sum_i pi^2 2^(i - 1) / (6 M epsilon^2) = 5 %, with 100 binary variables and 10^4 copies."""
    graph = FactorGraph([2] * 100 + [1], [])
    expected = math.sqrt(math.pi**2 * (2**100 - 1) / (6 * 10**4 * 0.05))
    assert math.exp(log_corollary_epsilon(graph, 10**4, 0.95)) == pytest.approx(expected)
    assert expected == pytest.approx(6.458e13, rel=1e-3)
    mixed = FactorGraph([3, 2, 5], [])
    expected = math.sqrt(math.pi**2 * (1 + 3 + 6) / (6 * 50 * 0.1))
    assert math.exp(log_corollary_epsilon(mixed, 50, 0.9)) == pytest.approx(expected)
    assert math.isfinite(log_corollary_epsilon(FactorGraph([2] * 10**5, []), 1, 0.5))
    assert log_corollary_epsilon(FactorGraph([1], []), 1, 0.5) == -math.inf


def test_refusals_come_before_memory_is_taken():
    graph = FactorGraph([2] * 100, [])
    with pytest.raises(InputError, match="copies is 0"):
        expanded_maximum(graph, 0, 0)
    with pytest.raises(ModelTooLarge, match=r"take 1.45 PiB, and 2 GiB may be used; take 1,\d+,\d+ copies or fewer"):
        expanded_maximum(graph, 10**12, 0)
    assert bytes_of_copies([2] * 100, 10**4) < 17 * 10**6
    neither = [Factor((0,), np.array([0.0, -np.inf])), Factor((0,), np.array([-np.inf, 0.0]))]
    with pytest.raises(NoConfiguration):
        expanded_maximum(FactorGraph([2], neither), 3, 0)
