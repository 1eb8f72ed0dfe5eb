"""The posterior command: regressions, targets of a user's own and functions, by A* sampling."""

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
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.commands.figures.posterior import posterior_figure
from thesis_cli.models import quadrature, target_objects
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
    command = "posterior", "--regression", LINE, "--trick", "all", "--samples", 500, "--exact", "--seed", 1
    command = *command, "--figure", "z.png"
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
    options = "--prior-scale", 0.5, "--noise-scale", 2, "--quantity", "Z", "--samples", 0, "--exact", "--json"
    told = json.loads(cli("posterior", "--regression", LINE, *options).out)
    (exact,) = told["estimates"]
    table = np.genfromtxt(LINE, delimiter=",", skip_header=1)
    w = np.linspace(-5, 5, 200_001)
    log_prior = -((w / 0.5) ** 2) / 2 - math.log(0.5 * math.sqrt(2 * math.pi))
    phi = log_prior - sum(np.log1p(((y - x * w) / 2) ** 2) for x, y in table)
    integral = np.log(np.exp(phi - phi.max()).sum() * (w[1] - w[0])) + phi.max()
    log_z = math.log(exact["value"]) + exact["exponent10"] * math.log(10)
    assert log_z == pytest.approx(integral, abs=1e-8)


def test_samples_of_a_posterior(cli, tmp_path):
    result = cli(
        "posterior", "--regression", LINE, "--samples", 2000, "--seed", 1, "--draws", "w.csv", "--figure", "w.png"
    )
    assert result.status == 0
    w = np.array([float(row["x"]) for row in rows(tmp_path / "w.csv")])
    assert w.shape == (2000,)
    assert abs(w.mean() - 1.4445) < 5 * w.std() / math.sqrt(w.size)
    assert (tmp_path / "w.png").exists()


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
    options = "--samples", 100, "--seed", 1, "--figure", "two.png", "--draws", "draws.csv"
    assert cli("posterior", "--regression", "two.csv", *options).status == 0
    assert list(rows(tmp_path / "draws.csv")[0]) == ["a", "b"]
    assert (tmp_path / "two.png").exists()


def test_an_object_of_the_users_own(cli, tmp_path):
    ratio, bound = "0.0 if x[0] > 0 else -np.inf", "0.0 if high[0] > 0 else -np.inf"
    (tmp_path / "mine.py").write_text(OBJECT.format(ratio=ratio, bound=bound))
    result = cli("posterior", "--target", "mine:half", "--samples", 500, "--seed", 1, "--out", "z.csv")
    assert result.status == 0
    (row,) = rows(tmp_path / "z.csv")
    assert abs(float(row["value"]) - math.log(0.5)) < 5 * float(row["standard_error"])
    assert "continuous target in 1 dimension\n" in result.out


def test_a_violated_bound_is_told_with_its_point(cli, tmp_path):
    (tmp_path / "loose.py").write_text(OBJECT.format(ratio="float(x[0])", bound="0.0"))
    result = cli("posterior", "--target", "loose.py:half", "--samples", 50, "--seed", 1)
    assert result.status == 1
    assert re.search(r"the bound is violated: the log-ratio is [\d.]+ at \([\d.]+\)", result.err)


def test_json_has_what_the_text_has(cli, tmp_path):
    command = "posterior", "--regression", LINE, "--seed", 1, "--samples", 300
    found = json.loads(cli(*command, "--draws", "w.csv", "--json").out)
    w = np.array([float(row["x"]) for row in rows(tmp_path / "w.csv")])
    (moments,) = found["moments"]
    assert moments == {"name": "x", "mean": pytest.approx(w.mean()), "standard_deviation": pytest.approx(w.std())}
    piloted = cli(*command, "--trick", "tail", "--json").out
    assert json.loads(piloted)["moments"] == found["moments"]
    text = cli(*command).out
    assert f"samples    x = {w.mean():.4g}, standard deviation {w.std():.3g}\n" in text
    spent, bounds = (found[key] for key in ("evaluations_a_sample", "bounds_a_sample"))
    assert f"A*         {spent:.3g} evaluations and {bounds:.3g} bounds a sample\n" in text


