"""`thesis-cli dp-measure`: measure chosen statistics of a private table, with their error.

The noise is OpenDP's, from the randomness of the operating system: no field is a seed.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, to_json, write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, files_named, option, settings_of
from thesis_cli.commands.core.result import Result, holds_release, presentation, unfinished
from thesis_cli.commands.inputs.tables import TableSource, check_delimiter, delimiter_option
from thesis_cli.commands.release.budget import (
    Spending,
    account_option,
    check_apart,
    check_delta,
    check_ledger,
    claimed,
    ledger_option,
    limit_option,
    new_account_option,
    table_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.measure.measure import Expected, Measurement, Plan
    from thesis_cli.privacy.measure.parts import MeasuredRow
    from thesis_cli.privacy.tables.schema import Schema

    SchemaSource = str | Path | Schema
    """The path of a schema in TOML, or a schema."""
else:
    SchemaSource = str


@dataclass(frozen=True, kw_only=True)
class MeasureRequest(Request):
    """Measure chosen counts, means, quantiles and histograms of a private table with differential
    privacy.

    Each answer has a 95 % interval for the statistic of the table itself. All answers together have
    the privacy guarantee, and may be given away with their record.
    """

    usual = ("schema", "epsilon", "define", "query", "ledger", "dry_run", "out")

    table: TableSource = argument(
        "Private table: a CSV or Parquet file, - for standard input, or the URL of a database.",
        names="file",
        objects=True,
    )
    queries: tuple[str, ...] = argument("Statistics, such as mean(age).", metavar="QUERY")
    schema: SchemaSource | None = option(
        None, "Public description of the columns, in TOML.", metavar="FILE", names="file", objects=True
    )
    epsilon: float | None = option(None, "Privacy budget epsilon of all answers together.", above=0)
    delta: float = option(
        0.0, "Privacy budget delta; 0 takes Laplace noise, a delta well below 1/N Gaussian noise.", least=0, below=1
    )
    accept_delta: bool = option(False, "Measure with a delta of 1/N or more, which allows publishing a row as it is.")
    define: tuple[str, ...] | None = option(
        None, "Definition of another column, 'name = expression'.", metavar="DEFINITION"
    )
    person: str | None = option(
        None,
        "Column that says whose row it is; the guarantee then protects all rows of a person, and the number of rows "
        "is secret.",
    )
    contribution_bound: int | None = option(
        None,
        "Largest number of rows of a person that count, for --person; others are left out at random.",
        least=1,
        alias="most",
    )
    query: str | None = option(None, "SELECT that gives the table, if it is a database.")
    delimiter: str | None = delimiter_option()
    unknown: Literal["error", "missing"] = option(
        "error",
        "What an unreadable value counts as: an error, or a missing value if its column may have those.",
    )
    dry_run: bool = option(
        False, "Print the errors that are to be expected; the rows are counted, and nothing is spent or written."
    )
    ledger: str | None = ledger_option("measurement")
    name: str | None = account_option()
    new_account: bool = new_account_option()
    limit: tuple[float, float] | None = limit_option()
    out: Path | None = option(
        None,
        "File for the answers, .csv; the record goes beside it, .json.",
        names="output",
        default_text="results/runs/dp-measure-TABLE.csv; Python writes no file",
        not_swept="out at the top of the file is for all tasks",
    )
    overwrite: bool = option(
        False,
        "Replace files that this command did not write with these settings; never the record of a measurement.",
        recorded=False,
        not_swept="a task writes its table only",
    )

    def check(self) -> None:
        """Refuse a measurement that lacks something, and options of a ledger without one."""
        for name in ("schema", "epsilon"):
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", "a measurement needs it")
        if not self.queries:
            raise InputError("no query is given", "add one, such as mean(age)")
        if (self.person is None) != (self.contribution_bound is None):
            raise InputError("--person and --contribution-bound go together", "give both or none")
        check_ledger(self)
        check_delimiter(self.delimiter, self.table)


@dataclass(frozen=True, kw_only=True, repr=False)
class MeasureResult(Result):
    """Answers with their intervals; the table has a row for each number.

    Attributes
    ----------
    rows : the answers; none after a dry run.
    errors : errors to be expected; only of a dry run.
    measurement : everything that the mechanism made public; None after a dry run.
    plan : queries and budget.
    total : budget that all releases of the table have spent; None without a ledger.
    out : file of the answers; None if none was written.
    """

    rows: Sequence[MeasuredRow]
    errors: Sequence[Expected]
    measurement: Measurement | None
    plan: Plan
    total: Total | None
    out: Path | None

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Answers with their intervals, the privacy guarantee, the mechanism and the budget."""
        lines = [(error.query, f"{error.statistic} +- {error.error:.4g} ({error.unit})") for error in self.errors]
        groups: dict[str, list[MeasuredRow]] = {}
        for row in self.rows:
            groups.setdefault(row.query, []).append(row)
        for query, rows in groups.items():
            single = len(rows) == 1 and not rows[0].group
            lines += [] if single else [(query, "")]
            lines += [(query if single else f"  {row.group}", _answer(row)) for row in rows]
        if self.measurement is None:
            return [*lines, ("dry run", "errors of half a 95 % interval; nothing is spent or written")]
        from thesis_cli.privacy.mechanisms.mechanism import risk_line

        guarantee = self.measurement.promise
        budget = f"({guarantee.epsilon:.4g}, {guarantee.delta:.4g})"
        whom = f"of each of the {guarantee.rows:,} rows" if guarantee.rows else f"between {guarantee.neighbours}"
        lines.append(("guarantee", f"{budget}-differential privacy {whom}"))
        lines.append(risk_line(guarantee.epsilon, guarantee.delta, self.measurement.rho))
        lines.append(("intervals", "95 %, for the statistics of the table itself, clamped to the schema"))
        if self.measurement.mechanism is not None:
            lines.append(("mechanism", self.measurement.mechanism.mechanism))
        if self.measurement.choices:
            lines.append(("quantiles", "OpenDP make_noisy_max among public candidates"))
        if self.total is not None:
            spent = f"({self.total.epsilon:.4g}, {self.total.delta:.4g})"
            lines.append(("spent", f"{spent} by all releases of the table so far, {self.total.rule} composition"))
            lines.append(("ledger", f"head {self.total.head}: note it to notice later changes of the ledger"))
        if self.out is not None:
            lines.append(("answers", f"{self.out}, record {self.out.with_suffix('.json')}"))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Privacy guarantee, mechanism, noisy numbers and answers."""
        if self.measurement is None:
            return {"dry_run": [asdict(error) for error in self.errors]}
        from thesis_cli.privacy.mechanisms.mechanism import best_guess

        guarantee = self.measurement.promise
        return {
            "format": "thesis-cli private measurement 1",
            **asdict(self.measurement),
            "attack_risk": best_guess(guarantee.epsilon, guarantee.delta, self.measurement.rho),
            "factors": self.plan.factors.tolist() if self.plan.sums else [],
            "answers": [asdict(row) for row in self.rows],
            "spent": self.total and asdict(self.total),
        }

    @presentation
    def record(self) -> dict[str, Any]:
        """Everything that is public, for the file beside the answers: no total of the ledger, and
        nothing of the machine or the time.
        """
        public = {key: value for key, value in self.facts().items() if key not in ("spent", "attack_risk")}
        return {**public, "schema": self.plan.schema.to_toml(), "define": list(self.plan.define)}

    @presentation
    def draw(self) -> Figure:
        """Answers of each query with their intervals, queries of a single number beside each other.

        Raises
        ------
        InputError : it is a dry run.
        """
        from thesis_cli.commands.figures.measures import answers_figure

        if not self.rows:
            raise InputError("a dry run has no figure", "leave --figure out")
        return answers_figure(self.rows)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the answers as CSV and the record beside them: both or, if that fails, neither."""
        out = Path(path)
        check_writable("out", out, ".csv")
        files: dict[Path, str | bytes] = {out: self.columns.csv(), out.with_suffix(".json"): to_json(self.record())}
        write_atomic(files)
        return list(files)


