import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import Worse, seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import InputError, NoConfiguration, UnsuitableModel
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.clamping import Clamped, clamped_maxima, clamped_upper_bound
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import upper_bound
from thesis_cli.perturbation.noise import gumbel


def bound(graph, variables, alpha, *how, **options):
    return clamped_upper_bound(clamped_maxima(graph, variables, *how, **options), alpha)


@settings(max_examples=examples(20))
@given(factor_graphs(), st.sampled_from([-0.2, 0.0, 0.7]))
def test_with_every_variable_clamped_the_bound_is_log_z(graph, alpha):
    log_z = Elimination(graph).log_partition_function()
    every = range(len(graph.cardinalities))
    if log_z == -np.inf:
        with pytest.raises(NoConfiguration):
            bound(graph, every, alpha, 2, seed(), Elimination)
        return
    found = bound(graph, every, alpha, 2, seed(), Elimination)
    assert found.value == pytest.approx(log_z, rel=1e-12, abs=1e-11)
    assert found.standard_error < 1e-11
    assert found.kind == ("upper bound in the limit" if alpha < 0 else "upper bound in expectation")


@settings(max_examples=examples(15))
@given(factor_graphs(most_variables=4), st.data())
def test_the_bound_holds_and_clamping_never_hurts(graph, data):
    log_z = Elimination(graph).log_partition_function()
    assume(log_z > -np.inf)
    variables = data.draw(st.lists(st.integers(0, len(graph.cardinalities) - 1), max_size=2))
    slack = 1e-11 * max(1, abs(log_z))
    for alpha in (-0.1, 0.0, 0.7):
        plain = upper_bound(low_rank_maxima(Elimination(graph), 300, seed(1)), alpha)
        found = bound(graph, variables, alpha, 300, seed(2), Elimination)
        assert found.value > log_z - 5 * found.standard_error - slack
        assert found.value < plain.value + 5 * math.hypot(found.standard_error, plain.standard_error) + slack


def test_clamping_helps_where_there_is_a_gap():
    graph = triangle()
    log_z = Elimination(graph).log_partition_function()
    found = [bound(graph, v, 0.0, 20_000, seed(3), Elimination) for v in ((), (2,), (2, 0))]
    for looser, tighter in itertools.pairwise(found):
        assert tighter.value < looser.value - 5 * math.hypot(looser.standard_error, tighter.standard_error)
    assert found[-1].value > log_z - 5 * found[-1].standard_error
    assert [e.map_calls for e in found] == [20_000, 40_000, 80_000]
    assert [e.method for e in found] == ["U(0), 0 clamped", "U(0), 1 clamped", "U(0), 2 clamped"]


def test_the_standard_error_is_the_deviation_over_repetitions():
    found = [bound(triangle(), (2,), 0.3, 100, seed(k), Elimination) for k in range(200)]
    spread = np.std([e.value for e in found], ddof=1)
    assert np.mean([e.standard_error for e in found]) == pytest.approx(spread, rel=5 / math.sqrt(400) + 0.02)
    assert found[0].high - found[0].value == pytest.approx(1.959964 * found[0].standard_error, rel=1e-6)


def test_impossible_states_add_nothing():
    """One factor forbids x_0 = 2; two together forbid x_0 = 1."""
    no = -np.inf
    graph = FactorGraph(
        [3, 2, 1],
        [
            Factor((0, 1), np.array([[0.0, 1.0], [0.0, no], [no, no]])),
            Factor((1, 0), np.array([[0, no, 0], [2, 0, 0.0]])),
        ],
    )
    found = bound(graph, (2, 0, 0), 0.0, 2000, seed(), Elimination)
    assert abs(found.value - np.logaddexp(0, 3)) < 5 * found.standard_error < 0.2
    assert found.map_calls == 4000
    assert found.method == "U(0), 1 clamped"


def test_result_does_not_depend_on_jobs_and_progress_counts_map_calls():
    done = []
    one = bound(triangle(), (1,), 0.1, 300, seed(), Elimination, progress=done.append)
    assert one == bound(triangle(), (1,), 0.1, 300, seed(), Elimination, jobs=3)
    assert sum(done) == one.map_calls == 600


def test_an_approximate_solver_makes_the_bound_approximate():
    assert bound(triangle(), (1,), 0.1, 5, seed(), Worse).kind == "approximate upper bound"


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="variable 4"):
        bound(triangle(), (4,), 0.0, 5, seed(), Elimination)
    with pytest.raises(InputError, match="8,192 joint states"):
        bound(FactorGraph([2] * 13, []), range(13), 0.0, 5, seed(), Elimination)

    def unsuited(graph):
        raise UnsuitableModel("no", "yes")

    with pytest.raises(UnsuitableModel):
        bound(triangle(), (1,), 0.0, 5, seed(), unsuited)


@settings(max_examples=examples(25))
@given(factor_graphs(), st.data())
def test_a_clamped_solver_maximises_over_the_configurations_that_agree(graph, data):
    evidence = {
        i: data.draw(st.integers(0, k - 1)) for i, k in enumerate(graph.cardinalities) if data.draw(st.booleans())
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    noise = data.draw(st.sampled_from([0.0, 1.0, 30.0])) * gumbel(rng, 4, sum(graph.cardinalities))
    before = noise.copy()
    states = all_states(graph)
    agree = np.all([states[:, i] == k for i, k in evidence.items()] or [np.full(len(states), True)], axis=0)
    offsets = np.cumsum([0, *graph.cardinalities[:-1]])
    perturbed = graph.log_potential(states) + noise[:, states + offsets].sum(axis=2)
    expected = np.where(agree, perturbed, -np.inf).max(axis=1)
    solver = Clamped(Elimination(graph), evidence)
    values, found = solver.maximise(noise)
    np.testing.assert_array_equal(noise, before)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-10)
    if expected[0] > -np.inf:
        assert all((found[:, i] == k).all() for i, k in evidence.items())
    np.testing.assert_array_equal(
        solver.graph.log_potential(states), np.where(agree, graph.log_potential(states), -np.inf)
    )
    assert (solver.name, solver.guarantee) == ("elimination", "exact")


def test_clamped_variables_need_no_noise():
    solver = Clamped(Elimination(triangle()), {1: 0})
    maxima = low_rank_maxima(solver, 5000, seed(), noisy=(0, 2, 3))
    conditioned = low_rank_maxima(Elimination(triangle().condition({1: 0})), 5000, seed())
    found, expected = upper_bound(maxima, 0.2), upper_bound(conditioned, 0.2)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
