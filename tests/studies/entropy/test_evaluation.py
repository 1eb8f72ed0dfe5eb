import math

import numpy as np
import pytest

from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.studies.entropy.evaluation import BOUNDED, SampleEstimates, Sizes, full_rank_rows, low_rank_rows
from thesis_cli.studies.entropy.variance import DistinctProbabilities, crossings_of, ratio_of_variances, tops_of

ORDERS = np.array([0, 0.5, 1, 2, math.inf])


def test_unbiased_estimators_have_no_bias():
    phi = np.log(0.6) * np.arange(8)
    rows = list(full_rank_rows(phi, ORDERS, Sizes([10], 400, 4_000, 0), np.random.SeedSequence(0).spawn(4)))
    exact = dict(zip(ORDERS, exact_entropies(LogPotentials(phi), ORDERS).entropies, strict=True))
    for _, _, alpha, entropy, name, m, k, bias, error, rmse, _ in rows:
        assert (entropy, m, k) == (exact[alpha], 10, 400)
        assert rmse >= abs(bias) - 1e-12
        if name in ("Gumbel, shared", "hybrid"):
            assert abs(bias) < 5 * error


def test_estimates_from_samples():
    states = np.array([[0, 0, 1, 2], [1, 1, 1, 1]])
    found = SampleEstimates(states, np.log([0.5, 0.25, 0.25]))
    assert found.at(1)["plug-in"] == pytest.approx([1.5 * math.log(2), 0])
    assert found.at(math.inf)["plug-in"] == pytest.approx([math.log(2), 0])
    assert found.at(2)["plug-in"] == pytest.approx([-math.log(0.375), 0])
    assert found.at(2)["pairs"] == pytest.approx([math.log(6), 0])
    assert found.at(1)["moments"] == pytest.approx([1.5 * math.log(2), 2 * math.log(2)])


def test_bounds_of_a_small_model_enclose_the_entropy():
    table = np.random.default_rng(1).standard_normal((2, 2))
    graph = FactorGraph((2, 2), [Factor((0, 1), table)])
    rows = list(low_rank_rows(graph, 500, *np.random.SeedSequence(2).spawn(2), 0))
    assert {row[2] for row in rows if row[4].startswith("lower")} == {*BOUNDED, 1}
    for row in rows:
        sign = {"upper": 1, "lower": -1}.get(row[4].split(",")[0], 0)
        assert sign * row[7] > -5 * row[8] - 1e-9 or not sign


def test_variances_cross_at_two_for_a_uniform_distribution():
    p = DistinctProbabilities(np.zeros(10))
    assert crossings_of(p, np.array([0.5, 1.5, 3.0])) == pytest.approx([2.0])
    assert tops_of(p) == [1, 0]


def test_ratio_of_variances_of_proportional_samples():
    x = np.random.default_rng(3).standard_normal((50, 2))
    ratio, error = ratio_of_variances(3 * x, x)
    assert ratio == pytest.approx([9, 9])
    assert error == pytest.approx([0, 0], abs=1e-9)
