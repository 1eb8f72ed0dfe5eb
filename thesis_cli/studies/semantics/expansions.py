"""Expansions that tell what f(X) is only by their points, and not by the element that they sum to.

The rule sum_i a_i Phi(f(x_i)) for f(e) (Scibior and Schoelkopf section 3) is applied here to infinite
expansions of known elements, cut off after some terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Kernel

SPACING = 0.3
"""Distance of the points of `oscillation`."""


def vanishing_steps(count: int) -> Expansion:
    """First terms of Phi(1) + sum_n (Phi(1 / (n + 1)) - Phi(1 / n)), an expansion of Phi(0).

    Their sum is Phi(1 / count), which tends to Phi(0) for any continuous kernel.
    """
    places = 1 / np.arange(1.0, count + 1)
    points = np.concatenate([places[:1], np.column_stack([places[1:], places[:-1]]).ravel()])
    signs = np.ones(len(points))
    signs[2::2] = -1
    return Expansion(points, signs)


def positive(x: Floats) -> Floats:
    """1 where x > 0, and 0 elsewhere."""
    return np.asarray(x > 0, np.float64)


def distance_from_zero(kernel: Kernel, expansion: Expansion) -> float:
    """Distance of an expansion from Phi(0), which is Phi(f(0)) for `positive` too."""
    return kernel.distance(expansion, Expansion(np.zeros(1)))


def oscillation(order: int) -> Expansion:
    """Difference of an even order of Phi at equally spaced points about `SPACING`."""
    signs = [math.comb(order, k) * (-1.0) ** k for k in range(order + 1)]
    points = np.asarray(SPACING * (np.arange(order + 1) - order / 2 + 1), np.float64)
    return Expansion(points, np.array(signs, np.float64))


def growth(kernel: Kernel, function: Callable[[Floats], Floats], order: int) -> float:
    """Norm of the image of `oscillation` under the rule for f, over its own norm."""
    g = oscillation(order)
    return kernel.norm(g.map(function)) / kernel.norm(g)
