"""Contraction along a tree against brute force, for each planner, in slices and by each kernel."""

import math
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.inference.sampling.test_draws import check_drawn_from, index_of
from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.inference.elimination import contraction, passes, planners, tree
from thesis_cli.inference.elimination.contraction import Contraction
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.passes import back_pass
from thesis_cli.inference.elimination.planners import _by_library, planned, sliced, tree_of_order
from thesis_cli.inference.elimination.tree import PairTree
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising
from thesis_cli.studies.models.network import pedigree


@contextmanager
def planned_by(turn, side, block, held, safe=contraction.SAFE):
    """Take the tree of one planner, in so many slices of variables, by matrices of `side` rows at least,
    in blocks of few entries, and with logarithms of weights below `safe`."""

    def one(cardinalities, scopes, memory, task="sum"):
        found = tree_of_order(cardinalities, scopes, range(len(cardinalities)))
        if turn is not None and len(scopes) > 2:
            found = _by_library(found, turn)
        found = sliced(found.in_order(), memory)
        for _ in range(held):
            for chosen in planners._cheapest(found.tree, 1):
                part, slices = found.tree.held(chosen), found.slices * cardinalities[chosen]
                found = planners.Sliced(part, (*found.held, chosen), slices, part.layout, found.cost)
        return found

    with ExitStack() as stack:
        for module, name, value in (
            (contraction, "planned", one),
            (contraction, "SAFE", safe),
            (contraction, "ROWS", 3),
            (tree, "SIDE", side),
            (tree, "SECONDS_MOVED", 0.0),
            (tree, "LEAST_RUN", block),
            (tree, "BLOCK", block),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


ways = st.tuples(
    st.sampled_from([None, 0, 1]),
    st.sampled_from([1, 16]),
    st.sampled_from([1, 4, 512]),
    st.integers(0, 2),
    st.sampled_from([contraction.SAFE, math.inf]),
)


@settings(max_examples=examples(60))
@given(factor_graphs(), ways, st.sampled_from([1.0, 100.0, 1e6]))
def test_sums_and_marginals_are_brute_force(graph, way, scale):
    graph = graph.tempered(scale)
    states = all_states(graph)
    phi = graph.log_potential(states)
    log_z = np.logaddexp.reduce(phi)
    with planned_by(*way):
        found = Contraction(graph)
        assert found.log_partition_function() == pytest.approx(log_z, rel=1e-12, abs=1e-11)
        if log_z == -np.inf:
            with pytest.raises(InputError, match="no configuration is possible"):
                found.marginals()
            with pytest.raises(InputError, match="no configuration is possible"):
                found.sample(1, np.random.default_rng(0))
            return
        same, marginals = found.marginals()
    assert same == pytest.approx(log_z, rel=1e-12, abs=1e-11)
    p = np.exp(phi - log_z)
    expected = [p[states[:, i] == x].sum() for i, k in enumerate(graph.cardinalities) for x in range(k)]
    np.testing.assert_allclose(marginals, expected, rtol=1e-10 * scale, atol=1e-12 * scale)


@settings(max_examples=examples(60))
@given(factor_graphs(), ways, st.integers(0, 2**32), st.sampled_from([0.0, 1.0, 1e5]))
def test_maxima_are_brute_force(graph, way, seed, scale):
    """Without noise many configurations tie."""
    states = all_states(graph)
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    noise = scale * np.random.default_rng(seed).normal(size=(3, sum(graph.cardinalities)))
    rounded = graph.with_factors([Factor(f.scope, np.round(f.table)) for f in graph.factors])
    with planned_by(*way):
        values, found = Contraction(rounded).maximise(noise)
    every = rounded.log_potential(states) + noise[:, offsets + states].sum(axis=2)
    np.testing.assert_allclose(values, every.max(axis=1), rtol=1e-12, atol=1e-10)
    if values[0] > -np.inf:
        at = rounded.log_potential(found) + noise[np.arange(3)[:, np.newaxis], offsets + found].sum(axis=1)
        np.testing.assert_allclose(at, values, rtol=1e-12, atol=1e-10)


def test_a_maximum_keeps_within_the_memory_in_slices():
    graph = ising(11, 11, 1.0, np.random.default_rng(0))
    memory = Contraction(graph).maximum.cost.memory // 2
    noise = np.random.default_rng(1).normal(size=(2, 242))
    expected, states = Elimination(graph).maximise(noise)
    with mock.patch.object(planners, "SMALLEST", 1):
        solver = Contraction(graph, memory)
        assert solver.maximum.slices > 1
        assert solver.maximum.cost.memory <= memory
        values, found = solver.maximise(noise)
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    np.testing.assert_array_equal(found, states)
    with pytest.raises(ModelTooLarge, match="the maximum along a tree needs"):
        Contraction(graph, Contraction(graph).cost.memory).maximise(noise)


@settings(max_examples=examples(20))
@given(factor_graphs(), ways, st.integers(0, 2**32))
def test_samples_follow_the_gibbs_distribution(graph, way, seed):
    phi = graph.log_potential(all_states(graph))
    if phi.max() > -np.inf:
        with planned_by(*way):
            check_drawn_from(index_of(graph, Contraction(graph).sample(5000, np.random.default_rng(seed))), phi)


@st.composite
def wide_graphs(draw):
    """Eight variables in 20 factors, in some of which a third of the entries are -inf; one configuration is
    possible."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    states, possible = draw(st.lists(st.integers(1, 3), min_size=8, max_size=8)), rng.random(8)
    factors = []
    for _ in range(20):
        scope = tuple(rng.permutation(8)[: rng.integers(1, 4)].tolist())
        table = rng.normal(size=[states[i] for i in scope]) * draw(st.sampled_from([1.0, 300.0]))
        hard = rng.random(table.shape) < draw(st.sampled_from([0.0, 1 / 3]))
        hard[tuple(int(possible[i] * states[i]) for i in scope)] = False
        factors.append(Factor(scope, np.where(hard, -np.inf, table)))
    return FactorGraph(states, factors)


def passes_within(tree, task):
    """Passes that make tables again, in ever less memory."""
    whole = back_pass(tree, task)
    for size in range(whole.size - 1, 0, -max(1, whole.size // 10)):
        found = back_pass(tree, task, whole.memory - 8 * (whole.size - size))
        if not found:
            return
        assert found.size <= size
        yield found


@settings(max_examples=examples(40))
@given(wide_graphs(), ways, st.sampled_from([4, 64]))
def test_tables_that_are_made_again_change_no_bit(graph, way, small):
    states = all_states(graph)
    phi = graph.log_potential(states)
    p = np.exp(phi - np.logaddexp.reduce(phi))
    brute = [p[states[:, i] == x].sum() for i, k in enumerate(graph.cardinalities) for x in range(k)]
    with planned_by(*way), mock.patch.multiple(passes, SMALL=small, SLOWEST=math.inf):
        solver = Contraction(graph)
        plan, expected = solver.plan, solver.marginals()
        drawn = solver.sample(20, np.random.default_rng(0))
        np.testing.assert_allclose(expected[1], brute, rtol=1e-10, atol=1e-12)
        for layout in passes_within(plan.tree, "marginals"):
            solver.back = planners.with_pass(plan.tree, plan.held, plan.slices, layout)
            log_z, marginals = solver.marginals()
            assert log_z == expected[0]
            np.testing.assert_array_equal(marginals, expected[1])
        for layout in passes_within(plan.tree, "samples"):
            solver.drawn = planners.with_pass(plan.tree, plan.held, plan.slices, layout)
            np.testing.assert_array_equal(solver.sample(20, np.random.default_rng(0)), drawn)


def test_weights_that_would_underflow_are_summed_as_logarithms():
    """The largest entries of two tables meet entries of weight 0 of the other alone."""
    low = -500.0
    graph = FactorGraph(
        [2, 2, 2],
        [
            Factor((0, 1), np.array([[0.0, -np.inf], [-np.inf, low]])),
            Factor((0, 1), np.array([[-np.inf, 0.0], [0.0, low]])),
            Factor((1, 2), np.array([[0.0, 0.0], [low, 2 * low]])),
        ],
    )
    found = Contraction(graph)
    assert found.log_partition_function() == pytest.approx(3 * low, rel=1e-14)
    np.testing.assert_allclose(found.marginals()[1], [0, 1, 0, 1, 1, 0], atol=1e-200)


@pytest.fixture(scope="module")
def deep():
    return pedigree(6, 10, 2, 3, 0.3, np.random.default_rng(1)).conditioned()


def test_a_pedigree_by_tree_and_by_order(deep):
    assert Contraction(deep).log_partition_function() == pytest.approx(
        Elimination(deep).log_partition_function(), rel=1e-13
    )
    np.testing.assert_allclose(Contraction(deep).marginals()[1], Elimination(deep).marginals()[1], atol=1e-12)


def test_sums_of_logarithms_are_those_of_weights(deep):
    by_weights = Contraction(deep)
    with mock.patch.object(contraction, "SAFE", math.inf):
        by_logarithms = Contraction(deep)
        assert by_logarithms.log_partition_function() == pytest.approx(by_weights.log_partition_function(), rel=1e-13)
        np.testing.assert_allclose(by_logarithms.marginals()[1], by_weights.marginals()[1], rtol=1e-10, atol=1e-13)


def test_threads_change_no_bit(monkeypatch, deep):
    monkeypatch.setattr("thesis_cli.inference.elimination.contraction.LARGE", 1)
    found = Contraction(deep, jobs=3)
    assert found.log_partition_function() == Contraction(deep).log_partition_function()


def test_the_race_takes_the_tree_of_fewest_predicted_seconds(monkeypatch, deep):
    scopes = [f.scope for f in deep.factors]
    own = tree_of_order(deep.cardinalities, scopes, planners.best_order(deep.cardinalities, scopes).order)
    trees = [own, *(_by_library(own, turn) for turn in range(3))]
    monkeypatch.setattr(planners, "SECONDS_A_TABLE", 0.0)
    monkeypatch.setattr(planners, "ROUNDS", 3)
    best = planned(deep.cardinalities, scopes, 2**40)
    assert best.cost.seconds == min(planners.fitted(each, 2**40).cost.seconds for each in trees)
    assert best.tree.pairs == planned(deep.cardinalities, scopes, 2**40).tree.pairs


def test_a_refusal_names_memory_in_which_a_pass_back_runs():
    graph = ising(11, 11, 1.0, np.random.default_rng(0))
    whole = Contraction(graph)
    with pytest.raises(ModelTooLarge, match=r"a pass back needs \d+ KiB") as refusal:
        Contraction(graph, whole.cost.memory).marginals()
    named = refusal.value.memory
    assert whole.cost.memory < named < whole.back.cost.memory
    enough = Contraction(graph, named)
    assert enough.back.cost.memory <= named
    np.testing.assert_allclose(enough.marginals()[1], whole.marginals()[1], rtol=1e-12)


def test_tables_that_do_not_fit_are_cut_into_slices_or_refused():
    rng = np.random.default_rng(0)
    graph = FactorGraph([2] * 14, [Factor((i, j), rng.normal(size=(2, 2))) for i in range(14) for j in range(i)])
    whole = Contraction(graph)
    memory = whole.cost.memory // 4
    refused = r"contraction needs .* KiB at width 1\d, and is predicted to take .* s with as much; raise the memory"
    with pytest.raises(ModelTooLarge, match=refused):
        Contraction(graph, memory)
    with mock.patch.object(planners, "SMALLEST", 0):
        small = Contraction(graph, memory)
        assert small.plan.slices > 1
        assert small.cost.memory <= memory
        assert small.log_partition_function() == pytest.approx(whole.log_partition_function(), rel=1e-14)
        assert small.back.cost.memory <= memory
        np.testing.assert_allclose(small.marginals()[1], whole.marginals()[1], rtol=1e-12)


@settings(max_examples=examples(30))
@given(factor_graphs(), st.sampled_from([None, 0]))
def test_tables_that_are_needed_at_once_have_places_of_their_own(graph, turn):
    with planned_by(turn, 16, 512, 0):
        plan = Contraction(graph).plan.tree
    first, layout = len(plan.scopes), plan.layout
    live = set(range(first))
    for j, (a, b) in enumerate(plan.pairs, first):
        live.add(j)
        spans = sorted((layout.there[k].at, layout.there[k].at + plan.sizes[k]) for k in live)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        assert spans[-1][1] <= layout.size
        live -= {a, b}


def test_a_tree_sums_each_variable_where_the_last_two_tables_meet():
    found = PairTree([2, 3, 4], [(0, 1), (1, 2), (1,), (0,)], [(0, 1), (4, 2), (5, 3)])
    assert [set(table) for table in found.tables] == [{0, 1}, {1}, {1}, {0}, {0, 1}, {0}, set()]
    assert [step.terms for step in found.steps] == [6, 6, 2]


def test_models_that_end_at_once_do_not_import_the_library():
    script = (
        "import sys, numpy as np\n"
        "from thesis_cli.inference.exact import exact_log_partition_function as exact\n"
        "from thesis_cli.studies.models.examples import ising\n"
        "exact(ising(3, 15, 0.5, np.random.default_rng(0)))\n"
        "assert 'cotengra' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ))


def test_a_grid_without_factors_on_pairs():
    graph = FactorGraph([2, 3], [Factor((0,), np.zeros(2))])
    assert Contraction(graph).log_partition_function() == pytest.approx(math.log(6), rel=1e-14)
    assert Contraction(FactorGraph([2, 3], [])).log_partition_function() == pytest.approx(math.log(6), rel=1e-14)
    assert Contraction(ising(2, 2, 0.5, np.random.default_rng(0))).sample(3, np.random.default_rng(0)).shape == (3, 4)
