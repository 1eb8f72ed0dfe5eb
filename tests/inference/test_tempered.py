import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import factor_graphs
from tests.inference.grid.test_grid import grids
from thesis_cli.base.errors import InputError
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.solver import TemperedSolver
from thesis_cli.studies.models.examples import ising

alphas = st.sampled_from([1e-3, 0.3, 1.0, 2.0, 7.5])


def check_same_maxima(make, graph, alpha, seed):
    """The solver of phi at another temperature, and a solver of alpha phi."""
    tempered = TemperedSolver(make(graph), alpha)
    noise = np.random.default_rng(seed).gumbel(size=(4, sum(graph.cardinalities)))
    values, states = tempered.maximise(noise)
    expected, _ = make(graph.tempered(alpha)).maximise(noise)
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-11)
    possible = values > -np.inf
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    attained = tempered.graph.log_potential(states) + np.take_along_axis(noise, states + offsets, axis=1).sum(axis=1)
    np.testing.assert_allclose(attained[possible], values[possible], rtol=1e-11, atol=1e-11)


@given(factor_graphs(), alphas, st.integers(0, 2**32))
def test_maxima_by_elimination_are_those_of_the_tempered_model(graph, alpha, seed):
    check_same_maxima(Elimination, graph, alpha, seed)


@given(grids(), alphas, st.integers(0, 2**32))
def test_maxima_by_grid_transfer_are_those_of_the_tempered_model(graph, alpha, seed):
    check_same_maxima(GridTransfer, graph, alpha, seed)


@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_maxima_by_graph_cut_are_those_of_the_tempered_model(alpha):
    check_same_maxima(GraphCut, ising(5, 6, 0.7, np.random.default_rng(0)), alpha, 1)


def test_it_is_what_its_solver_is():
    solver = GridTransfer(ising(2, 2, 0.5, np.random.default_rng(0)))
    tempered = TemperedSolver(solver, 2.0)
    assert (tempered.name, tempered.guarantee) == (solver.name, solver.guarantee)
    states = np.array([[0, 1, 1, 0], [1, 1, 1, 1]])
    np.testing.assert_allclose(tempered.graph.log_potential(states), 2 * solver.graph.log_potential(states))


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan])
def test_other_temperatures_are_refused(alpha):
    with pytest.raises(InputError, match=f"alpha is {alpha:g}"):
        TemperedSolver(Elimination(ising(2, 2, 0.5, np.random.default_rng(0))), alpha)
