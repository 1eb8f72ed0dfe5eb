import csv
import json
import os
from functools import partial

import pytest

from thesis_cli.cli.spin_glass import _figure
from thesis_cli.inference import trw
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import published_spin_glass
from thesis_cli.perturbation.estimate import Estimate, exact_estimate


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_bounds_and_what_they_are(cli, tmp_path):
    result = cli("spin-glass", "--size", "4x5", "--kind", "mixed", "--seed", 3, "--samples", 2000, "--json")
    assert result.status == 0
    found = json.loads(result.out)["estimates"]
    assert [e["method"] for e in found] == ["grid transfer", "U(0)", "U(-0.089)", "L(0)", "L(-0.089)", "Bethe", "TRW"]
    exact = found[0]["value"]
    for e in found:
        slack = 5 * e["standard_error"]
        if e["kind"].startswith("upper"):
            assert e["value"] + slack >= exact
        if e["kind"].startswith("lower"):
            assert e["value"] - slack <= exact
    assert {e["kind"] for e in found} >= {"upper bound", "upper bound in expectation", "lower bound in expectation"}
    table = rows_of(tmp_path / "results/runs/spin-glass-mixed-4x5.csv")
    assert [float(r["value"]) for r in table] == [e["value"] for e in found]
    assert {(r["coupling"], r["seed"], r["kind"]) for r in table} >= {("1.0", "3", "upper bound")}


def test_the_model_is_saved_and_is_the_one_that_was_bounded(cli, tmp_path):
    result = cli("spin-glass", "--published", "1.66667", "--samples", 10, "--seed", 1, "--save", "m.uai", "--json")
    exact = json.loads(result.out)["estimates"][0]["value"]
    assert exact == pytest.approx(162.174, abs=5e-4)
    expected = exact_log_partition_function(published_spin_glass("1.66667", "attractive").graph())[0]
    assert exact_log_partition_function(load_model("m.uai"))[0] == pytest.approx(expected, rel=1e-13)


def test_a_sweep_is_one_table_and_a_figure(cli, tmp_path):
    arguments = ("--size", "3x3", "--sweep", "0,1", "--samples", 20, "--seed", 1, "--out", "sweep.csv")
    assert cli("spin-glass", *arguments).status == 0
    assert sorted(os.listdir(tmp_path)) == ["sweep.csv", "sweep.json", "sweep.pdf", "sweep.png"]
    table = rows_of("sweep.csv")
    assert [r["coupling"] for r in table] == ["0.0"] * 7 + ["1.0"] * 7
    before = (tmp_path / "sweep.csv").read_bytes(), (tmp_path / "sweep.png").read_bytes()
    cli("spin-glass", *arguments, "--jobs", 1)
    assert before == ((tmp_path / "sweep.csv").read_bytes(), (tmp_path / "sweep.png").read_bytes())


def test_too_large_for_an_exact_answer_says_so_and_goes_on(cli):
    result = cli("spin-glass", "--size", "20x20", "--samples", 10, "--memory", 0.001, "--seed", 1)
    assert result.status == 0
    assert "no exact ln Z: " in result.err
    assert "U(0)" in result.out


@pytest.mark.parametrize("size", ["1x1", "1x9", "9x1"])
def test_chains(cli, size):
    result = cli("spin-glass", "--size", size, "--samples", 10, "--seed", 1, "--json")
    found = {e["method"]: e["value"] for e in json.loads(result.out)["estimates"]}
    assert found["Bethe"] == pytest.approx(found["grid transfer"], abs=1e-8)
    assert found["TRW"] == pytest.approx(found["grid transfer"], abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "0x3"], "error: --size 0x3: 0 sites; 1 to 1,000,000 are wanted"),
        (["--size", "ten"], "error: --size ten; rows x columns is wanted, as in 10x10"),
        (["--coupling", "nan"], "error: the coupling is nan"),
        (["--field", "-1"], "error: the field is -1.0"),
        (["--published", "x"], "error: the coupling is 'x'; a number is wanted"),
        (["--sweep", "1,x"], "error: --sweep 1,x; couplings with commas are wanted"),
        (["--sweep", "1", "--published", "1"], "error: --sweep has many models"),
        (["--field", "2", "--published", "1"], "error: --field does not go with --published"),
        (["--save", "/dev/full"], "error: --save /dev/full; a file name that ends in .uai"),
        (["--save", "m.txt"], "error: --save m.txt; a file name that ends in .uai is wanted"),
        (["--alpha", "0.1", "--confidence-method", "concentration"], "error: --confidence-method concentration"),
        (["--alpha", "-0.06"], "error: alpha is -0.06; a number above -0.05"),
        (["--solver", "none"], "error: Invalid value for '--solver'"),
        (["--confidence", "2"], "error: the confidence is 2"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("spin-glass", *arguments, "--samples", 10)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_alphas_beyond_the_finite_variance_on_request(cli):
    result = cli("spin-glass", "--size", "3x3", "--alpha", "-0.3", "--any-alpha", "--samples", 50, "--seed", 1)
    assert "U(-0.3)" in result.out


def test_repeated_alphas_and_couplings_count_once(cli):
    arguments = ("--size", "2x2", "--samples", 20, "--seed", 1, "--json")
    result = cli("spin-glass", *arguments, "--sweep", "1,1.0", "--alpha", 0, "--alpha", 0)
    methods = [e["method"] for e in json.loads(result.out)["estimates"]]
    assert methods == ["grid transfer", "U(0)", "L(0)", "Bethe", "TRW"]


def test_what_is_no_regular_file_is_not_replaced(cli, tmp_path):
    os.mkfifo(tmp_path / "m.uai")
    result = cli("spin-glass", "--size", "2x2", "--samples", 5, "--save", "m.uai")
    assert (result.status, result.err) == (2, "error: --save m.uai is no regular file; a file is wanted\n")
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


def test_the_bars_of_a_sweep_are_two_standard_errors():
    estimates = [
        exact_estimate(1.0, "lnZ", "grid transfer"),
        Estimate(2.0, 0.5, 1.0, 3.0, "ln Z", "upper bound in expectation", 0.95, 10, "U(0)", "Thesis eq. 2.8"),
    ]
    (axes,) = _figure([(0.0, estimates), (1.0, estimates)], "a title").axes
    (bars,) = axes.containers
    assert [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()] == [[0.0, 2.0]] * 2
    assert bars.get_label() == "U(0)"
