"""Figures of private releases, measurements, answers to queries, two-sample tests, ledgers and audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.plots.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.measure.parts import MeasuredRow

MOST = 20
"""Queries that a figure has room for."""


def release(run: Run) -> Figure:
    """A histogram of each column, or bars of its levels."""
    from thesis_cli.commands.figures.releases import columns_figure
    from thesis_cli.commands.inputs.tables import open_release

    return columns_figure(open_release(run.path))


def measured(run: Run) -> Figure:
    """A panel for each query, with its intervals."""
    from thesis_cli.commands.figures.measures import answers_figure

    return answers_figure([row for rows in _queries(run) for row in rows])


def answers(run: Run) -> Figure:
    """A panel for each query: bars of a histogram, values with their intervals of any other."""
    from thesis_cli.base.figures import panels
    from thesis_cli.commands.figures.measures import draw_answers
    from thesis_cli.commands.figures.releases import draw_histogram
    from thesis_cli.privacy.query.query import Answer, AnswerRow

    queries = _queries(run)
    across = min(2, len(queries))
    figure, grid = panels(-(-len(queries) // across), across, squeeze=False)
    for axes, rows in zip(grid.flat, queries, strict=False):
        query = rows[0].query
        if query.startswith("histogram("):
            parts = [AnswerRow(r.query, r.group, r.statistic, r.value, 1.0, low=r.low, high=r.high) for r in rows]
            subject = query.removeprefix("histogram(").removesuffix(")")
            draw_histogram(axes, Answer(query, tuple(parts), subject=subject))
        else:
            draw_answers(axes, rows)
    for axes in grid.flat[len(queries) :]:
        axes.remove()
    return figure


def _queries(run: Run) -> list[list[MeasuredRow]]:
    """The rows of each query.

    Raises
    ------
    InputError : there are more queries than panels.
    """
    from thesis_cli.privacy.measure.parts import MeasuredRow

    texts = zip(*(run.texts(name) for name in ("query", "group", "statistic")), strict=True)
    missing = [math.nan] * len(run.table)
    ends = [run.numbers(name) if run.has(name) else missing for name in ("low", "high")]
    found: dict[str, list[MeasuredRow]] = {}
    for (query, group, statistic), value, low, high in zip(texts, run.numbers("value"), *ends, strict=True):
        found.setdefault(query, []).append(MeasuredRow(query, group, statistic, value, low, high))
    if len(found) > MOST:
        problem = f"has {len(found):,} queries, and up to {MOST} are drawn"
        raise InputError(problem, "give --x and --y, columns of it", source=run.path)
    return list(found.values())


def values(run: Run) -> Figure:
    """A panel for each query of an expression; bars are bounds on the error, where there is one."""
    from thesis_cli.commands.figures.measures import answers_figure
    from thesis_cli.privacy.measure.parts import MeasuredRow

    bounds: Sequence[float] = run.numbers("error_bound") if run.has("error_bound") else [math.nan] * len(run.table)
    rows = [
        MeasuredRow(query, "", query.partition("(")[0], value, value - bound, value + bound)
        for query, value, bound in zip(run.texts("query"), run.numbers("value"), bounds, strict=True)
    ]
    if len(rows) > MOST:
        raise InputError(f"has {len(rows):,} queries, and up to {MOST} are drawn", source=run.path)
    return answers_figure(rows)


def tested(run: Run) -> Figure:
    """The p-value of each two-sample test; the level is the default where no record says it."""
    from thesis_cli.commands.dp_test import PopulationTestRequest
    from thesis_cli.commands.figures.releases import p_values_figure

    recorded = run.settings.get("level")
    level = recorded if isinstance(recorded, float) else PopulationTestRequest.level
    return p_values_figure(run.texts("test"), run.numbers("p_value"), run.numbers("draws"), level)


def ledger(run: Run) -> Figure:
    """Spent epsilon of each table over its releases, as a share of the limit."""
    from thesis_cli.commands.figures.releases import spent_figure

    shares: dict[str, list[float]] = {}
    spent = zip(run.texts("table"), run.numbers("total_epsilon"), run.numbers("limit_epsilon"), strict=True)
    for table, total, limit in spent:
        shares.setdefault(table, []).append(total / limit if limit else math.nan)
    return spent_figure(shares)


def audited(run: Run) -> Figure:
    """Epsilon that each method claims, and what its releases prove that it spends at least."""
    from thesis_cli.base.figures import COLOURS, label, panels

    names = [", ".join(filter(None, pair)) for pair in zip(run.texts("method"), run.texts("entry"), strict=True)]
    figure, axes = panels(1, 1, height=1.2 + 0.3 * len(names))
    rows = range(len(names))
    axes.plot(run.numbers("epsilon"), rows, "D", color="black", label="claimed")
    bounds = (("gdp_epsilon", "proven, Gaussian"), ("clopper_pearson_epsilon", "proven, Clopper-Pearson"))
    for k, (column, name) in enumerate(bounds):
        if run.has(column):
            axes.plot(run.numbers(column), rows, ">", color=COLOURS[k], label=name)
    axes.set_yticks(rows, [name.replace("$", r"\$") for name in names])
    axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, None))
    label(axes, r"$\varepsilon$", "", "what the noise claims, and lower bounds that releases prove")
    figure.legend(loc="outside right upper")
    return figure
