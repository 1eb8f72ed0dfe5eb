"""Queries of expansions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.queries import parse_queries

POINTS = Expansion(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.25, 0.5]))


def test_answers():
    text = "mean, var, sd, median, quantile(.9), prob(> 2), prob(<= -1), prob(== 2)"
    found = {query.text: query.of(POINTS) for query in parse_queries(text)}
    assert found == {
        "mean": 2.0,
        "var": 0.5,
        "sd": math.sqrt(0.5),
        "median": 2.0,
        "quantile(0.9)": 3.0,
        "prob(> 2)": 0.25,
        "prob(<= -1)": 0.0,
        "prob(== 2)": 0.5,
    }


def test_negative_weights():
    """Probabilities and means use them as they are, quantiles the nearest distribution."""
    expansion = Expansion(np.array([0.0, 1.0, 2.0]), np.array([0.5, -0.1, 0.6]))
    mean, prob, median = (query.of(expansion) for query in parse_queries("mean, prob(== 1), median"))
    assert (mean, prob, median) == pytest.approx((1.1, -0.1, 2.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no query is given"),
        ("medan", "--query 1:1: 'medan' is no query; 'median' is nearest"),
        ("mean var", "--query 1:6: 'var' stands between queries"),
        ("mean,", "--query 1:6: the end is no query"),
        ("quantile", "--query 1:9: the end stands where '(' must be; write quantile(0.9)"),
        ("quantile(2)", "the share of the quantile is 2"),
        ("prob(2)", "'2' is no comparison; write prob(> 2)"),
        ("prob(> x)", "'x' stands where a number must be"),
        ("prob(> 1e999)", "the number is too large"),
        ("prob(> 1", "the end stands where ')' must be"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(InputError) as error:
        parse_queries(text)
    assert message in str(error.value)
