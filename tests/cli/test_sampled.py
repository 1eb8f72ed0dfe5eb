"""Continuous targets and matrices of factors on the command line."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LINE = ROOT / "data/models/line.csv"
LOG_Z = -139.737803519

OBJECT = """
import numpy as np
from thesis_cli.models.proposals import Normal

class Half:
    proposal = Normal(np.zeros(1), np.ones(1))

    def log_ratio(self, x):
        return {ratio}

    def bound(self, low, high):
        return {bound}

half = Half()
"""


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_the_evidence_of_a_regression(cli, tmp_path):
    command = "estimate-z", "--target", LINE, "--trick", "all", "--samples", 2000, "--exact", "--seed", 1, "--figure"
    result = cli(*command, "--out", "z.csv")
    assert result.status == 0
    exact, *found = rows(tmp_path / "z.csv")
    assert float(exact["value"]) == pytest.approx(LOG_Z, abs=1e-8)
    assert len(found) == 6
    for row in found:
        assert abs(float(row["value"]) - LOG_Z) < 5 * float(row["standard_error"])
    assert "Cauchy regression of 100 points on x; prior scale 2.0, noise scale 1.0" in result.out
    assert "evaluations and" in result.out
    assert (tmp_path / "z.png").read_bytes().startswith(b"\x89PNG")
    assert cli(*command, "--out", "again.csv", "--jobs", 2).status == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "z.csv").read_bytes()


def test_scales_and_z_itself(cli, tmp_path):
    options = "--prior-scale", 0.5, "--noise-scale", 2, "--target", "Z", "--samples", 0, "--exact", "--json"
    told = json.loads(cli("estimate-z", "--target", LINE, *options).out)
    (exact,) = told["estimates"]
    table = np.genfromtxt(LINE, delimiter=",", skip_header=1)
    w = np.linspace(-5, 5, 200_001)
    log_prior = -((w / 0.5) ** 2) / 2 - math.log(0.5 * math.sqrt(2 * math.pi))
    phi = log_prior - sum(np.log1p(((y - x * w) / 2) ** 2) for x, y in table)
    integral = np.log(np.exp(phi - phi.max()).sum() * (w[1] - w[0])) + phi.max()
    log_z = math.log(exact["value"]) + exact["exponent10"] * math.log(10)
    assert log_z == pytest.approx(integral, abs=1e-8)


def test_samples_of_a_posterior(cli, tmp_path):
    result = cli("sample", "--target", LINE, "--count", 2000, "--seed", 1, "--out", "w.csv", "--figure")
    assert result.status == 0
    w = np.array([float(row["x"]) for row in rows(tmp_path / "w.csv")])
    assert w.shape == (2000,)
    assert abs(w.mean() - 1.4445) < 5 * w.std() / math.sqrt(w.size)
    assert (tmp_path / "w.png").exists()


def test_pairs_of_coordinates_are_drawn(cli, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    table = np.column_stack((x, x @ [1, -1] + 0.1 * rng.normal(size=30)))
    np.savetxt(tmp_path / "two.csv", table, delimiter=",", header="a,b,y", comments="")
    result = cli("sample", "--target", "two.csv", "--count", 100, "--seed", 1, "--figure")
    assert result.status == 0
    assert list(rows(tmp_path / "results/runs/sample-two.csv")[0]) == ["a", "b"]
    assert (tmp_path / "results/runs/sample-two.png").exists()


def test_an_object_of_the_users_own(cli, tmp_path):
    ratio, bound = "0.0 if x[0] > 0 else -np.inf", "0.0 if high[0] > 0 else -np.inf"
    (tmp_path / "mine.py").write_text(OBJECT.format(ratio=ratio, bound=bound))
    result = cli("estimate-z", "--target", "mine:half", "--samples", 500, "--seed", 1, "--out", "z.csv")
    assert result.status == 0
    (row,) = rows(tmp_path / "z.csv")
    assert abs(float(row["value"]) - math.log(0.5)) < 5 * float(row["standard_error"])
    assert "continuous target in 1 dimensions" in result.out


def test_a_violated_bound_is_told_with_its_point(cli, tmp_path):
    (tmp_path / "loose.py").write_text(OBJECT.format(ratio="float(x[0])", bound="0.0"))
    result = cli("estimate-z", "--target", "loose.py:half", "--samples", 50, "--seed", 1)
    assert result.status in (1, 2)
    assert result.err.count("\n") == 1
    assert "bound" in result.err


def test_races(cli, tmp_path):
    terms = np.random.default_rng(0).normal(0, 0.01, (5, 2000))
    terms[1] += 0.001
    np.save(tmp_path / "terms.npy", terms)
    command = "estimate-z", "--factors", "terms.npy", "--samples", 500, "--delta", 0.05, "--exact", "--seed", 1
    told = json.loads(cli(*command, "--json").out)
    exact, found = told["estimates"]
    sums = terms.sum(axis=1)
    assert exact["value"] == pytest.approx(np.log(np.exp(sums).sum()), abs=1e-10)
    assert abs(found["value"] - exact["value"]) < 5 * found["standard_error"]
    assert 0 < told["share_of_evaluations"] < 1
    assert told["wrong_races"] / 500 < 0.05 + 5 * math.sqrt(0.05 * 0.95 / 500)
    assert "% of the factor evaluations spent" in cli(*command, "--bound", "bernstein-serfling").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate-z"], "nothing to estimate"),
        (["sample"], "nothing to estimate"),
        (["estimate-z", "a.uai", "--target", LINE], "more than one"),
        (["estimate-z", "--target", LINE, "--target", "other.csv"], "one of them is wanted"),
        (["estimate-z", "--target", LINE, "--delta", "0.1"], "--delta without --factors"),
        (["estimate-z", "--target", LINE, "--method", "unary"], "--method without a MODEL"),
        (["estimate-z", "--target", LINE, "--prior-scale", "-1"], "--prior-scale is -1"),
        (["estimate-z", "--target", LINE, "--noise-scale", "nan"], "--noise-scale is nan"),
        (["estimate-z", "--target", LINE, "--samples", "0", "--exact", "--figure"], "--figure with --samples 0"),
        (["estimate-z", "--target", "no.csv"], "no.csv"),
        (["estimate-z", "--target", "no_module:thing"], "no_module"),
        (["estimate-z", "--target", "bad.csv"], "bad.csv:3: 'x' is no finite number"),
        (["estimate-z", "--target", "wide.csv"], "6 columns"),
        (["estimate-z", "--factors", "no.npy"], "no.npy"),
        (["estimate-z", "--factors", LINE], "line.csv"),
        (["estimate-z", "--factors", "nan.npy"], "nan"),
        (["estimate-z", "--factors", "flat.npy"], "matrix"),
        (["estimate-z", "--factors", "terms.npy", "--delta", "0"], "delta is 0"),
        (["estimate-z", "asia.uai", "--figure"], "--figure without a continuous --target"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("x,y\n1,2\nx,3\n")
    (tmp_path / "wide.csv").write_text("1,2,3,4,5,6\n")
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    np.save(tmp_path / "nan.npy", np.full((3, 100), np.nan))
    np.save(tmp_path / "flat.npy", np.zeros(100))
    result = cli(*arguments)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert message in result.err
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").rglob("*.csv"))