def run(request: MeasureRequest, progress: Progress) -> MeasureResult:
    """Measure the table, or compute the errors that are to be expected."""
    from thesis_cli.privacy.measure.measure import Plan
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.mechanisms.stages import Unit
    from thesis_cli.privacy.tables.schema import Schema

    assert request.schema is not None
    assert request.epsilon is not None
    check_apart(files_named(request), request.ledger, request.out)
    schema = request.schema if isinstance(request.schema, Schema) else Schema.load(request.schema)
    budget, unit = Budget(request.epsilon, request.delta), Unit("replace", request.contribution_bound)
    plan = Plan(schema, budget, request.queries, request.define or (), unit)
    assert plan.parts
    out = None if request.dry_run else request.out
    if out is not None:
        _check_unpaid(out)
    with claimed(out, request.overwrite):
        return _measured(request, plan, progress)


def _measured(request: MeasureRequest, plan: Plan, progress: Progress) -> MeasureResult:
    from thesis_cli.privacy.measure.measure import answers, expected, measured
    from thesis_cli.privacy.tables.table import columns_read, open_table, rows_that_count

    note = "measurement" if request.out is None else f"measurement, {request.out.name}"
    spending = Spending.of(request.ledger, request.table, request.name, request.limit, note, request.new_account)
    spending.product, spending.unit = "measurement", plan.unit.name(request.person)
    spending.check(plan.budget)
    table = open_table(request.table, request.query, names=plan.schema.names, delimiter=request.delimiter or "")
    if not plan.unit.secret and not table.count():
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    spending.identify(plan.budget, (table, columns_read(plan.schema, request.person)))
    bound, key = request.contribution_bound, secrets.randbits(63)
    blocks, count = rows_that_count(table, plan.schema, request.person, bound, key, request.unknown)
    public = None if plan.unit.secret else count
    check_delta(plan.budget.delta, public, request.accept_delta)
    if request.dry_run:
        errors = expected(plan, count)
        return _result(request, plan, Columns([asdict(error) for error in errors]), errors=errors)
    with spending.guarded():
        with progress(count, "rows") as tick:
            found = measured(blocks, public, plan, spending.spend, progress=tick)
        rows = answers(plan, found)
        columns = Columns([asdict(row) for row in rows])
        result = _result(request, plan, columns, rows=rows, measurement=found, total=spending.total)
        if request.out is not None:
            result.save(request.out)
        return result


