"""Figure of a privacy ledger: what each table has spent of its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def spent_figure(shares: Mapping[str, Sequence[float]]) -> Figure:
    """Spent epsilon of each table after each of its releases, as a share of the limit.

    Parameters
    ----------
    shares : after 1, 2, ... releases, by the name of the table.
    """
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, grid = panels(1, 1, squeeze=False)
    axes = grid[0, 0]
    for place, (table, spent) in enumerate(shares.items()):
        name, steps = table.replace("$", r"\$"), [0.0, *spent]
        axes.step(range(len(steps)), steps, where="post", label=name, color=COLOURS[place % len(COLOURS)])
    axes.axhline(1, color="black", linestyle="--", label="limit")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    label(axes, "releases of the table", r"share of the limit of $\varepsilon$")
    return figure
