"""Where the report counts a statement."""

import pytest

from thesis_cli.reproduction import coverage
from thesis_cli.reproduction.report.files import ORIGINS, SECTIONS, Sections

KNOWN = coverage.Coverage(
    coverage.ROOT, {}, (coverage.NumberedStatement("thesis", "Proposition 12", "4.3.1", "", (), (), "", ""),), ()
)


@pytest.mark.parametrize(
    ("source", "section"),
    [
        ("Thesis 2.3, Lemma 1", "chapter-2"),
        ("Thesis Figure 3.1", "chapter-3"),
        ("Thesis Figure D.2", "chapter-5"),
        ("Thesis appendix C", "chapter-4"),
        ("Thesis Proposition 12", "chapter-4"),
        ("Thesis Figure 2.1, Hazan et al. Figure 4", "chapter-2"),
        ("Hazan et al. Figure 4", "perturb-max"),
        ("Vembu et al. 2.2", "structured"),
        ("Scibior and Schoelkopf section 3", "kernel-semantics"),
        ("this project, Thesis 2.3", "own"),
        ("Beside Thesis 2.3", "own"),
        ("Thesis Proposition 99", "own"),
        ("", "own"),
    ],
)
def test_the_first_place_named_decides(source, section):
    assert Sections(KNOWN).of(source) == section


def test_each_section_has_a_title_and_an_origin():
    assert list(SECTIONS) == list(ORIGINS)
