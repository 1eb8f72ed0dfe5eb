"""Elimination in NumPy against compiled elimination, which other tests hold against brute force."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference import choose
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.order import best_order, small_order
from thesis_cli.inference.elimination.small import ENTRIES, VARIABLES, small_elimination
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


def grid(rows, columns):
    return ising(rows, columns, 1.0, np.random.default_rng(0))


@settings(max_examples=examples(60))
@given(factor_graphs(), st.sampled_from([1.0, 100.0, 1e6]), st.integers(0, 2**32))
def test_all_answers_are_those_of_compiled_elimination(graph, scale, seed):
    graph = graph.tempered(scale)
    small, compiled = small_elimination(graph, 2**30), Elimination(graph)
    assert small.log_partition_function() == pytest.approx(compiled.log_partition_function(), rel=1e-12, abs=1e-11)
    noise = np.random.default_rng(seed).gumbel(size=(3, sum(graph.cardinalities)))
    values, states = small.maximise(noise)
    np.testing.assert_allclose(values, compiled.maximise(noise)[0], rtol=1e-12, atol=1e-11)
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    attained = graph.log_potential(states) + np.take_along_axis(noise, states + offsets, axis=1).sum(axis=1)
    np.testing.assert_allclose(attained, values, rtol=1e-12, atol=1e-11)
    if graph.log_potential(all_states(graph)).max() == -np.inf:
        for work in (small.marginals, small.renyi_entropy, lambda: small.sample(1, np.random.default_rng(0))):
            with pytest.raises(NoConfiguration):
                work()
        return
    np.testing.assert_allclose(small.marginals()[1], compiled.marginals()[1], atol=1e-11)
    assert small.renyi_entropy(1.0) == pytest.approx(compiled.renyi_entropy(1.0), rel=1e-11, abs=1e-11)


def test_samples_are_those_of_compiled_elimination():
    graph = FactorGraph([2] * 19 + [3], [*grid(3, 6).factors, Factor((17, 18), np.array([[0.0, 1.0], [-np.inf, 2.0]]))])
    small, compiled = (
        each.sample(200, np.random.default_rng(1)) for each in (small_elimination(graph, 2**30), Elimination(graph))
    )
    assert (small != compiled).any(axis=1).sum() <= 1  # a uniform within rounding of a step


@settings(max_examples=examples(20))
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple), min_size=1, max_size=12))
def test_the_order_is_that_of_the_compiled_search(scopes):
    assert small_order([2, 3] * 5, scopes, 40.0) == best_order([2, 3] * 5, scopes)


def test_a_model_of_large_tables_or_many_variables_is_not_small():
    clique = FactorGraph([2] * 22, [Factor((i, j), np.zeros((2, 2))) for i in range(22) for j in range(i)])
    assert ENTRIES < 2**22
    assert small_elimination(clique, 2**40) is None
    assert small_elimination(grid(1, VARIABLES), 2**30) is not None
    assert small_elimination(grid(1, VARIABLES + 1), 2**30) is None
    assert small_elimination(grid(4, 4), 100) is None
    assert small_elimination(grid(4, 4), 0) is None


def test_many_map_problems_go_to_compiled_code(monkeypatch):
    graph = FactorGraph([3] * 4, [Factor((i, j), np.eye(3)) for i in range(4) for j in range(i)])
    few, _ = choose.map_solver(graph, calls=100)
    assert few.entries * 100 <= choose.FEW
    monkeypatch.setattr(choose, "FEW", few.entries * 100 - 1)
    many, _ = choose.map_solver(graph, calls=100)
    assert (type(few).__name__, type(many).__name__) == ("SmallElimination", "Elimination")


def test_answers_on_a_small_model_compile_nothing(tmp_path):
    """In a process of its own, since this one has compiled code already."""
    rng = np.random.default_rng(0)
    factors = [
        Factor((i, j), rng.normal(size=(4, 4))) for i, j in rng.permuted(np.tile(np.arange(20), (25, 1)), axis=1)[:, :2]
    ]
    (tmp_path / "m.uai").write_text(uai.write(FactorGraph([4] * 20, factors)))
    script = (
        "import thesis_cli as tc\n"
        "for work in (tc.estimate_z, tc.marginals, tc.map_state, tc.sample, tc.renyi): work('m.uai')\n"
        "tc.estimate_z('m.uai', samples=1000, seed=1)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, env=environment)
    assert not list(tmp_path.glob("compiled/**/*.nbi"))
