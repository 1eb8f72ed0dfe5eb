"""Verdicts on the statements of the sources."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.comparison import NoTable, parse
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.reproduction.figures import read_result, stale

HOLDS, CONSISTENT, UNDECIDED = "holds", "consistent", "not decided"
FAILS, NOT_RUN = "does not hold", "not run"
VERDICTS = (HOLDS, CONSISTENT, UNDECIDED, FAILS, NOT_RUN)
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

    @property
    def unexplained(self) -> bool:
        return self.verdict == FAILS and not self.finding


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
    verdict = NOT_RUN
    if measured is not None:
        value, error = measured.value, SIGMAS * measured.standard_error + measured.error
        detects = max(error, SIGMAS * measured.weakest + measured.error) + claim.allowance
        verdict = _verdict(claim, value, error, detects)
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
        finding=claim.finding if verdict != HOLDS else "",
    )


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
