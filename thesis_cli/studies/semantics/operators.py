"""Norms of the maps from the embedding of X to that of f(X), in an RKHS of fixed bandwidth.

The map is bounded for few f: for the Gaussian kernel only for affine f that do not expand, for the
Laplace kernel, whose RKHS is the Sobolev space of order 1, if the slope is bounded on both sides.

The rule sum_i a_i Phi(f(x_i)) for f(e) (Scibior and Schoelkopf section 3) is also applied to infinite
expansions of known elements, cut off after some terms: they tell what f(X) is by their points, not by
the element that they sum to.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Kernel, Laplace

POINTS = 4001
"""Points of an expansion that attains a norm; its parts at the ends are 1/100 of its squared norm."""


def scaling(kernel: Kernel, factor: float) -> float:
    """Norm of the map from the embedding of X to that of c X + d; inf if it is unbounded.

    The distance of c X and c Y in the kernel of bandwidth s is that of X and Y in the kernel of
    bandwidth s / |c|. The spectral density of the latter is at most r times that of the former. For
    the Gaussian kernel r = 1 / |c| if |c| <= 1, and there is none otherwise; for the Laplace kernel r
    = max(|c|, 1 / |c|). The norm is sqrt(r).
    """
    size = abs(factor)
    if size == 0:
        return 0.0
    if isinstance(kernel, Laplace):
        return math.sqrt(max(size, 1 / size))
    return math.sqrt(1 / size) if size <= 1 else math.inf


def monotone(kernel: Kernel, least: float, largest: float) -> float:
    """Norm of the map from the embedding of X to that of f(X), if f is monotone and its slope has
    an absolute value from `least` to `largest` where X and its approximation lie; inf if it is
    unbounded.

    The squared norm of g in the RKHS of the Laplace kernel is half the integral of g^2 / s + s
    g'^2. Composed with f, the first part grows at most by 1 / least and the second at most by
    `largest`. In the RKHS of the Gaussian kernel only affine f have a bound. Raises InputError if
    not 0 <= least <= largest.
    """
    if not 0 <= least <= largest:
        raise InputError(f"slopes from {least:g} to {largest:g}", "they must be at least 0, the smaller first")
    if least == largest:
        return scaling(kernel, least)
    if isinstance(kernel, Gaussian) or least == 0:
        return math.inf
    return math.sqrt(max(largest, 1 / least))


def smooth(kernel: Kernel) -> Expansion:
    """Expansion of low frequencies, for which the norm of a contraction is attained up to 1 %."""
    return Expansion(np.asarray(kernel.bandwidth * np.linspace(-400, 400, POINTS), np.float64), np.ones(POINTS))


def steep(kernel: Kernel) -> Expansion:
    """Expansion of high frequencies, for which the norm of a multiple above 1 is attained up to 1 %
    with the Laplace kernel.
    """
    place = np.arange(POINTS - 1.0)
    window = np.sin(place * math.pi / (POINTS - 1)) ** 2
    return Expansion(kernel.bandwidth * 1e-4 * place, np.asarray(window * (-1.0) ** place, np.float64))


def largest_ratio(kernel: Kernel, factor: float) -> float:
    """Norm of the image of an expansion under x -> c x over its own norm, for the expansion that makes
    it nearly as large as possible.
    """
    given = smooth(kernel) if abs(factor) <= 1 else steep(kernel)
    return kernel.norm(given.map(lambda x: factor * x)) / kernel.norm(given)


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
