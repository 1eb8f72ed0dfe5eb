"""Which solver `auto` takes, and that every solver does what the contract says."""

import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference import choose
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import random_3_sat
from thesis_cli.studies.models.network import bipartite


def glass(size, kind):
    return random_spin_glass(size, size, 1.0, 1.0, kind, np.random.default_rng(0)).graph()


def frustrated_triangle():
    unlike = np.array([[0.0, 1.0], [1.0, 0.0]])
    return FactorGraph([2, 2, 2], [Factor(e, unlike) for e in ((0, 1), (1, 2), (0, 2))])


@pytest.mark.parametrize(
    ("graph", "name", "passed_over"),
    [
        (glass(12, "attractive"), "grid transfer", ""),
        (glass(13, "attractive"), "graph cut", ""),
        (glass(13, "mixed"), "grid transfer", "not graph-cut: a cycle through the edge"),
        (frustrated_triangle(), "elimination", "not grid: the edge between variables"),
        (random_3_sat(8, 20, np.random.default_rng(0)), "elimination", "not grid: factor 0 has 3 variables"),
    ],
)
def test_auto(graph, name, passed_over):
    solver, why = map_solver(graph)
    assert (solver.name, solver.guarantee) == (name, "exact")
    assert passed_over in why


def test_auto_takes_strips_of_a_wide_grid():
    solver, why = map_solver(glass(26, "mixed"), exact=True)
    assert solver.name == "grid strips"
    passed_over = ["not grid", "not graph-cut", "not elimination", "not contraction"]
    assert [part.split(":")[0] for part in why.split("; ")] == passed_over
    solver.maximise(np.random.default_rng(1).gumbel(size=(1, 1352)))
    assert solver.guarantee == "exact"


def test_auto_approximates_only_if_allowed():
    solver, why = map_solver(glass(20, "mixed"), memory=1000)
    assert (solver.name, solver.guarantee) == ("TRW-S", "approximate")
    passed_over = ["not grid", "not graph-cut", "not elimination", "not grid-strips", "not toulbar2"]
    assert [part.split(":")[0] for part in why.split("; ")] == passed_over
    with pytest.raises(ModelTooLarge, match="no exact MAP solver takes the model; not grid: "):
        map_solver(glass(20, "mixed"), memory=1000, exact=True)


def test_auto_takes_a_tree_that_fits_where_elimination_does_not(monkeypatch):
    graph = bipartite(10, 20, 1.0, np.random.default_rng(0)).conditioned()
    monkeypatch.setattr(choose, "SLOW", 0.0)
    monkeypatch.setattr(choose, "_by_strips", lambda *_: None)
    monkeypatch.setattr(choose, "_by_search", lambda *_: None)
    solver, why = map_solver(graph, memory=150_000, exact=True)
    assert solver.name == "contraction"
    assert "not elimination: elimination needs" in why
    noise = np.random.default_rng(1).gumbel(size=(2, 60))
    np.testing.assert_allclose(solver.maximise(noise)[0], Elimination(graph).maximise(noise)[0], rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["grid", "graph-cut", "elimination", "contraction", "grid-strips", "toulbar2", "trw-s", "max-product", "qpbo"],
)
def test_every_solver_keeps_the_contract(name):
    graph = glass(3, "attractive")
    if name == "toulbar2":
        pytest.importorskip("pytoulbar2")
    solver, why = map_solver(graph, name)
    assert why == ""
    noise = np.random.default_rng(1).gumbel(size=(6, 18))
    values, states = solver.maximise(noise)
    every = all_states(graph)
    best = (graph.log_potential(every) + noise[:, 2 * np.arange(9) + every].sum(axis=2)).max(axis=1)
    own = graph.log_potential(states) + np.take_along_axis(noise, 2 * np.arange(9) + states, axis=1).sum(axis=1)
    np.testing.assert_allclose(values, own, rtol=1e-12)
    assert (values <= best + 1e-9).all()
    if solver.guarantee == "exact":
        np.testing.assert_allclose(values, best, rtol=1e-12)


def test_auto_leaves_hard_constraints_to_a_search_where_elimination_does_not_fit():
    pytest.importorskip("pytoulbar2")
    graph = random_3_sat(24, 90, np.random.default_rng(0))
    solver, _ = map_solver(graph, memory=100_000)
    assert solver.name == "TRW-S and toulbar2"
    noise = np.random.default_rng(1).gumbel(size=(3, 48))
    values, states = solver.maximise(noise)
    np.testing.assert_allclose(values, map_solver(graph, "elimination")[0].maximise(noise)[0], rtol=1e-12)
    assert solver.guarantee == "exact"
    assert (graph.log_potential(states) == 0).all()
