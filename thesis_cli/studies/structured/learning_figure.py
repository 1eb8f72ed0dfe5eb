"""Figure of the experiment on learning structured predictors, and the numbers of its table that claims
read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from thesis_cli.base.arrays import Floats
from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.studies.structured.learning_runs import EXACT, NORMALISED, ONLINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {
    "linear": ("o", 0),
    "pairs": ("s", 1),
    "positions": ("o", 2),
    "ranks": ("^", 3),
    "orders": ("s", 4),
    "nodes": ("D", 5),
    "one-vs-rest": ("o", None),
    "label powerset": ("s", None),
    "pairwise comparison": ("^", None),
    "regression of ranks": ("v", None),
    NORMALISED: ("x", None),
}
"""Marker and colour of each method; baselines are open and black."""

LABELS = {NORMALISED: r"$R = 1$, $\lambda = \ln |Y|$"}


def draw(frame: pd.DataFrame, names: Sequence[str]) -> Figure:
    """Wrong structures by data set and method; norms beside their bounds; sampled gradients."""
    figure, ((left, right), lower) = panels(2, 2, height=3.0)
    grid = lower[0].get_gridspec()
    for axes in (left, right):
        axes.remove()
    _losses(figure.add_subplot(grid[0, :]), frame, names)
    _norms(lower[0], frame)
    _traces(lower[1], frame)
    return figure


def _losses(axes: Axes, frame: pd.DataFrame, names: Sequence[str]) -> None:
    shown = set[str]()
    for at, data in enumerate(names):
        present = [m for m in MARKERS if m in set(frame[(frame.kind == "loss") & (frame.data == data)].method)]
        for place, method in enumerate(present):
            values = by_fold(frame, data, method, "map", "zero_one")
            if values is None:
                continue
            error = 2 * values.std(ddof=1) / len(values) ** 0.5
            marker, colour = MARKERS[method]
            style: dict[str, Any] = {"color": "black", "markerfacecolor": "none"}
            if colour is not None:
                style = {"color": COLOURS[colour]}
            x = at + 0.8 * ((place + 0.5) / len(present) - 0.5)
            name = None if method in shown else LABELS.get(method, method)
            shown.add(method)
            axes.errorbar(x, values.mean(), yerr=error, fmt=marker, markersize=4, label=name, **style)
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
    axes.set_ylim(0, 1.02)
    axes.grid(False, axis="x")
    for at in range(1, len(names)):
        axes.axvline(at - 0.5, color="grey", linewidth=0.5, alpha=0.5)
    axes.legend(ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    label(axes, "(a) test observations by data set", "share of wrong structures")


def _norms(axes: Axes, frame: pd.DataFrame) -> None:
    rows = frame[(frame.kind == "fit") & (frame.method != NORMALISED)]
    for column, colour, name in (
        ("bound_c1", COLOURS[0], r"$\sqrt{\ln |Y| / \lambda}$ (C.1)"),
        ("bound_gradient", COLOURS[1], r"$R / \lambda$"),
    ):
        ratios = (rows[column] / rows.norm).groupby(rows.regularisation)
        weights = np.unique(rows.regularisation)
        middle = ratios.median()[weights]
        axes.plot(weights, middle, "o-", color=colour, label=name)
        axes.fill_between(weights, ratios.min()[weights], ratios.max()[weights], color=colour, alpha=0.2, linewidth=0)
    axes.axhline(1, color="grey", linestyle="--")
    axes.set(xscale="log", yscale="log")
    axes.legend()
    label(axes, r"regularisation $\lambda$", r"bound / $\|\hat\theta\|$", "(b) norm of the parameters")


def _traces(axes: Axes, frame: pd.DataFrame) -> None:
    from matplotlib.lines import Line2D

    rows = frame[(frame.kind == "trace") & (frame.left > 0)]
    styles: dict[str, Any] = {EXACT: "--", ONLINE[1]: "-", ONLINE[10]: ":"}
    keys = [Line2D([], [], color="black", linestyle=style, label=method) for method, style in styles.items()]
    for colour, (data, part) in zip(COLOURS, rows.groupby("data", sort=False), strict=False):
        keys.append(Line2D([], [], color=colour, label=str(data)))
        for method, style in styles.items():
            means = part[part.method == method].groupby("passes").left.mean()
            axes.plot(means.index, means, style, color=colour)
    axes.set(xscale="log", yscale="log")
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick <= rows.passes.max()]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=1e-5)
    axes.legend(handles=keys, loc="lower left")
    label(axes, "passes over the observations", "objective's way left", "(c) exact and sampled gradients")


LOSSES = {"multilabel": "zero_one", "ranking": "kendall_tau", "hierarchy": "hierarchy"}
"""The loss by which the regularisation is chosen, for each task."""


def chosen(frame: pd.DataFrame, data: str, method: str, decision: str = "map") -> float | None:
    """The regularisation of least mean validation loss; None if there is no such row."""
    rows = _of(frame, data, method, decision)
    if rows.empty:
        return None
    loss = LOSSES[rows.task.iloc[0]]
    means = rows[rows.loss == loss].groupby("regularisation").validation.mean()
    values, sign = means.to_numpy(float), 1 if loss == "kendall_tau" else -1
    return float(means.index.to_numpy(float)[(sign * values).argmax()])


def by_fold(
    frame: pd.DataFrame, data: str, method: str, decision: str = "map", loss: str | None = None
) -> Floats | None:
    """Test losses of the folds with the chosen regularisation; None if there are no such rows.

    Parameters
    ----------
    loss : name of the loss; that of `LOSSES` by default.
    """
    weight = chosen(frame, data, method, decision)
    if weight is None:
        return None
    rows = _of(frame, data, method, decision)
    rows = rows[(rows.loss == (loss or LOSSES[rows.task.iloc[0]])) & (rows.regularisation == weight)]
    return np.asarray(rows.sort_values("fold").test, float)


def passes_until(frame: pd.DataFrame, method: str, share: float) -> dict[str, list[float]]:
    """Passes until at most a share of the way is left: by data set, a number for each draw; inf if never."""
    rows = frame[(frame.kind == "trace") & (frame.method == method)]

    def passes(part: pd.DataFrame) -> float:
        near = part[part.left <= share]
        return float(near.passes.min()) if len(near) else math.inf

    return {
        str(data): [passes(draw) for _, draw in part.groupby("draw", dropna=False)]
        for data, part in rows.groupby("data")
    }


def standard_error(values: Floats | list[float]) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _of(frame: pd.DataFrame, data: str, method: str, decision: str) -> pd.DataFrame:
    return frame[
        (frame.kind == "loss") & (frame.data == data) & (frame.method == method) & (frame.decision == decision)
    ]
