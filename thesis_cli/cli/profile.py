"""The curve of Renyi entropies over their orders, and its figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thesis_cli.cli.found import Found, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE = 60
"""Points of a profile, evenly spaced in alpha / (1 + alpha) from 0 to 1; they miss alpha = 1."""


def curve_orders() -> list[float]:
    """Orders of a profile, 0 to inf."""
    shares = [k / (CURVE - 1) for k in range(CURVE)]
    return [t / (1 - t) if t < 1 else math.inf for t in shares]


def draw_profile(result: Result, title: str) -> Figure:
    """The whole curve with its pointwise band, and the orders that were asked for."""
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 1, height=3.4)

    def place(found: Sequence[Found]) -> list[float]:
        return [1.0 if f.alpha == math.inf else f.alpha / (1 + f.alpha) for f in found if f.alpha is not None]

    x, curve = place(result.curve), [f.estimate for f in result.curve]
    name = f"{curve[0].method}, {100 * curve[0].confidence:.12g}% pointwise"
    axes.fill_between(x, [e.low for e in curve], [e.high for e in curve], color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(x, [e.value for e in curve], color=COLOURS[0], label=name)
    marked = [f for f in result.found if f.estimate.kind in ("unbiased", "consistent")]
    axes.plot(place(marked), [f.estimate.value for f in marked], "o", color=COLOURS[0], markersize=4)
    if result.exact_curve:
        exact = result.exact_curve
        axes.plot(place(exact), [f.estimate.value for f in exact], "k--", label="exact")
    orders = {"0": 0.0, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0, "2": 2.0, "4": 4.0, r"$\infty$": math.inf}
    axes.set_xticks([1.0 if a == math.inf else a / (1 + a) for a in orders.values()], list(orders))
    axes.set_xlim(0, 1)
    label(axes, r"order $\alpha$ (spaced as $\alpha / (1 + \alpha)$)", r"$H_\alpha$, nats", title)
    axes.legend()
    return figure
