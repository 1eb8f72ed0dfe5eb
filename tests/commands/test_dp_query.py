import json
import os
import re
import sqlite3
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import thesis_cli
from tests.privacy.query.test_query import PROMISE, release, table, write_release
from thesis_cli.base.errors import InputError
from thesis_cli.commands.figures.releases import columns_figure, histograms_figure
from thesis_cli.privacy.query.query import Answer, AnswerRow, histogram_bins
from thesis_cli.privacy.release.record import rows_text
from thesis_cli.privacy.tables.columns import Integer, Real
from thesis_cli.privacy.tables.schema import Schema


@pytest.fixture(autouse=True)
def released(tmp_path):
    """In the folder where the program runs."""
    write_release(tmp_path / "r.csv")


def test_summary_file_and_record(cli, tmp_path):
    result = cli("dp-query", "r.csv", "mean(age)", "mean(wage, by=region)", "histogram(married)", "count(True)")
    assert (result.status, result.err) == (0, "wrote results/runs/dp-query-r.csv\n")
    t = table(release())
    width = len("mean(wage, by=region)  ")
    lines = result.out.splitlines()
    assert lines[0] == f"{'mean(age)':<{width}}= {t.age.mean():.6g}"
    assert lines[1].strip() == "mean(wage, by=region)"
    north = t[t.region == "north"].wage
    assert lines[2] == f"{'  north':<{width}}= {north.mean():.6g}  (of {north.count() / 4:.3g}% of the weight)"
    assert lines[5] == f"{'  nowhere':<{width}}= undefined  (of 0% of the weight)"
    assert lines[6] == f"{'histogram(married)':<{width}}(of {t.married.count() / 4:.3g}% of the weight)"
    assert lines[9] == f"{'count(True)':<{width}}= 1000"
    promise = "from 400 released rows, for N = 1,000 private ones: epsilon = 1, delta = 1e-06 (replace one row)"
    assert lines[10] == f"{'estimates':<{width}}{promise}"

    found = pd.read_csv("results/runs/dp-query-r.csv", keep_default_na=False)
    assert list(found.columns) == ["query", "group", "statistic", "value", "share"]
    assert found.statistic.tolist() == ["mean"] * 5 + ["share"] * 2 + ["count"]
    assert found.group.tolist() == ["", "north", "south", "west", "nowhere", "False", "True", ""]
    record = json.loads((tmp_path / "results/runs/dp-query-r.json").read_text())
    queries = ["mean(age)", "mean(wage, by=region)", "histogram(married)", "count(True)"]
    assert record["settings"] == {"release": "r.csv", "queries": queries, "define": None, "replicates": 0}
    assert (record["promise"], record["weights"]) == (PROMISE, None)
    python = thesis_cli.dp_query("r.csv", queries)
    assert python.columns.csv() == (tmp_path / "results/runs/dp-query-r.csv").read_text()
    assert python.summary().splitlines() == lines[:12]


def test_json_of_weights_that_are_no_distribution(cli, tmp_path):
    made = write_release(tmp_path / "w.csv", weights="raw")
    result = cli("dp-query", "w.csv", "prob(age > 40)", "--json", "-q")
    found = json.loads(result.out)
    assert result.err == ""
    assert found["promise"] == PROMISE
    negative, total = (made.weights < 0).sum(), made.weights.sum()
    assert f"{negative} of 400 are negative, the sum is {total:.6g};" in found["weights"]
    assert found["answers"][0]["value"] == pytest.approx(made.weights[np.asarray(table(made).age > 40)].sum())
    assert f"weights         {negative} of 400 are negative" in cli("dp-query", "w.csv", "prob(age > 40)").out


def test_definitions_and_a_release_named_by_its_record(cli):
    arguments = ("--define", "hourly = wage / `hours per week`", "--define", "high = hourly > 10")
    found = json.loads(cli("dp-query", "r.json", "prob(high)", *arguments, "--json").out)
    t = table(release())
    expected = (t.wage / t["hours per week"]).dropna().gt(10).mean()
    assert found["answers"][0]["value"] == pytest.approx(expected)


