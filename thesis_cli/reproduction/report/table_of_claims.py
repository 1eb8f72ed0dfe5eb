"""The table of claims of a folder of results, and what in it does not fit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import counted
from thesis_cli.reproduction.claims import CONSISTENT, FAILS, HOLDS, NOT_RUN, UNDECIDED
from thesis_cli.reproduction.comparison import NoTable, parse
from thesis_cli.reproduction.report.sections import Sections

VERDICTS = (HOLDS, CONSISTENT, UNDECIDED, FAILS)
"""Verdicts, in the order in which they are counted."""

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
    if missing := [name for name in names if name not in heading]:
        raise InputError(f"the table has no column {missing[0]}", remedy, source=path)
    rows, faults = list[ClaimRow](), list[str]()
    for line in lines:
        cells = dict(zip(heading, line, strict=True))
        name = f"{path.name}, the claim '{cells['claim']}' of {cells['experiment']}"
        for column in NUMBERS:
            if not _is_number(cells[column]):
                faults.append(f"{name}: {column} is {cells[column] or 'empty'!r}, not a number")
                cells[column] = "nan"
        row = ClaimRow(**{name: cells[name] for name in names}, section=sections.of(cells["source"]))
        if row.verdict not in (*VERDICTS, NOT_RUN):
            faults.append(f"{name}: {row.verdict or 'empty'!r} is no verdict")
        elif _contradicts(row):
            faults.append(f"{name}: '{row.verdict}' contradicts its numbers: the table was changed by hand")
        rows.append(row)
    return ClaimsTable(tuple(rows), (*faults, *_twice(rows)))


def not_run(experiment: str, claims: Sequence[ClaimRow]) -> list[str]:
    """A line about those claims of an experiment that have no measurement, if there are any."""
    names = [f"'{claim.claim}'" for claim in claims if claim.verdict not in VERDICTS]
    if not names:
        return []
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    one = "was" if len(names) == 1 else "were"
    return [f"{counted(len(names), 'claim')} of {experiment} {one} not run: {', '.join(names[:NAMED])}{more}"]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _contradicts(row: ClaimRow) -> bool:
    """Whether no reading and no rounding of the source lets the numbers of a row give its verdict."""
    published, measured, error, detects = (float(getattr(row, name)) for name in NUMBERS)
    if row.verdict == NOT_RUN or math.isnan(measured):
        return (row.verdict == NOT_RUN) != math.isnan(measured)
    slack = PRINTED * (abs(published) + abs(measured) + abs(detects))
    miss = measured - published
    right = -abs(miss) if row.relation == "=" else miss if row.relation == ">" else -miss
    if right < -detects - slack:
        return row.verdict != FAILS
    agrees = right > (-error if row.relation == "=" else error) + slack
    return agrees and row.verdict == FAILS


def _twice(rows: Iterable[ClaimRow]) -> list[str]:
    found = defaultdict[tuple[str, str], int](int)
    for row in rows:
        found[row.experiment, row.claim] += 1
    return [f"the claim '{claim}' of {name} has {n} rows" for (name, claim), n in found.items() if n > 1]
