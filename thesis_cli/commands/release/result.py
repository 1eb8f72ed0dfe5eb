"""Results of dp-release: the rows and the record of a release; with `--dry-run`, its plan, checks and expected
errors, with nothing spent and nothing written; with `--init-schema`, a schema to fill in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import Content, check_writable, write_atomic
from thesis_cli.base.memory import peak_memory
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.tables import TableSource, read_rows, table_label
from thesis_cli.commands.release.budget import Spending, check_same, noise_dominated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.record import PrivacyGuarantee, Record, Release
    from thesis_cli.privacy.release.release import ReleasePlan
    from thesis_cli.privacy.tables.schema import Schema, Unknown
    from thesis_cli.privacy.tables.table import BadCells
    from thesis_cli.privacy.tables.table_kinds import Table


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
    households : rows of the table that is linked to this one, if there is one.
    """

    release: Release | None = None
    total: Total | None = None
    out: Path | None = None
    template: str = ""
    preview: Preview | None = None
    households: ReleaseResult | None = None

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

    @property
    def promise(self) -> tuple[PrivacyGuarantee, float | None]:
        """Privacy guarantee of the release, with that of the households, and its rho if it has one."""
        if self.households is not None:
            from thesis_cli.privacy.release.linked import linked_guarantee

            return linked_guarantee(self.households.record, self.record)
        return self.record.promise, getattr(self.record.mechanism, "rho", None)

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Privacy guarantee, mechanism, noise, budget and files."""
        if self.preview is not None:
            return list(self.preview.lines)
        if self.release is None:
            made = "made from the names and types of the columns alone; complete what is marked TODO"
            if self.settings["public"] is not None:
                made = f"{self.columns.count:,} rules that all public rows obey; keep those that always hold"
            return [("schema", f"{self.settings['init_schema']}: {made}")]
        from thesis_cli.privacy.mechanisms.mechanism import risk_line
        from thesis_cli.privacy.release.release import implementation_of

        record, (guarantee, rho) = self.record, self.promise
        lines = [
            ("guarantee", f"{_pair(guarantee)}-differential privacy {_protected(record)}{_except(record)}"),
            risk_line(guarantee.epsilon, guarantee.delta, rho),
            ("method", f"{record.method}: {record.basis}; size {record.size:,}"),
            ("mechanism", record.mechanism.mechanism),
        ]
        for own, of in ((self, ""), (self.households, ", households")):
            noises = [] if own is None else implementation_of(record.method).noise_lines(own.record)
            lines += [(label + of, text) for label, text in noises]
        if self.total is not None:
            rule = f"{self.total.rule} composition"
            lines.append(("spent", f"{_pair(self.total)} by all releases of the table so far, {rule}"))
            lines.append(("ledger", f"head {self.total.head}: note it to notice later changes of the ledger"))
        for one, label in ((self, "release"), (self.households, "households")):
            if one is not None and one.release is not None:
                rows = f"{len(one.release.points):,} rows"
                lines.append((label, rows if one.out is None else f"{one.out}, {rows}"))
                lines += [("record", str(one.out.with_suffix(".json")))] if one.out is not None else []
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Privacy guarantee, mechanism and spent budget."""
        if self.preview is not None:
            return {"problems": list(self.preview.problems), "bad_cells": self.preview.bad_cells}
        if self.release is None:
            return {}
        from thesis_cli.privacy.mechanisms.mechanism import best_guess
        from thesis_cli.privacy.release.record import written

        promise, rho = self.promise
        return {
            "rows": len(self.release.points),
            "promise": written(promise),
            "private": written(self.record.count),
            "mechanism": written(self.record.mechanism),
            "attack_risk": best_guess(promise.epsilon, promise.delta, rho),
            "spent": self.total and asdict(self.total),
            **({"household_release": self.households.facts()} if self.households is not None else {}),
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
        """Write the rows as CSV and the record beside them, also of households: all or, if that fails, none."""
        out, files = Path(path), dict[Path, Content]()
        if self.release is None and self.preview is None:
            write_atomic({out: self.template})
            return [out]
        check_writable("out", out, ".csv")
        for file, one in zip(files_of(out, linked=True), (self, self.households), strict=True):
            if one is not None:
                check_same(file, one.record, overwrite=True)
                assert one.release is not None
                files |= release_files(one.release, file, self.settings["weights"] != "uniform")
        write_atomic(files)
        return list(files)


def files_of(out: Path | None, *, linked: bool) -> tuple[Path, ...]:
    """Files of the rows of TABLE and, if it is linked, of --households; none if no file is named."""
    if out is None:
        return ()
    return (out, out.with_name(f"{out.stem}-households.csv"))[: 1 + linked]


def release_files(release: Release, out: Path, weighted: bool) -> dict[Path, Content]:
    """Contents of the files of a release: rows and record."""
    from thesis_cli.privacy.release.record import rows_columns

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
    from thesis_cli.privacy.release.release import PUBLIC

    return ", and not of the rows of --public" * record.basis.startswith(PUBLIC)


@presentation
def _pair(budget: Any) -> str:
    return f"({budget.epsilon:.4g}, {budget.delta:.4g})"


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
    from thesis_cli.privacy.tables.table import BadCells, bad_cells

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
    from thesis_cli.privacy.accounting.identity import account_key
    from thesis_cli.privacy.accounting.ledger import Ledger

    try:
        account = Ledger(spending.ledger).accounts().get(account_key(spending.table))
    except InputError as error:
        return f"; {error}"
    return f"; of the limit of table {spending.table}, {account.left()}" if account else "; the first of its table"


def _noise(plan: ReleasePlan, count: int) -> list[tuple[str, str]]:
    """Noise against signal, and errors of shares and means, from the settings and N alone."""
    from thesis_cli.privacy.release.release import expected

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
    from thesis_cli.privacy.release.release import implementation_of

    taken = peak_memory()
    try:
        found = implementation_of(plan.method).needs(plan, count, made)
    except InputError:
        return []  # the budget does not fit the method, as the line of the noise says
    seconds = checks + found.passes * reading + found.seconds
    passes = f"; the table is read {1 + found.passes} times" * bool(found.passes)
    memory, program = ((count + 2**20 - 1) // 2**20 for count in (taken + found.memory, taken))
    return [
        ("time", f"about {seconds:.2g} s of one core{passes}"),
        ("memory", f"about {memory:,} MiB, of which {program:,} MiB are the program"),
    ]


def to_fill_in(table: TableSource, query: str | None, delimiter: str | None) -> tuple[str, Columns]:
    """Text of a schema to fill in, without ranges and values, and the columns of the table with their storage types."""
    from thesis_cli.privacy.tables.schema import template
    from thesis_cli.privacy.tables.table import open_table

    columns = open_table(table, query, delimiter=delimiter or "").columns
    return template(columns), Columns({"column": list(columns), "storage": list(columns.values())})


def with_rules(schema: Schema, public: TableSource, delimiter: str | None) -> tuple[str, Columns]:
    """Text of the schema with the rules that public rows suggest, and these rules."""
    from thesis_cli.privacy.tables.suggestions import with_suggestions

    text, rules = with_suggestions(schema, read_rows(public, schema, delimiter=delimiter), table_label(public))
    return text, Columns({"rule": list(rules)})
