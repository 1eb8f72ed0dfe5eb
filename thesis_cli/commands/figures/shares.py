"""Figures of the shares, or probabilities, of the states of variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, counted
from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats, Ints

NAMED, STACKED, MOST_STATES = 30, 7, 64
"""Variables that are named, states that are told apart by colours, and states that a map has room for."""


@presentation
def draw_values(names: Sequence[str], values: Ints, word: str, what: str, title: str) -> Figure:
    """How often each variable has each of its values.

    Parameters
    ----------
    values : shape (rows, variables); those below 0 are left out.
    word : for a value, such as `state`.

    Raises
    ------
    InputError : there are too many values.
    """
    import numpy as np

    first = max(0, int(values.min()))
    end = max(first, int(values.max())) + 1
    if end > MOST_STATES:
        problem = f"has {counted(end, word)} of a variable, and up to {MOST_STATES} are drawn"
        raise InputError(problem, "give --x and --y, columns of it")
    shares = np.stack([(values == k).mean(axis=0) for k in range(first, end)], axis=1)
    return draw_shares(names, shares, {k: f"{word} {k}" for k in range(first, end)}, what, title, word)


@presentation
def draw_shares(
    names: Sequence[str], shares: Floats, labels: Mapping[int, str], what: str, title: str, word: str = "state"
) -> Figure:
    """A bar of shares for each variable, or a map if there are too many for bars.

    Parameters
    ----------
    shares : shape (variables, states); NaN for states that a variable lacks.
    labels : name of each state by its number; they are consecutive.
    """
    from thesis_cli.base.figures import panels

    n, count = shares.shape
    if n <= NAMED and count <= STACKED:
        figure, axes = panels(1, 1, height=1.1 + 0.2 * n)
        _bars(axes, shares, labels)
        axes.set_xlabel(what)
        figure.legend(loc="outside right upper")
    else:
        figure, axes = panels(1, 1, height=min(7.0, 1.4 + 0.12 * n))
        extent = (min(labels) - 0.5, min(labels) + count - 0.5, n - 0.5, -0.5)
        image = axes.imshow(shares, vmin=0, cmap="Blues", aspect="auto", interpolation="nearest", extent=extent)
        figure.colorbar(image, ax=axes, label=what)
        axes.set_xlabel(word)
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(visible=False)
    if n <= 2 * NAMED:
        axes.set_yticks(range(n), [shown(name) for name in names])
    else:
        axes.set_ylabel("variable")
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_title(title)
    return figure


def _bars(axes: Axes, shares: Floats, labels: Mapping[int, str]) -> None:
    import numpy as np

    from thesis_cli.base.figures import COLOURS

    left = np.zeros(len(shares))
    for k, column in zip(sorted(labels), np.nan_to_num(shares).T, strict=True):
        name = shown(labels[k])
        axes.barh(range(len(shares)), column, left=left, color=COLOURS[k % len(COLOURS)], label=name, height=0.7)
        left += column


@presentation
def shown(text: str) -> str:
    """A name in a figure: its beginning if it is long."""
    return (text if len(text) <= 30 else text[:27] + "...").replace("$", r"\$")
