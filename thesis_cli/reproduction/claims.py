"""Verdicts on the statements of the sources."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.comparison import NoTable, parse
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tag, is_own
from thesis_cli.reproduction.publication import read_result, stale

HOLDS, CONSISTENT, UNDECIDED = "holds", "consistent", "not decided"
UNDECIDABLE, INCOMPARABLE = "not decidable", "not comparable"
FAILS, NOT_RUN = "does not hold", "not run"
VERDICTS = (HOLDS, CONSISTENT, UNDECIDED, UNDECIDABLE, INCOMPARABLE, FAILS)
"""Verdicts in the order in which they are counted; `NOT_RUN` is none."""
TAGS: tuple[str, ...] = get_args(Tag)
SIGMAS = 5.0
"""Standard errors by which a measurement may be off."""


@dataclass(frozen=True)
class Verdict:
    """One row of the table of claims.

    Attributes
    ----------
    measured, error, detects : nan if there is no result.
    error : five standard errors, and the numerical error.
    detects : least deviation from the published number that would have refuted the statement: the
        error (of the least certain number, if there are several), the rounding of the source and
        what its words leave open.
    scale : deviation that the statement must tell from none; nan for a strict inequality.
    finding : heading of docs/errata.md that explains why the claim does not hold; empty if it
        holds.
    id : name by which the row is cited; it stays.
    own : whether it judges no statement of a source.
    printed : what the source prints; empty if it prints no number for the row.
    tag, weight, headline : of a statement that does not hold, see `Claim`.
    why : the reason of `not comparable` and `not decidable`, a sentence.
    """

    experiment: str
    claim: str
    kind: str
    source: str
    statement: str
    relation: str
    published: float
    reading: str
    measured: float
    error: float
    detects: float
    scale: float
    verdict: str
    finding: str
    id: str
    own: bool
    printed: str
    tag: str
    weight: int
    headline: str
    why: str

    @property
    def unexplained(self) -> bool:
        return self.verdict == FAILS and not self.finding

    @property
    def is_silent(self) -> bool:
        """Whether the error is so large that the number tells nothing."""
        undecided = self.verdict in (UNDECIDED, UNDECIDABLE)
        return undecided and says_nothing(self.relation, self.published, self.measured, self.detects, self.scale)


def judge(experiment: Experiment, folder: Path) -> list[Verdict]:
    """The verdicts on an experiment's claims, from its CSV in `folder`.

    Raises
    ------
    WorkFailed : a claim's `measure` raised.
    """
    csv_file = folder / f"{experiment.id}.csv"
    frame = read_result(csv_file) if csv_file.is_file() else None
    rows = []
    for claim in experiment.claims:
        try:
            measured = None if frame is None else claim.measure(frame)
        except Exception as error:
            raise WorkFailed(stale(f"the claim '{claim.id}' of {experiment.id}", error)) from error
        rows.append(_row(experiment.id, claim, measured))
    return rows


def _row(experiment: str, claim: Claim, measured: Measurement | None) -> Verdict:
    value = error = detects = math.nan
    verdict, why = NOT_RUN, ""
    if measured is not None:
        value, error = measured.value, SIGMAS * measured.standard_error + measured.error
        detects = max(error, SIGMAS * measured.weakest + measured.error) + claim.allowance
        verdict = _verdict(claim, value, error, detects)
        if claim.not_comparable:
            verdict, why = INCOMPARABLE, claim.not_comparable
        elif verdict == UNDECIDED and (why := _too_few(claim, measured)):
            verdict = UNDECIDABLE
    fails = verdict == FAILS
    return Verdict(
        experiment=experiment,
        claim=claim.id,
        kind=claim.kind,
        source=claim.source,
        statement=claim.statement,
        relation=claim.relation,
        published=claim.published,
        reading=claim.reading.words if claim.reading else "",
        measured=value,
        error=error,
        detects=detects,
        scale=claim.distinguishes,
        verdict=verdict,
        finding=claim.finding if verdict not in (HOLDS, INCOMPARABLE) else "",
        id=f"{experiment}.{slug(claim.id)}",
        own=is_own(claim.source),
        printed=claim.printed or (f"{claim.published:.6g}" if claim.kind == "published" else ""),
        tag=claim.tag if fails else "",
        weight=claim.weight if fails else 0,
        headline=claim.headline if fails else "",
        why=why,
    )


def slug(text: str) -> str:
    """Text as a name in addresses."""
    words = text.lower().replace("<", " below ").replace(">", " above ").replace("+", " plus ").replace("*", " times ")
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")


def _too_few(claim: Claim, measured: Measurement) -> str:
    """How many the source would have needed for its own number, a sentence; empty if it had enough, or
    if that is unknown."""
    if claim.sample is None or not 0 < measured.sources < math.inf:
        return ""
    # an inequality asks for the difference that was measured, an equality for what it must tell from none
    told = claim.distinguishes if claim.relation == "=" else abs(measured.value - claim.published)
    room = told - (claim.allowance if claim.relation == "=" else 0.0)
    if room <= 0 or SIGMAS * measured.sources <= room:
        return ""
    size, unit = claim.sample.size, claim.sample.unit
    needed = size * (SIGMAS * measured.sources / room) ** 2
    return f"The source has {size:,} {unit}, and would have needed some {float(f'{needed:.2g}'):,.0f}."


def says_nothing(relation: str, published: float, measured: float, detects: float, scale: float) -> bool:
    """Whether the error of a row is so large that its number tells nothing: more than ten times what the
    statement must tell from none, or ten times the difference from the bound."""
    told = scale if relation == "=" else abs(measured - published)
    return not math.isnan(measured) and detects > 10 * told


def rank(own: bool, tag: str, weight: int) -> tuple[bool, int, int]:
    """Place of a finding: a source's before the project's, the substantive before slips, then by weight."""
    return own, -TAGS.index(tag) if tag in TAGS else 0, -weight


def _verdict(claim: Claim, value: float, error: float, detects: float) -> str:
    """A statement holds if the measurement agrees and could have refuted it.

    A number on the wrong side of an inequality by more than its error refutes it; one on the right
    side by more than its error confirms it. In between, and for equalities, `detects` decides: it
    must not exceed what the statement distinguishes. A proven inequality is not strict.
    """
    proven = claim.kind in ("identity", "bound")
    miss = value - claim.published
    if claim.relation == "=":
        agrees, strictly = abs(miss) <= error + claim.allowance, False
    else:
        right = (miss if claim.relation == ">" else -miss) + claim.allowance
        agrees, strictly = right > -error or (proven and right == -error), right > error
    if not agrees:
        return FAILS
    if strictly or ((proven or claim.relation == "=") and detects <= claim.distinguishes):
        return HOLDS
    return CONSISTENT if proven else UNDECIDED


def counts(verdicts: Iterable[str]) -> dict[str, int]:
    """How often each verdict occurs, and how many claims were not run."""
    found = Counter(verdicts)
    return {verdict: found[verdict] for verdict in (*VERDICTS, NOT_RUN)}


def tally(number: Mapping[str, int]) -> str:
    """Counts by verdict in words."""
    words = {HOLDS: "agree", CONSISTENT: "are consistent", FAILS: "do not hold"}
    return ", ".join(
        f"{n} {words.get(verdict, verdict)}" for verdict, n in number.items() if n or verdict in (HOLDS, FAILS)
    )


def write_csv(verdicts: Iterable[Verdict], path: Path, keep: Sequence[str] = ()) -> None:
    """Write the table of claims, in the order of the experiments' ids, unless it is the same.

    Parameters
    ----------
    keep : ids of experiments whose rows, if the file has any, stay as they are.
    """
    columns = list(Verdict.__dataclass_fields__)
    rows = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in asdict(verdict).values()] for verdict in verdicts]
    rows += _standing(path, columns, keep)
    rows.sort(key=lambda row: row[0])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    data = text.getvalue().encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomic({path: data})


def _standing(path: Path, columns: list[str], keep: Sequence[str]) -> list[list[str]]:
    """Rows of a table of claims that belong to some experiments; none of a damaged table."""
    try:
        heading, rows = parse(path.read_bytes().decode())
    except (FileNotFoundError, UnicodeDecodeError, NoTable):
        return []
    return [row for row in rows if row[0] in keep] if heading == columns else []
