"""The figure of `search-space`: sizes of the space, and times to solve random tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.figures import label, panels
from thesis_cli.studies.synthesis.published_speedups import GOALS, PUBLISHED, published
from thesis_cli.studies.synthesis.timing import time_limits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Styles = Mapping[str, tuple[str, str]]
"""Colour and line style of each solver."""

MARKS = "osD^vP"
SIZES = {3: 2e6, 5: 1e10}
"""Programs by length, as section 5.5.1 has them."""


def draw(frame: pd.DataFrame, styles: Styles) -> Figure:
    """Sizes of the space, medians by length, and a panel for the random tasks of each length, from
    the rows of `search-space`."""
    solved = frame[frame.part == "solve"]
    figure, axes = panels((solved.length.nunique() + 3) // 2, 2, height=2.3, squeeze=False)
    first, medians, *others = axes.flat
    _sizes(first, frame[frame.method == "counted"])
    _medians(medians, solved, styles)
    for ax, length in zip(others, sorted(set(solved.length)), strict=False):
        _shares(ax, length, solved[solved.length == length], styles)
    for ax in others[solved.length.nunique() :]:
        ax.set_axis_off()
    shown: dict[Any, Any] = {}
    for ax in (medians, *others):
        shown |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncol=4)
    return figure


def _sizes(ax: Axes, sizes: pd.DataFrame) -> None:
    for place, (inputs, rows) in enumerate(sizes.groupby("inputs", sort=False)):
        grey = str(0.7 - 0.13 * place)
        ax.semilogy(rows.length, rows.programs, marker=MARKS[place], color=grey, label=inputs, markersize=3.5)
    ax.semilogy(list(SIZES), list(SIZES.values()), "rx", markersize=6, label="the thesis")
    ax.set_xticks(sorted(set(sizes.length)))
    label(ax, "length $T$", "programs", "size of the space, by types of inputs")
    ax.set_ylim(10, 1e18)
    ax.legend(loc="upper left", handlelength=1.2, ncol=2, columnspacing=1)


def _medians(ax: Axes, solved: pd.DataFrame, styles: Styles) -> None:
    """Seconds by which half of the tasks are solved, by length."""
    for method, rows in solved.groupby("method", sort=False):
        colour, line = styles[str(method)]
        points = []
        for length in sorted(set(rows.length)):
            of = rows[rows.length == length]
            (half,) = time_limits(of.found.fillna(np.inf).tolist(), [0.5])
            points.append((length, half))
            if not np.isfinite(half):
                ax.plot(length, of.seconds.max(), "^", color=colour, mfc="none", markersize=5)
        x, y = np.array(points, dtype=float).T
        ax.plot(x, np.where(np.isfinite(y), y, np.nan), "o", color=colour, linestyle=line, markersize=3)
    ax.plot(list(GOALS), [seconds for seconds, _ in GOALS.values()], "k+", markersize=7, label="goal")
    ax.set_yscale("log")
    ax.set_xticks(sorted(set(solved.length)))
    label(ax, "length $T$", "processor seconds", "half of the tasks are solved")


def _shares(ax: Axes, length: int, rows: pd.DataFrame, styles: Styles) -> None:
    none = []
    for method, of in rows.groupby("method", sort=False):
        colour, line = styles[str(method)]
        seconds = np.sort(of.found[of.answer.notna()])
        if not len(seconds):
            none.append(f"{method}: 0 of {len(of)}")
            continue
        share = np.arange(len(seconds) + 1) / len(of)
        ax.step(np.append(seconds, of.seconds.max()), share, where="pre", color=colour, linestyle=line, label=method)
    if none:
        ax.text(0.98, 0.04, "\n".join(none), transform=ax.transAxes, ha="right", fontsize=7)
    if length == 3:
        _published(ax, styles)
    if length in GOALS:
        ax.plot([GOALS[length][0], 10], [0.5, GOALS[length][1]], "k+", markersize=7)
    ax.set(xscale="log", ylim=(0, 1.02))
    label(ax, "processor seconds", "share of tasks solved", f"random tasks of $T = {length}$")


def _published(ax: Axes, styles: Styles) -> None:
    for method in PUBLISHED:
        colour = styles[method][0]
        for name, guided, points in published(method):
            fill = colour if guided else "none"
            ax.plot(*zip(*points, strict=True), "^", color=colour, mfc=fill, ms=4, label=name)
