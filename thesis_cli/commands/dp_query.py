"""`thesis-cli dp-query`: estimate population statistics from a private release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import finite
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.tables import (
    ReleaseSource,
    TableSource,
    check_delimiter,
    delimiter_option,
    open_release,
    read_rows,
    release_argument,
    table_label,
)
from thesis_cli.privacy.release.methods import methods_where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.mechanisms.stages import Counted
    from thesis_cli.privacy.query.query import Answer, AnswerRow
    from thesis_cli.privacy.query.weighted_sample import WeightedSample
    from thesis_cli.privacy.release.record import PrivacyGuarantee, Release

SIMULATED = methods_where(lambda row: row.replicates is not None)
"""Methods whose releases can be simulated (`privacy.replicates`)."""
NO_FILE = "the scores are printed, and no file holds them"


@dataclass(frozen=True, kw_only=True)
class QueryRequest(Request):
    """Answer questions about a population from a private release.

    All answers are estimates, and cost no privacy.
    """

    usual = ("define", "holdout", "replicates")

    release: ReleaseSource = release_argument()
    queries: tuple[str, ...] = argument("Statistics, such as mean(age).", metavar="QUERY")
    define: tuple[str, ...] | None = option(
        None, "Definition of another column, 'name = expression'.", metavar="DEFINITION"
    )
    holdout: TableSource | None = option(
        None,
        "Table of real rows, clamped to the schema, on which regressions and classifications are scored. The scores"
        " are NOT private: they are printed for those who may see the table, and written to no file.",
        metavar="TABLE",
        names="file",
        objects=True,
        recorded=False,
        not_swept=NO_FILE,
    )
    holdout_query: str | None = option(
        None, "SELECT that gives the holdout, if it is a database.", recorded=False, not_swept=NO_FILE
    )
    delimiter: str | None = delimiter_option(recorded=False, not_swept=NO_FILE)

    replicates: int | None = option(
        None,
        "Simulated releases from which standard errors are computed; 0 leaves them out.",
        least=0,
        most=1000,
        default_text="30 for a release by copula, 0 for others",
    )

    def check(self) -> None:
        if not self.queries:
            raise InputError("no query is given", "add one, such as mean(age)")
        if self.holdout_query and self.holdout is None:
            raise InputError("--holdout-query is given without --holdout", "give the URL of a database there")
        check_delimiter(self.delimiter, self.holdout)


@dataclass(frozen=True, kw_only=True, repr=False)
class QueryResult(Result):
    """Answers to queries; the table has a row for each number.

    Attributes
    ----------
    answers : one for each query.
    promise : budget, neighbouring tables and number of private rows of the release.
    counted : number of private rows, with noise if it is secret.
    rows : number of released rows.
    weights : a note on the weights; None if they are probabilities.
    method, replicates : method of the release, and number of simulated ones behind the intervals.
    """

    answers: Sequence[Answer]
    promise: PrivacyGuarantee
    counted: Counted
    rows: int
    weights: str | None
    method: str
    replicates: int

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The answers, and what they are estimated from; scores on a holdout are marked as not
        private.
        """
        lines = [line for answer in self.answers for line in _lines(answer)]
        if self.weights:
            lines.append(("weights", self.weights))
        promise, counted = self.promise, self.counted
        about = f"N = {counted.rows:,.0f}" + f" +- {counted.deviation:,.0f}" * (promise.rows is None)
        source = (
            f"from {self.rows:,} released rows, for {about} private ones: "
            f"epsilon = {promise.epsilon:.6g}, delta = {promise.delta:.6g} ({promise.neighbours})"
        )
        return [*lines, ("estimates", source), ("intervals", self._intervals())]

    @presentation
    def _intervals(self) -> str:
        if self.replicates:
            return f"95 %, from {self.replicates} simulated releases"
        if self.method in SIMULATED:
            return "none; --replicates 10 computes them"
        return f"none; a release by {self.method} cannot be simulated"

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The answers, without scores on a holdout: those are written to no file."""
        from thesis_cli.privacy.release.record import written

        found = finite(_dicts(row for answer in self.answers for row in answer.rows))
        return {
            "promise": written(self.promise),
            "private": written(self.counted),
            "weights": self.weights,
            "answers": found,
        }

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """Settings and facts, and the scores on a holdout."""
        found = super().to_dict()
        holdout = getattr(self.request, "holdout", None)
        if holdout is not None:
            scores = _dicts(row for answer in self.answers for row in answer.scored)
            found["holdout"] = {"table": table_label(holdout), "not_private": finite(scores)}
        return found

    @presentation
    def draw(self) -> Figure:
        """A panel for each histogram.

        Raises
        ------
        InputError : no query is a histogram.
        """
        from thesis_cli.commands.figures.releases import histograms_figure

        drawn = [answer for answer in self.answers if answer.subject]
        if not drawn:
            raise InputError("no query gives a figure", "add histogram(x)")
        return histograms_figure(drawn)


def run(request: QueryRequest, progress: Progress) -> QueryResult:
    """Answer the queries from the released rows and their weights."""
    from thesis_cli.privacy.query.query import ask
    from thesis_cli.privacy.query.replicates import default_count
    from thesis_cli.privacy.query.weighted_sample import WeightedSample

    release = open_release(request.release)
    promise = release.record.promise
    sample, judge = WeightedSample.of_release(release), None
    if request.holdout is not None:
        rows = read_rows(request.holdout, sample.schema, request.holdout_query, delimiter=request.delimiter)
        judge = WeightedSample.of_rows(sample.schema, rows)
    for text in request.define or ():
        sample, judge = sample.define(text), judge and judge.define(text)
    answers = [ask(sample, text, release.record.count.rows, judge) for text in request.queries]
    count = default_count(release.record) if request.replicates is None else request.replicates
    if count:
        answers = _with_errors(request, release, answers, count, progress)
    if judge and not any(answer.scored for answer in answers):
        raise InputError("--holdout has no model to score", "add a query regress(...) or classify(...)")
    return QueryResult(
        columns=Columns(_dicts(row for answer in answers for row in answer.rows)),
        request=request,
        settings=settings_of(request, replicates=count),
        answers=answers,
        promise=promise,
        counted=release.record.count,
        rows=len(sample.weights),
        weights=None if sample.is_distribution() else _about_weights(sample),
        method=release.record.method,
        replicates=count,
    )


def _dicts(rows: Iterable[AnswerRow]) -> list[dict[str, Any]]:
    """Rows for a table, without a date or an error if no row has one."""
    found = [asdict(row) for row in rows]
    unused = [] if any(row["date"] for row in found) else ["date"]
    if all(math.isnan(row["error"]) for row in found):
        unused += ["error", "low", "high", "guess"]
    return [{key: value for key, value in row.items() if key not in unused} for row in found]


def _with_errors(
    request: QueryRequest, release: Release, answers: Sequence[Answer], count: int, progress: Progress
) -> list[Answer]:
    """The answers with errors, from simulated releases."""
    from thesis_cli.privacy.query.query import ask
    from thesis_cli.privacy.query.replicates import limits_of, replicates, with_errors
    from thesis_cli.privacy.query.weighted_sample import WeightedSample

    simulations: list[list[Answer]] = []
    with progress(count + 1, "simulated releases") as tick:
        for simulated in replicates(release, count, jobs_or_all(None)):
            sample = WeightedSample.of_release(simulated)
            for text in request.define or ():
                sample = sample.define(text)
            simulations.append([])
            for text in request.queries:
                with suppress(InputError):  # no simulated row may be left of a small group
                    simulations[-1].append(ask(sample, text, simulated.record.count.rows))
            tick(1)
    return with_errors(answers, simulations, limits_of(release.schema, release.record.promise.rows or math.inf))


@presentation
def _about_weights(sample: WeightedSample) -> str:
    negative, total = int((sample.weights < 0).sum()), float(sample.weights.sum())
    return (
        f"{negative:,} of {sample.weights.size:,} are negative, the sum is {total:.6g}; mean, prob and count use them"
        " as they are, all else replaces negative ones by 0 and scales the others to sum 1"
    )


@presentation
def _lines(answer: Answer) -> list[tuple[str, str]]:
    """One line for a single number; otherwise one for the query, and one for each of its numbers."""
    first = answer.rows[0]
    if len(answer.rows) == 1 and not first.group:
        return [(answer.query, f"{_value(first)}{_share(first)}")]
    if len({row.share for row in answer.rows}) == 1:
        lines = [(answer.query, _share(first).strip())]
        lines += [(f"  {row.group or row.statistic}", _value(row)) for row in answer.rows]
    else:
        lines = [(answer.query, "")]
        lines += [(f"  {row.group or row.statistic}", f"{_value(row)}{_share(row)}") for row in answer.rows]
    return lines + [(f"  {row.statistic} (NOT PRIVATE)", _value(row)) for row in answer.scored]


@presentation
def _value(row: AnswerRow) -> str:
    if math.isnan(row.value):
        return "= undefined"
    low, high = (_end(row, end) for end in (row.low, row.high))
    interval = "" if math.isnan(row.error) else f"  ({low} to {high})"
    return f"= {row.date or format(row.value, '.6g')}{interval}{'  no better than guessing' * row.guess}"


@presentation
def _end(row: AnswerRow, end: float) -> str:
    """An end of an interval, as a date if the value is one."""
    from thesis_cli.privacy.tables.dates import text_of_day

    kind = "datetime" if "T" in row.date else "date"
    return (text_of_day(end, kind) if row.date else "") or f"{end:.4g}"


@presentation
def _share(row: AnswerRow) -> str:
    return f"  (of {100 * row.share:.3g}% of the weight)" * (row.share < 1 - 1e-12)


COMMAND = Command(
    QueryRequest,
    run,
    examples=(
        "dp-query data/releases/people.csv 'mean(income)' 'prob(age > 65 and region == \"south\")'",
        "dp-query data/releases/people.csv 'median(income, by=region)' 'histogram(age)' --replicates 0 --figure h.png",
        "dp-query data/releases/people.csv --define 'l = log(income)' 'regress(l, age, education)' --replicates 10",
    ),
    notes=(
        "Statistics: mean(x), var(x), sd(x), median(x), quantile(x, q), corr(x, y), prob(condition),"
        " count(condition), histogram(x, bins=10), regress(y, x1, x2, ...),"
        " classify(condition, x1, x2, ..., ridge=1e-4). Each takes where=condition, and those that are one number"
        " take by=column. A release has no extremes, so there is no min and no max.",
        "Expressions: numbers, names of columns (in backquotes unless they are identifiers), + - * / // % **,"
        ' comparisons, and, or, not, in ("a", "b"), abs, exp, log, sqrt, min, max (of two or more),'
        " clamp(x, low, high), True, False,"
        " missing(column).",
    ),
)
