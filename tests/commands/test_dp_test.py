import csv
import json
import math
import os
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import thesis_cli
from tests.privacy.seeded_laplace import SeededLaplace
from thesis_cli.privacy.mechanisms.mechanism import Budget, Choice
from thesis_cli.privacy.release.files import parse_record, read_release
from thesis_cli.privacy.release.record import rows_text
from thesis_cli.privacy.release.release import ReleasePlan, implementation_of, private_record, synthetic
from thesis_cli.privacy.tables import table as privacy_table
from thesis_cli.privacy.tables.schema import Boolean, Integer, Real, Schema
from thesis_cli.studies.privacy.seeded import SeededGaussian

SCHEMA = Schema((Real("height", 1.0, 2.5), Boolean("smoker"), Integer("children", 0, 3)))
SMALL = Schema((Boolean("smoker"), Integer("children", 0, 3)))


@pytest.fixture
def dp(cli):
    """With a seed, unless one is given: a test at level 0.05 is wrong once in twenty times."""
    return lambda *arguments: cli("dp-test", *arguments, *(() if "--seed" in arguments else ("--seed", 0)))


def table(seed, count, shift=0.0):
    """Columns by name, of one population."""
    rng = np.random.default_rng(seed)
    return {
        "height": np.round(rng.normal(1.7 + shift, 0.15, count), 3),
        "smoker": rng.random(count) < 0.3,
        "children": rng.integers(0, 3, count),
    }


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return path


def write_release(path, method="features", noise="gaussian", weights="uniform", schema=SCHEMA, epsilon=2.0):
    """A release of 3000 rows with noise of a seeded generator."""
    rng = np.random.default_rng(1)
    size = {"features": 20, "subspace": 25, "exponential": 3}[method]
    request = ReleasePlan(schema, Budget(epsilon, 1e-5), method, noise, size, entropy=7)
    seeded = SeededGaussian(rng, "analytic") if noise == "gaussian" else SeededLaplace(rng)
    record = private_record(
        [schema.encode(table(0, 3000))],
        3000,
        request,
        lambda budget, rho: None,
        noise=seeded,
        choose=lambda scores, sensitivity, epsilon: Choice(int(scores.argmax()), 1.0, epsilon, "best"),
    )
    made = synthetic(record, 60, weights)
    path.write_text(rows_text(made, weighted=weights != "uniform"))
    path.with_suffix(".json").write_text(made.record.to_json())
    return made


def test_a_table_of_the_same_population_and_one_of_another(dp, tmp_path):
    write_release(tmp_path / "r.csv")
    write_csv(tmp_path / "same.csv", table(5, 500))
    write_csv(tmp_path / "shifted.csv", table(6, 500, 0.4))
    result = dp("r.csv", "same.csv")
    assert (result.status, result.err) == (0, "wrote results/runs/dp-test-r.csv\n")
    lines = result.out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["noisy mean", "permutation", "verdict", "cost"]
    assert lines[1].endswith("(released rows, a rough guide)")
    assert "no difference found (p = 0." in lines[2]
    assert lines[2].endswith("at level 0.05, by noisy mean)")
    shifted = dp("r.csv", "shifted.csv")
    assert shifted.status == 0
    assert "the populations differ (p <= 1e-05, at level 0.05, by noisy mean)" in shifted.out


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_what_the_tests_are_given(dp, tmp_path, monkeypatch, noise):
    from thesis_cli.privacy.query import two_sample

    made = write_release(tmp_path / "r.csv", noise=noise)
    other = table(5, 300)
    write_csv(tmp_path / "other.csv", other)
    kept = []

    def keeping(name):
        test = getattr(two_sample, name)

        def call(*arguments, **options):
            kept.append((arguments, options))
            return test(*arguments, **options)

        monkeypatch.setattr(two_sample, name, call)

    keeping("noisy_mean_test")
    keeping("permutation_test")
    assert dp("r.csv", "other.csv", "--permutations", 77).status == 0
    (features, (vector, scale, count, law), rows, _), _ = kept[0]
    record = parse_record((tmp_path / "r.json").read_text())
    assert features.frequencies.tolist() == implementation_of(record.method).features(record).frequencies.tolist()
    assert (vector.tolist(), count) == (list(record.output.vector), 3000)
    assert scale == record.mechanism.scale
    assert law == noise
    assert rows.reals.tolist() == SCHEMA.encode(other).reals.tolist()
    (kernel, points, rows, permutations, _), _ = kept[1]
    assert permutations == 77
    assert kernel.gamma.tolist() == list(record.kernel.gamma)
    np.testing.assert_allclose(points.reals[:, 0], made.points.reals[:, 0], atol=1e-5)
    assert points.codes.tolist() == made.points.codes.tolist()
    assert rows.codes.tolist() == SCHEMA.encode(other).codes.tolist()


