"""Figure of two-sample tests: the p-value of each beside the level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def p_values_figure(tests: Sequence[str], p_values: Sequence[float], draws: Sequence[float], level: float) -> Figure:
    """The p-value of each test; one that its draws cannot resolve is an arrow.

    Parameters
    ----------
    tests : names; the first one gives the verdict.
    draws : draws under the null hypothesis, which resolve a p-value of 1 / (1 + draws).
    level : line left of which a test finds a difference.
    """
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 1, height=1.2 + 0.3 * len(tests))
    for row, (p, count) in enumerate(zip(p_values, draws, strict=True)):
        least = 1 / (1 + count)
        axes.plot([least, 1], [row, row], color="0.8", label="resolved by the draws" if not row else None)
        axes.plot([p], [row], "<" if p <= least else "o", color=COLOURS[min(row, 1)], markersize=6)
    axes.axvline(level, color="black", linestyle="--", label=f"level {level:g}")
    axes.set(xscale="log", xlim=(None, 1.5))
    axes.set_yticks(range(len(tests)), tests)
    axes.set_ylim(len(tests) - 0.5, -0.5)
    verdict = "the populations differ" if p_values[0] <= level else "no difference found"
    label(axes, "p-value", "", f"{verdict}, by {tests[0]}")
    figure.legend(loc="outside right upper")
    return figure
