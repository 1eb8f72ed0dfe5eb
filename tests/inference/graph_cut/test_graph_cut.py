"""Minimum cuts against brute force and elimination; what they refuse."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states
from tests.tiers import examples
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut import graph_cut
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, CutForm, GraphCut, MinimumCut
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


@st.composite
def binary_models(draw, balanced=False, most_variables=6, hard=True):
    """Variables of one or two states; attractive after hidden flips if `balanced`; perhaps -inf or
    integers.
    """
    cardinalities = draw(st.lists(st.sampled_from([1, 2, 2, 2]), min_size=1, max_size=most_variables))
    n = len(cardinalities)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    flips = rng.integers(0, 2, n)
    integers, hard = draw(st.booleans()), hard and draw(st.booleans())
    scale = draw(st.sampled_from([0.1, 2.0, 30.0]))

    def numbers(*shape):
        return rng.integers(-2, 3, shape).astype(float) if integers else rng.normal(0, scale, shape)

    def maybe_forbid(table, entries, chance):
        if hard and rng.random() < chance:
            table[entries[rng.integers(len(entries))]] = -np.inf

    factors = [Factor((), numbers())]
    for _ in range(draw(st.integers(0, 9))):
        scope = tuple(rng.permutation(n)[: rng.integers(1, min(n, 2) + 1)].tolist())
        table = numbers(*[2] * len(scope))
        if len(scope) == 1:
            maybe_forbid(table, [0, 1], 0.3)
        else:
            if balanced and table[0, 0] + table[1, 1] < table[0, 1] + table[1, 0]:
                table = table[::-1].copy()
            forbiddable = [(0, 1), (1, 0), ((0, 1), (1, 0)), (0,), (1,), (slice(None), 0), (slice(None), 1)]
            maybe_forbid(table, forbiddable if balanced else [*forbiddable, (0, 0), (1, 1), ((0, 1), (0, 1))], 0.5)
        if balanced:
            table = table[np.ix_(*([0, 1][:: 1 - 2 * flips[i]] for i in scope))]
        factors.append(Factor(scope, np.array(table[tuple(slice(cardinalities[i]) for i in scope)])))
        if factors[-1].table.max() == -np.inf:
            factors.pop()
    return FactorGraph(cardinalities, factors)


def perturbed(graph, states, noise):
    """phi + noise of each configuration under each row of noise, shape (batch, configurations)."""
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    return graph.log_potential(states) + noise[:, states + offsets].sum(axis=-1)


def check_maximum(graph, noise, values, states):
    best = perturbed(graph, all_states(graph), noise).max(axis=1)
    np.testing.assert_allclose(values, best, rtol=1e-12, atol=1e-11)
    attained = [perturbed(graph, x[None], row[None])[0, 0] for x, row in zip(states, noise, strict=True)]
    np.testing.assert_allclose(attained, values, rtol=1e-12, atol=1e-11)


@settings(max_examples=examples(50))
@given(binary_models(balanced=True), st.integers(0, 2**32), st.integers(0, 4), st.sampled_from([0.0, 1.0, 100.0]))
def test_maximum_is_brute_force(graph, seed, batch, scale):
    noise = scale * np.random.default_rng(seed).gumbel(size=(batch, sum(graph.cardinalities)))
    values, states = GraphCut(graph).maximise(noise)
    assert (values.shape, states.shape, states.dtype) == ((batch,), (batch, len(graph.cardinalities)), np.int64)
    check_maximum(graph, noise, values, states)


@settings(max_examples=examples(40))
@given(binary_models())
def test_the_cut_form_is_the_model(graph):
    model = BinaryModel.of(graph)
    form = CutForm.of(model)
    assert np.isfinite(form.log_odds).all()
    assert (form.capacities >= 0).all()
    for x in all_states(graph):
        value = form.constant + form.log_odds @ x
        if form.forbidden[np.arange(len(x)), x].any():
            value = -np.inf
        for (i, j), unlike, costs in zip(form.edges, form.repulsive, form.capacities, strict=True):
            y = x[j] ^ unlike
            value -= 0.0 if x[i] == y else costs[x[i]]
        expected = graph.log_potential(x[None])[0]
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-11)
        assert model.values(x[None], np.zeros((1, len(x), 2)))[0] == pytest.approx(expected, rel=1e-12, abs=1e-11)


@settings(max_examples=examples(40))
@given(binary_models(most_variables=5))
def test_taken_are_the_models_that_some_flips_make_attractive(graph):
    model = BinaryModel.of(graph)
    # A coupling below the rounding of the table is none.
    top = np.where(np.isfinite(model.tables), np.abs(model.tables), 0.0).max(axis=(1, 2), initial=0)
    sums = np.stack([model.tables[:, 0, 0] + model.tables[:, 1, 1], model.tables[:, 0, 1] + model.tables[:, 1, 0]])
    attractive = any(
        all(sums[f[i] ^ f[j], e] >= sums[1 - (f[i] ^ f[j]), e] - 1e-15 * top[e] for e, (i, j) in enumerate(model.edges))
        for f in itertools.product((0, 1), repeat=len(graph.cardinalities))
    )
    if attractive:
        GraphCut(graph)
    else:
        with pytest.raises(
            UnsuitableModel, match=r"a cycle through the edge \(\d, \d\) is frustrated, .*; elimination"
        ):
            GraphCut(graph)


AGREE = np.array([[1.0, 0.0], [0.0, 1.0]])
DIFFER = AGREE[::-1]


@pytest.mark.parametrize(
    ("signs", "taken"), [("+++", True), ("++-", False), ("+--", True), ("---", False), ("-+-", True)]
)
def test_triangles(signs, taken):
    pairs = [(0, 1), (1, 2), (0, 2)]
    free = Factor((3, 4), DIFFER)
    edges = [Factor(p, AGREE if s == "+" else DIFFER) for p, s in zip(pairs, signs, strict=True)]
    graph = FactorGraph([2] * 5, [free, *edges])
    if taken:
        assert GraphCut(graph).maximise(np.zeros((1, 10)))[0][0] == 4.0
    else:
        with pytest.raises(UnsuitableModel, match=r"edge \((0, 1|1, 2|0, 2)\) is frustrated"):
            GraphCut(graph)


def test_an_edge_that_only_adds_unary_tables_frustrates_nothing():
    rng = np.random.default_rng(0)
    for _ in range(100):
        modular = np.add.outer(rng.normal(size=2), rng.normal(size=2))
        factors = [Factor((0, 1), AGREE), Factor((1, 2), AGREE), Factor((0, 2), modular)]
        graph = FactorGraph([2] * 3, factors)
        noise = rng.gumbel(size=(1, 6))
        check_maximum(graph, noise, *GraphCut(graph).maximise(noise))


def test_other_models_are_refused():
    with pytest.raises(UnsuitableModel, match="variable 1 has 3 states, and graph cuts take two"):
        GraphCut(FactorGraph([2, 3], []))
    with pytest.raises(UnsuitableModel, match="factor 0 has 3 variables"):
        GraphCut(FactorGraph([2] * 3, [Factor((0, 1, 2), np.zeros((2, 2, 2)))]))


def test_impossible_models_have_value_minus_infinity():
    off, on = np.array([0.0, -np.inf]), np.array([-np.inf, 0.0])
    equal = np.where(AGREE == 1, 0.0, -np.inf)
    chain = [Factor((i, i + 1), equal) for i in range(4)]
    for factors in ([Factor((0,), off), Factor((0,), on)], [*chain, Factor((0,), off), Factor((4,), on)]):
        values, states = GraphCut(FactorGraph([2] * 5, factors)).maximise(np.zeros((3, 10)))
        assert values.tolist() == [-np.inf] * 3
        assert states.shape == (3, 5)
    values, states = GraphCut(FactorGraph([2] * 5, [*chain, Factor((0,), on)])).maximise(np.full((1, 10), 0.5))
    assert values.tolist() == [2.5]
    assert states.tolist() == [[1] * 5]


def test_hundreds_of_perturbations_on_one_solver_stay_exact():
    """Among them some that are large enough to leave nothing of what was there before."""
    rng = np.random.default_rng(0)
    grid = ising(10, 10, 0.6, rng)
    flipped = [
        Factor(f.scope, np.flip(f.table, [a for a, i in enumerate(f.scope) if i % 3 == 0])) for f in grid.factors
    ]
    graph = FactorGraph(grid.cardinalities, flipped)
    noise = rng.gumbel(size=(300, 200))
    noise[::30] *= 1e14
    values, states = GraphCut(graph).maximise(noise)
    expected, maximisers = Elimination(graph).maximise(noise)
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    np.testing.assert_array_equal(np.delete(states, np.s_[::30], 0), np.delete(maximisers, np.s_[::30], 0))


def test_results_do_not_depend_on_blocks_or_on_what_was_solved_before(monkeypatch):
    rng = np.random.default_rng(1)
    graph = ising(5, 4, 0.6, rng)
    noise = rng.gumbel(size=(50, 40))
    solver = GraphCut(graph)
    whole = solver.maximise(noise)
    monkeypatch.setattr(graph_cut, "BLOCK", 3 * (2 * 20 + 31))
    blocks = list(solver._cut.model.blocks(50))
    assert [b.stop - b.start for b in blocks] == [3] * 16 + [2]
    for k, again in enumerate(solver.maximise(noise)):
        np.testing.assert_array_equal(again, whole[k])
    np.testing.assert_array_equal(solver.maximise(noise[30:])[1], whole[1][30:])


def test_a_large_grid_from_arrays():
    """300 x 300 spins without fields: with strong noise on one site all follow it."""
    n = 300
    at = np.arange(n * n).reshape(n, n)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    edges = np.concatenate([np.stack([i.ravel(), j.ravel()], axis=1) for i, j in pairs])
    model = BinaryModel(np.zeros((n * n, 2)), edges, np.broadcast_to(AGREE, (len(edges), 2, 2)), constant=0.25)
    noise = np.zeros((2, n * n, 2))
    noise[0, 12345, 1] = noise[1, 54321, 0] = 10.0
    values, states = MinimumCut(model).maximise(noise)
    assert values.tolist() == [len(edges) + 10.25] * 2
    assert states.min(axis=1).tolist() == states.max(axis=1).tolist() == [1, 0]


def test_other_capacities_of_a_network_are_those_of_one_built_afresh():
    rng = np.random.default_rng(0)
    arcs = np.array([[2, 0], [0, 1], [3, 1], [2, 3], [1, 2]])
    bare = np.zeros((4, 2), bool)
    network = Network(arcs, np.zeros((5, 2)), bare)
    for _ in range(20):
        capacities, costs = rng.random((5, 2)), rng.normal(size=(3, 4))
        changed = network.with_capacities(capacities)
        np.testing.assert_array_equal(changed.labels(costs), Network(arcs, capacities, bare).labels(costs))
        assert changed.cut(costs[0])[0] == Network(arcs, capacities, bare).cut(costs[0])[0]
    with pytest.raises(ValueError, match="no fixed nodes"):
        Network(arcs, np.ones((5, 2)), np.eye(4, 2, dtype=bool)).with_capacities(np.ones((5, 2)))
