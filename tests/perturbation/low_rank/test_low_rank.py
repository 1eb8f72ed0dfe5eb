import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import Worse, product, seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank import low_rank
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.noise import gumbel


@settings(max_examples=examples(25))
@given(factor_graphs(), st.sampled_from(["sum", "average"]), st.integers(0, 2**32))
def test_maxima_are_potential_plus_scaled_noise_of_their_states(graph, scale, entropy):
    if graph.log_potential(all_states(graph)).max() == -np.inf:
        with pytest.raises(NoConfiguration, match="no configuration is possible"):
            low_rank_maxima(Elimination(graph), 3, seed(entropy), scale=scale)
        return
    maxima = low_rank_maxima(Elimination(graph), 20, seed(entropy), scale=scale)
    terms = sum(k > 1 for k in graph.cardinalities)
    assert (maxima.terms, maxima.map_calls, maxima.undetermined) == (terms, 20, ())
    factor = 1.0 if scale == "sum" else 1 / max(1, terms)
    expected = graph.log_potential(maxima.states) + factor * maxima.noise_at_max
    np.testing.assert_allclose(maxima.values, expected, rtol=1e-12, atol=1e-11)


def test_noise_goes_to_the_chosen_variables_alone(monkeypatch):
    graph = FactorGraph([2, 1, 3, 2], [])
    seen = []
    solver = Elimination(graph)
    whole = solver.maximise
    monkeypatch.setattr(solver, "maximise", lambda noise: seen.append(noise) or whole(noise))
    low_rank_maxima(solver, 5, seed())
    low_rank_maxima(solver, 5, seed(), noisy=[2, 1, 2], scale="average")
    both = np.concatenate(seen).reshape(2, 5, 8)
    expected = gumbel(np.random.default_rng(seed().spawn(1)[0]), 5, 7)
    np.testing.assert_array_equal(both[0], np.insert(expected, 2, 0.0, axis=1))
    np.testing.assert_array_equal(both[1][:, 3:6], gumbel(np.random.default_rng(seed().spawn(1)[0]), 5, 3))
    assert not both[1][:, [0, 1, 2, 6, 7]].any()


def test_an_interruption_ends_calls_that_run(monkeypatch):
    """A slow solver gets one problem at a time, and threads stop before the next."""
    solver = Elimination(triangle())
    calls = []
    whole = solver.maximise
    monkeypatch.setattr(low_rank, "QUICK", 0.0)
    monkeypatch.setattr(solver, "maximise", lambda noise: calls.append(len(noise)) or whole(noise))

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        low_rank_maxima(solver, 128 * 50, seed(), jobs=2, progress=interrupt)
    assert set(calls) == {1}
    assert 128 <= len(calls) < 128 * 25


def test_quick_solvers_get_ever_more_problems_at_once(monkeypatch):
    solver = Elimination(triangle())
    calls = []
    whole = solver.maximise
    monkeypatch.setattr(low_rank, "QUICK", np.inf)
    monkeypatch.setattr(solver, "maximise", lambda noise: calls.append(len(noise)) or whole(noise))
    low_rank_maxima(solver, 300, seed())
    assert calls == [1, 4, 16, 64, 43, 128, 44]


@pytest.mark.parametrize("entries", [40, 2**20])
def test_maxima_depend_neither_on_jobs_nor_on_later_ones(entries, monkeypatch):
    monkeypatch.setattr(low_rank, "BLOCK_ENTRIES", entries)
    solver = Elimination(triangle())
    done = []
    one = low_rank_maxima(solver, 300, seed(), progress=done.append)
    assert sum(done) == 300
    assert max(done) == (5 if entries == 40 else 128)
    many = low_rank_maxima(solver, 400, seed(), jobs=3)
    for field in ("values", "states", "noise_at_max"):
        np.testing.assert_array_equal(getattr(one, field), getattr(many, field)[:300])


def test_states_are_kept_in_the_smallest_type():
    assert low_rank_maxima(Elimination(product([256, 2])), 2, seed()).states.dtype == np.uint8
    wide = low_rank_maxima(Elimination(product([257, 2], spread=0.0)), 2000, seed())
    assert wide.states.dtype == np.uint16
    assert wide.states[:, 0].max() > 250


def test_a_solver_that_finds_nothing_is_named():
    graph = FactorGraph([2, 2], [Factor((0, 1), np.array([[0.0, -np.inf], [0.0, 0.0]]))])
    with pytest.raises(WorkFailed, match=r"worse found no possible configuration in \d+ of 50 MAP problems"):
        low_rank_maxima(Worse(graph), 50, seed())
    only = FactorGraph([2, 2], [Factor((0,), np.array([-np.inf, 0.0]))])
    with pytest.raises(WorkFailed, match="worse found no possible configuration in 5 of 5 MAP problems"):
        low_rank_maxima(Worse(only), 5, seed())
    with pytest.raises(InputError, match="perturbations is 0"):
        low_rank_maxima(Worse(graph), 0, seed())


def test_noise_is_gumbel_of_mean_0_and_finite():
    noise = gumbel(np.random.default_rng(0), 1000, 200)
    m = noise.size
    assert abs(noise.mean()) < 5 * math.pi / math.sqrt(6 * m)
    assert abs(noise.var() - math.pi**2 / 6) < 5 * math.sqrt((5.4 - 1) / m) * math.pi**2 / 6  # kurtosis 27/5
    below = np.exp(-np.exp(-(0.7 + np.euler_gamma)))
    assert abs((noise < 0.7).mean() - below) < 5 * math.sqrt(below * (1 - below) / m)

    class Zeros:
        def standard_exponential(self, shape):
            return np.zeros(shape)

    assert np.isfinite(gumbel(Zeros(), 2, 2)).all()
