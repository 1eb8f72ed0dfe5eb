"""Results of dp-release: the rows and the record of a release, or, with `--dry-run`, its plan, checks and
expected errors, with nothing spent and nothing written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import Content, check_writable, write_atomic
from thesis_cli.base.memory import bytes_text, peak_memory
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.release.budget import Spending, check_same, noise_dominated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.release.plan import ReleasePlan
    from thesis_cli.privacy.release.record import Record, Release
    from thesis_cli.privacy.tables.bad_cells import BadCells
    from thesis_cli.privacy.tables.schema import Unknown
    from thesis_cli.privacy.tables.table import Table


@dataclass(frozen=True)
class Preview:
    """Findings of a dry run.

    Attributes
    ----------
    lines : the summary.
    problems : why the release would be refused; empty if it would be made.
    bad_cells : number of cells that the schema refuses.
    """

    lines: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    bad_cells: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ReleaseResult(Result):
    """Rows that were released; the table holds them, decoded.

    Attributes
    ----------
    release : rows, weights and record; None if only a template of a schema was made.
    total : budget that all releases of the table have spent; None without a ledger.
    out : file of the rows; None if none was written.
    template : the schema to fill in; empty unless it was asked for.
    preview : findings of a dry run; None otherwise.
    """

    release: Release | None = None
    total: Total | None = None
    out: Path | None = None
    template: str = ""
    preview: Preview | None = None

    @property
    def status(self) -> int:
        """1 if a dry run found that the release would be refused."""
        return int(self.preview is not None and bool(self.preview.problems))

    @property
    def record(self) -> Record:
        """Everything that the release makes public."""
        if self.release is None:
            raise InputError("no release was made", "leave init_schema and dry_run out")
        return self.release.record

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Privacy guarantee, mechanism, noise, budget and files."""
        if self.preview is not None:
            return list(self.preview.lines)
        if self.release is None:
            made = "made from the names and types of the columns alone; complete what is marked TODO"
            return [("schema", f"{self.settings['init_schema']}: {made}")]
        from thesis_cli.privacy.mechanisms.risk import risk_line
        from thesis_cli.privacy.release.implementation import implementation_of

        record, guarantee = self.record, self.record.promise
        lines = [
            ("guarantee", f"{_pair(guarantee)}-differential privacy {_protected(record)}{_except(record)}"),
            risk_line(guarantee.epsilon, guarantee.delta, getattr(record.mechanism, "rho", None)),
            ("method", f"{record.method}: {record.basis}; size {record.size:,}"),
            ("mechanism", record.mechanism.mechanism),
        ]
        lines += implementation_of(record.method).noise_lines(record)
        if self.total is not None:
            rule = f"{self.total.rule} composition"
            lines.append(("spent", f"{_pair(self.total)} by all releases of the table so far, {rule}"))
            lines.append(("ledger", f"head {self.total.head}: note it to notice later changes of the ledger"))
        rows = f"{len(self.release.points):,} rows"
        if self.out is None:
            return [*lines, ("release", rows)]
        return [*lines, ("release", f"{self.out}, {rows}"), ("record", str(self.out.with_suffix(".json")))]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Privacy guarantee, mechanism and spent budget."""
        if self.preview is not None:
            return {"problems": list(self.preview.problems), "bad_cells": self.preview.bad_cells}
        if self.release is None:
            return {}
        from thesis_cli.privacy.mechanisms.risk import best_guess
        from thesis_cli.privacy.release.record import written

        promise = self.record.promise
        return {
            "rows": len(self.release.points),
            "promise": written(self.record.promise),
            "private": written(self.record.count),
            "mechanism": written(self.record.mechanism),
            "attack_risk": best_guess(promise.epsilon, promise.delta, getattr(self.record.mechanism, "rho", None)),
            "spent": self.total and asdict(self.total),
        }

    @presentation
    def draw(self) -> Figure:
        """A histogram of each column, drawn from the release alone.

        Raises
        ------
        InputError : only a template of a schema was made.
        """
        from thesis_cli.commands.figures.releases import columns_figure

        if self.release is None:
            raise InputError("there is no figure without a release", "leave --figure out")
        return columns_figure(self.release)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the rows as CSV and the record beside them: both or, if that fails, neither."""
        out = Path(path)
        if self.release is None and self.preview is None:
            write_atomic({out: self.template})
            return [out]
        check_writable("out", out, ".csv")
        check_same(out, self.record, overwrite=True)
        assert self.release is not None
        files = release_files(self.release, out, self.settings["weights"] != "uniform")
        write_atomic(files)
        return list(files)


def release_files(release: Release, out: Path, weighted: bool) -> dict[Path, Content]:
    """Contents of the files of a release: rows and record."""
    from thesis_cli.privacy.release.files import rows_columns

    rows = rows_columns(release, weighted=weighted).csv_parts()
    return {out: rows, out.with_suffix(".json"): release.record.to_json()}


@presentation
def _protected(record: Record) -> str:
    """Between what; a secret number of rows is an estimate."""
    if record.promise.rows is not None:
        return f"of each of the {record.promise.rows:,} rows"
    return f"between {record.promise.neighbours}; about {record.count.rows:,.0f} rows"


@presentation
def _except(record: Record) -> str:
    from thesis_cli.privacy.release.plan import PUBLIC

    return ", and not of the rows of --public" * record.basis.startswith(PUBLIC)


@presentation
def _pair(budget: Any) -> str:
    return f"({budget.epsilon:.4g}, {budget.delta:.4g})"


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
