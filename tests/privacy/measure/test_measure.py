"""dp-measure below the command: exact without noise, sensitivities, coverage, division of the budget."""

import dataclasses
import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure.intervals import LEVEL, Law, around, ratio_interval
from thesis_cli.privacy.measure.measure import Plan, answers, expected, measured, sample_of
from thesis_cli.privacy.measure.quantiles import CHOICES, Quantile, choice_cost, choice_scale
from thesis_cli.privacy.measure.ranges import bounded_range, column_ranges, range_of
from thesis_cli.privacy.mechanisms.mechanism import Budget, Noised, zcdp_epsilon
from thesis_cli.privacy.mechanisms.stages import Unit
from thesis_cli.privacy.tables.expressions import Formula, read_columns
from thesis_cli.privacy.tables.schema import Schema

SCHEMA = Schema.parse(
    """
[columns.age]
type = "integer"
low = 18
high = 90
[columns.income]
type = "real"
low = 100
high = 100000
log = true
missing = true
[columns.debt]
type = "real"
low = -50
high = 50
[columns.region]
type = "category"
levels = ["north", "south", "west"]
missing = true
[columns.smoker]
type = "boolean"
[columns.born]
type = "date"
low = "1990-01-01"
high = "1990-12-31"
"""
)
BUDGETS = [Budget(1.0, 1e-5), Budget(1.0)]


def rows_of(count, seed):
    """Uniform rows, a third of which have values at their bounds."""
    rng = np.random.default_rng(seed)
    reals = rng.random((count, SCHEMA.reals))
    ends = rng.random(reals.shape) < 1 / 3
    reals[ends] = rng.integers(0, 2, int(ends.sum()))
    return Rows(reals, rng.integers(0, SCHEMA.cardinalities, (count, len(SCHEMA.cardinalities))))


class Kept:
    """Noise that remembers what it gets, and adds none."""

    def __init__(self, plan):
        self.real, self.vectors = plan.noise(), []

    def calibrate(self, size, l2_sensitivity, budget):
        return self.real.calibrate(size, l2_sensitivity, budget)

    def add(self, vector, l2_sensitivity, budget):
        self.vectors.append(vector)
        return Noised(vector, self.calibrate(vector.size, l2_sensitivity, budget))


def best(scores, scale, gaussian):
    return int(np.argmax(scores))


def without_noise(plan, rows, blocks=2):
    parts = np.array_split(np.arange(len(rows)), blocks)
    noise = Kept(plan)
    found = measured((rows[p] for p in parts), len(rows), plan, lambda *_: None, noise=noise, choose=best)
    return noise.vectors, found


def table(rows):
    return {name: value.data for name, value in read_columns(SCHEMA.columns, SCHEMA.decode(rows)).items()}


@pytest.mark.parametrize("budget", BUDGETS)
def test_without_noise_answers_are_those_of_the_table(budget):
    rows = rows_of(700, 1)
    t = table(rows)
    income, age, region, smoker = (t[name] for name in ("income", "age", "region", "smoker"))
    has, young = ~np.isnan(income), t["age"] < 40
    truth = {
        "mean(age)": [age.mean()],
        "mean(income)": [income[has].mean()],
        "mean(age + debt / 2, by=region)": [(age + t["debt"] / 2)[region == g].mean() for g in range(3)],
        "mean(age, where=smoker)": [age[smoker == 1].mean()],
        "count(age < 40, by=smoker)": [(young & (smoker == g)).sum() for g in range(2)],
        "prob(age < 40)": [young.mean()],
        "prob(smoker, by=region, where=age < 40)": [smoker[young & (region == g)].mean() for g in range(3)],
        "count(by=[region, smoker])": [((region == g) & (smoker == s)).sum() for g in range(3) for s in range(2)],
        "count(age < 40, by=[smoker])": [(young & (smoker == g)).sum() for g in range(2)],
        "mean(debt, by=[smoker, region])": [
            t["debt"][(region == g) & (smoker == s)].mean() for s in range(2) for g in range(3)
        ],
        "histogram(region)": [(region == g).sum() for g in range(3)],
        "histogram(debt, bins=4)": np.histogram(t["debt"], 4, (-50, 50))[0],
        "histogram(double, bins=4)": np.histogram(2 * t["debt"], 4, (-100, 100))[0],
    }
    plan = Plan(SCHEMA, budget, tuple(truth), ("double = 2 * debt",))
    _, found = without_noise(plan, rows)
    got = answers(plan, found)
    for query, values in truth.items():
        mine = [row for row in got if row.query == query]
        np.testing.assert_allclose([row.value for row in mine], values, rtol=1e-8, err_msg=query)
        assert all(row.low <= row.value <= row.high for row in mine)


