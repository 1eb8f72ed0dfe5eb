"""The figure of samples of a continuous target."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.targets import Regression, Target

logger = logging.getLogger("thesis_cli")

LINES, POINTS, MOST_BINS = 30, 400, 60
"""Largest numbers of regression lines, of points of a curve and of bins of a histogram."""


def posterior_figure(target: Target, samples: Floats, names: Sequence[str], title: str) -> Figure:
    """Samples: against the exact density in one dimension, in pairs of coordinates in more.

    A regression with one weight also shows its data and some of the sampled lines.

    Parameters
    ----------
    target : the density, for its curve; a `Regression` for its data.
    samples : shape (M, D).
    names : names of the D coordinates.
    title : title of the figure.
    """
    from thesis_cli.base.figures import label, panels
    from thesis_cli.models.targets import Regression

    dimension = samples.shape[1]
    coordinates = [f"weight of {name}" for name in names] if isinstance(target, Regression) else names
    if dimension > 1:
        figure, axes = panels(dimension, dimension, 5.2 / dimension)
        for row in range(dimension):
            for column in range(dimension):
                _pair(axes[row, column], samples, coordinates, row, column)
    elif isinstance(target, Regression):
        figure, axes = panels(1, 2)
        _data(axes[0], target, samples[:, 0], names[0])
        _density(axes[1], target, samples[:, 0])
        label(axes[1], coordinates[0], "density")
    else:
        figure, axes = panels(1, 1)
        _density(axes, target, samples[:, 0])
        label(axes, coordinates[0], "density")
    figure.suptitle(title)
    return figure


def _pair(axes: Axes, samples: Floats, names: Sequence[str], row: int, column: int) -> None:
    """A histogram on the diagonal, a scatter plot below it, nothing above it."""
    from thesis_cli.base.figures import COLOURS

    if column > row:
        axes.set_visible(False)
    elif column == row:
        axes.hist(samples[:, row], bins=_bins(len(samples)), density=True, color=COLOURS[0], alpha=0.4)
        axes.set_ylabel("density")
    else:
        axes.plot(samples[:, column], samples[:, row], ".", color=COLOURS[0], markersize=2, alpha=0.5)
        axes.set_ylabel(names[row])
    if row == samples.shape[1] - 1:
        axes.set_xlabel(names[column])


def _bins(count: int) -> int:
    """Number of bins: twice the cube root of the number of samples (Rice's rule)."""
    return min(math.ceil(2 * math.cbrt(count)), MOST_BINS)


def _data(axes: Axes, target: Regression, samples: Floats, name: str) -> None:
    import numpy as np

    from thesis_cli.base.figures import COLOURS, label

    x = target.x[:, 0]
    ends = np.array([min(x.min(), 0.0), max(x.max(), 0.0)])
    axes.plot(x, target.y, ".", color="0.5", markersize=3)
    for w in samples[:LINES]:
        axes.plot(ends, w * ends, color=COLOURS[0], linewidth=0.6, alpha=0.4)
    label(axes, name, "response", f"data and {min(LINES, samples.size)} sampled lines")


def _density(axes: Axes, target: Target, samples: Floats) -> None:
    """A histogram of samples, with the exact density if quadrature finds it."""
    import numpy as np

    from thesis_cli.base.figures import COLOURS
    from thesis_cli.models.quadrature import evidence, log_densities

    low, high = samples.min(), samples.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, POINTS)
    label = counted(samples.size, "sample")
    axes.hist(samples, bins=_bins(samples.size), density=True, color=COLOURS[0], alpha=0.4, label=label)
    try:
        density = np.exp(log_densities(target, grid[:, np.newaxis]) - evidence(target).log_z)
        axes.plot(grid, density, color="black", linewidth=1, label="exact")
    except (WorkFailed, InputError) as error:
        logger.warning("the figure has no exact density: %s", error)
    axes.legend()