def test_one_of_each_is_singular(cli, tmp_path):
    (tmp_path / "one.csv").write_text("x,y\n1,2\n")
    drawn = cli("posterior", "--regression", "one.csv", "--samples", 1, "--seed", 1).out
    assert "regression of 1 point on x" in drawn
    assert "1 evaluation and 0 bounds a sample" in drawn
    assert "1 MAP call\n" in drawn


def test_an_exact_answer_that_quadrature_does_not_give_loses_no_sample(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(quadrature, "integrate", partial(quadrature.integrate, max_evaluations=2000))
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "four.csv", rng.normal(size=(5, 5)), delimiter=",")
    why = r"quadrature did not converge: its error is \S+ of Z after [\d,]+ evaluations, above 0.001"
    command = "posterior", "--regression", "four.csv", "--samples", 20, "--seed", 1
    result = cli(*command, "--exact", "--out", "z.csv")
    assert result.status == 0
    assert re.search(rf"^ln Z +not known \({why}\)$", result.out, re.MULTILINE)
    assert re.search(rf"^warning: no exact answer: {why}$", result.err, re.MULTILINE)
    exact, found = rows(tmp_path / "z.csv")
    assert (exact["value"], exact["method"]) == ("", "quadrature")
    told = json.loads(cli(*command, "--exact", "--json", "--quantity", "Z").out)
    assert [told["estimates"][0][key] for key in ("value", "low", "high", "target")] == [None, None, None, "Z"]
    assert re.fullmatch(rf"not known \({why}\)", told["estimates"][0]["kind"])
    (alone,) = json.loads(cli(*command, "--json").out)["estimates"]
    assert float(found["value"]) == alone["value"]
    nothing = cli("posterior", "--regression", "four.csv", "--samples", 0, "--exact", "--out", "none.csv")
    assert nothing.status == 1
    assert re.fullmatch(rf"error: {why}\n", nothing.err)
    assert not (tmp_path / "none.csv").exists()


def test_a_figure_without_the_exact_density(cli, tmp_path):
    """Quadrature looks where no sample comes."""
    (tmp_path / "far.py").write_text(OBJECT.format(ratio="0.0 if x[0] < 30 else np.nan", bound="0.0"))
    result = cli("posterior", "--target", "far.py:half", "--samples", 50, "--seed", 1, "--figure", "w.png")
    assert result.status == 0
    assert "warning: the figure has no exact density: quadrature met a log-ratio that is nan" in result.err
    assert (tmp_path / "w.png").exists()


