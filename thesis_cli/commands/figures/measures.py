"""Figures of measured statistics."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.privacy.measure.parts import MeasuredRow

MOST_NAMED = 25
"""Largest number of groups that are named."""


def answers_figure(rows: Sequence[MeasuredRow]) -> Figure:
    """A panel for each query: values, and bars from the low to the high end of their intervals."""
    from thesis_cli.base.figures import panels

    queries: dict[str, list[MeasuredRow]] = {}
    for row in rows:
        queries.setdefault(row.query, []).append(row)
    across = min(2, len(queries))
    figure, grid = panels(-(-len(queries) // across), across, squeeze=False)
    for axes, found in zip(grid.flat, queries.values(), strict=False):
        draw_answers(axes, found)
    for axes in grid.flat[len(queries) :]:
        axes.remove()
    return figure


def draw_answers(axes: Axes, found: Sequence[MeasuredRow]) -> None:
    """The numbers of one query, in axes of the caller."""
    from thesis_cli.base.figures import COLOURS, label

    places = range(len(found))
    axes.vlines(places, [row.low for row in found], [row.high for row in found], color=COLOURS[0])
    axes.plot(places, [row.value for row in found], "o", color=COLOURS[0], markersize=3)
    named = [_shown(row.group) for row in found] if len(found) <= MOST_NAMED else []
    turned = len(named) > 3
    axes.set_xticks(range(len(named)), named, rotation=30 * turned, ha="right" if turned else "center")
    label(axes, "", _shown(found[0].statistic), _shown(found[0].query))


def _shown(text: str) -> str:
    return textwrap.shorten(text, 50, placeholder="...").replace("$", r"\$")