@pytest.mark.parametrize("q", [0, 0.05, 0.5, 0.9, 1])
def test_without_noise_a_quantile_is_the_cell_of_that_of_the_table(q):
    rows = rows_of(3000, 2)
    t = table(rows)
    queries = f"quantile(age, {q})", f"quantile(income, {q})", f"quantile(debt, {q}, by=smoker)", f"quantile(born, {q})"
    plan = Plan(SCHEMA, Budget(100.0, 1e-5), queries)
    _, found = without_noise(plan, rows)
    data = [t["age"], t["income"][~np.isnan(t["income"])], *(t["debt"][t["smoker"] == g] for g in (0, 1)), t["born"]]
    steps = [0, 0.01 * 1e5, 0.2, 0.2, 0]
    for row, x, step in zip(answers(plan, found), data, steps, strict=True):
        true = np.quantile(x, q, method="inverted_cdf")
        assert row.value == pytest.approx(true, abs=max(step, 1e-9)), row
        assert row.low <= true <= row.high


SETS = [
    ("mean(age)",),
    ("mean(income)",),
    ("mean(debt, by=region)",),
    ("mean(debt, by=smoker)",),
    ("count(smoker)",),
    ("count(age > 30, by=region)",),
    ("histogram(age, bins=5)",),
    ("prob(smoker, by=region)",),
    ("count(by=[region, smoker])",),
    ("mean(debt, by=[region, smoker])",),
    ("mean(age)", "mean(income, weight=3)", "histogram(debt, bins=3)", "prob(smoker, where=age > 30, weight=0.5)"),
]


@pytest.mark.parametrize("queries", SETS, ids=lambda queries: queries[0] if len(queries) == 1 else "all")
@pytest.mark.parametrize("budget", BUDGETS, ids=["L2", "L1"])
def test_the_sensitivity_is_attained_and_never_exceeded(queries, budget):
    """Over all pairs of 200 rows, a third of whose values are at the bounds."""
    plan = Plan(SCHEMA, budget, queries)
    rows = rows_of(200, 3)
    vectors = []
    for i in range(len(rows)):
        sample = sample_of(SCHEMA, rows[np.array([i])], ())
        vectors.append(np.concatenate([part.sums(sample) for part in plan.parts]) / 2**40 * plan.factors)
    differences = np.array(vectors)[:, None] - np.array(vectors)[None]
    norms = np.abs(differences).sum(2) if plan.norm == 1 else np.sqrt((differences**2).sum(2))
    assert norms.max() <= plan.sensitivity(1)
    assert norms.max() >= (1 - 1e-9 if len(queries) == 1 else 0.8)
    assert plan.sensitivity(10**6) < 1 + 1e-6
    alone = np.linalg.norm(np.array(vectors), plan.norm, 1)
    assert alone.max() <= plan.sensitivity(1)  # so that a person may have fewer rows than they had


PERSONS = Unit("replace", 3)


@pytest.mark.parametrize("budget", BUDGETS, ids=["L2", "L1"])
def test_a_person_moves_sums_by_at_most_what_the_noise_is_for(budget):
    """All pairs of three rows or fewer, of 24 rows; sums are sums of those of rows."""
    plan = Plan(SCHEMA, budget, ("mean(debt, by=smoker)",), unit=PERSONS)
    rows = rows_of(24, 3)
    samples = [sample_of(SCHEMA, rows[np.array([i])], ()) for i in range(24)]
    each = np.stack([plan.parts[0].sums(sample) for sample in samples]) / 2**40 * plan.factors
    each = np.concatenate([each, np.zeros((1, each.shape[1]))])  # no row
    persons = np.unique([each[list(three)].sum(0) for three in combinations_with_replacement(range(25), 3)], axis=0)
    apart = max(float(np.linalg.norm(persons - one, plan.norm, 1).max()) for one in persons)
    assert 1 - 1e-9 < apart <= plan.sensitivity(None)


@pytest.mark.parametrize("budget", [*BUDGETS, Budget(0.01, 1e-9)])
def test_measurements_of_persons_stay_within_the_budget(budget):
    """Scores of quantiles of a person's rows move by up to 3, and in two groups."""
    queries = "mean(age)", "count(by=[region, smoker])", "count()", "median(income)", "quantile(age, 0.9, by=region)"
    plan = Plan(SCHEMA, budget, queries, unit=PERSONS)
    rows, spent = rows_of(50, 5), []
    found = measured([rows], None, plan, lambda *charge: spent.append(charge), noise=Kept(plan), choose=best)
    part = plan.quantiles[0]
    costs = [3 * p.touched * 3**plan.norm * choice_cost(plan.scale(p), plan.gaussian) for p in plan.quantiles]
    costs.append(found.mechanism.rho if plan.gaussian else found.mechanism.epsilon)
    total = zcdp_epsilon(math.fsum(costs), budget.delta) if plan.gaussian else math.fsum(costs)
    assert 0.9999 * budget.epsilon <= total <= budget.epsilon
    assert (found.promise.rows, "all rows of one person" in found.promise.neighbours) == (None, True)
    values = [row.value for row in answers(plan, found)]
    assert values[0] == pytest.approx(table(rows)["age"].mean(), rel=1e-6)  # a ratio of two noisy numbers
    assert values[7] == pytest.approx(50, rel=1e-6)
    rng, counts = np.random.default_rng(4), np.zeros(part.candidates)
    counts[::20] = 2
    for _ in range(100):
        other = counts.copy()
        other[rng.choice(np.flatnonzero(counts), 3, replace=False)] -= 1
        np.add.at(other, rng.integers(0, part.candidates, rng.integers(0, 4)), 1)
        for choice in CHOICES:
            assert np.abs(part.scores(counts, choice, 2.0) - part.scores(other, choice, 2.0)).max() <= 3.001
    with pytest.raises(ValueError, match="number of rows"):
        measured([rows], 50, plan, lambda *charge: None)


def test_whole_counts_are_rounded_and_not_negative():
    plan = Plan(SCHEMA, Budget(0.05), ("count(by=[region, smoker], whole=True)", "histogram(region, whole=True)"))
    rows = rows_of(30, 6)
    found = measured([rows], 30, plan, lambda *charge: None)
    values = [row.value for row in answers(plan, found)]
    assert all(value == int(value) >= 0 for value in values)
    assert min(found.vector) < 0  # the record keeps the noisy numbers


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("count()", "the number of all rows is public"),
        ("count(by=[])", "empty list"),
        ("count(by=[region, income])", "no public list of values"),
        ("count(by=[age, born, age])", "no public list of values"),
        ("count(by=[age, age, age])", "it has 389,017 groups"),
        ("prob(by=region)", "prob has 0 arguments"),
    ],
)
def test_tables_that_have_no_public_cells_are_refused(query, problem):
    with pytest.raises(InputError, match=problem):
        _ = Plan(SCHEMA, BUDGETS[0], (query,)).parts


@pytest.mark.parametrize(
    ("query", "norm"), [("mean(age, where=smoker)", 1), ("mean(age, where=smoker)", 2), ("mean(age, by=region)", 2)]
)
def test_a_count_beside_a_sum_has_the_largest_factor_that_costs_nothing(query, norm):
    """A row that leaves, to another group if there is one, moves sums and counts as far as one that moves
    from end to end.
    """
    (part,) = Plan(SCHEMA, BUDGETS[norm == 1], (query,)).parts
    leaves = np.linalg.norm(part.factors[:4], norm)
    assert part.sensitivity(norm) == pytest.approx(2)
    assert leaves == pytest.approx(2)


