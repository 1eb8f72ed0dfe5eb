"""The figure of the experiment `kernel-semantics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.embeddings.kernels import KERNELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Style = tuple[str, str, str | None]
"""Format, colour and name of a line."""

SAMPLES, REDUCTIONS, RANDOM = "samples", "reductions", "random reductions"
CONDITIONS, EQUAL, CHOSEN, SUM = "conditioning", "equal", "chosen", "X + Y"
"""Parts of the table, and cells of its columns."""


def plot(frame: pd.DataFrame) -> Figure:
    """Six panels: both theorems, reductions, their cost, bounds and conditioning."""
    figure, axes = panels(2, 3, height=2.7)
    _theorem_1(axes[0, 0], frame)
    _theorem_2(axes[0, 1], frame)
    _sizes(axes[0, 2], frame)
    _costs(axes[1, 0], frame)
    _bounds(axes[1, 1], frame)
    _conditioning(axes[1, 2], frame)
    for ax in axes.flat:
        ax.set(xscale="log", yscale="log")
    for ax, place in ((axes[0, 0], "lower left"), (axes[0, 1], "lower right"), (axes[0, 2], "lower left")):
        ax.legend(loc=place, fontsize=5.5)
    for ax in axes[1, 1:]:
        ax.legend(fontsize=5.5)
    for ax, part in ((axes[0, 0], SAMPLES), (axes[0, 2], RANDOM), (axes[1, 0], RANDOM), (axes[1, 2], RANDOM)):
        _ticks(ax.xaxis, sorted(frame[frame.part == part]["size"].unique()))
    _ticks(axes[0, 1].xaxis, (0.1, 0.2, 0.5, 1))
    for ax in axes[0, :2]:
        _ticks(ax.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    for ax, ends in zip(axes[0], ((0.006, 0.2), (0.006, 0.6), (1e-6, 0.5)), strict=True):
        ax.set_ylim(*ends)
    return figure


def _ticks(axis: Axis, places: Sequence[float]) -> None:
    axis.set_ticks(places, [f"{place:g}" for place in places])
    axis.set_ticks([], minor=True)


def _guide(ax: Axes, x: pd.Series, y: float, power: float) -> None:
    ends = np.array([x.min(), x.max()], float)
    ax.plot(ends, y * (ends / ends[0]) ** power, ":", color="black", label=f"slope {power:g}")


def _lines(ax: Axes, rows: Iterable[tuple[object, pd.DataFrame]], x: str, styles: Sequence[Style]) -> None:
    """Mean errors with two standard errors, a line for each style, which is a format, colour and name."""
    for (fmt, colour, name), (_, line) in zip(styles, rows, strict=False):
        ax.errorbar(line[x], line.error, 2 * line.standard_error, fmt=fmt, color=colour, label=name)


def _theorem_1(ax: Axes, frame: pd.DataFrame) -> None:
    part = frame[(frame.part == SAMPLES) & (frame.method == EQUAL)]
    for kernel, fmt in zip(KERNELS, ("o-", "s--"), strict=True):
        rows = part[part.kernel == kernel]
        names = [name if kernel == "gaussian" else None for name in rows.subject.unique()]
        styles = [(fmt, colour, name) for colour, name in zip(COLOURS, names, strict=False)]
        _lines(ax, rows.groupby("subject", sort=False), "size", styles)
    _guide(ax, part["size"], 0.5 * part.error.max(), -0.5)
    label(ax, "samples $m$ of each variable", "mean RKHS error", "(a) Theorem 1")


def _theorem_2(ax: Axes, frame: pd.DataFrame) -> None:
    part = frame[(frame.part == SAMPLES) & (frame.subject == SUM) & (frame.kernel == "gaussian")]
    names = ["chosen by the samples" if weights == CHOSEN else weights for weights in part.method.unique()]
    styles = [("o-", colour, name) for colour, name in zip(COLOURS, names, strict=False)]
    _lines(ax, part.groupby("method", sort=False), "rate", styles)
    _guide(ax, part.rate, 0.4 * part.rate.min(), 1)
    rate = r"$\sqrt{\sum_i \alpha_i^2} + \sqrt{\sum_j \beta_j^2}$"
    label(ax, rate, "mean RKHS error", "(b) Theorem 2, $X + Y$")


def reduced(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of expressions that take reductions, at every size."""
    part = frame[frame.part == REDUCTIONS]
    return part[part.reductions > 0]


def _sizes(ax: Axes, frame: pd.DataFrame) -> None:
    for colour, (method, rows) in zip(COLOURS, reduced(frame).groupby("method", sort=False), strict=False):
        mean = rows.groupby("size").error.apply(lambda x: np.exp(np.log(x).mean()))
        ax.plot(mean.index, mean, "o-", color=colour, label=method)
    rows = frame[frame.part == RANDOM]
    ax.errorbar(
        rows["size"],
        rows.error,
        2 * rows.standard_error,
        fmt="s--",
        color=COLOURS[6],
        label="random draws too, deep sum",
    )
    label(ax, "size of the expansions", "RKHS error, geometric mean", "(c) reductions")


def ratios(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Errors over those of Monte Carlo with as many evaluations, and in as many seconds."""
    values = rows.error / rows.monte_carlo
    return values, values * np.sqrt(rows.seconds / rows.monte_carlo_seconds)


def _costs(ax: Axes, frame: pd.DataFrame) -> None:
    for colour, (method, rows) in zip(COLOURS, reduced(frame).groupby("method", sort=False), strict=False):
        for style, ratio, name in zip(("o-", "x:"), ratios(rows), (method, None), strict=True):
            mean = np.exp(np.log(ratio).groupby(rows["size"]).mean())
            ax.plot(mean.index, mean, style, color=colour, label=name)
    ax.axhline(1, color="black", linewidth=0.8)
    label(ax, "size of the expansions", "error over that of Monte Carlo", "(d) same work, dotted: time")


def _bounds(ax: Axes, frame: pd.DataFrame) -> None:
    part = frame[frame.part == REDUCTIONS]
    ax.plot(part.error, part.bound, "o", fillstyle="none", color=COLOURS[0], label="RKHS distance")
    width = part.distance / part.distance_bound
    shown = width.notna()
    ax.plot(part.distance[shown], part.distance_bound[shown], "x", color=COLOURS[1], label="$W_1$")
    ends = np.array([part.error.min(), max(1.0, part.distance[shown].max())])
    ax.plot(ends, ends, color="black", linewidth=0.8)
    label(ax, "distance from the exact law", "bound of the program", "(e) bounds")


def _conditioning(ax: Axes, frame: pd.DataFrame) -> None:
    part = frame[frame.part == CONDITIONS]
    for colour, (name, rows) in zip(COLOURS, part.groupby("subject", sort=False), strict=False):
        ax.plot(rows["size"], rows.error, "o-", color=colour, label=name)
    label(ax, "size of the expansions", "RKHS error", "(f) conditioning")
