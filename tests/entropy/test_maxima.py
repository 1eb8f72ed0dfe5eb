import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.entropy import estimators as module
from thesis_cli.entropy.estimators import MOST_VALUES, Noise, entropy_maxima
from thesis_cli.entropy.staircase_kernels import climb, climb_reference
from thesis_cli.inference.enumeration import Enumeration
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials

C = np.euler_gamma
M = 20_000

MODELS = {
    "one": np.array([-3.25]),
    "uniform": np.full(6, 0.7),
    "ties": np.array([0.0, 1.0, -1.0, 1.0, 0.0, 1.0, -np.inf]),
    "spread": np.array([1.3, -0.4, -np.inf, 0.9, 2.1, -2.0, -np.inf, -np.inf, -np.inf, 0.2, 1.9]),
}


def maxima_of(phi, orders, count=M, seed=0, *, share_above=-math.inf, design="independent", **options):
    model, root = LogPotentials(np.asarray(phi, dtype=float)), np.random.SeedSequence(seed)
    return entropy_maxima(model, np.array(orders, float), count, root, Noise(share_above, design), **options)


def same(one, other):
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def brute_force(phi, alphas, count, rng, share_above=-math.inf):
    """Noise on every configuration, as the definitions say: values, at_one, potential."""
    gamma = rng.gumbel(-C, 1, (count, phi.size))
    other = np.where(phi >= share_above, gamma, rng.gumbel(-C, 1, gamma.shape))
    possible = phi > -np.inf
    values = np.array([(a * phi[possible] + gamma[:, possible]).max(axis=1) for a in alphas]).T
    return values, (phi + other).max(axis=1), phi[(phi + other).argmax(axis=1)]


def moments(x):
    """Means and covariances of the columns, and their standard errors."""
    d = x - x.mean(axis=0)
    products = np.einsum("mi,mj->mij", d, d).reshape(len(x), -1)
    both = np.hstack([x, products])
    return both.mean(axis=0), both.std(axis=0) / math.sqrt(len(x))


# The kernel


