import itertools
import math
import time
from functools import partial
from unittest import mock

import numpy as np
import pyagrum
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import MODELS, all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.compiled import interpreted
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, OutOfTime
from thesis_cli.inference.best_configuration import best_configuration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.marginal_map import marginal_map as module
from thesis_cli.inference.marginal_map import search
from thesis_cli.inference.marginal_map.elimination import ConditionalSums, Simplified
from thesis_cli.inference.marginal_map.marginal_map import marginal_map
from thesis_cli.inference.marginal_map.search import MaxSumPasses
from thesis_cli.inference.mini_bucket.mini_bucket import mini_bucket_bounds
from thesis_cli.inference.mini_bucket.plan import Planner
from thesis_cli.models.bif import parse
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising


@st.composite
def queries(draw, observed=True):
    """A small model, perhaps with a factor of four variables and evidence, and some of its variables."""
    graph = draw(factor_graphs(most_variables=6))
    n = len(graph.cardinalities)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if n >= 4 and draw(st.booleans()):
        scope = tuple(rng.permutation(n)[:4].tolist())
        graph = graph.with_factors(
            [*graph.factors, Factor(scope, rng.normal(size=[graph.cardinalities[i] for i in scope]))]
        )
    free = list(range(n))
    if observed and n > 2 and draw(st.booleans()):
        i = draw(st.integers(0, n - 1))
        try:
            graph = graph.condition({i: draw(st.integers(0, graph.cardinalities[i] - 1))})
            free.remove(i)
        except InputError:
            pass
    if len(free) < 2:
        graph, free = FactorGraph([2, 3], [Factor((0, 1), rng.normal(size=(2, 3)))]), [0, 1]
    over = draw(st.permutations(free))[: draw(st.integers(1, len(free) - 1))]
    return graph, over


