"""The command kernel-eval: its words, records, files and refusals."""

from __future__ import annotations

import csv
import json
import math

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
    assert lines["mean"] == "0"
    assert lines["points"] == "50 after 1 reduction by quantiles"
    assert lines["error"].startswith("error <= 0.00")
    assert lines["error"].endswith("in W1 and in the mean")
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["answers"]["mean"] == 0
    # of 2500 sums the two of a pair are equal, and 25 pairs may cancel, to the last bit or not
    assert 1250 <= record["reductions"][0]["before"] <= 50 * 51 / 2
    assert record["reductions"][0] | {"before": 0, "rkhs_error": 0, "wasserstein": 0} == {
        "place": "1:14",
        "operation": "+",
        "before": 0,
        "after": 50,
        "rkhs_error": 0,
        "wasserstein": 0,
    }
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["query"] for row in rows] == ["mean", "prob(> 0)"]
    assert float(rows[0]["error_bound"]) == record["wasserstein_bound"]
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
    with pytest.raises(InputError, match="the column 'region' is a category; use columns of numbers: age, income"):
        tc.kernel_eval("region + 1", table=RELEASE)
    with pytest.raises(InputError, match="unknown variable 'incom'; 'income' is nearest"):
        tc.kernel_eval("incom", table=RELEASE)


def test_no_bound_is_said_with_the_reason():
    found = tc.kernel_eval("let x = normal(0, 1) in x * x", size=20)
    assert "no bound: * at 1:27 is not Lipschitz" in found.summary()
    assert found.facts()["no_bound"].startswith("* at 1:27")
    assert math.isnan(found.columns["error_bound"][0])
    unbounded = tc.kernel_eval("2 * normal(0, 1)", size=20, bandwidth="2", kernel="laplace")
    assert unbounded.evaluated.kernel.bandwidth == 2


def test_conditioning_says_how_far_weights_were_changed():
    found = tc.kernel_eval("let x = normal(0, 1) given normal(x, 1) == 1 in x", size=30, query="mean")
    assert found.values[0] == pytest.approx(0.5, abs=0.05)
    assert ("weights" in found.summary()) == bool(found.evaluated.projected)


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
        ({"table": "none.csv"}, "none.json: the record of the release cannot be read"),
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
