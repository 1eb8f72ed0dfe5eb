"""The race command: estimates from subsampled factors, and wrong races."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.commands.race import more_wrong_than_delta


def test_races(cli, tmp_path):
    terms = np.random.default_rng(0).normal(0, 0.01, (5, 2000))
    terms[1] += 0.001
    np.save(tmp_path / "terms.npy", terms)
    command = "race", "terms.npy", "--samples", 500, "--delta", 0.05, "--exact", "--seed", 1
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
    assert f"{spent} (intervals ignore them)\n" in text
    sure = json.loads(cli(*command, "--bound", "bernstein-serfling", "--json").out)
    assert sure["share_of_evaluations"] > told["share_of_evaluations"]
    plain = json.loads(cli(*command[:4], "--seed", 1, "--json").out)
    assert (plain["delta"], plain["bound"]) == (0.01, "normal")
    assert json.loads(cli(*command[:4], "--seed", 1, "--json", "--delta", 0.01).out)["estimates"] == plain["estimates"]
    careful = cli(*command[:4], "--delta", "1e-300")
    assert "; 0 of 500 races wrong, at --delta 1e-300\n" in careful.out
    assert "warning" not in careful.err + cli(*command).err


def test_more_wrong_races_than_delta_allows_are_warned_of(cli, tmp_path):
    """A state that lives by one factor, which a race on few does not meet."""
    spike = np.zeros((4, 10_000))
    spike[2, 123] = 8
    np.save(tmp_path / "spike.npy", spike)
    command = "race", "spike.npy", "--delta", 0.05, "--samples", 500, "--seed", 1, "--json"
    result = cli(*command)
    told = json.loads(result.out)
    assert result.status == 0
    (low,) = re.findall(
        rf"^warning: {told['wrong_races']} of 500 races are wrong, more than --delta 0.05 allows: ln Z is too low by "
        r"([\d.]+) on average",
        result.err,
    )
    error = told["estimates"][0]["standard_error"]
    assert abs(told["estimates"][0]["value"] + float(low) - math.log(math.exp(8) + 3)) < 5 * error
    sure = cli(*command, "--bound", "bernstein-serfling")
    assert json.loads(sure.out)["wrong_races"] == 0
    assert "warning" not in sure.err


@pytest.mark.parametrize(("wrong", "many"), [(0, False), (50, False), (84, False), (85, False), (91, True)])
def test_what_is_more_than_delta_allows(wrong, many):
    """Of 1000 races at 0.05: 50, give or take 6.9; the binomial's tail is heavier than the
    normal's.
    """
    assert more_wrong_than_delta(wrong, 1000, 0.05) == many


@pytest.fixture
def matrices(tmp_path):
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    np.save(tmp_path / "nan.npy", np.full((3, 100), np.nan))
    np.save(tmp_path / "flat.npy", np.zeros(100))
    np.save(tmp_path / "huge.npy", np.outer([0, -1, 0.5], np.full(100, 1e300)))
    np.save(tmp_path / "apart.npy", np.outer([0, 0, 1], np.resize([1e15, -1e15], 100)))
    (tmp_path / "line.csv").write_text("x,y\n1,2\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "FACTORS is missing"),
        (["no.npy"], "no.npy: cannot be read"),
        (["line.csv"], "line.csv: "),
        (["nan.npy"], "nan.npy: the log-factor of state 0"),
        (["flat.npy"], "flat.npy: log-factors have shape (100,)"),
        (["huge.npy"], "huge.npy: the log-factors of state 1 sum to 1e+302"),
        (["apart.npy"], "apart.npy: the log-factors of state 2 range over 2e+15"),
        (["terms.npy", "--delta", "0"], "--delta is 0;"),
        (["terms.npy", "--delta", "1"], "--delta is 1;"),
        (["terms.npy", "--delta", "nan"], "--delta is nan;"),
        (["terms.npy", "--bound", "hoeffding"], "--bound is hoeffding;"),
        (["terms.npy", "--samples", "0"], "--samples is 0;"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, matrices, arguments, message):
    result = cli("race", *arguments)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"error: {message}")
    assert not (tmp_path / "results").exists()


def test_one_of_each_is_singular(cli, tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((1, 1)))
    raced = cli("race", "one.npy", "--samples", 1, "--seed", 1).out
    assert "1 state, 1 factor\n" in raced
    assert "0 of 1 race wrong" in raced


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trick": "all", "samples": 50, "exact": True, "delta": 0.1},
        {"bound": "bernstein-serfling", "quantity": "log10Z", "memory": 0.001, "jobs": 2},
    ],
)
def test_shell_and_python_agree(cli, tmp_path, options):
    values = np.random.default_rng(0).normal(0, 0.01, (5, 500))
    np.save(tmp_path / "terms.npy", values)
    words = [w for name, v in options.items() for w in ([f"--{name}"] if v is True else [f"--{name}", v])]
    assert cli("race", "terms.npy", "--seed", 5, *words, "--out", "a.csv").status == 0
    tc.race("terms.npy", seed=5, **options).save(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    array = tc.race(values, seed=5, **options)
    assert list(array.table["value"]) == list(tc.race("terms.npy", seed=5, **options).table["value"])
    assert array.maxima.values.size == options.get("samples", 100)


def test_python_refuses_what_the_shell_refuses():
    with pytest.raises(InputError, match="--delta is 2;"):
        tc.race(np.zeros((2, 3)), delta=2)
    with pytest.raises(InputError, match=r"<ndarray>: log-factors have shape \(3,\)"):
        tc.race(np.zeros(3))
