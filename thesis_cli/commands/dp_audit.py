"""`thesis-cli dp-audit`: check the privacy guarantee of dp-release by repeated releases."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import how_to_install, is_installed
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, check_methods, fields_of, given, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.tables import TableSource, read_rows
from thesis_cli.privacy.release.methods import METHODS, SCORED, AuditChoice, listed

if TYPE_CHECKING:
    from thesis_cli.privacy.audit.one_run import OneRunReport
    from thesis_cli.privacy.audit.pairs import Table
    from thesis_cli.privacy.audit.runs import AuditReport, EntryPoint
    from thesis_cli.privacy.audit.stages import StageReport
    from thesis_cli.privacy.mechanisms.mechanism import Budget, NoiseName
    from thesis_cli.privacy.release.record import Record
    from thesis_cli.privacy.release.release import ReleasePlan
    from thesis_cli.privacy.tables.schema import Schema

    SchemaSource = str | Path | Schema
    """The path of a schema in TOML, or a schema."""
else:
    SchemaSource = str

logger = logging.getLogger("thesis_cli")

NOISY: tuple[tuple[str, NoiseName | None], ...] = tuple(
    (method, noise) for method in SCORED for noise in METHODS[method].noises or (None,)
)
"""Audited methods with each of their noises, in this order; a choice adds no noise to a vector."""
NOISED = tuple(name for name, row in METHODS.items() if row.noises)
"""Methods that add noise, which the audit of stages measures."""
OWN_METHODS = tuple(name for name, row in METHODS.items() if "gaussian" in row.noises)
"""Methods that `--table` can audit."""
OWN = 1.0
"""Epsilon that canaries can contradict."""
LEAST = 40
"""Fewest releases of a method."""
GAUSSIAN, PURE, DELTA = 20.0, 3.0, 1e-6
"""Claims at which bounds are tight: mu of Gaussian noise is 3.2, and rates that prove epsilon are
not rare.
"""


@dataclass(frozen=True, kw_only=True)
class AuditRequest(Request):
    """Release two neighbouring tables many times, and prove a lower bound on what a release
    reveals.

    The tables are invented, the worst that a search finds; with --table, a table of yours is
    released once, with invented rows among its own. The noise is that of dp-release, so it has no
    seed. The exit status is 1 if the releases contradict what the budget guarantees.
    """

    usual = ("method", "epsilon", "runs", "seconds", "table", "schema")

    method: AuditChoice = option("all", "Method of dp-release to audit, with each noise that it has.")
    epsilon: float | None = option(
        None,
        "Epsilon of the budget of each release.",
        above=0,
        default_text=f"{OWN:g} with --table; else {GAUSSIAN:g} with Gaussian noise, otherwise {PURE:g}: bounds are"
        " tight there",
    )
    delta: float = option(
        DELTA,
        "Delta of the budget for Gaussian noise.",
        above=0,
        below=1,
        methods=("all", *NOISED),
    )
    runs: int = option(
        40_000,
        "Releases of each method, half of them for each of two tables.",
        least=LEAST,
        methods=("all", *SCORED),
    )
    command_runs: int = option(
        100,
        "Further releases of each method by dp-release itself, from a CSV file; 0 for none.",
        least=0,
        methods=("all", *SCORED),
    )
    stage_runs: int = option(
        100,
        "Releases of each kind in which the noise of every vector is measured: by copula with columns of all types, "
        "30 times as many by methods with one vector, a twentieth as many by marginals, and with --method all by "
        "dp-measure; 0 for none.",
        least=0,
        methods=("all", *NOISED),
    )
    seconds: float | None = option(
        None, "Seconds that the whole audit may take; it then makes fewer releases.", above=0
    )
    table: TableSource | None = option(
        None,
        "Private table to audit instead: a CSV or Parquet file. What the audit finds is not private.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    schema: SchemaSource | None = option(
        None, "Public description of the columns of --table, in TOML.", metavar="FILE", names="file", objects=True
    )
    canaries: int = option(
        300,
        "Rows drawn from the schema that are added to --table, each one of two by a fair coin.",
        least=1,
        most=5000,
    )
    confidence: float = option(
        0.999,
        "Confidence level of each lower bound.",
        above=0,
        below=1,
    )

    def check(self) -> None:
        if 0 < self.command_runs < LEAST:
            raise InputError(f"--command-runs is {self.command_runs}", f"it must be 0, or at least {LEAST}")
        if self.stage_runs == 1:
            raise InputError("--stage-runs is 1", "it must be 0, or at least 2")
        check_methods(self, self.method)
        if (self.table is None) != (self.schema is None):
            raise InputError("--table and --schema go together", "give both or none")
        for name in ("runs", "command_runs", "stage_runs", "seconds") if self.table is not None else ("canaries",):
            if name in given(self):
                shown = fields_of(type(self))[name].shell_name
                without = "goes with" if self.table is None else "does not go with"
                raise InputError(f"{shown} {without} --table", "give both" if self.table is None else "leave one out")
        if self.table is not None and self.method not in ("all", *OWN_METHODS):
            problem = f"--method {self.method} does not go with --table"
            raise InputError(problem, f"it is for {listed(OWN_METHODS, ' or ')}")


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(Result):
    """Claims and lower bounds.

    Attributes
    ----------
    reports : an audit of each method, and of each by the command.
    stages : audits of all noisy vectors of a kind of release.
    own : audits of a table of the caller's, by each method.
    """

    reports: Sequence[AuditReport] = ()
    stages: Sequence[StageReport] = ()
    own: Sequence[OneRunReport] = ()

    @property
    def verdict(self) -> Literal["not contradicted", "contradicted"]:
        """The verdict on all methods."""
        return "contradicted" if self.status else "not contradicted"

    @property
    def status(self) -> int:
        """1 if the releases contradict a claim."""
        found: list[AuditReport | StageReport | OneRunReport] = [*self.reports, *self.stages, *self.own]
        return int(any(report.contradictions for report in found))

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Lines that compare, for each method, what its releases prove with what its budget allows."""
        lines = []
        for report in self.reports:
            if report.gdp is None:
                proven = f"epsilon >= {report.clopper_pearson.epsilon:.3f} of {report.epsilon:g} claimed"
            else:
                proven = f"mu >= {report.gdp.mu:.3f} of {report.mu:.3f} claimed"
            lines.append((_label(report), f"{report.verdict}: {proven} ({report.share:.0%}), {report.runs:,} runs"))
            lines += [("", contradiction) for contradiction in report.contradictions]
            if not report.contradictions:
                fault = "too few runs to contradict less noise"
                if report.fault is not None:
                    fault = f"these runs would contradict {report.fault:.2f} times this noise"
                lines.append(("", fault))
        for stage in self.stages:
            proven = f"{stage.claim} >= {max(0.0, stage.proven):.4g} of {stage.rho:.4g} claimed"
            proven += f" ({stage.share:.0%} of the noise)"
            lines.append((stage.name, f"{stage.verdict}: {proven}, {stage.runs:,} runs"))
            lines += [("", contradiction) for contradiction in stage.contradictions]
        for own in self.own:
            proven = f"epsilon >= {own.proven:.3f} of {own.epsilon:g} claimed ({own.share:.0%})"
            lines.append((own.method, f"{own.verdict}: {proven}, {own.canaries:,} canaries in {own.rows:,} rows"))
            right = ", ".join(f"{right:,} of {made:,}" for made, right in own.guesses)
            lines.append(("", f"right guesses: {right}; if all were right, epsilon >= {own.most:.3f}"))
        if self.own:
            lines.append(("private", "this result depends on the table and has no guarantee: keep it like the table"))
        return [*lines, ("bounds", f"each at confidence {self.settings['confidence']:g}")]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The verdict, and all that was measured."""
        audits = [report.summary() for report in self.reports]
        found = {"verdict": self.verdict, "audits": audits, "stages": [stage.summary() for stage in self.stages]}
        return found | ({"own": [own.summary() for own in self.own], "private": True} if self.own else {})


def run(request: AuditRequest, progress: Progress) -> AuditResult:
    """Audit each method, by its entry point in the library and by the command, or on a table."""
    if request.table is not None:
        return _own(request, progress)
    from thesis_cli.privacy.audit.cases import CASES
    from thesis_cli.privacy.audit.runs import audit
    from thesis_cli.privacy.audit.scores import subject
    from thesis_cli.privacy.audit.stages import stage_audit

    chosen = [(method, noise) for method, noise in NOISY if request.method in ("all", method)]
    parts = len(chosen) * (2 if request.command_runs else 1)
    seconds = None if request.seconds is None else request.seconds / parts
    reports, stages = [], []
    names = [name for name in CASES if request.stage_runs and request.method in ("all", name.split(",")[0])]
    kinds = [(name, CASES[name]) for name in names if _installed(name)]
    with progress(len(chosen) * (request.runs + request.command_runs), "releases") as tick, TemporaryDirectory() as to:
        for method, noise in chosen:
            found = subject(method, noise or "gaussian", _budget(request, noise), request.runs // 2, request.confidence)
            options: dict[str, Any] = {"confidence": request.confidence, "seconds": seconds, "tick": tick}
            reports.append(audit(found, request.runs, **options))
            if request.command_runs:
                drawn = found.anew(replace(found.pair.plan, public=None))  # the command draws its points
                entry = _by_command(Path(to, "table.csv"))
                reports.append(audit(drawn, request.command_runs, entry, "dp-release", **options))
        for name, kind in kinds:
            stages.append(stage_audit(kind(name, _budget(request, "gaussian")), request.stage_runs, request.confidence))
    return AuditResult(
        columns=Columns([_flat(report.summary()) for report in reports or stages]),
        request=request,
        settings=settings_of(request),
        reports=reports,
        stages=stages,
    )


def _own(request: AuditRequest, progress: Progress) -> AuditResult:
    """Release the caller's table with canaries, once by each method."""
    import numpy as np

    from thesis_cli.privacy.audit.one_run import one_run_audit
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.release import ReleasePlan
    from thesis_cli.privacy.tables.schema import Schema

    assert request.table is not None
    assert request.schema is not None
    schema = request.schema if isinstance(request.schema, Schema) else Schema.load(request.schema)
    rows = read_rows(request.table, schema)
    budget, rng = Budget(request.epsilon or OWN, request.delta), np.random.default_rng()
    chosen = [method for method in OWN_METHODS if request.method in ("all", method) and _installed(method)]
    reports = []
    with progress(len(chosen) * request.canaries, "canaries") as tick:
        for method in chosen:
            plan = ReleasePlan(schema, budget, method, size=METHODS[method].size or 1)
            reports.append(one_run_audit(rows, plan, request.canaries, request.confidence, rng, tick))
    columns = Columns([_flat(report.summary()) for report in reports])
    return AuditResult(columns=columns, request=request, settings=settings_of(request), own=reports)


