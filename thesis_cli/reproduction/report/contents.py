"""What the report shows, gathered from committed tables, records, figures and documents alone."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.reproduction import coverage
from thesis_cli.reproduction.digests import was_changed
from thesis_cli.reproduction.registry import Checkout
from thesis_cli.reproduction.report.sections import SECTIONS, Sections

VERDICTS = ("holds", "consistent", "not decided", "does not hold")
"""Verdicts, in the order in which they are counted."""

LEAD, PLACE = 260, 60
"""Most characters of the first sentences of a finding, and of one that only names a place."""


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
    verdict: str
    finding: str
    section: str


@dataclass(frozen=True)
class Result:
    """One experiment: its figure and its record.

    Attributes
    ----------
    record : the values of its JSON file; empty if it is missing or damaged.
    figure : file of the picture; None if it is missing.
    faults : what is missing or does not fit, one line each.
    """

    id: str
    section: str
    record: Mapping[str, Any]
    figure: Path | None
    claims: tuple[ClaimRow, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """An entry of the errata: its heading, its text in Markdown, and the claims that refer to it."""

    heading: str
    text: str
    claims: tuple[ClaimRow, ...]

    @property
    def anchor(self) -> str:
        """Name of the entry within the page."""
        return "finding-" + slug(self.heading)

    @property
    def lead(self) -> str:
        """First sentences, without marks, up to `LEAD` characters; the place in the source is left out."""
        sentences = re.split(r"(?<=[.:?])\s+(?=[A-Z])", re.sub(r"[`*]|\]\([^)]*\)|\[", "", " ".join(self.text.split())))
        found = ""
        for sentence in sentences:
            if not found and re.match(r"[TLHVK]\b", sentence) and len(sentence) < PLACE:
                continue
            if found and len(found) + len(sentence) > LEAD:
                break
            found = f"{found} {sentence}".strip()
        return found


@dataclass(frozen=True)
class Contents:
    """The whole report.

    Attributes
    ----------
    results : in the order of the sections, and of their ids within them.
    findings : in the order of the errata.
    numbers : for each source, what the coverage counts of its numbered statements.
    uncovered : numbered statements that neither a claim nor a test checks, with the reason.
    """

    results: tuple[Result, ...]
    claims: tuple[ClaimRow, ...]
    findings: tuple[Finding, ...]
    numbers: tuple[Numbers, ...]
    uncovered: tuple[coverage.Entry, ...]

    def counts(self, section: str | None = None) -> dict[str, int]:
        """Claims of a section, or of all, by verdict."""
        found = Counter(claim.verdict for claim in self.claims if section in (None, claim.section))
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def faults(self) -> list[str]:
        """All that is missing or does not fit."""
        return [fault for result in self.results for fault in result.faults]


@dataclass(frozen=True)
class Numbers:
    """How many numbered statements of a source are checked, and how."""

    source: str
    title: str
    all: int
    claimed: int
    tested: int
    same: int

    @property
    def neither(self) -> int:
        return self.all - self.claimed - self.tested - self.same


def gather(checkout: Checkout, preset: str = "paper") -> Contents:
    """Read everything that the report shows.

    Raises
    ------
    InputError : there is no table of claims, or the files of the coverage are damaged.
    """
    folder = checkout.results(preset)
    known = coverage.read(checkout.root)
    sections = Sections(known)
    claims = tuple(_claims(folder / "claims.csv", sections))
    results = [_result(name, folder, sections, claims) for name in checkout.files()]
    order = list(SECTIONS)
    results.sort(key=lambda result: (order.index(result.section), _place(result)))
    return Contents(
        results=tuple(results),
        claims=claims,
        findings=tuple(_findings(checkout.root / "docs" / "errata.md", claims)),
        numbers=tuple(_numbers(known)),
        uncovered=tuple(e for e in known.entries if not (known.judges(e) or e.tests or e.same)),
    )


def _claims(path: Path, sections: Sections) -> Iterable[ClaimRow]:
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            values = {name: line[name] for name in ClaimRow.__dataclass_fields__ if name != "section"}
            yield ClaimRow(**values, section=sections.of(line["source"]))


def _result(name: str, folder: Path, sections: Sections, claims: Sequence[ClaimRow]) -> Result:
    record, faults = _record(folder / f"{name}.json")
    table, figure = folder / f"{name}.csv", folder / f"{name}.png"
    if not table.is_file():
        faults.append(f"{table.name} is missing")
    elif was_changed(table, record):
        faults.append(f"{table.name} is not the table that {name}.json describes: it was changed afterwards")
    if not figure.is_file():
        faults.append(f"{figure.name} is missing")
    own = tuple(claim for claim in claims if claim.experiment == name)
    faults += [f"the claim '{claim.claim}' of {name} was not run" for claim in own if claim.verdict not in VERDICTS]
    return Result(
        id=name,
        section=sections.of(re.sub("^beside ", "", str(record.get("source", "")))),
        record=record,
        figure=figure if figure.is_file() else None,
        claims=own,
        faults=tuple(faults),
    )


def _record(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{path.name} is missing"]
    except (OSError, ValueError):
        found = None
    return (found, []) if isinstance(found, dict) else ({}, [f"{path.name} is damaged"])


def _place(result: Result) -> tuple[object, ...]:
    """Order within a section: by the numbers that the source names, then by id."""
    source = str(result.record.get("source", ""))
    numbers = re.findall(r"\d+", source)
    return (not source.startswith(("Thesis", "Hazan", "Vembu", "Scibior")), [int(n) for n in numbers], result.id)


def _findings(path: Path, claims: Sequence[ClaimRow]) -> Iterable[Finding]:
    parts = re.split(r"^## +(.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        yield Finding(heading, text.strip(), tuple(claim for claim in claims if claim.finding == heading))


def _numbers(known: coverage.Coverage) -> Iterable[Numbers]:
    for source, title in coverage.SOURCES.items():
        entries = [entry for entry in known.entries if entry.source == source]
        claimed = sum(bool(known.judges(entry)) for entry in entries)
        tested = sum(bool(entry.tests) and not known.judges(entry) for entry in entries)
        same = sum(bool(e.same) and not e.tests and not known.judges(e) for e in entries)
        yield Numbers(source, title.replace("*", ""), len(entries), claimed, tested, same)


def slug(text: str) -> str:
    """Text as the name of an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
