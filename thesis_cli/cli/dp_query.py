"""`thesis-cli dp-query`: population statistics from a private release."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.query import Answer, AnswerRow
    from thesis_cli.privacy.weighted_sample import WeightedSample

EXAMPLES = """\b
Examples, of a release r.csv of data/tables/people.csv:
  thesis-cli dp-query r.csv 'mean(income)' 'prob(age > 65 and region == "south")' 'count(smoker, where=age < 30)'
  thesis-cli dp-query r.csv 'quantile(income, 0.9, by=region)' 'corr(age, income)' 'histogram(age)' --figure age.png
  thesis-cli dp-query r.csv --define 'l = log(income)' 'regress(l, age, education, region)'

\b
Statistics: mean(x), var(x), sd(x), median(x), quantile(x, q), corr(x, y), prob(condition), count(condition),
  histogram(x, bins=10), regress(y, x1, x2, ...), classify(condition, x1, x2, ..., ridge=1e-4); each takes
  where=condition, and those that are one number by=column. Extremes are not released, so there is no min and max.

\b
Expressions: numbers, names of columns (in backquotes where they are no identifiers), + - * / // % **, comparisons,
  and, or, not, in ("a", "b"), abs, exp, log, sqrt, min, max (of two or more), True, False, missing(column).
"""


def dp_query(
    release: Annotated[str, typer.Argument(help="CSV file that dp-release wrote, its record beside it.")],
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help="Statistics, as below.")],
    define: Annotated[
        list[str] | None, typer.Option(help="A column more, 'name = expression'; may be repeated.", show_default=False)
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Score regressions and classifications on these real rows, clamped to the schema. The scores are NOT"
            " private, and for the terminal of who may see TABLE: they go into no file.",
            show_default=False,
        ),
    ] = None,
    holdout_query: Annotated[str | None, typer.Option(help="The SELECT, where TABLE is a database.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the histograms: .png, beside it a .pdf.")] = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Answer questions about a population from a private release; all answers are estimates."""
    options.set_messages(quiet, verbose)
    out = output.out_file(out, "dp-query", release, holdout, Path(release).with_suffix(".json"))
    if holdout_query and not holdout:
        raise InputError("--holdout-query without --holdout", "the URL of a database is wanted there")
    if figure:
        check_writable("--figure", figure, ".png")

    from thesis_cli.privacy.query import ask
    from thesis_cli.privacy.release_files import read_release
    from thesis_cli.privacy.weighted_sample import WeightedSample

    began = time.perf_counter()
    read = read_release(release)
    promise = _promise(read.record, release)
    sample = WeightedSample.of_release(read)
    judge = _read_holdout(holdout, holdout_query, sample) if holdout else None
    for text in define or []:
        sample, judge = sample.define(text), judge and judge.define(text)
    answers = [ask(sample, text, promise["rows"], judge) for text in queries]
    if judge and not any(answer.scored for answer in answers):
        raise InputError("--holdout has no model to score", "a query regress(...) or classify(...) is wanted")
    drawn = [answer for answer in answers if answer.subject]
    if figure and not drawn:
        raise InputError("--figure has nothing to draw", "a query histogram(...) is wanted")
    seconds = time.perf_counter() - began

    weights = None if sample.is_distribution() else _about_weights(sample)
    settings = {"release": release, "promise": promise, "define": define or [], "weights": weights}
    found = [asdict(f) for answer in answers for f in answer.rows]
    scored = [asdict(f) for answer in answers for f in answer.scored]
    if as_json:
        private = {"holdout": {"table": holdout, "not_private": scored}} if holdout else {}
        output.print_json({**settings, "answers": found, **private, "seconds": round(seconds, 3), "out": str(out)})
    else:
        lines = [line for answer in answers for line in _lines(answer)]
        if weights:
            lines.append(("weights", weights))
        lines.append(("estimates", _described(promise, len(sample.weights))))
        output.print_table(lines)
    output.write_table(out, found, settings, seconds)
    options.logger.info("wrote %s", out)
    if figure:
        from thesis_cli.base.figures import save

        for path in save(lambda: _draw(drawn), figure.with_suffix("")):
            options.logger.info("wrote %s", path)


