"""Two folders of results: what is identical, equal, different, and missing."""

import json

import pytest

from tests.reproduction.report.conftest import CLAIM, HEADING, ROWS, TABLE, picture, write_results
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.comparison import Cell
from thesis_cli.reproduction.report.compared import compare_folders, comparison_page, share

EQUAL = TABLE.replace("0.5,1", "0.5001,7")
OTHER = TABLE.replace("0.5", "0.6")


@pytest.fixture
def other(tmp_path):
    return write_results(tmp_path / "other", numpy="9")


def pairs(toy, other):
    return {pair.id: pair for pair in compare_folders(toy, "paper", other).pairs}


def test_a_copy_is_identical(toy, other):
    found = compare_folders(toy, "paper", other)
    assert found.counts == {"identical": 2, "equal": 0, "differs": 0, "not compared": 0}
    assert (found.changes, found.claims, found.faults, found.names) == ([], 3, [], ("results", str(other)))
    assert "<img" not in comparison_page(found)
    assert "Identical, with the same figures and verdicts: one, two" in comparison_page(found)


def test_tolerances_of_the_experiment_decide_and_the_largest_difference_is_shown(toy, other):
    write_results(other, EQUAL, ["one"])
    write_results(other, OTHER, ["two"])
    found = pairs(toy, other)
    one, two = found["one"], found["two"]
    assert (one.outcome, one.largest[0]) == ("equal", Cell("x", 1, "0.5", "0.5001"))
    assert one.largest[1] == pytest.approx(0.0001 / 0.5001)
    assert (two.outcome, two.text) == ("differs", "differs in 1 cell (largest: x, row 1: 0.5, now 0.6)")
    text = comparison_page(compare_folders(toy, "paper", other))
    assert text.count("<img") == 2
    assert 'alt="Figure of two in results' in text


def test_another_spelling_of_a_number_is_no_difference(toy, other):
    write_results(other, TABLE.replace("0.5", "0.50"), ["one"])
    one = pairs(toy, other)["one"]
    assert (one.outcome, one.largest) == ("equal", None)


def test_another_figure_is_shown_beside_the_one_that_stands(toy, other):
    (other / "two.png").write_bytes(picture("blue"))
    found = pairs(toy, other)["two"]
    assert (found.outcome, found.seen, found.shows_figures) == ("identical", "100.00% of the pixels", True)
    (other / "two.png").unlink()
    assert pairs(toy, other)["two"].seen == "only one of the folders has it"
    assert "no figure" in comparison_page(compare_folders(toy, "paper", other))


def test_claims_with_another_verdict(toy, other):
    changed = [
        CLAIM.format("one", "mean", 2, "does not hold", "f"),
        CLAIM.format("one", "new", 1, "holds", ""),
        ROWS[2],
    ]
    (other / "claims.csv").write_text("\n".join([HEADING, *changed, ""]))
    found = compare_folders(toy, "paper", other)
    assert [(c.claim, c.old.verdict, c.new.verdict) for c in found.changes] == [("mean", "holds", "does not hold")]
    assert [(c.claim, c.old.verdict, c.new.verdict) for c in found.single] == [
        ("other", "does not hold", "none"),
        ("new", "none", "holds"),
    ]
    assert found.claims == 2
    assert "the mean is 1" in comparison_page(found)


def test_without_a_table_of_claims_the_tables_are_judged(toy, other):
    write_results(other, TABLE.replace("1.5", "9.5"))
    (other / "claims.csv").write_text("damaged")
    found = compare_folders(toy, "paper", other)
    assert "claims.csv: the table has no column experiment; its claims are judged anew" in found.faults[0]
    assert {("mean", "holds", "does not hold")} == {(c.claim, c.old.verdict, c.new.verdict) for c in found.changes}
    (other / "two.csv").write_text("name,y\na,1\n")
    found = compare_folders(toy, "paper", other)
    assert f"{other}: the claim 'mean' of two failed (AttributeError: 'DataFrame' object has" in found.faults[-1]
    assert [change.claim for change in found.single] == ["other", "mean"]


def test_records_are_compared_field_by_field(toy, other):
    fields = json.loads((other / "one.json").read_text())
    fields |= {"versions": {"numpy": "3.0", "scipy": "1"}, "seed": 4, "task_seconds": 9}
    (other / "one.json").write_text(json.dumps(fields))
    assert pairs(toy, other)["one"].records == (("seed", "0", "4"), ("numpy", "2.4", "3.0"), ("scipy", "", "1"))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (None, "not in {}"),
        (b"\xff", "{}: the table is damaged: it is no text"),
        (b"", "{}: the table is damaged: it is empty"),
        (b"a,b\n1\n", "{}: the table is damaged: line 2 has 1 cell, not 2"),
    ],
)
def test_tables_that_are_missing_or_damaged_are_not_compared(toy, other, damage, text):
    path = other / "one.csv"
    path.unlink() if damage is None else path.write_bytes(damage)
    found = compare_folders(toy, "paper", other)
    (one, two) = found.pairs
    assert (one.outcome, one.text, one.changes, two.outcome) == ("not compared", text.format(other), (), "identical")
    assert bool(found.faults) == (damage is not None)
    assert text.format(other) in comparison_page(found)


def test_other_columns_are_in_words(toy, other):
    (other / "one.csv").write_text("name,y\na,1\n")
    assert pairs(toy, other)["one"].text == "differs: its columns are now without x, seconds and with y"


def test_folders_without_results_are_refused(toy, other):
    for folder, problem in (
        (toy.root / "nothere", "does not exist"),
        (other / "one.csv", "is no folder"),
        (toy.root / "docs", "has no table of an experiment"),
        (toy.root, f"give {toy.root / 'results'}"),
        (toy.root / "docs" / ".." / "results", "is the folder of the results itself"),
    ):
        with pytest.raises(InputError, match=problem):
            compare_folders(toy, "paper", folder)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("1", "2", 0.5), ("1e308", "-1e308", 2), ("nan", "NaN", 0), ("nan", "1", float("inf")), ("a", "1", float("inf"))],
)
def test_the_share_of_a_difference(old, new, expected):
    assert share(Cell("x", 1, old, new)) == expected
