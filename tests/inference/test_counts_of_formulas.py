"""Counts of well-known formulas, read from DIMACS text, against formulas and other algorithms."""

import itertools
import math

import numpy as np
import pytest

from tests.inference.external.test_model_counting import in_this_process, queens
from thesis_cli.inference.external.model_counting import ModelCounter
from thesis_cli.models import cnf
from thesis_cli.models.factor_graph import Factor


def model(variables, clauses):
    lines = [f"p cnf {variables} {len(clauses)}", *(" ".join(map(str, [*clause, 0])) for clause in clauses)]
    return cnf.parse("\n".join(lines))


def count(variables, clauses):
    with in_this_process():
        return ModelCounter(model(variables, clauses)).count()


def pigeons(pigeons, holes):
    """Each pigeon in a hole of its own: a literal for each pair (Cook and Reckhow 1979)."""
    at = np.arange(1, pigeons * holes + 1).reshape(pigeons, holes)
    clauses = at.tolist()
    clauses += [[-a, -b] for row in at.tolist() for a, b in itertools.combinations(row, 2)]
    return pigeons * holes, clauses + [[-a, -b] for hole in at.T.tolist() for a, b in itertools.combinations(hole, 2)]


def colourings(edges, nodes, colours):
    at = np.arange(1, nodes * colours + 1).reshape(nodes, colours)
    clauses = at.tolist() + [[-a, -b] for row in at.tolist() for a, b in itertools.combinations(row, 2)]
    clauses += [[-int(at[i, c]), -int(at[j, c])] for i, j in edges for c in range(colours)]
    return nodes * colours, clauses


def parities(rows):
    """The even assignments of each row of a 0-1 matrix: a clause for each odd one."""
    clauses = []
    for row in rows:
        scope = (np.flatnonzero(row) + 1).tolist()
        for signs in itertools.product([1, -1], repeat=len(scope)):
            if signs.count(-1) % 2:
                clauses.append([s * i for s, i in zip(signs, scope, strict=True)])
    return rows.shape[1], clauses


def rank(rows):
    """Of a matrix over the field of two elements."""
    left, found = [int("".join(map(str, row)), 2) for row in rows], 0
    while left:
        pivot = left.pop()
        found += pivot > 0
        left = [min(row, row ^ pivot) if pivot else row for row in left]
    return found


def random_clauses(variables, clauses, seed):
    rng = np.random.default_rng(seed)
    scopes = [rng.permutation(variables)[:3] + 1 for _ in range(clauses)]
    return variables, [(scope * rng.choice([-1, 1], 3)).tolist() for scope in scopes]


def test_pigeons_in_holes():
    assert count(*pigeons(4, 3)) == 0
    assert count(*pigeons(4, 5)) == math.perm(5, 4)


def test_colourings_of_a_cycle_follow_its_chromatic_polynomial():
    edges = [(i, (i + 1) % 9) for i in range(9)]
    assert count(*colourings(edges, 9, 4)) == 3**9 - 3


def test_codewords_of_a_parity_check_matrix():
    """Two to the power of the dimension; a long row is split in parts."""
    rng = np.random.default_rng(0)
    rows = (rng.random((8, 24)) < 0.2).astype(int)
    rows[0] = np.arange(24) < 9
    assert count(*parities(rows)) == 2 ** (24 - rank(rows))


def test_random_formulas_of_three_literals_are_brute_force():
    variables, clauses = random_clauses(16, 50, 1)
    states = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    holds = np.ones(2**16, bool)
    for clause in clauses:
        holds &= np.any([states[:, abs(x) - 1] == (x > 0) for x in clause], axis=0)
    assert count(variables, clauses) == holds.sum() > 0
    logs = np.random.default_rng(1).normal(0, 3, (16, 2))
    graph = model(variables, clauses)
    weighted = graph.with_factors([*graph.factors, *(Factor((i,), pair) for i, pair in enumerate(logs))])
    phi = logs[np.arange(16), states[holds]].sum(axis=1)
    with in_this_process():
        found = ModelCounter(weighted).log_partition_function()
    assert found == pytest.approx(np.logaddexp.reduce(phi), rel=1e-14)


@pytest.mark.long
def test_larger_counts():
    """Queens: OEIS A000170. Colourings of a grid: A068253. Random formulas: by PySDD 1.0."""
    edges = [(i, j) for i, j in itertools.combinations(range(25), 2) if j - i == 5 or (j - i == 1 and j % 5)]
    with in_this_process():
        assert ModelCounter(queens(8)).count() == 92
    assert count(*colourings(edges, 25, 3)) == 580_986
    assert count(*pigeons(6, 7)) == math.perm(7, 6)
    assert count(*random_clauses(30, 70, 0)) == 48_255
    assert count(*random_clauses(40, 110, 1)) == 60_603
