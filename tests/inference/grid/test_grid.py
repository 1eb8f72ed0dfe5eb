"""Grid transfer against enumeration and elimination."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from tests.conftest import all_states
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid import kernels as grid_kernels
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.studies.models.examples import ising


@st.composite
def grids(draw, binary=False):
    """Any cardinalities, edges missing, the last row not full, some entries -inf (of binary grids
    those of states 1), scopes in either order.
    """
    columns, n = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    hard, general = draw(st.booleans()), not binary
    cardinalities = [2] * n if binary else draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    edges = [(i, i + 1) for i in range(n - 1) if (i + 1) % columns] + [(i, i + columns) for i in range(n - columns)]
    factors = []
    for scope in [*((i,) for i in range(n)), *edges, *edges[:2]]:
        if draw(st.integers(0, 4)):
            scope = scope[:: draw(st.sampled_from([1, -1]))]
            table = rng.normal(0, 2, [cardinalities[i] for i in scope])
            if hard and table.size > 1:
                table.reshape(-1)[rng.integers(table.size) if general else -1] = -np.inf
            factors.append(Factor(scope, table))
    return FactorGraph(cardinalities, factors)


def check_against_enumeration(graph):
    solver = GridTransfer(graph)
    states = all_states(graph)
    rng = np.random.default_rng(0)
    noise = rng.gumbel(size=(9, sum(graph.cardinalities)))
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])[:-1]
    phi = graph.log_potential(states)
    values, found = solver.maximise(noise)
    for row, value, x in zip(noise, values, found, strict=True):
        perturbed = phi + row[offsets + states].sum(axis=1)
        assert value == pytest.approx(perturbed.max(), abs=1e-9)
        if value > -np.inf:
            assert value == pytest.approx(float(graph.log_potential(x[None])[0] + row[offsets + x].sum()), abs=1e-9)
    log_z = logsumexp(phi)
    assert solver.summable
    assert solver.log_partition_function() == pytest.approx(log_z, abs=1e-9)
    if log_z > -np.inf:
        p = np.exp(phi - log_z)
        marginals = np.concatenate([np.bincount(states[:, i], p, k) for i, k in enumerate(graph.cardinalities)])
        same, found = solver.marginals()
        assert same == pytest.approx(log_z, abs=1e-9)
        np.testing.assert_allclose(found, marginals, atol=1e-12)


@hypothesis_settings(max_examples=examples(50))
@given(grids())
def test_any_grid(graph):
    check_against_enumeration(graph)


@hypothesis_settings(max_examples=examples(30))
@given(grids(binary=True))
def test_binary_grids(graph):
    check_against_enumeration(graph)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (1, 6), (6, 1), (9, 9)])
@pytest.mark.parametrize("batch", [1, 9])
def test_shapes_and_batches(shape, batch):
    graph = ising(*shape, 1.0, np.random.default_rng(0))
    noise = np.random.default_rng(1).gumbel(size=(batch, sum(graph.cardinalities)))
    expected, states = Elimination(graph).maximise(noise)
    values, found = GridTransfer(graph).maximise(noise)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, states)


@pytest.mark.parametrize("width", [*range(1, 9), 11])
def test_binary_grids_of_any_width(width, monkeypatch):
    """Steps differ by the columns left over from blocks of three."""
    rng = np.random.default_rng(width)
    graph = SpinGlass(*(rng.normal(size=(12, width - d)) for d in (0, 1)), rng.normal(size=(11, width))).graph()
    noise = rng.gumbel(size=(2, 24 * width))
    solver, other = GridTransfer(graph), Elimination(graph)
    values, states = other.maximise(noise)
    for side_by_side in (0, 2**30):
        monkeypatch.setattr("thesis_cli.inference.grid.grid.SIDE_BY_SIDE", side_by_side)
        same, found = solver.maximise(noise)
        np.testing.assert_allclose(same, values, rtol=1e-12)
        np.testing.assert_array_equal(found, states)
    log_z, expected = other.marginals()
    assert solver.log_partition_function() == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(solver.marginals()[1], expected, atol=1e-12)


def test_general_grids_of_several_matrices_a_row():
    rng = np.random.default_rng(0)
    scopes = [(i, i + 1) for i in range(24) if i % 5 < 4] + [(i, i + 5) for i in range(20)]
    factors = [Factor(s, np.where(rng.random((3, 3)) < 0.1, -np.inf, rng.normal(size=(3, 3)))) for s in scopes]
    graph = FactorGraph([3] * 25, factors)
    log_z, expected = Elimination(graph).marginals()
    same, found = GridTransfer(graph).marginals()
    assert same == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_threads_and_tables_computed_twice_change_no_bit(monkeypatch):
    graph = ising(10, 11, 0.5, np.random.default_rng(0))
    plain = GridTransfer(graph)
    monkeypatch.setattr("thesis_cli.inference.grid.sums.THREADED", 0)
    tight = GridTransfer(graph, 2**10 * 8 * 11, sums_only=True, jobs=3)
    assert tight.cost_of_marginals().memory < plain.cost_of_marginals().memory
    for one, other in zip(plain.marginals(), tight.marginals(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain.log_partition_function() == tight.log_partition_function()


@pytest.mark.parametrize(("states", "rows", "columns"), [(2, 3, 2), (2, 2, 3), (3, 2, 2)])
def test_samples_have_the_probabilities_of_the_model(states, rows, columns, monkeypatch):
    """Each frequency is within 5 standard errors."""
    monkeypatch.setattr("thesis_cli.inference.grid.sums.DRAWN", 3000)
    rng = np.random.default_rng(0)
    n, count = rows * columns, 10**4
    scopes = [(i, i + 1) for i in range(n - 1) if (i + 1) % columns] + [(i, i + columns) for i in range(n - columns)]
    tables = rng.normal(size=(len(scopes), states, states))
    tables[1, -1, -1] = -np.inf
    graph = FactorGraph([states] * n, [Factor(s, t) for s, t in zip(scopes, tables, strict=True)])
    phi = graph.log_potential(all_states(graph))
    p = np.exp(phi - logsumexp(phi))
    samples = GridTransfer(graph).sample(count, rng)
    found = np.bincount(np.ravel_multi_index(samples.T, graph.cardinalities), minlength=p.size) / count
    assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / count) + (p > 0) / count).all()


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (4, 4), (3, 5)])
def test_a_grid_in_any_order_is_one(shape):
    rng = np.random.default_rng(1)
    likewise = ising(*shape, 1.0, rng)
    factors = [Factor(f.scope, rng.normal(size=f.table.shape)) for f in likewise.factors]
    graph = FactorGraph(likewise.cardinalities, factors)
    order = rng.permutation(len(graph.cardinalities))
    shuffled = FactorGraph(graph.cardinalities, [Factor([order[i] for i in f.scope], f.table) for f in graph.factors])
    solver = GridTransfer(shuffled)
    assert solver.width == min(shape)
    assert solver.log_partition_function() == pytest.approx(GridTransfer(graph).log_partition_function(), rel=1e-12)
    noise = rng.gumbel(size=(3, sum(graph.cardinalities)))
    np.testing.assert_array_equal(solver.maximise(noise)[1], Elimination(shuffled).maximise(noise)[1])


def test_a_grid_with_an_edge_moved_is_none():
    """As many variables, edges and corners as 4 x 4."""
    edges = [(i, i + 1) for i in range(15) if i % 4 < 3] + [(i, i + 4) for i in range(12)]
    for wrong in ((0, 5), (0, 15), (5, 15)):
        moved = [*edges[:4], *edges[5:], wrong]
        with pytest.raises(UnsuitableModel, match="is not one of a grid"):
            GridTransfer(FactorGraph([2] * 16, [Factor(e, np.zeros((2, 2))) for e in moved]))


def test_strong_couplings_are_left_to_elimination():
    graph = ising(4, 4, 50.0, np.random.default_rng(0))
    assert GridTransfer(graph).summable
    expected = Elimination(graph).log_partition_function()
    assert GridTransfer(graph).log_partition_function() == pytest.approx(expected, rel=1e-12)
    assert not GridTransfer(ising(4, 4, 200.0, np.random.default_rng(0))).summable


def test_evidence_leaves_a_grid():
    graph = ising(4, 4, 1.0, np.random.default_rng(0)).condition({5: 1, 10: 0})
    assert GridTransfer(graph).log_partition_function() == pytest.approx(Elimination(graph).log_partition_function())


@pytest.mark.parametrize("edges", [[(0, 1), (0, 3), (0, 2)], [(0, 3), (2, 3)]])
def test_what_is_not_a_grid_is_refused(edges):
    with pytest.raises(UnsuitableModel, match=r"variables \d and \d is not one of a grid.*elimination"):
        GridTransfer(FactorGraph([2] * 6, [Factor(e, np.zeros((2, 2))) for e in edges]))


def test_a_wide_grid_is_refused_with_its_need():
    graph = ising(40, 40, 1.0, np.random.default_rng(0))
    with pytest.raises(ModelTooLarge, match=r"grid transfer needs .* at width 40"):
        GridTransfer(graph)
    assert GridTransfer(graph, 2**60, sums_only=True).cost.memory > 2**43  # and nothing is allocated


def test_memory_must_hold_the_tables_of_pairs():
    """Many states in a chain: a table of a pair is larger than one over the width."""
    chain = FactorGraph([30] * 9, [Factor((i, i + 1), np.zeros((30, 30))) for i in range(8)])
    with pytest.raises(ModelTooLarge, match="at width 1"):
        GridTransfer(chain, sum(factor.table.nbytes for factor in chain.factors))


def test_batches_of_any_size_share_one_compiled_kernel():
    """Else users wait twice: for one block of perturbations, and for several."""
    model = ising(2, 2, 1.0, np.random.default_rng(0))
    for count in (1, 40):
        GridTransfer(model).maximise(np.zeros((count, 8)))
    GridTransfer(model).log_partition_function()
    GridTransfer(model).marginals()
    assert len(grid_kernels.maximise_binary.signatures) == len(grid_kernels.sum_row.signatures) == 1
