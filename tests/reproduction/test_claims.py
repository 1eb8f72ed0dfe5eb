import csv
import dataclasses
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from thesis_cli.base.errors import WorkFailed
from thesis_cli.reproduction.claims import judge, rank, says_nothing, write_csv
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Sample
from thesis_cli.reproduction.measuring import furthest, lowest


def experiment(*claims):
    return Experiment("e", "t", "s", 1, {}, lambda s: [], lambda seed: pd.DataFrame(), lambda f: None, claims)


def claim(relation, published, value, error=0.0, kind="comparison", **more):
    measure = lambda frame: None if value is None else Measurement(value, error)  # noqa: E731
    return Claim("c", "s", kind, relation, published, measure, "statement", **more)


def verdict(folder, *claims):
    (folder / "e.csv").write_text("x\n1\n")
    (row,) = judge(experiment(*claims), folder)
    return row


@pytest.mark.parametrize(
    ("relation", "published", "value", "error", "verdict_of_comparison", "verdict_of_theorem"),
    [
        # an equality: refuted beyond five standard errors; decided if they are at most a tenth
        ("=", 1.0, 1.04, 0.02, "holds", "holds"),
        ("=", 1.0, 1.11, 0.02, "does not hold", "does not hold"),
        ("=", 1.0, 0.89, 0.02, "does not hold", "does not hold"),
        ("=", -2.0, -2.1, 0.04, "holds", "holds"),
        ("=", 1.0, 1.04, 0.021, "not decided", "consistent"),
        ("=", 1.0, math.nan, 0.01, "does not hold", "does not hold"),
        ("=", 1.0, None, 0.0, "not run", "not run"),
        ("=", 0.0, 0.0, 0.001, "not decided", "consistent"),
        # an inequality: decided beyond five standard errors on either side
        (">", 1.0, 1.11, 0.02, "holds", "holds"),
        (">", 1.0, 1.09, 0.02, "not decided", "consistent"),
        (">", 1.0, 0.91, 0.02, "not decided", "consistent"),
        (">", 1.0, 0.89, 0.02, "does not hold", "does not hold"),
        ("<", 1.0, 0.89, 0.02, "holds", "holds"),
        ("<", 1.0, 0.91, 0.02, "not decided", "consistent"),
        ("<", 1.0, 1.11, 0.02, "does not hold", "does not hold"),
        (">", 1.0, math.nan, 0.02, "does not hold", "does not hold"),
        (">", 0.0, 1.0, math.inf, "not decided", "consistent"),
        # without an error an observed inequality is strict, and a theorem's may be attained
        (">", 1.0, 1.0, 0.0, "does not hold", "consistent"),
        (">", 1.0, 1.1, 0.0, "holds", "holds"),
        ("<", 1.0, 1.1, 0.0, "does not hold", "does not hold"),
    ],
)
def test_verdicts(tmp_path, relation, published, value, error, verdict_of_comparison, verdict_of_theorem):
    kinds = dict.fromkeys(("comparison", "published"), verdict_of_comparison)
    for kind, expected in {**kinds, **dict.fromkeys(("identity", "bound"), verdict_of_theorem)}.items():
        row = verdict(tmp_path, claim(relation, published, value, error, kind))
        assert (row.kind, row.verdict) == (kind, expected)
        assert row.unexplained == (expected == "does not hold")


def test_a_claim_declares_the_deviation_that_it_tells_from_none(tmp_path):
    for scale, expected in ((4.9, "not decided"), (5.0, "holds"), (None, "not decided")):
        row = verdict(tmp_path, claim("=", 0.0, 1.0, 1.0, scale=scale))
        assert (row.verdict, row.measured, row.error, row.detects) == (expected, 1.0, 5.0, 5.0)
    attained = claim("<", 1.0, 1.0 + 1e-12, 1e-12, "bound")
    assert verdict(tmp_path, attained).verdict == "consistent"
    assert verdict(tmp_path, replace(attained, scale=1e-9)).verdict == "holds"
    assert verdict(tmp_path, replace(attained, scale=1e-12)).verdict == "consistent"
    observed = claim("<", 1.0, 1.0 + 1e-12, 1e-12, "comparison", scale=1e-9)  # not proven: must be strict
    assert verdict(tmp_path, observed).verdict == "not decided"


