"""Denotations: the four rules, environments of `let`, reductions and bounds, against exact answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.closed_forms import Laws
from thesis_cli.embeddings.expansion import Expansion, push_forward, wasserstein
from thesis_cli.semantics.denotation import POOL, JointTable, Settings
from thesis_cli.semantics.evaluate import evaluate
from thesis_cli.semantics.parser import parse

SMALL = Settings(size=40)


def expansion_of(text, settings=SMALL, **options) -> Expansion:
    return evaluate(parse(text), settings, **options).expansion


def test_a_number_is_one_point():
    found = evaluate(parse("-3"), SMALL)
    assert found.expansion.points.tolist() == [[-3.0]]
    assert found.expansion.weights.tolist() == [1.0]
    assert (found.rkhs_error, found.error.largest) == (0, 0)


def test_a_function_is_applied_to_all_combinations():
    """The rule of f(e1, e2), before and after merging equal points."""
    found = expansion_of("(bernoulli(0.3) + 2) * categorical(0.5, 0.2, 0.3)")
    two, three = (
        Expansion(np.array([2.0, 3.0]), np.array([0.7, 0.3])),
        Expansion(np.arange(3.0), np.array([0.5, 0.2, 0.3])),
    )
    exact = push_forward(lambda a, b: a * b, two, three).merged()
    assert found.points == pytest.approx(exact.points)
    assert found.weights == pytest.approx(exact.weights)


def test_the_arguments_are_independent_and_variables_are_not():
    assert expansion_of("let x = normal(0, 1) in x - x").points.tolist() == [[0.0]]
    assert expansion_of("normal(0, 1) - normal(0, 1)").var() == pytest.approx(2, rel=0.02)
    assert expansion_of("let x = bernoulli(0.5) in x * x").mean() == 0.5
    assert expansion_of("bernoulli(0.5) * bernoulli(0.5)").mean() == 0.25


@pytest.mark.parametrize(
    ("text", "mean", "variance"),
    [
        ("let x = normal(1, 2), y = normal(x, 1) in x + y", 2, 17),
        ("let x = normal(0, 1) in let y = normal(0, 1) in x * y + uniform(0, 2)", 1, 4 / 3),
        ("normal(normal(1, 1), 2)", 1, 5),
        ("let p = beta(2, 3) in bernoulli(p) + bernoulli(p)", 0.8, 0.56),
        ("exponential(2) + gamma(3, 0.5)", 3.5, 4.75),
        ("let x = uniform(-1, 1) in if(x < 0, -x, x)", 0.5, 1 / 12),
        ("laplace(uniform(0, 2), 1)", 1, 2 + 1 / 3),
        ("max(uniform(0, 1), uniform(0, 1), uniform(0, 1))", 0.75, 3 / 80),
        ("let x = uniform(0, 1) in let y = bernoulli(0.3) in x + x", 1, 1 / 3),
        ("let x = 1, x = x + normal(0, 1) in x", 1, 1),
        ("let x = normal(0, 1) in let y = normal(x, 1) in let z = normal(y, 1) in z", 0, 3),
    ],
)
@pytest.mark.parametrize("draws", ["cells", "random"])
def test_moments(text, mean, variance, draws):
    """Cells leave a small bias in the variance; random draws an error of some 1 / sqrt(size)."""
    settings = Settings(size=80, draws=draws, method="quantiles")
    found = expansion_of(text, settings, seed=1)
    spread, share = math.sqrt(variance), 0.02 if draws == "cells" else 0.6
    assert abs(found.mean() - mean) < share * spread
    assert found.var() == pytest.approx(variance, rel=2 * share)


BOUNDED = [
    "normal(0, 1) + uniform(0, 1)",
    "normal(0, 1) * exponential(1)",
    "let x = normal(0, 1) in 2 * x + uniform(0, 1)",
    "let x = uniform(1, 2) in x * x / (1 + x)",
    "exp(uniform(0, 1)) - log(uniform(1, 3)) + sqrt(uniform(1, 4))",
    "let x = normal(0, 1) in x * exponential(2)",
    "let x = uniform(0, 1), y = normal(x, 1) in max(x, y) + abs(y)",
    "let x = uniform(0, 2) in bernoulli(x / 2) + normal(x, 1 + x)",
    "let x = uniform(1, 2) in let y = exponential(x) in x + tanh(y)",
]


@pytest.mark.parametrize("text", BOUNDED)
def test_the_bounds_hold(text):
    """The W1 distance of a coarse evaluation from a fine one is at most the sum of their bounds, and
    the bound is not vacuous.
    """
    fine, coarse = evaluate(parse(text), Settings(size=150)), evaluate(parse(text), Settings(size=12))
    assert coarse.error.reason == ""
    apart = wasserstein(fine.expansion, coarse.expansion)
    assert apart <= coarse.error.largest + fine.error.largest
    assert coarse.error.largest < 1.3 * math.sqrt(fine.expansion.var())
    assert fine.error.largest < coarse.error.largest
    distance = coarse.kernel.distance(fine.expansion, coarse.expansion)
    assert distance <= coarse.rkhs_error + fine.error.largest / coarse.kernel.bandwidth


@pytest.mark.parametrize("method", ["quantiles", "herding", "frank-wolfe", "nystrom", "atoms"])
def test_the_bound_of_a_sum_holds_in_closed_form(method):
    """2 X - Y / 4 + Z with X, Y and Z normal is normal, and its embedding is known."""
    found = evaluate(parse("2 * normal(0, 1) - normal(1, 2) / 4 + normal(0, 1)"), Settings(size=20, method=method))
    error = Laws.normal(-0.25, math.sqrt(5.25)).distance(found.expansion, found.kernel)
    assert error <= found.rkhs_error < 8 * error + 1e-3
    assert len(found.expansion) <= 20
    assert [step.after <= 20 < step.before for step in found.steps] == [True, True]


@pytest.mark.parametrize("size", [512, 513, *(pytest.param(n, marks=pytest.mark.long) for n in (511, 700, 1000)), 1001])
def test_what_is_sampled_has_no_bound(size):
    """Up to 512 points, all combinations fit into the pool; from 1,001 on, no law has a closed form."""
    assert POOL == 512**2
    for text, law in (
        ("normal(0, 1) + normal(0, 1)", Laws.normal(0, math.sqrt(2))),
        ("3 * (normal(0, 1) - normal(1, 2))", Laws.normal(-3, math.sqrt(45))),
    ):
        found = evaluate(parse(text), Settings(size=size))
        assert law.distance(found.expansion, found.kernel) <= found.rkhs_error
        assert math.isfinite(found.rkhs_error) == (size <= 512)
        if size > 512:
            assert "are sampled" in found.error.reason
    assert math.isfinite(evaluate(parse("2 * normal(0, 1)"), Settings(size=size)).rkhs_error)


def test_a_multiple_is_measured_with_the_kernel_that_fits():
    """10 (X + Y) / 20 is normal; its error is that of X + Y with twice the bandwidth."""
    found = evaluate(parse("10 * (normal(0, 1) + normal(0, 1)) / 20"), Settings(size=16))
    error = Laws.normal(0, math.sqrt(0.5)).distance(found.expansion, found.kernel)
    assert error <= found.rkhs_error < 3 * error
    wide = evaluate(parse("10 * (normal(0, 1) + normal(0, 1))"), Settings(size=16))
    assert wide.rkhs_error == pytest.approx(found.rkhs_error, rel=0.02)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("let x = normal(0, 1) in x * x", "* at 1:27 is not Lipschitz on [-inf, inf], [-inf, inf]"),
        ("normal(0, 1) > 1", "> at 1:14 is not continuous on [-inf, inf], [1, 1]"),
        ("1 / uniform(0, 1)", "/ at 1:3 is not Lipschitz on [1, 1], [0, 1]"),
        ("let x = normal(0, 1) given x > 0 in x", "none is known for the conditioning at 1:30"),
        ("let p = uniform(1, 2) in beta(p, 1)", "beta at 1:26 is not Lipschitz on [1, 2], [1, 1]"),
    ],
)
def test_where_there_is_no_bound_it_says_why(text, reason):
    found = evaluate(parse(text), SMALL)
    assert math.isinf(found.rkhs_error)
    assert found.error.reason == reason


def test_reduced_weights_keep_their_sum():
    """Those of `nystrom` too, so that what does not depend on a variable stays as it is."""
    settings = Settings(size=8, method="nystrom")
    assert expansion_of("gamma(2, 1) + gamma(2, 1)", settings).total == pytest.approx(1, abs=1e-12)
    assert expansion_of("let x = gamma(2, 1) + gamma(2, 1) in if(x > -1, 3, 4)", settings).mean() == pytest.approx(3)


def test_random_points_have_no_bound():
    reason = evaluate(parse("normal(0, 1)"), Settings(draws="random")).error.reason
    assert reason == "the points of normal at 1:1 are random"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("normal(0, uniform(-1, 1))", "1:1: normal(0, -0.975) is no distribution; the deviation must be above 0"),
        ("uniform(1, 1)", "low must be below high"),
        ("bernoulli(2)", "p must be from 0 to 1"),
        ("categorical(0.5, 0.4)", "the probabilities must be 0 or more and sum to 1"),
        ("log(uniform(-1, 1))", "1:1: log has no finite value at -0.975 (50 % of the weight)"),
        ("1 / 0", "1:3: / has no finite value at 1, 0"),
        ("exp(1000)", "1:1: exp has no finite value at 1000"),
        ("let x = normal(0, 1) in normal(0, log(x))", "1:35: log has no finite value at"),
        ("let x = bernoulli(0.5), y = log(x) in normal(y, 1)", "1:29: log has no finite value at 0"),
        ("let x = normal(0, 1) given x > 100 in x", "1:30: the condition holds at no point"),
        ("let x = normal(0, 1) given normal(x, 1) == 50 in x", "1:41: no point is near the observed 50"),
        ("let x = bernoulli(0.5), y = log(x) given normal(x, 1) == 0 in x", "observed or conditioned is undefined"),
        ("let x = normal(0, 1) given x == normal(0, 1) in x", "the observed value is random"),
        ("let x = normal(0, 1), y = 1 given x == y in x", "the observed value depends on y"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(InputError) as error:
        evaluate(parse(text), SMALL)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [{"size": 1}, {"size": 10**6}, {"kernel": "cosine"}, {"method": "none"}, {"draws": "x"}, {"bandwidth": math.nan}],
)
def test_settings_are_checked(settings):
    with pytest.raises(InputError):
        Settings(**settings)


def test_undefined_values_that_are_not_chosen_do_not_matter():
    found = expansion_of("let x = uniform(-1, 1) in if(x > 0, log(x), 0)")
    assert found.mean() == pytest.approx(-0.5, rel=0.02)


def test_a_table_is_a_joint_expansion():
    """Columns keep their dependence and the rows their weights; a row without a value does not count."""
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, math.nan, 5.0])
    table = JointTable({"x": x, "y": y}, np.array([0.4, 0.2, 0.3, 0.1]))
    found = evaluate(parse("x * y + bernoulli(0.5)", ["x", "y"]), SMALL, table=table)
    assert found.share == pytest.approx(0.7)
    assert found.expansion.points[:, 0].tolist() == [2, 3, 20, 21]
    assert found.expansion.weights == pytest.approx(np.array([3, 3, 0.5, 0.5]) / 7)
    assert evaluate(parse("2"), SMALL, table=table).expansion.points.tolist() == [[2.0]]
    empty = JointTable({"x": np.full(2, math.nan)}, np.full(2, 0.5))
    with pytest.raises(InputError, match="every row lacks a value"):
        evaluate(parse("x", ["x"]), SMALL, table=empty)
    cancelling = JointTable({"x": np.arange(2.0)}, np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="sum to 0"):
        evaluate(parse("x", ["x"]), SMALL, table=cancelling)


def test_weights_of_any_sign_are_linear():
    """A table's negative weights are kept by a reduction that takes them."""
    table = JointTable({"x": np.arange(3.0)}, np.array([0.8, -0.3, 0.5]))
    settings = Settings(size=10, method="nystrom")
    assert expansion_of("1", settings).mean() == 1
    found = evaluate(parse("x + 1", ["x"]), settings, table=table)
    assert found.expansion.mean() == pytest.approx(1.7)
    assert found.expansion.weights == pytest.approx([0.8, -0.3, 0.5])
    kept = evaluate(parse("x + 1", ["x"]), Settings(size=10), table=table)
    assert kept.expansion.is_distribution()
    assert kept.expansion.mean() == pytest.approx(1.7)
    assert kept.projected > 0
    assert math.isinf(kept.rkhs_error)


