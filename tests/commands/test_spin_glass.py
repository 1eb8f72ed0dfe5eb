import csv
import json
import os
from functools import partial

import numpy as np
import pytest

import thesis_cli as tc
from thesis_cli.commands.figures.bounds import couplings_figure
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.message_passing import trw
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import published_spin_glass, random_spin_glass
from thesis_cli.perturbation.estimate import Estimate, exact_estimate


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_bounds_and_what_they_are(cli, tmp_path):
    result = cli("spin-glass", "--size", "4x5", "--kind", "mixed", "--seed", 3, "--samples", 2000, "--json")
    assert result.status == 0
    found = json.loads(result.out)["estimates"]
    assert [e["method"] for e in found] == ["elimination", "U(0)", "U(-0.089)", "L(0)", "L(-0.089)", "Bethe", "TRW"]
    exact = found[0]["value"]
    for e in found:
        slack = 5 * e["standard_error"]
        if e["kind"].startswith("upper"):
            assert e["value"] + slack >= exact
        if e["kind"].startswith("lower"):
            assert e["value"] - slack <= exact
    assert {e["kind"] for e in found} >= {"upper bound", "upper bound in expectation", "lower bound in expectation"}
    table = rows_of(tmp_path / "results/runs/spin-glass.csv")
    assert [float(r["value"]) for r in table] == [e["value"] for e in found]
    assert {(r["coupling"], r["seed"], r["kind"]) for r in table} >= {("1.0", "3", "upper bound")}


def test_the_model_is_saved_and_is_the_one_that_was_bounded(cli, tmp_path):
    result = cli("spin-glass", "--published", "1.66667", "--samples", 10, "--seed", 1, "--save", "m.uai", "--json")
    exact = json.loads(result.out)["estimates"][0]["value"]
    assert exact == pytest.approx(162.174, abs=5e-4)
    expected = exact_log_partition_function(published_spin_glass("1.66667", "attractive").graph())[0]
    assert exact_log_partition_function(load_model("m.uai"))[0] == pytest.approx(expected, rel=1e-13)


def test_several_couplings_are_one_table_and_a_figure(cli, tmp_path):
    files = ("--out", "c.csv", "--figure", "c.png")
    arguments = ("--size", "3x3", "--coupling", 0, "--coupling", 1, "--samples", 20, "--seed", 1, *files)
    assert cli("spin-glass", *arguments).status == 0
    assert sorted(os.listdir(tmp_path)) == ["c.csv", "c.json", "c.pdf", "c.png"]
    table = rows_of("c.csv")
    assert [r["coupling"] for r in table] == ["0.0"] * 7 + ["1.0"] * 7
    before = (tmp_path / "c.csv").read_bytes(), (tmp_path / "c.png").read_bytes()
    cli("spin-glass", *arguments, "--jobs", 1)
    assert before == ((tmp_path / "c.csv").read_bytes(), (tmp_path / "c.png").read_bytes())


def test_the_model_has_a_seed_of_its_own():
    same = [tc.spin_glass(size="3x3", samples=5, seed=seed, model_seed=7) for seed in (1, 2)]
    assert same[0].estimates[0].value == same[1].estimates[0].value
    assert same[0].estimates[1].value != same[1].estimates[1].value
    graph = random_spin_glass(3, 3, 1.0, 1.0, "attractive", np.random.default_rng(7)).graph()
    assert same[0].estimates[0].value == exact_log_partition_function(graph)[0]
    by_default = tc.spin_glass(size="3x3", samples=5, seed=7)
    assert by_default.estimates[0] == same[0].estimates[0]
    assert by_default.settings["model_seed"] == 7


def test_map_calls_are_counted_once_for_all_alphas():
    found = tc.spin_glass(size="2x2", coupling=[0.5, 1], alpha=[0, 0.1, 0.2], samples=30, seed=1)
    assert found.map_calls == 2 * 2 * 30
    assert ("work", "120 MAP calls") in found.lines()


def test_too_large_for_an_exact_answer_says_so_and_goes_on(cli):
    result = cli("spin-glass", "--size", "18x18", "--samples", 2, "--memory", 0.001, "--seed", 1)
    assert result.status == 0
    assert "no exact ln Z: " in result.err
    assert "U(0)" in result.out


