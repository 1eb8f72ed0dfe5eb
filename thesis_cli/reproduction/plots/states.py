"""Figures of configurations: a grid's states as images, and shares of the states of variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, about, counted
from thesis_cli.commands.figures.shares import NAMED, draw_shares, draw_values, shown
from thesis_cli.reproduction.plots.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Ints

PANELS = 8
"""Images of a figure."""
MOST_SITES = 10**6
"""Sites of the largest grid that is recognised."""
MOST_INDEX = 2**31
"""States, and indices of vectors, are smaller."""
RANKS = 1000
"""Indices of a vector that are drawn."""


def samples(run: Run) -> Figure:
    """Drawn configurations: images of a grid, how often each index of a vector was drawn, or else
    the share of each state of each variable."""
    import numpy as np

    names = [str(name) for name in run.table.columns]
    states = np.empty((len(run.table), len(names)), np.int32)
    for k, name in enumerate(names):
        column = run.floats(name)
        if not ((column >= -1) & (column == np.floor(column)) & (column < MOST_INDEX)).all():
            raise InputError(
                f"has a cell in column {name[:40]} that is no state", "sample writes them", source=run.path
            )
        states[:, k] = column
    if names == ["index"]:
        return _indices(run, states[:, 0].tolist())
    title = f"{_model(run)}, {counted(len(states), 'draw')}"
    grid = grid_of(run, len(names))
    if grid is not None:
        images = [("mean of all", states.mean(axis=0)[grid])]
        images += [(f"draw {k + 1}", row[grid]) for k, row in enumerate(states[: PANELS - 1])]
        return _images(images, title, "state")
    word = "state" if run.command in ("", "sample") else "value"
    with about(run.path):
        return draw_values(names, states.astype(np.int64), word, "share of the draws", title)


def predictions(run: Run) -> Figure:
    """How often each label has each value among the best structures of all rows."""
    import numpy as np

    found = run.record.get("labels")
    names = [str(name) for name in found if run.has(name)] if isinstance(found, list) else []
    if not names:
        raise InputError("has no labels that its record names", "structured predict writes them", source=run.path)
    best = run.floats("place") == 1 if run.has("place") else np.full(len(run.table), fill_value=True)
    values = np.stack([run.floats(name)[best] for name in names], axis=1).astype(np.int64)
    word = "rank" if run.record.get("task") == "ranking" else "value"
    with about(run.path):
        return draw_values(names, values, word, "share of the rows", counted(len(values), "row"))


def marginals(run: Run) -> Figure:
    """The probability of each state of each variable: images of a grid, or else shares."""
    import numpy as np

    variables, states = _whole(run, "variable"), _whole(run, "state")
    values = run.numbers("probability")
    n, count = max(variables) + 1, max(states) + 1
    if n * count > 4 * len(values) + MOST_SITES:
        raise InputError("lacks most variables and states", "marginals writes all of them", source=run.path)
    table = np.full((n, count), np.nan)
    table[variables, states] = values
    title = f"{_model(run)}, {run.record.get('algorithm', 'marginals')}"
    grid = grid_of(run, n)
    if grid is not None:
        chosen = [1] if count == 2 else list(range(min(count, PANELS)))
        return _images([(f"P(state {k})", table[:, k][grid]) for k in chosen], title, "probability", (0.0, 1.0))
    labels = dict(zip(states, run.texts("label"), strict=True)) if _same_labels(run, states) else {}
    named = {k: labels.get(k) or f"state {k}" for k in range(count)}
    return draw_shares(_names(run, variables, n), table, named, "probability", title)


def best(run: Run) -> Figure:
    """The best configurations: images of a grid, or else a map of states."""
    import numpy as np

    variables, states = _whole(run, "variable"), _whole(run, "state")
    ranks = _whole(run, "rank") if run.has("rank") else [1] * len(states)
    n, count = max(variables) + 1, max(ranks)
    if min(ranks) < 1 or n * count != len(states):
        raise InputError("lacks states of some variables", "map writes all of them", source=run.path)
    table = np.full((count, n), -1, np.int64)
    table[np.array(ranks) - 1, variables] = states
    values = dict(zip(ranks, run.numbers("value"), strict=True)) if run.has("value") else {}
    titles = [f"rank {k + 1}: {values[k + 1]:.4g}" if k + 1 in values else "MAP" for k in range(count)]
    grid = grid_of(run, n)
    if grid is not None:
        images = [(name, row[grid]) for name, row in zip(titles, table[:PANELS], strict=False)]
        return _images(images, _model(run), "state")
    return _map(run, table[:NAMED], titles, _names(run, variables, n))


def _whole(run: Run, column: str) -> list[int]:
    """A column of whole numbers, 0 or more."""
    found = run.numbers(column)
    if any(not (math.isfinite(value) and value == int(value) and 0 <= value <= MOST_SITES) for value in found):
        raise InputError(f"has a cell in column {column} that is no count", "it must be 0 or more", source=run.path)
    return [int(value) for value in found]


def grid_of(run: Run, n: int) -> Ints | None:
    """The variable of each site, shape (rows, columns), of a model of the record that is a grid of
    n sites; None if it is none, or cannot be read any more."""
    import numpy as np

    from thesis_cli.commands.core.common import open_model
    from thesis_cli.inference.grid.layout import layout
    from thesis_cli.inference.pairwise import pairwise
    from thesis_cli.models.factor_graph import FactorGraph

    source = run.settings.get("model")
    if not isinstance(source, str) or source.startswith("<") or source == "-" or not 4 <= n <= MOST_SITES:
        return None
    try:
        model = open_model(source, run.settings.get("format"))
        if not isinstance(model, FactorGraph) or len(model.cardinalities) != n:
            return None
        width, variables = layout(pairwise(model))
    except (InputError, OSError):
        return None
    if width < 2 or variables.size != n:
        return None
    sites = np.asarray(variables).reshape(-1, width)
    return sites.T if sites[1, 0] == 1 else sites


def _images(
    images: Sequence[tuple[str, Any]], title: str, what: str, limits: tuple[float, float] | None = None
) -> Figure:
    """Images of a grid, with one scale of colours."""
    from thesis_cli.base.figures import panels

    high, wide = images[0][1].shape
    across = 1 if len(images) == 1 else 4 if wide <= 2 * high else 2
    down = -(-len(images) // across)
    height = min(3.0, max(0.9, 6.3 / across * high / wide + 0.25))
    figure, grid = panels(down, across, height, squeeze=False)
    low, top = limits or (0.0, max(1.0, *(float(image.max()) for _, image in images)))
    for axes, (name, image) in zip(grid.flat, images, strict=False):
        drawn = axes.imshow(image, vmin=low, vmax=top, cmap="viridis", interpolation="nearest")
        axes.set_title(name)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    for axes in grid.flat[len(images) :]:
        axes.remove()
    ticks = range(int(top) + 1) if what == "state" and top <= PANELS else None
    figure.colorbar(drawn, ax=grid, label=what, shrink=0.8, ticks=ticks)
    figure.set_layout_engine("compressed")
    figure.suptitle(title)
    return figure


def _indices(run: Run, column: Sequence[int]) -> Figure:
    """Shares of the indices of a vector, from the most frequent."""
    from collections import Counter

    from thesis_cli.base.figures import COLOURS, label, panels

    counts = Counter(column).most_common(RANKS)
    ranks, total = range(1, len(counts) + 1), len(column)
    shares = [count / total for _, count in counts]
    figure, axes = panels(1, 1, height=3.0)
    axes.plot(ranks, shares, "o", color=COLOURS[0])
    axes.set(xscale="log", yscale="log")
    for rank, (index, _) in list(zip(ranks, counts, strict=True))[:3]:
        axes.annotate(f"index {index}", (rank, shares[rank - 1]), (4, 4), textcoords="offset points", fontsize=6)
    title = f"{_model(run)}, {counted(total, 'draw')}, {len(counts):,} indices among them"
    label(axes, "rank of the index by its draws", "share of the draws", title)
    return figure


def _map(run: Run, table: Ints, titles: Sequence[str], names: Sequence[str]) -> Figure:
    """A row for each configuration, a column for each variable."""
    from thesis_cli.base.figures import panels

    rows, n = table.shape
    figure, axes = panels(1, 1, height=1.3 + 0.25 * rows)
    drawn = axes.imshow(table, cmap="viridis", aspect="auto", interpolation="nearest", vmin=0, vmax=max(1, table.max()))
    labels = run.texts("label")
    if n * rows <= 10 * NAMED and n <= NAMED and any(labels):
        words = {
            (int(v), int(s)): word
            for v, s, word in zip(run.numbers("variable"), run.numbers("state"), labels, strict=True)
        }
        for (rank, variable), state in _entries(table):
            colour = "black" if state > 0.6 * max(1, table.max()) else "white"
            word = shown(words.get((variable, state), ""))
            axes.text(variable, rank, word, ha="center", va="center", color=colour, fontsize=6)
    if n <= NAMED:
        axes.set_xticks(range(n), [shown(name) for name in names], rotation=30 * (n > 8))
    else:
        axes.set_xlabel("variable")
    axes.set_yticks(range(rows), titles[:rows])
    axes.grid(visible=False)
    axes.set_title(_model(run))
    figure.colorbar(drawn, ax=axes, label="state", ticks=range(min(int(table.max()), 10) + 1))
    return figure


def _entries(table: Ints) -> list[tuple[tuple[int, int], int]]:
    return [((i, j), int(state)) for i, row in enumerate(table.tolist()) for j, state in enumerate(row)]


def _names(run: Run, variables: Sequence[int], n: int) -> list[str]:
    named = dict(zip(variables, run.texts("name"), strict=True))
    return [named.get(i) or f"x{i}" for i in range(n)]


def _same_labels(run: Run, states: Sequence[int]) -> bool:
    """Whether each state has one name in all variables."""
    found: dict[int, set[str]] = {}
    for state, name in zip(states, run.texts("label"), strict=True):
        found.setdefault(state, set()).add(name)
    return all(len(names) == 1 for names in found.values())


def _model(run: Run) -> str:
    return str(run.settings.get("model") or run.path.name).replace("$", r"\$")
