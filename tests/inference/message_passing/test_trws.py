"""TRW-S: its bound beside brute force, its iterations beside a plain reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.inference.message_passing.test_belief_propagation import attained, forests, grid, gumbels, perturbed
from tests.tiers import examples
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing import trws_kernels
from thesis_cli.inference.message_passing.belief_propagation import MaxProduct, messages_of
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.pairwise import lifted, pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass


def slack(values):
    """Rounding that is granted to sums of potentials."""
    return 1e-11 * np.maximum(1, np.abs(np.where(values > -np.inf, values, 0)))


@settings(max_examples=examples(30))
@given(factor_graphs(), st.integers(0, 2**32), st.integers(1, 60))
def test_the_maximum_lies_between_value_and_bound(graph, seed, iterations):
    noise = gumbels(graph, 2, seed)
    solver = TRWS(graph, max_iterations=iterations)
    values, states, bounds = solver.solve(noise)
    best = perturbed(graph, noise).max(axis=1)
    assert (bounds >= best - slack(best)).all()
    assert (values <= best + slack(best)).all()
    np.testing.assert_allclose(attained(graph, noise, states), values, rtol=1e-13, atol=1e-11)
    certified = solver.certified & (best > -np.inf)
    assert (bounds[certified] - values[certified] <= 1e-9 * np.maximum(1, np.abs(bounds[certified]))).all()
    for a, b in zip(solver.maximise(noise), (values, states), strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=examples(25))
@given(forests(), st.integers(0, 2**32))
def test_forests_are_certified(graph, seed):
    noise = gumbels(graph, 2, seed)
    solver = TRWS(graph)
    values, _, bounds = solver.solve(noise)
    best = perturbed(graph, noise).max(axis=1)
    assert solver.certified.all()
    np.testing.assert_allclose(values, best, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bounds, best, rtol=1e-8, atol=1e-8)


def iterate_reference(form, unary, messages):
    """One iteration on a dictionary (source, target) -> log-message; returns phi, states and bound."""
    n = len(form.cardinalities)
    unary = [unary[form.offsets[i] : form.offsets[i + 1]] for i in range(n)]
    tables = {}
    for (i, j), table in zip(form.edges.tolist(), form.tables, strict=True):
        tables[i, j], tables[j, i] = table, table.T
    lower = [sorted(i for i, k in tables if k == j and i < j) for j in range(n)]
    higher = [sorted(i for i, k in tables if k == j and i > j) for j in range(n)]

    def send(i, j):
        belief = unary[i] + sum(messages[k, i] for k in lower[i] + higher[i])
        possible = belief > -np.inf
        chains = max(len(lower[i]), len(higher[i]))
        rest = belief[possible] / chains - messages[j, i][possible]
        new = np.concatenate([np.full((1, tables[i, j].shape[1]), -np.inf), tables[i, j][possible] + rest[:, None]])
        top = new.max()
        messages[i, j] = new.max(axis=0) - (top if top > -np.inf else 0.0)
        return top

    states = []
    for i in range(n):
        known = unary[i] + sum((tables[j, i][states[j]] for j in lower[i]), np.zeros(unary[i].size))
        states.append(int((known + sum(messages[j, i] for j in higher[i])).argmax()))
        for j in higher[i]:
            send(i, j)
    value = sum(unary[i][states[i]] for i in range(n))
    value += sum(tables[i, j][states[i], states[j]] for i, j in tables if i < j)
    bound = 0.0
    for i in reversed(range(n)):
        bound += sum(send(i, j) for j in lower[i])
        chains = max(len(lower[i]), len(higher[i]), 1)
        if begun := chains - len(lower[i]):
            bound += begun / chains * (unary[i] + sum(messages[j, i] for j in higher[i] + lower[i])).max()
    return value, states, bound


def check_iterations(graph):
    form = pairwise(lifted(graph))
    layout = messages_of(form)
    messages, beliefs = np.zeros(layout.starts[-1]), np.empty(form.unary.size)
    states = np.empty(len(form.cardinalities), np.int64)
    expected = {}
    for d, (i, j) in enumerate(zip(layout.source.tolist(), layout.target.tolist(), strict=True)):
        expected[i, j] = np.zeros(layout.starts[d + 1] - layout.starts[d])
    for _ in range(3):
        value = trws_kernels.forward(layout, form.unary, messages, beliefs, states)
        bound = trws_kernels.backward(layout, form.unary, messages, beliefs)
        expected_value, expected_states, expected_bound = iterate_reference(form, form.unary, expected)
        assert bound == pytest.approx(expected_bound, rel=1e-10, abs=1e-10)
        for d, (i, j) in enumerate(zip(layout.source.tolist(), layout.target.tolist(), strict=True)):
            found = messages[layout.starts[d] : layout.starts[d + 1]]
            np.testing.assert_allclose(found, expected[i, j], rtol=1e-9, atol=1e-9)
        if bound == -np.inf:
            break
        if value > -np.inf and states.tolist() == expected_states:  # rounding may break a tie otherwise
            assert value == pytest.approx(expected_value, rel=1e-10, abs=1e-10)


@settings(max_examples=examples(25))
@given(factor_graphs())
def test_iterations_are_the_reference(graph):
    check_iterations(graph)


@pytest.mark.parametrize("states", [2, 3])
def test_iterations_on_a_denser_model_are_the_reference(states):
    """Variables with more neighbours below than above, and the other way round."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for j in range(7) for i in range(j) if rng.random() < 0.7]
    check_iterations(FactorGraph([states] * 7, [Factor(p, rng.normal(size=(states, states))) for p in pairs]))


