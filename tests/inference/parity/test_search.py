import math

import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import InputError
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.parity import search as parity_search
from thesis_cli.inference.parity.bands import bands, levels_near
from thesis_cli.inference.parity.constraints import HashLimits
from thesis_cli.inference.parity.frontier import Constraints, Frontier
from thesis_cli.inference.parity.search import extended, searched_maxima
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.wish import interval


def small():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    graph = [Factor((i, j), rng.normal(size=(3 if i == 0 else 2, 3 if j == 0 else 2))) for i, j in edges]
    return FactorGraph([3, 2, 2, 2], graph)


def test_each_configuration_has_one_chain_and_its_ends_are_the_parities():
    coding = Frontier(small())
    matrix = np.random.default_rng(1).random((4, coding.bits)) < 0.5
    matrix[:, 0] |= ~matrix.any(axis=1)
    model = extended(coding, matrix)
    states = all_states(model.graph)
    phi = model.graph.log_potential(states)
    possible = states[np.isfinite(phi)]
    assert len(possible) == len(np.unique(possible[:, :4], axis=0)) == 24
    np.testing.assert_allclose(phi[np.isfinite(phi)], coding.graph.log_potential(possible))
    bits = [possible[:, [v]] >> np.arange(w) & 1 for v, w in zip(coding.order, coding.widths, strict=True)]
    parities = np.concatenate(bits, axis=1) @ matrix.T.astype(int) % 2
    np.testing.assert_array_equal(possible[:, model.ends], parities)


def test_what_is_proven_is_the_maximum_of_a_pass(monkeypatch):
    """One process for the two levels and the maximum alone."""
    problems, search = [], parity_search._search

    def counted(model, rights, *limits):
        problems.append(len(rights))
        return search(model, rights, *limits)

    monkeypatch.setattr(parity_search, "TRIED", 1)
    monkeypatch.setattr(parity_search, "_search", counted)
    graph, rng = small(), np.random.default_rng(2)
    found = searched_maxima(graph, 6, rng, HashLimits())
    assert found.calls == sum(problems)
    assert found.exact.all()
    assert not found.independent
    assert found.levels.tolist() in ([0], [0, 5])
    low, high = interval(found, 0.95)
    assert low < log_partition_function(graph) < high
    coding = Frontier(graph)
    matrix = bands(coding.bits, 3, 4, rng)
    rights = rng.random((5, 3)) < 0.5
    values, bounds = parity_search._search(extended(coding, matrix), rights, 10.0, HashLimits())
    expected = [coding.maximum(Constraints(matrix, right)) for right in rights]
    np.testing.assert_allclose(values, expected)
    np.testing.assert_array_equal(values, bounds)


def test_levels_near_the_best_are_kept():
    assert levels_near(4, 20).tolist() == [0, 1, 2, 3, 4]
    pilot = np.array([9.0, 3.0, -math.inf, 8.0])
    assert levels_near(4, 20, 10.0, pilot).tolist() == [0, 1, 4]
    assert levels_near(4, 20, 90.0, pilot).tolist() == [0]


def test_no_hashes_are_refused():
    with pytest.raises(InputError, match="number of hashes is 0"):
        searched_maxima(small(), 0, np.random.default_rng(0), HashLimits())
