import math
from contextlib import ExitStack, contextmanager
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.inference.sampling.test_draws import check_drawn_from, index_of
from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import bytes_text
from thesis_cli.inference.elimination import plan as elimination_plan
from thesis_cli.inference.elimination import slices as elimination_slices
from thesis_cli.inference.elimination import sums as elimination_segments
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.entropy import weighted_expm1
from thesis_cli.inference.elimination.order import _adjacency, _pairs, best_order, cliques_of
from thesis_cli.inference.elimination.order_kernels import greedy_order
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


@contextmanager
def cut_up(block, segments, slices):
    """Eliminate in blocks of few entries, in segments, and with memory for few variables at once."""
    with ExitStack() as stack:
        for module, name, value in (
            (elimination_plan, "BLOCK", block),
            (elimination_segments, "FEWEST", segments),
            (elimination_slices, "SMALLEST", 0),
            (elimination_slices, "FEWEST", slices),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


ways = st.tuples(st.sampled_from([1, 4, 1024]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 6]))


@settings(max_examples=examples(50))
@given(factor_graphs(), ways, st.sampled_from([1.0, 100.0, 1e6]))
def test_sum_is_brute_force(graph, way, scale):
    graph = graph.tempered(scale)
    phi = graph.log_potential(all_states(graph))
    with cut_up(*way):
        found = Elimination(graph)
    assert found.log_partition_function() == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-11)


@settings(max_examples=examples(50))
@given(factor_graphs(), ways, st.integers(0, 2**32), st.integers(1, 4))
def test_maximum_is_brute_force(graph, way, seed, batch):
    states = all_states(graph)
    noise = np.random.default_rng(seed).gumbel(size=(batch, sum(graph.cardinalities)))
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    perturbed = graph.log_potential(states)[None] + noise[:, states + offsets].sum(axis=-1)
    with cut_up(*way):
        values, found = Elimination(graph).maximise(noise)
    np.testing.assert_allclose(values, perturbed.max(axis=1), rtol=1e-12, atol=1e-11)
    attained = graph.log_potential(found) + np.take_along_axis(noise, found + offsets, axis=1).sum(axis=1)
    np.testing.assert_allclose(attained, values, rtol=1e-12, atol=1e-11)


@settings(max_examples=examples(50))
@given(factor_graphs(), ways, st.sampled_from([1.0, 100.0, 1e6]))
def test_marginals_are_brute_force(graph, way, scale):
    graph = graph.tempered(scale)
    states = all_states(graph)
    phi = graph.log_potential(states)
    with cut_up(*way):
        if phi.max() == -np.inf:
            with pytest.raises(InputError, match="no configuration is possible"):
                Elimination(graph).marginals()
            return
        p = np.exp(phi - np.logaddexp.reduce(phi))
        expected = [p[states[:, i] == x].sum() for i, k in enumerate(graph.cardinalities) for x in range(k)]
        log_z, found = Elimination(graph).marginals()
        assert log_z == Elimination(graph).log_partition_function()
    np.testing.assert_allclose(found, expected, rtol=1e-10 * max(1.0, scale), atol=1e-12 * max(1.0, scale))


def test_marginals_where_a_sum_of_logarithms_gives_weights():
    """A state that weighs exp(-700) is summed in logarithms, and the message is one of weights again."""
    rng = np.random.default_rng(0)
    factors = [Factor((i,), rng.normal(size=3)) for i in range(3)]
    factors += [Factor((i, i + 1), rng.normal(size=(3, 3))) for i in range(2)]
    factors += [Factor((i,), np.array([0.0, -700.0, 0.0])) for i in range(3)]
    graph = FactorGraph([3, 3, 3], factors)
    states = all_states(graph)
    p = np.exp(graph.log_potential(states) - np.logaddexp.reduce(graph.log_potential(states)))
    expected = [np.bincount(states[:, i], p, 3) for i in range(3)]
    np.testing.assert_allclose(Elimination(graph).marginals()[1], np.concatenate(expected), atol=1e-12)