@pytest.mark.parametrize("size", ["1x1", "1x9", "9x1"])
def test_chains(cli, size):
    result = cli("spin-glass", "--size", size, "--samples", 10, "--seed", 1, "--json")
    found = {e["method"]: e["value"] for e in json.loads(result.out)["estimates"]}
    assert found["Bethe"] == pytest.approx(found["elimination"], abs=1e-8)
    assert found["TRW"] == pytest.approx(found["elimination"], abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "0x3"], "--size 0x3 has 0 sites"),
        (["--size", "ten"], "--size is ten"),
        (["--coupling", "nan"], "--coupling is nan"),
        (["--coupling", "1,2"], "--coupling is 1,2"),
        (["--field", "-1"], "--field is -1"),
        (["--published", "x"], "--published is x"),
        (["--coupling", "2", "--published", "1"], "--coupling does not go with --published"),
        (["--field", "2", "--published", "1"], "--field does not go with --published"),
        (["--model-seed", "2", "--published", "1"], "--model-seed does not go with --published"),
        (["--coupling", "1", "--coupling", "2", "--save", "m.uai"], "--save does not go with 2 couplings"),
        (["--save", "/dev/full"], "--save /dev/full"),
        (["--save", "m.txt"], "--save m.txt"),
        (["--alpha", "0.1", "--confidence-method", "concentration"], "--confidence-method concentration"),
        (["--alpha", "-0.06", "--save", "m.uai"], "alpha is -0.06"),
        (["--alpha", "-1"], "--alpha is -1"),
        (["--solver", "none"], "--solver is none"),
        (["--confidence", "2"], "--confidence is 2"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("spin-glass", *arguments, "--samples", 10, "--quiet")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: " + message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_alphas_beyond_the_finite_variance_on_request(cli):
    result = cli("spin-glass", "--size", "3x3", "--alpha", "-0.3", "--any-alpha", "--samples", 50, "--seed", 1)
    assert "U(-0.3)" in result.out


def test_repeated_alphas_and_couplings_count_once(cli):
    arguments = ("--size", "2x2", "--samples", 20, "--seed", 1, "--json")
    result = cli("spin-glass", *arguments, "--coupling", 1, "--coupling", 1.0, "--alpha", 0, "--alpha", 0)
    methods = [e["method"] for e in json.loads(result.out)["estimates"]]
    assert methods == ["elimination", "U(0)", "L(0)", "Bethe", "TRW"]


def test_what_is_no_regular_file_is_not_replaced(cli, tmp_path):
    os.mkfifo(tmp_path / "m.uai")
    result = cli("spin-glass", "--size", "2x2", "--samples", 5, "--save", "m.uai")
    assert result.status == 2
    assert result.err.startswith("error: --save m.uai is ")
    assert (tmp_path / "m.uai").is_fifo()


def test_trw_is_called_a_bound_only_once_converged(cli, monkeypatch):
    arguments = ("--size", "3x3", "--kind", "mixed", "--coupling", 2, "--samples", 5, "--seed", 1, "--json")

    def kind():
        return next(
            e["kind"] for e in json.loads(cli("spin-glass", *arguments).out)["estimates"] if e["method"] == "TRW"
        )

    assert kind() == "upper bound"
    monkeypatch.setattr(trw, "trw_log_partition_function", partial(trw.trw_log_partition_function, max_sweeps=1))
    assert kind().startswith("not converged, by ")


def test_the_bars_of_the_figure_are_two_standard_errors():
    estimates = [
        exact_estimate(1.0, "lnZ", "grid transfer"),
        Estimate(2.0, 0.5, 1.0, 3.0, "ln Z", "upper bound in expectation", 0.95, 10, "U(0)", "Thesis eq. 2.8"),
    ]
    (axes,) = couplings_figure([(0.0, estimates), (1.0, estimates)], "a title").axes
    (bars,) = axes.containers
    assert [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()] == [[0.0, 2.0]] * 2
    assert bars.get_label() == "U(0)"