def test_a_replaced_row_moves_no_score_of_a_quantile_by_more_than_1():
    (part,) = Plan(SCHEMA, BUDGETS[0], ("quantile(age, 0.3)",)).parts
    rng, largest = np.random.default_rng(4), 0.0
    for _ in range(300):
        counts = rng.poisson(rng.choice([0.05, 1.0]), part.candidates).astype(float)
        counts[0] += 1
        other = counts.copy()
        other[rng.choice(np.flatnonzero(counts))] -= 1
        if rng.random() < 0.7:
            other[rng.integers(part.candidates)] += 1
        for choice in CHOICES:
            change = np.abs(part.scores(counts, choice, 2.0) - part.scores(other, choice, 2.0)).max()
            largest = max(largest, change)
            assert change <= part.sensitivity(2)
    assert largest >= 1 - 1e-9


@pytest.mark.parametrize("budget", [*BUDGETS, Budget(0.01, 1e-9), Budget(20.0)])
def test_all_mechanisms_together_stay_within_the_budget_and_use_it(budget):
    queries = "mean(age)", "count(smoker, by=region, weight=5)", "median(income)", "quantile(age, 0.9, by=region)"
    plan = Plan(SCHEMA, budget, queries)
    spent = []
    found = measured([rows_of(50, 5)], 50, plan, lambda *charge: spent.append(charge), noise=Kept(plan), choose=best)
    costs = [3 * part.touched * choice_cost(plan.scale(part), plan.gaussian) for part in plan.quantiles]
    costs.append(found.mechanism.rho if plan.gaussian else found.mechanism.epsilon)
    total = zcdp_epsilon(math.fsum(costs), budget.delta) if plan.gaussian else math.fsum(costs)
    assert 0.9999 * budget.epsilon <= total <= budget.epsilon
    assert spent == [(budget, pytest.approx(math.fsum(costs)) if plan.gaussian else None)]
    assert [part.touched for part in plan.quantiles] == [1, 2]
    assert costs[1] == pytest.approx(costs[0])  # equal weights


def test_a_weight_is_a_share_of_the_budget():
    one = Plan(SCHEMA, Budget(1.0), ("mean(age)", "mean(debt)"))
    more = Plan(SCHEMA, Budget(1.0), ("mean(age, weight=3)", "mean(debt)"))
    errors = [[found.error for found in expected(plan, 1000)] for plan in (one, more)]
    assert errors[1][0] == pytest.approx(errors[0][0] * 2 / 3)
    assert errors[1][1] == pytest.approx(errors[0][1] * 2)


@pytest.mark.parametrize("norm", [1, 2])
def test_intervals_cover_as_often_as_they_say(norm):
    """A count, the ratio of a mean and that of a share: 40,000 draws of the noise for each."""
    rng, law = np.random.default_rng(6), Law(norm, 2.5)
    x, y = rng.laplace(0, 2.5, (2, 40_000)) if norm == 1 else rng.normal(0, 2.5, (2, 40_000))
    covered = [np.abs(x) <= law.half]
    for a, b in ((1.0, 0.8), (1.0, 1.0), (0.3, -0.7), (1.0, 1e-4)):
        covered.append(law.plausible(a * x + b * y, np.full(len(x), a), np.full(len(x), b)))
    error = 5 * math.sqrt(LEVEL * (1 - LEVEL) / len(x))
    assert np.mean(covered, axis=1) == pytest.approx([LEVEL] * len(covered), abs=error)


def test_an_interval_of_a_ratio_has_the_plausible_ratios_and_no_others():
    rng, law = np.random.default_rng(7), Law(1, 1.0)
    for total, count in rng.normal(0, 6, (30, 2)).tolist():

        def form(theta, total=total, count=count):
            return total - theta * count, np.ones_like(theta), -theta

        low, high = ratio_interval(law, form, total / count, (-1.0, 1.0))
        grid = np.linspace(-1, 1, 5001)
        inside = grid[law.plausible(*form(grid))]
        if inside.size:
            assert low <= inside[0] + 1e-12
            assert high >= inside[-1] - 1e-12
            assert not law.plausible(*form(np.array([low - 1e-6])))[0] or low == -1
            assert not law.plausible(*form(np.array([high + 1e-6])))[0] or high == 1
        assert -1 <= low <= high <= 1


