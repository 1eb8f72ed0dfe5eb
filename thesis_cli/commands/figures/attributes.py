"""Figures of predicted probabilities of functions and lambdas: bars of one task (Thesis figure 5.2),
a map of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Bools, Floats

SHOWN = (
    *("(+1)", "(-1)", "(*2)", "(/2)", "(*(-1))", "(**2)", "(*3)", "(/3)", "(*4)", "(/4)"),
    *("(>0)", "(<0)", "(%2==1)", "(%2==0)"),
    *("HEAD", "LAST", "MAP", "FILTER", "SORT", "REVERSE", "TAKE", "DROP", "ACCESS", "ZIPWITH", "SCANL1"),
    *("(+)", "(-)", "(*)", "MIN", "MAX"),
    *("COUNT", "MINIMUM", "MAXIMUM", "SUM"),
)
"""The attributes in the order of figure 5.2."""

MOST = 60
"""Tasks that a map has room for."""


@presentation
def bars_figure(probabilities: Floats, used: Bools | None, title: str) -> Figure:
    """Bars of the attributes of one task.

    Parameters
    ----------
    probabilities, used : of the 34 attributes in the order of `dsl.ATTRIBUTES`; which ones the program
        uses is None if the program is not known.
    """
    from thesis_cli.base.figures import panels

    figure, axes = panels(1, 1, height=2.2)
    draw_bars(axes, probabilities, used)
    axes.set_title(title)
    return figure


@presentation
def draw_bars(axes: Axes, probabilities: Floats, used: Bools | None = None) -> None:
    """The bars of `bars_figure`, in axes of the caller."""
    from matplotlib.patches import Patch

    from thesis_cli.base.figures import COLOURS
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES

    places = [ATTRIBUTES.index(name) for name in SHOWN]
    heights = probabilities[places]
    chosen = [False] * len(SHOWN) if used is None else used[places].tolist()
    bars = axes.bar(range(len(SHOWN)), heights, color=[COLOURS[1 if use else 0] for use in chosen])
    for bar, height, use in zip(bars, heights, chosen, strict=True):
        if height >= 0.05 or use:
            x = bar.get_x() + bar.get_width() / 2
            axes.text(x, height + 0.02, f"{height:.2f}".lstrip("0"), ha="center", va="bottom", fontsize=5)
    if used is not None:
        keys = [Patch(color=COLOURS[1], label="in the program"), Patch(color=COLOURS[0], label="not in it")]
        axes.legend(handles=keys, loc="upper right", ncols=2)
    axes.set_xticks(range(len(SHOWN)), SHOWN, rotation=90)
    axes.grid(visible=False, axis="x")
    axes.set(xlim=(-0.7, len(SHOWN) - 0.3), ylim=(0, 1.25 if used is not None else 1.12))
    axes.set_yticks([0, 0.5, 1])
    axes.set_ylabel("probability")


@presentation
def map_figure(names: Sequence[str], probabilities: Floats, used: Sequence[Bools | None], title: str) -> Figure:
    """A row for each task, a column for each attribute, and dots where a known program uses it.

    Parameters
    ----------
    probabilities : shape (B, 34); the first 60 rows are drawn.
    used : of each task, as for `bars_figure`.
    """
    from thesis_cli.base.figures import panels
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES

    places = [ATTRIBUTES.index(name) for name in SHOWN]
    shown = probabilities[:MOST, places]
    figure, axes = panels(1, 1, height=1.1 + 0.14 * len(shown))
    image = axes.imshow(shown, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for row, uses in enumerate(used[: len(shown)]):
        columns = [] if uses is None else [k for k, place in enumerate(places) if uses[place]]
        axes.plot(columns, [row] * len(columns), "o", color="#D55E00")
    axes.set_xticks(range(len(SHOWN)), SHOWN, rotation=90)
    axes.set_yticks(range(len(shown)), names[: len(shown)])
    axes.grid(visible=False)
    cut = f"; the first {MOST} of {len(names):,} tasks" * (len(names) > MOST)
    dots = "; dots: in the program" * any(uses is not None for uses in used[: len(shown)])
    axes.set_title(f"{title}{dots}{cut}")
    figure.colorbar(image, ax=axes, label="probability")
    return figure
