"""Embeddings of normal and uniform laws in the RKHS of the Gaussian kernel, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import BLOCK, Gaussian

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)
"""Quadrature on [-1, 1], exact to rounding for a Gaussian of standard deviation 1 or more."""


@dataclass(frozen=True)
class Laws:
    """Mixture of the laws of c + s Z + h U, with Z standard normal and U uniform on [-1, 1]. Raises
    InputError for shapes that do not fit, or numbers that are not finite or out of range.

    Attributes
    ----------
    centres, deviations, halfwidths : c, s >= 0 and h >= 0, shape (n,) each; s = 0 is a uniform law,
        h = 0 a normal one, both 0 a constant.
    weights : weights of any sign, shape (n,).
    """

    centres: Floats = field(repr=False)
    deviations: Floats = field(repr=False)
    halfwidths: Floats = field(repr=False)
    weights: Floats = field(repr=False)

    def __post_init__(self) -> None:
        arrays = (self.centres, self.deviations, self.halfwidths, self.weights)
        if len({a.shape for a in arrays}) > 1 or self.centres.ndim != 1 or not self.centres.size:
            raise InputError(f"laws of shapes {[a.shape for a in arrays]}", "all must have one shape (n,)")
        if not all(np.isfinite(a).all() for a in arrays) or (self.deviations < 0).any() or (self.halfwidths < 0).any():
            raise InputError("parameters of a law are out of range", "they must be finite, scales at least 0")

    def __len__(self) -> int:
        return len(self.centres)

    @classmethod
    def normal(cls, mean: float, sd: float) -> Laws:
        """Normal law."""
        return cls(*(np.array([x], np.float64) for x in (mean, sd, 0.0, 1.0)))

    @classmethod
    def uniform(cls, low: float, high: float) -> Laws:
        """Uniform law on [low, high]."""
        return cls(*(np.array([x], np.float64) for x in ((low + high) / 2, 0.0, (high - low) / 2, 1.0)))

    @classmethod
    def points(cls, expansion: Expansion) -> Laws:
        """Mixture of constants, the points of an expansion on the line."""
        nothing = np.zeros(len(expansion))
        return cls(expansion.points[:, 0], nothing, nothing, expansion.weights)

    def minus(self, other: Laws) -> Laws:
        """Difference of two mixtures."""
        pairs = (
            (self.centres, other.centres),
            (self.deviations, other.deviations),
            (self.halfwidths, other.halfwidths),
            (self.weights, -other.weights),
        )
        return Laws(*(np.concatenate(pair) for pair in pairs))

    def inner(self, other: Laws, kernel: Gaussian) -> float:
        """Inner product of the embeddings of two mixtures, in time proportional to the product of
        their sizes.
        """
        rows = max(1, BLOCK // (len(NODES) * len(other)))
        parts = (slice(start, start + rows) for start in range(0, len(self), rows))
        return math.fsum(
            float(self.weights[part] @ self._matrix(part, other, kernel) @ other.weights) for part in parts
        )

    def _matrix(self, rows: slice, other: Laws, kernel: Gaussian) -> Floats:
        """Means of k(X, Y) for X from some of the laws and Y from each of the other's."""
        apart = np.subtract.outer(self.centres[rows], other.centres)
        sd = np.sqrt(kernel.bandwidth**2 + np.add.outer(self.deviations[rows] ** 2, other.deviations**2))
        h, g = (np.broadcast_to(a, sd.shape) for a in (self.halfwidths[rows, np.newaxis], other.halfwidths))
        found = _mean_bump(apart / sd, np.maximum(h, g) / sd, np.minimum(h, g) / sd)
        return np.asarray(kernel.bandwidth / sd * found)

    def norm(self, kernel: Gaussian) -> float:
        """RKHS norm; its square is exact to rounding, some 1e-15 of the squared sum of |w|."""
        return math.sqrt(max(0.0, self.inner(self, kernel)))

    def distance(self, other: Laws | Expansion, kernel: Gaussian) -> float:
        """RKHS distance to another mixture, or to an expansion on the line."""
        if isinstance(other, Laws):
            return self.minus(other).norm(kernel)
        # Sums over pairs of points are fast.
        cross = self.inner(Laws.points(other), kernel)
        return math.sqrt(max(0.0, self.inner(self, kernel) - 2 * cross + kernel.inner(other, other)))


def _mean_bump(apart: Floats, wide: Floats, narrow: Floats) -> Floats:
    """Mean of exp(-(d + h U + g V)^2 / 2) over independent uniform U and V on [-1, 1], h >= g.

    Means over less than a standard deviation are quadratures, since the differences of the closed
    form would cancel.
    """
    found = np.empty_like(apart)
    short = narrow <= 0.5
    both = ~short
    d, h, g = apart[short], wide[short], narrow[short]
    found[short] = _mean_over(d[:, np.newaxis] + np.multiply.outer(g, NODES), h[:, np.newaxis]) @ NODE_WEIGHTS / 2
    d, h, g = apart[both], wide[both], narrow[both]
    corners = _twice_integrated(d + h + g) - _twice_integrated(d + h - g)
    corners += _twice_integrated(d - h - g) - _twice_integrated(d - h + g)
    found[both] = np.maximum(corners, 0.0) / (4 * h * g)
    return found


def _mean_over(d: Floats, h: Floats) -> Floats:
    """Mean of exp(-(d + h U)^2 / 2) over U uniform on [-1, 1]."""
    from scipy.special import ndtr

    h = np.broadcast_to(h, d.shape)
    found = np.empty_like(d)
    short = h <= 0.5
    places = d[short][:, np.newaxis] + np.multiply.outer(h[short], NODES)
    found[short] = np.exp(-0.5 * places**2) @ NODE_WEIGHTS / 2
    d, h = -np.abs(d[~short]), h[~short]
    found[~short] = math.sqrt(math.pi / 2) * (ndtr(d + h) - ndtr(d - h)) / h
    return found


def _twice_integrated(t: Floats) -> Floats:
    """Second antiderivative of exp(-t^2 / 2), even in t."""
    from scipy.special import erf

    return np.asarray(math.sqrt(math.pi / 2) * t * erf(t / math.sqrt(2)) + np.exp(-0.5 * t**2))