@given(factor_graphs(impossible=False), st.integers(0, 2**32))
def test_bounds_never_rise(graph, seed):
    form = pairwise(lifted(graph))
    layout = messages_of(form)
    messages, beliefs = np.zeros(layout.starts[-1]), np.empty(form.unary.size)
    states = np.empty(len(form.cardinalities), np.int64)
    unary = form.unary + np.random.default_rng(seed).gumbel(size=form.unary.size)
    bounds = []
    for _ in range(20):
        trws_kernels.forward(layout, unary, messages, beliefs, states)
        bounds.append(trws_kernels.backward(layout, unary, messages, beliefs))
    assert (np.diff(bounds) <= slack(np.array(bounds[0]))).all()


@settings(max_examples=examples(30))
@given(factor_graphs(most_variables=6), st.integers(0, 2**32), st.sampled_from([1, 7, 100]))
def test_no_change_of_one_variable_improves(graph, seed, iterations):
    """Factors of three variables and hard constraints included."""
    noise = gumbels(graph, 2, seed)
    values, states, _ = TRWS(graph, max_iterations=iterations).solve(noise)
    for i, k in enumerate(graph.cardinalities):
        for x in range(k):
            changed = states.copy()
            changed[:, i] = x
            assert (attained(graph, noise, changed) <= values + slack(values))[values > -np.inf].all()


