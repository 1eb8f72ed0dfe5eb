"""TRW-S on spins beside TRW-S on tables; its search beside brute force and exact solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states
from tests.inference.graph_cut.test_graph_cut import binary_models
from tests.inference.message_passing.test_belief_propagation import gumbels, perturbed
from tests.tiers import examples
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing import spin_kernels, trws_kernels
from thesis_cli.inference.message_passing.belief_propagation import messages_of
from thesis_cli.inference.message_passing.message_arrays import Climb, Sweep
from thesis_cli.inference.message_passing.spins import forests_of, spins_of
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass

NO_STREAM = np.uint64(0)


def spin_model(graph, seed):
    """The layout of a soft binary model under Gumbel noise: spins, h, constant, unary."""
    form = pairwise(graph)
    spins, fields = spins_of(form)
    unary = form.unary + gumbels(graph, 1, seed)
    h, constants = fields.of(unary)
    return spins, h[0], constants[0], unary[0]


def dense_ising(n, rng):
    pairs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.5]
    return FactorGraph([2] * n, [Factor(p, rng.normal() * np.array([[1.0, -1.0], [-1.0, 1.0]])) for p in pairs])


def energy(spins, h, s):
    return h @ s + spins.couplings @ (s[spins.earlier] * s[spins.later])


def around(spins, h, s):
    total = h.copy()
    np.add.at(total, spins.later, spins.couplings * s[spins.earlier])
    np.add.at(total, spins.earlier, spins.couplings * s[spins.later])
    return total


def climb_from(spins, h, s):
    spare = np.empty(h.size), np.empty(h.size), np.empty(h.size, np.int64)
    return Climb(s.copy(), around(spins, h, s), s.copy(), around(spins, h, s), *spare)


@settings(max_examples=examples(40))
@given(binary_models(hard=False), st.integers(0, 2**32))
def test_spins_give_the_potential_of_the_model(graph, seed):
    spins, h, constant, _ = spin_model(graph, seed)
    states = all_states(graph)
    phi = perturbed(graph, gumbels(graph, 1, seed))[0]
    found = [constant + energy(spins, h, 2.0 * x[spins.variables] - 1) for x in states]
    # A variable with one state has no field and no coupling.
    np.testing.assert_allclose(found, phi, rtol=1e-11, atol=1e-11)
    assert (spins.earlier < spins.later).all()
    ends = np.stack([spins.variables[spins.earlier], spins.variables[spins.later]])
    assert (ends[0] < ends[1]).all()  # the order of the model is kept along each edge
    for v in range(h.size):
        near = spins.near[spins.near_first[v] : spins.near_first[v + 1]]
        assert sorted(near) == sorted([*spins.later[spins.earlier == v], *spins.earlier[spins.later == v]])
        linked = (spins.earlier == v) | (spins.later == v)
        assert spins.reach[v] == pytest.approx(np.abs(spins.couplings[linked]).sum())


@pytest.mark.parametrize("seed", range(6))
def test_iterations_are_those_on_tables(seed):
    """Which tests compare with a plain reference."""
    graph = dense_ising(9, np.random.default_rng(seed))
    spins, h, constant, unary = spin_model(graph, seed)
    form = pairwise(graph)
    layout = messages_of(form)
    messages, beliefs, states = np.zeros(layout.starts[-1]), np.empty(unary.size), np.empty(9, np.int64)
    edges, ends = len(spins.later), np.stack([spins.variables[spins.earlier], spins.variables[spins.later]])
    order = np.lexsort(ends[::-1])
    np.testing.assert_array_equal(ends.T[order], form.edges)
    sweep = Sweep(np.zeros(edges), np.zeros(edges), np.zeros(9), np.zeros(9), np.empty(9))
    for _ in range(5):
        value = spin_kernels.upward(spins, h, sweep)
        expected = trws_kernels.forward(layout, unary, messages, beliefs, states)
        assert constant + value == pytest.approx(expected, rel=1e-10)
        np.testing.assert_array_equal(sweep.states, 2 * states[spins.variables] - 1)
        value, bound = spin_kernels.downward(spins, h, sweep)
        assert value == pytest.approx(energy(spins, h, sweep.states), rel=1e-10)
        expected = trws_kernels.backward(layout, unary, messages, beliefs)
        assert constant + bound == pytest.approx(expected, rel=1e-10)
        found = np.stack([sweep.up[order], sweep.down[order]], axis=1)
        np.testing.assert_allclose(found.reshape(-1), np.diff(messages.reshape(-1, 2))[:, 0] / 2, atol=1e-12)


@settings(max_examples=examples(25))
@given(binary_models(hard=False, most_variables=9), st.integers(0, 2**32))
def test_forests_are_maximised_given_the_rest(graph, seed):
    spins, h, _, _ = spin_model(graph, seed)
    forests, n = forests_of(spins), h.size
    assert len(forests.first) > 2
    s = np.random.default_rng(seed).choice([-1.0, 1.0], n)
    coupled = {frozenset(e) for e in zip(spins.earlier.tolist(), spins.later.tolist(), strict=True)}
    everything = 2.0 * np.indices([2] * n).reshape(n, -1).T - 1
    phi = np.array([energy(spins, h, x) for x in everything])
    for k in range(3):
        part = slice(forests.first[k], forests.first[k + 1])
        members, parents = forests.members[part].tolist(), forests.parents[part].tolist()
        roots = [q for q, parent in enumerate(parents) if q == parent]
        assert all(parent <= q for q, parent in enumerate(parents))
        inside = {e for e in coupled if e <= set(members)}
        assert inside == {frozenset((members[q], members[p])) for q, p in enumerate(parents) if p != q}
        assert len(inside) == len(members) - len(roots) == len(set(members)) - len(roots)
        climb = climb_from(spins, h, s)
        spin_kernels.maximise_forest(spins, forests, k, 0.0, NO_STREAM, climb)
        rest = np.setdiff1d(np.arange(n), members)
        best = phi[(everything[:, rest] == s[rest]).all(axis=1)].max()
        np.testing.assert_array_equal(climb.states[rest], s[rest])
        assert energy(spins, h, climb.states) == pytest.approx(best, rel=1e-11, abs=1e-11)
        np.testing.assert_allclose(climb.around, around(spins, h, climb.states), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_parts_that_gain_are_kept(seed):
    """Beside all choices of connected parts in which two configurations differ."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(seed)
    spins, h, _, _ = spin_model(random_spin_glass(6, 6, 1.0, 2.0, "mixed", rng).graph(), seed)
    best, other = rng.choice([-1.0, 1.0], (2, 36))
    other = np.where(rng.random(36) < 0.6, best, other)
    climb = climb_from(spins, h, best)
    climb.states[:], climb.around[:] = other, np.nan
    unlike = best != other
    inner = unlike[spins.earlier] & unlike[spins.later]
    links = coo_array((np.ones(inner.sum()), (spins.earlier[inner], spins.later[inner])), shape=(36, 36))
    parts = connected_components(links, directed=False)[1]
    expected = best.copy()
    for part in np.unique(parts[unlike]):
        turned = np.where(parts == part, other, best)
        if energy(spins, h, turned) > energy(spins, h, best):
            expected[parts == part] = other[parts == part]
    spin_kernels.keep_gains(spins, 0.0, climb)
    assert not np.array_equal(expected, best)
    for found, fields in ((climb.best, climb.best_around), (climb.states, climb.around)):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(fields, around(spins, h, expected), atol=1e-12)


