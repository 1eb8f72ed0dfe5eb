"""Norms of the maps from the embedding of X to that of f(X), in an RKHS of fixed bandwidth.

The map is bounded for few f: for the Gaussian kernel only for affine f that do not expand, for the
Laplace kernel, whose RKHS is the Sobolev space of order 1, if the slope is bounded on both sides.
"""

from __future__ import annotations

import math

import numpy as np

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

    The squared norm of g in the RKHS of the Laplace kernel is half the integral of g^2 / s + s g'^2.
    Composed with f, the first part grows at most by 1 / least and the second at most by `largest`.
    In the RKHS of the Gaussian kernel only affine f have a bound.

    Raises
    ------
    InputError : not 0 <= least <= largest.
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
