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
from thesis_cli.reproduction.experiment import Claim, Experiment
from thesis_cli.reproduction.figures import read_result, stale

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"
SIGMAS = 5.0
"""Standard errors by which a measurement may miss the published number, beside the rounding."""


@dataclass(frozen=True)
class Verdict:
    """One row of the table of claims.

    Attributes
    ----------
    measured, tolerance : nan if there is no result.
    finding : heading of docs/errata.md that explains why the claim does not hold.
    """

    experiment: str
    claim: str
    source: str
    statement: str
    published: float
    relation: str
    measured: float
    tolerance: float
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
        if measured is None:
            value, tolerance, verdict = math.nan, math.nan, NOT_RUN
        else:
            value, tolerance = measured.value, SIGMAS * measured.standard_error + claim.rounding
            verdict = _verdict(claim, value, tolerance)
        rows.append(
            Verdict(
                experiment.id,
                claim.id,
                claim.source,
                claim.statement,
                claim.published,
                claim.relation,
                value,
                tolerance,
                verdict,
                claim.finding,
            )
        )
    return rows


def _verdict(claim: Claim, value: float, tolerance: float) -> str:
    """A measurement beyond its tolerance decides, whichever way; one within it confirms the
    statement only if the tolerance is small.
    """
    miss = value - claim.published
    if claim.relation == "=":
        holds, beyond = abs(miss) <= tolerance, False
    else:
        right = miss if claim.relation == ">" else -miss
        holds, beyond = right > -tolerance, right > tolerance
    if not holds:
        return FAILS
    return UNDECIDED if tolerance >= claim.limit and not beyond else HOLDS


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