@settings(max_examples=examples(30))
@given(factor_graphs(), st.sampled_from([1.0, 1 - 1e-2, 1 + 1e-2, 1 - 1e-9, 1 + 1e-9]))
def test_entropies_are_brute_force(graph, alpha):
    phi = graph.log_potential(all_states(graph))
    if phi.max() == -np.inf:
        with pytest.raises(NoConfiguration):
            Elimination(graph).renyi_entropy(alpha)
        return
    possible = phi[phi > -np.inf]
    log_z = np.logaddexp.reduce(possible)
    p = np.exp(possible - log_z)
    powers = p @ np.expm1((alpha - 1) * (possible - log_z))
    expected = -p @ (possible - log_z) if alpha == 1 else np.log1p(powers) / (1 - alpha)
    found = Elimination(graph).renyi_entropy(alpha)
    assert found == pytest.approx((log_z, expected), rel=1e-11, abs=1e-11)
    assert found[0] == Elimination(graph).log_partition_function()


def test_tables_of_an_entropy_that_do_not_fit_are_refused():
    graph = ising(4, 4, 0.5, np.random.default_rng(0))
    small = Elimination(graph)
    small._memory = 1000
    with pytest.raises(ModelTooLarge, match=r"an entropy needs .* at width 4"):
        small.renyi_entropy()


def test_expm1_with_a_weight_neither_overflows_nor_cancels():
    log_weights = np.array([-1e4, -1e300, 0.0, 0.0, -1.0, -1e300, 0.0])
    exponents = np.array([9990.0, 1e299, 1e-20, -1e-20, 2.0, -1e300, 0.0])
    expected = [math.exp(-10), 0, 1e-20, -1e-20, math.exp(-1) * math.expm1(2), 0, 0]
    np.testing.assert_allclose(weighted_expm1(log_weights, exponents), expected, rtol=1e-12)


@settings(max_examples=examples(20))
@given(factor_graphs(), ways, st.integers(0, 2**32))
def test_samples_follow_the_gibbs_distribution(graph, way, seed):
    phi = graph.log_potential(all_states(graph))
    with cut_up(*way):
        if phi.max() == -np.inf:
            with pytest.raises(InputError, match="no configuration is possible"):
                Elimination(graph).sample(1, np.random.default_rng(seed))
            return
        states = Elimination(graph).sample(5000, np.random.default_rng(seed))
    check_drawn_from(index_of(graph, states), phi)


def test_samples_of_a_grid_have_its_marginals_and_its_mean_potential():
    graph = ising(8, 8, 0.4, np.random.default_rng(3))
    states = Elimination(graph).sample(20_000, np.random.default_rng(1))
    log_z, marginals = Elimination(graph).marginals()
    p = marginals[1::2]
    assert (np.abs(states.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / 20_000)).all()
    phi = graph.log_potential(states)
    same, entropy = Elimination(graph).renyi_entropy()
    assert same == log_z
    assert abs(phi.mean() - (log_z - entropy)) < 5 * phi.std() / np.sqrt(20_000)


def test_the_mean_potential_is_the_derivative_of_ln_z():
    graph = ising(8, 8, 0.4, np.random.default_rng(3))
    low, high = (Elimination(graph.tempered(t)).log_partition_function() for t in (1 - 1e-4, 1 + 1e-4))
    log_z, entropy = Elimination(graph).renyi_entropy()
    assert log_z - entropy == pytest.approx((high - low) / 2e-4, rel=1e-7)