def test_json_file_and_seed(dp, tmp_path):
    write_release(tmp_path / "r.csv")
    write_csv(tmp_path / "other.csv", table(5, 200, 0.02))
    found = json.loads(dp("r.csv", "other.csv", "--json", "--seed", 3, "--level", 0.999).out)
    assert (found["level"], found["differ"], found["seed"]) == (0.999, found["tests"][0]["p_value"] <= 0.999, 3)
    assert [test["test"] for test in found["tests"]] == ["noisy mean", "permutation"]
    for test in found["tests"]:
        assert test["mmd"] == math.sqrt(max(0, test["mmd_squared"]))
    assert [(test["rows"], test["other_rows"]) for test in found["tests"]] == [(3000, 200), (60, 200)]
    again = json.loads(dp("r.csv", "other.csv", "--json", "--seed", 3).out)
    assert again["tests"] == found["tests"]
    assert json.loads(dp("r.csv", "other.csv", "--json", "--seed", 4).out)["tests"] != found["tests"]
    with open(tmp_path / "results/runs/dp-test-r.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["test"] for row in rows] == ["noisy mean", "permutation"]
    python = thesis_cli.dp_test("r.csv", "other.csv", level=0.999, seed=3)
    assert (python.differ, python.facts()["tests"]) == (found["differ"], found["tests"])
    objects = thesis_cli.dp_test(read_release("r.csv"), pd.read_csv("other.csv"), level=0.999, seed=3)
    assert objects.table.equals(python.table)
    settings = json.loads((tmp_path / "results/runs/dp-test-r.json").read_text())["settings"]
    assert (settings["release"], settings["other"], settings["seed"]) == ("r.csv", "other.csv", 3)


@pytest.mark.parametrize(("method", "schema"), [("subspace", SCHEMA), ("exponential", SMALL)])
def test_other_methods_have_permutations_only(dp, tmp_path, method, schema):
    write_release(tmp_path / "r.csv", method, schema=schema, epsilon=100.0)
    write_csv(tmp_path / "other.csv", table(5, 100))
    result = dp("r.csv", "other.csv")
    assert result.status == 0
    assert f"a release by {method} has no vector of features: permutations only\n" in result.err
    assert [line.split("  ")[0] for line in result.out.splitlines()] == ["permutation", "verdict", "cost"]
    assert result.out.splitlines()[1].endswith("by permutation)")


def test_weights(dp, tmp_path):
    """Rows are drawn by them, so that a point of no weight counts for nothing; below 0 there is
    nothing to draw.
    """
    made = write_release(tmp_path / "r.csv", weights="simplex")
    far = SCHEMA.encode({"height": np.full(60, 2.5), "smoker": np.ones(60, bool), "children": np.full(60, 3)})
    weighted = replace(made, points=type(far).concatenate([made.points, far]))
    weighted = replace(weighted, weights=np.append(made.weights, np.zeros(60)))
    (tmp_path / "r.csv").write_text(rows_text(weighted, weighted=True))
    write_csv(tmp_path / "other.csv", table(5, 100))
    result = dp("r.csv", "other.csv", "--json")
    assert "permutations use 120 rows drawn by their weights\n" in result.err
    assert json.loads(result.out)["tests"][1]["p_value"] > 0.001
    (tmp_path / "r.csv").write_text(rows_text(weighted, weighted=False))
    assert json.loads(dp("r.csv", "other.csv", "--json").out)["tests"][1]["p_value"] < 0.001
    negative = replace(weighted, weights=weighted.weights - 1e-3)
    (tmp_path / "r.csv").write_text(rows_text(negative, weighted=True))
    result = dp("r.csv", "other.csv", "--json")
    assert "no permutations: rows with weights below 0 are no sample\n" in result.err
    assert [test["test"] for test in json.loads(result.out)["tests"]] == ["noisy mean"]


def test_a_raw_release_in_a_span_has_no_test(dp, tmp_path):
    write_release(tmp_path / "r.csv", "subspace", weights="raw", epsilon=0.1)
    write_csv(tmp_path / "other.csv", table(5, 100))
    result = dp("r.csv", "other.csv", "--quiet")
    assert (result.status, result.out) == (2, "")
    assert result.err == "error: rows with weights below 0 allow no permutations; give a release of plain rows\n"


def test_a_database_and_large_tables(dp, tmp_path):
    write_release(tmp_path / "r.csv")
    columns = table(5, 2500)
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE people (height REAL, smoker INTEGER, children INTEGER)")
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    connection.close()
    result = dp("r.csv", "sqlite:///t.db", "--query", "SELECT * FROM people", "--permutations", 9, "--json")
    found = json.loads(result.out)
    assert [(test["rows"], test["other_rows"]) for test in found["tests"]] == [(3000, 2500), (60, 2000)]
    assert "permutations use 2000 of the 2500 rows of the other table, drawn at random\n" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "other.csv"], "error: nowhere.json: the record of the release cannot be read"),
        (["r.csv", "nowhere.csv"], "error: nowhere.csv: no such file"),
        (["r.csv", "one.csv"], "error: one.csv: the table has one row"),
        (["r.csv", "empty.csv"], "error: empty.csv: the table has no rows"),
        (["r.csv", "narrow.csv"], "error: narrow.csv: the table has no column 'children'"),
        (["r.csv", "other.csv", "--level", "0"], "error: --level is 0; "),
        (["r.csv", "other.csv", "--permutations", "0"], "error: --permutations is 0; "),
        (["r.csv", "other.csv", "--out", "r.csv"], "error: --out r.csv would overwrite the input"),
        (["r.csv", "other.csv", "--out", "other.csv"], "error: --out other.csv would overwrite the input"),
        (["r.csv", "other.csv", "--query", "SELECT 1"], "error: other.csv: --query is for a database"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(dp, tmp_path, arguments, message):
    write_release(tmp_path / "r.csv", "exponential", schema=SMALL)
    columns = table(5, 20)
    write_csv(tmp_path / "other.csv", columns)
    write_csv(tmp_path / "one.csv", {name: column[:1] for name, column in columns.items()})
    write_csv(tmp_path / "empty.csv", {name: column[:0] for name, column in columns.items()})
    write_csv(tmp_path / "narrow.csv", {"smoker": columns["smoker"]})
    before = sorted(os.listdir(tmp_path))
    result = dp(*arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_no_password_is_written(dp, tmp_path):
    write_release(tmp_path / "r.csv", "exponential", schema=SMALL)
    result = dp("r.csv", "postgresql://me:secret@127.0.0.1:1/none?connect_timeout=2", "--query", "SELECT 1")
    assert result.status == 2
    assert "secret" not in result.err + result.out


def test_no_password_is_recorded(tmp_path, monkeypatch):
    """Nor shown, where the database answers."""
    made = write_release(tmp_path / "r.csv")
    frame = pd.DataFrame(table(5, 50))
    monkeypatch.setattr(privacy_table, "QueryTable", lambda url, query: privacy_table.FrameTable(frame))
    url = "postgresql://me:secret@127.0.0.1/none?password=secret"
    found = thesis_cli.dp_test(made, url, query="SELECT 1")
    assert found.settings["other"] == "postgresql://me:***@127.0.0.1/none?***"
    assert "secret" not in str(found.to_dict()) + found.summary() + repr(found)
    for path in found.save(tmp_path / "t.csv"):
        assert "secret" not in path.read_text()
