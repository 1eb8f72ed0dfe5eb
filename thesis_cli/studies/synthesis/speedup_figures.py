"""Tables and curves of searches with and without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.figures import COLOURS, Cells, label, panels
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, SOURCE
from thesis_cli.studies.synthesis.speedups import gain, needed, of
from thesis_cli.studies.synthesis.timing import SHARES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.studies.synthesis.published_speedups import Cell

NAMES = {
    "dfs, source": "DFS",
    "sort-and-add, source": "Sort and add",
    "deductive": "deductive",
    "smt": "SMT (z3)",
    "beam": "Beam",
    "dfs": "dfs",
    "sort-and-add": "sort-and-add",
}
STYLES = {PRIOR: (COLOURS[1], "--"), NETWORK: (COLOURS[0], "-")}


def speedup_cells(frame: pd.DataFrame, published: Mapping[str, Sequence[Cell]]) -> Cells:
    """Effort on each task by which shares of the tasks are solved, with the prior and with the
    network, and the ratio: as published, and here."""
    shares = [f"{share:.0%}" for share in SHARES]
    return Cells([(head, shares) for head in (PRIOR, NETWORK, "speedup")], _lines(frame, published), _notes(frame))


def draw_cells(cells: Cells, title: str) -> Figure:
    """A table as a picture."""
    lines = len(cells.rows)
    figure, ax = panels(1, 1, height=0.8 + 0.19 * lines)
    ax.set_axis_off()
    ax.set_title(title)
    ax.set(xlim=(0, 1), ylim=(-lines - 2.2, 1.6))
    for place, (head, shares) in enumerate(cells.groups):
        ax.text(_at(3 * place + 1), 0.9, head, ha="center", fontsize=8)
        for column, share in enumerate(shares):
            ax.text(_at(3 * place + column), 0.0, share, ha="center", fontsize=7)
    for place, (name, texts, bold) in enumerate(cells.rows, 1):
        weight = "bold" if bold else "normal"
        ax.text(0, -place, name, fontsize=7, weight=weight)
        for column, text in enumerate(texts):
            ax.text(_at(column), -place, text, ha="center", fontsize=6.5, weight=weight)
    for place, note in enumerate(cells.notes, 1):
        ax.text(0, -lines - place, note, fontsize=7)
    return figure


def _lines(frame: pd.DataFrame, published: Mapping[str, Sequence[Cell]]) -> list[tuple[str, list[str], bool]]:
    """Names of rows, their cells, and whether these are measured."""
    found: list[tuple[str, list[str], bool]] = []
    for search in [name for name in NAMES if name in set(frame.search)]:
        count = frame[frame.search == search].groupby("guide").task.nunique().max()
        today = search in SOURCE.values()
        if search in published:
            cells = published[search]
            before = [_seconds(cell.prior, not cell.bound, 5) for cell in cells]
            after = [_seconds(cell.network, True, 5) for cell in cells]
            ratios = [f"{'> ' * cell.bound}{cell.speedup:g}x" for cell in cells]
            found.append((f"{cells[0].search}, published", _row(before, after, ratios), False))
        name = f"today's {search}" if today else f"{NAMES[search]}, here"
        found.append((f"{name} ({count} tasks)", _here(frame, search, _seconds), True))
        if today:
            nodes = frame.assign(seconds=frame.nodes, call=0.0)
            found.append(("    programs examined", _here(nodes, search, _count), False))
    return found


def _notes(frame: pd.DataFrame) -> list[str]:
    call = frame[(frame.guide == NETWORK) & (frame.call > 0)].call
    notes = ["DFS and Sort and add: programs examined, at the source's 3 million a second. Others: processor seconds."]
    if len(call):
        each = f"A call of the network takes {1e3 * call.median():.2g} ms for one task (median)"
        notes.append(f"{each}; programs at the source's speed do not contain it.")
    return notes


def _at(column: int) -> float:
    return 0.33 + 0.0735 * column + 0.012 * (column // 3)


def _here(frame: pd.DataFrame, search: str, write: Callable[[float, bool], str]) -> list[str]:
    texts = []
    for guide in (PRIOR, NETWORK):
        found = of(frame, search, guide)
        limits = [needed(*found, share) for share in SHARES] if len(found[0]) else []
        texts.append([write(limit.low, limit.exact) for limit in limits])
    return _row(*texts, [str(gain(frame, search, share) or "?") for share in SHARES])


def _row(*groups: Sequence[str]) -> list[str]:
    return [text for group in groups for text in [*group, *[""] * len(SHARES)][: len(SHARES)]]


def _seconds(seconds: float, exact: bool, digits: int = 3) -> str:
    size, unit = (1, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "\u00b5s")
    return f"{'' if exact else '>'}{float(f'{size * seconds:.{digits}g}'):g} {unit}"


def _count(number: float, exact: bool) -> str:
    text = f"{number:,.0f}" if number < 1e6 else f"{number / 1e6:.3g} M"
    return f"{'' if exact else '>'}{text}"


def draw_curves(frame: pd.DataFrame, published: Mapping[str, Sequence[Cell]], title: str) -> Figure:
    """Number of tasks solved by the time spent on each, a panel for each search."""
    from matplotlib.ticker import LogLocator, NullFormatter

    searches = [name for name in NAMES if name in set(frame.search)]
    columns = 3 if len(searches) > 4 else 2
    figure, axes = panels(-(-len(searches) // columns), columns, height=2.1, squeeze=False)
    for ax, search in zip(axes.flat, searches, strict=False):
        count = int(frame[frame.search == search].task.nunique())
        for guide, (colour, style) in STYLES.items():
            _curve(ax, *of(frame, search, guide), color=colour, linestyle=style, label=guide)
        for cell in published.get(search, ()):
            for seconds, colour, known in ((cell.prior, COLOURS[1], not cell.bound), (cell.network, COLOURS[0], True)):
                marker = "^" if known else ">"
                ax.plot(seconds, cell.share * count, marker, color=colour, markersize=4, mfc="none")
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        low, high = ax.get_xlim()
        if high < 100 * low:  # one decade has a label at most
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            ax.xaxis.set_major_formatter("{x:g}")
        ax.set_ylim(0, 1.02 * count)
        what = r"seconds, $3 \cdot 10^6$ programs/s" if search in SOURCE else "processor seconds"
        label(ax, what, f"solved, of {count} tasks", _title(search, published))
    for ax in axes.flat[len(searches) :]:
        ax.set_axis_off()
    handles, names = axes.flat[0].get_legend_handles_labels()
    mark = axes.flat[0].plot([], [], "^", color="black", markersize=4, mfc="none")
    figure.legend([*handles, *mark], [*names, "published"], loc="outside lower center", ncol=3)
    figure.suptitle(title)
    return figure


def _title(search: str, published: Mapping[str, Sequence[Cell]]) -> str:
    if search in SOURCE:
        return f"{NAMES[search]} of the source"
    if search in SOURCE.values():
        return f"today's {search}"
    old = published[search][0].search.replace("lambda^2", r"$\lambda^2$") if search in published else ""
    return NAMES[search] + (f", instead of {old}" if old and old != NAMES[search] else "")


def _curve(ax: Axes, seconds: Any, solved: Any, **how: Any) -> None:
    if not len(seconds):
        return
    done = np.sort(seconds[solved])
    ends = np.append(done, max(seconds.max(), done[-1] if len(done) else 0))
    ax.step(ends, np.arange(len(done) + 1), where="pre", **how)
