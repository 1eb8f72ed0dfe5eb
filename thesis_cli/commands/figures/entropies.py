"""Figures of `renyi`: the curve of entropies over their orders, or single estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.commands.figures.bounds import bound_marker
from thesis_cli.commands.ln_z.entropies import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.perturbation.estimate import Estimate

TICKS = {"0": 0.0, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0, "2": 2.0, "4": 4.0, r"$\infty$": math.inf}


def draw_profile(rows: Sequence[Row], curve: Sequence[Row], exact_curve: Sequence[Row], title: str) -> Figure:
    """The whole curve with its pointwise band, and the estimates at the orders that were asked
    for."""
    figure, axes = panels(1, 1, height=3.4)
    places, estimates = _places(curve), [row.estimate for row in curve]
    name = f"{estimates[0].method}, {100 * estimates[0].confidence:.12g}% pointwise"
    low, high = [e.low for e in estimates], [e.high for e in estimates]
    axes.fill_between(places, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(places, [e.value for e in estimates], color=COLOURS[0], label=name)
    marked = [row for row in rows if row.estimate.kind in ("unbiased", "consistent")]
    axes.plot(_places(marked), [row.estimate.value for row in marked], "o", color=COLOURS[0], markersize=4)
    exact = [row for row in rows if row.estimate.kind == "exact"]
    if not exact_curve and exact:
        values = [row.estimate.value for row in exact]
        axes.plot(_places(exact), values, "D", color="black", markersize=4, fillstyle="none", label="exact")
    if exact_curve:
        axes.plot(_places(exact_curve), [row.estimate.value for row in exact_curve], "k--", label="exact")
    axes.set_xticks([_place(order) for order in TICKS.values()], list(TICKS))
    axes.set_xlim(0, 1)
    label(axes, r"order $\alpha$ (spaced as $\alpha / (1 + \alpha)$)", r"$H_\alpha$, nats", title)
    axes.legend()
    return figure


def draw_estimates(rows: Sequence[Row], title: str) -> Figure:
    """Each estimate with its interval, one below the other."""
    figure, axes = panels(1, 1, height=max(1.6, 0.3 * len(rows) + 0.9))
    for place, row in enumerate(rows):
        e, exact = row.estimate, row.estimate.map_calls == 0
        if not exact:
            axes.plot([e.low, e.high], [place, place], color=COLOURS[0])
        marker = bound_marker(e.kind) or ("D" if exact else "o")
        axes.plot([e.value], [place], marker, color="black" if exact else COLOURS[0], markersize=4)
    axes.set_yticks(range(len(rows)), [_named(row.estimate) for row in rows])
    axes.invert_yaxis()
    label(axes, "estimate, with its interval", "", title)
    return figure


def _named(e: Estimate) -> str:
    """Target and method, and what a bound is."""
    return f"{e.target}, {e.method}" + f"\n{e.kind}" * bool(bound_marker(e.kind))


def _places(rows: Sequence[Row]) -> list[float]:
    return [_place(row.order) for row in rows if row.order is not None]


def _place(order: float) -> float:
    """Place of an order on the axis, from 0 to 1."""
    return 1.0 if order == math.inf else order / (1 + order)
