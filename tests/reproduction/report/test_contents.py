"""What the report gathers, and what it says of files that are missing, damaged or changed by hand."""

import json

import pytest

from tests.conftest import ROOT
from tests.reproduction.report.conftest import CLAIM, HEADING, ROWS, picture
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.claims import VERDICTS
from thesis_cli.reproduction.publication import was_changed
from thesis_cli.reproduction.report.contents import gather
from thesis_cli.reproduction.report.page import page


def test_results_are_in_the_order_of_the_sections_with_claims_and_findings(toy):
    found = gather(toy)
    assert [(r.id, r.section, len(r.claims)) for r in found.results] == [
        ("two", "chapter-4", 1),
        ("one", "perturb-max", 2),
    ]
    assert found.faults == []
    assert found.counts() == {**dict.fromkeys(VERDICTS, 0), "holds": 2, "does not hold": 1}
    assert found.counts("chapter-4") == found.counts()
    assert found.counts("chapter-3")["holds"] == 0
    first, second = found.findings
    assert (first.heading, [c.claim for c in first.claims], second.claims) == ("2.3, the mean", ["other"], ())
    assert second.text == "Of a sign."
    assert first.lead == "The mean is 3, see. <b>"
    assert (found.numbers[0].all, found.numbers[0].claimed, found.uncovered) == (1, 1, ())


def change(name, text):
    """A file of the checkout with other content; None removes it."""

    def changed(root):
        path = root / name
        path.unlink() if text is None else path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return changed


def record(**fields):
    """Other values in the record of `one`."""

    def changed(root):
        path = root / "results" / "one.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return changed


def rows(*lines):
    """Another table of claims."""
    return change("results/claims.csv", "\n".join([HEADING, *lines, ""]))


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (change("results/one.csv", None), "one.csv is missing"),
        (change("results/one.csv", "x\n1\n"), "one.csv is not the table that one.json describes: it was changed after"),
        (change("results/one.json", None), "one.json is missing"),
        (change("results/one.json", "{"), "one.json is damaged"),
        (change("results/one.json", "[1]"), "one.json is damaged"),
        (change("results/one.json", "[" * 100_000), "one.json is damaged"),
        (change("results/one.json", b"\xff"), "one.json is damaged"),
        (record(versions=["numpy"]), "one.json is damaged: versions"),
        (record(task_seconds="long", tasks=-1), "one.json is damaged: tasks, task_seconds"),
        (record(task_seconds=float("nan")), "one.json is damaged: task_seconds"),
        (record(title=None), "one.json is damaged: title"),
        (record(cells=5), "one.json is damaged: cells"),
        (record(cells={"groups": [["a", ["b"]], 5], "rows": [["c", ["1"], True]]}), "one.json is damaged: cells"),
        (record(cells={"groups": [["a", ["b"]]], "rows": [["c", ["1"], True], "d"]}), "one.json is damaged: cells"),
        (record(cells={"groups": [["a", ["b"]]], "rows": [["c", ["1", "2"], True]]}), "one.json is damaged: cells"),
        (record(cells={"groups": [["a", ["b"]]], "rows": [["c", [1], True]]}), "one.json is damaged: cells"),
        (change("results/one.png", None), "one.png is missing"),
        (change("results/one.png", b"PNG"), "one.png is damaged"),
        (change("results/one.png", picture("red")[:-20]), "one.png is damaged"),
        (change("docs/errata.md", None), "docs/errata.md is missing"),
        (change("docs/errata.md", "## 2.3\n"), "docs/errata.md has no entry '2.3, the mean', which claims name"),
        (change("data/coverage/thesis.csv", "x\n"), "the coverage of the sources cannot be read"),
        (change("data/coverage/numbers.json", None), "the coverage of the sources cannot be read"),
        (rows(*ROWS[1:]), "the claim 'mean' of one on Lemma 1 (thesis) has no row in claims.csv"),
        (rows(*ROWS, ROWS[0]), "the claim 'mean' of one has 2 rows"),
        (
            rows(*ROWS, CLAIM.format("no", "a", 1, "holds", "")),
            "claims.csv has 1 row of no, which is no experiment",
        ),
        (rows(*ROWS, CLAIM.format("two", "a", "nan", "not run", "")), "1 claim of two was not run: 'a'"),
        (rows(*ROWS, CLAIM.format("two", "a", "l", "holds", "")), "two: measured is 'l', not a number"),
        (rows(*ROWS, CLAIM.format("two", "a", 1, "hold", "")), "'a' of two: 'hold' is no verdict"),
        (rows(*ROWS, CLAIM.format("two", "a", 2, "holds", "")), "'a' of two: 'holds' contradicts its numbers"),
        (rows(*ROWS, CLAIM.format("two", "a", 1, "does not hold", "x")), "'does not hold' contradicts its numbers"),
        (
            rows(*ROWS, CLAIM.format("two", "a", 2, "does not hold", "")),
            "hold, and docs/errata.md does not say",
        ),
    ],
)
def test_damage_is_a_fault_and_the_page_goes_on(toy, damage, fault):
    damage(toy.root)
    found = gather(toy)
    assert any(fault in each for each in found.faults), found.faults
    assert all("\n" not in each for each in found.faults)
    text = page(found, toy.root, toy.root / "results" / "report.html")
    for each in found.faults:
        assert each.replace("'", "&#39;") in text


def test_what_was_never_run_is_one_fault(toy):
    for kind in ("csv", "json", "png"):
        (toy.root / "results" / f"two.{kind}").unlink()
    assert gather(toy).faults == ["two was not run: its table, record and figure are missing"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (None, "no such file"),
        ("", "it is empty"),
        (b"\xff\xfe", "it is no text"),
        ("experiment,claim\na,b\n", "no column kind"),
        (HEADING + "\na,b\n", "line 2 has 2 cells, not 14"),
    ],
)
def test_a_table_of_claims_that_cannot_be_read_is_refused(toy, damage, problem):
    change("results/claims.csv", damage)(toy.root)
    with pytest.raises(InputError, match=problem):
        gather(toy)


def test_the_committed_tables_are_those_of_their_records():
    tables = [path for path in (ROOT / "results").glob("*.csv") if path.with_suffix(".json").is_file()]
    assert tables
    for path in tables:
        assert not was_changed(path, json.loads(path.with_suffix(".json").read_text())), path.name