def test_a_backward_pass_takes_as_many_segments_as_the_memory_needs():
    graph = ising(3, 300, 0.5, np.random.default_rng(0))
    large = Elimination(graph)
    needed = large._segments().memory
    small = Elimination(graph, memory=needed * 19 // 20)
    assert small._segments().memory <= needed * 19 // 20
    for a, b in zip(large.marginals(), small.marginals(), strict=True):
        np.testing.assert_array_equal(a, b)
    narrow = Elimination(graph, memory=large.cost.memory)
    with (
        mock.patch.object(elimination_segments, "MOST", 1),
        pytest.raises(ModelTooLarge, match=r"a backward pass needs .* KiB at width 3; raise the memory from"),
    ):
        narrow.marginals()


def test_a_wide_model_is_solved_in_slices_that_fit():
    rng = np.random.default_rng(0)
    factors = [Factor((i, j), rng.normal(size=(2, 2))) for i in range(13) for j in range(i)]
    graph = FactorGraph([2] * 13, factors)
    whole = Elimination(graph)
    memory = whole.cost.memory // 5
    with pytest.raises(ModelTooLarge, match=r"elimination needs .* at width 12"):
        Elimination(graph, memory=memory)
    with mock.patch.object(elimination_slices, "SMALLEST", 0):
        small = Elimination(graph, memory=memory)
    assert small.slices > 1
    assert small.cost.memory <= memory
    assert small.log_partition_function() == pytest.approx(whole.log_partition_function(), rel=1e-14)


def test_threads_change_no_bit():
    graph = ising(3, 18, 0.5, np.random.default_rng(0))
    graph = graph.with_factors(
        [*graph.factors, Factor(tuple(range(18)), np.random.default_rng(1).normal(size=[2] * 18))]
    )
    assert Elimination(graph, jobs=3).log_partition_function() == Elimination(graph).log_partition_function()


def test_a_grid_beyond_enumeration():
    """12 x 12 by elimination and by a transfer matrix."""
    graph = ising(12, 12, 0.4, np.random.default_rng(3))
    theta = np.array([f.table[1] for f in graph.factors[:144]]).reshape(12, 12)
    rows = np.array(np.meshgrid(*[[-1, 1]] * 12, indexing="ij")).reshape(12, -1).T
    along = 0.4 * (rows[:, 1:] * rows[:, :-1]).sum(axis=1)
    total = rows @ theta[0] + along
    for row in theta[1:]:
        for site in range(12):  # turn one site of the row over, summing out the old one
            cube = total.reshape(2**site, 2, -1)
            same, other = cube + 0.4, cube[:, ::-1] - 0.4
            total = np.logaddexp(same, other).reshape(-1)
        total = total + rows @ row + along
    found = Elimination(graph)
    assert found.log_partition_function() == pytest.approx(np.logaddexp.reduce(total), rel=1e-12)


def test_too_wide_a_model_says_its_width_before_anything_is_allocated():
    graph = FactorGraph([2] * 60, [Factor((i, j), np.zeros((2, 2))) for i in range(60) for j in range(i)])
    with pytest.raises(ModelTooLarge, match=r"elimination needs 32 EiB at width 59; raise the memory from 2 GiB"):
        Elimination(graph)


def test_a_chain_has_width_1_and_a_tree_is_eliminated_from_its_leaves():
    chain = [(i, i + 1) for i in range(5)]
    order = best_order([2] * 6, chain).order
    cliques = cliques_of(order, chain)
    assert max(map(len, cliques)) == 2
    rays = [(0, i) for i in range(1, 6)]
    star = best_order([2] * 6, rays).order
    cliques = cliques_of(star, rays)
    assert star.index(0) >= 4
    assert sorted(order) == sorted(star) == list(range(6))


def eliminated(order, scopes, bits):
    """By definition: the clique of each variable, its fill, and the least fill and table at that
    step.
    """
    neighbours = {i: set() for i in order}
    for scope in scopes:
        for i in scope:
            neighbours[i] |= set(scope) - {i}
    found = []
    for i in order:
        fill = {j: sum(b not in neighbours[a] for a, b in combinations(sorted(neighbours[j]), 2)) for j in neighbours}
        size = {j: sum(bits[a] for a in (j, *near)) for j, near in neighbours.items()}
        near = neighbours.pop(i)
        found.append((tuple(sorted({i, *near})), (fill[i], size[i]), (min(fill.values()), min(size.values()))))
        for a in near:
            neighbours[a] = (neighbours[a] | near) - {a, i}
    return found


scopes = st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=3, unique=True).map(tuple), max_size=20)