def test_an_ascent_of_stars_ends_where_no_change_of_one_variable_improves():
    """A variable moves together with those that stand for its factors, and again once a neighbour
    has moved.
    """
    for seed in range(examples(12)):
        rng = np.random.default_rng(seed)
        scopes = [tuple(rng.choice(8, rng.integers(2, 4), replace=False).tolist()) for _ in range(14)]
        graph = FactorGraph([3] * 8, [Factor(s, rng.normal(size=[3] * len(s))) for s in scopes])
        form = pairwise(lifted(graph))
        layout, start = messages_of(form), rng.integers(0, 3, 8)
        entries = [np.ravel_multi_index(start[list(s)], [3] * 3) for s in scopes if len(s) == 3]
        states = np.concatenate([start, entries]).astype(np.int64)
        score = trws_kernels.ascend(layout, 8, form.unary, 0, np.inf, 0.0, 0, states)
        changed = np.repeat(states[None, :8], 24, axis=0)
        changed[np.arange(24), np.arange(24) // 3] = np.arange(24) % 3
        assert graph.log_potential(states[None, :8])[0] == pytest.approx(score)
        assert graph.log_potential(changed).max() <= score + 1e-11
        assert score >= graph.log_potential(start[None])[0]


def test_a_constant_changes_nothing():
    graph = grid(6, 6, 2.0, np.random.default_rng(0), attractive=False)
    raised = FactorGraph(graph.cardinalities, [*graph.factors, Factor((), np.array(512.0))])
    noise = gumbels(graph, 20, 1)
    solvers = TRWS(graph), TRWS(raised)
    (values, states, bounds), (higher, same, highest) = (solver.solve(noise) for solver in solvers)
    np.testing.assert_array_equal(states, same)
    np.testing.assert_array_equal(solvers[0].certified, solvers[1].certified)
    np.testing.assert_array_equal(solvers[0].iterations, solvers[1].iterations)
    np.testing.assert_allclose(higher - values, 512.0)
    np.testing.assert_allclose(highest - bounds, 512.0)


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=6), st.integers(0, 2**32), st.integers(1, 9))
def test_chosen_variables_are_a_forest(graph, seed, most):
    form = pairwise(lifted(graph))
    layout, rng, n = messages_of(form), np.random.default_rng(seed), len(form.cardinalities)
    order, link = np.empty(n, np.int64), np.empty(n, np.int64)
    root = int(rng.integers(n))
    size = trws_kernels.grow(layout, root, most, order, link)
    chosen = order[:size].tolist()
    assert chosen[0] == root
    assert size <= most
    assert sorted(chosen) == np.flatnonzero(link > -2).tolist()
    inside = {(i, j) for i, j in form.edges.tolist() if i in chosen and j in chosen}
    ties = [(int(layout.source[d]), int(layout.target[d])) for d in link[chosen] if d >= 0]
    assert {tuple(sorted(tie)) for tie in ties} == inside
    assert all(chosen.index(parent) < chosen.index(v) for parent, v in ties)
    assert len(ties) == len(inside) == size - (link[chosen] == -1).sum()
    if most > layout.first[root + 1] - layout.first[root]:
        extra = {int(j) for i, j in form.edges if i == root and j >= len(graph.cardinalities)}
        assert extra <= set(chosen)
    if most >= n:  # no other variable could join
        for v in set(range(n)) - set(chosen):
            assert sum(v in edge and (set(edge) - {v}) <= set(chosen) for edge in form.edges.tolist()) >= 2


@settings(max_examples=examples(25))
@given(factor_graphs(impossible=False), st.integers(0, 2**32))
def test_forests_are_maximised_given_the_rest(graph, seed):
    graph = FactorGraph(graph.cardinalities, [f for f in graph.factors if len(f.scope) < 3])
    form = pairwise(graph)
    layout, rng, n = messages_of(form), np.random.default_rng(seed), len(form.cardinalities)
    order, link = np.empty(n, np.int64), np.empty(n, np.int64)
    size = trws_kernels.grow(layout, int(rng.integers(n)), int(rng.integers(1, n + 1)), order, link)
    states = np.array([rng.integers(k) for k in form.cardinalities])
    alike = all_states(graph)
    alike = alike[(alike == states)[:, link == -2].all(axis=1)]
    trws_kernels.maximise_forest(layout, form.unary, order[:size], link, np.empty(form.unary.size), states)
    best = graph.log_potential(alike).max()
    assert (alike == states).all(axis=1).any()
    assert graph.log_potential(states[None])[0] == pytest.approx(best, rel=1e-10, abs=1e-10)
    score = form.constant + trws_kernels.score(layout, form.unary, states)
    assert score == pytest.approx(best, rel=1e-10, abs=1e-10)


def test_frustrated_grids_are_decoded_better_than_by_belief_propagation():
    """Six models of 10 x 10 spins, of which the messages leave many variables tied."""
    gaps = []
    for seed in range(6):
        graph = random_spin_glass(10, 10, 1.5, 1.0, "mixed", np.random.default_rng(seed)).graph()
        noise = gumbels(graph, 4, seed)
        exact = GridTransfer(graph).maximise(noise)[0]
        gaps.append([exact - solver.maximise(noise)[0] for solver in (TRWS(graph), MaxProduct(graph))])
    sequential, plain = np.mean(gaps, axis=(0, 2))
    assert sequential < 0.02
    assert sequential < plain / 50