def _promise(record: dict[str, Any], release: str) -> dict[str, Any]:
    promise = record.get("promise")
    wanted = ("epsilon", "delta", "neighbours", "rows")
    if not isinstance(promise, dict) or any(key not in promise for key in wanted):
        raise InputError("its record has no promise", "one that dp-release wrote is wanted", source=release)
    return promise


def _read_holdout(holdout: str, query: str | None, sample: WeightedSample) -> WeightedSample:
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.table import open_table, rows
    from thesis_cli.privacy.weighted_sample import WeightedSample

    parts = list(rows(open_table(holdout, query), sample.schema))
    if not parts:
        raise InputError("the table has no rows", "one or more are wanted", source=holdout)
    return WeightedSample.of_rows(sample.schema, Rows.concatenate(parts))


def _described(promise: dict[str, Any], points: int) -> str:
    return (
        f"from {points:,} released rows, for N = {promise['rows']:,} private ones: epsilon = {promise['epsilon']:.6g}, "
        f"delta = {promise['delta']:.6g} ({promise['neighbours']})"
    )


def _about_weights(sample: WeightedSample) -> str:
    negative, total = int((sample.weights < 0).sum()), float(sample.weights.sum())
    return (
        f"{negative:,} of {sample.weights.size:,} are negative, the sum is {total:.6g}; mean, prob and count take them"
        " as they are, all else takes negative ones as 0 and scales the others to sum 1"
    )


def _lines(answer: Answer) -> list[tuple[str, str]]:
    """A line for a number alone; otherwise one for the query, and one for each of its numbers."""
    first = answer.rows[0]
    if len(answer.rows) == 1 and not first.group:
        return [(answer.query, f"{_equals(first)}{_of(first)}")]
    if len({f.share for f in answer.rows}) == 1:
        lines = [(answer.query, _of(first).strip())]
        lines += [(f"  {f.group or f.statistic}", _equals(f)) for f in answer.rows]
    else:
        lines = [(answer.query, "")]
        lines += [(f"  {f.group or f.statistic}", f"{_equals(f)}{_of(f)}") for f in answer.rows]
    return lines + [(f"  {f.statistic} (NOT PRIVATE)", _equals(f)) for f in answer.scored]


def _equals(found: AnswerRow) -> str:
    return f"= {'undefined' if math.isnan(found.value) else f'{found.value:.6g}'}"


def _of(found: AnswerRow) -> str:
    return f"  (of {100 * found.share:.3g}% of the weight)" * (found.share < 1 - 1e-12)


def _draw(answers: Sequence[Answer]) -> Figure:
    """A panel for each histogram, from the release alone."""
    from thesis_cli.base.figures import COLOURS, label, panels

    columns = min(2, len(answers))
    rows = -(-len(answers) // columns)
    figure, grid = panels(rows, columns, squeeze=False)
    for axes, answer in zip(grid.flat, answers, strict=False):
        shares = [f.value for f in answer.rows]
        if answer.edges is None:
            axes.barh([_shown(f.group) for f in answer.rows], shares, color=COLOURS[0])
            axes.invert_yaxis()
            label(axes, "share", _shown(answer.subject), _shown(answer.condition))
        else:
            axes.stairs(shares, answer.edges, fill=True, color=COLOURS[0])
            label(axes, _shown(answer.subject), "share", _shown(answer.condition))
    for axes in grid.flat[len(answers) :]:
        axes.remove()
    return figure


def _shown(text: str) -> str:
    """For a figure: shortened, and a dollar as it is, and not the start of a formula."""
    return textwrap.shorten(text, 50, placeholder="...").replace("$", r"\$")
