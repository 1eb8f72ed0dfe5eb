"""Figure of a sweep, or of any table: one column against another, in panels by what remains."""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, counted, nearest
from thesis_cli.reproduction.plots.run import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

logger = logging.getLogger("thesis_cli")

ABOVE = "value - exact"
"""Column that is added to estimates if each task has the exact answer, too."""
LOG10 = "log10 value"
"""Column that is added to estimates with powers of ten of their own."""
FIRST_Y = (LOG10, ABOVE, "value", "probability", "seconds")
"""Columns that are drawn by preference, unless the user names one."""
RESULTS = ("method", "statistic", "query", "group", "solver", "kind", "result_kind", "target")
"""Columns of results that tell rows of one task apart."""
MOST_PANELS, MOST_LINES = 24, 21
"""Panels of a figure, and lines of a panel."""
MOST_POINTS = 20_000
"""Points of a figure."""
LONGEST = 40
"""Characters of a name in a figure."""
TICKS = 8
"""Values that a logarithmic axis names one by one."""
MARKERS = "os^DvP*"


@dataclass(frozen=True)
class ChosenColumns:
    """Columns and logarithmic axes that the user chose; empty for the default choice."""

    x: str = ""
    y: str = ""
    hue: str = ""
    log: str = ""

    @property
    def any(self) -> bool:
        return bool(self.x or self.y or self.hue or self.log)


def sweep(run: Run, chosen: ChosenColumns) -> Figure:
    """Draw a column against another: a line for each value of a third, a panel for each combination
    of the others that vary.

    Rows with all of these equal, such as those of several seeds, become their mean with two
    standard errors.

    Raises
    ------
    InputError : a column is unknown or does not suit, or there are too many lines or panels.
    """
    frame = _derived(run, chosen)
    y, x, hue = (_known(run, frame, f"--{name}", getattr(chosen, name)) for name in ("y", "x", "hue"))
    y = _y(run, frame, y, (x, hue))
    frame = frame[frame[y].notna()]
    if frame.empty:
        raise InputError(f"column {y} is empty", "give another --y", source=run.path)
    apart = _apart(run, frame, x, y, hue)
    x = x or _x(run, frame, apart)
    hue = hue or _hue(frame, apart, x)
    frame = _positive(run, frame, {"x": x, "y": y}, chosen.log)
    facets = [name for name in apart if name not in (x, hue)]
    groups = list(frame.groupby(facets, sort=False, dropna=False)) if facets else [((), frame)]
    lines = [] if not hue else _values(frame[hue])
    if len(groups) > MOST_PANELS:
        problem = f"{counted(len(groups), 'panel')} by {', '.join(facets)}, and up to {MOST_PANELS} are drawn"
        raise InputError(problem, "give another --x or --hue, or take fewer rows", source=run.path)
    if len(lines) > MOST_LINES:
        problem = f"{counted(len(lines), 'line')} by {hue}, and up to {MOST_LINES} are drawn"
        raise InputError(problem, "give another --hue", source=run.path)
    points = frame.groupby([*facets, *filter(None, [hue]), x], dropna=False).ngroups
    if points > MOST_POINTS:
        problem = f"{points:,} points, and up to {MOST_POINTS:,} are drawn"
        raise InputError(problem, "give another --x, or take fewer rows", source=run.path)
    return _figure(run, groups, facets, x, y, hue, lines, chosen.log)


def _derived(run: Run, chosen: ChosenColumns) -> pd.DataFrame:
    """The table, with the columns that are computed from those of estimates."""
    import numpy as np

    frame = run.table.copy()
    kind = "result_kind" if run.has("result_kind") else "kind"
    if not run.has("value", kind) or frame["value"].dtype.kind not in "if":
        return frame
    if run.has("exponent10") and (frame["exponent10"] != 0).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            frame[LOG10] = np.log10(frame["value"]) + frame["exponent10"]
        return frame
    keys = list(run.parameters) + [name for name in ("coupling", "order", "target") if run.has(name)]
    keys = [name for name in dict.fromkeys(keys)]
    exact = frame[frame[kind] == "exact"]
    if not keys or exact.empty or exact.duplicated(keys).any():
        return frame
    known = frame[keys].merge(exact[[*keys, "value"]], on=keys, how="left")["value"].to_numpy()
    if np.isfinite(known).all() and len(exact) < len(frame) and chosen.y in ("", ABOVE):
        frame[ABOVE] = frame["value"].to_numpy() - known
        frame = frame[frame[kind] != "exact"]
    return frame


def _known(run: Run, frame: pd.DataFrame, option: str, name: str) -> str:
    """A column that the user named, as an option or as the table has it; empty if none is named.

    Raises
    ------
    InputError : there is none; the message names the nearest.
    """
    found = name if name in frame else name.replace("-", "_")
    if name and found not in frame:
        raise InputError(f"{option} {name[:40]!r} is no column", nearest(name, map(str, frame)), source=run.path)
    return found