def test_a_large_frustrated_grid_stops_soon():
    graph = random_spin_glass(40, 40, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    solver = TRWS(graph)
    for scale in (1.0, 1e-3):
        values, _, bounds = solver.solve(scale * gumbels(graph, 1, 1))
        assert solver.iterations[0] <= 80
        assert values[0] <= bounds[0] <= 1.08 * values[0]


def test_attractive_binary_grids_are_certified():
    graph = grid(8, 8, 2.0, np.random.default_rng(0))
    noise = gumbels(graph, 100, 1)
    solver = TRWS(graph, jobs=2)
    values, _, bounds = solver.solve(noise)
    assert solver.certified.mean() >= 0.95
    assert (solver.iterations < 20).any()  # none waits for its bound to stall
    np.testing.assert_allclose(bounds[solver.certified], values[solver.certified], rtol=1e-9)
    exact = Elimination(graph).maximise(noise)[0]
    np.testing.assert_allclose(values[solver.certified], exact[solver.certified], rtol=1e-9)


def test_a_frustrated_grid_is_bounded_but_not_certified():
    graph = grid(6, 6, 3.0, np.random.default_rng(0), attractive=False)
    noise = gumbels(graph, 50, 1)
    solver = TRWS(graph)
    values, _, bounds = solver.solve(noise)
    exact = Elimination(graph).maximise(noise)[0]
    assert (bounds >= exact - slack(exact)).all()
    assert (~solver.certified).sum() > 25
    assert (bounds - values > 1e-3)[~solver.certified].all()
    assert (solver.iterations[~solver.certified] >= 20).all()  # the bound had to stall first
    assert (solver.iterations < 2000).all()
    exhaustive = TRWS(graph, progress=0.0)
    tightest = exhaustive.solve(noise)[2]
    assert exhaustive.iterations.mean() > 2 * solver.iterations.mean()
    assert (tightest <= bounds + slack(bounds)).all()
    left = (bounds - values)[~solver.certified]
    assert ((bounds - tightest)[~solver.certified] <= 0.1 * left).all()


def test_rows_do_not_depend_on_threads_or_neighbours():
    graph = grid(4, 4, 2.0, np.random.default_rng(3), states=3, attractive=False)
    noise = gumbels(graph, 30, 4)
    together = TRWS(graph, jobs=3).solve(noise)
    for rows in (slice(20, 21), slice(None, None, -1)):
        for a, b in zip(together, TRWS(graph).solve(noise[rows]), strict=True):
            np.testing.assert_array_equal(a[rows], b)


def test_the_best_configuration_is_kept():
    """Decoding by the messages of later iterations may be worse than by earlier ones."""
    graph = grid(6, 6, 3.0, np.random.default_rng(2), attractive=False)
    noise = gumbels(graph, 50, 1)
    values = [TRWS(graph, progress=0.0, max_iterations=k).solve(noise)[0] for k in (10, 20, 60)]
    for fewer, more in itertools.pairwise(values):
        assert (more >= fewer).all()
    assert (values[-1] > values[0]).any()


def test_an_impossible_model_is_proved_so():
    ring = np.where(np.eye(2) > 0, 0.0, -np.inf)
    factors = [Factor((0, 1), ring), Factor((0,), np.array([0.0, -np.inf])), Factor((1,), np.array([-np.inf, 0.0]))]
    solver = TRWS(FactorGraph([2, 2], factors), tolerance=0.0)
    values, _, bounds = solver.solve(np.zeros((1, 4)))
    assert values.tolist() == bounds.tolist() == [-np.inf]
    assert solver.certified.all()


def test_no_rows_no_edges_and_one_state():
    graph = FactorGraph([1, 3], [Factor((1,), np.array([0.0, 2.0, 1.0])), Factor((), np.array(0.25))])
    solver = TRWS(graph)
    assert solver.solve(np.zeros((0, 4)))[1].shape == (0, 2)
    values, states, bounds = solver.solve(np.array([[0.5, 0, 0, 3]]))
    assert values.tolist() == bounds.tolist() == [4.75]
    assert states.tolist() == [[0, 2]]