def test_scores_of_a_holdout_are_for_the_terminal_alone(cli, tmp_path):
    (tmp_path / "real.csv").write_text(rows_text(release(seed=5), weighted=False))
    arguments = ("dp-query", "r.csv", "regress(hourly, age)", "classify(married, age)", "--holdout", "real.csv")
    arguments += ("--define", "hourly = wage / `hours per week`")
    result = cli(*arguments)
    assert result.out.count("(NOT PRIVATE)  ") == 8
    assert "  AUC on the holdout (NOT PRIVATE)" in result.out
    found = json.loads(cli(*arguments, "--json").out)
    assert len(found["holdout"]["not_private"]) == 8
    record = json.loads((tmp_path / "results/runs/dp-query-r.json").read_text())
    assert "real" not in json.dumps(record)
    assert "holdout" not in json.dumps(record)
    scored = (tmp_path / "results/runs/dp-query-r.csv").read_text()
    without = cli(*arguments[:4], *arguments[-2:])
    assert (tmp_path / "results/runs/dp-query-r.csv").read_text() == scored
    kept = [line.split() for line in result.out.splitlines() if "NOT PRIVATE" not in line]
    assert kept[:-1] == [line.split() for line in without.out.splitlines()[:-1]]


def test_python_takes_a_release_and_a_holdout_as_objects(tmp_path):
    made, real = release(), pd.DataFrame(release(seed=5).columns)
    found = thesis_cli.dp_query(made, "regress(wage, age)", holdout=real)
    assert found.settings["release"] == "<Release>"
    assert found.answers[0].scored[0].statistic == "rows of the holdout"
    assert found.to_dict()["holdout"]["not_private"][0]["value"] == real.wage.notna().sum()
    for path in found.save(tmp_path / "q.csv"):
        assert "holdout" not in path.read_text()
    with pytest.raises(InputError, match="histogram"):
        found.figure()
    with pytest.raises(InputError, match="<int> is no release"):
        thesis_cli.dp_query(7, "mean(age)")


def test_a_holdout_in_a_database(cli, tmp_path):
    frame = pd.DataFrame(release(seed=5).columns)
    with sqlite3.connect(tmp_path / "real.db") as base:
        frame.to_sql("real", base)
    arguments = ("dp-query", "r.csv", "regress(wage, age)", "--json", "--holdout", "sqlite:///real.db")
    found = json.loads(cli(*arguments, "--holdout-query", "SELECT * FROM real WHERE age > 50").out)
    rows = found["holdout"]["not_private"][0]
    assert (rows["statistic"], rows["value"]) == ("rows of the holdout", frame.wage[frame.age > 50].count())