def _y(run: Run, frame: pd.DataFrame, named: str, others: Sequence[str]) -> str:
    """The column that was named, or else a result."""
    if named:
        if not _numeric(frame[named]):
            raise InputError(f"--y {named} is no column of numbers", "give one", source=run.path)
        return named
    results = [str(name) for name in frame if name not in (*run.parameters, *others) and _numeric(frame[name])]
    known = [name for name in FIRST_Y if name in results]
    varying = [name for name in results if frame[name].nunique() > 1]
    if not results:
        raise InputError("has no column of numbers to draw", "give --y", source=run.path)
    return (known or varying or results)[0]


def _apart(run: Run, frame: pd.DataFrame, x: str, y: str, hue: str) -> list[str]:
    """The columns by which rows differ: parameters that vary, without the seed, and what tells rows
    of one task apart; none that others determine."""
    names = [x, hue, *(name for name in run.parameters if name != "seed")]
    names += [name for name in RESULTS if name in frame and not _numeric(frame[name])]
    names += [name for name in ("coupling", "result_order", "order") if name in frame]
    found: list[str] = []
    for name in dict.fromkeys(filter(None, names)):
        if name != y and frame[name].nunique(dropna=False) > 1 and (not found or _adds(frame, found, name)):
            found.append(name)
    return found


def _adds(frame: pd.DataFrame, known: Sequence[str], name: str) -> bool:
    """Whether a column is not determined by others."""
    groups = frame.groupby(list(known), sort=False, dropna=False)[name]
    return bool((groups.nunique(dropna=False) > 1).any())


def _x(run: Run, frame: pd.DataFrame, apart: Sequence[str]) -> str:
    """The parameter of numbers with the most values; else what has the most."""
    numbers = [name for name in apart if _numeric(frame[name]) and frame[name].nunique() > 1]
    found = max(numbers or apart, key=lambda name: frame[name].nunique(dropna=False), default="")
    if found:
        return found
    if "seed" in frame and frame["seed"].nunique() > 1:
        return "seed"
    raise InputError("nothing varies but its results", "give --x and --y, columns of it", source=run.path)


def _hue(frame: pd.DataFrame, apart: Sequence[str], x: str) -> str:
    """The column that tells the rows of one task apart, or else the parameter with the fewest values."""
    left = [name for name in apart if name != x]
    named = [name for name in RESULTS if name in left]
    few = sorted((name for name in left), key=lambda name: frame[name].nunique(dropna=False))
    return (named or few or [""])[0]


def _numeric(values: pd.Series[Any]) -> bool:
    return values.dtype.kind in "iuf"


def _values(column: pd.Series[Any]) -> list[Any]:
    """Distinct values: numbers in order, words in the order of the table."""
    found = list(dict.fromkeys(column.tolist()))
    return sorted(found, key=lambda value: (value != value, value)) if _numeric(column) else found


def _positive(run: Run, frame: pd.DataFrame, columns: dict[str, str], log: str) -> pd.DataFrame:
    """The rows that logarithmic axes have a place for.

    Raises
    ------
    InputError : a column is not of numbers, or none of them is positive.
    """
    for axis in log:
        name = columns[axis]
        if not _numeric(frame[name]):
            raise InputError(f"--log {log}: {name} is no column of numbers", "leave it out", source=run.path)
        kept = frame[frame[name] > 0]
        if kept.empty:
            raise InputError(f"--log {log}: no number of column {name} is positive", "leave it out", source=run.path)
        if len(kept) < len(frame):
            left = counted(len(frame) - len(kept), "row")
            logger.warning("%s: %s without a positive %s are not drawn", run.path, left, name)
        frame = kept
    return frame