def test_an_error_of_an_object_at_work_is_told_with_its_line(cli, tmp_path):
    """After the first look at it, and from whatever thread."""
    for name, ratio in {"late": "0.0 if x[0] == 0 else 1 / 0", "ends": "0.0 if x[0] == 0 else exit(4)"}.items():
        (tmp_path / f"{name}.py").write_text(OBJECT.format(ratio=ratio, bound="0.0"))
        told = {"late": "ZeroDivisionError: division by zero", "ends": "SystemExit: 4"}[name]
        for options in (("--exact",), ("--jobs", 2), ("--jobs", 1)):
            result = cli("posterior", *options, "--target", f"{name}.py:half")
            assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
            assert result.err.startswith(f"error: {name}.py:9: {told}")


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
    [["--exact", "--samples", "0", "--target", "on.py:noise"], ["--target", "on.py:never"]],
    ids=["noise", "never"],
)
def test_an_object_at_work_ends_with_a_signal(tmp_path, arguments):
    """Long before it comes to its limit, which is minutes away here."""
    (tmp_path / "on.py").write_text(OBJECT.format(ratio="0.0", bound="0.0") + ENDLESS)
    text = (tmp_path / "on.py").read_text()
    slow = text.replace("def log_ratio(self, x): return -", "def log_ratio(self, x): tell(); return -")
    tell = "import sys, time\ndef tell(done=[]):\n    done or print('on', file=sys.stderr, flush=True)\n"
    (tmp_path / "on.py").write_text(tell + "    done.append(1); time.sleep(0.001)\n" + slow)
    process = subprocess.Popen(
        [sys.executable, "-m", "thesis_cli", "posterior", *arguments, "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline() == "on\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_what_has_no_end_ends_at_a_limit(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(target_objects, "MOST_EVALUATIONS", 3000)
    (tmp_path / "on.py").write_text(OBJECT.format(ratio="0.0", bound="0.0") + ENDLESS)
    never = cli("posterior", "--target", "on.py:never", "--jobs", 2)
    assert (never.status, never.err.count("\n")) == (1, 1)
    assert never.err.startswith("error: no sample after 3,000 evaluations: ")
    noise = cli("posterior", "--target", "on.py:noise", "--samples", 0, "--exact")
    assert noise.status == 1
    assert noise.err.startswith("error: quadrature did not converge in 3,000 evaluations of log_ratio; ")
    drawn = cli("posterior", "--target", "on.py:noise", "--samples", 20, "--figure", "w.png")
    assert drawn.status == 0
    assert "warning: the figure has no exact density: quadrature did not converge in 3,000 evaluations" in drawn.err


@pytest.mark.parametrize("options", [("--samples", 0, "--exact"), ()])
def test_a_target_that_its_proposal_cuts_off_is_an_error(cli, tmp_path, monkeypatch, options):
    grows = "0.5 * {} ** 2"
    if "--exact" not in options:  # a search at the ends takes long, so they are moved
        monkeypatch.setattr(quadrature, "RIM", 0.99)
        grows = "-" + grows
    (tmp_path / "up.py").write_text(OBJECT.format(ratio=grows.format("x[0]"), bound="0.0"))
    result = cli("posterior", *options, "--target", "up.py:half", "--seed", 1)
    assert (result.status, result.out) == (2, "")
    assert re.fullmatch(r"error: up.py:half: the target is cut off: it has not vanished at .*\n", result.err)
    assert not (tmp_path / "results").exists()


def test_an_answer_good_enough_is_given_with_its_error_and_no_more_digits(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(quadrature, "_line", lambda target: quadrature.Integral(LOG_Z, 3.21e-6, 9))
    command = "posterior", "--regression", LINE, "--samples", 0, "--exact", "--seed", 1
    assert "\nln Z    -139.7378  (quadrature, error 3.2e-06 of Z)\n" in cli(*command, "--out", "z.csv").out
    (row,) = rows(tmp_path / "z.csv")
    assert (row["kind"], float(row["value"])) == ("error 3.2e-06 of Z", LOG_Z)
    assert float(row["standard_error"]) == pytest.approx(3.21e-6)
    assert [float(row[key]) - LOG_Z for key in ("low", "high")] == pytest.approx([-3.21e-6, 3.21e-6], rel=1e-6)
    (z,) = json.loads(cli(*command, "--quantity", "Z", "--json").out)["estimates"]
    assert z["standard_error"] == pytest.approx(3.21e-6 * z["value"])
    assert f"\nZ       {math.exp(LOG_Z):.6g}  (quadrature, " in cli(*command, "--quantity", "Z").out


def test_a_long_number_is_short(cli, tmp_path):
    (tmp_path / "up.py").write_text(OBJECT.format(ratio="1e12", bound="1e12"))
    out = cli("posterior", "--target", "up.py:half", "--samples", 20, "--seed", 1).out
    assert re.search(
        r"^posterior +ln Z = [\d.]+e\+1[12]  standard deviation [\d.]+e\+1[12]  95% int", out, re.MULTILINE
    )


def test_a_module_that_ends_the_program_is_told(cli, tmp_path):
    (tmp_path / "ends_it.py").write_text("import sys\nsys.exit()\n")
    for name in ("ends_it:half", "ends_it.py:half"):
        result = cli("posterior", "--target", name)
        assert (result.status, result.out) == (2, "")
        assert result.err.startswith("error: ends_it.py:2: ends the program (SystemExit)")


@pytest.mark.filterwarnings("default")
def test_what_an_object_says_is_one_line_on_standard_error(cli, tmp_path):
    ratio, bound = "0.0 * float(np.log(np.abs(x[0]) * (x[0] > 0) + (x[0] > 1)))", "0.0"
    text = OBJECT.format(ratio="np.nan_to_num(" + ratio + ") if x[0] else 0.0", bound=bound)
    (tmp_path / "says.py").write_text("print('loaded')\n" + text)
    result = cli("posterior", "--target", "says.py:half", "--samples", 20, "--seed", 1, "--json")
    assert json.loads(result.out)["samples"] == 20
    loaded, *told, wrote = result.err.splitlines()
    assert loaded == "loaded"
    assert wrote.startswith("wrote ")
    assert told
    for line in told:
        assert re.fullmatch(r"warning: says.py:10: RuntimeWarning: .* encountered in .*", line)
    assert cli("posterior", "--target", "says.py:half", "--samples", 20, "--seed", 1, "--quiet").err == "loaded\n"


FUNCTION = """
import numpy as np

def bell(x):
    return -0.5 * float(np.sum(x ** 2))

def hole(x):
    return -np.inf if abs(x[0]) < 0.1 else 0.0
"""
BOX = "--low", -4, "--high", 4, "--slope", 4


def test_a_function_on_a_box(cli, tmp_path):
    (tmp_path / "mine.py").write_text(FUNCTION)
    command = "posterior", "--target", "mine.py:bell", *BOX, "--samples", 300, "--seed", 1
    result = cli(*command, "--exact", "--out", "z.csv", "--draws", "w.csv")
    assert result.status == 0, result.err
    exact, found = rows(tmp_path / "z.csv")
    log_z = 0.5 * math.log(2 * math.pi) + math.log(math.erf(4 / math.sqrt(2)))
    assert float(exact["value"]) == pytest.approx(log_z, abs=1e-9)
    assert abs(float(found["value"]) - log_z) < 5 * float(found["standard_error"])
    w = np.array([float(row["x1"]) for row in rows(tmp_path / "w.csv")])
    assert abs(w.mean()) < 5 / math.sqrt(300)
    assert abs(w.std() - 1) < 5 / math.sqrt(600)
    python = tc.posterior(target=lambda x: -0.5 * (x**2).sum(), low=[-4], high=[4], slope=4, samples=300, seed=1)
    assert python.estimate.value == pytest.approx(float(found["value"]), abs=1e-9)
    assert python.samples["x1"].to_numpy() == pytest.approx(w)
    steep = cli("posterior", "--target", "mine.py:bell", "--low", -4, "--high", 4, "--slope", 0.1)
    assert (steep.status, steep.out) == (1, "")
    assert "the bound is violated" in steep.err


def test_two_dimensions_of_a_function():
    found = tc.posterior(
        target=lambda x: -0.5 * (x**2).sum(), low=[-4, -4], high=[4, 4], slope=4, samples=100, seed=1, exact=True
    )
    exact, estimated = found.estimates
    assert exact.value == pytest.approx(math.log(2 * math.pi), abs=2e-4)
    assert abs(estimated.value - exact.value) < 5 * estimated.standard_error
    assert list(found.samples.columns) == ["x1", "x2"]
    assert found.figure() is not None


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"samples": 200, "trick": "all", "exact": True},
        {"prior_scale": 0.5, "noise_scale": 2.0, "quantity": "log10Z", "trick": "tail", "jobs": 2},
    ],
)
def test_shell_and_python_agree(cli, tmp_path, options):
    words = [
        w for name, v in options.items() for w in ([f"--{name}"] if v is True else [f"--{name.replace('_', '-')}", v])
    ]
    command = "posterior", "--regression", LINE, "--seed", 5, *words
    assert cli(*command, "--out", "a.csv", "--draws", "w.csv").status == 0
    found = tc.posterior(regression=LINE, seed=5, **options)
    found.save(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    pd.testing.assert_frame_equal(found.samples, pd.read_csv(tmp_path / "w.csv"), rtol=1e-12)
    table = pd.read_csv(LINE)
    for data in (table, table.to_numpy(), (table[["x"]], table["y"]), (table["x"], table["y"])):
        again = tc.posterior(regression=data, seed=5, **options)
        assert list(again.table["value"]) == list(found.table["value"])


def test_python_takes_a_target_and_keeps_tracebacks():
    class Half:
        proposal = Normal([0.0], [1.0])

        def log_ratio(self, x):
            return 0.0 if x[0] > 0 else -np.inf

        def bound(self, low, high):
            return 0.0 if high[0] > 0 else -np.inf

    found = tc.posterior(target=Half(), samples=500, seed=1)
    assert abs(found.estimate.value - math.log(0.5)) < 5 * found.estimate.standard_error
    assert (found.samples["x1"] > 0).all()
    with pytest.raises(ZeroDivisionError):
        tc.posterior(target=lambda x: 1 / 0, low=[0], high=[1], slope=1)
    with pytest.raises(InputError, match="--slope"):
        tc.posterior(target=lambda x: 0.0, low=[0], high=[1])
    with pytest.raises(InputError, match="--regression is a ndarray"):
        tc.posterior(regression=np.zeros(3))
    with pytest.raises(InputError, match="no numbers"):
        tc.posterior(regression=pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}))