def _result(request: MeasureRequest, plan: Plan, columns: Columns, **found: Any) -> MeasureResult:
    empty = {"rows": (), "errors": (), "measurement": None, "total": None}
    out = None if request.dry_run else request.out
    settings = settings_of(request)
    return MeasureResult(columns=columns, request=request, settings=settings, plan=plan, out=out, **(empty | found))


def _check_unpaid(out: Path) -> None:
    """Refuse to overwrite a measurement: its budget would have been spent for nothing."""
    record = out.with_suffix(".json")
    if holds_release(record) and not unfinished(record):
        problem = f"{record} is the record of a measurement or a release, and its budget was spent"
        raise InputError(problem, "give another --out")


@presentation
def _answer(row: MeasuredRow) -> str:
    value = "undefined" if math.isnan(row.value) else f"{row.value:.6g}"
    note = f", {row.note}" if row.note else ""
    return f"= {value}  ({row.low:.6g} to {row.high:.6g}{note})"


def _default_out(request: MeasureRequest) -> Path | None:
    return None if request.dry_run else Path("results/runs") / f"dp-measure-{table_name(request.table) or 'table'}.csv"


COMMAND = Command(
    MeasureRequest,
    run,
    examples=(
        "dp-measure data/tables/people.csv 'mean(income)' 'count(smoker, by=region)' --schema data/tables/people.toml"
        " --epsilon 1 --delta 1e-6 --out m.csv",
        "dp-measure data/tables/people.csv 'quantile(income, 0.9)' 'histogram(age, bins=8, weight=2)' --schema"
        " data/tables/people.toml --epsilon 1 --out q.csv",
        "dp-measure data/tables/people.csv 'count(by=[region, smoker])' --schema data/tables/people.toml --epsilon 1"
        " --out t.csv",
        "dp-measure data/tables/people.csv 'prob(age > 65)' --schema data/tables/people.toml --epsilon 0.1 --dry-run",
    ),
    notes=(
        "Statistics: count(condition), prob(condition), mean(x), median(x), quantile(x, q), histogram(x, bins=10)."
        " Each takes where=condition and weight=..., its share of the budget beside those of the other queries; all"
        " but histogram take by=column or by=[column, column]. count and histogram take whole=True, which rounds"
        " answers. A mean needs public bounds, from the schema or by clamp(x, low, high).",
        "Expressions are those of dp-query.",
    ),
    saves=False,
    default_out=_default_out,
)