def greedy(n, scopes, bits, fill, size, effort=np.inf):
    first, adjacent = _adjacency(n, _pairs(scopes))
    found = greedy_order(first, adjacent, bits, np.zeros(n), np.array([fill, size]), np.array([np.inf, effort]))
    return found[0].tolist(), found[1][0], found[2]


@given(scopes, st.lists(st.integers(1, 4), min_size=9, max_size=9), st.booleans())
def test_greedy_orders_take_the_least_and_know_their_cost(scopes, cardinalities, by_fill):
    bits = np.round(np.log2(cardinalities) * 2**20) / 2**20
    order, total, width = greedy(9, scopes, bits, float(by_fill), float(not by_fill))
    assert sorted(order) == list(range(9))
    steps = eliminated(order, scopes, bits)
    assert cliques_of(order, scopes) == [clique for clique, *_ in steps]
    assert width == max(len(clique) for clique, *_ in steps) - 1
    assert total == pytest.approx(np.log2(sum(2.0 ** own[1] for _, own, _ in steps)))
    sizes = [len(c) for c, *_ in steps]
    complete = next(j for j in range(9) if sizes[j:] == list(range(9 - j, 0, -1)))  # there any order is as good
    for _, own, least in steps[:complete]:
        assert own[not by_fill] == least[not by_fill]


def test_least_fill_counts_the_fill_that_others_save():
    for entropy in range(10):
        rng = np.random.default_rng(entropy)
        scopes = [tuple(sorted(rng.choice(25, 2, replace=False).tolist())) for _ in range(60)]
        order = greedy(25, scopes, np.ones(25), 1.0, 0.0)[0]
        assert all(own[0] == least[0] for _, own, least in eliminated(order, scopes, np.ones(25)))


@given(scopes, st.integers(0, 100))
def test_a_search_without_effort_bounds_the_cost_of_its_order(scopes, effort):
    order, total, width = greedy(9, scopes, np.ones(9), 0.0, 1.0, float(effort))
    steps = eliminated(order, scopes, np.ones(9))
    assert total >= np.log2(sum(2.0 ** len(clique) for clique, *_ in steps)) - 1e-9
    assert width >= max(len(clique) for clique, *_ in steps) - 1


def test_a_shuffled_grid_is_refused_with_a_realistic_width_that_memory_lifts():
    rng = np.random.default_rng(0)
    at = rng.permutation(22 * 22).reshape(22, 22)
    pairs = [*zip(at[:, 1:].flat, at[:, :-1].flat, strict=True), *zip(at[1:].flat, at[:-1].flat, strict=True)]
    graph = FactorGraph([2] * 484, [Factor((int(a), int(b)), np.zeros((2, 2))) for a, b in pairs])
    with pytest.raises(ModelTooLarge, match=r"at width [23]\d"):
        Elimination(graph, memory=2**19)
    assert Elimination(graph, memory=2**40).width < 30


def test_a_wide_model_of_many_variables_is_planned():
    assert best_order([2] * 500, [tuple(range(500))]).bits == pytest.approx(501)
    order = best_order([3] * 100_000, [(0, 1)])
    assert (len(order.order), order.width) == (100_000, 1)


def test_agrees_with_enumeration_on_a_larger_model():
    graph = ising(4, 5, 1.0, np.random.default_rng(5))
    assert Elimination(graph).log_partition_function() == pytest.approx(log_partition_function(graph), rel=1e-13)


@pytest.mark.parametrize(
    ("count", "text"), [(5, "5 bytes"), (2048, "2 KiB"), (3 * 2**30, "3 GiB"), (2**100, "2^100 bytes")]
)
def test_bytes(count, text):
    assert bytes_text(count) == text