def test_a_figure_from_the_release_alone(cli, tmp_path):
    queries = ("histogram(wage, where=age > 30)", "histogram(region)", "histogram(wage)")
    result = cli("dp-query", "r.csv", *queries, "--figure", "figures/f.png")
    folder, _, *drawn = result.err.splitlines()
    assert (folder, drawn) == ("making the folder figures", ["wrote figures/f.pdf", "wrote figures/f.png"])
    first = (tmp_path / "figures/f.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    cli("dp-query", "r.csv", *queries[:2], "--figure", "figures/f.png", "--overwrite")
    assert (tmp_path / "figures/f.png").read_bytes() != first


def test_a_dollar_in_a_figure_is_no_formula(cli, tmp_path):
    for kind in ("csv", "json"):
        file = tmp_path / f"r.{kind}"
        text = re.sub(r',\n "sha256": "\w+"', "", file.read_text())  # as of an earlier version
        file.write_text(text.replace("hours per week", "$ per $x^$").replace("north", "$_{$"))
    assert cli("dp-query", "r.csv", "histogram(`$ per $x^$`)", "histogram(region)", "--figure", "f.png").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "mean(age)"], "error: nowhere.json: the record of the release cannot be read"),
        (["alone.csv", "mean(age)"], "error: alone.json: the record of the release cannot be read"),
        (["bare.csv", "mean(age)"], "error: bare.json: promise.epsilon is missing"),
        (["r.csv"], "error: QUERIES is missing"),
        (["r.csv", "mean(agee)"], "error: mean(agee): unknown column 'agee'; 'age' is nearest"),
        (["r.csv", "mean(age"], "error: mean(age: it cannot be read at '(age'"),
        (["r.csv", "mean(x)", "--define", "x"], "error: 'x' is not a definition"),
        (["r.csv", "mean(age)", "--out", "x.txt"], "error: --out x.txt"),
        (["r.csv", "mean(age)", "--out", "r.csv"], "error: --out r.csv would overwrite the input"),
        (["r.csv", "mean(age)", "--out", "r.CSV"], "error: --out r.CSV would overwrite the input"),
        (["r.csv", "mean(age)", "--holdout-query", "x"], "error: --holdout-query is given without --holdout"),
        (["r.csv", "mean(age)", "--figure", "f.pdf"], "error: --figure f.pdf"),
        (["r.csv", "mean(age)", "--figure", "f.png"], "error: no query gives a figure"),
        (["r.csv", "mean(age)", "--holdout", "r.csv"], "error: --holdout has no model to score"),
        (["r.csv", "regress(age, wage)", "--holdout", "no.csv"], "error: no.csv: no such file"),
        (["r.csv", "regress(age, wage)", "--holdout", "other.csv"], "error: other.csv: the table has no column 'wage'"),
        (["r.csv", "regress(age, wage)", "--holdout", "empty.csv"], "error: empty.csv: the table has no rows"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    text = (tmp_path / "r.csv").read_text()
    (tmp_path / "alone.csv").write_text(text)
    (tmp_path / "bare.csv").write_text(text)
    record = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "bare.json").write_text(json.dumps(record | {"promise": {}, "sha256": None}))
    (tmp_path / "other.csv").write_text("age\n3\n")
    (tmp_path / "empty.csv").write_text(text.splitlines()[0] + "\n")
    before = sorted(os.listdir(tmp_path))
    result = cli("dp-query", *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_dates_are_printed_as_dates(tmp_path):
    text = "[columns.day]\ntype = 'date'\nlow = 2020-01-01\nhigh = 2021-12-31\n"
    (tmp_path / "s.toml").write_text(text)
    days = ["day", *("2020-03-01", "2021-05-01") * 50]
    (tmp_path / "t.csv").write_text("\n".join(days) + "\n")
    given = {"schema": tmp_path / "s.toml", "epsilon": 5, "delta": 1e-3, "size": 4, "rows": 9, "jobs": 1}
    release = thesis_cli.dp_release(tmp_path / "t.csv", method="subspace", **given)
    found = thesis_cli.dp_query(release, ["mean(day)", "sd(day)", "histogram(day, bins=2)"])
    with warnings.catch_warnings(action="error"):
        found.figure().savefig(tmp_path / "f.png", dpi=20)
        release.figure().savefig(tmp_path / "r.png", dpi=20)
    shown = dict(found.lines())
    assert re.match(r"= 202[01]-\d\d-\d\d(  \(20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d\))?", shown["mean(day)"])
    assert re.match(r"= [\d.]+", shown["sd(day)"])
    table = found.table
    assert table["date"][0] == str(np.datetime64(round(table["value"][0]), "D"))
    assert set(table["date"][1:]) == {""}


def test_figures_show_ratios_and_intervals():
    bins = [AnswerRow("histogram(age)", "", "share", 0.5, 1.0, low=low, high=0.75) for low in (0.25, 0.375)]
    (panel,) = histograms_figure([Answer("histogram(age)", tuple(bins), subject="age", edges=np.arange(3.0))]).axes
    intervals = [line.tolist() for line in panel.collections[0].get_segments()]
    assert intervals == [[[0.5, 0.25], [0.5, 0.75]], [[1.5, 0.375], [1.5, 0.75]]]
    levels = histograms_figure([Answer("histogram(region)", tuple(bins), subject="region")]).axes[0]
    assert [line[:, 0].tolist() for line in levels.collections[0].get_segments()] == [[0.25, 0.75], [0.375, 0.75]]

    made = release()
    wage = Real("wage", 10.0, 10_000.0, missing=True, log=True)
    columns = tuple(wage if x.name == "wage" else x for x in made.schema.columns)
    made = replace(made, schema=replace(made.schema, columns=columns))
    (axes,) = [x for x in columns_figure(made).axes if x.get_xlabel().startswith("wage")]
    assert axes.get_xscale() == "log"
    starts = np.array([bar.get_x() for bar in axes.patches])
    np.testing.assert_allclose(starts[1:] / starts[:-1], 1000 ** (1 / len(starts)))


def test_the_last_bin_of_whole_numbers_ends_at_the_bound():
    edges, labels = histogram_bins(Schema((Integer("age", 18, 90),)), "age", np.array([18.0, 90.0]), 8, "")
    assert (labels[0], labels[-1]) == ("18 to 27", "88 to 90")
    assert edges.tolist() == [*np.arange(17.5, 88, 10), 90.5]