@st.composite
def dense_queries(draw):
    """Variables that are all neighbours, some of them tied one to one, and some of the variables."""
    n, k = draw(st.integers(4, 6)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale, zeros = draw(st.sampled_from([0.3, 2.0])), draw(st.sampled_from([0.0, 0.15]))
    factors = []
    for pair in itertools.combinations(range(n), 2):
        table = rng.normal(0, scale, (k, k))
        table[rng.random((k, k)) < zeros] = -np.inf
        table[0, 0] = 0.0
        factors.append(Factor(pair, table))
    if draw(st.booleans()):
        pair = tuple(rng.permutation(n)[:2].tolist())
        factors.append(Factor(pair, np.where(np.eye(k)[rng.permutation(k)] > 0, 0.5, -np.inf)))
    over = rng.permutation(n)[: draw(st.integers(1, n - 1))].tolist()
    return FactorGraph([k] * n, factors), over


def by_enumeration(graph, over):
    """ln of the sum for each configuration of the query variables, numbered as without evidence."""
    states = all_states(graph)
    values, original = graph.log_potential(states), graph.original_states(states)
    found = {}
    for row, value in zip(original[:, list(over)].tolist(), values.tolist(), strict=True):
        found[tuple(row)] = np.logaddexp(found.get(tuple(row), -math.inf), value)
    return found


def check(graph, over, *, exact, **options):
    truth = by_enumeration(graph, over)
    best = max(truth.values())
    told = []
    if best == -math.inf:
        with pytest.raises(NoConfiguration):
            marginal_map(graph, over)
        return
    try:
        found = marginal_map(graph, over, report=lambda *bounds: told.append(bounds), **options)
    except OutOfTime:
        assert not exact
        return
    slack = 1e-9 * max(1.0, abs(best))
    for lower, upper in [*told, (found.value, found.bound)]:
        assert lower - slack <= best <= upper + slack
    own = truth[tuple(found.states.tolist())]
    assert found.value <= own + slack
    if exact:
        assert found.guarantee == "exact"
    if found.guarantee == "exact":
        assert found.value == pytest.approx(best, abs=slack)
        assert own == pytest.approx(best, abs=slack)


@given(queries())
@settings(max_examples=examples(60))
def test_exact_is_enumeration(query):
    check(*query, exact=True)


def small_tables(largest, **more):
    """Mini-buckets of so many entries at most, and no exact elimination."""

    class Small(Planner):
        def plan(self, limit):
            return super().plan(min(limit, largest))

    return mock.patch.multiple(module, Planner=Small, PLANNING=0.0, **more)


def _sums_too_large(*_):
    raise ModelTooLarge("too large")


@given(dense_queries(), st.sampled_from([4, 9, 27]))
@settings(max_examples=examples(15))
def test_bounds_enclose_the_answer_all_the_time_where_tables_are_too_small(query, largest):
    """Tables of sums for given states, too, so that their values have lower bounds alone."""
    bounds = partial(mini_bucket_bounds, limit=largest)
    rough = small_tables(largest, ConditionalSums=_sums_too_large, mini_bucket_bounds=bounds, LOWER_SECONDS=0.02)
    with rough, mock.patch.multiple(search, NODES=5, MOST_NODES=5):
        check(*query, exact=False, time_limit=0.2)


@given(dense_queries(), st.sampled_from([4, 9, 27]))
@settings(max_examples=examples(40))
def test_search_with_exact_sums_ends_at_the_answer(query, largest):
    with small_tables(largest), mock.patch.multiple(search, NODES=5, MOST_NODES=5):
        check(*query, exact=True)


@given(dense_queries(), st.sampled_from([4, 9, 27]), st.booleans())
@settings(max_examples=examples(60))
def test_bounds_of_mini_buckets_hold_on_every_path(query, largest, sums):
    """Bounds hold at the root after each pass, at leaves, and on all open nodes as the search visits one by one."""
    graph, over = query
    over = over if sums else list(range(len(graph.cardinalities)))
    truth = by_enumeration(graph, over)
    best = max(truth.values())
    passes = MaxSumPasses(Planner(graph, over).plan(largest), over)
    for _ in range(4):
        passes.forward()
        assert passes.value + passes.margin >= best - 1e-9
        passes.backward()
        passes.cool()
    found = search.Search(passes, frozenset(over), len(graph.cardinalities))
    assert passes.value >= best - 1e-9
    seen = -math.inf

    def take(states, bounds):
        nonlocal seen
        for row, bound in zip(states[:, over].tolist(), bounds.tolist(), strict=True):
            own = truth[tuple(row)]
            assert own == pytest.approx(bound, abs=1e-9) if found.sums_exact else own <= bound + 1e-9
            seen = max(seen, own)
        return seen

    with mock.patch.object(search, "MOST_NODES", 1):
        found._budget = 1
        while not found.ended:
            assert max(found.bound, seen) >= best - 1e-9
            found.run(seen, time.monotonic(), take)
    assert seen == pytest.approx(best, abs=1e-9)


@given(dense_queries())
@settings(max_examples=examples(30))
def test_the_maximum_is_that_of_a_model_once_sums_are_exact(query):
    """Given to solvers of MAP, with no time for the search."""
    with mock.patch.multiple(module, FIRST=2.0**12, PLANNING=0.0), mock.patch.object(module._Solver, "_searched"):
        module._Solver._searched.side_effect = lambda *_: iter(())
        with (
            mock.patch.object(module.MiniBucketPlan, "exact", False),
            mock.patch.object(module, "ConditionalSums", return_value=None),
        ):
            check(*query, exact=True)


@given(dense_queries())
@settings(max_examples=examples(40))
def test_exact_is_enumeration_where_variables_determine_each_other(query):
    check(*query, exact=True)


@given(queries(observed=False))
@settings(max_examples=examples(30))
def test_conditional_sums_are_those_of_enumeration(query):
    graph, over = query
    truth = by_enumeration(graph, over)
    rows = list(itertools.product(*(range(graph.cardinalities[i]) for i in over)))
    states = np.zeros((len(rows), len(graph.cardinalities)), np.int64)
    states[:, list(over)] = rows
    found = ConditionalSums(graph, over, math.inf).of(states)
    np.testing.assert_allclose(found, [truth[row] for row in rows], rtol=1e-9, atol=1e-9)


@given(queries(observed=False))
def test_parts_add_up(query):
    graph, over = query
    truth = by_enumeration(graph, over)
    try:
        simple = Simplified(graph, over)
    except NoConfiguration:
        assert max(truth.values()) == -math.inf
        return
    total, states = simple.constant, []
    for part in simple.parts:
        known = by_enumeration(part.graph, sorted(part.over))
        best = max(known, key=known.__getitem__)
        total += known[best]
        states.append(np.zeros(len(part.graph.cardinalities), np.int64))
        states[-1][sorted(part.over)] = best
    best = max(truth.values())
    assert total == pytest.approx(best, rel=1e-9, abs=1e-9)
    if best > -math.inf:
        chosen = tuple(simple.original_states(states)[list(over)].tolist())
        assert truth[chosen] == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(factor_graphs(most_variables=4, impossible=False))
def test_limits_are_map_and_ln_z(graph):
    """A variable that no factor names makes each a query of some variables."""
    n = len(graph.cardinalities)
    more = FactorGraph([*graph.cardinalities, 3], graph.factors)
    highest = marginal_map(more, range(n))
    assert highest.value == pytest.approx(best_configuration(graph).value + math.log(3), rel=1e-12)
    assert graph.log_potential(highest.states[np.newaxis])[0] == pytest.approx(
        best_configuration(graph).value, rel=1e-12
    )
    assert marginal_map(more, [n]).value == pytest.approx(exact_log_partition_function(graph)[0], rel=1e-12)


SINGLE = 4 * float(np.finfo(np.float32).eps)
"""Relative rounding of pyAgrum, which reads numbers of BIF files in single precision."""


@pytest.mark.parametrize("query", ["bronc", "lung,bronc", "tub,smoke,dysp", "either,lung"])
def test_the_joint_table_of_pyagrum(query):
    """pyAgrum multiplies the tables of the network, and sums out what is not asked for."""
    path = MODELS / "asia.bif"
    network, graph = pyagrum.loadBN(str(path)), parse(path.read_text())
    names = query.split(",")
    joint = pyagrum.Tensor().fillWith(1.0)
    for i in network.nodes():
        joint = joint * network.cpt(i)
    left = joint.sumOut([name for name in joint.names if name not in names])
    found = marginal_map(graph, [graph.names.variables.index(name) for name in names])
    assert math.exp(found.value) == pytest.approx(left.max(), rel=SINGLE)
    at = {
        name: graph.state_name(graph.names.variables.index(name), int(x))
        for name, x in zip(names, found.states, strict=True)
    }
    assert left[at] == pytest.approx(left.max(), rel=SINGLE)


def test_a_larger_grid_is_searched():
    graph = ising(9, 9, 0.6, np.random.default_rng(3))
    over = list(range(0, 81, 3))
    with mock.patch.object(module, "EXACT_SHARE", 0.0):
        searched = marginal_map(graph, over)
    assert "search" in searched.method
    whole = marginal_map(graph, over)
    assert (whole.method, whole.guarantee, searched.guarantee) == ("elimination", "exact", "exact")
    assert searched.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_array_equal(searched.states, whole.states)


def test_interpreted_kernels_search_alike():
    plain = interpreted("thesis_cli.inference.marginal_map.search_kernels")
    graph = ising(4, 4, 1.0, np.random.default_rng(1))
    with small_tables(4):
        compiled = marginal_map(graph, range(8), time_limit=5)
        kernels = {name: getattr(plain, name) for name in ("descend", "enter", "open_bound")}
        with mock.patch.multiple(search, **kernels):
            assert marginal_map(graph, range(8), time_limit=5).value == compiled.value


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ([], "no variables to maximise over are given; estimate-z sums"),
        ([0, 3], "there is no variable 3"),
        ([0, 0], "variable 0 is named twice"),
        ([1], "variable 1 is observed"),
        ([0, 2], "the query names all variables that are not observed; map without a query"),
    ],
)
def test_queries_that_are_refused(over, message):
    graph = FactorGraph([2, 2, 2], [Factor((0, 1), np.zeros((2, 2)))]).condition({1: 0})
    with pytest.raises(InputError, match=message):
        marginal_map(graph, over)
