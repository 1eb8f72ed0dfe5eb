"""`dp-release --dry-run`: the plan, checks and expected errors of a release, with nothing spent and
nothing written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.memory import bytes_text, peak_memory
from thesis_cli.commands.release.budget import Spending
from thesis_cli.commands.release.guards import noise_dominated
from thesis_cli.commands.release.result import Preview

if TYPE_CHECKING:
    from thesis_cli.privacy.release.plan import ReleasePlan
    from thesis_cli.privacy.tables.bad_cells import BadCells
    from thesis_cli.privacy.tables.schema import Unknown
    from thesis_cli.privacy.tables.table_base import Table


def preview(
    plan: ReleasePlan,
    table: Table,
    rows: Callable[[], int],
    checks: Callable[[int, bool], Iterable[Callable[[], None]]],
    spending: Spending,
    made: int | None,
    unknown: Unknown,
    began: float,
) -> tuple[Preview, Columns]:
    """Check schema, table, files and budget, and compute noise and errors from the settings and N.

    All problems are collected. They depend on the table: they are for people who may see it.

    Parameters
    ----------
    rows : computes the number of rows that count.
    checks : checks of a release, in their order, from that number and from whether all cells can be
        read.
    made : rows of the synthetic table, if a number was given.
    began : seconds of a core that the process had taken when the command began.

    Raises
    ------
    InputError : the table cannot be read at all.
    """
    from thesis_cli.privacy.release.release import default_rows
    from thesis_cli.privacy.tables.bad_cells import bad_cells

    started = time.process_time()
    found = bad_cells(table, plan.schema, unknown)
    seconds = time.process_time() - started
    lines = [("dry run", "nothing is spent and nothing is written; what follows is for people who may see the table")]
    lines.append(("table", f"{table.source}: {found.rows:,} rows, read in {seconds:.1f} s"))
    problems = _cells(found)
    count = found.rows
    if not count:
        problems.append("the table has no rows")
    if not problems:
        count = rows()
        if count != found.rows:
            bound = plan.unit.contribution_bound
            lines.append(("persons", f"{count:,} rows count, at most {bound} for each person"))
    readable = not problems
    for check in checks(count, readable):
        _collect(problems, check)
    lines.append(("budget", f"({plan.budget.epsilon:.4g}, {plan.budget.delta:.4g}){_room(spending)}"))
    lines.append(("method", plan.method))
    if count:
        lines += _noise(plan, count)
        spent = time.process_time() - began  # the release makes the same checks
        lines += _needs(plan, count, default_rows(plan.method, count) if made is None else made, spent, seconds)
    lines += [("problem" if i == 0 else "", problem) for i, problem in enumerate(problems)]
    lines.append(("verdict", "the release would be refused" if problems else "the release would be made"))
    return Preview(tuple(lines), tuple(problems), found.total), Columns([asdict(cell) for cell in found.first])


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
