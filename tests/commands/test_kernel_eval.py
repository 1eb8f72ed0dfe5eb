"""The command kernel-eval: its words, records, files and refusals."""

from __future__ import annotations

import csv
import json
import math

import pandas as pd
import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError

RELEASE = ROOT / "data" / "releases" / "people.csv"


def test_the_summary_and_the_record(cli, tmp_path):
    command = "kernel-eval", "normal(0, 1) + normal(0, 1)", "--query", "mean, prob(> 0)", "--size", 50
    result = cli(*command, "--out", "a.csv", "--points-out", "points.csv")
    assert result.status == 0, result.err
    lines = dict(line.split(maxsplit=1) for line in result.out.splitlines() if not line.startswith("prob"))
    value, sign, error = lines["mean"].split()
    assert abs(float(value)) < float(error) < 0.01
    assert sign == "+-"
    assert lines["points"] == "50 for 8,192 values"
    assert lines["error"].startswith("at most 0.0")
    assert lines["error"].endswith("in W1 and in the mean")
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["answers"]["prob(> 0)"] == pytest.approx(0.5, abs=1e-4)
    assert record["standard_errors"]["prob(> 0)"] < 1e-3
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["query"] for row in rows] == ["mean", "prob(> 0)"]
    assert float(rows[0]["error_bound"]) == record["wasserstein_bound"]
    assert float(rows[1]["standard_error"]) == record["standard_errors"]["prob(> 0)"]
    assert rows[1]["error_bound"] == ""
    points = list(csv.DictReader((tmp_path / "points.csv").open()))
    assert sum(float(row["weight"]) for row in points) == pytest.approx(1)
    again = cli(*command, "--points-out", "points.csv")
    assert again.status == 2
    assert "points.csv exists" in again.err


def test_two_expressions_are_compared():
    near = tc.kernel_eval("normal(0, 1) + normal(0, 1)", against="normal(0, sqrt(2))")
    far = tc.kernel_eval("normal(0, 1)", against="normal(2, 1)", bandwidth="1")
    # |mu - nu|^2 = 2 s / sqrt(s^2 + 2) (1 - exp(-d^2 / (2 (s^2 + 2)))) for normals of deviation 1.
    exact = math.sqrt(2 / math.sqrt(3) * (1 - math.exp(-4 / 6)))
    assert far.distance == pytest.approx(exact, abs=2e-3)
    assert near.distance < near.evaluated.rkhs_error + 1e-3
    assert "in the RKHS from normal(2, 1)" in far.summary()


def test_a_release_gives_the_answers_of_dp_query():
    """The push-forward of dp-query --define, with its weights and without rows that lack a value."""
    found = tc.kernel_eval("log(income)", table=RELEASE, query="mean", size=400)
    defined = tc.dp_query(RELEASE, ["mean(l)"], define=["l = log(income)"], replicates=0)
    assert found.values[0] == pytest.approx(defined.answers[0].rows[0].value, rel=1e-12)
    assert found.evaluated.share == pytest.approx(defined.answers[0].rows[0].share)
    assert "92 % of the weight has a value" in found.summary()
    exact = tc.dp_query(RELEASE, ['prob(region == "north")'], replicates=0).answers[0].rows[0].value
    assert tc.kernel_eval("region == 'north'", table=RELEASE, query="mean").values[0] == pytest.approx(exact, rel=1e-12)
    with pytest.raises(InputError, match="the column 'region' is a category; compare it with one of its levels"):
        tc.kernel_eval("region + 1", table=RELEASE)
    with pytest.raises(InputError, match="unknown variable 'incom'; 'income' is nearest"):
        tc.kernel_eval("incom", table=RELEASE)


def test_a_table_without_a_record_has_rows_of_equal_weight(tmp_path, cli):
    (tmp_path / "own.csv").write_text("x,kind,y\n1,a,2\n3,b,4\n5,a,\n")
    result = cli("kernel-eval", "if(kind == 'a', x, 10 * y)", "--table", "own.csv", "--query", "mean, prob(== 1)")
    assert result.status == 0, result.err
    assert "20.5" in result.out
    assert "3 rows of own.csv, 66.7 % of the weight has a value" in result.out
    frame = pd.DataFrame({"x": [1.0, 2.0], "kind": ["a", None]})
    assert tc.kernel_eval("2 * x", table=frame, query="mean").values[0] == 3
    assert tc.kernel_eval("x * (kind == 'a')", table=frame, query="mean").values[0] == 1
    (tmp_path / "empty.csv").write_text("x,y\n")
    assert "the table has no rows" in cli("kernel-eval", "x", "--table", "empty.csv").err
    (tmp_path / "infinite.csv").write_text("x,y\n1,2\n3,inf\n")
    infinite = cli("kernel-eval", "x", "--table", "infinite.csv")
    assert "infinite.csv: the column 'y' is infinite in row 2; numbers are finite" in infinite.err


