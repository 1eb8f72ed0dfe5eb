"""Content of the report, gathered from committed tables, records, figures and documents alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import counted
from thesis_cli.reproduction import coverage
from thesis_cli.reproduction.claims import FAILS, VERDICTS
from thesis_cli.reproduction.experiment import Checkout
from thesis_cli.reproduction.report.files import (
    SECTIONS,
    ClaimRow,
    Sections,
    not_run,
    read_claims,
    read_files,
)

LEAD, PLACE = 260, 60
"""Most characters of the first sentences of a finding, and of one that only names a place."""


@dataclass(frozen=True)
class ExperimentReport:
    """One experiment: its figure and its record.

    Attributes
    ----------
    record : the values of its JSON file; empty if it is missing or damaged.
    figure : file of the picture; None if it is missing or damaged.
    faults : missing and inconsistent parts, one line each.
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
    def refuted(self) -> ClaimRow | None:
        """The gravest of its claims that do not hold; None if all of them hold."""
        fail = (claim for claim in self.claims if claim.verdict == FAILS)
        return min(fail, key=lambda each: (each.rank, not each.headline), default=None)

    @property
    def lead(self) -> str:
        """First sentences, without marks, up to `LEAD` characters; the place in the source is left out."""
        sentences = re.split(r"(?<=[.:?])\s+(?=[A-Z])", _plain(self.text))
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
    results : experiments in the order of their sections, and of their ids within them.
    findings : findings in the order of the errata.
    numbers : counts of the numbered statements of each source.
    uncovered : numbered statements that neither a claim nor a test checks, with the reason.
    missing : what of the sources could not be computed again, with the reason.
    general : missing and inconsistent parts outside of the files of single experiments.
    """

    results: tuple[ExperimentReport, ...]
    claims: tuple[ClaimRow, ...]
    findings: tuple[Finding, ...]
    numbers: tuple[SourceCounts, ...]
    uncovered: tuple[coverage.NumberedStatement, ...]
    missing: tuple[coverage.NotReproduced, ...] = ()
    general: tuple[str, ...] = ()

    def counts(self, section: str | None = None) -> dict[str, int]:
        """Claims of a section by verdict; without one, those on all sources."""
        chosen = (c for c in self.claims if (not c.own if section is None else c.section == section))
        found = Counter(claim.verdict for claim in chosen)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def gravest(self) -> list[ClaimRow]:
        """Refuted statements with a headline, of different findings, the gravest first."""
        rows = (finding.refuted for finding in self.findings)
        return sorted((row for row in rows if row and row.headline), key=lambda row: row.rank)

    @property
    def faults(self) -> list[str]:
        """All that is missing or does not fit."""
        return [*self.general, *(fault for result in self.results for fault in result.faults)]


@dataclass(frozen=True)
class SourceCounts:
    """Counts of the numbered statements of a source by the way in which they are checked."""

    source: str
    title: str
    all: int
    claimed: int
    tested: int
    same: int

    @property
    def neither(self) -> int:
        return self.all - self.claimed - self.tested - self.same


def _plain(text: str) -> str:
    """A text in Markdown without its marks, on one line; of links their words stay."""
    return re.sub(r"[`*]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(text.split())))


def gather(checkout: Checkout, preset: str = "paper") -> Contents:
    """Read everything that the report shows.

    Raises
    ------
    InputError : there is no table of claims, or it is damaged.
    """
    folder = checkout.results(preset)
    known, general = _coverage(checkout.root)
    sections = Sections(known)
    table = read_claims(folder / "claims.csv", sections)
    ids = list(checkout.files())
    results = [_result(name, folder, sections, table.rows) for name in ids]
    order = list(SECTIONS)
    results.sort(key=lambda result: (order.index(result.section), _place(result)))
    errata = checkout.root / "docs" / "errata.md"
    findings = tuple(_findings(errata, table.rows))
    general += [*table.faults, *_strangers(ids, table.rows), *_unexplained(errata, findings, table.rows)]
    general += _without_row(known) if preset == "paper" else []
    return Contents(
        results=tuple(results),
        claims=table.rows,
        findings=findings,
        numbers=tuple(_numbers(known)),
        uncovered=tuple(e for e in known.entries if not (known.judges(e) or e.tests or e.same)),
        missing=tuple(coverage.not_reproduced(checkout.root)),
        general=tuple(general),
    )


def _coverage(root: Path) -> tuple[coverage.Coverage, list[str]]:
    """The coverage of the sources; without entries, and a fault, if its files cannot be read."""
    try:
        return coverage.read(root), []
    except (OSError, ValueError, KeyError) as error:
        return coverage.Coverage(root, {}, (), ()), [f"the coverage of the sources cannot be read ({error})"]


def _result(name: str, folder: Path, sections: Sections, claims: Sequence[ClaimRow]) -> ExperimentReport:
    files = read_files(folder, name)
    own = tuple(sorted((c for c in claims if c.experiment == name), key=lambda claim: claim.own))
    return ExperimentReport(
        id=name,
        section=sections.of(re.sub("^beside ", "", str(files.record.get("source", "")))),
        record=files.record,
        figure=files.figure,
        claims=own,
        faults=(*files.faults, *(not_run(name, own) if files.table else [])),
    )


def _strangers(ids: Sequence[str], claims: Sequence[ClaimRow]) -> Iterable[str]:
    """A line for each experiment that has claims and no file."""
    rows = Counter(claim.experiment for claim in claims if claim.experiment not in ids)
    return (
        f"claims.csv has {counted(n, 'row')} of {name or 'no name'}, which is no experiment" for name, n in rows.items()
    )


def _unexplained(errata: Path, findings: Sequence[Finding], claims: Sequence[ClaimRow]) -> Iterable[str]:
    """A line if there are no errata, and for each entry that claims name and they do not have."""
    if not errata.is_file():
        yield "docs/errata.md is missing: it says why statements do not hold"
        return
    headings = {finding.heading for finding in findings}
    for heading in dict.fromkeys(c.finding for c in claims if c.finding and c.finding not in headings):
        yield f"docs/errata.md has no entry '{heading}', which claims name"
    for claim in claims:
        if claim.verdict == FAILS and not claim.finding:
            yield f"the claim '{claim.claim}' of {claim.experiment} does not hold, and docs/errata.md does not say why"


def _without_row(known: coverage.Coverage) -> Iterable[str]:
    """A line for each claim that the coverage names and the table of claims does not have."""
    for entry in known.entries:
        for pattern in entry.rows:
            if not coverage.matching(pattern, known.rows):
                experiment, _, claim = pattern.partition(": ")
                what = f"the claim '{claim}' of {experiment}" if claim else f"the claims of {experiment}"
                yield f"{what} on {entry.number} ({entry.source}) has no row in claims.csv"


def _place(result: ExperimentReport) -> tuple[object, ...]:
    """Order within a section: by the numbers that the source names, then by id."""
    source = str(result.record.get("source", ""))
    numbers = re.findall(r"\d{1,9}", source)
    return (not source.startswith(("Thesis", "Hazan", "Vembu", "Scibior")), [int(n) for n in numbers], result.id)


def _findings(path: Path, claims: Sequence[ClaimRow]) -> Iterable[Finding]:
    text = path.read_bytes().decode(errors="replace") if path.is_file() else ""
    parts = re.split(r"^## +(.+)$", text, flags=re.MULTILINE)[1:]
    for heading, part in zip(parts[::2], parts[1::2], strict=True):
        text = re.split(r"^# ", part, maxsplit=1, flags=re.MULTILINE)[0]
        yield Finding(heading, text.strip(), tuple(claim for claim in claims if claim.finding == heading))


def _numbers(known: coverage.Coverage) -> Iterable[SourceCounts]:
    for source, title in coverage.SOURCES.items():
        entries = [entry for entry in known.entries if entry.source == source]
        claimed = sum(bool(known.judges(entry)) for entry in entries)
        tested = sum(bool(entry.tests) and not known.judges(entry) for entry in entries)
        same = sum(bool(e.same) and not e.tests and not known.judges(e) for e in entries)
        yield SourceCounts(source, title.replace("*", ""), len(entries), claimed, tested, same)


def slug(text: str) -> str:
    """Text as the name of an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
