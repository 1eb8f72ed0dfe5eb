import csv
import itertools
import json
import math
import os
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base import files
from thesis_cli.base.errors import InputError
from thesis_cli.base.memory import bytes_text
from thesis_cli.commands.ln_z import estimates, portfolio
from thesis_cli.commands.ln_z.method import Share
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising

ASIA, ISING, SAT, ZIPF = (MODELS / n for n in ("asia.uai", "ising-4x4.uai", "sat-16-60.uai", "zipf-1000.csv"))


def summary(result):
    assert result.status == 0, result.err
    return json.loads(result.out)


def test_text_file_and_record_say_the_same(cli, tmp_path):
    result = cli("estimate-z", ASIA, "--seed", 1, "--samples", 400)
    assert result.status == 0
    for word in ("ln Z", "standard error", "95% interval", "unbiased", "400 MAP calls", "seed 1", "256 configurations"):
        assert word in result.out
    out = tmp_path / "results/runs/estimate-z-asia.csv"
    with open(out) as file:
        (row,) = csv.DictReader(file)
    record = json.loads(out.with_suffix(".json").read_text())
    assert (row["target"], row["map_calls"], row["kind"]) == ("ln Z", "400", "unbiased")
    assert record["settings"]["seed"] == 1
    assert f"wrote {out.relative_to(tmp_path)}" in result.err


def test_json_is_all_there_is_on_standard_output(cli):
    found = summary(
        cli("estimate-z", SAT, "--trick", "all", "--quantity", "Z", "--samples", 300, "--seed", 2, "--exact", "--json")
    )
    exact, *estimates = found["estimates"]
    assert exact["value"] == pytest.approx(11)
    assert [e["method"].split("(")[0] for e in estimates] == [
        "gumbel", "exponential", "weibull", "frechet", "pareto", "tail",
    ]  # fmt: skip
    for e in estimates:
        assert e["low"] < 11 * math.exp(5 * 1.4 / math.sqrt(300))
        assert e["high"] > 11 * math.exp(-5 * 1.4 / math.sqrt(300))
        assert e["low"] < e["value"] < e["high"]
    assert found["posterior"]["shape"] == 300
    assert next(e for e in estimates if e["method"].startswith("frechet"))["standard_error"] is None


def test_same_seed_same_bytes_whatever_the_jobs(cli, tmp_path):
    for name, jobs in (("a", 1), ("b", 2)):
        cli("estimate-z", ISING, "--trick", "all", "--seed", 7, "--jobs", jobs, "--out", f"{name}.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    cli("estimate-z", ISING, "--trick", "all", "--seed", 8, "--out", "c.csv")
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "c.csv").read_bytes()


def test_a_drawn_seed_is_printed_and_repeats_the_run(cli):
    first = summary(cli("estimate-z", ZIPF, "--json"))
    again = summary(cli("estimate-z", ZIPF, "--json", "--seed", first["seed"]))
    assert again["estimates"] == first["estimates"]


def test_all_tricks_share_the_map_values_of_one(cli):
    together = summary(cli("estimate-z", ZIPF, "--trick", "all", "--seed", 3, "--json"))["estimates"]
    for e in together:
        name = e["method"].split("(")[0]
        (alone,) = summary(cli("estimate-z", ZIPF, "--trick", name, "--seed", 3, "--json"))["estimates"]
        assert alone == e


def test_the_work_includes_the_pilot_of_a_trick(monkeypatch):
    drawn, draw = [], estimates.ModelMaxima.draw
    monkeypatch.setattr(estimates.ModelMaxima, "draw", lambda self, n, *rest: drawn.append(n) or draw(self, n, *rest))
    for trick, calls in (("gumbel", 100), ("pareto", 100), ("tail", 116), ("all", 116)):
        drawn.clear()
        found = tc.estimate_z(ZIPF, trick=trick, seed=1)
        assert sum(drawn) == calls
        assert ("work", f"{calls} MAP calls") in found.lines()


def test_evidence_gives_its_probability(cli):
    found = summary(
        cli(
            "estimate-z",
            ASIA,
            "--evidence",
            MODELS / "asia-xray.evid",
            "--samples",
            0,
            "--exact",
            "--quantity",
            "Z",
            "--json",
        )
    )
    assert found["estimates"][0]["value"] == pytest.approx(0.11029004)
    assert found["posterior"] is None


