"""Strips of grids: their bound beside exact solvers, and their certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inference.message_passing.test_belief_propagation import attained, gumbels
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.grid.strips import GridStrips
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass


def sparse_grid(rows, columns, rng, scale):
    """A binary grid with any tables, without some of its edges."""
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = np.concatenate(
        [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))]
    )
    factors = [Factor(tuple(pair), rng.normal(0, scale, (2, 2))) for pair in pairs.tolist() if rng.random() < 0.8]
    factors += [Factor((int(i),), rng.normal(0, 1, 2)) for i in at.flat]
    return FactorGraph([2] * at.size, [*factors, Factor((), np.array(1.5))])


@settings(max_examples=examples(20))
@given(st.integers(1, 9), st.integers(1, 7), st.sampled_from([0.3, 3.0]), st.integers(0, 2**32))
def test_value_and_bound_enclose_the_maximum(rows, columns, scale, seed):
    graph = sparse_grid(rows, columns, np.random.default_rng(seed), scale)
    noise = gumbels(graph, 2, seed)
    exact = Elimination(graph).maximise(noise)[0]
    for widths in ((10,), (3,), (2, 3)):
        try:
            solver = GridStrips(graph, widths=widths, max_iterations=15)
        except UnsuitableModel:  # without an edge that shows where its rows end
            return
        values, states, bounds = solver.solve(noise)
        np.testing.assert_allclose(attained(graph, noise, states), values, rtol=1e-13, atol=1e-11)
        assert (values <= exact + 1e-9).all()
        assert (bounds >= exact - 1e-9).all()
        np.testing.assert_allclose(values[solver.certified], exact[solver.certified], rtol=1e-8, atol=1e-8)
        if widths == (10,):  # one strip
            assert solver.certified.all()
            assert (solver.iterations == 1).all()


def test_frustrated_grids_are_certified():
    """14 x 14 by strips of five rows, beside grid transfer."""
    graph = random_spin_glass(14, 14, 2.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    noise = gumbels(graph, 10, 1)
    exact = GridTransfer(graph).maximise(noise)[0]
    solver = GridStrips(graph, widths=(5, 7), jobs=2)
    values, states, bounds = solver.solve(noise)
    assert solver.certified.mean() >= 0.8
    assert (solver.iterations > 1).all()
    assert (bounds >= exact - 1e-9).all()
    np.testing.assert_allclose(values[solver.certified], exact[solver.certified], rtol=1e-9)
    again = GridStrips(graph, widths=(5, 7)).solve(noise[3:4])
    for a, b in zip((values, states, bounds), again, strict=True):
        np.testing.assert_array_equal(a[3:4], b)


def test_a_grid_that_only_a_complete_search_could_solve():
    graph = random_spin_glass(40, 40, 2.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    solver = GridStrips(graph)
    values, states = solver.maximise(gumbels(graph, 1, 1))
    assert solver.certified.all()
    assert solver.guarantee == "exact"
    assert attained(graph, gumbels(graph, 1, 1), states)[0] == pytest.approx(values[0], rel=1e-13)


def test_what_is_not_certified_goes_to_the_rest():
    graph = random_spin_glass(9, 9, 3.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    noise = gumbels(graph, 4, 1)
    alone = GridStrips(graph, widths=(3,), max_iterations=2)
    alone.maximise(noise)
    assert not alone.certified.any()
    assert alone.guarantee == "approximate"
    rest = GridTransfer(graph)
    solver = GridStrips(graph, widths=(3,), max_iterations=2, rest=rest)
    values, states = solver.maximise(noise)
    assert solver.guarantee == "exact"
    for a, b in zip((values, states), rest.maximise(noise), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_limit_ends_the_iterations():
    graph = random_spin_glass(9, 9, 3.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    solver = GridStrips(graph, widths=(3,))
    solver.limit(0.0)
    solver.solve(gumbels(graph, 2, 1))
    assert solver.iterations.tolist() == [1, 1]


def test_unsuitable_models():
    glass = random_spin_glass(4, 4, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    for factor in (Factor((0,), [0.0, -np.inf]), Factor((0, 10), np.eye(2))):
        with pytest.raises(UnsuitableModel):
            GridStrips(FactorGraph(glass.cardinalities, [*glass.factors, factor]))
    with pytest.raises(UnsuitableModel, match="three states"):
        GridStrips(FactorGraph([3, 3], [Factor((0, 1), np.eye(3))]))
    with pytest.raises(ModelTooLarge, match="a strip of the grid needs"):
        GridStrips(glass, memory=1000)
