"""Figure of an embedding: its distribution function, and the embedding as a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.embeddings.expansion import Expansion
    from thesis_cli.embeddings.kernels import Kernel

PLACES = 400
"""Places at which the embedding is drawn."""
LONGEST = 80
"""Characters of an expression in a title."""


def draw_embedding(expansion: Expansion, kernel: Kernel, text: str) -> Figure:
    """Sum of the weights of points up to x, and sum_m w_m k(x_m, x), against x."""
    import numpy as np

    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 2)
    left, right = axes
    points, weights = expansion.points[:, 0], expansion.weights
    order = np.argsort(points, kind="stable")
    margin = max(float(np.ptp(points)) * 0.05, kernel.bandwidth)
    low, high = float(points.min()) - margin, float(points.max()) + margin
    xs = np.concatenate([[low], points[order], [high]])
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    left.step(xs, np.append(sums, sums[-1]), where="post", color=COLOURS[0])
    label(left, "value x", "weight of points up to x")
    places = np.linspace(low, high, PLACES)
    right.plot(places, kernel.values(expansion, places[:, np.newaxis]), color=COLOURS[0])
    right.plot(points, np.zeros_like(points), "|", color=COLOURS[6], markersize=5, label="points")
    right.legend(loc="best")
    label(right, "value x", "embedding at x")
    shown = " ".join(text.split())
    figure.suptitle(shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "...", parse_math=False)
    return figure