@pytest.mark.parametrize("budget", [Budget(2.0, 1e-5), Budget(2.0)], ids=["Gaussian", "Laplace"])
def test_answers_cover_the_table_under_seeded_noise(budget):
    """Each query over 30 draws of both noises: at most 7 misses, where 1.5 are expected."""
    rows, rng = rows_of(400, 8), np.random.default_rng(9)
    queries = "count(smoker)", "mean(age)", "mean(income, by=smoker)", "prob(age < 60, by=region)", "median(debt)"
    plan = Plan(SCHEMA, budget, queries)
    _, exact = without_noise(plan, rows)
    truth = [row.value for row in answers(plan, exact)]
    scale, (part,) = exact.mechanism.scale, plan.quantiles
    counts = part.sums(sample_of(SCHEMA, rows, ())).astype(float)
    misses = np.zeros(len(truth))
    for _ in range(30):
        noise = rng.normal(0, scale, len(exact.vector)) if plan.gaussian else rng.laplace(0, scale, len(exact.vector))
        choices = []
        for choice in exact.choices:
            scores = part.scores(counts, choice.choice, choice.scale) + rng.gumbel(0, choice.scale, part.candidates)
            choices.append(dataclasses.replace(choice, candidate=int(scores.argmax())))
        noisy = dataclasses.replace(exact, vector=tuple(np.array(exact.vector) + noise), choices=tuple(choices))
        found = answers(plan, noisy)
        misses += [not row.low <= value <= row.high for row, value in zip(found, truth, strict=True)]
    assert misses.max() <= 7
    assert misses.sum() > 0


def test_wide_intervals_are_no_better_than_guessing():
    plan = Plan(SCHEMA, Budget(1e-4), ("mean(age)", "count(smoker)", "median(income)", "prob(smoker, where=age > 30)"))
    _, found = without_noise(plan, rows_of(50, 10))
    assert {row.note for row in answers(plan, found)} == {"no better than guessing"}
    plan = Plan(SCHEMA, Budget(1e4), ("mean(age)", "count(smoker)", "median(age)"))
    _, found = without_noise(plan, rows_of(50, 10))
    assert {row.note for row in answers(plan, found)} == {""}


def with_vector(plan, found, vector):
    """Answers if these are the noisy numbers."""
    return answers(plan, dataclasses.replace(found, vector=tuple(vector)))


