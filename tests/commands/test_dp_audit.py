import csv
import json
import os
from importlib.util import find_spec

import numpy as np
import pytest

import thesis_cli
from tests.commands.test_dp_release import SCHEMA, write
from thesis_cli.commands import dp_audit, dp_release
from thesis_cli.commands.dp_audit import OWN_METHODS
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import OpenDPGaussian
from thesis_cli.privacy.release import vectors
from thesis_cli.privacy.release.record import Release
from thesis_cli.privacy.release.release import uniform_rows


@pytest.fixture
def audit(cli):
    return lambda *arguments: cli("dp-audit", "--command-runs", 0, "--stage-runs", 0, *arguments)


@pytest.fixture
def planted(monkeypatch):
    """Plants Gaussian noise of a generator that is kept, a factor of what it should be."""

    def plant(factor):
        rng = np.random.default_rng(3)

        class Fast(OpenDPGaussian):
            def _draw(self, vector, found):
                return vector + factor * found.scale * rng.normal(size=vector.size)

        monkeypatch.setitem(vectors.NOISES, "gaussian", Fast)
        monkeypatch.setattr(dp_audit, "NOISY", (("features", "gaussian"),))

    return plant


def test_few_runs_of_all_methods_tell_nothing(audit, tmp_path, monkeypatch):
    """Of either noise one method is enough."""
    monkeypatch.setattr(dp_audit, "NOISY", (*dp_audit.NOISY[:2], *dp_audit.NOISY[4:]))
    result = audit("--runs", 40, "--confidence", 1 - 1e-7)
    assert (result.status, result.err) == (0, "wrote results/runs/dp-audit-all.csv\n")
    assert result.out.count("not contradicted: ") == len(dp_audit.NOISY)
    assert result.out.count("too few runs") == len(dp_audit.NOISY)
    assert "holds" not in result.out
    assert "mu >= 0.000 of 3.235 claimed (0%), 40 runs" in result.out
    assert "epsilon >= 0.000 of 3 claimed (0%), 40 runs" in result.out
    with open(tmp_path / "results/runs/dp-audit-all.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [
        method if noise in ("gaussian", None) else f"{method}, {noise}" for method, noise in dp_audit.NOISY
    ]
    assert {(row["entry"], row["runs"], row["verdict"]) for row in rows} == {("record", "40", "not contradicted")}
    assert 0.999 < float(rows[0]["reach"]) <= 1
    settings = json.loads((tmp_path / "results/runs/dp-audit-all.json").read_text())["settings"]
    assert (settings["epsilon"], settings["delta"], settings["runs"]) == (None, 1e-6, 40)


@pytest.mark.usefixtures("planted")
def test_python_gives_the_same_rows(audit, planted):
    """Of noise from a generator that starts anew; the true noise has no seed."""
    results = []
    for call in (
        lambda: json.loads(audit("--runs", 44, "--json", "--quiet").out),
        lambda: thesis_cli.dp_audit(runs=44, command_runs=0, stage_runs=0),
    ):
        planted(1.0)
        results.append(call())
    shell, python = results
    for found in shell["audits"]:
        del found["seconds"]
    assert shell["audits"] == [
        {key: value for key, value in report.summary().items() if key != "seconds"} for report in python.reports
    ]
    assert shell["verdict"] == python.verdict
    assert python.table.method.tolist() == ["features"]


def test_the_command_is_audited_from_a_file(cli, planted, monkeypatch):
    """Its rows, which the audit leaves aside, take most of the time."""

    def one_row(request, record, progress):
        return Release(record.schema, uniform_rows(record.schema, 1, 0), np.ones(1), record)

    monkeypatch.setattr(dp_release, "_synthetic", one_row)
    planted(1.0)
    runs = "--runs", 40, "--command-runs", 40, "--stage-runs", 0
    result = cli("dp-audit", *runs, "--json", "--quiet", "--confidence", 1 - 1e-7)
    found = json.loads(result.out)["audits"]
    assert [(audit["entry"], audit["verdict"]) for audit in found] == [
        ("record", "not contradicted"),
        ("dp-release", "not contradicted"),
    ]
    planted(0.0)
    result = cli("dp-audit", "--runs", 40, "--command-runs", 40, "--stage-runs", 0)
    assert result.status == 1
    assert result.out.count("values of the noise occur again") == 2


