"""Conditional mean embeddings (Song, Huang, Smola and Fukumizu 2009; Scibior and Schoelkopf section
5).

Rows (x_r, y_r) with weights w_r are a joint expansion. The embedding of X given Y = y is sum_r b_r
Phi(x_r), where b predicts Phi(x) from y by ridge regression in the RKHS of y. Here the regression
has an intercept, so that the b_r sum to 1. Of the bandwidths and then of the ridges whose error on rows
left out is near the least, it takes the smallest: the b_r are then large near y and small
elsewhere, and few of them are negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.embeddings.expansion import Expansion

WIDTHS = (0.1, 0.2, 0.35, 0.5, 1.0, 2.0)
"""Bandwidths that are tried, for normal scores of what is observed."""
TOLERANCE = 1.03
"""Error on rows left out, in units of the least, up to which a smaller bandwidth or ridge is taken."""
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)
"""Ridges that are tried, in units of the largest eigenvalue."""
JUDGED = 4000
"""Largest number of rows from which bandwidth and ridge are chosen."""
RANK, PRECISION = 100, 1e-10
"""Largest rank of a kernel matrix, and what is left of its diagonal beyond that rank."""
PREDICTED = 10
"""Features of x whose prediction is judged."""
NEAR = 1e-5
"""Least mean kernel, of bandwidth 0.2, of the observed rows with the observed value."""
FEWEST, FEW = 8, 64
"""Most values of a discrete variable: any 8, or up to 64 if each has 8 rows. The rows with the
observed value then have its conditional distribution, which is what a ridge of 0 gives.
"""
TAIL = 1e-12
"""Least share that has a normal score."""


@dataclass(frozen=True)
class LowRank:
    """Features F with F F^T near the matrix of a Gaussian kernel, by its pivoted Cholesky factor.

    Attributes
    ----------
    features : shape (rows, rank).
    pivots : points of the pivots, shape (rank, d).
    factor : rows of the features at the pivots, lower triangular, shape (rank, rank).
    width : bandwidth of the kernel.
    """

    features: Floats
    pivots: Floats
    factor: Floats
    width: float

    @classmethod
    def of(cls, points: Floats, width: float, rank: int) -> LowRank:
        """Factor of the kernel matrix of points of shape (rows, d)."""
        features = np.zeros((len(points), rank))
        left, pivots = np.ones(len(points)), []
        for k in range(min(rank, len(points))):
            pivot = int(np.argmax(left))
            if left[pivot] < PRECISION:
                break
            column = _kernel(points, points[pivot], width) - features[:, :k] @ features[pivot, :k]
            features[:, k] = column / np.sqrt(left[pivot])
            left = np.maximum(left - features[:, k] ** 2, 0.0)
            pivots.append(pivot)
        features = features[:, : len(pivots)]
        return cls(features, points[pivots], features[pivots], width)

    def at(self, point: Floats) -> Floats:
        """Features of one further point, shape (rank,)."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.factor, _kernel(self.pivots, point, self.width), lower=True))


def _kernel(points: Floats, point: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((points - point) ** 2).sum(1) / width**2))