def _figure(
    run: Run,
    groups: Sequence[tuple[Any, pd.DataFrame]],
    facets: Sequence[str],
    x: str,
    y: str,
    hue: str,
    lines: Sequence[Any],
    log: str,
) -> Figure:
    from thesis_cli.base.figures import panels

    across = min(len(groups), 3 if len(groups) > 4 else 2)
    down = -(-len(groups) // across)
    figure, grid = panels(down, across, 3.0 if len(groups) == 1 else 2.3, squeeze=False, sharex=True, sharey=True)
    whole = [frame[x] for _, frame in groups]
    words = [] if _numeric(whole[0]) else list(dict.fromkeys(value for column in whole for value in _cells(column)))
    several = barred = False
    for place, (axes, (values, frame)) in enumerate(zip(grid.flat, groups, strict=False)):
        for k, value in enumerate(lines or [None]):
            part = frame if not hue else frame[frame[hue].isna() if value != value else frame[hue] == value]
            of_several, with_bars = _line(axes, part, (x, y), words, k, [f"{value}" for value in lines] or [""])
            several, barred = several or of_several, barred or with_bars
        _finish(axes, words, log, _values(frame[x]))
        axes.set_title(_facet(facets, values))
        if place >= len(groups) - across:
            axes.set_xlabel(_shown(x))
            axes.tick_params(labelbottom=True)
        if place % across == 0:
            axes.set_ylabel(_measure(run, y))
        if y == ABOVE:
            axes.axhline(0, color="black", linewidth=0.8)
    for axes in grid.flat[len(groups) :]:
        axes.remove()
    if hue:
        handles = _handles(grid.flat[: len(groups)])
        figure.legend(handles.values(), handles.keys(), title=_shown(hue), loc="outside right upper")
    bars = "; points: means" * several + "; bars: two standard errors" * barred
    figure.suptitle(f"{_shown(run.command or run.path.stem)}{bars}")
    return figure


def _measure(run: Run, y: str) -> str:
    """Name of the vertical axis: that of the target of estimates, with its unit."""
    targets = set(run.texts("target"))
    unit = ", nats" * (targets == {"ln Z"})
    if y == ABOVE:
        return f"{y}{unit}"
    if y == "value" and len(targets) == 1 and all(targets):
        return f"{_shown(targets.pop())}{unit}"
    return _shown(y)


def _handles(panels: Sequence[Axes]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    return found


def _line(
    axes: Axes, part: pd.DataFrame, columns: tuple[str, str], words: Sequence[str], k: int, names: Sequence[str]
) -> tuple[bool, bool]:
    """Means of the rows of line k with the same x; returns whether any is a mean of several rows,
    and whether any has an error."""
    from thesis_cli.base.figures import COLOURS

    if part.empty:
        return False, False
    (x, y), lines = columns, len(names)
    groups = part.groupby(x, sort=not words, dropna=True)[y]
    means, counts = groups.mean(), groups.count()
    errors = 2 * (groups.std() / counts**0.5)
    if y in ("value", ABOVE) and "standard_error" in part and _numeric(part["standard_error"]):
        alone = part.groupby(x, sort=not words, dropna=True)["standard_error"].mean()
        errors = errors.where(counts > 1, 2 * alone)
    errors = errors.fillna(0.0)
    aside = 0.6 * (k - (lines - 1) / 2) / max(lines, 7)
    places = [words.index(_cell(value)) + aside for value in means.index] if words else list(means.index)
    finite = [math.isfinite(mean) for mean in means]
    shown = [(p, m, e) for p, m, e, ok in zip(places, means, errors, finite, strict=True) if ok]
    if not shown:
        return False, False
    axes.errorbar(
        [p for p, _, _ in shown],
        [m for _, m, _ in shown],
        [e if math.isfinite(e) else 0.0 for _, _, e in shown],
        marker=MARKERS[k % len(MARKERS)],
        color=COLOURS[k % len(COLOURS)],
        linestyle="none" if words else ("-", "--", ":")[k // len(COLOURS)],
        capsize=1.5,
        label=_shown(names[k]),
    )
    return bool((counts > 1).any()), any(e > 0 for _, _, e in shown)


def _finish(axes: Axes, words: Sequence[str], log: str, places: Sequence[Any]) -> None:
    """Ticks of words, and logarithmic axes."""
    if words:
        named = words if len(words) <= 30 else []
        turned = len(named) > 3 or max(map(len, named), default=0) > 12
        axes.set_xticks(
            range(len(named)),
            [_shown(word) for word in named],
            rotation=30 * turned,
            ha="right" if turned else "center",
        )
    if "x" in log:
        axes.set_xscale("log")
        if len(places) <= TICKS:
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.set_xticks([], minor=True)
    if "y" in log:
        axes.set_yscale("log", nonpositive="clip")


def _cells(column: pd.Series[Any]) -> list[str]:
    return [_cell(value) for value in column.dropna()]


def _cell(value: Hashable) -> str:
    return str(value)


def _facet(facets: Sequence[str], values: Any) -> str:
    """`kind = mixed`, and a line for each further column."""
    found = values if isinstance(values, tuple) else (values,)
    return "\n".join(f"{_shown(name)} = {_shown(str(value))}" for name, value in zip(facets, found, strict=True))


def _shown(text: str) -> str:
    """A shortened text, of a path its end, in which a dollar is a dollar and starts no formula."""
    if len(text) > LONGEST:
        text = f"...{text[3 - LONGEST :]}" if "/" in text else f"{text[: LONGEST - 3]}..."
    return text.replace("$", r"\$")
