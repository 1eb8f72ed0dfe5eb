"""`thesis-cli kernel-eval`: evaluate a probabilistic expression as an embedding in an RKHS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.files import check_writable
from thesis_cli.base.progress import Progress
from thesis_cli.base.wording import counted
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import argument, option, settings_of
from thesis_cli.commands.core.overwrite import check_overwritten
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.releases import ReleaseSource, open_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from thesis_cli.semantics.denotation import Evaluated, JointTable, Settings
    from thesis_cli.semantics.queries import Query

QUERY = "mean, sd, quantile(0.05), median, quantile(0.95)"


@dataclass(frozen=True, kw_only=True)
class KernelEvalRequest(Request):
    """Evaluate a probabilistic expression as an embedding in an RKHS.

    The distribution of its value is a weighted sum of feature maps of points, which is reduced after
    each operation.
    """

    usual = ("query", "size", "kernel", "table", "against", "seed")

    expression: str = argument("Expression, such as 'let x = normal(0, 1) in x * x + uniform(0, 1)'.")
    query: str = option(QUERY, "Statistics to print, also var and prob(> 2).", metavar="QUERIES")
    size: int = option(200, "Largest number of points after each operation.", least=2, most=2000)
    kernel: Literal["gaussian", "laplace"] = option("gaussian", "Kernel of the RKHS.")
    bandwidth: str = option(
        "median", "Bandwidth of the kernel; median is the median distance of the points.", metavar="median|NUMBER"
    )
    reduce: Literal["quantiles", "random", "herding", "frank-wolfe", "nystrom", "atoms"] = option(
        "quantiles", "How an expansion of more points is reduced."
    )
    draws: Literal["cells", "random"] = option(
        "cells", "Points of a distribution: means over cells of equal probability, or independent draws."
    )
    table: ReleaseSource | None = option(
        None,
        "Private release whose columns are free variables: the CSV file that dp-release wrote, its record beside it.",
        metavar="RELEASE",
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
    seed: int = option(0, "Seed of points that are drawn.", least=0)

    def check(self) -> None:
        """Refuse a bandwidth that is neither `median` nor a number in range."""
        _bandwidth(self.bandwidth)


@dataclass(frozen=True, kw_only=True, repr=False)
class KernelEvalResult(Result):
    """The embedding; the table has a row for each query, with a bound on its error where one is
    known.

    Attributes
    ----------
    evaluated : expansion, kernel, bounds and reductions.
    queries, values : what was asked, and the answers.
    distance : RKHS distance to the other expression; None if none was given.
    rows : number of rows of the release; 0 without one.
    """

    evaluated: Evaluated
    queries: Sequence[Query]
    values: Sequence[float]
    distance: float | None = None
    rows: int = 0

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Answers, points, kernel, and the bound on the error."""
        found, settings = self.evaluated, self.settings
        lines = [(query.text, f"{value:.6g}") for query, value in zip(self.queries, self.values, strict=True)]
        if self.distance is not None:
            lines.append(("distance", f"{self.distance:.4g} in the RKHS from {settings['against']}"))
        after = f"after {counted(len(found.steps), 'reduction')} by {settings['reduce']}" * bool(found.steps)
        lines.append(("points", f"{len(found.expansion):,} {after}".strip()))
        median = " (median distance)" * (settings["bandwidth"] == "median")
        lines.append(("kernel", f"{settings['kernel']}, bandwidth {found.kernel.bandwidth:.4g}{median}"))
        if self.rows:
            share = f", {100 * found.share:.3g} % of the weight has a value" * (found.share < 1 - 1e-12)
            lines.append(("table", f"{self.rows:,} released rows of {settings['table']}{share}"))
        if found.projected:
            lines.append(
                ("weights", f"negative ones were replaced, which moved the embedding by {found.projected:.2g}")
            )
        return [*lines, ("error", _error_text(found))]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Answers, bounds, kernel and reductions."""
        found = self.evaluated
        return {
            "answers": {query.text: value for query, value in zip(self.queries, self.values, strict=True)},
            "points": len(found.expansion),
            "kernel_bandwidth": found.kernel.bandwidth,
            "error_bound": found.rkhs_error,
            "wasserstein_bound": found.error.largest,
            "no_bound": found.error.reason,
            "projected": found.projected,
            "distance": self.distance,
            "reductions": [
                {
                    "place": str(step.place),
                    "operation": step.name,
                    "before": step.before,
                    "after": step.after,
                    "rkhs_error": step.rkhs_error,
                    "wasserstein": step.wasserstein,
                }
                for step in found.steps
            ],
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
    settings = Settings(request.size, request.kernel, _bandwidth(request.bandwidth), request.reduce, request.draws)
    if request.points_out is not None:
        check_writable("--points-out", request.points_out, ".csv")
        check_overwritten("--points-out", request.points_out, request.overwrite)
    table, texts = (None, {}) if request.table is None else _table(request.table)
    with progress(1 + (request.against is not None), "expressions") as tick:
        found = _evaluated(request.expression, settings, request.seed, table, texts)
        tick(1)
        distance = None
        if request.against is not None:
            with about("--against"):
                other = _evaluated(request.against, settings, request.seed, table, texts)
            distance = found.kernel.distance(found.expansion, other.expansion)
            tick(1)
    values = [query.of(found.expansion) for query in queries]
    if request.points_out is not None:
        from thesis_cli.base.files import write_atomic

        points = Columns({"point": found.expansion.points[:, 0], "weight": found.expansion.weights})
        write_atomic({request.points_out: points.csv()})
    errors = [found.error.largest if query.statistic == "mean" else math.inf for query in queries]
    return KernelEvalResult(
        columns=Columns(
            {
                "query": [query.text for query in queries],
                "value": values,
                "error_bound": [error if math.isfinite(error) else math.nan for error in errors],
            }
        ),
        request=request,
        settings=settings_of(request),
        evaluated=found,
        queries=queries,
        values=values,
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


def _table(source: ReleaseSource) -> tuple[JointTable, dict[str, str]]:
    """Columns of numbers of a release with its weights, and the kinds of its other columns."""
    import numpy as np

    from thesis_cli.privacy.tables.expressions import read_columns
    from thesis_cli.semantics.denotation import JointTable

    release = open_release(source)
    columns = read_columns(release.schema.columns, release.columns)
    numbers = {name: np.asarray(value.data, np.float64) for name, value in columns.items() if value.kind != "text"}
    return JointTable(numbers, release.weights), {name: "a category" for name in columns if name not in numbers}


def _evaluated(
    text: str, settings: Settings, seed: int, table: JointTable | None, texts: Mapping[str, str]
) -> Evaluated:
    """The denotation of a text."""
    from thesis_cli.semantics.evaluate import evaluate
    from thesis_cli.semantics.parser import parse

    free = [] if table is None else [*table.columns, *texts]
    expression = parse(text, free)
    for name in sorted(expression.free):
        if name in texts:
            assert table is not None
            remedy = f"use columns of numbers: {', '.join(table.columns)}"
            raise InputError(f"the column {name!r} is {texts[name]}", remedy)
    return evaluate(expression, settings, seed, table)


@presentation
def _error_text(found: Evaluated) -> str:
    """The composed bound, or why there is none."""
    if math.isinf(found.rkhs_error):
        return f"no bound: {found.error.reason}"
    text = f"error <= {found.rkhs_error:.3g} in the RKHS"
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
