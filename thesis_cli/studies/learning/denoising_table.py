"""The table of the denoising experiment: errors by draw, pictures, and the figure."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Bytes
from thesis_cli.base.figures import COLOURS, label, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = [1, 2, 5, 10, 20, 50]
"""Percentages on the axis of errors."""

BELOW: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
"""Place of a legend."""


def as_digits(pixels: Bools) -> str:
    """An image in hexadecimal digits, with an x in front so that no reader takes them for a number."""
    return "x" + np.packbits(pixels).tobytes().hex()


def from_digits(digits: str, height: int) -> Bytes:
    """The image of `as_digits`, 0 and 1, shape (height, width); more than 7 pixels high."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(digits[1:]), np.uint8))
    return bits[: bits.size // height * height].reshape(height, -1)


def chosen(frame: pd.DataFrame, images: str, method: str, decision: str = "map") -> float | None:
    """The regularisation with the least mean error on validation images; None if the method has none."""
    means = _of(frame, images, method, decision).groupby("regularisation").validation_error.mean()
    return None if means.empty else float(means.index.to_numpy()[int(means.argmin())])


def error_by_draw(
    frame: pd.DataFrame,
    images: str,
    method: str,
    regularisation: float | None = None,
    decision: str = "map",
    column: str = "test_error",
) -> pd.Series[float] | None:
    """Errors by draw; None if there are none.

    Parameters
    ----------
    regularisation : None for the chosen one; methods without it have one error a draw.
    column : another one of the table.
    """
    rows = _of(frame, images, method, decision)
    weight = chosen(frame, images, method, decision) if regularisation is None else regularisation
    rows = rows[rows.regularisation.isna() | (rows.regularisation == weight)]
    return None if rows.empty else rows.set_index("draw")[column]


def _of(frame: pd.DataFrame, images: str, method: str, decision: str) -> pd.DataFrame:
    kept = (frame.kind == "error") & (frame.images == images) & (frame.method == method)
    return frame[kept & (frame.decision == decision)]


def figure_of(frame: pd.DataFrame, ours: str, theirs: str, printed: float, without: Collection[str]) -> Figure:
    """One image at four stages, the errors of all methods, and how two objectives fall.

    Parameters
    ----------
    printed : regularisation of the source.
    without : images whose errors are not drawn.
    """
    figure, axes = panels(1, 1, height=5.4)
    axes.remove()
    halves: Any = figure.subfigures(2, 1, height_ratios=[1, 1.5])
    top, bottom = halves
    pictures = frame[frame.kind == "picture"]
    images = pictures.images.iloc[0]
    titles = {"clean": "(a) clean", "noisy": "(b) a tenth flipped", ours: f"(c) {ours}", theirs: f"(d) {theirs}"}
    for ax, (name, title) in zip(top.subplots(1, 4), titles.items(), strict=True):
        rows = pictures[(pictures.images == images) & (pictures.method == name)]
        if name in (ours, theirs):
            weight = chosen(frame, images, name)
            rows = rows[rows.regularisation == weight]
            errors = error_by_draw(frame, images, name, weight)
            assert errors is not None
            title += f": {100 * errors.mean():.2f} %"
        picture = rows.iloc[0]
        ax.imshow(from_digits(picture.pixels, int(picture.height)), cmap="gray_r", interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(True)
        ax.grid(visible=False)
        ax.set_title(title)
    left, right = bottom.subplots(1, 2)
    _plot_errors(left, frame[(frame.kind == "error") & ~frame.images.isin(without)], printed)
    _plot_traces(right, frame[(frame.kind == "trace") & (frame.images == images) & (frame.map_calls > 0)], ours)
    return figure


def _plot_errors(ax: Axes, frame: pd.DataFrame, printed: float) -> None:
    """Test errors of all methods, at the chosen regularisation and at the printed one."""
    names: list[Any] = list(frame.groupby(["method", "decision"], sort=False).groups)
    for at, images in enumerate(frame.images.unique()):
        for place, (method, decision) in enumerate(names):
            for weight, style in ((printed, "none"), (None, "full")):
                errors = error_by_draw(frame, images, method, weight, decision)
                if errors is None:
                    continue
                spread = 200 * errors.std() / math.sqrt(len(errors))
                options: Any = {"color": COLOURS[at], "fillstyle": style, "elinewidth": 0.8}
                ax.errorbar(100 * errors.mean(), place + 0.2 * (at - 1), xerr=spread, fmt="o", **options)
        ax.plot([], [], "o", color=COLOURS[at], label=images)
    ax.set_yticks(range(len(names)), [method + {"map": "", "marginals": ", marginals"}[how] for method, how in names])
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xticks(TICKS, [str(tick) for tick in TICKS])
    ax.minorticks_off()
    ax.legend(**BELOW, ncol=3)
    label(ax, "wrong pixels of test images, %", "", "filled: chosen regularisation, open: 1")


def _plot_traces(ax: Axes, frame: pd.DataFrame, ours: str) -> None:
    """Objectives as they fall."""
    groups: Any = frame.groupby(["method", "regularisation"])
    for (method, weight), rows in groups:
        style = {1.0: "-", 0.01: "--"}.get(weight, ":")
        colour = COLOURS[0 if method == ours else 1]
        ax.plot(rows.map_calls, rows.objective, style, color=colour, label=f"{method}, {weight:g}")
    ax.set(xscale="log", yscale="log")
    ax.legend(**BELOW, ncol=2)
    label(ax, "MAP calls", "objective, nats an image", "by regularisation")
