"""Read a folder of results: tables, records, figures, verdicts, and their inconsistencies."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError, counted, is_number
from thesis_cli.base.figures import Cells
from thesis_cli.reproduction.claims import (
    FAILS,
    INCOMPARABLE,
    NOT_RUN,
    UNDECIDABLE,
    UNDECIDED,
    VERDICTS,
    rank,
    says_nothing,
    slug,
)
from thesis_cli.reproduction.comparison import NoTable, parse
from thesis_cli.reproduction.coverage import Coverage, mentions
from thesis_cli.reproduction.experiment import is_own
from thesis_cli.reproduction.publication import was_changed

SECTIONS: Mapping[str, str] = {
    "chapter-2": "Partition functions by perturb-and-MAP",
    "chapter-3": "Renyi entropies",
    "chapter-4": "Private releases of tables",
    "chapter-5": "Programs from examples",
    "perturb-max": "High-dimensional inference by perturbed maxima",
    "structured": "Structured predictors",
    "kernel-semantics": "Kernel semantics of probabilistic programs",
    "own": "Beyond the sources",
}
"""Titles of the sections by their ids, in their order."""

ORIGINS: Mapping[str, str] = {
    **{f"chapter-{number}": f"Thesis, chapter {number}" for number in (2, 3, 4, 5)},
    "perturb-max": "Hazan et al. 2019",
    "structured": "Vembu et al. 2009",
    "kernel-semantics": "Scibior and Schoelkopf 2015",
    "own": "this project",
}
"""The source that each section reproduces."""

_AUTHORS = {"Hazan": "perturb-max", "Vembu": "structured", "Scibior": "kernel-semantics"}
_PLACE = re.compile(r"\b([1-5]|[A-D])\.\d|\b([A-D])$|\b[Cc]hapter ([2-5])\b")
_APPENDICES = {"1": 2, "A": 2, "B": 3, "C": 4, "D": 5}


@dataclass(frozen=True)
class Sections:
    """Finds the section of a statement by what the coverage of the sources knows of its number."""

    coverage: Coverage

    @cached_property
    def _places(self) -> dict[tuple[str, str], str]:
        return {(entry.source, entry.number): entry.where for entry in self.coverage.entries}

    def of(self, source: str) -> str:
        """Section of a text such as `Thesis 2.3, Lemma 1` or `Hazan et al. Figure 4`.

        The first place that it names decides. What stands beside a source is this project's own.
        """
        if is_own(source):
            return "own"
        first = next((section for name, section in _AUTHORS.items() if source.startswith(name)), "")
        if first:
            return first
        found = _chapter(re.findall(_PLACE, source.partition("Hazan")[0]))
        if found:
            return found
        places = (self._places.get(named, "") for named in mentions(source))
        return next(filter(None, (_chapter(re.findall(_PLACE, where)) for where in places)), "own")


def _chapter(places: Iterable[tuple[str, ...]]) -> str:
    for groups in places:
        place = "".join(groups)
        return f"chapter-{_APPENDICES.get(place, place)}"
    return ""


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_cells(value: Any) -> bool:
    """Whether a value is a table as `Cells` has it, read from JSON."""
    try:
        found = Cells(**value)
        width = sum(len(columns) for _, columns in found.groups)
        shaped = all(len(texts) == width and isinstance(own, bool) for _, texts, own in found.rows)
        lines = [*found.groups, *((head, texts) for head, texts, _ in found.rows)]
        words = [word for head, texts in lines for word in (head, *texts)]
        return shaped and width > 0 and all(map(_is_text, [*words, *found.notes]))
    except (TypeError, ValueError):
        return False


FIELDS: Mapping[str, Callable[[object], bool]] = {
    "title": _is_text,
    "source": _is_text,
    "caption": _is_text,
    "cells": _is_cells,
    "preset": _is_text,
    "when": _is_text,
    "python": _is_text,
    "settings": _is_mapping,
    "versions": _is_mapping,
    "machine": _is_mapping,
    "seed": _is_count,
    "tasks": _is_count,
    "task_seconds": _is_duration,
}
"""Fields of a record that are shown, and what they must be; a record may lack any."""


@dataclass(frozen=True)
class ExperimentFiles:
    """Files of an experiment in a folder of results.

    Attributes
    ----------
    table : its CSV; None if it is missing.
    record : the values of its JSON file without those that are damaged; empty if it is missing.
    figure : its PNG; None if it is missing or damaged.
    faults : missing and inconsistent parts, one line each.
    """

    table: Path | None
    record: Mapping[str, Any]
    figure: Path | None
    faults: tuple[str, ...]


def read_files(folder: Path, name: str) -> ExperimentFiles:
    """Find and check the files of an experiment."""
    table, path, figure = (folder / f"{name}.{kind}" for kind in ("csv", "json", "png"))
    if not (table.exists() or path.exists() or figure.exists()):
        return ExperimentFiles(None, {}, None, (f"{name} was not run: its table, record and figure are missing",))
    record, faults = _record(path)
    if not table.is_file():
        faults.append(f"{table.name} is missing")
    elif was_changed(table, record):
        faults.append(f"{table.name} is not the table that {path.name} describes: it was changed afterwards")
    if problem := _problem(figure):
        faults.append(f"{figure.name} is {problem}")
    return ExperimentFiles(table if table.is_file() else None, record, None if problem else figure, tuple(faults))


def _record(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{path.name} is missing"]
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {}, [f"{path.name} is damaged"]
    bad = [name for name, suits in FIELDS.items() if name in found and not suits(found[name])]
    kept = {name: value for name, value in found.items() if name not in bad}
    return kept, [f"{path.name} is damaged: {', '.join(bad)}"] * bool(bad)


def _problem(figure: Path) -> str:
    """Problem of a picture in one word; empty if there is none."""
    from PIL import Image

    if not figure.is_file():
        return "missing"
    try:
        with Image.open(figure, formats=["PNG"]) as picture:
            picture.verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return "damaged"
    return ""


NUMBERS = ("published", "measured", "error", "detects")
"""Columns that have numbers."""
PRINTED = 1e-5
"""Share of a number that may be lost to rounding; the table has six digits."""
NAMED = 3
"""Claims that a fault names; of more it gives the number."""


@dataclass(frozen=True)
class ClaimRow:
    """One row of the table of claims, as text; `section` is where the report counts it."""

    experiment: str
    claim: str
    kind: str
    source: str
    statement: str
    relation: str
    published: str
    reading: str
    measured: str
    error: str
    detects: str
    verdict: str
    finding: str
    section: str
    scale: str = "nan"
    id: str = ""
    printed: str = ""
    tag: str = ""
    weight: str = ""
    headline: str = ""
    why: str = ""

    @property
    def own(self) -> bool:
        """Whether it judges no statement of a source."""
        return is_own(self.source)

    @property
    def anchor(self) -> str:
        """Name of the row within the page."""
        return f"claim-{self.id or f'{self.experiment}.{slug(self.claim)}'}"

    @property
    def is_silent(self) -> bool:
        """Whether the error is so large that the number tells nothing."""
        if self.verdict not in (UNDECIDED, UNDECIDABLE):
            return False
        published, measured, detects, scale = (
            float(each) if is_number(each) else math.nan
            for each in (self.published, self.measured, self.detects, self.scale)
        )
        return says_nothing(self.relation, published, measured, detects, scale)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Place among the findings, the gravest first: see `claims.rank`."""
        return rank(self.own, self.tag, int(self.weight) if self.weight.isdecimal() else 0)


