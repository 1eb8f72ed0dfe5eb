"""Roof duality against brute force, elimination and the linear programme."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.conftest import all_states
from tests.inference.graph_cut.test_graph_cut import binary_models, perturbed
from tests.tiers import examples
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, GraphCut
from thesis_cli.inference.graph_cut.qpbo import QPBO
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


def noise_for(graph, seed, batch, integers):
    """Integers keep the arithmetic exact, ties among them."""
    noise = np.random.default_rng(seed).gumbel(size=(batch, sum(graph.cardinalities)))
    return np.round(noise) if integers else noise


def mixed_grid(side, coupling, rng):
    """An Ising grid, the sign of each coupling drawn at random."""
    grid = ising(side, side, coupling, rng)
    signs = rng.choice([-1.0, 1.0], len(grid.factors))
    factors = [Factor(f.scope, f.table * s) for f, s in zip(grid.factors, signs, strict=True)]
    return FactorGraph(grid.cardinalities, factors)


@settings(max_examples=examples(50))
@given(binary_models(), st.integers(0, 2**32), st.integers(0, 3), st.booleans())
def test_labels_are_shared_by_all_maximisers_and_the_bound_holds(graph, seed, batch, integers):
    noise = noise_for(graph, seed, batch, integers)
    everything = all_states(graph)
    phi = perturbed(graph, everything, noise)
    states, bounds = QPBO(graph).persistent(noise)
    assert (states.shape, bounds.shape) == ((batch, len(graph.cardinalities)), (batch,))
    for x, bound, row in zip(states, bounds, phi, strict=True):
        top = row.max()
        assert bound >= top - 1e-11 - 1e-12 * abs(top)
        if top > -np.inf:
            best = everything[row == top]
            assert (best[:, x >= 0] == x[x >= 0]).all()


@settings(max_examples=examples(40))
@given(binary_models(), st.integers(0, 2**32), st.integers(0, 3))
def test_completed_configurations_are_honest(graph, seed, batch):
    noise = noise_for(graph, seed, batch, False)
    solver = QPBO(graph)
    values, states = solver.maximise(noise)
    labelled, bounds = solver.persistent(noise)
    phi = perturbed(graph, all_states(graph), noise).max(axis=1)
    for x, value, row, known, bound, top in zip(states, values, noise, labelled, bounds, phi, strict=True):
        assert value == pytest.approx(perturbed(graph, x[None], row[None])[0, 0], rel=1e-12, abs=1e-11)
        if (known >= 0).all():
            assert value == pytest.approx(top, rel=1e-12, abs=1e-11)
            assert bound == pytest.approx(top, rel=1e-12, abs=1e-11)
        assert (x[known >= 0] == known[known >= 0]).all()


def test_no_single_change_of_an_unlabelled_variable_gains():
    rng = np.random.default_rng(3)
    n = 30
    factors = [Factor((i, j), rng.normal(0, 3, (2, 2))) for j in range(n) for i in range(j)]
    graph = FactorGraph([2] * n, factors)
    noise = rng.gumbel(size=(20, 2 * n))
    solver = QPBO(graph)
    values, states = solver.maximise(noise)
    unlabelled = solver.persistent(noise)[0] < 0
    assert unlabelled.all(axis=0).any()
    offsets = 2 * np.arange(n)
    for i in range(n):
        turned = states.copy()
        turned[:, i] = 1 - states[:, i]
        found = graph.log_potential(turned) + np.take_along_axis(noise, turned + offsets, axis=1).sum(axis=1)
        assert (found <= values + 1e-9)[unlabelled[:, i]].all()


@settings(max_examples=examples(30))
@given(binary_models(), st.integers(0, 2**32))
def test_completion_leaves_no_better_state_of_one_variable(graph, seed):
    """Variables with one state and hard constraints included; labelled variables have their best
    state."""
    noise = noise_for(graph, seed, 2, False)
    values, states = QPBO(graph).maximise(noise)
    possible = values > -np.inf
    highest = values[possible] + 1e-9 * np.maximum(1, np.abs(values[possible]))
    for i, k in enumerate(graph.cardinalities):
        turned = states.copy()
        turned[:, i] = k - 1 - states[:, i]
        found = [perturbed(graph, x[None], row[None])[0, 0] for x, row in zip(turned, noise, strict=True)]
        assert (np.array(found)[possible] <= highest).all()


def test_completed_grids_are_nearly_the_best():
    graph = mixed_grid(9, 1.5, np.random.default_rng(0))
    noise = np.random.default_rng(1).gumbel(size=(40, 162))
    solver = QPBO(graph)
    assert (solver.persistent(noise)[0] < 0).mean() > 0.3
    exact = Elimination(graph).maximise(noise)[0]
    assert np.isclose(solver.maximise(noise)[0], exact, rtol=1e-12).mean() >= 0.9


@given(binary_models(balanced=True), st.integers(0, 2**32))
def test_attractive_models_are_solved(graph, seed):
    noise = noise_for(graph, seed, 3, False)
    expected, best = GraphCut(graph).maximise(noise)
    states, bounds = QPBO(graph).persistent(noise)
    np.testing.assert_allclose(bounds, expected, rtol=1e-12, atol=1e-11)
    if expected[0] > -np.inf:
        np.testing.assert_array_equal(states, best)
    else:
        assert (states == -1).all()


def local_polytope(graph, noise):
    """Optimum of the linear programme over marginals of edges that agree on the variables."""
    model = BinaryModel.of(graph)
    n, e = len(model.unary), len(model.edges)
    gains = np.concatenate([(model.unary + noise).reshape(-1), model.tables.reshape(-1)])
    rows = [[int(c // 2 == i) for c in range(2 * n)] + [0] * 4 * e for i in range(n)]
    for k, pair in enumerate(model.edges):
        for axis, i in enumerate(pair):
            for state in (0, 1):
                row = np.zeros(len(gains))
                row[2 * n + 4 * k : 2 * n + 4 * k + 4] = (np.indices((2, 2))[axis] == state).reshape(-1)
                row[2 * i + state] = -1
                rows.append(row)
    solved = linprog(-gains, A_eq=np.array(rows), b_eq=[1] * n + [0] * 4 * e, bounds=(0, 1))
    return model.constant - solved.fun


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_the_linear_programme(seed):
    rng = np.random.default_rng(seed)
    n = 8
    pairs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.5]
    factors = [Factor(p, rng.normal(0, rng.choice([0.5, 2.0]), (2, 2))) for p in pairs]
    graph = FactorGraph([2] * n, [*factors, Factor((), np.array(1.5))])
    noise = rng.gumbel(size=(1, 2 * n))
    bound = QPBO(graph).persistent(noise)[1][0]
    assert bound == pytest.approx(local_polytope(graph, noise.reshape(n, 2)), rel=1e-9)


@pytest.mark.parametrize("coupling", [0.3, 0.7])
def test_grids_against_elimination(coupling):
    rng = np.random.default_rng(2)
    graph = mixed_grid(7, coupling, rng)
    noise = rng.gumbel(size=(200, 98))
    expected, best = Elimination(graph).maximise(noise)
    solver = QPBO(graph)
    labelled, bounds = solver.persistent(noise)
    assert (bounds >= expected - 1e-10).all()
    known = labelled >= 0
    np.testing.assert_array_equal(labelled[known], best[known])
    assert known.all(axis=1).any()
    values, states = solver.maximise(noise)
    assert (values <= expected + 1e-10).all()
    np.testing.assert_allclose(values[known.all(axis=1)], expected[known.all(axis=1)], rtol=1e-12)
    assert set(np.unique(states)) == {0, 1}


def test_a_frustrated_triangle_without_fields_stays_open():
    differ = np.array([[0.0, 1.0], [1.0, 0.0]])
    graph = FactorGraph([2] * 4, [Factor(p, differ) for p in ((0, 1), (1, 2), (0, 2))] + [Factor((3,), [0.0, 1.0])])
    solver = QPBO(graph)
    states, bounds = solver.persistent(np.zeros((1, 8)))
    assert states.tolist() == [[-1, -1, -1, 1]]
    assert bounds.tolist() == [4.0]
    assert solver.maximise(np.zeros((1, 8)))[0].tolist() == [3.0]


def test_impossible_and_unsuitable_models():
    off, on = np.array([0.0, -np.inf]), np.array([-np.inf, 0.0])
    solver = QPBO(FactorGraph([2, 2], [Factor((0,), off), Factor((0,), on)]))
    states, bounds = solver.persistent(np.zeros((2, 4)))
    assert (states.tolist(), bounds.tolist()) == ([[-1, -1]] * 2, [-np.inf] * 2)
    assert solver.maximise(np.zeros((2, 4)))[0].tolist() == [-np.inf] * 2
    with pytest.raises(UnsuitableModel, match="variable 0 has 3 states"):
        QPBO(FactorGraph([3], []))
