"""Figures of a private release, drawn from its rows alone; of tests against it, and of budgets spent."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats
    from thesis_cli.privacy.query.query import Answer
    from thesis_cli.privacy.release.record import Release
    from thesis_cli.privacy.tables.column import Column
    from thesis_cli.privacy.tables.schema import Values


ACROSS, BINS, LEVELS = 3, 30, 20
"""Columns of panels, bins of a histogram, and levels of a category that are named."""


def columns_figure(release: Release) -> Figure:
    """A histogram of each column over its public bounds, or bars of its levels; negative weights
    count as 0.
    """
    from thesis_cli.base.figures import panels

    weights = release.weights.clip(0)
    columns = release.schema.columns
    across = min(ACROSS, len(columns))
    down = math.ceil(len(columns) / across)
    figure, axes = panels(down, across, 2.2, squeeze=False)
    for ax, column in zip(axes.flat, columns, strict=False):
        _draw_column(ax, column, release.columns[column.name], weights / weights.sum())
    for ax in axes.flat[len(columns) :]:
        ax.remove()
    promise = release.record.promise
    figure.suptitle(rf"synthetic rows, $\varepsilon$ = {promise.epsilon:g}, $\delta$ = {promise.delta:g}")
    return figure


def _draw_column(ax: Axes, column: Column, values: Values, weights: Floats) -> None:
    import numpy as np

    from thesis_cli.base.figures import COLOURS, label

    missing = np.array([x is None or x != x for x in values.tolist()])
    share = float(weights[missing].sum())
    present, weights = values[~missing], weights[~missing]
    if not column.levels:
        sample = column.value_of(column.numbers(present))
        ax.hist(sample.data, bins=column.edges(BINS).tolist(), weights=weights, color=COLOURS[0])
        if sample.date:
            _show_dates(ax)
        elif column.log:
            ax.set_xscale("log")
    else:
        names = column.levels
        shares = [float(weights[present.astype(str) == name].sum()) for name in names]
        ax.bar(range(len(names)), shares, color=COLOURS[0])
        if len(names) <= LEVELS:
            turned = len(names) > 3
            ax.set_xticks(range(len(names)), names, rotation=30 * turned, ha="right" if turned else "center")
    atoms = [(f"{atom}: ", "", float(weights[present == atom].sum())) for atom in column.atoms]
    notes = ", ".join(f"{name}{part:.0%}{what}" for name, what, part in (*atoms, ("", " missing", share)) if part)
    label(ax, column.name + f" ({notes})" * bool(notes), "share of rows")


def _show_dates(ax: Axes) -> None:
    """Dates as the labels of days since the start of 1970."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def histograms_figure(answers: Sequence[Answer]) -> Figure:
    """A panel for each histogram that was asked for, with 95 % intervals if they are known."""
    from thesis_cli.base.figures import panels

    columns = min(2, len(answers))
    rows = -(-len(answers) // columns)
    figure, grid = panels(rows, columns, squeeze=False)
    for axes, answer in zip(grid.flat, answers, strict=False):
        draw_histogram(axes, answer)
    for axes in grid.flat[len(answers) :]:
        axes.remove()
    return figure


def draw_histogram(axes: Axes, answer: Answer) -> None:
    """One histogram, in axes of the caller: bars of its groups if it has no edges."""
    from thesis_cli.base.figures import COLOURS, label

    shares = [row.value for row in answer.rows]
    low, high = [row.low for row in answer.rows], [row.high for row in answer.rows]
    if answer.edges is None:
        axes.barh([_shown(row.group) for row in answer.rows], shares, color=COLOURS[0])
        axes.hlines(range(len(shares)), low, high, color="black", linewidth=1)
        axes.invert_yaxis()
        label(axes, "share", _shown(answer.subject), _shown(answer.condition))
    else:
        axes.stairs(shares, answer.edges, fill=True, color=COLOURS[0])
        axes.vlines((answer.edges[:-1] + answer.edges[1:]) / 2, low, high, color="black", linewidth=1)
        if answer.dates:
            _show_dates(axes)
        label(axes, _shown(answer.subject), "share", _shown(answer.condition))


def _shown(text: str) -> str:
    """A shortened text in which a dollar is a dollar and starts no formula."""
    return textwrap.shorten(text, 50, placeholder="...").replace("$", r"\$")


def p_values_figure(tests: Sequence[str], p_values: Sequence[float], draws: Sequence[float], level: float) -> Figure:
    """The p-value of each test; one that its draws cannot resolve is an arrow.

    Parameters
    ----------
    tests : names; the first one gives the verdict.
    draws : draws under the null hypothesis, which resolve a p-value of 1 / (1 + draws).
    level : line left of which a test finds a difference.
    """
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 1, height=1.2 + 0.3 * len(tests))
    for row, (p, count) in enumerate(zip(p_values, draws, strict=True)):
        least = 1 / (1 + count)
        axes.plot([least, 1], [row, row], color="0.8", label="resolved by the draws" if not row else None)
        axes.plot([p], [row], "<" if p <= least else "o", color=COLOURS[min(row, 1)], markersize=6)
    axes.axvline(level, color="black", linestyle="--", label=f"level {level:g}")
    axes.set(xscale="log", xlim=(None, 1.5))
    axes.set_yticks(range(len(tests)), tests)
    axes.set_ylim(len(tests) - 0.5, -0.5)
    verdict = "the populations differ" if p_values[0] <= level else "no difference found"
    label(axes, "p-value", "", f"{verdict}, by {tests[0]}")
    figure.legend(loc="outside right upper")
    return figure


def spent_figure(shares: Mapping[str, Sequence[float]]) -> Figure:
    """Spent epsilon of each table after each of its releases, as a share of the limit.

    Parameters
    ----------
    shares : after 1, 2, ... releases, by the name of the table.
    """
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, grid = panels(1, 1, squeeze=False)
    axes = grid[0, 0]
    for place, (table, spent) in enumerate(shares.items()):
        name, steps = table.replace("$", r"\$"), [0.0, *spent]
        axes.step(range(len(steps)), steps, where="post", label=name, color=COLOURS[place % len(COLOURS)])
    axes.axhline(1, color="black", linestyle="--", label="limit")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    label(axes, "releases of the table", r"share of the limit of $\varepsilon$")
    return figure
