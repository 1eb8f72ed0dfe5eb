"""Figures of predicted attributes: rows of numbers, and confusion matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.figures import panels
from thesis_cli.studies.synthesis.confusion import FEW, Confusion, serial_order
from thesis_cli.synthesis.language.dsl import ATTRIBUTES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats

COLOURS = "Blues"
DARKEST = 0.99
"""Share of the cells below the darkest shade."""

TOLD = 0.2
"""Least number that is written into its cell."""

LANDSCAPE = 9.7
"""Inches: the width of the text on an A4 page that lies on its side."""


def short(probability: float) -> str:
    """Two digits without the leading 0; empty for what is not defined."""
    if not np.isfinite(probability):
        return ""
    text = f"{probability:.2f}"
    return text.removeprefix("0") if text != "1.00" else "1."


def numbers(axes: Axes, matrix: Floats, most: float, size: float) -> None:
    """A matrix as shaded cells with their numbers.

    Parameters
    ----------
    most : the number that has the darkest shade.
    """
    axes.imshow(np.nan_to_num(matrix), cmap=COLOURS, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for (i, j), probability in np.ndenumerate(matrix):
        colour = "white" if probability > 0.6 * most else "black"
        axes.text(
            j, i, short(float(probability)), ha="center", va="center", fontsize=size, color=colour, in_layout=False
        )
    for side in axes.spines.values():
        side.set_visible(False)


def attributes_on_top(axes: Axes, size: float = 7) -> None:
    """The 34 attributes as names of columns."""
    axes.set_xticks(range(len(ATTRIBUTES)), ATTRIBUTES, rotation=90, fontsize=size)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)


def square(axes: Axes, i: int, j: int) -> None:
    """A square around a cell."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor="#D55E00", linewidth=1.1))


def confusion_figure(cells: pd.DataFrame) -> Figure:
    """A conditional confusion matrix, its rows and columns in an order that shows blocks; cells of fewer
    than `FEW` programs have a dot.

    Parameters
    ----------
    cells : `row`, `column`, `value` and `count` of each cell but those on the diagonal.
    """
    figure, axes = panels(1, 1)
    figure.set_size_inches(LANDSCAPE, 7.4)
    matrix, counts = (
        cells.pivot(index="row", columns="column", values=name).reindex(ATTRIBUTES, columns=ATTRIBUTES).to_numpy(float)
        for name in ("value", "count")
    )
    counts = np.nan_to_num(counts).astype(np.int64)
    order = serial_order(Confusion(matrix, counts))
    matrix, counts = matrix[np.ix_(order, order)], counts[np.ix_(order, order)]
    most = float(np.nanquantile(matrix, DARKEST))
    image = axes.imshow(matrix, cmap=COLOURS, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, location="right", extend="max", shrink=0.5, aspect=30)
    bar.set_label("mean probability of a false positive")
    axes.grid(visible=False)
    for (i, j), count in np.ndenumerate(counts):
        if 0 < count < FEW:
            axes.plot(j, i, ".", color="0.45", markersize=2.5)
        elif count and matrix[i, j] >= TOLD:
            colour = "white" if matrix[i, j] > 0.6 * most else "black"
            text = short(float(matrix[i, j]))
            axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour, in_layout=False)
    names = [ATTRIBUTES[c] for c in order]
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    axes.set_xlabel("predicted, and not in the program")
    axes.xaxis.set_label_position("top")
    axes.set_ylabel("in the program")
    return figure