def _installed(name: str) -> bool:
    """Whether the packages of a kind of release are there; says so if they are not."""
    package = METHODS[name].package if name in METHODS else ""
    if not package or is_installed(package):
        return True
    logger.warning("%s is not audited, because %s is not installed: %s", name, package, how_to_install(package))
    return False


def _budget(request: AuditRequest, noise: NoiseName | None) -> Budget:
    from thesis_cli.privacy.mechanisms.mechanism import Budget

    if noise == "gaussian":
        return Budget(request.epsilon or GAUSSIAN, request.delta)
    return Budget(request.epsilon or PURE)


def _by_command(file: Path) -> EntryPoint:
    """dp-release as an entry point: from a CSV file to the record, with public draws of its own."""
    from thesis_cli.commands import dp_release

    def entry(table: Table, plan: ReleasePlan) -> Record:
        file.write_text(Columns(table).csv(), encoding="utf-8")
        settings = {"size": plan.size, "delta": plan.budget.delta, "noise": plan.noise, "rows": 1}
        heeded: dict[str, Any] = {name: value for name, value in settings.items() if name in plan.row.options}
        release = dp_release.ReleaseRequest(
            table=file, schema=plan.schema, epsilon=plan.budget.epsilon, method=plan.method, **heeded
        )
        return dp_release.run(release, silent).record

    return entry


def _label(report: AuditReport) -> str:
    return report.method if report.entry == "record" else f"{report.method} ({report.entry})"


def _flat(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table: bounds by name."""
    flat: dict[str, Any] = {}
    for key, value in summary.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{name}": entry for name, entry in value.items() if name not in ("method", "delta")}
        elif key != "gdp":
            flat[key] = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return flat


COMMAND = Command(
    AuditRequest,
    run,
    examples=(
        "dp-audit --method features --runs 400 --command-runs 0",
        "dp-audit --method exponential --epsilon 3 --runs 400 --command-runs 40 --json",
        "dp-audit --table data/tables/people.csv --schema data/tables/people.toml --method features --epsilon 2",
    ),
)
