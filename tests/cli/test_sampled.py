"""Continuous targets and matrices of factors on the command line."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from thesis_cli.cli import sampled
from thesis_cli.cli.posterior_figure import posterior_figure
from thesis_cli.models import evidence, quadrature, target_objects
from thesis_cli.models.proposals import Normal
from thesis_cli.models.targets import Regression

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


def test_compilation_is_listened_for_once(cli, tmp_path, monkeypatch):
    """Samples, quadrature and the figure each may have something to compile."""
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    entered = []
    monkeypatch.setattr(sampled, "telling_of_compilation", lambda: nullcontext(entered.append(1)))
    for number, command in enumerate((
        ("estimate-z", "--target", LINE, "--exact", "--figure", "--trick", "tail"),
        ("sample", "--target", LINE, "--figure"),
        ("estimate-z", "--factors", "terms.npy", "--exact", "--trick", "tail"),
    ), start=1):  # fmt: skip
        assert cli(*command).status == 0
        assert len(entered) == number


@pytest.mark.parametrize(("count", "bins"), [(2, 3), (300, 14), (10**6, 60)])
def test_a_figure_has_bins_for_its_samples_and_names_its_axes(count, bins):
    samples = np.random.default_rng(0).normal(size=(count, 1))
    flat = SimpleNamespace(proposal=Normal([0.0], [1.0]), log_ratio=lambda x: 0.0, bound=lambda low, high: 0.0)
    (axes,) = posterior_figure(flat, samples, ["x1"], "title").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x1", "density")
    assert sum(isinstance(patch, Rectangle) for patch in axes.patches) == bins
    table = Regression(np.eye(2), np.zeros(2), names=["a", "b"])
    shown = posterior_figure(table, np.hstack((samples, samples)), ["a", "b"], "").axes
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in shown if axes.get_visible()]
    assert labels == [("", "density"), ("weight of a", "weight of b"), ("weight of b", "density")]
    line = Regression([1.0, 2.0], [0.0, 1.0], names=["a"])
    assert posterior_figure(line, samples[:5], ["a"], "").axes[1].get_xlabel() == "weight of a"


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
    assert "continuous target in 1 dimension\n" in result.out


def test_a_violated_bound_is_told_with_its_point(cli, tmp_path):
    (tmp_path / "loose.py").write_text(OBJECT.format(ratio="float(x[0])", bound="0.0"))
    result = cli("estimate-z", "--target", "loose.py:half", "--samples", 50, "--seed", 1)
    assert result.status == 1
    assert re.fullmatch(r"error: the bound is violated: the log-ratio is [\d.]+ at \([\d.]+\), .*\n", result.err)


def test_json_has_what_the_text_tells_of_the_samples(cli, tmp_path):
    command = "--target", LINE, "--seed", 1, "--out", "w.csv"
    estimated = json.loads(cli("estimate-z", *command, "--samples", 300, "--json").out)
    drawn = json.loads(cli("sample", *command, "--count", 300, "--json").out)
    w = np.array([float(row["x"]) for row in rows(tmp_path / "w.csv")])
    (moments,) = drawn["moments"]
    assert moments == {"name": "x", "mean": pytest.approx(w.mean()), "standard_deviation": pytest.approx(w.std())}
    assert estimated["moments"] == drawn["moments"]
    piloted = cli("estimate-z", *command, "--samples", 300, "--trick", "tail", "--json").out
    assert json.loads(piloted)["moments"] == drawn["moments"]
    text = cli("sample", *command, "--count", 300).out
    assert f"samples  x = {w.mean():.4g}, standard deviation {w.std():.3g}\n" in text
    spent, bounds = (drawn[key] for key in ("evaluations_a_sample", "bounds_a_sample"))
    assert f"A*       {spent:.3g} evaluations and {bounds:.3g} bounds a sample\n" in text
    assert (estimated["evaluations_a_sample"], estimated["bounds_a_sample"]) == (spent, bounds)


def test_one_of_each_is_singular(cli, tmp_path):
    (tmp_path / "one.csv").write_text("x,y\n1,2\n")
    np.save(tmp_path / "one.npy", np.zeros((1, 1)))
    drawn = cli("estimate-z", "--target", "one.csv", "--samples", 1, "--seed", 1).out
    assert "regression of 1 point on x" in drawn
    assert "1 evaluation and 0 bounds a sample" in drawn
    assert "cost       1 MAP call, seed" in drawn
    raced = cli("estimate-z", "--factors", "one.npy", "--samples", 1, "--seed", 1).out
    assert "1 state, 1 factor\n" in raced
    assert "0 of 1 race wrong" in raced


def test_an_exact_answer_that_quadrature_does_not_give_loses_no_sample(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(quadrature, "integrate", partial(quadrature.integrate, max_evaluations=2000))
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "four.csv", rng.normal(size=(5, 5)), delimiter=",")
    why = r"quadrature did not converge: its error is \S+ of Z after [\d,]+ evaluations, not 0.001"
    command = "estimate-z", "--target", "four.csv", "--samples", 20, "--seed", 1
    result = cli(*command, "--exact", "--out", "z.csv")
    assert result.status == 0
    assert re.search(rf"^ln Z +not known \({why}\)$", result.out, re.MULTILINE)
    assert re.match(rf"warning: no exact answer: {why}\n", result.err)
    exact, found = rows(tmp_path / "z.csv")
    assert (exact["value"], exact["method"]) == ("nan", "quadrature")
    told = json.loads(cli(*command, "--exact", "--json", "--target", "Z").out)
    assert [told["estimates"][0][key] for key in ("value", "low", "high", "target")] == [None, None, None, "Z"]
    assert re.fullmatch(rf"not known \({why}\)", told["estimates"][0]["kind"])
    (alone,) = json.loads(cli(*command, "--json").out)["estimates"]
    assert float(found["value"]) == alone["value"]
    nothing = cli("estimate-z", "--target", "four.csv", "--samples", 0, "--exact", "--out", "none.csv")
    assert nothing.status == 1
    assert re.fullmatch(rf"error: {why}\n", nothing.err)
    assert not (tmp_path / "none.csv").exists()


def test_a_figure_without_the_exact_density(cli, tmp_path):
    """Quadrature looks where no sample comes."""
    (tmp_path / "far.py").write_text(OBJECT.format(ratio="0.0 if x[0] < 30 else np.nan", bound="0.0"))
    result = cli("sample", "--target", "far.py:half", "--count", 50, "--seed", 1, "--figure", "--out", "w.csv")
    assert result.status == 0
    assert "warning: the figure has no exact density: quadrature met a log-ratio that is nan" in result.err
    assert (tmp_path / "w.png").exists()


def test_an_error_of_an_object_at_work_is_told_with_its_line(cli, tmp_path):
    """After the first look at it, and from whatever thread."""
    for name, ratio in {"late": "0.0 if x[0] == 0 else 1 / 0", "ends": "0.0 if x[0] == 0 else exit(4)"}.items():
        (tmp_path / f"{name}.py").write_text(OBJECT.format(ratio=ratio, bound="0.0"))
        told = {"late": "ZeroDivisionError: division by zero", "ends": "SystemExit: 4"}[name]
        message = f"error: {name}.py:9: {told}; log_ratio is wanted at any point of the proposal, bound of any box\n"
        for command in (("estimate-z", "--exact"), ("estimate-z", "--jobs", 2), ("sample", "--jobs", 1)):
            result = cli(*command, "--target", f"{name}.py:half")
            assert (result.status, result.out, result.err) == (2, "", message)


ENDLESS = """
class Noise(Half):
    def log_ratio(self, x): return -x[0] ** 2 + 0.1 * rng.random()
    def bound(self, low, high): return 0.1