@settings(max_examples=examples(40))
@given(binary_models(hard=False, most_variables=8), st.integers(0, 2**32), st.integers(1, 40))
def test_value_and_bound_enclose_the_maximum(graph, seed, iterations):
    noise = gumbels(graph, 2, seed)
    solver = TRWS(graph, max_iterations=iterations)
    values, states, bounds = solver.solve(noise)
    best = perturbed(graph, noise).max(axis=1)
    slack = 1e-11 * np.maximum(1, np.abs(best))
    assert ((values <= best + slack) & (bounds >= best - slack)).all()
    np.testing.assert_allclose(values[solver.certified], best[solver.certified], rtol=1e-8, atol=1e-8)
    assert (states < np.array(graph.cardinalities)).all()
    for i, k in enumerate(graph.cardinalities):
        turned = states.copy()
        turned[:, i] = k - 1 - states[:, i]
        offsets = np.cumsum(graph.cardinalities) - graph.cardinalities
        found = graph.log_potential(turned) + np.take_along_axis(noise, turned + offsets, axis=1).sum(axis=1)
        assert (found <= values + slack).all()


@pytest.mark.parametrize(("side", "coupling", "rows"), [(10, 3.0, 40), (14, 2.0, 12)])
def test_the_search_finds_the_maximum_of_most_frustrated_grids(side, coupling, rows):
    graph = random_spin_glass(side, side, coupling, 1.0, "mixed", np.random.default_rng(0)).graph()
    noise = gumbels(graph, rows, 1)
    exact = GridTransfer(graph).maximise(noise)[0]
    values, _, bounds = TRWS(graph).solve(noise)
    assert (values <= exact + 1e-9).all()
    assert (bounds >= exact - 1e-9).all()
    assert np.isclose(values, exact, rtol=1e-12).mean() >= 0.8
    assert np.mean(1 - values / exact) < 1e-3


def test_spins_without_pairs_and_with_one_state():
    graph = FactorGraph([1, 2, 2], [Factor((1,), [0.0, 2.0]), Factor((0,), [0.25])])
    solver = TRWS(graph)
    assert solver.solve(np.zeros((0, 5)))[1].shape == (0, 3)
    values, states, bounds = solver.solve(np.array([[0.5, 0, 0, 3, 1]]))
    assert states.tolist() == [[0, 1, 0]]
    np.testing.assert_allclose([values, bounds], 5.75)
    assert solver.certified.all()


def test_rows_of_spins_do_not_depend_on_threads_or_neighbours():
    graph = random_spin_glass(7, 7, 3.0, 1.0, "mixed", np.random.default_rng(3)).graph()
    noise = gumbels(graph, 30, 4)
    together = TRWS(graph, jobs=3).solve(noise)
    for rows in (slice(20, 21), slice(None, None, -1)):
        for a, b in zip(together, TRWS(graph).solve(noise[rows]), strict=True):
            np.testing.assert_array_equal(a[rows], b)