def conditional_weights(weights: Floats, observed: Floats, at: Floats, predicted: Floats) -> Floats | None:
    """Weights b of the conditional mean embedding, of sum 1 and of any sign.

    Parameters
    ----------
    weights : weights of the rows, 0 or more and of sum 1, shape (rows,).
    observed : observed values of each row, shape (rows, d).
    at : observed value, shape (d,).
    predicted : values whose distribution is conditioned, shape (rows, p).

    Returns
    -------
    weights : shape (rows,); None if no row is near the observed value.
    """
    parts = [_scores(weights, column, value) for column, value in zip(observed.T, at, strict=True)]
    if any(part is None for part in parts):
        return None
    y = np.stack([part[0] for part in parts if part is not None], axis=-1)
    point = np.array([part[1] for part in parts if part is not None])
    found = [np.unique(column) for column in observed.T]
    if all(len(values) <= max(FEWEST, min(FEW, len(weights) // FEWEST)) for values in found):
        equal = weights * (observed == at).all(1)
        return equal / equal.sum() if equal.sum() > 0 else None
    if not weights @ _kernel(y, point, 0.2) > NEAR:
        return None
    spread = np.sqrt(weights @ (predicted - weights @ predicted) ** 2)
    part = _some(weights)
    some = weights[part] / weights[part].sum()
    targets = LowRank.of(predicted[part] / np.where(spread > 0, spread, 1.0), 1.0, PREDICTED).features
    tried = [_Ridge.of(some, y[part], width) for width in WIDTHS]
    errors = [ridge.errors(targets - some @ targets) for ridge in tried]
    best = min(min(found) for found in errors)
    k = next(k for k, found in enumerate(errors) if min(found) <= TOLERANCE * best)
    chosen = next(ridge for ridge, error in zip(RIDGES, errors[k], strict=True) if error <= TOLERANCE * best)
    return (tried[k] if len(some) == len(weights) else _Ridge.of(weights, y, WIDTHS[k])).weights_at(point, chosen)


def _scores(weights: Floats, column: Floats, at: float) -> tuple[Floats, float] | None:
    """Normal scores of observed numbers, and that of the observed value; None if it is beyond them.

    A scale of their own would not suit heavy tails.
    """
    values, places = np.unique(column, return_inverse=True)
    if not values[0] <= at <= values[-1]:
        return None
    shares = np.bincount(places, weights)
    scores = ndtri(np.clip(np.cumsum(shares) - shares / 2, TAIL, 1 - TAIL))
    return scores[places], float(np.interp(at, values, scores))


def _some(weights: Floats) -> Ints:
    """At most `JUDGED` rows, spread over all."""
    count = len(weights)
    if count <= JUDGED:
        return np.arange(count)
    # A step that shares no factor with the number of rows meets every part of a grid of rows.
    golden = int(0.618 * count)
    while math.gcd(golden, count) > 1:
        golden += 1
    return np.sort(np.arange(JUDGED) * golden % count)


@dataclass(frozen=True)
class _Ridge:
    """Weighted ridge regressions with an intercept on features of y, for all ridges at once.

    Attributes
    ----------
    weights : weights of the rows, shape (rows,).
    features : features of y, and their weighted mean.
    values, vectors : eigenvalues and eigenvectors of their covariance.
    turned : centred features in the coordinates of the eigenvectors, shape (rows, rank).
    """

    weights: Floats
    features: LowRank
    mean: Floats
    values: Floats
    vectors: Floats
    turned: Floats

    @classmethod
    def of(cls, weights: Floats, y: Floats, width: float) -> _Ridge:
        features = LowRank.of(y, width, RANK)
        mean = weights @ features.features
        centred = features.features - mean
        values, vectors = np.linalg.eigh((centred.T * weights) @ centred)
        return cls(weights, features, mean, np.maximum(values, 0.0), vectors, centred @ vectors)

    def _inverse(self, ridge: float) -> Floats:
        return np.asarray(1 / (self.values + ridge * max(float(self.values[-1]), 1e-12)))

    def errors(self, targets: Floats) -> list[float]:
        """Weighted mean squared error of each ridge on rows left out, for centred targets."""
        aim, squares = self.turned.T @ (self.weights[:, np.newaxis] * targets), self.turned**2
        found = []
        for ridge in RIDGES:
            inverse = self._inverse(ridge)
            own = np.minimum(self.weights * (1 + squares @ inverse), 1 - 1e-9)
            residual = (targets - self.turned @ (inverse[:, np.newaxis] * aim)) / (1 - own)[:, np.newaxis]
            found.append(float(self.weights @ (residual**2).sum(1)))
        return found

    def weights_at(self, point: Floats, ridge: float) -> Floats:
        """Weights of the rows in the prediction at a point."""
        place = (self.features.at(point) - self.mean) @ self.vectors
        return np.asarray(self.weights * (1 + self.turned @ (self._inverse(ridge) * place)))


def monotone(expansion: Expansion) -> Expansion:
    """The measure of weights 0 or more and of the same total whose distribution function is nearest
    in the mean square, on the same points.

    The points are in increasing order and the total is above 0. The mean stays, unless the
    distribution function leaves 0 to 1.
    """
    from scipy.optimize import isotonic_regression

    total = expansion.total
    sums = np.cumsum(expansion.weights) / total
    if len(sums) == 1:
        return expansion
    gaps = np.diff(expansion.points[:, 0])
    fitted = np.clip(isotonic_regression(sums[:-1], weights=gaps).x, 0.0, 1.0)
    weights = np.diff(fitted, prepend=0.0, append=1.0)
    kept = weights > 0
    return Expansion(expansion.points[kept], total * weights[kept])
