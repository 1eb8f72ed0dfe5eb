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
from thesis_cli.inference import grid_kernels
from thesis_cli.inference.elimination import Elimination
from thesis_cli.inference.grid import GridTransfer
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


@st.composite
def grids(draw, binary=False):
    """Any cardinalities, edges missing, the last row not full, some entries -inf, scopes in either
    order.
    """
    columns, n = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    hard = draw(st.booleans()) and not binary
    cardinalities = [2] * n if binary else draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    edges = [(i, i + 1) for i in range(n - 1) if (i + 1) % columns] + [(i, i + columns) for i in range(n - columns)]
    factors = []
    for scope in [*((i,) for i in range(n)), *edges, *edges[:2]]:
        if draw(st.integers(0, 4)):
            scope = scope[:: draw(st.sampled_from([1, -1]))]
            table = rng.normal(0, 2, [cardinalities[i] for i in scope])
            if hard and table.size > 1:
                table.reshape(-1)[rng.integers(table.size)] = -np.inf
            factors.append(Factor(scope, table))
    return FactorGraph(cardinalities, factors)


def check_against_enumeration(graph):
    solver = GridTransfer(graph)
    states = all_states(graph)
    rng = np.random.default_rng(0)
    noise = rng.gumbel(size=(5, sum(graph.cardinalities)))
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


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (1, 6), (6, 1)])
@pytest.mark.parametrize("batch", [1, 31, 33, 1030])
def test_shapes_and_batches(shape, batch):
    graph = ising(*shape, 1.0, np.random.default_rng(0))
    noise = np.random.default_rng(1).gumbel(size=(batch, sum(graph.cardinalities)))
    expected, states = Elimination(graph).maximise(noise)
    values, found = GridTransfer(graph).maximise(noise)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, states)


def test_one_problem_at_a_time_is_the_same(monkeypatch):
    graph = ising(4, 5, 1.0, np.random.default_rng(0))
    noise = np.random.default_rng(1).gumbel(size=(7, 40))
    together = GridTransfer(graph).maximise(noise)
    monkeypatch.setattr("thesis_cli.inference.grid.SIDE_BY_SIDE", 0)
    alone = GridTransfer(graph).maximise(noise)
    np.testing.assert_allclose(alone[0], together[0], rtol=1e-13)
    np.testing.assert_array_equal(alone[1], together[1])


def test_strong_couplings_are_left_to_elimination():
    assert GridTransfer(ising(4, 4, 50.0, np.random.default_rng(0))).summable
    assert not GridTransfer(ising(4, 4, 200.0, np.random.default_rng(0))).summable


def test_evidence_leaves_a_grid():
    graph = ising(4, 4, 1.0, np.random.default_rng(0)).condition({5: 1, 10: 0})
    assert GridTransfer(graph).log_partition_function() == pytest.approx(Elimination(graph).log_partition_function())


@pytest.mark.parametrize("edges", [[(0, 1), (0, 3), (0, 2)], [(0, 3), (2, 3)]])
def test_what_is_not_a_grid_is_refused(edges):
    with pytest.raises(UnsuitableModel, match=r"variables \d and \d is not one of a grid.*elimination"):
        GridTransfer(FactorGraph([2] * 6, [Factor(e, np.zeros((2, 2))) for e in edges]))


def test_a_wide_grid_is_refused_with_its_need():
    with pytest.raises(ModelTooLarge, match=r"grid transfer needs .* at width 40"):
        GridTransfer(ising(40, 40, 1.0, np.random.default_rng(0)))


def test_batches_of_any_size_share_one_compiled_kernel():
    """Else users wait twice: for one block of perturbations, and for several."""
    model = ising(2, 2, 1.0, np.random.default_rng(0))
    for count in (1, 40):
        GridTransfer(model).maximise(np.zeros((count, 8)))
    assert len(grid_kernels.maximise_binary.signatures) == 1
