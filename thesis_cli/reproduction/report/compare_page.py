"""The page of `thesis-cli report --compare FOLDER`."""

from __future__ import annotations

from pathlib import Path

from thesis_cli.reproduction.comparison import DIFFERS, EQUAL, IDENTICAL
from thesis_cli.reproduction.report.compared import NOT_COMPARED, Compared, Pair
from thesis_cli.reproduction.report.page import data_uri, number, size

COLOURS = {IDENTICAL: "holds", EQUAL: "consistent", DIFFERS: "does-not-hold", NOT_COMPARED: "not-decided"}
"""Outcomes in the colours of verdicts."""

ORDER = (DIFFERS, NOT_COMPARED, EQUAL, IDENTICAL)
"""Outcomes by what a reader looks for first."""

HERE = Path(__file__).parent


def page(compared: Compared) -> str:
    """The page, with both figures wherever a reader could see a difference."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    old, new = compared.names
    text = environment.get_template("compare.html.j2").render(
        compared=compared,
        pairs=sorted(compared.pairs, key=lambda p: (not p.changes, ORDER.index(p.outcome), not p.seen)),
        detailed={pair.id for pair in compared.pairs if _is_detailed(pair)},
        alike=[pair.id for pair in compared.pairs if pair.outcome == IDENTICAL and not _is_detailed(pair)],
        old=old,
        new=new,
        classes=COLOURS,
        style=(HERE / "report.css").read_text(encoding="utf-8"),
        picture=data_uri,
        size=size,
        number=number,
    )
    return text.lstrip()


def _is_detailed(pair: Pair) -> bool:
    return bool(pair.shows_figures or pair.changes or pair.single or pair.faults or pair.outcome == DIFFERS)
