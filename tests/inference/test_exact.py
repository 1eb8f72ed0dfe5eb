import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.inference import exact, marginals
from thesis_cli.inference.elimination import slices
from thesis_cli.inference.elimination.plan import make_plan
from thesis_cli.inference.elimination.tree import Room
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.studies.models.examples import ising, random_3_sat, zipf


def test_each_model_takes_its_route_to_the_same_number(monkeypatch):
    graph = ising(3, 3, 1.0, np.random.default_rng(0))
    expected = pytest.approx(log_partition_function(graph), rel=1e-13)
    assert exact_log_partition_function(graph) == (expected, "elimination")
    monkeypatch.setattr(exact, "small_elimination", lambda *_: None)
    assert exact_log_partition_function(graph) == (expected, "grid transfer")
    assert exact_log_partition_function(_renumbered(graph)) == (expected, "grid transfer")
    tree = FactorGraph([2] * 4, [Factor((0, i), np.ones((2, 2))) for i in (1, 2, 3)])
    assert exact_log_partition_function(tree) == (pytest.approx(3 + 4 * math.log(2)), "elimination")
    assert exact_log_partition_function(graph, memory=10) == (expected, "enumeration")
    with pytest.raises(ModelTooLarge, match="width 3"):
        exact_log_partition_function(graph, memory=10, max_configurations=10)
    vector = LogPotentials(zipf(10, 1.0))
    assert exact_log_partition_function(vector) == (pytest.approx(log_partition_function(vector)), "enumeration")


def test_a_grid_without_configurations_makes_no_warning(monkeypatch):
    one_each = [Factor((i,), np.array(row)) for i in (0, 2) for row in ([0, -np.inf, -np.inf], [-np.inf, 0, 0])]
    graph = FactorGraph([3] * 4, [*one_each, *(Factor(e, np.ones((3, 3))) for e in ((0, 1), (2, 3), (0, 2)))])
    for module in (exact, marginals):
        monkeypatch.setattr(module, "small_elimination", lambda *_: None)
        monkeypatch.setattr(module, "INSTANT", 0.0)
    with warnings.catch_warnings(action="error"):
        assert exact_log_partition_function(graph)[0] == -np.inf
        with pytest.raises(NoConfiguration):
            marginals.backward_routes(graph, 2**20)


def test_a_grid_whose_weights_would_underflow_is_summed_by_elimination():
    graph = ising(4, 4, 200.0, np.random.default_rng(0))
    assert exact_log_partition_function(graph) == (pytest.approx(log_partition_function(graph)), "elimination")


HOUR = 3600.0
SAT = random_3_sat(16, 60, np.random.default_rng(2))
SAT = SAT.with_factors([*SAT.factors, Factor((), np.array(1.5))])


def test_zeros_are_used_before_a_slow_elimination(monkeypatch):
    monkeypatch.setattr(exact, "INSTANT", 0.0)
    monkeypatch.setattr(exact, "AT_ONCE", 60.0)
    found = exact_log_partition_function(SAT, max_configurations=1)
    assert found == (pytest.approx(1.5 + math.log(11)), "sparse elimination")


def test_a_wide_model_is_planned_once_its_zeros_are_gone(monkeypatch):
    planned = []
    monkeypatch.setattr(slices, "make_plan", lambda *given: planned.append(given[1]) or make_plan(*given))
    with np.errstate(divide="ignore"):
        same = [Factor((i, j), np.log(np.eye(2))) for i in range(35) for j in range(i)]
    chain = [Factor((i, i + 1), np.array([[0.0, 1.0], [2.0, 0.5]])) for i in range(34, 44)]
    steps = np.exp(chain[0].table)
    expected = pytest.approx(math.log(np.linalg.matrix_power(steps, 10).sum()), rel=1e-13)
    assert exact_log_partition_function(FactorGraph([2] * 45, [*same, *chain])) == (expected, "elimination")
    assert max(map(len, planned), default=0) < 12


