"""Whole evaluations: answers with standard errors, bounds, and the points that stand for the values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.semantics.bounded_expressions import Writer
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import wasserstein
from thesis_cli.semantics.denotation import JointTable, Settings
from thesis_cli.semantics.evaluate import REPLICATES, Sampler, evaluate
from thesis_cli.semantics.parser import parse
from thesis_cli.semantics.queries import parse_queries
from thesis_cli.studies.semantics.cases import CASES, QUERY

SMALL = Settings(size=20)


def check_bounds(seeds):
    """Distances of values from those of far larger nets are at most the bounds, up to what two of those differ by."""
    bounded = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        expression = parse(Writer(rng).expression(int(rng.integers(1, 4))))
        found = evaluate(expression, SMALL, seed)
        one, other = (Sampler(expression).sample(2**14, np.random.default_rng([seed, k])).values for k in (1, 2))
        apart, noise = wasserstein(found.values, one), wasserstein(one, other)
        assert apart <= found.error.largest + 3 * noise + 1e-9
        distance, noise = found.kernel.distance(found.values, one), found.kernel.distance(one, other)
        assert distance <= found.rkhs_error + 3 * noise + 2e-7
        bounded += math.isfinite(found.rkhs_error)
    assert bounded > 0.9 * len(seeds)


def test_bounds_are_true():
    check_bounds(range(examples(15)))


@pytest.mark.long
def test_bounds_are_true_in_ten_thousand_runs():
    check_bounds(range(1000, 11_000))


@pytest.mark.parametrize(
    "name", ["sum", "exponential", "maximum", "coins", "observation", "event", "comparison", "quotient"]
)
def test_standard_errors_are_no_less_than_the_errors(name):
    """An error of more than five standard errors has a probability of 0.16 % even by Student's law with 7 degrees of
    freedom, and the errors of nets are smaller than those that the standard errors are scaled for.
    """
    case, queries = CASES[name], parse_queries(QUERY)
    for seed in range(4):
        found = evaluate(parse(case.text), SMALL, seed)
        for query, exact in zip(queries, case.truth, strict=True):
            value, error = found.answer(query)
            assert not abs(value - exact) > 5 * error + 1e-6 * case.scale  # NaN has no error


def test_larger_sizes_have_smaller_bounds():
    bounds = [
        evaluate(parse("normal(0, 1) + uniform(0, 1)"), Settings(size=size)).error.largest for size in (10, 40, 160)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] < bounds[0] / 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("let x = normal(0, 1) in x * x", "* at 1:27 is not Lipschitz on [-inf, inf], [-inf, inf]"),
        ("normal(0, 1) > 1", "> at 1:14 is not continuous on [-inf, inf], [1, 1]"),
        ("let x = normal(0, 1) given x > 0 in x", "none is known for the conditioning at 1:30"),
        (" + ".join(["1"] * 202), "none is composed of more than 200 operations"),
    ],
)
def test_where_there_is_no_bound_it_says_why(text, reason):
    found = evaluate(parse(text), SMALL)
    assert math.isinf(found.rkhs_error)
    assert found.error.reason == reason


def test_few_points_keep_the_moments():
    found = evaluate(parse("exponential(1) + uniform(0, 1)"), SMALL)
    assert len(found.expansion) == 20
    assert found.expansion.mean() == pytest.approx(found.values.mean(), abs=1e-12)
    assert found.expansion.var() == pytest.approx(found.values.var(), abs=1e-12)
    assert found.kernel.distance(found.expansion, found.values) < 0.01


def test_answers_that_are_integrated_out():
    """Probabilities and quantiles of a sum of two uniform numbers, to far more than 1 / sqrt(points)."""
    found = evaluate(parse("uniform(0, 1) + uniform(0, 1)"), SMALL)
    exact = {"prob(<= 0.5)": 0.125, "prob(> 1.5)": 0.125, "quantile(0.125)": 0.5, "median": 1.0, "prob(== 1)": 0.0}
    for query in parse_queries(", ".join(exact)):
        assert found.answer(query)[0] == pytest.approx(exact[query.text], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("normal(0, 1)", (math.nan,) * 2),
        ("uniform(0, 1) ** 2", (math.nan,) * 2),
        ("bernoulli(0.3) + 2", (2, 3)),
        ("7", (7, 7)),
    ],
)
def test_quantiles_beyond_which_there_are_few_values_are_unknown(text, ends):
    found = evaluate(parse(text), SMALL)
    answers = [found.answer(query)[0] for query in parse_queries("quantile(0), quantile(1)")]
    assert answers == pytest.approx(ends, abs=0, nan_ok=True)


def test_a_quantile_at_the_end_of_an_atom_has_a_wide_error():
    """P(X <= 5) of the geometric law is 0.9502: half of the nets say that the quantile of 95 % is 6."""
    (query,) = parse_queries("quantile(0.95)")
    found = [evaluate(parse("floor(exponential(2))"), Settings(size=32), seed).answer(query) for seed in range(6)]
    assert {value for value, _ in found} == {5.0, 6.0}
    assert all(abs(value - 5) <= 2 * error < 3 for value, error in found)


def test_a_gap_leaves_a_quantile_at_a_value():
    found = evaluate(parse("bernoulli(0.5) * 100 + normal(0, 1) / 100"), SMALL)
    low, high = (found.answer(query)[0] for query in parse_queries("quantile(0.499), quantile(0.501)"))
    assert low == pytest.approx(0.03, abs=0.01)
    assert high == pytest.approx(99.97, abs=0.01)


def test_a_seed_repeats_a_result():
    text = parse("let x = normal(0, 1) given normal(x, 0.1) > 2 in x * uniform(0, 1)")
    first, again, other = (evaluate(text, SMALL, seed).values.points.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_tables():
    """Rows without a value of a column in use do not count; negative weights are replaced in the few points only."""
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, math.nan, 5.0])
    table = JointTable({"x": x, "y": y}, np.array([0.4, 0.2, 0.3, 0.1]))
    found = evaluate(parse("x * y + bernoulli(0.5)", ["x", "y"]), SMALL, table=table)
    assert found.share == pytest.approx(0.7)
    assert found.values.points[:, 0].tolist() == [2, 3, 20, 21]
    assert found.values.weights == pytest.approx(np.array([3, 3, 0.5, 0.5]) / 7)
    assert found.rkhs_error < 1e-6
    signed = evaluate(parse("x + 1", ["x"]), SMALL, table=JointTable({"x": x[:3]}, np.array([0.8, -0.3, 0.5])))
    assert signed.answer(parse_queries("mean")[0]) == (pytest.approx(1.7 + 1), 0)
    assert signed.expansion.is_distribution()
    assert signed.projected > 0
    with pytest.raises(InputError, match="every row lacks a value"):
        evaluate(parse("x", ["x"]), SMALL, table=JointTable({"x": np.full(2, math.nan)}, np.full(2, 0.5)))
    with pytest.raises(InputError, match="sum to 0"):
        evaluate(parse("x", ["x"]), SMALL, table=JointTable({"x": x[:2]}, np.array([1.0, -1.0])))


def test_sums_of_hundreds_of_terms():
    case = CASES["long sum"]
    found = evaluate(parse(case.text), SMALL)
    errors = [found.answer(query)[0] - exact for query, exact in zip(parse_queries(QUERY), case.truth, strict=True)]
    assert np.abs(errors).max() < 0.02 * case.sd
    assert len(found.replicates) == REPLICATES


@pytest.mark.filterwarnings("error")
def test_numbers_of_extreme_size():
    """Each has an answer, or is refused in a sentence: no overflow, no point outside the range."""
    ends = evaluate(parse("beta(1e-5, 1e-5)"), SMALL).values
    assert (ends.points.min(), ends.points.max()) == pytest.approx((0, 1))
    assert ends.var() == pytest.approx(0.25, rel=1e-4)
    assert evaluate(parse("normal(0, 1) * 1e-145"), SMALL).rkhs_error < 1
    assert evaluate(parse("gamma(0.001, 1)"), SMALL).values.points.min() >= 0
    with pytest.raises(InputError, match="no finite value"):
        evaluate(parse("uniform(1, 2) / 1e-200"), SMALL)
    with pytest.raises(InputError, match="no finite value"):
        evaluate(parse("exp(1000)"), SMALL)


def test_the_values_do_not_depend_on_the_kernel():
    """Nor do answers; the kernel measures distances and bounds."""
    text = parse("normal(0, 1) + uniform(0, 1)")
    one, other = (evaluate(text, Settings(size=20, kernel=kernel, bandwidth=0.7)) for kernel in ("gaussian", "laplace"))
    assert one.values.points.tolist() == other.values.points.tolist()
    assert one.error.largest == other.error.largest
    assert one.rkhs_error != other.rkhs_error
