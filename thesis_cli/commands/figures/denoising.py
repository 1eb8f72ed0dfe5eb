"""Figures of learning to denoise: the objective and the weights, and images before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.learning.grid_model import GridWeights
    from thesis_cli.learning.shared_model import Weights
    from thesis_cli.learning.values import Pixels

SHOWN = 6
"""Images that are drawn."""


def draw_training(trace: Columns, weights: Weights) -> Figure:
    """The objective by iteration; the field of each pixel and its mean coupling to its neighbours, or
    how evidence grows with the pixels of a patch."""
    from thesis_cli.base.figures import panels
    from thesis_cli.learning.grid_model import GridWeights

    if isinstance(weights, GridWeights):
        figure, (left, middle, right) = panels(1, 3)
        _picture(figure, middle, weights.field, "weight of the noisy pixel")
        _picture(figure, right, _mean_coupling(weights), "mean coupling to neighbours")
    else:
        figure, (left, right) = panels(1, 2)
        across, down = weights.couplings
        title = f"patch; couplings {across:.2g} right, {down:.2g} down"
        _picture(figure, right, weights.slope, title)
    _trace(left, trace)
    return figure


def _trace(axes: Axes, trace: Columns) -> None:
    import numpy as np

    from thesis_cli.base.figures import COLOURS, label

    objective = np.asarray(trace["objective"])
    axes.plot(trace["iteration"], objective, color=COLOURS[0], label="objective")
    if "gap" in trace:
        axes.plot(trace["iteration"], objective - np.asarray(trace["gap"]), color=COLOURS[1], label="lower bound")
        axes.legend()
    axes.locator_params(axis="x", nbins=5)
    label(axes, "iteration", "objective, nats an image")


def _mean_coupling(weights: GridWeights) -> Any:
    import numpy as np

    total, count = np.zeros(weights.shape), np.zeros(weights.shape)
    for couplings, first, second in (
        (weights.right, np.s_[:, :-1], np.s_[:, 1:]),
        (weights.down, np.s_[:-1], np.s_[1:]),
    ):
        for place in (first, second):
            total[place] += couplings
            count[place] += 1
    return total / np.maximum(count, 1)


def _picture(figure: Figure, axes: Axes, values: Any, title: str) -> None:
    """Numbers as colours, with a bar."""
    axes.grid(False)
    image = axes.imshow(values, cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title)


def draw_images(names: Sequence[str], rows: Mapping[str, Pixels]) -> Figure:
    """Images in columns, in each row one version of them; shape (count, h, w) each."""
    from thesis_cli.base.figures import WIDTH, panels

    count = min(SHOWN, len(names))
    *_, last = rows.values()
    low, high = (0, 1) if last.dtype == bool else (last.min(), last.max())
    _, height, width = next(iter(rows.values())).shape
    figure, axes = panels(len(rows), count, min(2.6, WIDTH / count * height / width + 0.2), squeeze=False)
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        for k, place in enumerate(line):
            place.imshow(images[k], cmap="gray", vmin=low, vmax=high, interpolation="nearest")
            place.grid(False)
            place.set_xticks([])
            place.set_yticks([])
        line[0].set_ylabel(title)
    for name, place in zip(names, axes[0], strict=False):
        place.set_title(name[:20])
    return figure
