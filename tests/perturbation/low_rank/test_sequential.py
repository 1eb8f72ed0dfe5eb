import math

import numpy as np
import pytest

from tests.conftest import all_states
from tests.inference.sampling.test_draws import check_drawn_from, constrained, index_of
from tests.perturbation.models import product, seed, triangle
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank import sequential
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import upper_bound
from thesis_cli.perturbation.low_rank.sequential import SequentialSampler
from thesis_cli.studies.models.examples import ising


@pytest.mark.parametrize("alpha", [0.0, -0.2, 0.3])
def test_accepted_draws_follow_the_gibbs_distribution(alpha):
    graph = triangle()
    phi = graph.log_potential(all_states(graph))
    sampler = SequentialSampler(Elimination(graph), alpha, 3000, seed())
    draws = sampler.draw(10_000)
    assert draws.clipped == 0
    check_drawn_from(index_of(graph, draws.states), phi)
    accept = math.exp(np.logaddexp.reduce(phi) - sampler.log_bound)
    assert abs(draws.acceptance - accept) < 5 * math.sqrt(accept * (1 - accept) / draws.attempts)
    assert 0.3 < accept < 0.9


def test_draws_are_exact_even_with_poor_estimates(monkeypatch):
    """Errors of the estimates, here of 0.4 nats, cancel from one step to the next."""
    graph = triangle()
    states, phi = all_states(graph), graph.log_potential(all_states(graph))
    rng = np.random.default_rng(0)

    def poor(self, prefix):
        agree = (states[:, : len(prefix)] == prefix).all(axis=1)
        left = 4 - len(prefix)
        return np.logaddexp.reduce(phi[agree]) + (0.4 * left + rng.uniform(-0.2, 0.2) if left else 0.0)

    monkeypatch.setattr(SequentialSampler, "_estimate", poor)
    sampler = SequentialSampler(Elimination(graph), 0.0, 1, seed())
    draws = sampler.draw(8000)
    assert draws.clipped == 0
    check_drawn_from(index_of(graph, draws.states), phi)
    accept = math.exp(np.logaddexp.reduce(phi) - sampler.log_bound)
    assert abs(draws.acceptance - accept) < 5 * math.sqrt(accept * (1 - accept) / draws.attempts)


def test_the_bound_is_that_of_the_model():
    found = SequentialSampler(Elimination(triangle()), 0.3, 5000, seed())
    expected = upper_bound(low_rank_maxima(Elimination(triangle()), 5000, seed(1)), 0.3)
    assert abs(found.log_bound - expected.value) < 5 * math.sqrt(2) * expected.standard_error


def test_shared_noise_spares_clipping():
    """500 samples give the bound of nine spins to 0.16 nats, yet no step of 100 draws is clipped."""
    solver = Elimination(ising(3, 3, 0.5, np.random.default_rng(0)))
    sampler = SequentialSampler(solver, 0.0, 500, seed())
    assert upper_bound(low_rank_maxima(solver, 500, seed()), 0.0).standard_error > 0.1
    draws = sampler.draw(100)
    assert draws.clipped == 0
    p = solver.marginals()[1][1::2]
    assert (np.abs(draws.states.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / 100)).all()


def test_clipped_steps_are_counted_and_scaled(monkeypatch):
    """The bound with x_0 = 0 is 0.3 nats too low, so these draws are less likely by that factor."""
    graph = product([2, 2, 2], spread=0.5)
    states, phi = all_states(graph), graph.log_potential(all_states(graph))

    def short(self, prefix):
        agree = (states[:, : len(prefix)] == prefix).all(axis=1)
        return np.logaddexp.reduce(phi[agree]) + {(): 0.2, (0,): -0.3}.get(prefix, 0.0)

    monkeypatch.setattr(SequentialSampler, "_estimate", short)
    draws = SequentialSampler(Elimination(graph), 0.0, 1, seed()).draw(10_000)
    assert draws.clipped == (draws.states[:, 0] == 0).sum()
    check_drawn_from(index_of(graph, draws.states), phi - 0.3 * (states[:, 0] == 0))


