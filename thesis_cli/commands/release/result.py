"""Result of dp-release: the rows and the record of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import Content, check_writable, write_atomic
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.release.guards import check_same

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.release.record import PrivacyGuarantee, Record, Release


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
        from thesis_cli.privacy.mechanisms.risk import risk_line
        from thesis_cli.privacy.release.implementation import implementation_of

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
        from thesis_cli.privacy.mechanisms.risk import best_guess
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