def test_no_bound_is_said_with_the_reason():
    found = tc.kernel_eval("let x = normal(0, 1) in x * x", size=20)
    assert "no bound: * at 1:27 is not Lipschitz" in found.summary()
    assert found.facts()["no_bound"].startswith("* at 1:27")
    assert math.isnan(found.columns["error_bound"][0])
    unbounded = tc.kernel_eval("2 * normal(0, 1)", size=20, bandwidth="2", kernel="laplace")
    assert unbounded.evaluated.kernel.bandwidth == 2


def test_moments_that_may_be_infinite_are_unknown():
    """The mean of a Cauchy law, and the variance of a Lomax law of shape 2; those of 3 exist, if barely."""
    found = tc.kernel_eval("normal(0, 1) / normal(0, 1)", query="mean, sd, median, quantile(0.75)")
    assert [math.isnan(value) for value in found.values] == [True, True, False, False]
    assert found.values[3] == pytest.approx(1, abs=1e-5)
    assert found.facts()["answers"]["mean"] is None
    assert "mean            unknown" in found.summary()
    assert "tails           so heavy that moments may be infinite" in found.summary()
    wide, narrow = (tc.kernel_eval(f"exponential(1 / gamma({k}, 1))", query="mean, sd") for k in (2, 3))
    assert wide.values[0] == pytest.approx(1, abs=0.01)
    assert math.isnan(wide.values[1])
    assert narrow.values == pytest.approx((0.5, math.sqrt(0.75)), rel=0.02)
    for text in ("beta(0.01, 5)", "exp(normal(0, 1))", "bernoulli(0.001) * 1000"):  # bounded, or nearly
        assert not any(map(math.isnan, tc.kernel_eval(text, query="mean, sd").values))


def test_a_regression_is_named():
    found = tc.kernel_eval("let x = normal(0, 1) given sin(x) == 0.5, abs(x) < 1 in x", size=30, query="mean")
    assert found.values[0] == pytest.approx(math.pi / 6, abs=0.1)
    assert math.isnan(found.standard_errors[0])
    assert "given    a regression stands for the observation at 1:35: its bias is unknown" in found.summary()
    assert found.facts()["regressed"] == "1:35"
    exact = tc.kernel_eval("let x = normal(0, 1) given normal(x, 1) == 1 in x", size=30, query="mean")
    assert exact.values[0] == pytest.approx(0.5, abs=1e-4)
    assert "regression" not in exact.summary()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": "-1"}, "--bandwidth is -1; it must be median, or a number from 1e-150 to 1e150"),
        ({"bandwidth": "nan"}, "--bandwidth is nan"),
        ({"bandwidth": "1e300"}, "--bandwidth is 1e300"),
        ({"bandwidth": -2.5}, "--bandwidth is -2.5; it must be median, or a number from"),
        ({"bandwidth": "wide"}, "--bandwidth is wide"),
        ({"query": "max"}, "--query 1:1: 'max' is no query"),
        ({"size": 1}, "--size is 1"),
        ({"against": "x"}, "1:1: unknown variable 'x'"),
        ({"table": "none.csv"}, "none.csv: no such file"),
        ({"points_out": "points.txt"}, "--points-out"),
    ],
)
def test_refusals(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, OSError), match=message.replace("(", r"\(").replace(".", r"\.")):
        tc.kernel_eval("normal(0, 1)", **options)


def test_the_figure_is_drawn():
    figure = tc.kernel_eval("normal(0, 1)", size=20).figure()
    left, right = figure.axes
    assert left.get_xlabel() == right.get_xlabel() == "value x"
    assert left.lines[0].get_ydata()[-1] == pytest.approx(1)
    # The embedding of a normal is a bell whose top is at the mean.
    embedding = right.lines[0]
    assert abs(embedding.get_xdata()[embedding.get_ydata().argmax()]) < 0.1
