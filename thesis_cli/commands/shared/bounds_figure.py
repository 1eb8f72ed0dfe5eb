"""Figures of bounds on ln Z: of one model, and against the coupling of a spin glass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.perturbation.estimate import Estimate

MARKERS = {"U": "^", "L": "v", "B": "s", "T": "D"}
"""Markers by the first letter of a method."""


@presentation
def intervals_figure(estimates: Sequence[Estimate]) -> Figure:
    """Draw each bound with its interval in a row, and a line at the exact answer."""
    from thesis_cli.base.figures import COLOURS, label, panels

    shown = [e for e in estimates if e.kind != "exact"] or list(estimates)
    figure, axes = panels(1, 1, height=1.2 + 0.3 * len(shown))
    for row, e in enumerate(shown):
        width = [[e.value - e.low], [e.high - e.value]]
        axes.errorbar([e.value], [row], xerr=width, fmt="o", color=COLOURS[row % len(COLOURS)], capsize=2)
    for e in estimates:
        if e.kind == "exact":
            axes.axvline(e.value, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [f"{e.method}\n{e.kind}" for e in shown])
    axes.invert_yaxis()
    name = r"$\log_{10} Z$" if estimates[0].target == "log10 Z" else r"$\ln Z$, nats"
    sampled = next((f"bars: {100 * e.confidence:g}% intervals" for e in shown if e.confidence < 1), "")
    line = "line: exact" if len(shown) < len(estimates) else ""
    label(axes, name, "", "; ".join(text for text in (sampled, line) if text))
    return figure


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
