"""Every number of the sources has an entry, every entry exists, and the page is up to date."""

import csv
import json

import pytest

from tests.conftest import ROOT
from thesis_cli.reproduction import coverage
from thesis_cli.reproduction.coverage import SOURCES, mentions, not_reproduced, page, read


@pytest.fixture(scope="module")
def shipped():
    return read(ROOT)


def test_every_number_of_the_sources_is_checked_or_has_a_reason(shipped):
    assert shipped.faults() == []


def test_the_page_is_up_to_date(shipped):
    assert (ROOT / "docs" / "coverage.md").read_text() == page(shipped), "run make docs"


def test_every_row_is_on_the_page(shipped):
    """By its number, or else by the section that it judges."""
    text = page(shipped)
    assert {row.experiment for row in shipped.rows if f"[{row.experiment}](" not in text} == set()


def test_names_of_claims_are_unique():
    with open(ROOT / "results" / "claims.csv", encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    assert len(ids) == len(set(ids))


def test_what_is_not_reproduced_names_sources_and_experiments_that_exist():
    found = not_reproduced(ROOT)
    assert found
    for each in found:
        assert each.source in SOURCES
        assert all((ROOT / "results" / f"{name}.csv").is_file() for name in each.experiments), each.what
    some = not_reproduced(ROOT, ["table-5-1"])
    assert some == [each for each in found if "table-5-1" in each.experiments] != []


def test_the_statements_are_counted_from_one_on(shipped):
    """The sources have no gaps, but for what the thesis numbers together or by chapter."""
    thesis, gumbel = shipped.numbers["thesis"], shipped.numbers["gumbel"]
    for kind, last in (("Proposition", 19), ("Lemma", 7), ("Program", 9), ("Algorithm", 3)):
        assert thesis[kind] == [str(i) for i in range(1, last + 1)]
    kinds = "Example", "Proposition", "Definition", "Lemma", "Corollary", "Theorem"
    assert sorted(int(n) for kind in kinds for n in gumbel[kind]) == list(range(1, 19))
    together = [int(n) for kind in ("Theorem", "Corollary") for n in thesis[kind]]
    assert sorted(together) == list(range(7, 15))
    hazan = shipped.numbers["perturb-max"]
    assert [len(hazan[kind]) for kind in ("Theorem", "Lemma", "Corollary", "Figure")] == [5, 4, 12, 10]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thesis Proposition 9, Figure 3.1", ["thesis Proposition 9", "thesis Figure 3.1"]),
        ("Thesis eq. 2.1'", ["thesis Equation 2.1'"]),
        ("Thesis eq. 2.1''", ["thesis Equation 2.1''"]),
        ("Thesis eqs. 3.10, 3.12, 3.17", ["thesis Equation 3.10", "thesis Equation 3.12", "thesis Equation 3.17"]),
        ("Thesis eqs. 3.6 to 3.8", ["thesis Equation 3.6", "thesis Equation 3.7", "thesis Equation 3.8"]),
        ("Lemmas 4 to 6 and 9", ["thesis Lemma 4", "thesis Lemma 5", "thesis Lemma 6", "thesis Lemma 9"]),
        ("Propositions 10, and 14", ["thesis Proposition 10", "thesis Proposition 14"]),
        ("Thesis eq. 3.8, 2.2.3", ["thesis Equation 3.8"]),
        ("Thesis eqs. 3.8, 2.2.3", ["thesis Equation 3.8"]),
        ("Thesis 2.4, Hazan et al. Theorem 4", ["perturb-max Theorem 4"]),
        ("Hazan et al. Theorem 4, Thesis Theorem 12", ["perturb-max Theorem 4", "thesis Theorem 12"]),
        ("Balog et al. 2017, Figure 3a (thesis Figure 5.3a)", ["thesis Figure 5.3a"]),
        ("Thesis 3.3.1", []),
        ("Vembu et al. Theorem A.1, Definition A.2", ["structured Theorem A.1", "structured Definition A.2"]),
        ("Scibior and Schoelkopf Theorems 1 and 2", ["kernel-semantics Theorem 1", "kernel-semantics Theorem 2"]),
    ],
)
def test_sources_of_rows_are_read(text, expected):
    assert [" ".join(found) for found in mentions(text)] == expected


