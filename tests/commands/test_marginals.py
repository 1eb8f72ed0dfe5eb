"""Marginals by each method, against brute force, and how they are written."""

import json
import math
import os

import numpy as np
import pytest

import thesis_cli
from tests.conftest import MODELS, all_states
from thesis_cli.inference import weighted_marginals
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model
from thesis_cli.studies.models.examples import ising

ASIA = MODELS / "asia.bif"


def brute_force(graph):
    states = all_states(graph)
    p = np.exp(graph.log_potential(states) - graph.log_potential(states).max())
    p /= p.sum()
    return [np.bincount(states[:, i], p, k) for i, k in enumerate(graph.cardinalities)]


def chain():
    rng = np.random.default_rng(3)
    factors = [Factor((i, i + 1), rng.normal(size=(3, 3))) for i in range(4)]
    return FactorGraph([3] * 5, factors)


@pytest.mark.parametrize("method", ["auto", "exact", "bethe", "trw"])
def test_a_tree_is_exact_by_every_method(method):
    graph = chain()
    found = thesis_cli.marginals(graph, method=method, seed=1)
    for own, expected in zip(found.marginals, brute_force(graph), strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-5)
    assert found.log_z == pytest.approx(math.log(np.exp(graph.log_potential(all_states(graph))).sum()), abs=1e-5)


def test_evidence_by_name_and_the_table():
    found = thesis_cli.marginals(ASIA, evidence={"xray": "yes"})
    assert found.settings["evidence"] == ["xray=yes"]
    table = found.table
    assert list(table.columns) == ["variable", "name", "state", "label", "probability"]
    assert len(table) == 16
    p = table[(table["name"] == "lung") & (table["label"] == "yes")]["probability"].item()
    assert p == pytest.approx(0.4887, abs=5e-5)
    assert table[table["name"] == "xray"]["probability"].tolist() == [1, 0]
    assert found.settings["method"] == "exact"
    assert "lung       yes 0.4887, no 0.5113" in found.summary()


def test_some_variables_are_shown_and_all_are_summed_over(cli, tmp_path):
    whole = thesis_cli.marginals(ASIA, evidence="xray=yes")
    for variables in (["bronc", "lung"], "bronc,lung,bronc", (4, 3)):
        found = thesis_cli.marginals(ASIA, evidence="xray=yes", variables=variables)
        assert list(found.states) == ["bronc", "lung"]
        assert found.table["name"].tolist() == ["bronc"] * 2 + ["lung"] * 2
        assert found["lung"] == whole["lung"] == dict(zip(("yes", "no"), whole.marginals[3].tolist(), strict=True))
    sampled = thesis_cli.marginals(ASIA, method="sample", samples=50, seed=1, variables=3, evidence="3=0")
    assert sampled.table["standard_error"].tolist() == [0, 0]
    with pytest.raises(KeyError, match="'lung' is nearest"):
        found["lun"]
    assert "there is no variable ''" in cli("marginals", ASIA, "--variables", "").err
    assert "there is no variable 'wet'" in cli("marginals", ASIA, "--variables", "wet").err
    assert cli("marginals", ASIA, "--figure", "m.png", "--no-out").status == 0
    assert (tmp_path / "m.png").stat().st_size > 5000


def test_samples_have_standard_errors():
    found = thesis_cli.marginals(ASIA, evidence=["xray=yes"], samples=4000, seed=1)
    assert found.settings["method"] == "sample"
    exact = thesis_cli.marginals(ASIA, evidence=["xray=yes"]).table["probability"]
    table = found.table
    sure = (exact < 1e-12) | (exact > 1 - 1e-12)
    assert (table["standard_error"][sure] == 0).all()
    assert (abs(table["probability"] - exact) <= 5 * np.sqrt(exact * (1 - exact) / 4000) + 1e-12).all()
    np.testing.assert_allclose(table["standard_error"], np.sqrt(exact * (1 - exact) / 4000), atol=2e-3)


def test_auto_estimates_what_is_too_large(caplog, tmp_path, cli, monkeypatch):
    monkeypatch.setattr(weighted_marginals, "MOST_TEMPERATURES", 100)
    monkeypatch.setattr(weighted_marginals, "DRAWS", 10_000)
    (tmp_path / "m.uai").write_text(uai.write(ising(16, 16, 0.2, np.random.default_rng(0))))
    result = cli("marginals", "m.uai", "--max-configurations", 5, "--memory", 0.002, "--json", "--no-out", "--seed", 1)
    found = json.loads(result.out)
    assert found["method"] == "weighted"
    assert "not exact: a backward pass needs" in result.err
    exact = thesis_cli.marginals(tmp_path / "m.uai", method="exact")
    difference = [abs(a - b[0]) for (a, _), b in zip(found["marginals"], exact.marginals, strict=True)]
    table = thesis_cli.marginals(tmp_path / "m.uai", method="weighted", memory=0.002, seed=1).table
    assert table["probability"].tolist() == [p for own in found["marginals"] for p in own]
    assert (difference < 5 * table["standard_error"][::2]).all()
    assert (table["standard_error"] < 0.05).all()
    monkeypatch.setattr(weighted_marginals, "EFFECTIVE", 1e9)
    result = cli("marginals", "m.uai", "--max-configurations", 5, "--memory", 0.002, "--json", "--no-out", "--seed", 1)
    assert json.loads(result.out)["method"] == "bethe"
    assert cli("marginals", "m.uai", "--method", "weighted", "--memory", 0.002).status == 1
    assert cli("marginals", "m.uai", "--method", "exact", "--memory", 0.002, "--max-configurations", 5).status == 2


def test_uai_file_json_and_default_output(cli, tmp_path):
    result = cli("marginals", MODELS / "asia.uai", "--evidence", "6=0", "--uai", "asia.uai.MAR")
    assert result.status == 0, result.err
    words = (tmp_path / "asia.uai.MAR").read_text().split()
    assert words[:4] == ["MAR", "8", "2", words[3]]
    assert words[20:23] == ["2", "1", "0"]
    assert (tmp_path / "results/runs/marginals-asia.csv").exists()
    assert "x0         0 0.0" in result.out


def test_the_first_variables_are_shown(cli):
    found = thesis_cli.marginals(FactorGraph([9] * 20, []))
    assert "20 variables in all" in found.summary()
    assert "(9 states)" in found.summary()


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ([MODELS / "zipf-1000.csv"], "this is a vector"),
        ([ASIA, "--method", "bethe", "--samples", "9"], "--samples does not go with --method bethe"),
        ([ASIA, "--method", "trw", "--memory", "1"], "--memory does not go with --method trw"),
        ([ASIA, "--samples", "1"], "--samples is 1"),
        ([ASIA, "--evidence", "xrai=yes"], "'xray' is nearest"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, fragment):
    result = cli("marginals", *arguments)
    assert (result.status, result.out) == (2, "")
    assert fragment in result.err
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_impossible_model_is_refused():
    either = np.where(np.eye(2) > 0, 0, -np.inf)
    graph = FactorGraph([2, 2], [Factor((0, 1), either), Factor((0, 1), either[::-1])])
    for method in ("exact", "weighted", "bethe", "trw", "sample"):
        with pytest.raises(ValueError, match="no configuration is possible"):
            thesis_cli.marginals(graph, method=method, seed=1)


def test_the_methods_agree_on_a_network_with_hard_constraints():
    exact = thesis_cli.marginals(load_model(ASIA), method="exact").table["probability"]
    bethe = thesis_cli.marginals(ASIA, method="bethe", seed=1).table["probability"]
    assert abs(bethe - exact).max() < 0.02
