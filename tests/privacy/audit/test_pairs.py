"""The tables that a search finds are the worst, and exact probabilities are those of OpenDP."""

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
    by_record,
    choice_pairs,
    replayed,
    staged_pair,
    vector_pair,
)
from thesis_cli.privacy.mechanisms.mechanism import Budget, analytic_scale, choose


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