class Never(Half):
    def log_ratio(self, x): return -np.inf
rng, noise, never = np.random.default_rng(0), Noise(), Never()
"""


@pytest.mark.parametrize(
    "arguments",
    [["estimate-z", "--exact", "--samples", "0", "--target", "on.py:noise"], ["sample", "--target", "on.py:never"]],
    ids=["noise", "never"],
)
def test_an_object_at_work_ends_with_a_signal(tmp_path, arguments):
    """Long before it comes to its limit, which is minutes away here: a class of ours would not have been waited for."""
    (tmp_path / "on.py").write_text(OBJECT.format(ratio="0.0", bound="0.0") + ENDLESS)
    text = (tmp_path / "on.py").read_text()
    slow = text.replace("def log_ratio(self, x): return -", "def log_ratio(self, x): tell(); return -")
    tell = "import sys, time\ndef tell(done=[]):\n    done or print('on', file=sys.stderr, flush=True)\n"
    (tmp_path / "on.py").write_text(tell + "    done.append(1); time.sleep(0.001)\n" + slow)
    process = subprocess.Popen(
        [sys.executable, "-m", "thesis_cli", *arguments, "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline() == "on\n"
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_what_has_no_end_ends_at_a_limit(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(target_objects, "MOST_EVALUATIONS", 3000)
    (tmp_path / "on.py").write_text(OBJECT.format(ratio="0.0", bound="0.0") + ENDLESS)
    never = cli("sample", "--target", "on.py:never", "--jobs", 2)
    assert (never.status, never.err.count("\n")) == (1, 1)
    assert never.err.startswith("error: no sample after 3,000 evaluations: ")
    noise = cli("estimate-z", "--target", "on.py:noise", "--samples", 0, "--exact")
    assert noise.status == 1
    assert noise.err.startswith("error: quadrature did not converge in 3,000 evaluations of log_ratio; ")
    drawn = cli("sample", "--target", "on.py:noise", "--count", 20, "--figure", "--out", "w.csv")
    assert drawn.status == 0
    assert "warning: the figure has no exact density: quadrature did not converge in 3,000 evaluations" in drawn.err


@pytest.mark.parametrize("command", [("estimate-z", "--samples", 0, "--exact"), ("estimate-z",), ("sample",)])
def test_a_target_that_its_proposal_cuts_off_is_an_error(cli, tmp_path, monkeypatch, command):
    grows = "0.5 * {} ** 2"
    if "--exact" not in command:  # a search at the ends takes long, so they are moved
        monkeypatch.setattr(evidence, "RIM", 0.99)
        grows = "-" + grows
    (tmp_path / "up.py").write_text(OBJECT.format(ratio=grows.format("x[0]"), bound="0.0"))
    result = cli(*command, "--target", "up.py:half", "--seed", 1)
    assert (result.status, result.out) == (2, "")
    assert re.fullmatch(r"error: up.py:half: the target is cut off: it has not vanished at .*\n", result.err)
    assert not (tmp_path / "results").exists()


def test_an_answer_good_enough_is_given_with_its_error_and_no_more_digits(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(quadrature, "_line", lambda target: quadrature.Integral(LOG_Z, 3.21e-6, 9))
    command = "estimate-z", "--target", LINE, "--samples", 0, "--exact", "--seed", 1
    assert "\nln Z   -139.7378  (quadrature, error 3.2e-06 of Z)\n" in cli(*command, "--out", "z.csv").out
    (row,) = rows(tmp_path / "z.csv")
    assert (row["kind"], float(row["value"])) == ("error 3.2e-06 of Z", LOG_Z)
    assert float(row["standard_error"]) == pytest.approx(3.21e-6)
    assert [float(row[key]) - LOG_Z for key in ("low", "high")] == pytest.approx([-3.21e-6, 3.21e-6], rel=1e-6)
    (z,) = json.loads(cli(*command, "--target", "Z", "--json").out)["estimates"]
    assert z["standard_error"] == pytest.approx(3.21e-6 * z["value"])
    assert f"\nZ      {math.exp(LOG_Z):.6g}  (quadrature, " in cli(*command, "--target", "Z").out


def test_a_long_number_is_short(cli, tmp_path):
    (tmp_path / "up.py").write_text(OBJECT.format(ratio="1e12", bound="1e12"))
    out = cli("estimate-z", "--target", "up.py:half", "--samples", 20, "--seed", 1).out
    assert re.search(
        r"^posterior +ln Z = [\d.]+e\+1[12]  standard deviation [\d.]+e\+1[12]  95% int", out, re.MULTILINE
    )


def test_a_module_that_ends_the_program_is_told(cli, tmp_path):
    (tmp_path / "ends_it.py").write_text("import sys\nsys.exit()\n")
    for name in ("ends_it:half", "ends_it.py:half"):
        result = cli("sample", "--target", name)
        assert (result.status, result.out) == (2, "")
        assert result.err == "error: ends_it.py:2: ends the program (SystemExit); an import is to come to its end\n"


@pytest.mark.filterwarnings("default")
def test_what_an_object_says_is_one_line_on_standard_error(cli, tmp_path):
    ratio, bound = "0.0 * float(np.log(np.abs(x[0]) * (x[0] > 0) + (x[0] > 1)))", "0.0"
    text = OBJECT.format(ratio="np.nan_to_num(" + ratio + ") if x[0] else 0.0", bound=bound)
    (tmp_path / "says.py").write_text("print('loaded')\n" + text)
    result = cli("sample", "--target", "says.py:half", "--count", 20, "--seed", 1, "--json")
    assert json.loads(result.out)["count"] == 20
    loaded, *told, wrote = result.err.splitlines()
    assert loaded == "loaded"
    assert wrote.startswith("wrote ")
    assert told
    for line in told:
        assert re.fullmatch(
            r"warning: says.py:10: RuntimeWarning: .* encountered in .*; numpy.errstate silences what is meant", line
        )
    assert cli("sample", "--target", "says.py:half", "--count", 20, "--seed", 1, "--quiet").err == "loaded\n"


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
    share, wrong = f"{100 * told['share_of_evaluations']:.3g}", told["wrong_races"]
    assert wrong > 0
    assert (told["delta"], told["bound"]) == (0.05, "normal")
    text = cli(*command).out
    assert "5 states, 2,000 factors\n" in text
    spent = f"{share}% of the factor evaluations spent; {wrong} of 500 races wrong, at --delta 0.05"
    assert f"{spent} (no interval counts them)\n" in text
    sure = json.loads(cli(*command, "--bound", "bernstein-serfling", "--json").out)
    assert sure["share_of_evaluations"] > told["share_of_evaluations"]
    plain = json.loads(cli(*command[:5], "--seed", 1, "--json").out)
    assert (plain["delta"], plain["bound"]) == (0.01, "normal")
    assert json.loads(cli(*command[:5], "--seed", 1, "--json", "--delta", 0.01).out)["estimates"] == plain["estimates"]
    careful = cli(*command[:5], "--delta", "1e-300")
    assert "; 0 of 500 races wrong, at --delta 1e-300\n" in careful.out
    assert "warning" not in careful.err + cli(*command).err


def test_more_wrong_races_than_delta_allows_are_warned_of(cli, tmp_path):
    """A state that lives by one factor, which a race on few does not meet."""
    spike = np.zeros((4, 10_000))
    spike[2, 123] = 8
    np.save(tmp_path / "spike.npy", spike)
    command = "estimate-z", "--factors", "spike.npy", "--delta", 0.05, "--samples", 500, "--seed", 1, "--json"
    result = cli(*command)
    told = json.loads(result.out)
    assert result.status == 0
    (low,) = re.findall(
        rf"^warning: {told['wrong_races']} of 500 races wrong, more than --delta 0.05 allows: ln Z is too low, by "
        r"([\d.]+) on average, and the intervals do not tell; --bound bernstein-serfling, or a smaller --delta, is",
        result.err,
    )
    error = told["estimates"][0]["standard_error"]
    assert abs(told["estimates"][0]["value"] + float(low) - math.log(math.exp(8) + 3)) < 5 * error
    sure = cli(*command, "--bound", "bernstein-serfling")
    assert json.loads(sure.out)["wrong_races"] == 0
    assert "warning" not in sure.err


@pytest.mark.parametrize(("wrong", "many"), [(0, False), (50, False), (84, False), (85, False), (91, True)])
def test_what_is_more_than_delta_allows(wrong, many):
    """Of 1000 races at 0.05: 50, give or take 6.9; the binomial's tail is heavier than the normal's."""
    assert sampled._too_many(wrong, 1000, 0.05) == many


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate-z"], "nothing to estimate"),
        (["sample"], "nothing to estimate"),
        (["estimate-z", "a.uai", "--target", LINE], "more than one"),
        (["estimate-z", "--target", LINE, "--target", "other.csv"], "one of them is wanted"),
        (["estimate-z", "--target", LINE, "--delta", "0.1"], "--delta without --factors"),
        (["estimate-z", "--target", LINE, "--method", "unary"], "--method without a MODEL"),
        (["estimate-z", "--target", LINE, "--clamp", "0"], "--clamp without a MODEL; it is for a MODEL"),
        (["estimate-z", "--target", LINE, "--subsets", "0"], "--subsets without a MODEL"),
        (["estimate-z", "--target", LINE, "--any-alpha"], "--any-alpha without a MODEL"),
        (["estimate-z", "--target", LINE, "--solver", "grid"], "--solver without a MODEL"),
        (["estimate-z", "--target", LINE, "--max-configurations", "5"], "--max-configurations without a MODEL"),
        (["estimate-z", "--factors", "terms.npy", "--max-configurations", "5"], "--max-configurations without a MODEL"),
        (["sample", "--target", LINE, "--max-configurations", "5"], "--max-configurations without a MODEL"),
        (["sample", "--target", LINE, "--samples", "5"], "--samples without a MODEL"),
        (["sample", "--target", LINE, "--evidence", "e"], "--evidence without a MODEL"),
        (["sample", "--target", "Z"], "error: --target Z is what estimate-z estimates; a CSV file, or module:object"),
        (["sample", "asia.uai", "--noise-scale", "1"], "--noise-scale without a continuous --target"),
        (["sample", "--target", "math:pi", "--prior-scale", "1"], "--prior-scale and --noise-scale do not go with an"),
        (["estimate-z", "--target", "mine.py"], "error: mine.py: is Python, and no object in it is named; module:obj"),
        (["estimate-z", "--target", "mymod:"], "error: --target: 'mymod:' names no object; module:object, or file.py"),
        (["estimate-z", "--target", "mymod"], "(no such file or directory); a CSV file, or a Python object as mod"),
        (["estimate-z", "--target", "lnZ", "--target", "Z"], "one of them is wanted"),
        (["estimate-z", "--factors", "terms.npy", "--delta", "nan"], "error: --delta is nan; a probability between"),
        (["estimate-z", "--factors", "terms.npy", "--delta", "1"], "error: --delta is 1; a probability between"),
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
        (["estimate-z", "--factors", "huge.npy"], "huge.npy: the log-factors of state 1 sum to 1e+302 in absolute val"),
        (["estimate-z", "--factors", "apart.npy"], "apart.npy: the log-factors of state 2 range over 2e+15 in absolut"),
        (["estimate-z", "--factors", "terms.npy", "--delta", "0"], "error: --delta is 0; a probability"),
        (["estimate-z", "asia.uai", "--figure"], "--figure without a continuous --target"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("x,y\n1,2\nx,3\n")
    (tmp_path / "wide.csv").write_text("1,2,3,4,5,6\n")
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    np.save(tmp_path / "nan.npy", np.full((3, 100), np.nan))
    np.save(tmp_path / "flat.npy", np.zeros(100))
    np.save(tmp_path / "huge.npy", np.outer([0, -1, 0.5], np.full(100, 1e300)))
    np.save(tmp_path / "apart.npy", np.outer([0, 0, 1], np.resize([1e15, -1e15], 100)))
    result = cli(*arguments)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert message in result.err
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").rglob("*.csv"))


COLD = [
    ("search", ["estimate-z", "--target", LINE]),
    ("search", ["sample", "--target", LINE]),
    ("race", ["estimate-z", "--factors", "terms.npy"]),
]


@pytest.mark.parametrize(("kernel", "arguments"), COLD, ids=["estimate-z", "sample", "factors"])
def test_compilation_is_told_and_ends_with_ctrl_c(tmp_path, kernel, arguments):
    """At once: the kernel that is being compiled is not waited for, or it would be in the cache."""
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    process = subprocess.Popen(
        [sys.executable, "-m", "thesis_cli", *map(str, arguments), "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline().startswith("compiling, which is done once")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    # CPython ends by the signal itself, 130 to a shell, when it arrives within an exec() of some import.
    assert process.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "error: interrupted\n")
    assert not list((tmp_path / "cache").rglob(f"*.{kernel}-*.nbc"))
    assert not (tmp_path / "results").exists()


INTERRUPTED = """
import atexit, ctypes, os, signal, time
import thesis_cli.cli.app
from thesis_cli.__main__ import main
def ask():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
def run():
    {run}