@settings(max_examples=examples(25))
@given(st.data())
def test_the_kernel_is_its_reference(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    groups = data.draw(st.integers(1, 5))
    alphas = np.array(data.draw(st.lists(st.sampled_from([0.0, 1e-9, 0.5, 1.0, 2.0, 1e6]), max_size=4)))
    seed = data.draw(st.integers(0, 2**32))
    streams = np.random.default_rng(seed), np.random.default_rng(seed)
    found, expected = (
        (np.full((groups, alphas.size), -np.inf), np.full(groups, -np.inf), np.full(groups, np.nan)) for _ in range(2)
    )
    for _ in range(data.draw(st.integers(1, 3))):
        size = data.draw(st.integers(1, 50))
        levels = rng.integers(-3, 3, size).astype(float) if data.draw(st.booleans()) else rng.normal(0, 2, size)
        first = rng.random((groups, 2))
        first[rng.random(first.shape) < 0.1] = 0.0
        levels = np.sort(levels)[::-1].copy()
        climb(streams[0], levels, first, alphas, *found)
        climb_reference(streams[1], levels, first, alphas, *expected)
        assert streams[0].bit_generator.state == streams[1].bit_generator.state
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert np.isfinite(found[1]).all()


# Laws


@pytest.mark.parametrize("block", [3, 2**20])
@pytest.mark.parametrize("share", ["all", "none", "some"])
@pytest.mark.parametrize("name", MODELS)
def test_the_joint_law_is_that_of_noise_on_every_configuration(monkeypatch, name, share, block):
    monkeypatch.setattr(module, "BLOCK", block)
    phi = MODELS[name]
    threshold = {"all": -math.inf, "none": math.inf, "some": 1.0}[share]
    alphas = [0.0, 0.5, 1.0, 2.0, 5.0]
    found = maxima_of(phi, alphas, seed=1, share_above=threshold)
    np.testing.assert_array_equal(found.orders, alphas)
    assert (found.highest, found.samples, found.share_above) == (phi.max(), M, threshold)
    expected = brute_force(phi, alphas, M, np.random.default_rng(2), threshold)
    one, error = moments(np.column_stack([found.values, found.at_one, found.potential]))
    other, other_error = moments(np.column_stack(expected))
    gap = np.abs(one - other)
    assert (gap <= 5 * np.hypot(error, other_error) + 1e-12).all()
    finite = phi[phi > -np.inf]
    for alpha, column in [*zip(alphas, found.values.T, strict=True), (1.0, found.at_one)]:
        log_z = logsumexp(alpha * finite)
        assert abs(column.mean() - log_z) < 5 * math.pi / math.sqrt(6 * M)
        assert stats.kstest(column, stats.gumbel_r(log_z - C).cdf).pvalue > 1e-5
        np.testing.assert_array_equal(found.column(alpha), found.values[:, alphas.index(alpha)])


@pytest.mark.parametrize("block", [1, 2, 5, 2**20])
@pytest.mark.parametrize("share", [-math.inf, 0.95, math.inf])
def test_the_maximiser_is_an_exact_sample_independent_of_the_maximum(monkeypatch, share, block):
    monkeypatch.setattr(module, "BLOCK", block)
    phi = np.array([0.3, -1.2, -np.inf, 1.0, 0.9, -0.2, 0.301, -3.0])
    found = maxima_of(phi, [], seed=3, share_above=share)
    assert found.values.shape == (M, 0)
    possible = phi[phi > -np.inf]
    p = np.exp(possible - logsumexp(possible))
    counts = (found.potential[:, np.newaxis] == possible).sum(axis=0)
    assert counts.sum() == M
    assert stats.chisquare(counts, M * p).pvalue > 1e-5
    halves = [found.at_one[found.potential >= 0.9], found.at_one[found.potential < 0.9]]
    assert stats.ks_2samp(*halves).pvalue > 1e-5


@pytest.mark.parametrize("block", [1, 7, 64, 2**20])
def test_the_law_of_many_configurations(monkeypatch, block):
    """Against the closed forms: E gamma(x*) = H_1, var gamma(x*) = pi^2/6 + var ln p (Theorem 9)."""
    monkeypatch.setattr(module, "BLOCK", block)
    phi = np.random.default_rng(4).normal(0, 2, 300)
    log_p = phi - logsumexp(phi)
    p = np.exp(log_p)
    found = maxima_of(phi, [0.0, 1.0, 3.0], seed=5)
    for alpha, column in zip(found.orders, found.values.T, strict=True):
        assert stats.kstest(column, stats.gumbel_r(logsumexp(alpha * phi) - C).cdf).pvalue > 1e-5
    noise = found.at_one - found.potential
    assert abs(noise.mean() + p @ log_p) < 5 * noise.std() / math.sqrt(M)
    squares = (noise + p @ log_p) ** 2
    theorem = math.pi**2 / 6 + p @ (log_p - p @ log_p) ** 2
    assert abs(squares.mean() - theorem) < 5 * squares.std() / math.sqrt(M)


# What holds of every draw


@settings(max_examples=examples(20))
@given(factor_graphs(most_variables=4), st.integers(1, 2**20), st.sampled_from(["independent", "stratified"]))
def test_maxima_under_one_noise_are_a_convex_function_of_alpha(graph, block, design):
    """Each is the largest of lines in alpha; at_one and potential are value and slope at 1."""
    phi = graph.log_potential(all_states(graph))
    alphas = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5])
    seed = np.random.SeedSequence(block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        if phi.max() == -np.inf:
            with pytest.raises(NoConfiguration):
                entropy_maxima(graph, alphas, 5, seed)
            return
        found = entropy_maxima(graph, alphas, 5, seed, Noise(design=design))
        vector = entropy_maxima(LogPotentials(phi), alphas, 5, np.random.SeedSequence(block), Noise(design=design))
    np.testing.assert_array_equal(found.column(1.0), found.at_one)
    lines = found.at_one[:, np.newaxis] + np.multiply.outer(found.potential, alphas - 1)
    assert (found.values >= lines - 1e-9).all()
    assert (np.diff(found.values, 2) >= -1e-9).all()
    assert (found.values <= found.values[:, :1] + alphas * found.highest + 1e-9).all()
    assert np.abs(found.potential[:, np.newaxis] - phi).min(axis=1).max() < 1e-9
    assert found.highest == pytest.approx(phi.max(), abs=1e-10)
    np.testing.assert_allclose(found.values, vector.values, atol=1e-9)
    np.testing.assert_allclose(found.potential, vector.potential, atol=1e-9)


@pytest.mark.parametrize("constant", [-1e5, -3.0, 1e5])
def test_a_constant_moves_each_maximum_by_alpha_times_it(constant):
    phi = MODELS["spread"]
    alphas = np.array([0.0, 0.5, 1.0, 2.0])
    plain, moved = (maxima_of(phi + c, alphas, 100, share_above=1.0 + c) for c in (0.0, constant))
    np.testing.assert_allclose(moved.values, plain.values + alphas * constant, rtol=0, atol=1e-9)
    np.testing.assert_allclose(moved.at_one, plain.at_one + constant, rtol=0, atol=1e-9)
    np.testing.assert_allclose(moved.potential, plain.potential + constant, rtol=0, atol=1e-9)
    assert moved.highest == pytest.approx(plain.highest + constant, abs=1e-9)


def test_noise_is_shared_from_the_threshold_on():
    """One configuration: its noise is the same for both maxima if phi >= the threshold, and else
    independent.
    """
    at = maxima_of([2.5], [1.0], 200, share_above=2.5)
    np.testing.assert_array_equal(at.values[:, 0], at.at_one)
    above = maxima_of([2.5], [1.0], M, share_above=np.nextafter(2.5, 3))
    assert (above.values[:, 0] != above.at_one).all()
    assert abs(np.corrcoef(above.values[:, 0], above.at_one)[0, 1]) < 5 / math.sqrt(M)


def test_orders_are_sorted_once_each_and_finite():
    found = maxima_of([0.0, 1.0], [2, math.inf, 0, 2, 1], 3)
    np.testing.assert_array_equal(found.orders, [0, 1, 2])
    same(found, maxima_of([0.0, 1.0], [0, 1, 2], 3))
    with pytest.raises(InputError, match=r"^no maxima at order 3; it must be 0, 1, 2$"):
        found.column(3)


def test_at_very_large_orders_the_maximum_is_the_highest_potential():
    phi = MODELS["spread"]
    found = maxima_of(phi, [1e12], 50)
    np.testing.assert_allclose(found.values[:, 0] / 1e12, phi.max(), atol=1e-10)


# Threads and designs


@pytest.mark.parametrize("design", ["independent", "stratified"])
@pytest.mark.parametrize("share", [-math.inf, 0.1, math.inf])
def test_threads_change_nothing(monkeypatch, share, design):
    monkeypatch.setattr(module, "BLOCK", 100)
    phi = np.random.default_rng(6).normal(0, 1, 350)
    alphas = np.array([0.0, 1.0, 2.0])
    one, four, again = (maxima_of(phi, alphas, 301, share_above=share, design=design, jobs=j) for j in (1, 4, 4))
    same(one, four)
    same(one, again)
    assert (maxima_of(phi, alphas, 301, seed=1, share_above=share, design=design).values != one.values).all()


def test_each_perturbation_of_the_independent_design_is_a_set():
    found = maxima_of([0.0, 1.0], [0.5], 50)
    np.testing.assert_array_equal(found.replicates, np.arange(50))
    assert found.independent
    assert found.sets == 50


@pytest.mark.parametrize("count", [1, 2, 3, 10, 64, 1000])
def test_stratified_sets_are_of_about_the_root_of_their_number(count):
    found = maxima_of([0.0, 1.0], [0.5], count, design="stratified")
    assert found.replicates.shape == (count,)
    assert (np.diff(found.replicates) >= 0).all()
    sizes = np.bincount(found.replicates)
    assert found.sets == len(sizes)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1
    assert abs(len(sizes) - math.sqrt(count)) < 1
    assert found.independent == (len(sizes) == count)


@pytest.mark.parametrize("count", [7, 64, 997])
def test_every_set_is_a_latin_hypercube(count):
    """Two configurations show both clocks: at a huge alpha the top's, at 0 the other's where that
    is earlier.
    """
    found = maxima_of([0.0, -1.0], [0.0, 1e4], count, seed=7, design="stratified")
    ends, firsts = (np.exp(-C - found.column(a)) for a in (1e4, 0.0))
    u, v = -np.expm1(-ends), -np.expm1(-firsts)
    below = firsts < ends * (1 - 1e-9)
    for k in range(found.sets):
        members = found.replicates == k
        size = members.sum()
        np.testing.assert_array_equal(np.sort(np.floor(u[members] * size + 1e-9)), np.arange(size))
        strata = np.floor(v[members & below] * size)
        assert len(set(strata)) == strata.size
    assert abs(below.mean() - 0.5) < 2.5 / math.sqrt(count)
    assert len(set(np.round(u * count, 6))) == count


@pytest.mark.parametrize("block", [2, 2**20])
def test_the_stratified_design_keeps_the_law(monkeypatch, block):
    """Sets are independent of each other, so that their means tell the error; a marginal is what it
    was.
    """
    monkeypatch.setattr(module, "BLOCK", block)
    phi = MODELS["spread"]
    alphas = [0.0, 0.5, 1.0, 3.0]
    found = maxima_of(phi, alphas, M, seed=8, share_above=1.0, design="stratified")
    plain = brute_force(phi, alphas, M, np.random.default_rng(9), 1.0)
    features = np.column_stack([found.values, found.at_one, found.potential])
    one, error = moments(features)  # the error of independent draws, which is larger
    other, other_error = moments(np.column_stack(plain))
    assert (np.abs(one - other) <= 5 * np.hypot(error, other_error) + 1e-12).all()
    finite = phi[phi > -np.inf]
    for alpha, column in zip(alphas, found.values.T, strict=True):
        means = np.bincount(found.replicates, column) / np.bincount(found.replicates)
        gap = abs(means.mean() - logsumexp(alpha * finite))
        assert gap < 5 * means.std() / math.sqrt(found.sets)
        # one member of each set is a draw like any other
        drawn = column[np.unique(found.replicates, return_index=True)[1]]
        assert stats.kstest(drawn, stats.gumbel_r(logsumexp(alpha * finite) - C).cdf).pvalue > 1e-5
    chances = np.exp(finite - logsumexp(finite))
    share = (found.potential[:, np.newaxis] == finite).mean(axis=0)
    assert (np.abs(share - chances) < 5 * np.sqrt(chances * (1 - chances) / M)).all()


def test_the_stratified_design_varies_less_at_alpha_0():
    """A uniform p: sets of 32 are independent, so their means measure the variance, which was
    pi^2/6 / 32.
    """
    found = maxima_of(np.zeros(40), [0.0], 1024, seed=10, design="stratified")
    means = np.bincount(found.replicates, found.column(0.0)) / np.bincount(found.replicates)
    more = np.concatenate([means, *(_set_means(seed) for seed in range(11, 21))])
    ratio = more.var(ddof=1) / (math.pi**2 / 6 / 32)
    assert ratio < 0.8
    assert ratio * (more.size - 1) < stats.chi2(more.size - 1).ppf(stats.norm.cdf(-5))


def _set_means(seed):
    found = maxima_of(np.zeros(40), [0.0], 1024, seed=seed, design="stratified")
    return np.bincount(found.replicates, found.column(0.0)) / np.bincount(found.replicates)


# Blocks, progress and refusals


@given(factor_graphs(most_variables=4), st.integers(1, 300))
def test_blocks_of_any_size_hold_every_configuration_once(graph, block):
    phi = graph.log_potential(all_states(graph))
    for model in (graph, LogPotentials(phi)):
        parts = [part.copy() for part in Enumeration(model).blocks(block)]
        assert [part.size for part in parts[:-1]] == [block] * (len(parts) - 1)
        assert 1 <= parts[-1].size <= block
        np.testing.assert_allclose(np.concatenate(parts), phi, rtol=1e-12, atol=1e-12)


def test_progress_adds_up(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 10)
    done = []
    maxima_of(np.append(np.zeros(25), np.full(12, -np.inf)), [0.5], 3, progress=done.append)
    assert done == [10, 10, 10, 7]


def test_blocks_without_a_configuration_are_passed_over(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    phi = np.full(20, -np.inf)
    phi[[6, 17]] = 0.5, -1.0
    found = maxima_of(phi, [0.0, 1.0], M, seed=11)
    assert found.highest == 0.5
    assert set(found.potential) == {0.5, -1.0}
    assert abs(found.column(0.0).mean() - math.log(2)) < 5 * math.pi / math.sqrt(6 * M)


@pytest.mark.parametrize("share", [-math.inf, 0.0, math.inf])
def test_no_configuration(share):
    with pytest.raises(NoConfiguration):
        maxima_of(np.full(5, -np.inf), [0.0, 1.0], 3, share_above=share)
    graph = FactorGraph([2], [Factor((0,), np.array([0, -np.inf])), Factor((0,), np.array([-np.inf, 0]))])
    with pytest.raises(NoConfiguration):
        entropy_maxima(graph, np.array([0.0]), 3, np.random.SeedSequence(0))


def test_what_is_refused():
    with pytest.raises(InputError, match=r"perturbations is 0; it must be 1 or more"):
        maxima_of([0.0], [1.0], 0)
    for alpha in (-0.5, math.nan, -math.inf):
        with pytest.raises(InputError, match=r"^the order is .*; it must be 0 or more, or inf$"):
            maxima_of([0.0], [0.5, alpha], 5)
    with pytest.raises(InputError, match="must be below 268,435,456"):
        maxima_of([0.0], [0.5], MOST_VALUES // 5 + 1)
    with pytest.raises(ModelTooLarge):
        maxima_of(np.zeros(11), [0.5], 5, max_configurations=10)
    for wrong in (math.nan, math.inf):
        with pytest.raises(InputError, match="log-potential 1 is"):
            maxima_of([0.0, wrong], [0.5], 5)
