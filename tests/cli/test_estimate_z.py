import csv
import json
import math
import os
import sys
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.base import files
from thesis_cli.models import uai
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
        cli("estimate-z", SAT, "--trick", "all", "--target", "Z", "--samples", 300, "--seed", 2, "--exact", "--json")
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
            "--target",
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
    for target in ("lnZ", "Z", "f"):
        for e in summary(cli("estimate-z", "v.npy", "--trick", "all", "--target", target, "--seed", 1, "--json"))[
            "estimates"
        ]:
            assert e["value"] is not None
            if target == "lnZ":
                assert e["value"] == pytest.approx(log_z + math.log(3), abs=1)


def test_one_sample(cli):
    for e in summary(cli("estimate-z", ZIPF, "--trick", "all", "--samples", 1, "--seed", 1, "--json"))["estimates"]:
        assert e["method"].startswith("tail") or e["value"] is not None


BAD = [
    ([ASIA, "--trick", "weibull", "--alpha", "-0.5"], "error: --alpha -0.5 does not go with --trick weibull"),
    ([ASIA, "--trick", "weibull", "--alpha", "1e300"], "error: alpha is 1e+300"),
    ([ASIA, "--trick", "frechet", "--alpha", "-1e-300"], "error: alpha is -1e-300"),
    ([ASIA, "--samples", "99999999999999999999"], "error: Invalid value for '--samples'"),
    ([ASIA, "--evidence", "/dev/zero"], "error: /dev/zero: the file is larger than 16 MiB"),
    (["nowhere.uai"], "error: nowhere.uai: cannot be read (no such file or directory)"),
    ([ASIA, "--alpha", "1"], "error: --alpha does not go with --trick gumbel"),
    ([ASIA, "--trick", "weibull", "--alpha", "-1"], "error: alpha is -1; 1e-06 to 10 (weibull)"),
    ([ASIA, "--trick", "frechet", "--alpha", "0.5"], "error: --alpha 0.5 does not go with --trick frechet"),
    ([ASIA, "--trick", "weibull", "--alpha", "nan"], "error: alpha is nan"),
    ([ASIA, "--threshold", "1"], "error: --threshold does not go with --trick gumbel"),
    ([ASIA, "--trick", "tail", "--threshold", "0"], "error: --threshold is 0"),
    ([ASIA, "--confidence", "1"], "error: the confidence is 1"),
    ([ASIA, "--samples", "0"], "error: --samples 0 leaves nothing to do"),
    ([ASIA, "--out", "x.txt"], "error: --out x.txt; a file name that ends in .csv"),
    ([ASIA, "--max-configurations", "255"], f"error: {ASIA}: 8 variables, 8 factors, 256 configurations: more"),
    ([ASIA, "--evidence", ASIA], f"error: {ASIA}:1: the number of observed"),
    ([ASIA, "--format", "bif"], f"error: {ASIA}:1: declares no variable"),
    ([ASIA, "--method", "unary", "--trick", "gumbel"], "error: --trick does not go with --method unary"),
    ([ASIA, "--method", "trw", "--target", "Z"], "error: --target does not go with --method trw"),
    ([ASIA, "--method", "average", "--clamp", "1"], "error: --clamp does not go with --method average"),
    ([ASIA, "--clamp", "1"], "error: --clamp does not go with --method auto"),
    ([ASIA, "--method", "unary", "--subsets", "0,1"], "error: --subsets does not go with --method unary"),
    ([ASIA, "--method", "trw", "--alpha", "0"], "error: --alpha does not go with --method trw"),
    ([ASIA, "--method", "bethe", "--solver", "grid"], "error: --solver does not go with --method bethe"),
    ([ASIA, "--method", "unary", "--no-debias"], "error: --no-debias does not go with --method unary"),
    ([ASIA, "--any-alpha"], "error: --any-alpha does not go with --method auto"),
    ([ASIA, "--method", "unary", "--alpha", "1e300"], f"error: {ASIA}: alpha is 1e+300"),
    ([ASIA, "--method", "unary", "--alpha", ".1", "--confidence-method", "concentration"], f"error: {ASIA}: --confid"),
    ([ASIA, "--method", "subset", "--subsets", ""], f"error: {ASIA}: --subsets is empty"),
    ([ASIA, "--method", "unary", "--clamp", "x"], f"error: {ASIA}: 'x' is no list of variables"),
    ([ASIA, "--method", "unary", "--clamp", "9"], f"error: {ASIA}: clamping names variable 9"),
    ([ASIA, "--method", "subset", "--subsets", "0,0"], f"error: {ASIA}: subset 0 is (0, 0)"),
    ([ASIA, "--method", "unary", "--alpha", "-0.18"], f"error: {ASIA}: alpha is -0.18; a number above -0.176"),
    ([ZIPF, "--method", "unary"], f"error: {ZIPF}: --method unary wants variables, this is a vector"),
    ([ASIA, "--method", "unary", "--solver", "grid"], f"error: {ASIA}: factor 5 has 3 variables; elimination takes"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("estimate-z", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith(message), result.err
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_impossible_model_is_one_line(cli, tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 2 1 0 1 0 2 1 0 2 0 1")
    for extra in ([], ["--samples", 0, "--exact"]):
        result = cli("estimate-z", "m.uai", *extra)
        assert (result.status, result.err) == (
            2,
            "error: m.uai: no configuration is possible (Z = 0); a configuration of finite potential is wanted\n",
        )


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


def test_debug_shows_the_traceback(cli):
    with pytest.raises(ValueError, match="cannot be read"):
        cli("estimate-z", "nowhere.uai", "--debug")


def test_quiet_says_nothing_but_the_summary(cli):
    assert cli("estimate-z", ASIA, "--quiet").err == ""


def test_exact_takes_what_full_rank_noise_refuses(cli, tmp_path):
    """An Ising grid of 2^100 configurations."""
    (tmp_path / "m.uai").write_text(uai.write(ising(10, 10, 1.0, np.random.default_rng(0))))
    refused = cli("estimate-z", "m.uai", "--method", "full-rank")
    assert refused.status == 2
    assert "a method that does not enumerate: exact, if the width is small" in refused.err
    (found,) = summary(cli("estimate-z", "m.uai", "--exact", "--samples", 0, "--json"))["estimates"]
    assert found["method"] == "grid transfer"
    assert found["value"] == pytest.approx(189.976646009376, abs=1e-9)
    (tmp_path / "w.uai").write_text(uai.write(ising(16, 16, 1.0, np.random.default_rng(0))))
    refused = cli("estimate-z", "w.uai", "--exact", "--samples", 0, "--memory", 0.005)
    assert refused.status == 2
    assert "w.uai: elimination needs 16.7 MiB at width 16; raise the memory from 5.12 MiB" in refused.err


def test_auto_is_exact_beyond_enumeration_and_bounds_beyond_that(cli, tmp_path):
    (tmp_path / "m.uai").write_text(uai.write(ising(10, 10, 1.0, np.random.default_rng(0))))
    (found,) = summary(cli("estimate-z", "m.uai", "--json"))["estimates"]
    assert (found["method"], found["value"]) == ("grid transfer", pytest.approx(189.976646009376, abs=1e-9))
    (tmp_path / "w.uai").write_text(uai.write(ising(16, 16, 1.0, np.random.default_rng(0))))
    result = cli("estimate-z", "w.uai", "--json", "--memory", 0.001, "--samples", 50)
    upper, lower = json.loads(result.out)["estimates"]
    assert (upper["method"], lower["method"]) == ("U(0)", "L(0)")
    assert "no exact ln Z: elimination needs" in result.err


@pytest.mark.parametrize("method", ["unary", "average", "subset", "bethe", "trw"])
def test_bounds_by_name(cli, method):
    result = cli(
        "estimate-z", MODELS / "ising-4x4.uai", "--method", method, "--seed", 1, "--samples", 500, "--exact", "--json"
    )
    exact, found = json.loads(result.out)["estimates"]
    slack = 5 * found["standard_error"] + 1e-6
    if method in ("unary", "subset", "trw"):
        assert found["value"] >= exact["value"] - slack
    if method == "average":
        assert found["value"] <= exact["value"] + slack
    assert abs(found["value"] - exact["value"]) < 3 + slack


def test_all_alphas_come_from_the_same_samples(cli):
    arguments = ("estimate-z", MODELS / "ising-4x4.uai", "--method", "unary", "--seed", 1, "--json")
    both = summary(cli(*arguments, "--alpha", 0, "--alpha", 0.1))["estimates"]
    assert both[0] == summary(cli(*arguments))["estimates"][0]
    assert both[1] == summary(cli(*arguments, "--alpha", 0.1))["estimates"][0]


def test_clamping_everything_is_exact_and_subsets_are_read(cli):
    model = MODELS / "asia.uai"
    clamped = summary(cli("estimate-z", model, "--method", "unary", "--clamp", "0,1,2,3,4,5,6,7", "--json"))
    assert clamped["estimates"][0]["value"] == pytest.approx(0, abs=1e-12)  # the network is normalised
    arguments = ("estimate-z", model, "--method", "subset", "--seed", 1, "--json", "--subsets")
    assert summary(cli(*arguments, "0,1 2,3 4 5 6 7"))["estimates"][0]["kind"] == "upper bound in expectation"
    assert "variable 2 has no noise" in cli(*arguments, "0,1 3 4 6 7").err


def test_concentration_is_wider_than_the_delta_method(cli):
    arguments = ("estimate-z", MODELS / "ising-4x4.uai", "--method", "unary", "--seed", 1, "--json")
    normal = summary(cli(*arguments))["estimates"][0]
    sure = summary(cli(*arguments, "--confidence-method", "concentration"))["estimates"][0]
    assert normal["value"] == sure["value"]
    assert sure["low"] < normal["low"] < normal["high"] < sure["high"]


def test_the_input_is_not_overwritten(cli, tmp_path):
    (tmp_path / "z.csv").write_text("0\n1\n")
    result = cli("estimate-z", "z.csv", "--out", tmp_path / "z.csv")
    assert (result.status, result.err) == (
        2,
        f"error: --out {tmp_path}/z.csv would overwrite the input; another --out is wanted\n",
    )
    assert (tmp_path / "z.csv").read_text() == "0\n1\n"


@pytest.mark.parametrize("log_z", [1000.0, -1000.0])
def test_an_exact_z_beyond_a_double_is_printed_with_its_power_of_ten(cli, tmp_path, log_z):
    (tmp_path / "k.csv").write_text(f"{log_z}\n")
    out = cli("estimate-z", "k.csv", "--exact", "--samples", 0, "--target", "Z").out
    expected = {1000.0: "1.97007111402e+434", -1000.0: "5.07595889755e-435"}[log_z]
    assert f"Z      {expected}  (enumeration, exact)" in out


def test_a_vector_with_a_heading_on_standard_input(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(ZIPF.read_bytes())))
    assert summary(cli("estimate-z", "-", "--json"))["configurations"] == 1000


def test_what_a_terminal_would_obey_is_not_printed(cli, tmp_path):
    (tmp_path / "m.uai").write_text("\x1b[31mMARKOV")
    assert "\x1b" not in cli("estimate-z", "m.uai").err


@pytest.mark.parametrize("method", ["full-rank", "exact", "unary", "average", "subset", "bethe", "trw"])
def test_an_impossible_model_is_one_error_for_every_method(cli, tmp_path, method):
    (tmp_path / "m.uai").write_text("MARKOV 2 2 2 2 2 0 1 2 0 1 4 1 0 0 1 4 0 1 1 0")
    result = cli("estimate-z", "m.uai", "--method", method)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: m.uai: no configuration is possible (Z = 0)")


def test_alphas_that_take_more_samples_are_warned_about(cli):
    result = cli("estimate-z", ISING, "--method", "unary", "--alpha", "0.5", "--alpha", "0", "--seed", 1)
    assert result.err.startswith("warning: 100 samples may be far too few for alpha = 0.5: up to 5e+02\n")
    assert result.err.count("warning") == 1