@pytest.mark.parametrize("budget", [Budget(1e-4, 1e-9), Budget(1e-4)], ids=["Gaussian", "Laplace"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_impossible_noisy_numbers_leave_the_whole_range(budget, sign):
    """The interval around them lies beyond the possible values, at a scale far above N."""
    queries = "count(smoker)", "mean(age)", "mean(income, by=smoker)", "prob(smoker, where=age > 30)"
    plan = Plan(SCHEMA, budget, queries)
    _, found = without_noise(plan, rows_of(50, 10))
    rows = with_vector(plan, found, np.full(len(plan.factors), 10 * found.mechanism.scale * sign))
    assert {row.note for row in rows} == {"no better than guessing"}
    assert [(row.low, row.high) for row in rows[:2]] == [(0, 50), (18, 90)]


def test_an_interval_of_an_impossible_number_is_that_of_the_nearest_possible_one():
    assert around(-30.0, 4.0, (0.0, 100.0)) == (-4.0, 4.0)
    assert around(101.0, 4.0, (0.0, 100.0)) == (96.0, 104.0)
    assert around(7.0, 4.0, (0.0, 100.0)) == (3.0, 11.0)
    plan = Plan(SCHEMA, Budget(1.0), ("count(smoker)", "prob(smoker, where=age > 30)"))
    _, found = without_noise(plan, rows_of(400, 10))
    far, factors = -10 * found.mechanism.scale, plan.factors
    count, share = with_vector(plan, found, [far, far, 400 * factors[2]])
    half = Law(1, found.mechanism.scale / factors[0]).half
    assert (count.value, count.low, count.high, count.note) == (0, 0, pytest.approx(half), "")
    half = Law(1, found.mechanism.scale / factors[2]).half
    assert (share.low, share.high) == (0, pytest.approx(half / 400, rel=0.1))


def test_scales_of_choices_are_the_least_that_the_map_of_opendp_allows():
    for gaussian in (True, False):
        for cost in (1e-6, 0.1, 3.0):
            scale = choice_scale(cost, gaussian)
            assert choice_cost(scale, gaussian) <= cost
            assert choice_cost(scale * (1 - 1e-9), gaussian) > cost


EXPRESSIONS = (
    *("age", "income", "-debt", "debt * debt", "debt ** 2", "debt ** 3", "age / 10", "1 / age", "income / age"),
    *("age // 7", "age % 7", "debt % age", "7 - age", "abs(debt)", "abs(debt + 100)", "exp(debt / 10)", "log(income)"),
    *("log(debt)", "sqrt(debt)", "sqrt(age)", "max(age, debt, 40)", "min(income, 300)", "clamp(1 / debt, -3, 3)"),
    *("2 ** age", "age ** 0.5", "debt ** 0", "income ** -1", "(age > 30) + smoker", "not smoker", "missing(income)"),
    *('region == "north"', 'region in ("north", "west")', "income > 200 or smoker", "-(debt ** 2)", "exp(debt * 1e6)"),
    "1 / debt",
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_lie_within_the_range_of_an_expression(text):
    columns = read_columns(SCHEMA.columns, SCHEMA.decode(rows_of(2000, 11)))
    formula = Formula(text)
    found = range_of(formula, formula.tree, column_ranges(SCHEMA))
    values = np.broadcast_to(formula.value(columns).data, 2000)
    assert found.gaps or not np.isnan(values).any()
    slack = 1e-12 * np.nanmax(np.abs(values), initial=1.0)
    assert np.nanmin(values) >= found.low - slack
    assert np.nanmax(values) <= found.high + slack


def test_what_has_no_public_bounds_asks_for_clamp():
    formula = Formula("1 / debt")
    with pytest.raises(InputError, match=r"write clamp\(1 / debt, low, high\)"):
        bounded_range(formula, formula.tree, column_ranges(SCHEMA))


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("sd(age)", "not a statistic"),
        ("max(age)", "is not released"),
        ("mean(region)", "number"),
        ("count(age)", "condition"),
        ("mean(1 / debt)", "clamp"),
        ("mean(age, by=debt)", "no public list"),
        ("mean(age, by=income)", "no public list"),
        ("quantile(age, 2)", "from 0 to 1"),
        ("histogram(age, bins=0)", "bins is 0"),
        ("mean(age, weight=0)", "above 0"),
        ("mean(age, where=age)", "condition"),
        ("median(7)", "one value only"),
        ("mean(nothing)", "unknown column"),
    ],
)
def test_queries_that_are_refused_before_the_table_is_read(query, match):
    with pytest.raises(InputError, match=match):
        assert Plan(SCHEMA, BUDGETS[0], (query,)).parts


def test_a_query_twice_and_a_table_of_another_length_are_refused():
    with pytest.raises(InputError, match="twice"):
        assert Plan(SCHEMA, BUDGETS[0], ("mean(age)", " mean(age)")).parts
    plan = Plan(SCHEMA, BUDGETS[0], ("mean(age)",))
    spent = []
    with pytest.raises(InputError):
        measured([rows_of(5, 1)], 6, plan, lambda *charge: spent.append(charge))
    assert spent == []


def test_values_outside_the_bounds_of_a_range_count_as_the_bounds():
    """The sum is private even if interval arithmetic were wrong."""
    (part,) = Plan(SCHEMA, BUDGETS[0], ("mean(age)",)).parts
    narrow = dataclasses.replace(part, range=dataclasses.replace(part.range, low=40, high=41))
    for i in range(20):
        found = narrow.sums(sample_of(SCHEMA, rows_of(1, i), ()))
        assert abs(int(found[0])) <= 2**40
    assert isinstance(part, type(narrow))
    assert not isinstance(part, Quantile)
