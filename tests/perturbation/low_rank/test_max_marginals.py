import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import logsumexp

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import Worse, seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import lower_bound
from thesis_cli.perturbation.low_rank.max_marginals import max_marginal_bound, max_marginals, problems


@settings(max_examples=examples(25))
@given(factor_graphs())
def test_the_maxima_are_those_of_enumeration(graph):
    states = all_states(graph)
    phi = graph.log_potential(states)
    solver = Elimination(graph)
    if phi.max() == -np.inf:
        with pytest.raises(NoConfiguration):
            max_marginals(solver)
        return
    variables = [i for i, k in enumerate(graph.cardinalities) if k > 1] or [0]
    expected = [[phi[states[:, i] == k].max() for k in range(graph.cardinalities[i])] for i in variables]
    for found, true in zip(max_marginals(solver), expected, strict=True):
        np.testing.assert_allclose(found, true, rtol=1e-12, atol=1e-10)
    bound = max_marginal_bound(solver)
    assert bound.value == pytest.approx(max(map(logsumexp, expected)), rel=1e-12, abs=1e-10)
    assert bound.value <= logsumexp(phi) + 1e-10
    assert bound.map_calls == problems(graph) == sum(map(len, expected))


def test_the_bound_is_tighter_than_that_by_noise():
    solver = Elimination(triangle())
    noisy = lower_bound(low_rank_maxima(solver, 5000, seed(), scale="average"), 0.0)
    assert max_marginal_bound(solver).value > noisy.value + 5 * noisy.standard_error


def test_the_result_does_not_depend_on_jobs_and_problems_are_counted():
    solver = Elimination(FactorGraph([2] * 40, [Factor((i, i + 1), np.eye(2)) for i in range(39)]))
    done = []
    one = max_marginal_bound(solver, progress=done.append)
    assert one == max_marginal_bound(solver, jobs=3)
    assert sum(done) == one.map_calls == 80


def test_an_approximate_solver_gives_a_lower_bound_too():
    graph = triangle()
    found = max_marginal_bound(Worse(graph))
    assert found.value <= max_marginal_bound(Elimination(graph)).value
    assert found.kind == "lower bound"
    assert "standard error" not in found.text()
