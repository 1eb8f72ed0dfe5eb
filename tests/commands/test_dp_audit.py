import csv
import json
import math
import os

import numpy as np
import pytest

import thesis_cli
from thesis_cli.privacy import mechanism
from thesis_cli.privacy.mechanism import OpenDPGaussian, OpenDPLaplace


class Fast(OpenDPGaussian):
    """Gaussian noise of a generator that is kept, a factor of what it should be."""

    rng, factor = np.random.default_rng(3), 1.0

    def _draw(self, vector, found):
        return vector + self.factor * found.scale * self.rng.normal(size=vector.size)


class Short(Fast):
    factor = math.sqrt(0.5)


@pytest.fixture
def audit(cli):
    return lambda *arguments: cli("dp-audit", *arguments)


def test_few_runs_tell_nothing(audit, tmp_path):
    result = audit("--runs", 400, "--whole-runs", 60, "--confidence", 1 - 1e-7)
    assert (result.status, result.err) == (0, "wrote results/runs/dp-audit.csv\n")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["claim", "scalar", "whole", "bounds", "cost"]
    assert lines[0].startswith("claim   epsilon 1 at delta 1e-06  (OpenDP 0.16.0 make_gaussian")
    assert "0 repeats in 400 runs: too few runs to tell" in lines[1]
    assert "0 repeats in 60 runs: too few runs to tell" in lines[2]
    with open(tmp_path / "results/runs/dp-audit.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["path"], row["runs"], row["verdict"]) for row in rows] == [
        ("scalar", "400", "too few runs to tell"),
        ("whole", "60", "too few runs to tell"),
    ]
    assert float(rows[0]["mu"]) >= float(rows[0]["gdp_mu"])
    settings = json.loads((tmp_path / "results/runs/dp-audit.json").read_text())["settings"]
    assert (settings["epsilon"], settings["delta"], settings["noise"]) == (1.0, 1e-6, "gaussian")


def test_python_gives_the_same_rows(audit, monkeypatch):
    """Of noise from a generator that starts anew; the true noise has no seed."""
    results = []
    for call in (
        lambda: json.loads(audit("--runs", 44, "--whole-runs", 40, "--json", "--quiet").out),
        lambda: thesis_cli.dp_audit(runs=44, whole_runs=40),
    ):
        monkeypatch.setattr(Fast, "rng", np.random.default_rng(5))
        monkeypatch.setattr(mechanism, "OpenDPGaussian", Fast)
        results.append(call())
    shell, python = results
    assert shell["audits"] == [path.summary() for path in python.paths]
    assert (shell["verdict"], shell["delta"]) == (python.verdict, python.settings["delta"])
    assert python.table.path.tolist() == ["scalar", "whole"]
    assert thesis_cli.dp_audit(runs=40, whole_runs=40, noise="laplace").settings["delta"] == 0


def test_laplace(audit):
    result = audit("--noise", "laplace", "--epsilon", 2, "--runs", 400, "--whole-runs", 60, "--json", "--quiet",
                   "--confidence", 1 - 1e-7, "--features", 2, "--rows", 5)  # fmt: skip
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["verdict"] != "BROKEN"
    assert (found["noise"], found["features"], found["rows"]) == ("laplace", 2, 5)
    assert [entry["mu"] for entry in found["audits"]] == [None, None]
    assert [entry["delta"] for entry in found["audits"]] == [0.0, 0.0]
    assert "make_laplace" in found["audits"][0]["mechanism"]


def test_each_path_is_given_the_noise_that_was_asked_for(audit, monkeypatch):
    for option, name, kind in (
        ("gaussian", "OpenDPGaussian", OpenDPGaussian),
        ("laplace", "OpenDPLaplace", OpenDPLaplace),
    ):
        made = []

        class Watched(kind):
            def _draw(self, vector, found, made=made):
                made.append(vector.size)
                return super()._draw(vector, found)

        with monkeypatch.context() as patch:
            patch.setattr(mechanism, name, Watched)
            audit("--noise", option, "--runs", 44, "--whole-runs", 40, "--features", 4)
        assert sorted(set(made)) == [4, 11]
        assert made.count(4) == 40


def test_noise_that_breaks_its_claim_is_status_1(audit, tmp_path, monkeypatch):
    options = ("--delta", 0.1, "--runs", 100_000, "--whole-runs", 10_000)
    monkeypatch.setattr(mechanism, "OpenDPGaussian", Short)
    result = audit(*options)
    assert result.status == 1
    assert result.out.count("BROKEN") == 2
    assert "\n        mu is at least " in result.out
    assert (tmp_path / "results/runs/dp-audit.csv").is_file()
    found = audit(*options, "--json", "--out", "x.csv")
    assert found.status == 1
    assert json.loads(found.out)["verdict"] == "BROKEN"
    monkeypatch.setattr(mechanism, "OpenDPGaussian", Fast)
    assert audit(*options, "--confidence", 1 - 1e-7).status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "0"], "error: --epsilon is 0; "),
        (["--delta", "0"], "error: delta is 0 with Gaussian noise"),
        (["--delta", "1"], "error: --delta is 1; "),
        (["--delta", "0.1", "--noise", "laplace"], "error: --delta does not go with --noise laplace"),
        (["--features", "3"], "error: --features is 3; "),
        (["--confidence", "1"], "error: --confidence is 1; "),
        (["--runs", "39"], "error: --runs is 39; "),
        (["--out", "x.txt"], "error: --out x.txt"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(audit, tmp_path, arguments, message):
    result = audit("--runs", 40, "--whole-runs", 40, *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []
