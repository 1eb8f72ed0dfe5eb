"""Counts by definition, printed formulas and the reduction of Theorem 2.1 on examples done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thesis_cli.structured.catalogue import space
from thesis_cli.studies.structured import brute_force, hamiltonian
from thesis_cli.studies.structured import uniformity as subtree_formulas
from thesis_cli.studies.structured.uniformity import fit, fits


@pytest.mark.parametrize(
    ("name", "elements", "expected"),
    [("hypercube", 5, 32), ("permutations", 4, 24), ("cycles", 5, 12), ("cycle-sets", 5, 37), ("partitions", 5, 52)],
)
def test_definitions_count_structures(name, elements, expected):
    assert brute_force.count(name, elements) == expected


def test_subtrees_of_a_path_and_of_a_star():
    assert brute_force.count("subtrees", 5, [-1, 0, 1, 2, 3]) == 5
    assert brute_force.count("subtrees", 5, [-1, 0, 0, 0, 0]) == 16
    assert subtree_formulas.printed_counts([-1, 0, 1]) == [4, 3, 2]
    assert subtree_formulas.printed_counts([-1, 0, 0]) == [5, 2, 2]


def test_ryser_is_the_permanent():
    matrix = np.random.default_rng(1).random((6, 6))
    log_z = space("permutations", 6, "positions").log_partition(np.log(matrix).reshape(1, -1))
    assert brute_force.ryser(matrix) == pytest.approx(math.exp(log_z[0]), rel=1e-9)


def test_prefixes_of_a_star_with_two_leaves():
    """{r} is in 4 subtrees, a leaf with r in 2, all in 1; the printed formula says 4, 1 and 2."""
    parents = [-1, 0, 0]
    found = subtree_formulas.prefixes(parents, np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]]))
    assert found.leaves.tolist() == [1, 1, 2]
    subtrees = brute_force.subtrees(parents)
    found = subtree_formulas.prefixes(parents, subtrees)
    order = np.lexsort(subtrees.T)
    assert found.containing[order].tolist() == [4, 2, 2, 1]
    assert found.grown[order].tolist() == [4, 1, 1, 1]
    assert found.printed[order].tolist() == [4, 1, 1, 2]


def test_printed_coins_of_a_star():
    coins = subtree_formulas.printed_coins([-1, 0, 0])
    assert coins.tolist() == [1.0, 0.4, 0.4]
    subtrees = brute_force.subtrees([-1, 0, 0])
    chances = subtree_formulas.probabilities([-1, 0, 0], coins, subtrees)
    assert sorted(chances) == pytest.approx([0.16, 0.24, 0.24, 0.36])


def test_lattices_decide_as_lists_of_cycles_do(monkeypatch):
    edges = hamiltonian.random_graphs(12, 6, np.random.default_rng(2))
    listed = hamiltonian.decisions(edges, 6)
    monkeypatch.setattr(hamiltonian, "LISTED", 5)
    summed = hamiltonian.decisions(edges, 6)
    assert listed.hamiltonian.tolist() == summed.hamiltonian.tolist()
    assert 0 < listed.hamiltonian.sum() < 12
    np.testing.assert_allclose(listed.once, summed.once, rtol=1e-12)
    np.testing.assert_allclose(listed.twice, summed.twice, rtol=1e-12)


def test_chi_square_of_frequencies():
    everyone = np.array([[0, 1], [1, 0], [1, -1]])
    found = fit(everyone, everyone[[0, 0, 0, 1, 1, 2]])
    assert found.statistic == pytest.approx((1 + 0 + 1) / 2 / 2)
    assert found.standard_error == pytest.approx(math.sqrt(4 * 5 / 6) / 2)


def test_rules_that_are_not_uniform_are_told_from_samplers():
    found = dict(fits(2000, np.random.default_rng(3)))
    for name in ("printed coins", "even choices"):
        assert found.pop(name).statistic > 5
    for name, each in found.items():
        assert abs(each.statistic - 1) < 5 * each.standard_error, name
