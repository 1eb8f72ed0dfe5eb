"""The tables that a search finds are the worst, and exact probabilities are those of OpenDP."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from thesis_cli.privacy.audit.pairs import (
    ROWS,
    SCHEMA,
    STAGED,
    Choices,
    Pair,
    by_record,
    choice_pairs,
    replayed,
    staged_pair,
    vector_pair,
)
from thesis_cli.privacy.audit.scores import StagedVectors
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, analytic_scale, choose
from thesis_cli.privacy.release.exponential import enumerate_domain
from thesis_cli.privacy.release.release import ReleasePlan
from thesis_cli.privacy.tables.schema import Integer, Schema


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("method", ["features", "subspace"])
def test_the_tables_are_neighbours_and_reach_the_sensitivity(method, noise):
    pair = vector_pair(method, noise, Budget(1.0, 1e-6))
    assert 0.999 < pair.reach <= 1
    one, other = (SCHEMA.encode(table) for table in pair.tables)
    same = (one.reals == other.reals).all(1) & (one.codes == other.codes).all(1)
    assert (pair.rows, same.tolist()) == (ROWS, [False] + [True] * (ROWS - 1))


def test_stages_tell_a_pair_apart_nearly_as_well_as_the_budget_allows():
    """In another release than that of the search. OpenDP's conversion leaves 0.957 of mu."""
    budget = Budget(20.0, 1e-6)
    pair = staged_pair("copula", budget)
    assert 0.999 < pair.reach <= 1
    stages = by_record(pair.tables[0], pair.plan).output.stages
    vectors = [replayed(table, pair.plan, stages)[1] for table in pair.tables]
    apart = [np.linalg.norm(one - other) / stage.scale for one, other, stage in zip(*vectors, stages, strict=True)]
    assert 0.9 < math.hypot(*apart) * analytic_scale(1.0, budget) < 0.957
    one, other = (STAGED.encode(table).reals for table in pair.tables)
    assert (one != other).any(1).tolist() == [True] + [False] * (pair.rows - 1)


def test_triples_and_full_tables_tell_a_pair_apart_as_well_as_they_claim():
    """The pair, of the corners of three columns, differs most in the two last stages together. With
    the noisy vectors held, a run of either table has the public part of the other.
    """
    schema = Schema((Integer("x", 0, 23), Integer("y", 0, 1), Integer("z", 0, 1)))
    domain = enumerate_domain(schema)
    usual = domain[np.tile(np.flatnonzero((domain.reals[:, 0] > 0.5) == domain.reals[:, 1]), 12)]
    corners = domain[np.flatnonzero(np.isin(domain.reals[:, 0], [0, 1]))]
    tables = [schema.decode(Rows.concatenate([corners[i : i + 1], usual])) for i in range(len(corners))]
    budget = Budget(20.0, 1e-6)
    plan = ReleasePlan(schema, budget, "copula", entropy=0)
    stages = by_record(tables[0], plan).output.stages
    assert [stage.name for stage in stages] == ["columns", "pairs", "triples", "cells of pairs"]
    vectors = [replayed(table, plan, stages)[1] for table in tables]

    def reach(pair):
        both = zip(*(vectors[i] for i in pair), stages, strict=True)
        return [np.linalg.norm(one - other) / stage.sensitivity for one, other, stage in both]

    i, j = max(itertools.combinations(range(len(tables)), 2), key=lambda pair: sum(reach(pair)[2:]))
    assert min(reach((i, j))[2:]) > 0.9
    assert max(reach((i, j))) <= 1
    pair = Pair(plan, (tables[i], tables[j]), max(reach((i, j))))
    subject = StagedVectors("copula", budget, pair, 1 / analytic_scale(1.0, budget))
    for side, table in enumerate(pair.tables):
        record = by_record(table, plan)
        subject.add(record, side)
        assert subject.difference(record, side) == ""


def test_some_small_domain_reaches_epsilon_and_none_exceeds_it():
    largest = []
    for pair, choices in choice_pairs("exponential", Budget(1.5)):
        probabilities = choices.probabilities()
        assert probabilities.sum(1) == pytest.approx(1)
        assert pair.reach == pytest.approx(1, abs=1e-9)
        largest.append(np.abs(np.log(probabilities[0] / probabilities[1])).max())
    assert max(largest) == pytest.approx(1.5, rel=1e-3)


def test_probabilities_of_permute_and_flip():
    """By hand for two candidates; by OpenDP for three, as improbable as 5 standard errors at most."""
    two = Choices(np.array([[0.0, -1.0], [-1.0, 0.0]])).probabilities()
    assert two[0] == pytest.approx([1 - np.exp(-1) / 2, np.exp(-1) / 2])
    assert two[1] == pytest.approx(two[0][::-1])
    scores, runs = np.array([0.0, -1.5, -3.0]), 250
    expected = Choices(scores[np.newaxis]).probabilities()[0]
    drawn = np.bincount([choose(scores, 0.5, 1.0).index for _ in range(runs)], minlength=3)
    p_values = [binomtest(count, runs, p).pvalue for count, p in zip(drawn, expected, strict=True)]
    assert min(p_values) > 2 * ndtr(-5)


def test_a_factor_on_the_scale_divides_the_scores():
    scaled = np.array([[0.0, -1.0, -2.0]])
    assert Choices(scaled).probabilities(0.5) == pytest.approx(Choices(2 * scaled).probabilities())