def test_a_seed_repeats_a_result():
    settings = Settings(size=30, draws="random", method="random")
    text = "let x = normal(0, 1) in x * uniform(0, 1)"
    first, again, other = (expansion_of(text, settings, seed=seed) for seed in (1, 1, 2))
    assert first.points.tolist() == again.points.tolist()
    assert first.points.tolist() != other.points.tolist()


@pytest.mark.filterwarnings("error")
def test_numbers_of_extreme_size():
    """Each has an answer, or is refused in a sentence: no overflow, no point outside the range."""
    ends = expansion_of("beta(1e-5, 1e-5)")
    assert (ends.points.min(), ends.points.max()) == (0, 1)
    assert ends.var() == pytest.approx(0.25, rel=1e-4)
    assert expansion_of("beta(0.1, 0.05)").points.max() <= 1
    assert evaluate(parse("normal(0, 1) * 1e-145"), Settings(size=40)).rkhs_error < 0.01
    assert evaluate(parse("normal(0, 1) * 1e-149 * 1e-20"), Settings(size=40)).error.largest < 1e-150
    assert evaluate(parse("uniform(0, 1) + 1"), Settings(size=40, bandwidth=1e-150)).rkhs_error <= 1.42
    assert math.isfinite(evaluate(parse("uniform(0, 1) * 1e-100 / 1e-149"), SMALL).error.largest)
    with pytest.raises(InputError, match="must be from 1e-150"):
        Settings(bandwidth=1e200)
    with pytest.raises(InputError, match="1:1: normal has values that are no numbers up to"):
        expansion_of("normal(1e149, 1e150)")
    with pytest.raises(InputError, match="is too large; give a number up to"):
        expansion_of("1e151")
    with pytest.raises(InputError, match="no finite value"):
        expansion_of("uniform(1, 2) / 1e-200")