@dataclass(frozen=True)
class ClaimsTable:
    """Rows, and what does not fit, one line each."""

    rows: tuple[ClaimRow, ...]
    faults: tuple[str, ...]


def read_claims(path: Path, sections: Sections) -> ClaimsTable:
    """Read a table of claims; cells that are no numbers where numbers belong become `nan`.

    Raises
    ------
    InputError : there is none, or it is no table with these columns.
    """
    remedy = "thesis-cli claims writes it again"
    try:
        heading, lines = parse(path.read_bytes().decode())
    except FileNotFoundError:
        raise InputError("there is no such file", remedy, source=path) from None
    except UnicodeDecodeError:
        raise InputError("the table is damaged: it is no text", remedy, source=path) from None
    except NoTable as error:
        raise InputError(f"the table is damaged: {error}", remedy, source=path) from None
    names = [name for name in ClaimRow.__dataclass_fields__ if name != "section"]
    required = [name for name in names if ClaimRow.__dataclass_fields__[name].default is MISSING]
    if missing := [name for name in required if name not in heading]:
        raise InputError(f"the table has no column {missing[0]}", remedy, source=path)
    rows, faults = list[ClaimRow](), list[str]()
    for line in lines:
        cells = dict(zip(heading, line, strict=True))
        name = f"{path.name}, the claim '{cells['claim']}' of {cells['experiment']}"
        for column in NUMBERS:
            if not is_number(cells[column]):
                faults.append(f"{name}: {column} is {cells[column] or 'empty'!r}, not a number")
                cells[column] = "nan"
        known = {name: cells[name] for name in names if name in cells}
        row = ClaimRow(**known, section=sections.of(cells["source"]))
        if row.verdict not in (*VERDICTS, NOT_RUN):
            faults.append(f"{name}: {row.verdict or 'empty'!r} is no verdict")
        elif _contradicts(row):
            faults.append(f"{name}: '{row.verdict}' contradicts its numbers: the table was changed by hand")
        rows.append(row)
    return ClaimsTable(tuple(rows), (*faults, *_repeated(rows)))


def not_run(experiment: str, claims: Sequence[ClaimRow]) -> list[str]:
    """A line about those claims of an experiment that have no measurement, if there are any."""
    names = [f"'{claim.claim}'" for claim in claims if claim.verdict not in VERDICTS]
    if not names:
        return []
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    one = "was" if len(names) == 1 else "were"
    return [f"{counted(len(names), 'claim')} of {experiment} {one} not run: {', '.join(names[:NAMED])}{more}"]


def _contradicts(row: ClaimRow) -> bool:
    """Whether no reading and no rounding of the source lets the numbers of a row give its verdict."""
    published, measured, error, detects = (float(getattr(row, name)) for name in NUMBERS)
    if row.verdict == INCOMPARABLE:
        return math.isnan(measured)
    if row.verdict == NOT_RUN or math.isnan(measured):
        return (row.verdict == NOT_RUN) != math.isnan(measured)
    slack = PRINTED * (abs(published) + abs(measured) + abs(detects))
    miss = measured - published
    right = -abs(miss) if row.relation == "=" else miss if row.relation == ">" else -miss
    if right < -detects - slack:
        return row.verdict != FAILS
    agrees = right > (-error if row.relation == "=" else error) + slack
    return agrees and row.verdict == FAILS


def _repeated(rows: Iterable[ClaimRow]) -> list[str]:
    found = defaultdict[tuple[str, str], int](int)
    for row in rows:
        found[row.experiment, row.claim] += 1
    return [f"the claim '{claim}' of {name} has {n} rows" for (name, claim), n in found.items() if n > 1]