@pytest.fixture
def checkout(tmp_path):
    """A checkout of one statement, and what writes its files."""
    (tmp_path / "data" / "coverage").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_one():\n    pass\n")

    def write(entries, rows=(("e", "c", "Thesis 1", "holds"),), numbers=("1",)):
        for source in SOURCES:
            lines = entries if source == "thesis" else []
            text = "\n".join([",".join(coverage.COLUMNS), *lines]) + "\n"
            (tmp_path / "data" / "coverage" / f"{source}.csv").write_text(text)
        (tmp_path / "data" / "coverage" / "numbers.json").write_text(json.dumps({"thesis": {"Lemma": numbers}}))
        claims = ["experiment,claim,source,verdict", *(",".join(f'"{cell}"' for cell in row) for row in rows)]
        (tmp_path / "results" / "claims.csv").write_text("\n".join(claims) + "\n")
        return read(tmp_path)

    return write


GOOD = "Lemma 1,1,says,e: c,tests/test_it.py::test_one,,"


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([], "thesis: Lemma 1 has no entry"),
        ([GOOD, GOOD], "thesis: Lemma 1 has 2 entries"),
        ([GOOD, "Lemma 2,1,says,,,,why"], "thesis: Lemma 2 is not in numbers.json"),
        (["Lemma 1,1,says,e: d,,,"], "thesis: Lemma 1: no row 'e: d'"),
        (["Lemma 1,1,says,f,,,"], "thesis: Lemma 1: no row 'f'"),
        (["Lemma 1,1,says,,tests/test_it.py::test_on,,"], "thesis: Lemma 1: no test tests/test_it.py::test_on"),
        (["Lemma 1,1,says,,tests/no.py::test_one,,"], "thesis: Lemma 1: no test tests/no.py::test_one"),
        (["Lemma 1,1,says,,,thesis: Lemma 3,"], "thesis: Lemma 1: no number 'thesis: Lemma 3'"),
        (["Lemma 1,1,says,,,,"], "thesis: Lemma 1: neither row nor test nor reason"),
        (["Lemma 1,1,,,,,why"], "thesis: Lemma 1: no section or no words"),
    ],
)
def test_what_is_missing_is_found(checkout, entries, fault):
    assert checkout([GOOD]).faults() == []
    assert fault in checkout(entries).faults()


def test_a_row_that_names_a_number_judges_it(checkout):
    rows = [("e", "c", "Thesis Lemma 1", "holds"), ("e", "d", "this project (Lemma 1)", "does not hold")]
    found = checkout(["Lemma 1,1,says,,,,"], rows)
    assert found.faults() == []
    assert [row.claim for row in found.judges(found.entries[0])] == ["c"]
    assert "| Lemma 1 | 1 | says | holds 1 | [e](../experiments/e.py) |" in page(found)
    assert "| this project (Lemma 1) | does not hold 1 | [e](../experiments/e.py): `d` |" in page(found)
    missing = checkout([GOOD], [*rows, ("e", "f", "Thesis Lemma 2", "holds")])
    assert missing.faults() == ["e: f names Lemma 2 of thesis, which has no entry"]


def test_a_star_stands_for_any_text(checkout):
    rows = [("e", claim, "Thesis 1", "holds") for claim in ("a mean", "b mean", "a (*)", "b (+)")]
    names = {}
    for pattern in ("e: * mean", "e: a*", "e: a (*)", "e"):
        found = checkout([f"Lemma 1,1,says,{pattern},,,"], rows)
        names[pattern] = [row.claim for row in found.judges(found.entries[0])]
    assert list(names.values()) == [["a mean", "b mean"], ["a mean", "a (*)"], ["a (*)"], [row[1] for row in rows]]


def test_a_number_that_repeats_another_has_its_verdicts(checkout):
    entries = ["Lemma 1,1,says,e,,,", "Lemma 2,1,says,,,thesis: Lemma 1,", "Lemma 3,1,says,,,thesis: Lemma 3,"]
    found = checkout(entries, numbers=("1", "2", "3"))
    assert [list(found.verdicts(entry).values()) for entry in found.entries] == [["holds"], ["holds"], []]
