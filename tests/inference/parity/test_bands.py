import math

import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.parity.bands import banded_maxima, bands, open_constraints
from thesis_cli.inference.parity.constraints import HashLimits
from thesis_cli.inference.parity.frontier import Constraints, Frontier
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.wish import interval


@pytest.mark.parametrize("seed", range(12))
def test_a_pass_finds_the_maximum_under_constraints(seed):
    """Against all configurations, with constraints of any length, some empty or contradictory."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 5)
    scopes = [tuple(rng.permutation(5)[: rng.integers(0, 4)].tolist()) for _ in range(5)]
    graph = FactorGraph(sizes, [Factor(s, rng.normal(size=sizes[list(s)])) for s in scopes])
    frontier = Frontier(graph)
    for count in (1, 3, 4):
        constraints = Constraints(rng.random((count, frontier.bits)) < 0.5, rng.random(count) < 0.5)
        states = all_states(graph)
        codes = [states[:, [v]] >> np.arange(w) & 1 for v, w in zip(frontier.order, frontier.widths, strict=True)]
        bits = np.concatenate(codes, axis=1)
        kept = (bits @ constraints.matrix.T.astype(int) % 2 == constraints.right).all(axis=1)
        expected = graph.log_potential(states)[kept].max(initial=-np.inf)
        assert frontier.maximum(constraints) == pytest.approx(expected, abs=1e-12)


def test_a_grid_in_any_order_is_as_narrow_as_it_is():
    order = np.random.default_rng(0).permutation(24)
    edges = [(4 * i + j, 4 * i + j + 1) for i in range(6) for j in range(3)] + [(i, i + 4) for i in range(20)]
    graph = FactorGraph([2] * 24, [Factor((int(order[i]), int(order[j])), np.zeros((2, 2))) for i, j in edges])
    assert Frontier(graph).log_entries <= 5


def test_constraints_have_full_rank_and_a_width():
    for level in (1, 5, 17, 30):
        matrix = bands(30, level, 4, np.random.default_rng(level))
        pivots = np.flatnonzero((matrix.sum(axis=0) == 1) & matrix.any(axis=0))
        assert len({matrix[:, p].argmax() for p in pivots}) == level
        first, last = matrix.argmax(axis=1), 29 - matrix[:, ::-1].argmax(axis=1)
        assert ((first <= 15) & (last >= 15)).sum() <= 7


def test_each_configuration_is_kept_with_its_probability():
    """A model with one possible configuration of three bits, and two constraints."""
    tables = np.full((2, 2, 2), -np.inf)
    tables[1, 0, 1] = 0
    frontier, rng = Frontier(FactorGraph([2] * 3, [Factor((0, 1, 2), tables)])), np.random.default_rng(0)
    found = [frontier.maximum(Constraints(bands(3, 2, 2, rng), rng.random(2) < 0.5)) == 0 for _ in range(1000)]
    assert np.mean(found) == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / 1000))


def small():
    rng = np.random.default_rng(0)
    return SpinGlass(rng.normal(size=(3, 4)), rng.normal(size=(3, 3)), rng.normal(size=(2, 4))).graph()


def test_bounds_hold_and_limits_widen_the_bands():
    graph = small()
    log_z = log_partition_function(graph)
    lows = []
    for seconds in (0.0003, 5.0):
        maxima = banded_maxima(graph, 8, np.random.default_rng(1), HashLimits(seconds=seconds))
        assert not maxima.independent
        low, high = interval(maxima, 0.95)
        assert maxima.values[0, 0] < low < log_z < high
        lows.append(low)
    assert lows[1] > lows[0]
    assert open_constraints(Frontier(graph), 8, HashLimits(seconds=0.0003)) < open_constraints(
        Frontier(graph), 8, HashLimits()
    )


def test_threads_change_nothing():
    one, two = (banded_maxima(small(), 3, np.random.default_rng(2), HashLimits(jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)


def test_refusals():
    complete = FactorGraph([2] * 40, [Factor((i, j), np.zeros((2, 2))) for i in range(40) for j in range(i)])
    with pytest.raises(ModelTooLarge, match="a pass over the model needs tables of 2\\^40 entries"):
        banded_maxima(complete, 5, np.random.default_rng(0), HashLimits())
    with pytest.raises(InputError, match="number of hashes is 0"):
        banded_maxima(small(), 0, np.random.default_rng(0), HashLimits())
    never = [Factor((0, 1), np.where(np.eye(2), 0, -np.inf)), Factor((0, 1), np.where(np.eye(2), -np.inf, 0))]
    with pytest.raises(NoConfiguration):
        banded_maxima(FactorGraph([2, 2], never), 1, np.random.default_rng(0), HashLimits())