def test_standard_input(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(ASIA.read_bytes())))
    assert summary(cli("estimate-z", "-", "--json"))["configurations"] == 256
    assert (tmp_path / "results/runs/estimate-z-stdin.csv").exists()


@pytest.mark.parametrize("log_z", [1e5, -1e5])
def test_extreme_potentials(cli, tmp_path, log_z):
    np.save(tmp_path / "v.npy", np.full(3, log_z))
    for target in ("lnZ", "log10Z", "Z", "f"):
        for e in summary(cli("estimate-z", "v.npy", "--trick", "all", "--quantity", target, "--seed", 1, "--json"))[
            "estimates"
        ]:
            assert e["value"] is not None
            if target == "lnZ":
                assert e["value"] == pytest.approx(log_z + math.log(3), abs=1)


def test_one_sample(cli):
    for e in summary(cli("estimate-z", ZIPF, "--trick", "all", "--samples", 1, "--seed", 1, "--json"))["estimates"]:
        assert e["method"].startswith("tail") or e["value"] is not None


BAD = [
    ([], "MODEL is missing"),
    ([ASIA, "--method", "unary"], "--method is unary"),
    ([ASIA, "--trick", "weibull", "--alpha", "-0.5"], "--alpha is -0.5"),
    ([ASIA, "--trick", "weibull", "--alpha", "1e300"], "--alpha is 1e+300"),
    ([ASIA, "--trick", "weibull", "--alpha", "nan"], "--alpha is nan"),
    ([ASIA, "--trick", "frechet", "--alpha", "-1e-300"], "--alpha is -1e-300"),
    ([ASIA, "--trick", "frechet", "--alpha", "-1"], "--alpha is -1;"),
    ([ASIA, "--alpha", "1"], "--alpha does not go with --trick gumbel"),
    ([ASIA, "--trick", "all", "--alpha", "1"], "--alpha does not go with --trick all"),
    ([ASIA, "--threshold", "1"], "--threshold does not go with --trick gumbel"),
    ([ASIA, "--trick", "tail", "--threshold", "0"], "--threshold is 0"),
    ([ASIA, "--samples", "99999999999999999999"], "--samples is 99999999999999999999"),
    ([ASIA, "--samples", "0"], "--samples is 0"),
    ([ASIA, "--samples", "0", "--exact", "--trick", "tail"], "--trick does not go with --samples 0"),
    ([ASIA, "--samples", "0", "--exact", "--quantity", "f"], "--quantity f does not go with --samples 0"),
    ([ASIA, "--method", "exact", "--samples", "50"], "--samples does not go with --method exact"),
    ([ASIA, "--method", "exact", "--trick", "gumbel"], "--trick does not go with --method exact"),
    ([ASIA, "--method", "exact", "--samples", "50"], "--samples does not go with --method exact"),
    ([ASIA, "--no-debias", "--quantity", "f"], "--no-debias does not go with --quantity f"),
    ([ASIA, "--method", "exact", "--no-debias"], "--debias does not go with --method exact"),
    ([ASIA, "--method", "exact", "--confidence", "0.5"], "--confidence does not go with --method exact"),
    ([ASIA, "--method", "exact", "--quantity", "f"], "--quantity f does not go with --method exact"),
    ([ASIA, "--quantity", "f", "--uai", "a.PR"], "--uai does not go with --quantity f"),
    ([ASIA, "--method", "full-rank", "--memory", "1"], "--memory does not go with --method full-rank"),
    ([ASIA, "--time-limit", "0"], "--time-limit is 0"),
    ([ASIA, "--time-limit", "5", "--samples", "50"], "--time-limit does not go with --samples"),
    ([ASIA, "--method", "full-rank", "--time-limit", "5"], "--time-limit does not go with --method full-rank"),
    ([ASIA, "--uai", ASIA], f"--uai {ASIA} would overwrite the input"),
    ([ASIA, "--confidence", "1"], "--confidence is 1"),
    ([ASIA, "--out", "x.txt"], "--out x.txt"),
    ([ASIA, "--evidence", "/dev/zero"], "/dev/zero: the file is larger than 16 MiB"),
    ([ASIA, "--evidence", ASIA], f"{ASIA}:1: "),
    (["nowhere.uai"], "nowhere.uai: cannot be read"),
    (
        [ASIA, "--method", "full-rank", "--max-configurations", "255"],
        f"{ASIA}: 8 variables",
    ),
    ([ASIA, "--format", "bif"], f"{ASIA}:1: "),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("estimate-z", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith(f"error: {message}"), result.err
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_impossible_model_is_one_line(cli, tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 2 1 0 1 0 2 1 0 2 0 1")
    for extra in ([], ["--samples", 0, "--exact"]):
        result = cli("estimate-z", "m.uai", *extra)
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert result.err.startswith("error: m.uai: no configuration is possible (Z = 0)")


def test_a_full_disk_loses_no_number(cli, tmp_path, monkeypatch):
    """The summary is printed before the file is written."""

    def full(*_):
        raise OSError(28, "No space left on device", str(tmp_path / "x.csv"))

    monkeypatch.setattr(files.os, "fsync", full)
    result = cli("estimate-z", ASIA, "--out", "x.csv")
    assert result.status == 1
    assert "ln Z" in result.out
    assert result.err == "error: x.csv: no space left on device\n"
    assert os.listdir(tmp_path) == []


def test_out_in_a_new_folder_and_in_a_file(cli, tmp_path):
    assert cli("estimate-z", ASIA, "--out", "a/b/c.csv").status == 0
    assert (tmp_path / "a/b/c.csv").exists()
    result = cli("estimate-z", ASIA, "--out", "a/b/c.csv/d.csv")
    assert result.status == 2
    assert "cannot be written to" in result.err


def test_quiet_says_nothing_but_the_summary(cli):
    assert cli("estimate-z", ASIA, "--quiet").err == ""


def test_exact_takes_what_full_rank_noise_refuses(cli, tmp_path):
    """An Ising grid of 2^100 configurations."""
    (tmp_path / "m.uai").write_text(uai.write(ising(10, 10, 1.0, np.random.default_rng(0))))
    refused = cli("estimate-z", "m.uai", "--method", "full-rank")
    assert refused.status == 2
    assert "m.uai: " in refused.err
    for options in ((), ("--exact", "--samples", 0), ("--method", "exact")):
        (found,) = summary(cli("estimate-z", "m.uai", *options, "--json"))["estimates"]
        assert found["method"] == "grid transfer"
        assert found["value"] == pytest.approx(189.976646009376, abs=1e-9)


def complete(n, coupling):
    """An Ising model in which all spins are neighbours, and its ln Z, a sum over their total."""
    table = coupling * np.outer([-1.0, 1.0], [-1.0, 1.0])
    graph = FactorGraph([2] * n, [Factor(pair, table) for pair in itertools.combinations(range(n), 2)])
    totals = [math.log(math.comb(n, k)) + coupling * ((n - 2 * k) ** 2 - n) / 2 for k in range(n + 1)]
    return graph, float(np.logaddexp.reduce(totals))


@pytest.fixture
def wide(tmp_path):
    """A model of width 59."""
    graph, log_z = complete(60, 0.005)
    (tmp_path / "w.uai").write_text(uai.write(graph))
    return log_z


def test_a_model_without_an_exact_answer_gets_bounds_and_estimates(cli, wide, monkeypatch):
    monkeypatch.setattr(
        portfolio, "SHARES", dict.fromkeys(("bethe", "max-marginal", "trw"), Share(1, 1.0))
    )  # end by themselves
    refused = cli("estimate-z", "w.uai", "--method", "exact")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "at width 59" in refused.err
    found = summary(cli("estimate-z", "w.uai", "--seed", 1, "--json"))
    uppers, lowers, others = [], [], []
    for e in found["estimates"]:
        sides = {"upper bound": uppers, "lower bound": lowers}
        next((rows for side, rows in sides.items() if side in e["kind"]), others).append(e)
    assert all(e["low"] <= wide for e in lowers)
    assert all(e["high"] >= wide for e in uppers)
    assert lowers
    assert uppers
    assert found["estimates"][0] == others[0]
    assert others[0]["value"] == pytest.approx(wide, abs=math.log(32))
    assert "<= ln Z <=" in found["meaning"]


def test_auto_ignores_no_option(cli, wide):
    """Samples go to the bounds where neither full-rank noise nor the exact answer would heed them."""
    upper, lower = summary(cli("estimate-z", "w.uai", "--samples", 5, "--json"))["estimates"]
    assert (upper["map_calls"], lower["map_calls"]) == (5, 5)
    for option in (("--trick", "gumbel"), ("--no-debias",), ("--quantity", "f"), ("--samples", 50, "--quantity", "Z")):
        refused = cli("estimate-z", "w.uai", *option)
        assert (refused.status, refused.out) == (2, "")
        assert "configurations" in refused.err
    (few,) = summary(cli("estimate-z", ASIA, "--max-configurations", 255, "--json"))["estimates"]
    assert few["method"] == "elimination"


def test_bounds_stand_beside_the_exact_answer(cli, tmp_path):
    (tmp_path / "m.uai").write_text(uai.write(ising(10, 10, 1.0, np.random.default_rng(0))))
    exact, upper, lower = summary(cli("estimate-z", "m.uai", "--samples", 50, "--seed", 1, "--exact", "--json"))[
        "estimates"
    ]
    assert lower["value"] < exact["value"] < upper["value"]
    (alone,) = summary(cli("estimate-z", "m.uai", "--samples", 0, "--exact", "--json"))["estimates"]
    assert alone == exact


def test_the_figure_and_the_interval_of_the_estimates():
    found = tc.estimate_z(MODELS / "asia.uai", samples=20, seed=1, exact=True)
    axes = found.figure().axes[0]
    assert [text.get_text().split("\n")[0] for text in axes.get_yticklabels()] == ["gumbel"]
    assert found.estimates[1].interval == (found.estimates[1].low, found.estimates[1].high)
    assert repr(tc.map(MODELS / "asia.uai")) == repr(tc.map_state(MODELS / "asia.uai"))


def test_the_input_is_not_overwritten(cli, tmp_path):
    (tmp_path / "z.csv").write_text("0\n1\n")
    result = cli("estimate-z", "z.csv", "--out", tmp_path / "z.csv")
    assert result.status == 2
    assert result.err.startswith(f"error: --out {tmp_path}/z.csv would overwrite the input")
    assert (tmp_path / "z.csv").read_text() == "0\n1\n"


@pytest.mark.parametrize("log_z", [1000.0, -1000.0])
def test_an_exact_z_beyond_a_double_is_printed_with_its_power_of_ten(cli, tmp_path, log_z):
    (tmp_path / "k.csv").write_text(f"{log_z}\n")
    out = cli("estimate-z", "k.csv", "--exact", "--samples", 0, "--quantity", "Z").out
    expected = {1000.0: "1.97007111402e+434", -1000.0: "5.07595889755e-435"}[log_z]
    assert f"Z      {expected}  (enumeration, exact)" in out


def test_a_vector_with_a_heading_on_standard_input(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(ZIPF.read_bytes())))
    assert summary(cli("estimate-z", "-", "--json"))["configurations"] == 1000


def test_what_a_terminal_would_obey_is_not_printed(cli, tmp_path):
    (tmp_path / "m.uai").write_text("\x1b[31mMARKOV")
    assert "\x1b" not in cli("estimate-z", "m.uai").err


@pytest.mark.parametrize("method", ["auto", "full-rank", "exact"])
def test_an_impossible_model_is_one_error_for_every_method(cli, tmp_path, method):
    (tmp_path / "m.uai").write_text("MARKOV 2 2 2 2 2 0 1 2 0 1 4 1 0 0 1 4 0 1 1 0")
    result = cli("estimate-z", "m.uai", "--method", method)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: m.uai: no configuration is possible (Z = 0)")


def test_quantities_are_one_number_in_several_units(cli):
    arguments = "estimate-z", MODELS / "asia.bif", "--evidence", "xray=yes", "--method", "exact", "--json"
    found = {q: summary(cli(*arguments, "--quantity", q))["estimates"][0] for q in ("lnZ", "log10Z", "Z")}
    assert found["Z"]["value"] == pytest.approx(0.11029004)
    assert found["lnZ"]["value"] == pytest.approx(math.log(0.11029004))
    assert found["log10Z"]["value"] == pytest.approx(math.log10(0.11029004))
    assert found["log10Z"]["target"] == "log10 Z"
    sampled = "estimate-z", ASIA, "--seed", 1, "--trick", "all", "--json", "--quantity"
    natural, decimal = (summary(cli(*sampled, q))["estimates"] for q in ("lnZ", "log10Z"))
    for one, other in zip(natural, decimal, strict=True):
        for key in ("value", "standard_error", "low", "high"):
            assert one[key] == pytest.approx(other[key] * math.log(10), abs=1e-12)


@pytest.mark.parametrize("quantity", ["lnZ", "log10Z", "Z"])
def test_uai_result_file(cli, tmp_path, quantity):
    result = cli("estimate-z", SAT, "--method", "exact", "--quantity", quantity, "--uai", "a.PR")
    assert result.status == 0
    task, number = (tmp_path / "a.PR").read_text().split()
    assert (task, float(number)) == ("PR", pytest.approx(math.log10(11)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"samples": 300, "trick": "all", "exact": True},
        {"trick": "weibull", "alpha": 0.3, "quantity": "Z", "debias": False, "confidence": 0.5},
        {"method": "exact", "evidence": ("xray=0",)},
        {"trick": "tail", "threshold": 2.0, "quantity": "f", "jobs": 2},
    ],
)
def test_shell_and_python_agree(cli, tmp_path, options):
    words = []
    for name, value in options.items():
        flag = isinstance(value, bool)
        many = value if isinstance(value, tuple) else (value,)
        words += [f"--{'' if value else 'no-'}{name}"] if flag else [w for one in many for w in (f"--{name}", one)]
    assert cli("estimate-z", MODELS / "asia.bif", "--seed", 5, *words, "--out", "a.csv").status == 0
    found = tc.estimate_z(MODELS / "asia.bif", seed=5, **options)
    found.save(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert [e.value for e in found.estimates] == list(found.table["value"])


def test_python_takes_objects_and_refuses_as_the_shell_does(cli):
    values = np.log([0.2, 0.3, 0.5])
    found = tc.estimate_z(values, exact=True, samples=0)
    assert found.estimate.value == pytest.approx(0, abs=1e-12)
    assert found.table["model"][0] == "<ndarray>"
    again = tc.estimate_z(np.exp(values), exact=True, samples=0, probabilities=True)
    assert again.estimate.value == pytest.approx(0, abs=1e-12)
    with pytest.raises(InputError) as refusal:
        tc.estimate_z(ASIA, method="exact", samples=50)
    assert cli("estimate-z", ASIA, "--method", "exact", "--samples", 50).err == f"error: {refusal.value}\n"


def test_maxima_whose_mean_overflows_are_refused(cli, tmp_path):
    (tmp_path / "v.csv").write_text("1e308\n-1e308\n")
    result = cli("estimate-z", "v.csv", "--samples", "5")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "1e+308" in result.err


def test_the_plan_says_what_exact_takes_and_runs_nothing(cli, monkeypatch):
    rng = np.random.default_rng(0)
    loose = FactorGraph([2] * 41, [Factor((i, 0), rng.normal(size=(2, 2))) for i in range(1, 41)])
    for model in (MODELS / "asia.bif", ising(7, 7, 1.0, rng), loose):
        method = tc.estimate_z(model, method="exact").estimate.method
        with monkeypatch.context() as patch:
            for solver in ("elimination.elimination.Elimination", "elimination.small.SmallElimination"):
                patch.setattr(f"thesis_cli.inference.{solver}.log_partition_function", None)
            table = tc.estimate_z(model, plan=True).table
        taken = table[table["taken"]]
        assert list(taken["algorithm"].str.replace(" in NumPy", "")) == [method]
        assert (taken["fits"] & (taken["gib"] > 0) & (taken["seconds"] > 0) & (taken["slices"] == 1)).all()


def test_the_plan_of_a_model_without_configurations_says_so(cli):
    Path("none.uai").write_text("MARKOV 2 2 2 3 1 0 1 0 2 0 1 2 1 0 2 0 1 4 1 1 1 1\n")
    assert cli("estimate-z", "none.uai", "--plan").err.startswith(
        "error: none.uai: no configuration is possible (Z = 0)"
    )


def test_the_plan_of_a_model_that_is_too_large_names_what_it_needs(cli, wide):
    rows = json.loads(cli("estimate-z", "w.uai", "--plan", "--memory", 0.001, "--json").out)["algorithms"]
    large = {row["algorithm"]: row for row in rows}["contraction"]
    assert (large["fits"], large["taken"]) == (False, False)
    result = cli("estimate-z", "w.uai", "--method", "exact", "--memory", 0.001)
    assert result.err.startswith("error: w.uai: ")
    assert bytes_text(round(min(row["gib"] for row in rows if row["gib"] > 0) * 2**30)) in result.err
    assert cli("estimate-z", "w.uai", "--plan", "--samples", 5).err == (
        "error: --plan does not go with --samples; it runs nothing\n"
    )
    assert cli("estimate-z", MODELS / "zipf-1000.csv", "--plan").out.splitlines()[1].startswith("enumeration  4e-05 s")


def test_k_is_another_name_of_best():
    assert tc.map(MODELS / "asia.bif", k=2).table.equals(tc.map(MODELS / "asia.bif", best=2).table)
