import csv
import dataclasses
import math
from dataclasses import replace

import pandas as pd
import pytest

from thesis_cli.base.errors import WorkFailed
from thesis_cli.reproduction.claims import judge, write_csv
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement


def experiment(*claims):
    return Experiment("e", "t", "s", 1, {}, lambda s: [], lambda seed: pd.DataFrame(), lambda f: None, claims)


def claim(relation, published, value, error=0.0, rounding=0.0, finding=""):
    measure = lambda frame: None if value is None else Measurement(value, error)  # noqa: E731
    return Claim("c", "s", "statement", published, relation, measure, rounding, finding)


@pytest.mark.parametrize(
    ("relation", "published", "value", "error", "rounding", "verdict"),
    [
        ("=", 1.0, 1.04, 0.01, 0.0, "holds"),
        ("=", 1.0, 1.06, 0.01, 0.0, "does not hold"),
        ("=", 1.0, 0.94, 0.01, 0.0, "does not hold"),
        ("=", 0.39, 0.3921, 0.0, 0.005, "holds"),
        (">", 1.0, 1.0, 0.0, 0.0, "does not hold"),
        (">", 1.0, 0.97, 0.01, 0.0, "holds"),
        (">", 1.0, 1.1, 0.0, 0.0, "holds"),
        ("<", 1.0, 1.1, 0.0, 0.0, "does not hold"),
        ("<", 1.0, 0.9, 0.0, 0.0, "holds"),
        ("=", 1.0, math.nan, 0.0, 0.0, "does not hold"),
        ("=", 1.0, None, 0.0, 0.0, "not run"),
        ("=", 2.0, 2.4, 5.7, 0.0, "undecided"),
        ("=", 2.0, 2.4, 0.3, 0.5, "undecided"),
        ("=", 2.0, 2.4, 0.29, 0.5, "holds"),
        ("=", -2.0, 12.0, 2.0, 0.0, "does not hold"),
        ("<", 1.0, 1.4, 0.4, 0.0, "undecided"),
        ("<", 1.0, 0.6, 0.4, 0.0, "undecided"),
        (">", 1.0, 3.4, 0.4, 0.0, "holds"),
        (">", 1.0, 2.4, 0.4, 0.0, "undecided"),
        (">", 1.0, -1.1, 0.4, 0.0, "does not hold"),
        (">", 0.0, 2.4, 5.0, 0.0, "holds"),
    ],
)
def test_verdicts(tmp_path, relation, published, value, error, rounding, verdict):
    (tmp_path / "e.csv").write_text("x\n1\n")
    (row,) = judge(experiment(claim(relation, published, value, error, rounding)), tmp_path)
    assert row.verdict == verdict
    assert row.unexplained == (verdict == "does not hold")


def test_a_claim_declares_from_which_tolerance_it_is_undecided(tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n")
    for scale, verdict in ((5.0, "undecided"), (5.1, "holds"), (None, "holds")):
        (row,) = judge(experiment(replace(claim("=", 0.0, 1.0, 1.0), scale=scale)), tmp_path)
        assert (row.verdict, row.measured, row.tolerance, row.unexplained) == (verdict, 1.0, 5.0, False)


def test_a_finding_explains(tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n")
    (row,) = judge(experiment(claim("=", 1.0, 2.0, finding="Somewhere")), tmp_path)
    assert (row.verdict, row.unexplained) == ("does not hold", False)


def test_without_a_result_nothing_was_run(tmp_path):
    rows = judge(experiment(claim("=", 1.0, 2.0)), tmp_path)
    assert [r.verdict for r in rows] == ["not run"]
    write_csv(rows, tmp_path / "claims.csv")
    with open(tmp_path / "claims.csv") as file:
        assert [r["verdict"] for r in csv.DictReader(file)] == ["not run"]


def test_a_claim_that_cannot_read_its_result_is_one_line(tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n")
    broken = Claim("c", "s", "statement", 1.0, "=", lambda frame: frame.missing)
    with pytest.raises(WorkFailed, match=r"'c' of e failed .*--refresh"):
        judge(experiment(broken), tmp_path)


def rows_of(path):
    with open(path) as file:
        return [(row["experiment"], row["verdict"]) for row in csv.DictReader(file)]


def test_rows_of_other_experiments_stay_and_are_in_the_order_of_ids(tmp_path):
    path = tmp_path / "claims.csv"
    missing, kept = judge(experiment(claim("=", 1.0, 1.0)), tmp_path), []
    for name in ("f", "d"):
        kept += [dataclasses.replace(row, experiment=name) for row in missing]
    write_csv(kept, path)
    (tmp_path / "e.csv").write_text("x\n1\n")
    found = judge(experiment(claim("=", 1.0, 1.0)), tmp_path)
    write_csv(found, path, keep=["a", "d", "f"])
    assert rows_of(path) == [("d", "not run"), ("e", "holds"), ("f", "not run")]
    write_csv(found, path, keep=["f"])
    assert rows_of(path) == [("e", "holds"), ("f", "not run")]


@pytest.mark.parametrize("damage", [b"", b"experiment,claim\nf,c\n", b"\xff", b'"'])
def test_a_damaged_table_of_claims_is_written_again(tmp_path, damage):
    path = tmp_path / "claims.csv"
    path.write_bytes(damage)
    (tmp_path / "e.csv").write_text("x\n1\n")
    write_csv(judge(experiment(claim("=", 1.0, 1.0)), tmp_path), path, keep=["f"])
    assert rows_of(path) == [("e", "holds")]
