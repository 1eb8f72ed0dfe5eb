import csv
import json
import os
import re

import numpy as np
import pytest

import thesis_cli
from tests.conftest import MODELS
from thesis_cli.studies.models.examples import ASIA

NETWORK = MODELS / "asia.uai"


def draws_of(path):
    with open(path) as file:
        names, *rows = csv.reader(file)
    return names, np.array(rows, dtype=int)


@pytest.mark.parametrize("method", ["exact", "sequential"])
def test_draws_follow_the_posterior(cli, method):
    count = 2000
    arguments = ("--evidence", MODELS / "asia-xray.evid", "--count", count, "--method", method, "--seed", 1)
    samples = ("--samples", 3000) if method == "sequential" else ()
    result = cli("sample", NETWORK, *arguments, *samples, "--out", "draws.csv")
    assert result.status == 0, result.err
    names, states = draws_of("draws.csv")
    assert names == [f"x{i}" for i in range(8)]
    assert states.shape == (count, 8)
    assert (states[:, 6] == 0).all()  # the evidence
    p = 0.4887  # P(lung cancer | positive x-ray)
    assert abs((states[:, 3] == 0).mean() - p) < 5 * np.sqrt(p * (1 - p) / count) + 5e-5


def test_the_summary_names_the_states_and_their_frequencies(cli):
    arguments = ("sample", MODELS / "asia.bif", "--count", 1000, "--seed", 1, "--no-out")
    found = json.loads(cli(*arguments, "--json").out)
    shares = dict(zip(found["states"]["asia"], found["frequencies"][0], strict=True))
    assert abs(shares["yes"] - 0.01) < 5 * np.sqrt(0.01 * 0.99 / 1000)
    assert shares["yes"] + shares["no"] == pytest.approx(1)
    assert re.search(rf"^asia +yes {shares['yes']:.4g}, no {shares['no']:.4g}$", cli(*arguments).out, re.MULTILINE)


def test_frequencies_count_observed_states_too(cli):
    arguments = ("--evidence", "xray=no", "--count", 50, "--seed", 1, "--no-out", "--json")
    found = json.loads(cli("sample", MODELS / "asia.bif", *arguments).out)
    assert dict(zip(found["states"], found["frequencies"], strict=True))["xray"] == [0, 1]
    assert json.loads(cli("sample", MODELS / "zipf-1000.csv", "--no-out", "--json").out)["frequencies"] == []


def test_perturb_is_said_not_to_be_gibbs(cli):
    result = cli("sample", MODELS / "ising-4x4.uai", "--method", "perturb", "--count", 7, "--seed", 1, "--json")
    found = json.loads(result.out)
    assert found["algorithm"] == "grid transfer"
    assert "not Gibbs" in found["distribution"]
    assert draws_of(found["out"])[1].shape == (7, 16)


def test_sequential_reports_its_attempts(cli):
    arguments = ("--method", "sequential", "--count", 5, "--samples", 500, "--seed", 1)
    result = cli("sample", MODELS / "ising-4x4.uai", *arguments, "--json")
    found = json.loads(result.out)
    assert found["acceptance"] == 5 / found["attempts"]
    assert found["map_calls"] % 500 == 0
    assert "attempts" in cli("sample", MODELS / "ising-4x4.uai", *arguments).out


def test_a_sequential_sampler_of_approximate_maxima_says_so(cli):
    arguments = ("--method", "sequential", "--count", 5, "--samples", 50, "--seed", 1, "--json")
    exact, rough = (
        json.loads(cli("sample", MODELS / "ising-4x4.uai", *arguments, "--solver", solver).out)["distribution"]
        for solver in ("grid", "trw-s")
    )
    assert "approximate" not in exact
    assert "approximate" in rough


def test_columns_have_the_names_of_the_variables():
    found = thesis_cli.sample(MODELS / "asia.bif", evidence=["xray=yes"], count=10, seed=1)
    assert list(found.table.columns) == list(ASIA)
    assert (found.table["xray"] == 0).all()
    assert "lung    yes 0." in found.summary()


def test_probabilities(cli, tmp_path):
    (tmp_path / "p.csv").write_text("0\n3\n1\n")
    shell = json.loads(cli("sample", "p.csv", "--probabilities", "--count", 50, "--seed", 1, "--json").out)
    found = thesis_cli.sample(np.array([0, 3, 1]), probabilities=True, count=50, seed=1)
    assert draws_of(shell["out"])[1].tolist() == found.table.to_numpy().tolist()
    assert set(found.table["index"]) == {1, 2}


def test_a_vector_is_drawn_from_by_index(cli):
    cli("sample", MODELS / "zipf-1000.csv", "--count", 10, "--seed", 1, "--out", "d.csv")
    names, states = draws_of("d.csv")
    assert names == ["index"]
    assert states.min() >= 0
    assert states.max() < 1000


def test_same_seed_same_bytes(cli, tmp_path):
    def run(jobs):
        cli("sample", NETWORK, "--method", "perturb", "--count", 600, "--seed", 1, "--jobs", jobs, "--out", "d.csv")
        return (tmp_path / "d.csv").read_bytes()

    assert run(1) == run(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([NETWORK, "--count", "0"], "--count is 0"),
        ([MODELS / "zipf-1000.csv", "--method", "perturb"], "--method perturb takes models with variables"),
        ([NETWORK, "--method", "sequential", "--alpha", "-1"], "alpha is -1"),
        ([NETWORK, "--samples", "9"], "--samples does not go with --method exact"),
        ([NETWORK, "--solver", "elimination"], "--solver does not go with --method exact"),
        ([NETWORK, "--method", "perturb", "--solver", "grid"], "factor 5 has 3 variables"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("sample", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []
