import contextlib
import gc
import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.inference.zeros.test_reduction import NO, brute_force_marginals, constrained_graphs, log_sum
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime
from thesis_cli.inference.marginals import exact_marginals
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.inference.zeros import reduction_kernels, sparse_kernels
from thesis_cli.inference.zeros.leaves import summed
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.inference.zeros.sparse_elimination import SparseElimination, prepare
from thesis_cli.inference.zeros.sparse_kernels import SUM
from thesis_cli.inference.zeros.sparse_tables import Joiner, SparseTable, laid_out, words_of
from thesis_cli.models.factor_graph import Factor, FactorGraph


def circuit(inputs, gates, rng):
    """Gates of random functions of two or three earlier variables, after weighted inputs."""
    n = inputs + gates
    factors = [Factor((i,), rng.normal(size=2)) for i in range(inputs)]
    for v in range(inputs, n):
        above = rng.choice(np.arange(max(0, v - 30), v), min(v, rng.integers(2, 4)), replace=False)
        function = rng.integers(0, 2, (2,) * len(above))
        table = np.where(np.arange(2) == function[..., None], 0.0, NO)
        factors.append(Factor((*above.tolist(), v), table))
    return FactorGraph([2] * n, factors)


@settings(max_examples=examples(100))
@given(constrained_graphs() | factor_graphs(), st.sampled_from([1.0, 300.0]))
def test_sum_is_brute_force(graph, scale):
    graph = graph.with_factors([Factor(f.scope, np.where(f.table > NO, scale * f.table, NO)) for f in graph.factors])
    expected = pytest.approx(log_sum(graph), rel=1e-12, abs=1e-11)
    assert SparseElimination(graph).log_partition_function() == expected


def test_a_contradiction_that_no_table_shows_alone_is_found():
    """A complete graph of one vertex more than there are colours, each of them with neighbours."""
    rng = np.random.default_rng(7)
    factors = [Factor(e, np.where(np.eye(3) > 0, NO, 0.0)) for e in itertools.combinations(range(4), 2)]
    factors += [Factor((i, j), rng.normal(size=(3, 3))) for i in range(8) for j in range(4, 8) if i != j]
    graph = FactorGraph([3] * 8, factors)
    assert SparseElimination(graph).log_partition_function() == NO
    with pytest.raises(NoConfiguration):
        SparseElimination(graph).marginals()


def test_weights_that_get_too_small_go_on_as_logarithms():
    rng = np.random.default_rng(5)
    graph = FactorGraph(
        [3] * 6, [Factor(pair, rng.uniform(-300, 0, (3, 3))) for pair in itertools.combinations(range(6), 2)]
    )
    assert SparseElimination(graph).log_partition_function() == pytest.approx(log_sum(graph), rel=1e-12)


def test_tables_that_are_constant_but_for_rounding_change_nothing():
    rng = np.random.default_rng(6)
    factors = [Factor(pair, rng.normal(size=(2, 2))) for pair in itertools.combinations(range(5), 2)]
    factors += [Factor(f.scope[:1], np.array([0.0, 1e-15])) for f in factors]
    factors += [Factor((2, 3, 4), rng.choice([0.0, 1e-15], (2, 2, 2)))]
    graph = FactorGraph([2] * 5, factors)
    assert SparseElimination(graph).log_partition_function() == pytest.approx(log_sum(graph), rel=1e-12)


@settings(max_examples=examples(60))
@given(constrained_graphs() | factor_graphs())
def test_marginals_are_brute_force(graph):
    phi = graph.log_potential(all_states(graph))
    solver = SparseElimination(graph)
    if phi.max() == NO:
        with pytest.raises(NoConfiguration):
            solver.marginals()
        return
    log_z, found = solver.marginals()
    assert log_z == pytest.approx(log_sum(graph), rel=1e-12, abs=1e-11)
    np.testing.assert_allclose(found, brute_force_marginals(graph), atol=1e-11)


@settings(max_examples=examples(60))
@given(constrained_graphs() | factor_graphs())
def test_leaves_summed_out_keep_the_sum(graph):
    expected = log_sum(graph)
    try:
        small, constant = summed(reduced(graph))
    except NoConfiguration:
        assert expected == NO
        return
    assert constant + log_sum(small) == pytest.approx(expected, rel=1e-12, abs=1e-11)


def test_a_circuit_sums_over_its_inputs():
    rng = np.random.default_rng(3)
    graph = circuit(6, 150, rng)
    graph = graph.with_factors([*graph.factors, *(Factor((v,), rng.normal(size=2)) for v in range(6, 156))])
    states = np.zeros((64, 156), np.int64)
    states[:, :6] = list(itertools.product(range(2), repeat=6))
    for f in graph.factors[6:156]:
        states[:, f.scope[-1]] = f.table[tuple(states[:, i] for i in f.scope[:-1])].argmax(axis=-1)
    expected = np.logaddexp.reduce(graph.log_potential(states))
    found = SparseElimination(graph)
    assert found.log_partition_function() == pytest.approx(expected, rel=1e-12)
    assert found.rows <= 2**10


