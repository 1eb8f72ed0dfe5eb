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
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from thesis_cli.models import quadrature

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
    why = r"quadrature did not converge: its error is \S+ of Z after [\d,]+ evaluations, not 1e-05"
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
    assert f"{share}% of the factor evaluations spent; {wrong} of 500 races wrong, at --delta 0.05\n" in text
    sure = json.loads(cli(*command, "--bound", "bernstein-serfling", "--json").out)
    assert sure["share_of_evaluations"] > told["share_of_evaluations"]
    plain = json.loads(cli(*command[:5], "--seed", 1, "--json").out)
    assert (plain["delta"], plain["bound"]) == (0.01, "normal")
    assert json.loads(cli(*command[:5], "--seed", 1, "--json", "--delta", 0.01).out)["estimates"] == plain["estimates"]
    assert "races wrong, at --delta 1e-300\n" in cli(*command[:5], "--delta", "1e-300").out


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
