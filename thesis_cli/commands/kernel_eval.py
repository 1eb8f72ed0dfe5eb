"""`thesis-cli kernel-eval`: evaluate a probabilistic expression as an embedding in an RKHS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, check_overwritten, presentation
from thesis_cli.commands.inputs.tables import ReleaseSource, TableSource, plain_columns, release_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from thesis_cli.semantics.denotation import JointTable, Settings
    from thesis_cli.semantics.evaluate import Evaluated
    from thesis_cli.semantics.queries import Query

FEW = 100
"""Effective number of values from which answers are relied on."""
QUERY = "mean, sd, quantile(0.05), median, quantile(0.95)"


@dataclass(frozen=True, kw_only=True)
class KernelEvalRequest(Request):
    """Evaluate a probabilistic expression as an embedding in an RKHS.

    The distribution of its value is a weighted sum of feature maps of points, which fill the space of its random
    numbers evenly; conditions weight them exactly.
    """

    usual = ("query", "size", "kernel", "table", "against", "seed")

    expression: str = argument("Expression, such as 'let x = normal(0, 1) in x * x + uniform(0, 1)'.")
    query: str = option(QUERY, "Statistics to print, also var and prob(> 2).", metavar="QUERIES")
    size: int = option(
        200, "Number of points that stand for the 2 SIZE^2 values that are computed.", least=2, most=2000
    )
    kernel: Literal["gaussian", "laplace"] = option("gaussian", "Kernel of the RKHS.")
    bandwidth: str = option(
        "median", "Bandwidth of the kernel; median is the median distance of the points.", metavar="median|NUMBER"
    )
    table: ReleaseSource | TableSource | None = option(
        None,
        "Table whose columns are free variables: a CSV or Parquet file, or a private release, its record beside it.",
        metavar="TABLE",
        names="release",
        objects=True,
        default_text="none",
    )
    against: str | None = option(
        None,
        "Another expression; its distance in the RKHS is printed.",
        metavar="EXPRESSION",
        default_text="none",
    )
    points_out: Path | None = option(
        None, "CSV file for the points and their weights.", names="output", default_text="none"
    )
    overwrite: bool = option(False, "Replace a file of --points-out that exists.", recorded=False)
    seed: int = option(0, "Seed of the points.", least=0)

    def check(self) -> None:
        """Refuse a bandwidth that is neither `median` nor a number in range."""
        _bandwidth(self.bandwidth)


@dataclass(frozen=True, kw_only=True, repr=False)
class KernelEvalResult(Result):
    """The embedding; the table has a row for each query, with a bound on its error where one is
    known.

    Attributes
    ----------
    evaluated : values, expansion, kernel and bounds.
    queries, values : what was asked, and the answers.
    standard_errors : standard error of each answer; NaN where it is unknown.
    distance : RKHS distance to the other expression; None if none was given.
    rows : number of rows of the table; 0 without one.
    """

    evaluated: Evaluated
    queries: Sequence[Query]
    values: Sequence[float]
    standard_errors: Sequence[float]
    distance: float | None = None
    rows: int = 0

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Answers, points, kernel, and the bound on the error."""
        found, settings = self.evaluated, self.settings
        answers = zip(self.queries, self.values, self.standard_errors, strict=True)
        lines = [(query.text, _shown(value, error)) for query, value, error in answers]
        if self.distance is not None:
            lines.append(("distance", f"{self.distance:.4g} in the RKHS from {settings['against']}"))
        lines.append(("points", f"{len(found.expansion):,} for {len(found.values):,} values"))
        median = " (median distance)" * (settings["bandwidth"] == "median")
        lines.append(("kernel", f"{settings['kernel']}, bandwidth {found.kernel.bandwidth:.4g}{median}"))
        if self.rows:
            share = f", {100 * found.share:.3g} % of the weight has a value" * (found.share < 1 - 1e-12)
            lines.append(("table", f"{self.rows:,} rows of {settings['table']}{share}"))
        if any(math.isnan(value) for value in self.values):
            grown = f"distances grow as p^-{found.tail_index:.2g} of the share p beyond"
            lines.append(("tails", f"so heavy that moments may be infinite: {grown}"))
        if found.projected:
            moved = f"moves the embedding by {found.projected:.2g}"
            lines.append(("weights", f"some are negative; --points-out and quantiles replace them, which {moved}"))
        if found.sample.effective < FEW:
            count = f"only about {found.sample.effective:,.0f} of {found.sample.computed:,} values count"
            lines.append(("given", f"{count}: answers and standard errors are not reliable"))
        if found.sample.regressed:
            place = found.sample.regressed
            lines.append(("given", f"a regression stands for the observation at {place}: its bias is unknown"))
        return [*lines, ("error", _error_text(found))]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Answers, bounds, kernel and reductions."""
        found = self.evaluated
        return {
            "answers": {
                query.text: None if math.isnan(value) else value
                for query, value in zip(self.queries, self.values, strict=True)
            },
            "standard_errors": {
                query.text: error if math.isfinite(error) else None
                for query, error in zip(self.queries, self.standard_errors, strict=True)
            },
            "values": len(found.values),
            "effective": found.sample.effective,
            "points": len(found.expansion),
            "kernel_bandwidth": found.kernel.bandwidth,
            "error_bound": found.rkhs_error,
            "wasserstein_bound": found.error.largest,
            "no_bound": found.error.reason,
            "projected": found.projected,
            "distance": self.distance,
            "regressed": str(found.sample.regressed) if found.sample.regressed else None,
        }

    @presentation
    def draw(self) -> Figure | None:
        """The distribution function, and the embedding as a function."""
        from thesis_cli.commands.figures.kernels import draw_embedding

        return draw_embedding(self.evaluated.expansion, self.evaluated.kernel, str(self.settings["expression"]))


def run(request: KernelEvalRequest, progress: Progress) -> KernelEvalResult:
    """Parse, evaluate, and answer the queries."""
    from thesis_cli.semantics.denotation import Settings
    from thesis_cli.semantics.queries import parse_queries

    queries = parse_queries(request.query)
    settings = Settings(request.size, request.kernel, _bandwidth(request.bandwidth))
    if request.points_out is not None:
        check_writable("--points-out", request.points_out, ".csv")
        check_overwritten("--points-out", request.points_out, request.overwrite)
    table, levels = (None, {}) if request.table is None else _table(request.table)
    with progress(1 + (request.against is not None), "expressions") as tick:
        found = _evaluated(request.expression, settings, request.seed, table, levels)
        tick(1)
        distance = None
        if request.against is not None:
            with about("--against"):
                other = _evaluated(request.against, settings, request.seed, table, levels)
            distance = found.kernel.distance(found.values, other.values)
            tick(1)
    values, standard_errors = zip(*[found.answer(query) for query in queries], strict=True)
    if request.points_out is not None:
        points = Columns({"point": found.expansion.points[:, 0], "weight": found.expansion.weights})
        write_atomic({request.points_out: points.csv()})
    errors = [found.error.largest if query.statistic == "mean" else math.inf for query in queries]
    return KernelEvalResult(
        columns=Columns(
            {
                "query": [query.text for query in queries],
                "value": values,
                "standard_error": standard_errors,
                "error_bound": [error if math.isfinite(error) else math.nan for error in errors],
            }
        ),
        request=request,
        settings=settings_of(request),
        evaluated=found,
        queries=queries,
        values=values,
        standard_errors=standard_errors,
        distance=distance,
        rows=0 if table is None else len(table.weights),
    )


def _bandwidth(text: str) -> float | None:
    """A bandwidth; None for `median`."""
    if text == "median":
        return None
    try:
        width = float(text)
    except ValueError:
        width = math.nan
    if not 1e-150 <= width <= 1e150:
        raise InputError(f"--bandwidth is {text[:60]}", "it must be median, or a number from 1e-150 to 1e150")
    return width


def _table(source: ReleaseSource | TableSource) -> tuple[JointTable, dict[str, tuple[str, ...]]]:
    """The columns of a release with its weights, or of another table with equal weights; and the levels of those that
    are categories.
    """
    import numpy as np

    from thesis_cli.privacy.tables.expressions import read_columns
    from thesis_cli.semantics.denotation import JointTable

    release = release_of(source)
    if release is not None:
        values = read_columns(release.schema.columns, release.columns)
        numbers = {name: np.asarray(value.data, np.float64) for name, value in values.items()}
        return JointTable(numbers, release.weights), {name: v.levels for name, v in values.items() if v.kind == "text"}
    columns, levels = plain_columns(cast("TableSource", source))
    count = len(next(iter(columns.values())))
    return JointTable(columns, np.full(count, 1 / count)), levels


def _evaluated(
    text: str, settings: Settings, seed: int, table: JointTable | None, levels: Mapping[str, tuple[str, ...]]
) -> Evaluated:
    """The denotation of a text."""
    from thesis_cli.semantics.evaluate import evaluate
    from thesis_cli.semantics.parser import parse

    return evaluate(parse(text, [] if table is None else table.columns, levels), settings, seed, table)


@presentation
def _shown(value: float, error: float) -> str:
    """An answer to a tenth of its standard error, and that; alone where that is unknown or 0."""
    if math.isnan(value):
        return "unknown"
    if not error > 0:
        return f"{value:.6g}"
    return f"{round(value, 1 - math.floor(math.log10(error))) + 0.0:<12.6g} +- {error:.1g}"


@presentation
def _error_text(found: Evaluated) -> str:
    """The composed bound, or why there is none."""
    if math.isinf(found.rkhs_error):
        return f"no bound: {found.error.reason}"
    text = f"at most {found.rkhs_error:.3g} in the RKHS"
    apart = found.error.largest
    return text + (f", {apart:.3g} in W1 and in the mean" if math.isfinite(apart) else "; no bound in W1")


COMMAND = Command(
    KernelEvalRequest,
    run,
    examples=(
        "kernel-eval 'let x = normal(0, 1) in x * x + uniform(0, 1)' --query 'mean, prob(> 2)' --figure square.png",
        "kernel-eval 'let p = uniform(0, 1) given bernoulli(p) > 0 in p' --query 'mean, var'",
        "kernel-eval 'income / 1000 + normal(0, 0.1)' --table data/releases/people.csv --query 'mean, median'",
    ),
    notes=(
        "Expressions: numbers, variables, + - * / **, comparisons, and, or, not, let v = e in e, functions"
        " abs, exp, log, sqrt, sin, cos, tanh, floor, min, max, clamp(x, low, high), if(c, a, b), distributions"
        " normal(mean, deviation), laplace(mean, scale), uniform(low, high), exponential(mean),"
        " gamma(shape, scale), beta(a, b), bernoulli(p), categorical(p0, p1, ...). Arguments are independent;"
        " a variable of let has the same value wherever it stands.",
        "Conditioning: let v = e, ... given c, ... in e, where c is an event, such as v > 1, or an observed value,"
        " such as normal(v, 1) == 2.",
    ),
)