thesis_cli.cli.app.main = run
atexit.register(time.sleep, 0.1)
main()
"""


@pytest.mark.parametrize(
    ("run", "status", "last"),
    [
        ("ask()", 130, "error: interrupted"),
        (
            "try: ask()\n    except BaseException: raise RuntimeError('no compiled object yet')",
            130,
            "error: interrupted",
        ),
        ("ctypes.CFUNCTYPE(None)(ask)(); raise RuntimeError('no compiled object yet')", 130, "error: interrupted"),
        ("ctypes.CFUNCTYPE(None)(ask)(); return 0", 0, ""),
        ("import numba; ask()", 130, "error: interrupted"),
        ("raise RuntimeError('a mistake')", 1, "RuntimeError: a mistake"),
    ],
    ids=["alone", "changed", "swallowed", "done", "idle", "none"],
)
def test_what_an_interruption_became_is_no_traceback(run, status, last):
    """And one that comes again, or is no longer of use, says nothing more."""
    code = [sys.executable, "-c", INTERRUPTED.format(run=run)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert (done.stderr if status != 1 else done.stderr.splitlines()[-1]) == last + "\n" * (status == 130)


def test_a_pass_of_the_compiler_comes_to_its_end_before_an_interruption():
    """An exception in a callback of LLVM may crash."""
    run = """
    from numba.core.compiler_lock import global_compiler_lock
    with global_compiler_lock:
        os.kill(os.getpid(), signal.SIGINT)
        print("whole", flush=True)
    print("and no more")
"""
    code = [sys.executable, "-c", INTERRUPTED.format(run=run)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", "error: interrupted\n")


def test_a_signal_that_is_ignored_stays_so():
    code = "import signal; from thesis_cli.__main__ import catch_signals\n"
    code += "signal.signal(signal.SIGHUP, signal.SIG_IGN); catch_signals()\n"
    code += "signal.raise_signal(signal.SIGHUP); print('on')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("on\n", "")
