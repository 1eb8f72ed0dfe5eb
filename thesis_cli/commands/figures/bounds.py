"""Figures of bounds on ln Z: of one model, and against the coupling of a spin glass."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thesis_cli.perturbation.estimate import Estimate

MARKERS = {"U": "^", "L": "v", "B": "s", "T": "D"}
"""Markers by the first letter of a method."""


@presentation
def intervals_figure(estimates: Sequence[Estimate], title: str = "") -> Figure:
    """Draw each estimate with its interval in a row, bounds as arrow heads that point to where the
    target is, and a line at the exact answer.
    """
    from thesis_cli.base.figures import COLOURS, label, panels

    shown = [e for e in estimates if e.kind != "exact"] or list(estimates)
    figure, axes = panels(1, 1, height=1.2 + 0.3 * len(shown))
    for row, e in enumerate(shown):
        _interval(axes, e, row, bound_marker(e.kind) or "o", COLOURS[row % len(COLOURS)])
    for e in estimates:
        if e.kind == "exact":
            axes.axvline(e.value, color="black", linewidth=0.8)
    _infinite_ends(axes, shown)
    axes.set_yticks(range(len(shown)), [f"{e.method}\n{textwrap.shorten(e.kind, 45)}" for e in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    sampled = next((f"bars: {100 * e.confidence:g}% intervals" for e in shown if e.confidence < 1), "")
    line = "line: exact" if len(shown) < len(estimates) else ""
    bounds = "arrow heads: bounds" if any(bound_marker(e.kind) for e in shown) else ""
    named = title.replace("$", r"\$")
    legend = "; ".join(text for text in (sampled, bounds, line) if text)
    label(axes, _axis(estimates[0]), "", "\n".join(text for text in (named, legend) if text))
    return figure


def bound_marker(kind: str) -> str:
    """An arrow head that points from a bound to where its target is; empty for what is no bound."""
    return "<" if kind.startswith("upper") else ">" if kind.startswith("lower") else ""


def _interval(axes: Axes, e: Estimate, row: int, marker: str, colour: str) -> None:
    """A value with the ends of its interval that are finite; words for a value that is not."""
    if not math.isfinite(e.value):
        axes.text(0.5, row, f"no finite value ({e.value})", transform=axes.get_yaxis_transform(), ha="center")
        return
    sides = (e.value - e.low, e.high - e.value)
    width = [[max(0.0, side) if math.isfinite(side) else 0.0] for side in sides]
    axes.errorbar([e.value], [row], xerr=width, fmt=marker, color=colour, capsize=2, markersize=4)


def _infinite_ends(axes: Axes, shown: Sequence[Estimate]) -> None:
    """Lines to the edges of the figure, where an interval has no end."""
    from thesis_cli.base.figures import COLOURS

    edges = axes.get_xlim()
    for row, e in enumerate(shown):
        for end, edge in zip((e.low, e.high), edges, strict=True):
            if math.isinf(end) and math.isfinite(e.value):
                axes.plot([e.value, edge], [row, row], color=COLOURS[row % len(COLOURS)])
    axes.set_xlim(edges)


def _axis(e: Estimate) -> str:
    """Label of the axis of an estimate, with its unit."""
    named = {"ln Z": r"$\ln Z$, nats", "log10 Z": r"$\log_{10} Z$", "Z": "$Z$"}.get(e.target, e.target)
    return f"{named}, in units of $10^{{{e.exponent10}}}$" if e.exponent10 else named


@presentation
def couplings_figure(found: Sequence[tuple[float, Sequence[Estimate]]], title: str) -> Figure:
    """Draw each estimate against the coupling, less the exact ln Z if that is always known."""
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 1, height=3.2)
    exact = {c: e.value for c, estimates in found for e in estimates if e.kind == "exact"}
    known = len(exact) == len(found)
    for k, method in enumerate(e.method for e in found[0][1] if e.kind != "exact"):
        points = [(c, e) for c, estimates in found for e in estimates if e.method == method]
        axes.errorbar(
            [c for c, _ in points],
            [e.value - (exact[c] if known else 0.0) for c, e in points],
            [2 * e.standard_error for _, e in points],
            marker=MARKERS[method[0]],
            color=COLOURS[k % len(COLOURS)],
            linestyle=("-", "--", ":")[k % 3],
            label=method,
        )
    y = r"estimate $-\ \ln Z$, nats" if known else r"estimate of $\ln Z$, nats"
    label(axes, "coupling $C$", y, f"{title}; bars: two standard errors")
    if known:
        axes.axhline(0, color="black", linewidth=0.8)
    figure.legend(loc="outside right upper")
    return figure
