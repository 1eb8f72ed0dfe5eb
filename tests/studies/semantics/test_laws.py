"""Exact laws of expressions, against independent values."""

import numpy as np
import pytest
from scipy import stats

from thesis_cli.semantics.parser import parse
from thesis_cli.studies.semantics.cases import CONDITIONED, EXAMPLES, PAIRS
from thesis_cli.studies.semantics.evaluations import EvaluationJudge, Way, calls

LEVELS = np.linspace(0, 1, 202)[1:-1]
COUNT = 4000


def assert_law(values, quantile):
    """Shares of the values below quantiles are their levels, within five standard errors (Kolmogorov and Smirnov)."""
    shares = np.searchsorted(np.sort(values), quantile(LEVELS), side="right") / COUNT
    assert np.abs(shares - LEVELS).max() < 5 * 0.5 / np.sqrt(COUNT)


@pytest.mark.parametrize("name", EXAMPLES)
def test_values_of_expressions(name):
    assert_law(EXAMPLES[name].sample(np.random.default_rng(1), COUNT), EXAMPLES[name].quantile)


@pytest.mark.parametrize("name", ["X + Y", "X Y", "X / Y"])
def test_functions_of_two_variables(name):
    pair, rng = PAIRS[name], np.random.default_rng(2)
    assert_law(pair.function(pair.first(rng.random(COUNT)), pair.second(rng.random(COUNT))), pair.law)


def test_conditioned_laws():
    wanted = {
        "normal": stats.norm(0.96, np.sqrt(0.2)),
        "two normal": stats.norm(0.5, np.sqrt(1 / 3)),
        "gamma": stats.gamma(3, scale=0.4),
        "beta": stats.beta(2, 1),
        "event": stats.truncnorm(1, np.inf),
    }
    for name, law in wanted.items():
        assert CONDITIONED[name].quantile(LEVELS) == pytest.approx(law.ppf(LEVELS))


def test_evaluations_are_judged_by_their_law():
    judge, rng = EvaluationJudge(EXAMPLES["sum"]), np.random.default_rng(3)
    found = judge.accuracy(Way(20, "quantiles"), rng)
    assert found.error < found.bound
    assert found.distance < found.distance_bound
    assert (found.values, found.reductions) == (20 + 20 + 400, 1)
    assert calls(parse("let x = normal(0, 1) in if(x > 0, x, -x / 2)")) == 5
    assert calls(parse("normal(0, 1) + 2")) == 2
    drawn = judge.accuracy(Way(20, "random", "random", 4), rng)
    assert drawn.error > found.error
    assert drawn.standard_error > 0
    assert np.isnan(drawn.distance_bound)