def test_a_model_without_zeros_is_planned_however_long_it_takes(monkeypatch):
    monkeypatch.setattr(exact, "INSTANT", 0.0)
    monkeypatch.setattr(exact, "small_elimination", lambda *_: None)
    graph = _renumbered(ising(4, 4, 1.0, np.random.default_rng(0)))
    own = [each.run for each in exact.exact_plan(graph, 2**30, 1, HOUR).candidates if each.algorithm == "elimination"]
    assert own[0] is None
    assert own[-1]() == (pytest.approx(log_partition_function(graph)), "elimination")


def test_places_that_are_given_back_become_one():
    room, rng = Room(), np.random.default_rng(0)
    taken = [(room.take(size), size) for size in rng.integers(1, 9, 40).tolist()]
    for k in rng.permutation(40):
        room.give(*taken[k])
    assert room.size == sum(size for _, size in taken)
    assert (room.take(room.size), room.size) == (0, sum(size for _, size in taken))


def test_what_the_reduction_takes_out_is_added_again(monkeypatch):
    for name in ("INSTANT", "AT_ONCE"):
        monkeypatch.setattr(exact, name, 0.0)
    leaf = Factor((0, 16), np.array([[0.0, 1.0], [2.0, 0.5]]))
    graph = FactorGraph([2] * 17, [*SAT.factors, leaf])
    found = exact_log_partition_function(graph, max_configurations=1)
    assert found == (pytest.approx(log_partition_function(graph)), "elimination")


@pytest.mark.parametrize(
    ("left_out", "method"), [(("elimination",), "model counting"), (("model counting",), "elimination")]
)
def test_slow_algorithms_run_side_by_side_in_processes(monkeypatch, left_out, method):
    for name in ("INSTANT", "AT_ONCE", "QUICK", "SPARSE_SHARE"):
        monkeypatch.setattr(exact, name, 0.0)
    plan = exact.exact_plan(SAT, 2**30, 1, HOUR)
    assert [attempt.name for attempt in plan.attempts] == ["elimination", "sparse elimination", "model counting"]
    kept = [attempt for attempt in plan.attempts if attempt.name not in left_out]
    monkeypatch.setattr(exact, "exact_plan", lambda *_: replace(plan, attempts=tuple(kept)))
    found = exact_log_partition_function(SAT, max_configurations=1, seconds=HOUR)
    assert found == (pytest.approx(1.5 + math.log(11)), method)


def test_a_refusal_names_what_is_missing_after_all_attempts_fail(monkeypatch):
    for name in ("INSTANT", "AT_ONCE", "QUICK", "SPARSE_SHARE"):
        monkeypatch.setattr(exact, name, 0.0)
    with pytest.raises(ModelTooLarge, match=r"grid transfer needs .* at width 4; raise the memory from 10 bytes"):
        exact_log_partition_function(ising(4, 4, 1.0, np.random.default_rng(0)), memory=10, max_configurations=1)
    wide = FactorGraph([2] * 12, [Factor((i, j), np.eye(2)) for i in range(12) for j in range(i)])
    with pytest.raises(ModelTooLarge, match=r"contraction needs .* and is predicted to take .* s with as much"):
        exact_log_partition_function(wide, memory=10, max_configurations=1)


@pytest.mark.parametrize("at_once", [0.0, 0.2])
def test_a_model_without_a_configuration_is_found_out_on_each_way(monkeypatch, at_once):
    monkeypatch.setattr(exact, "INSTANT", at_once)
    equal, differ = (np.where(np.eye(2) == keep, 0.0, -np.inf) for keep in (1, 0))
    graph = FactorGraph([2, 2], [Factor((0, 1), equal), Factor((0, 1), differ)])
    assert exact_log_partition_function(graph, max_configurations=1)[0] == -np.inf


def _renumbered(graph):
    """The same model in another order of its variables."""
    order = np.random.default_rng(0).permutation(len(graph.cardinalities))
    factors = [Factor(tuple(int(order[i]) for i in f.scope), f.table) for f in graph.factors]
    return FactorGraph([graph.cardinalities[i] for i in np.argsort(order)], factors)