@pytest.mark.parametrize(("excess", "counted"), [(1e-8, True), (1e-10, False), (-0.1, False)])
def test_a_step_is_clipped_if_it_exceeds_1_by_more_than_rounding(monkeypatch, excess, counted):
    graph = product([2, 2], spread=0.5)
    states, phi = all_states(graph), graph.log_potential(all_states(graph))

    def short(self, prefix):
        agree = (states[:, : len(prefix)] == prefix).all(axis=1)
        return np.logaddexp.reduce(phi[agree]) - (0 if prefix else excess)

    monkeypatch.setattr(SequentialSampler, "_estimate", short)
    draws = SequentialSampler(Elimination(graph), 0.0, 1, seed()).draw(20)
    assert draws.clipped == (draws.attempts if counted else 0)


def test_hard_constraints_and_single_states():
    graph = constrained()
    draws = SequentialSampler(Elimination(graph), 0.0, 5000, seed(1)).draw(2000)
    check_drawn_from(index_of(graph, draws.states), graph.log_potential(all_states(graph)))


def test_evidence():
    graph = ising(2, 2, 1.5, np.random.default_rng(0)).condition({2: 1})
    draws = SequentialSampler(Elimination(graph), 0.0, 3000, seed()).draw(5000)
    assert draws.clipped == 0
    assert (draws.states[:, 2] == 0).all()
    check_drawn_from(index_of(graph, draws.states), graph.log_potential(all_states(graph)))


@pytest.mark.parametrize("cardinalities", [[1, 1], [1, 5]])
def test_up_to_one_free_variable_needs_no_map_call_and_no_rejection(cardinalities):
    graph = product(cardinalities)
    sampler = SequentialSampler(Elimination(graph), 0.0, 10, seed())
    draws = sampler.draw(2000)
    assert (draws.attempts, draws.clipped, sampler.map_calls) == (2000, 0, 0)
    check_drawn_from(index_of(graph, draws.states), graph.log_potential(all_states(graph)))


def test_estimates_are_made_once_and_draws_do_not_depend_on_the_calls():
    whole, split = (SequentialSampler(Elimination(triangle()), 0.1, 50, seed(7)) for _ in range(2))
    draws = whole.draw(300)
    parts = [split.draw(100), split.draw(200)]
    np.testing.assert_array_equal(draws.states, np.concatenate([p.states for p in parts]))
    assert draws.attempts == sum(p.attempts for p in parts)
    assert whole.map_calls == 50 * (1 + 2 + 4)  # prefixes that leave two variables or more
    whole.draw(100)
    assert whole.map_calls == 350
    done = []
    whole.draw(3, progress=done.append)
    assert done == [1, 1, 1]


def test_it_gives_up_on_a_loose_bound(monkeypatch):
    monkeypatch.setattr(sequential, "ATTEMPTS", 1)
    sampler = SequentialSampler(Elimination(triangle()), 0.0, 500, seed())
    with pytest.raises(WorkFailed, match=r"accepted \d+ of 50 attempts \(0\.\d+\); the bound is too loose"):
        sampler.draw(50)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match=r"above -0\.25"):
        SequentialSampler(Elimination(triangle()), -0.3, 10, seed())
    with pytest.raises(InputError, match="each estimate is 0"):
        SequentialSampler(Elimination(triangle()), 0.0, 0, seed())
    with pytest.raises(InputError, match="draws is 0"):
        SequentialSampler(Elimination(triangle()), 0.0, 10, seed()).draw(0)
    no = np.array([0.0, -np.inf])
    for cardinalities in ([2], [2, 2]):
        impossible = FactorGraph(cardinalities, [Factor((0,), no), Factor((0,), no[::-1])])
        with pytest.raises(NoConfiguration):
            SequentialSampler(Elimination(impossible), 0.0, 10, seed())
