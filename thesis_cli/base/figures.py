"""One style for all figures; the same figure gives the same bytes each time."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.files import write_atomic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which all readers can tell apart."""

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "figure.dpi": 100,
    "figure.titlesize": 9,
    "font.size": 8,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "thesis-cli",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}

WIDTH = 6.3
"""Inches: the text width of an A4 page."""

METADATA: dict[str, Any] = {"pdf": {"CreationDate": None}, "png": {"Software": None}}

LEVELS, SHARE = 2, 1e-5
"""Levels of 255, and share of pixels, by which pictures that look the same may differ."""


@dataclass(frozen=True)
class Cells:
    """A table for readers.

    Attributes
    ----------
    groups : the columns, in groups: the heading of each group and those of its columns.
    rows : heading of each row, its cells as text, and whether they are of this project, not of the source.
    notes : sentences below the table.
    """

    groups: Sequence[tuple[str, Sequence[str]]]
    rows: Sequence[tuple[str, Sequence[str], bool]]
    notes: Sequence[str] = ()


@cache
def _figure_class() -> type[Figure]:
    """Figures that notebooks show, whether or not pyplot is in use; matplotlib is imported when one
    is drawn.
    """
    from matplotlib.figure import Figure

    class PaperFigure(Figure):
        def _repr_png_(self) -> bytes:
            data = io.BytesIO()
            with style():
                self.savefig(data, format="png", metadata={"Software": None}, dpi=self.dpi)
            return data.getvalue()

    return PaperFigure


@contextmanager
def style() -> Iterator[None]:
    """The one style of all figures, whatever the user's settings of matplotlib."""
    import matplotlib as mpl

    defaults: dict[Any, Any] = {name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"}
    with mpl.rc_context({**defaults, **STYLE}):
        yield


def panels(rows: int = 1, columns: int = 2, height: float = 2.6, **options: Any) -> tuple[Figure, Any]:
    """A paper-sized figure and its axes, shape (columns,) or (rows, columns); `height` inches a
    row.
    """
    figure = _figure_class()(figsize=(WIDTH, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title)


def marks(axes: Axes, rows: pd.DataFrame, x: Any, fmt: str = "-o", **options: Any) -> None:
    """Numbers of a table (`value`) over a column, or numbers, with bars of two standard errors."""
    axes.errorbar(rows[x] if isinstance(x, str) else x, rows["value"], 2 * rows["standard_error"], fmt=fmt, **options)


def band(axes: Axes, x: Any, values: Any, errors: Any, colour: str, alpha: float = 0.25) -> None:
    """Two standard errors about a curve."""
    axes.fill_between(x, values - 2 * errors, values + 2 * errors, color=colour, alpha=alpha, linewidth=0)


def render(plot: Callable[[], Figure], kinds: Sequence[str] = ("png", "pdf"), origin: str = "") -> dict[str, bytes]:
    """Draw a figure in the one style; returns the file of each kind, with its origin in the metadata.

    The layout is made once, at the resolution of the PNG. A second layout would start from the
    first and move everything by a fraction of a pixel, so that a picture would depend on what was
    drawn before it; and a figure with a layout engine is drawn twice for each file.
    """
    found = {}
    with style():
        figure = plot()
        engine = figure.get_layout_engine()
        if engine is not None:
            figure.set_dpi(STYLE["savefig.dpi"])
            engine.execute(figure)
            figure.set_layout_engine(None)
        for kind in kinds:
            data = io.BytesIO()
            figure.savefig(data, format=kind, metadata={**METADATA[kind], **_origin(kind, origin)})
            found[kind] = data.getvalue()
    return found


def _origin(kind: str, origin: str) -> dict[str, str]:
    return {"pdf": {"Keywords": origin}, "png": {"Comment": origin}}.get(kind, {}) if origin else {}


def save(plot: Callable[[], Figure], stem: Path, origin: str = "") -> list[Path]:
    """Draw a figure; writes `stem`.pdf and `stem`.png unless they hold the same bytes already."""
    written = []
    for kind, data in sorted(render(plot, origin=origin).items()):
        path = stem.with_name(f"{stem.name}.{kind}")
        if not path.is_file() or path.read_bytes() != data:
            write_atomic({path: data})
        written.append(path)
    return written


def difference(old: bytes, new: bytes) -> str:
    """Visible differences of two PNGs, in words; empty if nothing.

    Processors may round the edges of lines differently. Pictures look the same if at most `SHARE`
    of their pixels differ by more than `LEVELS`.
    """
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    if old == new:
        return ""
    try:
        before, after = (np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"), np.int16) for data in (old, new))
    except (UnidentifiedImageError, OSError, SyntaxError):
        return "the old file is no picture"
    if before.shape != after.shape:
        sizes = [f"{width} x {height}" for height, width, _ in (after.shape, before.shape)]
        return f"{sizes[0]} pixels instead of {sizes[1]}"
    share = float((np.abs(after - before).max(-1) > LEVELS).mean())
    return f"{share:.2%} of the pixels" if share > SHARE else ""


def nice(value: float) -> str:
    """Four digits, for a table."""
    return f"{value:.4g}" if math.isfinite(value) else "-"


def diagonal(axes: Axes, top: float) -> None:
    """Draw a thin line behind the data on which both coordinates are equal, from 0 to `top`."""
    axes.plot([0, top], [0, top], color="#999999", linewidth=0.8, zorder=0)


def legend_below(figure: Figure, axes: Axes, columns: int) -> Figure:
    """Put the legend of one panel below all of them; returns the figure."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncol=columns)
    return figure
