import math

import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.parity import ends as parity_ends
from thesis_cli.inference.parity.constraints import HashLimits
from thesis_cli.inference.parity.ends import Ends, dense_maxima, listed_maxima, solutions
from thesis_cli.inference.parity.frontier import Constraints, Frontier
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.wish import interval


def mixed():
    """States 3, 2, 4, 1, 2, a factor of three variables, and an impossible entry."""
    rng = np.random.default_rng(0)
    sizes, scopes = np.array([3, 2, 4, 1, 2]), [(0, 1), (2, 0, 4), (1, 4), (3, 2)]
    factors = [Factor(s, rng.normal(size=sizes[list(s)])) for s in scopes]
    factors[0].table[0, 1] = -np.inf
    return FactorGraph(sizes, [*factors, Factor((), np.array(0.3))])


def maxima_under(frontier, constraints):
    """At every level, by listing all configurations."""
    states = all_states(frontier.graph)
    codes = [states[:, [v]] >> np.arange(w) & 1 for v, w in zip(frontier.order, frontier.widths, strict=True)]
    met = np.concatenate(codes, axis=1) @ constraints.matrix.T.astype(int) % 2 == constraints.right
    phi = frontier.graph.log_potential(states)
    levels = range(len(constraints.right) + 1)
    return np.array([phi[met[:, :level].all(axis=1)].max(initial=-np.inf) for level in levels])


def drawn(bits, seed, count=None):
    rng = np.random.default_rng(seed)
    return Constraints(rng.random((count or bits, bits)) < 0.5, rng.random(count or bits) < 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_listed_configurations_are_those_that_satisfy_the_constraints(seed):
    frontier = Frontier(mixed())
    every = drawn(frontier.bits, seed)
    expected = maxima_under(frontier, every)
    for level in (0, 2, 5):
        np.testing.assert_allclose(listed_maxima(frontier, every, level), expected[level:], rtol=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_solutions_are_all_solutions(seed):
    """Seven constraints on nine bits, of which one repeats another, with or without its right side."""
    constraints = drawn(9, seed, 7)
    constraints.matrix[6] = constraints.matrix[1]
    found = solutions(constraints)
    states = np.arange(512)[:, None] >> np.arange(9) & 1
    met = (states @ constraints.matrix.T.astype(int) % 2 == constraints.right).all(axis=1)
    if found is None:
        assert not met.any()
        return
    first, basis = found
    codes = {first}
    for vector in basis.tolist():
        codes |= {code ^ vector for code in codes}
    assert sorted(codes) == np.flatnonzero(met).tolist()


@pytest.mark.parametrize("bits", [40, 62])
def test_constraints_of_many_bits(bits):
    """The configurations that 6 constraints too few leave, listed from their basis."""
    rng = np.random.default_rng(bits)
    graph = FactorGraph([2] * bits, [Factor((i, i + 1), rng.normal(size=(2, 2))) for i in range(bits - 1)])
    frontier, every, level = Frontier(graph), drawn(bits, bits), bits - 6
    first, basis = solutions(Constraints(every.matrix[:level], every.right[:level]))
    codes = np.array([first])
    for vector in basis:
        codes = np.concatenate([codes, codes ^ vector])
    found = codes[:, None] >> np.arange(bits) & 1
    states = np.empty_like(found)
    states[:, frontier.order] = found
    met = found @ every.matrix.T.astype(int) % 2 == every.right
    assert met[:, :level].all()
    phi = graph.log_potential(states)
    expected = [phi[met[:, :i].all(axis=1)].max(initial=-np.inf) for i in range(level, bits + 1)]
    np.testing.assert_allclose(listed_maxima(frontier, every, level), expected, rtol=1e-12)


def test_between_the_ends_maxima_are_bounded(monkeypatch):
    monkeypatch.setattr(parity_ends, "LARGEST", 4)
    monkeypatch.setattr(parity_ends, "DEEPEST", 2)
    graph = mixed()
    found = dense_maxima(graph, 5, np.random.default_rng(3), HashLimits())
    ends = Ends(graph, 12.0, 2**30)
    assert 0 <= ends.few < ends.many - 1 < 5
    rngs = np.random.default_rng(3).spawn(5)
    for row, own in enumerate(rngs):
        every = Constraints(own.random((6, 6)) < 0.5, own.random(6) < 0.5)
        expected = maxima_under(ends.frontier, every)
        assert (found.values[row] <= expected + 1e-12).all()
        assert (found.bounds[row] >= expected - 1e-12).all()
        exact = [*range(ends.few + 1), *range(ends.many, 7)]
        np.testing.assert_allclose(found.values[row, exact], expected[exact])
    assert not found.exact.all()


def test_the_interval_has_two_ends():
    rng = np.random.default_rng(4)
    graph = SpinGlass(rng.normal(size=(3, 4)), rng.normal(size=(3, 3)), rng.normal(size=(2, 4))).graph()
    found = dense_maxima(graph, 15, rng, HashLimits(jobs=2))
    assert found.exact.all()
    assert found.independent
    low, high = interval(found, 0.95)
    assert low < log_partition_function(graph) < high < low + 6


def test_refusals():
    wide = FactorGraph([2] * 60, [Factor((i, i + 1), np.zeros((2, 2))) for i in range(59)])
    with pytest.raises(ModelTooLarge, match=r"under 0 to 60 constraints, those under .. to .. are out of reach"):
        dense_maxima(wide, 1, np.random.default_rng(0), HashLimits(seconds=7.0))
    with pytest.raises(ModelTooLarge):
        dense_maxima(FactorGraph([2] * 63, []), 1, np.random.default_rng(0), HashLimits(seconds=math.inf))
    with pytest.raises(InputError, match="number of hashes is 0"):
        dense_maxima(mixed(), 0, np.random.default_rng(0), HashLimits())
    never = [Factor((0, 1), np.where(np.eye(2), 0, -np.inf)), Factor((0, 1), np.where(np.eye(2), -np.inf, 0))]
    with pytest.raises(NoConfiguration):
        dense_maxima(FactorGraph([2, 2], never), 1, np.random.default_rng(0), HashLimits())