def test_rounding_and_words_of_the_source_are_allowed_once(tmp_path):
    for value, expected in ((0.394, "holds"), (0.396, "does not hold"), (0.386, "holds"), (0.384, "does not hold")):
        row = verdict(tmp_path, claim("=", 0.39, value, rounding=0.005))
        assert (row.verdict, row.error, row.detects) == (expected, 0.0, 0.005)
    words = Reading("roughly: within 0.02", 0.02)
    for value, expected in ((0.414, "holds"), (0.416, "does not hold")):
        row = verdict(tmp_path, claim("=", 0.39, value, rounding=0.005, reading=words))
        assert (row.verdict, row.reading, row.detects) == (expected, words.words, pytest.approx(0.025))
    for relation, value in ((">", 3.06), ("<", 3.14)):
        assert verdict(tmp_path, claim(relation, 3.1, value, rounding=0.05)).verdict == "holds"
    for relation, value in ((">", 3.04), ("<", 3.16)):
        assert verdict(tmp_path, claim(relation, 3.1, value, rounding=0.05)).verdict == "does not hold"


def test_errors_of_a_measurement(tmp_path):
    """Numerical errors count once, beside five standard errors; the weakest number decides what
    the row would have caught, not whether the one that is furthest off agrees.
    """

    def row(**errors):
        measure = lambda frame: Measurement(1.05, **errors)  # noqa: E731
        return verdict(tmp_path, Claim("c", "s", "identity", "=", 1.0, measure, "t"))

    assert (row(error=0.06).verdict, row(error=0.06).detects) == ("holds", 0.06)
    assert row(error=0.04).verdict == "does not hold"
    both = row(standard_error=0.004, error=0.04)
    assert (both.error, both.verdict) == (pytest.approx(0.06), "holds")
    weak = row(standard_error=0.012, weakest=0.03)
    assert (weak.error, weak.detects, weak.verdict) == (pytest.approx(0.06), pytest.approx(0.15), "consistent")
    assert row(standard_error=0.005, weakest=0.03).verdict == "does not hold"


def test_a_measurement_has_numbers_that_json_can_hold():
    found = Measurement(np.int64(3), np.float32(0.5))
    assert json.dumps([found.value, found.standard_error]) == "[3, 0.5]"


def test_the_furthest_number_is_the_one_that_misses_by_most_standard_errors():
    found = furthest([1.0, 1.3, 0.9], [0.1, 0.2, 0.05], expected=1.0)
    assert found == Measurement(0.9, 0.05, weakest=0.2)
    assert math.isnan(furthest([1.0, math.nan, 9.0], [1.0, 1.0, 1.0]).value)
    for values, errors in (([], []), ([1.0], [0.0]), ([1.0, 2.0], [1.0, math.nan])):
        with pytest.raises(ValueError, match="standard errors"):
            furthest(values, errors)


def test_the_lowest_number_is_the_one_that_is_fewest_standard_errors_from_0():
    errors = [0.5, 0.9, 0.1]
    assert lowest([1.0, 3.0, 0.9], errors) == Measurement(1.0, 0.5, weakest=0.9)
    assert lowest([-1.0, -3.0, -0.9], errors, sign=-1.0) == Measurement(-1.0, 0.5, weakest=0.9)
    assert lowest([], []) is None


