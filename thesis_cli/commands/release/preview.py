"""`dp-release --dry-run`: the plan, checks and expected errors of a release, with nothing spent and
nothing written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.memory import bytes_text, peak_memory
from thesis_cli.commands.release.budget import Spending
from thesis_cli.commands.release.guards import noise_dominated
from thesis_cli.commands.release.result import Preview

if TYPE_CHECKING:
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.plan import ReleasePlan
    from thesis_cli.privacy.tables.bad_cells import BadCells
    from thesis_cli.privacy.tables.schema import Schema, Unknown
    from thesis_cli.privacy.tables.table_base import Table


@dataclass(frozen=True)
class Part:
    """One table of a release.

    Attributes
    ----------
    plan : plan of its record.
    table, schema : the private table, and the columns that are read of it.
    made : rows of its synthetic table, if a number was given.
    """

    plan: ReleasePlan
    table: Table
    schema: Schema
    made: int | None


def preview(
    parts: Sequence[Part],
    budget: Budget,
    rows: Callable[[], Sequence[int]],
    checks: Callable[[int, bool], Iterable[Callable[[], None]]],
    spending: Spending,
    unknown: Unknown,
    began: float,
) -> tuple[Preview, Columns]:
    """Check schema, table, files and budget, and compute noise and errors from the settings and N.

    All problems are collected. They depend on the table: they are for people who may see it.

    Parameters
    ----------
    parts, budget : tables, and the budget of all.
    rows : computes the number of rows of each table that count.
    checks : checks of a release, in their order, from the number of rows of the first table and from
        whether all cells can be read.
    began : seconds of a core that the process had taken when the command began.

    Raises
    ------
    InputError : the table cannot be read at all.
    """
    from thesis_cli.privacy.release.release import default_rows
    from thesis_cli.privacy.tables.bad_cells import BadCells, bad_cells

    lines = [("dry run", "nothing is spent and nothing is written; what follows is for people who may see the table")]
    found, seconds, problems = list[BadCells](), list[float](), list[str]()
    for part in parts:
        started = time.process_time()
        found.append(bad_cells(part.table, part.schema, unknown))
        seconds.append(time.process_time() - started)
        lines.append(("table", f"{part.table.source}: {found[-1].rows:,} rows, read in {seconds[-1]:.1f} s"))
        where = f"{part.table.source}: " if len(parts) > 1 else ""
        problems += [where + problem for problem in _cells(found[-1])]
        if not found[-1].rows:
            problems.append(f"{where}the table has no rows")
    counts: Sequence[int] = [one.rows for one in found]
    if not problems:
        counts = rows()
        if counts[0] != found[0].rows:
            bound = parts[0].plan.unit.contribution_bound
            lines.append(("persons", f"{counts[0]:,} rows count, at most {bound} for each person"))
    readable = not problems
    for check in checks(counts[0], readable):
        _collect(problems, check)
    lines.append(("budget", f"({budget.epsilon:.4g}, {budget.delta:.4g}){_room(spending)}"))
    lines.append(("method", parts[0].plan.method))
    for part, count, reading in zip(parts, counts, seconds, strict=True):
        if count:
            if len(parts) > 1:
                lines.append(("table", part.table.source))
            lines += _noise(part.plan, count)
            spent = time.process_time() - began  # the release makes the same checks
            made = default_rows(part.plan.method, count) if part.made is None else part.made
            lines += _needs(part.plan, count, made, spent, reading)
    lines += [("problem" if i == 0 else "", problem) for i, problem in enumerate(problems)]
    lines.append(("verdict", "the release would be refused" if problems else "the release would be made"))
    cells = Columns([asdict(cell) for one in found for cell in one.first])
    return Preview(tuple(lines), tuple(problems), sum(one.total for one in found)), cells


def _cells(found: BadCells) -> list[str]:
    problems = [f"row {cell.row}, column {cell.column!r}: {cell.problem}" for cell in found.first]
    if found.total > len(problems):
        problems.append(f"... and {found.total - len(problems):,} more: {found.total:,} cells in all")
    return problems


def _collect(problems: list[str], check: Callable[[], None]) -> None:
    try:
        check()
    except InputError as error:
        problems.append(str(error))


def _room(spending: Spending) -> str:
    """Budget that the ledger has left before this release."""
    if spending.ledger is None:
        return "; no ledger counts it"
    from thesis_cli.privacy.accounting.ledger import Ledger
    from thesis_cli.privacy.accounting.names import account_key

    try:
        account = Ledger(spending.ledger).accounts().get(account_key(spending.table))
    except InputError as error:
        return f"; {error}"
    return f"; of the limit of table {spending.table}, {account.left()}" if account else "; the first of its table"


def _noise(plan: ReleasePlan, count: int) -> list[tuple[str, str]]:
    """Noise against signal, and errors of shares and means, from the settings and N alone."""
    from thesis_cli.privacy.release.expected import expected

    try:
        found = expected(plan, count)
    except InputError as error:
        return [("noise", str(error))]
    lines = [
        (
            "noise",
            f"scale {s.scale:.4g} on each of {s.size:,}: norm {s.noise:.3g}, of a signal of at most {s.bound:.3g}",
        )
        for s in found.stages
    ]
    means = "" if found.mean is None else f", means to {found.mean:.2g} of a range"
    lines.append(("errors", f"shares of rows to {found.share:.2g}{means}, root mean squares over the columns"))
    return lines + [("warning", text) for text in noise_dominated(plan, found.stages)]


def _needs(plan: ReleasePlan, count: int, made: int, checks: float, reading: float) -> list[tuple[str, str]]:
    """Time and memory of the release, from the seconds that the checks have taken, and a pass among them."""
    from thesis_cli.privacy.release.implementation import implementation_of

    taken = peak_memory()
    try:
        found = implementation_of(plan.method).needs(plan, count, made)
    except InputError:
        return []  # the budget does not fit the method, as the line of the noise says
    seconds = checks + found.passes * reading + found.seconds
    passes = f"; the table is read {1 + found.passes} times" * bool(found.passes)
    return [
        ("time", f"about {seconds:.2g} s of one core{passes}"),
        ("memory", f"about {bytes_text(taken + found.memory)}, of which {bytes_text(taken)} are the program"),
    ]
