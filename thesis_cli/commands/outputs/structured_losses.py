"""Text of losses of structured predictors, and the figure of a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from thesis_cli.base.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.structured.predictor import Predictor

TEXTS = {
    "zero_one": "{:.2%} of structures wrong",
    "hamming": "{:.2%} of labels wrong",
    "hierarchy": "hierarchy loss {:.3f}",
    "kendall_tau": "Kendall tau {:.3f}",
}


def losses_text(losses: Mapping[str, float]) -> str:
    """Mean losses by name in one line."""
    return ", ".join(TEXTS[name].format(value) for name, value in losses.items())


def draw_training(trace: Columns, predictor: Predictor) -> Figure:
    """The objective or the norm by iteration, and the parameters as a picture."""
    from thesis_cli.base.figures import label, panels

    figure, (left, right) = panels(1, 2)
    _trace(left, trace)
    largest = max(float(abs(predictor.parameters).max()), 1e-300)
    picture = right.imshow(
        predictor.parameters, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
    )
    right.grid(False)
    right.locator_params(integer=True)
    inputs = [name if len(name) <= 12 else name[:11] + "…" for name in (*predictor.encoding.columns, "constant")]
    if len(inputs) <= 16:
        right.set_yticks(range(len(inputs)), inputs)
    figure.colorbar(picture, ax=right)
    rows = "input" if len(inputs) <= 16 else "input, the constant last"
    label(right, f"feature ({predictor.task.features})", rows, "parameters")
    return figure


def _trace(axes: Axes, trace: Columns) -> None:
    from thesis_cli.base.figures import COLOURS, label

    if "objective" in trace:
        axes.plot(trace["iteration"], trace["objective"], color=COLOURS[0])
        label(axes, "iteration", "objective, nats a row")
    else:
        axes.plot(trace["pass"], trace["norm"], color=COLOURS[0], marker="o")
        label(axes, "pass", "norm of the mean parameters")
    axes.locator_params(axis="x", nbins=5, integer=True)