def test_noise_that_breaks_its_promise_is_status_1(audit, planted, tmp_path):
    planted(0.5)
    result = audit("--epsilon", 20, "--runs", 600, "--confidence", 0.95)
    assert result.status == 1
    assert "contradicted: mu >= " in result.out
    assert "not contradicted" not in result.out
    assert "\n          mu is at least " in result.out
    assert "would contradict" not in result.out
    assert (tmp_path / "results/runs/dp-audit-all.csv").is_file()


def test_the_claim_is_that_of_the_budget(audit, planted, monkeypatch):
    """Even if the code under audit reports a larger one."""
    right = mechanism.OpenDPGaussian.calibrate
    wrong = lambda self, size, sensitivity, budget: right(self, size, sensitivity, mechanism.Budget(80.0, 1e-6))  # noqa: E731
    planted(1.0)
    monkeypatch.setattr(mechanism.OpenDPGaussian, "calibrate", wrong)
    result = audit("--epsilon", 20, "--runs", 600, "--confidence", 0.95)
    assert (result.status, "of 3.235 claimed" in result.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "0"], "error: --epsilon is 0; "),
        (["--delta", "1"], "error: --delta is 1; "),
        (["--delta", "0.1", "--method", "exponential"], "error: --delta does not go with --method exponential"),
        (["--command-runs", "39"], "error: --command-runs is 39; "),
        (["--confidence", "1"], "error: --confidence is 1; "),
        (["--runs", "39"], "error: --runs is 39; "),
        (["--out", "x.txt"], "error: --out x.txt"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("dp-audit", "--runs", 40, *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_table_is_audited_by_canaries_and_the_result_says_that_it_is_private(cli, tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 40, 1)
    own = "--table", "people.csv", "--schema", "schema.toml", "--canaries", 30, "--confidence", 1 - 1e-7, "--quiet"
    result = cli("dp-audit", *own)
    assert result.status == 0, result.err
    methods = [line.split()[0] for line in result.out.splitlines() if "of 1 claimed" in line]
    assert methods == [name for name in OWN_METHODS if name != "marginals" or find_spec("mbi")]
    assert "30 canaries in 70 rows" in result.out
    assert "this result depends on the table and has no guarantee: keep it like the table" in result.out
    with open(tmp_path / "results/runs/dp-audit-people-all.csv") as file:
        rows = list(csv.DictReader(file))
    assert {(row["rows"], row["canaries"], row["verdict"]) for row in rows} == {("70", "30", "not contradicted")}
    found = json.loads(cli("dp-audit", *own, "--method", "features", "--epsilon", 3, "--json", "--no-out").out)
    assert (found["private"], found["audits"], found["own"][0]["epsilon"]) == (True, [], 3)


def test_a_table_that_tells_its_canaries_is_status_1(cli, planted, tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "people.csv", 40, 1)
    planted(0.001)
    own = "--table", "people.csv", "--schema", "schema.toml", "--canaries", 60, "--method", "features"
    result = cli("dp-audit", *own, "--quiet")
    assert result.status == 1
    assert "contradicted: epsilon >= 1." in result.out or "contradicted: epsilon >= 2." in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "t.csv"], "--table and --schema go together"),
        (["--canaries", "5"], "--canaries goes with --table"),
        (["--table", "t.csv", "--schema", "s.toml", "--runs", "50"], "--runs does not go with --table"),
        (["--table", "t.csv", "--schema", "s.toml", "--method", "exponential"], "--method exponential does not go"),
        (["--table", "t.csv", "--schema", "none.toml"], "none.toml: it cannot be read"),
        (["--method", "marginals", "--runs", "50"], "--runs does not go with --method marginals"),
    ],
)
def test_options_of_a_table_are_checked(cli, arguments, message):
    result = cli("dp-audit", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_a_method_whose_package_is_missing_is_named(cli, monkeypatch):
    monkeypatch.setattr(dp_audit, "is_installed", lambda package: False)
    result = cli("dp-audit", "--method", "marginals", "--no-out")
    assert "marginals is not audited, because mbi is not installed: run pip install 'opendp[mbi]'" in result.err
    assert result.status == 0