def test_limits_end_an_elimination():
    rng = np.random.default_rng(1)
    graph = FactorGraph(
        [2] * 40, [Factor(pair, rng.normal(size=(2, 2))) for pair in itertools.combinations(range(40), 2)]
    )
    with pytest.raises(ModelTooLarge, match="sparse elimination needs more than 1 MiB"):
        SparseElimination(graph, 2**20).log_partition_function()
    with pytest.raises(OutOfTime):
        SparseElimination(graph).log_partition_function(time.monotonic())


def count_of_tables():
    return sum(type(each) is SparseTable for each in gc.get_objects())  # `isinstance` fails on dead proxies


def test_a_refusal_keeps_no_tables():
    graph = FactorGraph([2] * 40, [Factor(pair, np.eye(2)) for pair in itertools.combinations(range(40), 2)])
    gc.collect()
    before = count_of_tables()
    gc.disable()
    try:
        with contextlib.suppress(ModelTooLarge):
            SparseElimination(graph, 2**20).log_partition_function()
        assert count_of_tables() == before
    finally:
        gc.enable()


def test_leaves_of_a_bayesian_network_add_up_to_one():
    rng = np.random.default_rng(2)
    factors = [Factor((i,), np.log(rng.dirichlet(np.ones(3)))) for i in range(20)]
    for v in range(20, 40):
        scope = (*rng.choice(20, 6, replace=False).tolist(), v)
        factors.append(Factor(scope, np.log(rng.dirichlet(np.ones(2), (3,) * 6))))
    graph = FactorGraph([3] * 20 + [2] * 20, factors)
    small, constant = summed(reduced(graph))
    assert small.cardinalities == (1,)
    assert constant == pytest.approx(0, abs=1e-12)
    found = SparseElimination(graph)
    assert found.log_partition_function() == pytest.approx(0, abs=1e-12)
    assert found.rows <= 3**6


def test_zeros_give_marginals_and_samples_of_models_too_wide_for_full_tables():
    n = 40
    differ, equal = np.array([[NO, 0.0], [0.0, NO]]), np.array([[0.0, NO], [NO, 0.0]])
    factors = [Factor(pair, differ if sum(pair) % 2 else equal) for pair in itertools.combinations(range(n), 2)]
    graph = FactorGraph([2] * n, [*factors, Factor((0,), np.log([0.25, 0.75]))])
    limits = {"memory": 2**20, "max_configurations": 100}
    found = exact_marginals(graph, **limits)
    np.testing.assert_allclose(found.probabilities.reshape(n, 2)[:, 0], [0.25, 0.75] * (n // 2))
    states, _ = exact_samples(graph, 50, np.random.default_rng(0), **limits)
    assert (graph.log_potential(states) > NO).all()
    assert len(np.unique(states, axis=0)) == 2


def test_keys_of_several_words_join_as_tables_do():
    """Two tables over 50 variables of 3 states share 20 of them, which they hold in other places."""
    rng = np.random.default_rng(4)
    scopes = rng.permutation(50), np.concatenate([rng.permutation(20), np.arange(50, 80)])
    rows = [rng.integers(0, 3, (60, 80)) for _ in scopes]
    rows[1][:, :20] = rows[0][rng.integers(0, 20, 60), :20]
    tables = []
    for scope, states in zip(scopes, rows, strict=True):
        fields = laid_out({}, [(int(v), 3) for v in scope])
        keys = np.zeros((60, words_of(fields)), np.uint64)
        for v, (word, low, _) in fields.items():
            keys[:, word] |= states[:, v].astype(np.uint64) << np.uint64(low)
        tables.append(SparseTable(fields, keys, rng.random(60)))
    kept = [3, 25, 49, 70]
    expected = Counter()
    for (i, a), (j, b) in itertools.product(enumerate(rows[0]), enumerate(rows[1])):
        if (a[:20] == b[:20]).all():
            expected[a[3], a[25], a[49], b[70]] += tables[0].weights[i] * tables[1].weights[j]
    found = Joiner(2**20, None, SUM).join(*tables, kept)
    states = zip(*(found.states_of(v).tolist() for v in kept), strict=True)
    assert dict(zip(states, found.weights, strict=True)) == pytest.approx(dict(expected))


def test_every_kernel_is_prepared():
    prepare()
    for module in (sparse_kernels, reduction_kernels):
        made = [f for f in vars(module).values() if hasattr(f, "signatures") and f.__module__ == module.__name__]
        assert all(f.signatures for f in made if not f.targetoptions.get("no_cpython_wrapper")), module
