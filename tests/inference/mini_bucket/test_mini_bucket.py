"""Bounds by mini-buckets beside brute force."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration, OutOfTime
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.mini_bucket import mini_bucket
from thesis_cli.inference.mini_bucket.mini_bucket import mini_bucket_bounds
from thesis_cli.inference.mini_bucket.passes import Passes
from thesis_cli.inference.mini_bucket.plan import Planner
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ising
from thesis_cli.studies.models.families import causes
from thesis_cli.studies.models.network import bipartite


def log_z(graph):
    return np.logaddexp.reduce(graph.log_potential(all_states(graph)))


@settings(max_examples=examples(40))
@given(factor_graphs(most_variables=6), st.sampled_from([1, 4, 8, 16, 64]))
def test_bounds_hold_whatever_the_size_of_the_tables(graph, limit):
    exact = log_z(graph)
    try:
        found = mini_bucket_bounds(graph, limit=limit)
    except NoConfiguration:
        assert exact == -np.inf
        return
    slack = 1e-13 * max(1.0, abs(exact)) if np.isfinite(exact) else 0.0  # the rounding of brute force
    if found.exact:
        assert found.lower == found.upper == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert found.lower <= exact + slack
    assert found.upper >= exact - slack


@pytest.mark.parametrize("coupling", [1.0, 3.0])
def test_passes_and_larger_tables_tighten_the_bounds_of_a_grid(coupling):
    graph = random_spin_glass(5, 5, 1.0, coupling, "mixed", np.random.default_rng(0)).graph()
    exact, _ = exact_log_partition_function(graph)
    gaps = []
    for limit in (4, 8, 32):
        found = mini_bucket_bounds(graph, limit=limit)
        assert found.lower < exact < found.upper
        gaps.append(found.upper - found.lower)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1.5
    whole = mini_bucket_bounds(graph)
    assert whole.exact
    assert whole.upper == whole.lower == pytest.approx(exact, rel=1e-13)
    assert mini_bucket_bounds(graph, deadline=time.monotonic() + 60).exact


def test_hard_constraints_leave_both_sides():
    """Neighbours of a cycle differ; three states, and tables that hold two variables."""
    n, table = 9, np.where(np.eye(3), -np.inf, 0.0)
    graph = FactorGraph([3] * n, [Factor(tuple(sorted((i, (i + 1) % n))), table) for i in range(n)])
    found = mini_bucket_bounds(graph, limit=9)
    exact = np.log(2**n + 2 * (-1) ** n)
    assert not found.exact
    assert exact - 4 < found.lower <= exact <= found.upper < exact + 2


def test_the_time_is_kept():
    graph = random_spin_glass(12, 12, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    with pytest.raises(OutOfTime):
        mini_bucket_bounds(graph, deadline=time.monotonic() - 1)


@pytest.mark.parametrize("factors", [(), (Factor((), np.array(2.0)),)])
def test_a_model_without_variables_to_sum_has_bounds_in_time(factors):
    found = mini_bucket_bounds(FactorGraph([1], factors), deadline=time.monotonic() + 60)
    assert found.exact
    assert found.upper == sum(float(f.table) for f in factors)


def test_an_upper_bound_stays_if_the_time_ends_before_the_first_lower_one(monkeypatch):
    graph = random_spin_glass(5, 5, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    run = mini_bucket.Tightened.run

    def slow(self, *how):
        if self.side == "lower":
            raise OutOfTime("the time is up")
        run(self, *how)

    monkeypatch.setattr(mini_bucket, "FIRST", 4.0)
    monkeypatch.setattr(mini_bucket.Tightened, "run", slow)
    monkeypatch.setattr(mini_bucket, "_larger", lambda *_: None)
    found = mini_bucket_bounds(graph, deadline=time.monotonic() + 60)
    assert found.lower == -np.inf
    assert exact_log_partition_function(graph)[0] < found.upper < np.inf


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=6), st.sampled_from([1, 4, 16]))
def test_bounds_by_last_first_hold(graph, limit):
    exact = log_z(graph)
    work = Passes(Planner(graph).plan(limit, "last first"), "upper")
    for _ in range(4):
        work.forward()
        assert work.value + work.margin >= exact - 1e-12 * max(1.0, abs(exact) if np.isfinite(exact) else 1.0)
        work.backward()


def test_last_first_sums_out_children_before_parents():
    graph = causes(3, 8, 3, 0.5, np.random.default_rng(0)).graph
    order = Planner(graph).plan(16, "last first").order
    assert order == sorted(order, reverse=True) != Planner(graph).plan(16).order


def test_passes_end_where_samples_would_gain_more():
    graph = random_spin_glass(12, 12, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    hasty, patient = (
        mini_bucket.tightened(graph, 2**31, None, sides=("upper",), limit=16, end=end)["upper"]
        for end in (time.monotonic(), math.inf)
    )
    assert hasty.passes == 2 < patient.passes
    assert patient.value < hasty.value


def test_a_step_that_is_too_long_is_taken_back():
    """In a dense model each bucket moves as if it were alone, and all together go too far."""
    graph = bipartite(40, 40, 0.5, np.random.default_rng(0)).graph
    plan = Planner(graph).plan(2**8, "last first")
    plain, values = Passes(plan, "upper"), []
    for _ in range(8):
        plain.forward()
        values.append(plain.value)
        plain.backward()
    assert max(values[1:]) > values[0]
    found = mini_bucket.Tightened("upper")
    found.run(plan, 8, (None, None), None)
    assert found.value < min(values) - 1


def test_the_order_is_that_of_the_better_bound():
    """`last first` for a network that this sums from its leaves; `least fill` where its tables need not be divided."""
    chosen = []
    for graph in (
        causes(3, 30, 5, 0.2, np.random.default_rng(0)).conditioned(),
        ising(3, 30, 1.0, np.random.default_rng(0)),
    ):
        chosen.append(mini_bucket._better_order(Planner(graph), lambda plan: plan.entries < 2**17, math.inf))
    assert chosen == ["last first", "least fill"]