def test_what_cannot_be_compared_is_neither_agreement_nor_contradiction(tmp_path):
    for value in (1.0, 2.0):
        row = verdict(
            tmp_path, claim("=", 1.0, value, finding="f", tag="slip", weight=2, not_comparable="Another one.")
        )
        assert (row.verdict, row.measured, row.why) == ("not comparable", value, "Another one.")
        assert (row.finding, row.tag, row.unexplained) == ("", "", False)
    assert verdict(tmp_path, claim("=", 1.0, None, not_comparable="Another one.")).verdict == "not run"


@pytest.mark.parametrize(
    ("relation", "value", "sources", "expected", "needed"),
    [
        ("=", 1.0, 0.04, "not decidable", "some 400."),  # 100 (5 x 0.04 / 0.1)^2
        ("=", 1.0, 0.01, "not decided", ""),  # the source had enough: the data here are too few
        ("=", 1.0, 0.0, "not decided", ""),
        ("=", 1.0, math.inf, "not decided", ""),
        (">", 1.1, 0.04, "not decidable", "some 400."),  # of the difference that is seen
        ("=", 9.0, 0.04, "does not hold", ""),
    ],
)
def test_a_sample_of_the_source_that_is_too_small_decides_nothing(tmp_path, relation, value, sources, expected, needed):
    measure = lambda frame: Measurement(value, 0.05, sources=sources)  # noqa: E731
    judged = Claim(
        "c", "s", "published", relation, 1.0, measure, "t", sample=Sample(100, "tasks"), tag="slip", weight=3
    )
    row = verdict(tmp_path, judged)
    assert (row.verdict, row.why.endswith(needed), bool(row.why)) == (expected, True, bool(needed))
    assert (row.tag, row.weight) == (("slip", 3) if expected == "does not hold" else ("", 0))


def test_an_error_beyond_ten_times_what_matters_says_nothing():
    assert says_nothing("=", 2.2, 1.2, 2.96, 0.22)
    assert not says_nothing("=", 2.2, 1.2, 2.1, 0.22)
    assert says_nothing(">", 0.0, 0.15, 4.0, math.nan)
    assert not says_nothing(">", 0.0, 0.15, 1.4, math.nan)


def test_findings_are_ranked_by_whose_they_are_by_tag_and_by_weight():
    ranked = [
        (False, "substantive", 1),
        (False, "reading", 9),
        (False, "slip", 2),
        (False, "slip", 1),
        (True, "slip", 9),
    ]
    assert sorted(reversed(ranked), key=lambda each: rank(*each)) == ranked


def test_rows_have_names_that_stay_and_say_whose_they_are(tmp_path):
    own = Claim("M >= 2, (+), Z", "this project", "published", "=", 0.5, lambda frame: None, "t")
    (row,) = judge(experiment(own), tmp_path)
    assert (row.id, row.own, row.printed) == ("e.m-above-2-plus-z", True, "0.5")
    assert verdict(tmp_path, replace(own, source="Thesis 2", kind="bound")).own is False
    assert verdict(tmp_path, replace(own, kind="bound")).printed == ""


def test_a_finding_explains(tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n")
    (row,) = judge(experiment(claim("=", 1.0, 2.0, finding="Somewhere")), tmp_path)
    assert (row.verdict, row.unexplained, row.finding) == ("does not hold", False, "Somewhere")
    row = verdict(tmp_path, claim("=", 1.0, 1.0, finding="Somewhere"))
    assert (row.verdict, row.finding) == ("holds", "")


def test_without_a_result_nothing_was_run(tmp_path):
    rows = judge(experiment(claim("=", 1.0, 2.0)), tmp_path)
    assert [r.verdict for r in rows] == ["not run"]
    write_csv(rows, tmp_path / "claims.csv")
    with open(tmp_path / "claims.csv") as file:
        assert [r["verdict"] for r in csv.DictReader(file)] == ["not run"]


def test_a_claim_that_cannot_read_its_result_is_one_line(tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n")
    broken = Claim("c", "s", "identity", "=", 1.0, lambda frame: frame.missing, "statement")
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
