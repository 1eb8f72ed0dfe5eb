import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.child import call
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel, WorkFailed
from thesis_cli.inference.external import cost_function_search
from thesis_cli.inference.external.cost_function_search import CostFunctionSearch
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import random_3_sat

pytest.importorskip("pytoulbar2")


class Here:
    """In the place of a process: a search in this one."""

    def __init__(self, function, *arguments, requests):
        self._problems = []
        self._answers = function(iter(lambda: self._problems.pop(), None), *arguments)

    def send(self, problem):
        self._problems.append(problem)

    def next(self, timeout):
        return next(self._answers)

    def stop(self):
        self._answers.close()


def in_one_process(work):
    """Searches in one process, but not in that of the tests: they change settings of the library."""
    cost_function_search.Child = Here
    work()


def test_values_and_bounds_are_those_of_brute_force():
    call(in_one_process, compare_all, timeout=600)


def compare_all():
    compare()  # a function that hypothesis makes cannot be pickled


@settings(max_examples=examples(30))
@given(factor_graphs(), st.integers(0, 2**32))
def compare(graph, seed):
    rng = np.random.default_rng(seed)
    every = all_states(graph)
    noise = rng.gumbel(0, 3, (2, sum(graph.cardinalities)))
    offsets = np.cumsum([0, *graph.cardinalities[:-1]])
    phi = graph.log_potential(every) + noise[:, every + offsets].sum(axis=2)
    solver = CostFunctionSearch(graph)
    found = solver.solve(noise, known=rng.choice(every, 2) if seed % 2 else None)
    np.testing.assert_allclose(found.values, phi.max(axis=1), rtol=1e-12, atol=1e-12)
    assert (found.bounds >= phi.max(axis=1)).all()
    assert found.proven.all()
    assert solver.guarantee == "exact"
    left = np.delete(phi[0], phi[0].argmax())
    second = solver.solve(noise[:1], forbidden=every[phi[0].argmax()][None])
    assert second.values[0] == pytest.approx(left.max(initial=-np.inf), rel=1e-12, abs=1e-12)


def wide(rng):
    """A table of five variables, and log-potentials 1e12 apart."""
    table = np.where(rng.random((2,) * 5) < 0.5, -1e12, rng.normal(size=(2,) * 5))
    table[0, 0, 0, 0, 0] = -np.inf
    return FactorGraph([2] * 6, [Factor((4, 0, 2, 1, 3), table), Factor((5, 1), rng.normal(size=(2, 2)))])


def test_a_wide_table_and_a_huge_range_do_not_blur_the_certificate(monkeypatch):
    monkeypatch.setattr(cost_function_search, "Child", Here)
    graph = wide(np.random.default_rng(1))
    found = CostFunctionSearch(graph).solve(np.zeros((1, 12)))
    assert found.values[0] == graph.log_potential(all_states(graph)).max()
    assert 0 <= found.bounds[0] - found.values[0] < 1e-9


def test_time_ends_with_what_was_found_and_a_bound():
    graph = random_spin_glass(16, 16, 2.0, 0.1, "mixed", np.random.default_rng(0)).graph()
    solver = CostFunctionSearch(graph, time_limit=0.3)
    found = solver.solve(np.zeros((1, 512)))
    assert solver.guarantee == "approximate"
    assert graph.log_potential(found.states)[0] == pytest.approx(found.values[0])
    assert found.values[0] < found.bounds[0] < np.inf


def test_a_bound_after_few_backtracks_holds():
    call(in_one_process, limited_searches, timeout=600)


def limited_searches():
    graph = random_spin_glass(10, 10, 2.0, 0.1, "mixed", np.random.default_rng(0)).graph()
    best = GridTransfer(graph).maximise(np.zeros((1, 200)))[0][0]
    for backtracks in (1, 10, 100):
        limited = CostFunctionSearch(graph, backtracks=backtracks).solve(np.zeros((1, 200)))
        assert not limited.proven[0]
        assert limited.values[0] <= best + 1e-9
        assert best <= limited.bounds[0] < best + 100
    graph = random_3_sat(100, 420, np.random.default_rng(3))  # a first configuration is found all the same
    found = CostFunctionSearch(graph, backtracks=1).solve(np.zeros((1, 200)))
    assert graph.log_potential(found.states)[0] == 0 == found.bounds[0]


def test_what_it_cannot_take_is_one_line(monkeypatch):
    graph = FactorGraph([2] * 6, [Factor(tuple(range(6)), np.zeros((2,) * 6))])
    with pytest.raises(ModelTooLarge, match="toulbar2 needs"):
        CostFunctionSearch(graph, memory=1000)
    monkeypatch.setattr(cost_function_search, "is_installed", lambda name: False)
    with pytest.raises(UnsuitableModel, match="needs the package pytoulbar2; run pip install pytoulbar2"):
        CostFunctionSearch(graph)


def test_a_crash_of_the_library_is_no_end(monkeypatch):
    crashes = []

    class Crashing(Here):
        def next(self, timeout):
            if self._problems and len(crashes) < most:
                crashes.append(self._problems)
                raise WorkFailed("a process died (signal 11)")
            return super().next(timeout)

    monkeypatch.setattr(cost_function_search, "Child", Crashing)
    graph = FactorGraph([2, 2], [Factor((0, 1), np.array([[1.0, 2.0], [3.0, -np.inf]]))])
    most = 1
    assert CostFunctionSearch(graph).solve(np.zeros((1, 4))).values == [3.0]
    most = 3
    solver = CostFunctionSearch(graph)
    found = solver.solve(np.zeros((1, 4)), known=np.array([[0, 1]]))
    assert (found.values, found.bounds, solver.guarantee) == ([2.0], [np.inf], "approximate")
