import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu

from tests.privacy.release.test_record import record_of
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.query import regression
from thesis_cli.privacy.query.query import MOST_BINS, ask
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.privacy.release.files import record_path
from thesis_cli.privacy.release.record import PrivacyGuarantee, Release, rows_text
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema

SCHEMA = Schema(
    (
        Real("wage", 0, 2000, missing=True),
        Integer("age", 18, 80),
        Category("region", ("north", "south", "west", "nowhere")),
        Category("school", ("low", "mid", "high"), ordered=True, missing=True),
        Boolean("married", missing=True),
        Real("hours per week", 0, 80),
    )
)
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "replace one row", "rows": 1000}


def release(rows=400, seed=0, weights="uniform"):
    """A release where wages rise with age, hours and school, and some values are missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 81, rows)
    hours = rng.uniform(10, 60, rows)
    school = rng.integers(0, 3, rows)
    wage = np.clip(5 * age + 4 * hours + 100 * school + rng.normal(0, 60, rows), 0, 2000)
    wage[rng.random(rows) < 0.1] = np.nan
    columns = {
        "wage": wage,
        "age": age,
        "region": rng.choice(SCHEMA.columns[2].levels[:3], rows),
        "school": np.where(rng.random(rows) < 0.1, "", np.array(["low", "mid", "high"])[school]),
        "married": np.where(
            rng.random(rows) < 0.1, "", np.where(rng.random(rows) < expit((age - 40) / 9), "yes", "no")
        ),
        "hours per week": hours,
    }
    given = {
        "uniform": np.full(rows, 1 / rows),
        "simplex": rng.dirichlet(np.ones(rows)),
        "raw": rng.normal(0.9, 1.2, rows) / rows,
    }[weights]
    record = record_of(SCHEMA, promise=PrivacyGuarantee(**PROMISE))
    return Release(SCHEMA, SCHEMA.encode(columns), given, record)


def write_release(path, **options):
    """Write the CSV file of a release at `path`, and its record."""
    made = release(**options)
    path.write_text(rows_text(made, weighted=options.get("weights", "uniform") != "uniform"))
    record_path(path).write_text(made.record.to_json())
    return made


def table(made):
    """The decoded columns and the weights as a DataFrame."""
    frame = pd.DataFrame(made.columns).convert_dtypes()
    frame["w"] = made.weights
    return frame


def numbers(made, query, **options):
    found = ask(WeightedSample.of_release(made), query, PROMISE["rows"], **options).rows
    return found[0].value if len(found) == 1 else {f.group or f.statistic: f.value for f in found}


# Statistics


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("mean(wage)", lambda t: t.wage.mean()),
        ("mean(married)", lambda t: t.married.mean()),
        ("mean(log(wage - 300))", lambda t: np.log(t.wage[t.wage > 300] - 300).mean()),
        ("mean(wage, where=age > 40)", lambda t: t.wage[t.age > 40].mean()),
        ("mean(wage / `hours per week`)", lambda t: (t.wage / t["hours per week"]).mean()),
        ("sd(wage)", lambda t: t.wage.std(ddof=0)),
        ("var(wage, where=married)", lambda t: t.wage[t.married.fillna(False)].var(ddof=0)),
        ("median(`hours per week`)", lambda t: np.quantile(t["hours per week"], 0.5, method="inverted_cdf")),
        ("quantile(wage, 0.9)", lambda t: np.quantile(t.wage.dropna().astype(float), 0.9, method="inverted_cdf")),
        ("quantile(age, 0)", lambda t: t.age.min()),
        ("quantile(age, 1)", lambda t: t.age.max()),
        ("corr(wage, age)", lambda t: t.wage.corr(t.age)),
        ("prob(age > 40 and region == 'south')", lambda t: ((t.age > 40) & (t.region == "south")).mean()),
        ("prob(married, where=not missing(wage))", lambda t: t.married[t.wage.notna()].mean()),
        ("count(married)", lambda t: 1000 * t.married.fillna(False).mean()),
        ("count(married, where=age > 40)", lambda t: 1000 * (t.married.fillna(False) & (t.age > 40)).mean()),
        ("count(True)", lambda t: 1000),
        ("mean(wage, by=region)", lambda t: t.groupby("region").wage.mean().to_dict() | {"nowhere": math.nan}),
        ("prob(age < 30, by=school)", lambda t: (t.age < 30).groupby(t.school).mean().to_dict()),
        ("sd(age, by=married)", lambda t: {str(k): g.age.std(ddof=0) for k, g in t.groupby("married")}),
        (
            "mean(age, by=age // 20, where=age < 40)",
            lambda t: {k: t.age[(t.age < 40) & (t.age // 20 == int(k))].mean() for k in "01"},
        ),
        ("mean(wage, by=age // 20)", lambda t: {str(k): g.wage.mean() for k, g in t.groupby(t.age // 20)}),
        (
            "quantile(age, 0.25, by=region, where=region in ('north', 'west'))",
            lambda t: {
                "south": math.nan,
                "nowhere": math.nan,
                **{k: np.quantile(t.age[t.region == k], 0.25, method="inverted_cdf") for k in ("north", "west")},
            },
        ),
        ("count(age > 60, by=region)", lambda t: (1000 * (t.age > 60)).groupby(t.region).sum().div(400).to_dict()),
    ],
)
def test_statistics_are_those_of_pandas(query, expected):
    made = release()
    found, wanted = numbers(made, query), expected(table(made))
    if query.startswith("count(age > 60"):
        wanted["nowhere"] = 0
    assert found == pytest.approx(wanted, nan_ok=True, rel=1e-12)


@pytest.mark.parametrize("weights", ["simplex", "raw"])
def test_weights_are_as_they_are_in_expectations_and_a_distribution_in_all_else(weights):
    made = release(weights=weights)
    t = table(made)
    w, p = t.w, np.maximum(t.w, 0)
    assert numbers(made, "mean(age)") == pytest.approx((w * t.age).sum())
    assert numbers(made, "prob(age > 40)") == pytest.approx(w[t.age > 40].sum())
    assert numbers(made, "prob(True)") == pytest.approx(w.sum())
    assert numbers(made, "count(age > 40)") == pytest.approx(1000 * w[t.age > 40].sum())
    south, present = t.region == "south", t.wage.notna()
    assert numbers(made, "mean(age, where=region == 'south')") == pytest.approx(
        (w * t.age)[south].sum() / w[south].sum()
    )
    assert numbers(made, "mean(wage)") == pytest.approx((w * t.wage)[present].sum() / w[present].sum())
    mean = np.average(t.age, weights=p)
    assert numbers(made, "var(age)") == pytest.approx(np.average((t.age - mean) ** 2, weights=p))
    covariance = np.cov(t.age, t["hours per week"], aweights=p)
    expected = covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])
    assert numbers(made, "corr(age, `hours per week`)") == pytest.approx(expected)
    ordered = t[["age"]].assign(p=p / p.sum()).sort_values("age")
    assert numbers(made, "median(age)") == ordered.age[ordered.p.cumsum() >= 0.5].iloc[0]
    histogram = numbers(made, "histogram(region)")
    assert histogram == pytest.approx({**(p.groupby(t.region).sum() / p.sum()).to_dict(), "nowhere": 0})


def test_the_share_of_weight_that_a_number_is_from():
    made = release(weights="raw")
    t = table(made)
    sample, size = WeightedSample.of_release(made), np.abs(made.weights)
    for query, used in [
        ("mean(age)", np.ones(len(t), bool)),
        ("mean(wage)", t.wage.notna()),
        ("sd(wage, where=age > 40)", t.wage.notna() & (t.age > 40)),
        ("histogram(wage)", t.wage.notna()),
        ("regress(wage, age, school)", t.wage.notna() & t.school.notna()),
    ]:
        expected = size[np.asarray(used, bool)].sum() / size.sum()
        for found in ask(sample, query, 1000).rows:
            assert found.share == pytest.approx(expected)


# Histograms


def test_bins_are_of_the_public_bounds():
    made = release()
    answer = ask(WeightedSample.of_release(made), "histogram(wage, bins=4, where=age > 30)", 1000)
    t = table(made)
    np.testing.assert_allclose(answer.edges, [0, 500, 1000, 1500, 2000])
    counts = np.histogram(t.wage[(t.age > 30) & t.wage.notna()].astype(float), answer.edges)[0]
    np.testing.assert_allclose([f.value for f in answer.rows], counts / counts.sum())
    assert [f.group for f in answer.rows] == ["0 to 500", "500 to 1000", "1000 to 1500", "1500 to 2000"]
    assert (answer.subject, answer.condition) == ("wage", "age > 30")


@pytest.mark.parametrize(("bins", "width"), [(8, 8), (63, 1), (100, 1), (1, 63), (10, 7)])
def test_bins_of_whole_numbers_hold_as_many_of_them(bins, width):
    made = release()
    answer = ask(WeightedSample.of_release(made), f"histogram(age, bins={bins})", 1000)
    assert len(answer.rows) <= bins
    assert answer.rows[0].group == ("18" if width == 1 else f"18 to {17 + width}")
    assert answer.rows[-1].group.endswith("80")
    assert set(np.diff(answer.edges)[:-1]) <= {width}
    assert (answer.edges[0], answer.edges[-1]) == (17.5, 80.5)
    age = table(made).age
    for i, found in enumerate(answer.rows):
        assert found.value == pytest.approx(((age - 18) // width == i).mean())


def test_bins_of_an_expression_are_of_the_released_range_and_those_of_levels_and_truth_of_all_there_are():
    made = release()
    sample, t = WeightedSample.of_release(made), table(made)
    answer = ask(sample, "histogram(2 * age, bins=3)", 1000)
    assert (answer.edges[0], answer.edges[-1]) == (2 * t.age.min(), 2 * t.age.max())
    assert sum(f.value for f in ask(sample, "histogram(3)", 1000).rows) == pytest.approx(1)
    shares = numbers(made, "histogram(school)")
    assert shares == pytest.approx(t.school.dropna().value_counts(normalize=True).to_dict())
    assert list(shares) == ["low", "mid", "high"]
    assert numbers(made, "histogram(married)")["True"] == pytest.approx(t.married.mean())


# Models


@pytest.mark.parametrize("weights", ["uniform", "raw"])
def test_regression_is_weighted_least_squares(weights):
    made = release(weights=weights)
    found = numbers(made, "regress(wage / 100, age, school, married, where=age < 70)")
    t = table(made)
    t = t[t.wage.notna() & t.school.notna() & t.married.notna() & (t.age < 70)]
    x = np.column_stack([np.ones(len(t)), t.age, t.school == "mid", t.school == "high", t.married.astype(bool)]).astype(
        float
    )
    y, roots = t.wage.to_numpy(float) / 100, np.sqrt(np.maximum(t.w.to_numpy(), 0))
    expected = np.linalg.lstsq(roots[:, None] * x, roots * y, rcond=None)[0]
    names = ["intercept", "age", "school = mid", "school = high", "married"]
    assert [found[name] for name in names] == pytest.approx(expected.tolist(), rel=1e-9)
    error = np.average((y - x @ expected) ** 2, weights=roots**2)
    assert found["RMSE in the release"] == pytest.approx(math.sqrt(error))
    variance = np.average((y - np.average(y, weights=roots**2)) ** 2, weights=roots**2)
    assert found["R^2 in the release"] == pytest.approx(1 - error / variance)


def test_undetermined_directions_are_counted():
    found = numbers(release(), "regress(wage, age, 2 * age, region, 1e15 * `hours per week`)")
    assert found["directions not determined"] == 2  # of age twice, and of the level that no row has
    assert found["region = nowhere"] == 0
    assert found["1e15 * `hours per week`"] == pytest.approx(
        numbers(release(), "regress(wage, age, region, `hours per week`)")["`hours per week`"] / 1e15
    )


@pytest.mark.parametrize("weights", ["uniform", "raw"])
def test_classification_is_where_the_gradient_vanishes(weights):
    made = release(weights=weights)
    ridge = 0.01
    found = numbers(made, f"classify(married, age, school, region, ridge={ridge})")
    t = table(made)
    t = t[t.school.notna() & t.married.notna()]
    p = np.maximum(t.w.to_numpy(), 0)
    p = p / p.sum()
    x = np.column_stack(
        [t.age, t.school == "mid", t.school == "high", t.region == "south", t.region == "west", np.zeros(len(t))]
    ).astype(float)
    b = np.array(list(found.values()))
    residual = p * (expit(b[0] + x @ b[1:]) - t.married.to_numpy(bool))
    spread = np.average((x - np.average(x, axis=0, weights=p)) ** 2, axis=0, weights=p)
    assert abs(residual.sum()) < 1e-8
    np.testing.assert_allclose(residual @ x + ridge * spread * b[1:], 0, atol=1e-6)
    assert abs(found["age"]) > 0.01
    assert found["region = nowhere"] == 0


def test_numbers_of_any_size():
    """exp(5 * 69) is just below 1e150, beyond which numbers are missing, so that no square
    overflows.
    """
    made, real = release(), release(rows=300, seed=1)
    sample, judge = WeightedSample.of_release(made), WeightedSample.of_rows(SCHEMA, real.points)
    share = (table(made).age <= 69).mean()
    for query in ("mean(exp(5 * age))", "sd(exp(5 * age))", "corr(exp(5 * age), exp(0 - 5 * age))"):
        [found] = ask(sample, query, 1000).rows
        assert math.isfinite(found.value)
        assert found.share == pytest.approx(share)
    expected = numbers(made, "corr(age, `hours per week`)")
    for factor in ("1e-100", "1e100"):
        assert numbers(made, f"corr({factor} * age, {factor} * `hours per week`)") == pytest.approx(expected)
    assert sum(numbers(made, "histogram(exp(5 * age))").values()) == pytest.approx(1)
    for query in ("regress(exp(5 * age), wage)", "regress(wage, exp(5 * age))", "classify(married, exp(5 * age))"):
        answer = ask(sample, query, 1000, judge)
        assert all(math.isfinite(f.value) for f in answer.rows + answer.scored)


def test_a_column_that_separates_the_classes_is_no_trouble():
    found = numbers(release(), "classify(age > 40, age, 5, `hours per week`)")
    assert 0.1 < found["age"] < 100
    assert found["5"] == pytest.approx(0, abs=1e-12)


def test_scores_on_a_holdout():
    made, real = release(), release(rows=300, seed=1)
    t = table(real)
    sample, judge = WeightedSample.of_release(made), WeightedSample.of_rows(SCHEMA, real.points)
    answer = ask(sample, "regress(wage, age, `hours per week`, school)", 1000, judge)
    b = {f.group: f.value for f in answer.rows if f.statistic == "coefficient"}
    kept = t[t.wage.notna() & t.school.notna()]
    predicted = b["intercept"] + b["age"] * kept.age + b["`hours per week`"] * kept["hours per week"]
    predicted += kept.school.map({"low": 0, "mid": b["school = mid"], "high": b["school = high"]}).astype(float)
    scores = {f.statistic: f.value for f in answer.scored}
    error = ((kept.wage - predicted) ** 2).mean()
    assert scores["rows of the holdout"] == len(kept) < 300
    assert scores["RMSE on the holdout"] == pytest.approx(math.sqrt(error))
    assert scores["R^2 on the holdout"] == pytest.approx(1 - error / kept.wage.var(ddof=0))
    assert scores["R^2 on the holdout"] > 0.5
    assert answer.scored[0].share == pytest.approx(len(kept) / 300)

    answer = ask(sample, "classify(married, age)", 1000, judge)
    b = {f.group: f.value for f in answer.rows}
    kept = t[t.married.notna()]
    y, p = kept.married.astype(bool), expit(b["intercept"] + b["age"] * kept.age.astype(float))
    scores = {f.statistic: f.value for f in answer.scored}
    assert scores["accuracy on the holdout"] == pytest.approx(((p > 0.5) == y).mean())
    assert scores["accuracy of a constant on the holdout"] == pytest.approx(max(y.mean(), 1 - y.mean()))
    assert scores["AUC on the holdout"] == pytest.approx(mannwhitneyu(p[y], p[~y]).statistic / (y.sum() * (~y).sum()))
    assert scores["log loss on the holdout"] == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean())


def test_scores_that_are_not_defined():
    assert math.isnan(regression.classification_scores(np.ones(3), np.zeros(3))["AUC"])
    assert math.isnan(regression.regression_scores(np.ones(3), np.zeros(3))["R^2"])


# Definitions, and functions of a release


def test_definitions_build_on_each_other():
    sample = (
        WeightedSample.of_release(release()).define("hourly = wage / `hours per week`").define("`is high`=hourly>10")
    )
    t = table(release())
    hourly = (t.wage / t["hours per week"]).dropna()
    assert ask(sample, "mean(hourly)", 1).rows[0].value == pytest.approx(hourly.mean())
    assert ask(sample, "prob(`is high`)", 1).rows[0].value == pytest.approx((hourly > 10).mean())
    assert ask(sample.define("one = 1"), "mean(one, by=region)", 1).rows[0].value == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hourly", "'hourly' is not a definition; write it as in 'hourly = wage / 40'"),
        ("hourly == wage", "not a definition"),
        ("= wage", "not a definition"),
        ("age = wage", "there is a column 'age' already"),
        ("hourly = wagee", "unknown column 'wagee'; 'wage' is nearest"),
        ("hourly = ", "it cannot be read"),
    ],
)
def test_bad_definitions(text, message):
    with pytest.raises(InputError, match=r"^[^\n]*$") as error:
        WeightedSample.of_release(release()).define(text)
    assert message in str(error.value)


# Bad queries


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("age", "it is not a statistic; use one of mean, var, sd, median,"),
        ("mean(age) + 1", "it is not a statistic"),
        ("men(age)", "'men' is not a statistic; 'mean' is nearest"),
        ("max(age)", "'max' is not a statistic; an extreme depends on one row"),
        ("mean()", "mean has 0 arguments; write mean(x, where=..., by=...)"),
        ("corr(age)", "corr has 1 arguments"),
        ("mean(age, 3)", "mean has 2 arguments"),
        ("regress(age)", "regress has 1 arguments; write regress(y, x, ..., where=...)"),
        ("prob(age = 4)", "unknown keyword 'age' (== compares)"),
        ("mean(age, **age)", "unknown keyword '**'"),
        ("histogram(age, by=region)", "unknown keyword 'by'"),
        ("mean(agee)", "mean(agee): unknown column 'agee'; 'age' is nearest"),
        ("mean(region)", "region is a category; it must be a number"),
        ("quantile(region, 0.5)", "region is a category"),
        ("regress(region, age)", "region is a category"),
        ("classify(age, wage)", "age is a number; it must be a condition"),
        ("prob(age)", "age is a number; it must be a condition"),
        ("mean(age, where=wage)", "wage is a number; it must be a condition"),
        ("quantile(age, 1.5)", "q is 1.5; it must be from 0 to 1"),
        ("quantile(age, age)", "q is age; it must be a number"),
        ("quantile(age, 0 / 0)", "q is 0 / 0; it must be a number"),
        ("histogram(age, bins=0)", f"bins is 0; it must be a whole number from 1 to {MOST_BINS:,}"),
        ("histogram(age, bins=1e12)", "bins is 1e+12; it must be a whole number"),
        ("histogram(age, bins=2.5)", "bins is 2.5; it must be a whole number"),
        (
            "mean(age, by=`hours per week`)",
            "`hours per week` has 400 values; it must be a category or have at most 100",
        ),
        ("mean(age, where=age > 80)", "no released rows of positive weight are left"),
        ("histogram(age, where=age > 80)", "no released rows of positive weight are left"),
        ("sd(age, where=age > 80)", "no released rows of positive weight are left"),
        ("regress(wage, age, where=age > 80)", "no released rows of positive weight are left"),
        ("mean(log(0 - age))", "no released rows of positive weight are left"),
        ("mean(age / 0)", "no released rows of positive weight are left"),
        ("classify(age > 0, wage)", "the condition is the same in all released rows"),
        ("classify(married, age, ridge=0)", "ridge is 0; it must be above 0"),
    ],
)
def test_bad_queries(query, message):
    with pytest.raises(InputError, match=r"^[^\n]*$") as error:
        numbers(release(), query)
    assert message in str(error.value)


def test_weights_that_leave_nothing():
    made = release()
    negative = dataclasses.replace(made, weights=-made.weights)
    assert numbers(negative, "mean(age)") == pytest.approx(-numbers(made, "mean(age)"))
    for query in ("mean(age, where=age > 40)", "sd(age)", "histogram(age)"):
        with pytest.raises(InputError, match="no released rows of positive weight"):
            numbers(negative, query)
    assert math.isnan(numbers(negative, "mean(age, by=region)")["south"])


def test_a_holdout_without_a_row_that_counts():
    made = release()
    judge = WeightedSample.of_rows(SCHEMA, made.points[np.array(table(made).age < 60, bool)])
    with pytest.raises(InputError, match="no rows of the holdout are left"):
        numbers(made, "regress(wage, age, where=age > 60)", holdout=judge)