TARGET, REGRESSION = ("--target", "mine.py:bell"), ("--regression", LINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no density is given"),
        ([*TARGET, *REGRESSION], "--target and --regression are both given"),
        ([*TARGET, *BOX, "--prior-scale", "1"], "--prior-scale without --regression"),
        ([*TARGET, *BOX, "--noise-scale", "2"], "--noise-scale without --regression"),
        ([*REGRESSION, "--slope", "2"], "--slope without --target"),
        ([*REGRESSION, "--low", "2"], "--low without --target"),
        ([*TARGET, "--low", 1, "--slope", "2"], "mine.py:bell: a function as target needs --high"),
        ([*TARGET, *BOX, "--low", 1], "mine.py:bell: --low has 2 numbers, --high 1"),
        ([*TARGET, "--low", 4, "--high", 1, "--slope", 1], "mine.py:bell: a side of a uniform proposal is -3"),
        (["--target", "mine.py:hole", *BOX], "mine.py:hole: the function is -inf"),
        (["--target", "half.py:half", *BOX], "half.py:half: --low does not go with a target that has a proposal"),
        (["--target", "mine.py"], "--target: mine.py names no object; it must be mine.py:object"),
        (["--target", "mymod:"], "--target: mymod: names no object"),
        (["--target", "no_module:thing"], "no_module:thing: "),
        (["--target", "math:pi"], "math:pi: it has no proposal"),
        ([*REGRESSION, "--prior-scale", "-1"], "--prior-scale is -1"),
        ([*REGRESSION, "--noise-scale", "nan"], "--noise-scale is nan"),
        ([*REGRESSION, "--samples", "0"], "--samples is 0"),
        ([*REGRESSION, "--samples", "0", "--exact", "--draws", "w.csv"], "--draws does not go with --samples 0"),
        ([*REGRESSION, "--samples", "0", "--exact", "--figure", "w.png"], "--samples is 0; a figure"),
        ([*REGRESSION, "--draws", "w.txt"], "--draws w.txt"),
        (["--regression", "no.csv"], "no.csv: cannot be read"),
        (["--regression", "bad.csv"], "bad.csv:3: 'x' is no finite number"),
        (["--regression", "wide.csv"], "wide.csv:1: has 6 columns"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("x,y\n1,2\nx,3\n")
    (tmp_path / "wide.csv").write_text("1,2,3,4,5,6\n")
    (tmp_path / "mine.py").write_text(FUNCTION)
    (tmp_path / "half.py").write_text(OBJECT.format(ratio="0.0", bound="0.0"))
    result = cli("posterior", *arguments)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"error: {message}")
    assert not (tmp_path / "results").exists()
