"""Weighted values, against exact laws and against a plain interpreter by rejection."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tests.semantics.rejection import value
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.denotation import JointTable
from thesis_cli.semantics.evaluate import Sampler
from thesis_cli.semantics.parser import parse
from thesis_cli.semantics.runs import TAILS, Law
from thesis_cli.studies.semantics.cases import CASES, answers

COUNT = 2**13


def values(text, count=COUNT, seed=0, table=None) -> Expansion:
    names = [] if table is None else table.columns
    return Sampler(parse(text, names), table).sample(count, np.random.default_rng(seed)).values


PROGRAMS = [
    "let x = normal(0, 1) * exponential(1), y = floor(x) + x given x < 1.5, x > -2 in y + normal(x, 1)",
    "let x = normal(0, 1) in (let y = normal(x, 1) given y > x + exponential(1) in y - x) + x",
    "let x = normal(0, 1) in let y = normal(x, 1) given abs(y) > 1 in x + y",
    "let p = beta(2, 3), k = bernoulli(p) + bernoulli(p) given k + bernoulli(0.5) == 2 in p * 10 + k",
    "let a = categorical(0.2, 0.5, 0.3) given a > bernoulli(0.4) or normal(a, 1) > 2 in a + uniform(0, 1)",
    "let x = normal(0, 1), x = x + x given not (x < -1 or x > 3) in if(x > 0, x, x * bernoulli(0.3))",
    "let x = gamma(2, 1) given x * uniform(0.5, 2) > 1 in max(x, exponential(x)) - laplace(x, 1)",
    "let x = exponential(1) in (let y = x given y > normal(0, 1) in bernoulli(tanh(y))) + (let z = 1 in z)",
    "let x = normal(0, 1) given tanh(x + normal(0, 1)) > 0.5, exp(x) < 3 in x",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_have_the_distribution_of_rejection(text):
    """Shares up to the deciles of the plain values, within five standard errors of those."""
    rng, count = random.Random(1), 400
    plain = np.sort([value(parse(text), rng) for _ in range(count)])
    found = values(text, 2**12)
    for share in np.linspace(0.1, 0.9, 9):
        level = plain[int(share * count)]
        exact = found.weights[found.points[:, 0] <= level].sum()
        below = found.weights[found.points[:, 0] < level].sum()
        assert below - 5 * 0.5 / math.sqrt(count) < share < exact + 5 * 0.5 / math.sqrt(count)


SLOW = ("long sum", "deep sum", "share", "random rate", "coins", "rate", "waiting", "two observations")


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_errors_fall_with_the_number_of_points(name):
    """Root mean square errors over 8 nets of each of three sizes. Those of independent points would fall by sqrt(8)
    from one to the next. The logarithm of each has a standard error of about 1 / 4, and five standard errors of a ratio
    are a factor of 5.9: even they would rise by less than 5.9 / sqrt(8), and fall by more than 8 / 5.9 in all.
    """
    case, errors = CASES[name], []
    sampler = Sampler(parse(case.text))
    for count in (2**8, 2**11, 2**14):
        found = [answers(sampler.sample(count, np.random.default_rng(seed)).values) for seed in range(8)]
        errors.append(math.sqrt(np.mean([case.error(each) ** 2 for each in found])))
    rise = math.exp(5 * math.sqrt(2) / 4)
    assert errors[1] < rise / math.sqrt(8) * errors[0] + 1e-12
    assert errors[2] < rise / math.sqrt(8) * errors[1] + 1e-12
    assert errors[2] < rise / 8 * errors[0] + 1e-12


def test_an_observed_variable_has_one_value():
    found = values("let x = normal(0, 1) given x == 0.5 in x")
    assert found.points.tolist() == [[0.5]]
    both = values("let x = normal(0, 1), y = normal(0, 2) given x + y == 2 in x + y")
    assert both.points == pytest.approx(2.0)


MIXED = 1 / (1 + math.exp(2.0 - 4.5))
"""Probability of the first of two normal laws of means 0 and 5 at 2."""
SPREAD = math.sqrt(MIXED * (1 - MIXED))
SLANTED = math.sqrt(2 / 3)


def chosen():
    """Mean and deviation of 1 with the normal density there, or else of a positive normal number, with half of the
    Laplace density.
    """
    weights = np.array([math.exp(-0.5) / math.sqrt(2 * math.pi), 0.5 * 0.5 * math.exp(-1)])
    first, second = weights / weights.sum()
    mean = first + second * math.sqrt(2 / math.pi)
    return mean, math.sqrt(1 - mean**2)


CHOSEN = chosen()


@pytest.mark.parametrize(
    ("text", "mean", "sd"),
    [
        ("let x = normal(0, 1) given exp(x) == 2 in x", math.log(2), 0),
        ("let x = normal(0, 1) given normal(0, 0.1) + x == 1 in x", 1 / 1.01, 0.1 / math.sqrt(1.01)),
        ("let r = gamma(2, 1) given r * normal(0, 1) == 1 in 1 / r", math.nan, math.nan),
        ("let x = normal(0, 1), y = normal(0, 1) given x / y == 1 in x", 0, 1.0),
        ("let x = normal(1, 1), y = normal(1, 1) given x == y in x", 1, math.sqrt(0.5)),
        ("let t = 2 in let x = normal(0, 1) given normal(x, 1) == t in x", 1, math.sqrt(0.5)),
        ("let k = categorical(0.2, 0.3, 0.5) given normal(k, 1) == 1 in k", math.nan, math.nan),
        ("let x = normal(0, 1) given normal(x, 1) == normal(2, 1) in x", 2 / 3, math.sqrt(2 / 3)),
        ("let x = normal(1, 1) given x * x == 4 in x", 2 * math.tanh(2), 2 / math.cosh(2)),
        ("let x = normal(0, 1) given abs(normal(x, 0.5)) == 1 in x", 0, math.sqrt(0.84)),
        ("let x = normal(0, 1), y = normal(0, 1) given x * x + y * y == 4 in x", 0, math.sqrt(2)),
        ("let x = gamma(2, 1) given (x - 1) ** 3 == 8 in x", 3, 0),
        ("let x = normal(0, 1), y = normal(0, 1), z = normal(0, 1) given x + y + z == 3, x - y == 1 in z", 1, SLANTED),
        ("let b = bernoulli(0.5), x = if(b, normal(0, 1), normal(5, 1)) given x == 2 in b", MIXED, SPREAD),
        ("let b = bernoulli(0.5), x = normal(0, 1), y = if(b, x, laplace(0, 1)) given y == 1, x > 0 in x", *CHOSEN),
    ],
)
def test_observations(text, mean, sd):
    """Means of eight nets within five standard errors; the exact values are from densities on a grid where none is
    given.
    """
    if text.startswith("let r"):  # density of r is r exp(-r) times that of 1 / r times the slope 1 / r
        r = np.linspace(1e-4, 40, 400_001)
        weights = r * np.exp(-r) * np.exp(-0.5 / r**2) / r
        mean = weights @ (1 / r) / weights.sum()
        sd = math.sqrt(weights @ (1 / r - mean) ** 2 / weights.sum())
    if text.startswith("let k"):
        weights = np.array([0.2, 0.3, 0.5]) * np.exp(-0.5 * (np.arange(3) - 1.0) ** 2)
        mean = weights @ np.arange(3) / weights.sum()
        sd = math.sqrt(weights @ (np.arange(3) - mean) ** 2 / weights.sum())
    if text.startswith("let x = normal(0, 1), y = normal(0, 1) given x / y"):
        mean, sd = 0.0, 1.0  # density exp(-x^2) |x| on the line x = y
    sampler = Sampler(parse(text))
    nets = [sampler.sample(2**10, np.random.default_rng(seed)).values for seed in range(8)]
    for found, exact in (([each.mean() for each in nets], mean), ([math.sqrt(each.var()) for each in nets], sd)):
        assert abs(np.mean(found) - exact) < 5 * np.std(found, ddof=1) / math.sqrt(8) + 1e-9
        assert np.std(found) < 0.02 * sd + 1e-9


def tail(density, low, high):
    """Mean of a density between two numbers."""
    x = np.linspace(low, high, 400_001)
    weights = density(x)
    return weights @ x / weights.sum()


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("let x = normal(0, 1) given x > 8 in x", tail(lambda x: np.exp(32 - x**2 / 2), 8, 14)),
        ("let x = normal(0, 1) given x < -8 in x", -tail(lambda x: np.exp(32 - x**2 / 2), 8, 14)),
        ("let x = exponential(1) given x > 100 in x", 101.0),
        ("let x = laplace(0, 1) given x > 50, x < 51 in x", tail(lambda x: np.exp(50 - x), 50, 51)),
        ("let x = gamma(3, 2) given x > 200 in x", tail(lambda x: x**2 * np.exp(100 - x / 2), 200, 300)),
        ("let x = normal(0, 1) given normal(x, 0.001) == 3 in x", 3 / (1 + 1e-6)),
        ("let x = normal(0, 1), y = normal(0, 1) given x * x + y * y > 25 in x * x + y * y", 27.0),
        (
            "let x = uniform(0, 1), y = uniform(0, 1) given abs(x + y - 1) < 0.001, x > 0.99 in x",
            tail(lambda x: np.minimum(0.002, 1.001 - x), 0.99, 1),
        ),
    ],
)
def test_rare_conditions(text, mean):
    """Each has a probability below 1e-4; and the means of 20 nets are within five of their standard errors."""
    sampler, count = Sampler(parse(text)), 20
    nets = [sampler.sample(2**11, np.random.default_rng(seed)).values for seed in range(count)]
    means = np.array([each.mean() for each in nets])
    spread = np.mean([math.sqrt(each.var()) for each in nets])
    assert abs(means.mean() - mean) < 5 * means.std(ddof=1) / math.sqrt(count) + 1e-6 * spread
    assert means.std() < 0.1 * spread  # a tenth of a standard deviation, as of 100 independent points


def test_an_observation_that_no_draw_solves_is_left_to_a_regression():
    sample = Sampler(parse("let x = normal(0, 1) given sin(x) == 0.5, abs(x) < 1 in x")).sample(
        COUNT, np.random.default_rng(0)
    )
    assert sample.regressed is not None
    assert sample.values.mean() == pytest.approx(math.pi / 6, rel=0.02)


def test_laws_of_weighted_points():
    """Equal points are one, with the sum of their weights."""
    few = Law.of(np.array([2.0, 1.0, 2.0]), np.array([0.5, 0.25, 0.25]))
    assert few.points.tolist() == [1, 2]
    assert few.quantile(np.array([0.2, 0.3, 0.9])).tolist() == [1, 2, 2]
    assert few.share(np.array([0.5, 1.0, 3.0])).tolist() == [0, 0.25, 1]
    same = Law.of(np.array([1.0, 2.0, 1.0, 1.0]), None)
    assert same.weights.tolist() == [0.75, 0.25]


def test_maps_have_the_density_that_divides_the_weights():
    t = (np.arange(2**16) + 0.5) / 2**16
    u, logs = TAILS.of(t)
    assert (np.diff(u) > 0).all()
    assert np.exp(logs).mean() == pytest.approx(1, abs=1e-12)
    assert np.exp(logs) @ u / len(u) == pytest.approx(0.5, abs=1e-9)
    assert (u < 1e-4).mean() > 0.015


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("normal(0, 1) + uniform(0, 1)", (-1.0, 0.7)),
        ("3 - 2 * normal(normal(0, 1), 1)", (0.0, 4.0)),
        ("(1 - gamma(2, 1)) / exponential(1)", (-3.0, 0.5)),
        ("let a = gamma(2, 1) in a / (a + gamma(3, 1))", (-0.5, 0.2, 0.6)),
        ("exp(normal(0, 1) + laplace(0, 1))", (-1.0, 0.5, 3.0)),
        ("(uniform(0, 1) + uniform(0, 1)) + (uniform(0, 1) + uniform(0, 1))", (1.0, 2.5)),
        ("bernoulli(0.3) + normal(0, 1)", (0.0, 1.0)),
    ],
)
def test_shares_with_a_draw_integrated_out(text, levels):
    """They are those of the values, whose error is some 1 / sqrt(points), but nearly without it."""
    sampler = Sampler(parse(text))
    rough, smooth = [], []
    for seed in range(4):
        sample = sampler.sample(2**12, np.random.default_rng(seed))
        assert sample.below is not None
        smooth.append(sample.below(np.array(levels)))
        rough.append([sample.values.weights[sample.values.points[:, 0] <= level].sum() for level in levels])
    assert np.mean(rough, 0) == pytest.approx(np.mean(smooth, 0), abs=0.01)
    assert np.std(smooth, 0).max() < 2e-3


@pytest.mark.parametrize(
    "text",
    ["let x = normal(0, 1) in x + x", "normal(0, 1) > 0", "let x = normal(0, 1) given x > 0 in x", "bernoulli(0.5)"],
)
def test_no_draw_is_integrated_out_where_it_cannot(text):
    assert Sampler(parse(text)).sample(256, np.random.default_rng(0)).below is None


def test_a_table_is_a_joint_distribution():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 5.0])
    table = JointTable({"x": x, "y": y}, np.array([0.5, 0.2, 0.3]))
    found = values("x * y + bernoulli(0.5)", table=table)
    assert found.points[:, 0].tolist() == [2, 3, 15, 16]
    assert found.weights == pytest.approx([0.35, 0.35, 0.15, 0.15])
    nested = values("let k = bernoulli(0.5) given k + x > 1.5 in k", table=table)
    assert nested.mean() == pytest.approx(0.5 * 1 + 0.5 * 0.5, abs=0.01)  # each row is conditioned by itself
    signed = JointTable({"x": x}, np.array([0.8, -0.3, 0.5]))
    kept = values("x + 1", table=signed)
    assert kept.weights == pytest.approx([0.8, -0.3, 0.5])
    assert values("normal(x, 1)", table=signed).mean() == pytest.approx(signed.weights @ x, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("normal(0, uniform(-1, 1))", "1:1: normal(0, "),
        ("normal(0, uniform(-1, 1))", ") is no distribution; the deviation must be above 0"),
        ("bernoulli(2)", "p must be from 0 to 1"),
        ("log(uniform(-1, 1))", "1:1: log has no finite value at -"),
        ("log(uniform(-1, 1))", "(50 % of the weight); "),
        ("1 / 0", "1:3: / has no finite value at 1, 0"),
        ("clamp(normal(0, 1), 2, 1)", "1:1: clamp has no finite value at "),
        ("let x = normal(0, 1) in normal(0, log(x))", "1:35: log has no finite value at"),
        ("let x = normal(0, 1) given x > 100 in x", "1:30: the condition holds at no point"),
        ("let x = normal(0, 1) given abs(x) > 100 in x", "the condition holds at no point"),
        ("let k = bernoulli(0.5) given k == 2 in k", "the condition holds at no point"),
        ("let x = uniform(0, 1) given x == 2 in x", "the condition holds at no point"),
        (
            "let t = normal(0, 1) in let x = uniform(0, 1) given x > t in x",
            "not rare at any value of the outer variables",
        ),
        ("let t = normal(0, 1) in let x = normal(t, 1) given sin(x) == 0.5 in x", "bind all variables in one let"),
        ("let x = normal(0, 1) given sin(x) == -5 in x", "no point is near the observed value"),
        ("let x = normal(0, 1) given x * x == -5 in x", "the condition holds at no point"),
        ("let x = normal(0, 1) given exp(x) == -1 in x", "the condition holds at no point"),
        ("let x = normal(0, 1) given x == 1, x > 2 in x", "the condition holds at no point"),
        ("let x = normal(0, 1) given x * x == 0 in x", "1:34: the density is infinite at the observed value"),
        ("let g = gamma(0.5, 1) given g == 0 in g", "the density is infinite at the observed value"),
        ("normal(1e149, 1e150)", "normal has values that are no numbers up to"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(InputError) as error:
        values(text, 2**10)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_has_no_weight_does_not_matter():
    assert values("let x = uniform(-1, 1) in if(x > 0, log(x), 0)").mean() == pytest.approx(-0.5, abs=1e-3)
    assert values("let x = normal(0, 1) given x * x > 1, x > 0 in normal(0, x - 1)").mean() == pytest.approx(
        0, abs=1e-2
    )
    assert values("let unused = log(0) in 3").points.tolist() == [[3.0]]


@pytest.mark.parametrize("name", [name for name in CASES if name != "shifts"])  # no plain value is near those observed
def test_the_programs_of_the_cases_have_their_laws(name):
    """Weighted Monte Carlo with a few thousand values, shares up to the quantiles within five standard errors."""
    case, count = CASES[name], 500 if name == "long sum" else examples(2) * 10_000
    found = case.monte_carlo(np.random.default_rng(0), count)
    for share in np.linspace(0.05, 0.95, 10):
        level = float(case.quantile(np.array(share)))
        below = (found.points[:, 0] <= level).astype(float)
        error = math.sqrt(found.weights**2 @ (below - share) ** 2)
        exact = (
            share
            if case.scale > 0 and name not in ("comparison", "coins", "rounding", "ascents")
            else found.weights @ below
        )
        assert abs(found.weights @ below - exact) < 5 * max(error, 1e-3)
    mean, sd = answers(found)[:2]
    if math.isfinite(case.sd):
        error = math.sqrt(found.weights**2 @ (found.points[:, 0] - mean) ** 2)
        assert abs(mean - case.mean) < 5 * error
        assert sd == pytest.approx(case.sd, rel=0.2) or 1 / (found.weights @ found.weights) < 1000
