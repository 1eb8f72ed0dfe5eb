"""The figure of a network's training: how the loss falls, and how good the predictions are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(curve: Columns, metrics: Mapping[str, Any], baselines: Mapping[str, float]) -> Figure:
    """Learning curve and, for networks that predict attributes, calibration and average precision.

    Parameters
    ----------
    curve : columns programs, training and validation, as `trainer.Course` has them.
    metrics : as a learner gives them.
    baselines : losses by name.
    """
    from thesis_cli.base.figures import panels

    if "average_precision" not in metrics:
        figure, axes = panels(1, 1)
        _curve(axes, curve, baselines)
        return figure
    figure, ((left, right), lower) = panels(2, 2)
    grid = lower[0].get_gridspec()
    for axes in lower:
        axes.remove()
    _curve(left, curve, baselines)
    _calibration(right, metrics)
    _precision(figure.add_subplot(grid[1, :]), metrics["average_precision"])
    return figure


def _curve(axes: Axes, curve: Columns, baselines: Mapping[str, float]) -> None:
    from thesis_cli.base.figures import COLOURS, label

    for name, colour in zip(("training", "validation"), COLOURS, strict=False):
        axes.plot(curve["programs"], curve[name], color=colour, marker="o", label=name)
    for (name, loss), style in zip(baselines.items(), ("--", ":"), strict=False):
        axes.axhline(loss, color="grey", linestyle=style, label=name.replace("_", " "))
    axes.legend()
    axes.locator_params(axis="x", nbins=5)
    label(axes, "programs seen", "loss, nats a program", "learning curve")


def _calibration(axes: Axes, metrics: Mapping[str, Any]) -> None:
    from thesis_cli.base.figures import COLOURS, label

    rows = metrics["calibration"]
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--")
    axes.plot([row["predicted"] for row in rows], [row["used"] for row in rows], color=COLOURS[1], marker="o")
    label(axes, "predicted probability", "share that uses the attribute", "calibration")


def _precision(axes: Axes, each: Mapping[str, float | None]) -> None:
    from thesis_cli.base.figures import COLOURS, label

    known = sorted(((value, name) for name, value in each.items() if value is not None), reverse=True)
    axes.bar([name for _, name in known], [value for value, _ in known], color=COLOURS[0])
    axes.tick_params(axis="x", labelrotation=90)
    axes.set_ylim(0, 1)
    label(axes, "", "average precision", "functions and lambdas")
