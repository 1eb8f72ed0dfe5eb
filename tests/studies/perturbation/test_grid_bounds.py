"""Bounds on small grids against enumeration, and summaries of errors against their definitions."""

import math

import numpy as np
import pytest

from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
from thesis_cli.models.spin_glass import SpinGlass, random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.error_summary import paired, summary
from thesis_cli.studies.perturbation.grid_bounds import best_bethe, bethe_from, blocks_of, shared_clamped_bound


def glass_of(rows, columns, coupling, kind="mixed", seed=0):
    return random_spin_glass(rows, columns, coupling, 1.0, kind, np.random.default_rng(seed))


def test_belief_propagation_is_exact_on_a_chain_from_any_start():
    graph = glass_of(1, 6, 2.0).graph()
    exact = GridTransfer(graph).log_partition_function()
    for states in (np.zeros(6, np.int64), np.array([0, 1, 0, 1, 1, 0])):
        found = bethe_from(graph, states)
        assert found.converged
        assert found.value == pytest.approx(exact, abs=1e-8)
    assert found.marginals == pytest.approx(GridTransfer(graph).marginals()[1], abs=1e-8)


def test_the_best_of_two_magnetisations_is_found():
    """Without a field both signs have the same value; a small field favours one, and small messages may miss it."""
    ones = np.ones
    glass = SpinGlass(0.02 * ones((4, 4)), 1.5 * ones((4, 3)), 1.5 * ones((3, 4)))
    graph = glass.graph()
    exact = GridTransfer(graph).log_partition_function()
    down, up = (bethe_from(graph, np.full(16, s)) for s in (0, 1))
    assert down.value < up.value - 0.3
    assert up.value < exact
    plain = bethe_log_partition_function(graph)
    assert best_bethe(graph, [np.zeros(16, np.int64)], down).value == down.value
    assert best_bethe(graph, [np.zeros(16, np.int64), np.ones(16, np.int64)], plain).value == pytest.approx(up.value)


def test_with_all_variables_clamped_the_bound_is_ln_z():
    graph = glass_of(2, 3, 2.0).graph()
    grid = GridTransfer(graph)
    noise = gumbel(np.random.default_rng(1), 5, 12)
    exact = grid.log_partition_function()
    bound, error = shared_clamped_bound(grid, noise, range(6))
    assert bound == pytest.approx(exact, rel=1e-12)
    assert error == pytest.approx(0, abs=1e-9)
    noise = gumbel(np.random.default_rng(2), 400, 12)
    bound, error = shared_clamped_bound(grid, noise, [])
    mean, spread = power_bounds(grid.maximise(noise)[0], 6, np.array([0.0]))
    assert bound == pytest.approx(mean[0], rel=1e-12)
    assert error == pytest.approx(spread[0], rel=1e-9)


def test_clamping_one_variable_sums_two_models():
    glass = glass_of(2, 3, 2.0)
    grid = GridTransfer(glass.graph())
    noise = gumbel(np.random.default_rng(3), 50, 12)
    expected = []
    for state in (0, 1):
        held = GridTransfer(glass.graph().condition({4: state}))
        free = noise.copy()
        free[:, 8:10] = 0
        offsets = np.concatenate([[0], np.cumsum(held.graph.cardinalities)])
        assert offsets[-1] == 11
        values = held.maximise(np.delete(free, 8, axis=1))[0]
        expected.append(values.mean())
    bound, error = shared_clamped_bound(grid, noise, [4])
    assert bound == pytest.approx(np.logaddexp(*expected), rel=1e-12)
    assert 0 < error < 1


def test_blocks_cover_a_grid_once():
    blocks = blocks_of(3, 5, (2, 2))
    assert sorted(i for block in blocks for i in block) == list(range(15))
    assert blocks[0] == [0, 1, 5, 6]
    assert blocks[-1] == [14]


def test_summaries_and_differences():
    values = np.array([-1.0, 2.0, 4.0, -0.5])
    errors = np.array([2.0, 1.0, 8.0, 0.1])
    found = summary(values, errors)
    assert found["mean"] == pytest.approx(1.125)
    assert found["deviation"] == pytest.approx(values.std(ddof=1))
    assert found["mean_error"] == pytest.approx(values.std(ddof=1) / 2)
    assert (found["lowest"], found["highest"], found["positive"]) == (-1, 4, 0.5)
    assert (found["below"], found["below_error"]) == (-0.5, 0.1)
    assert (found["above"], found["above_error"]) == (2, 1)
    some = np.array([np.nan, 1.0, 1.0, 1.0])
    (row,) = paired({"a": values, "b": some}, {"a": errors, "b": errors}, [("a", "b"), ("a", "c")])
    assert (row["method"], row["less"], row["models"]) == ("a", "b", 3)
    assert row["mean"] == pytest.approx((values[1:] - 1).mean())
    assert row["above_error"] == pytest.approx(math.sqrt(2))


def test_the_error_of_a_standard_deviation():
    """Its square is (m4 - s^4) / (4 n s^2), 1 / (2 n) of the variance for normal numbers."""
    draws = np.random.default_rng(0).standard_normal((1000, 100))
    found = [summary(row, np.zeros(100)) for row in draws]
    spread = np.std([f["deviation"] for f in found])
    assert np.mean([f["deviation_error"] for f in found]) == pytest.approx(spread, rel=0.12)
