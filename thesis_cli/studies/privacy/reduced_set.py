"""Algorithm 3 with the reduced set method of the thesis's published code.

Thesis Algorithm 3 leaves the method open; that of Figure 4.2 is in the authors' repository
RKHS-private-database (`experiment_rf` in `src/experiments.py`), and is written again here. Points
are found one by one, each as an approximate pre-image of what those before it miss, and a Lasso
then gives all of them new weights. It does not hold the weights to sum |w| <= 1, as eq. 4.7 does.
All noise is seeded: NOT PRIVATE.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.embedding.kernels import TILE, cosine_sine
from thesis_cli.privacy.kernels import Rows

STEPS, RATE = 100, 100.0
"""Steps of Adam for each point, and their size; the published results record both."""
FIRST, SECOND, LEAST = 0.9, 0.999, 1e-8
"""Decay of Adam's two averages, and what it adds to a root."""
PENALTY = 100.0
"""The published Lasso minimises |target - sum_m w_m phi(z_m)|^2 + PENALTY / N sum_m |w_m|."""


_u: Any = numba.uint64


@helper()
def _loss(frequencies: Floats, phases: Floats, residual: Floats, point: Floats, gradient: Floats) -> float:
    """Compute `projection_loss` and set its gradient, in one pass: each lane of a tile has sums of its own."""
    width, dimension = phases.shape[0], point.shape[0]
    cosines, sines = np.empty(TILE), np.empty(TILE)
    inner, norm = np.zeros(TILE), np.zeros(TILE)
    own, missed = np.zeros((dimension, TILE)), np.zeros((dimension, TILE))
    for start in range(0, width, TILE):
        size = min(TILE, width - start)
        left, shifts, slopes = residual[start : start + size], phases[start : start + size], frequencies[:, start:]
        for j in range(_u(size)):
            cosines[j] = shifts[j]  # first holds the angles
        for d in range(dimension):
            x, slope = point[d], slopes[d]
            for j in range(_u(size)):
                cosines[j] += x * slope[j]
        for j in range(_u(TILE)):
            cosines[j], sines[j] = cosine_sine(cosines[j])
        for j in range(_u(size)):
            inner[j] += left[j] * cosines[j]
            norm[j] += cosines[j] * cosines[j]
        for d in range(dimension):
            slope, by_own, by_missed = slopes[d], own[d], missed[d]
            for j in range(_u(size)):
                by_own[j] -= slope[j] * (cosines[j] * sines[j])
                by_missed[j] -= slope[j] * (left[j] * sines[j])
    best = inner.sum() / norm.sum()
    for d in range(dimension):
        gradient[d] = 2 * best * (best * own[d].sum() - missed[d].sum())
    return -best * inner.sum()  # type: ignore[no-any-return]


@kernel()
def loss_and_gradient(frequencies: Floats, phases: Floats, residual: Floats, point: Floats, gradient: Floats) -> float:
    """Compute `projection_loss`, and set its gradient."""
    return _loss(frequencies, phases, residual, point, gradient)


@kernel()
def adam(frequencies: Floats, phases: Floats, residual: Floats, point: Floats) -> None:
    """Move a point by STEPS steps of Adam down `projection_loss`."""
    gradient, first, second = np.zeros_like(point), np.zeros_like(point), np.zeros_like(point)
    for step in range(1, STEPS + 1):
        _loss(frequencies, phases, residual, point, gradient)
        size = RATE * math.sqrt(1 - SECOND**step) / (1 - FIRST**step)
        for d in range(point.shape[0]):
            first[d] = FIRST * first[d] + (1 - FIRST) * gradient[d]
            second[d] = SECOND * second[d] + (1 - SECOND) * gradient[d] ** 2
            point[d] -= size * first[d] / (math.sqrt(second[d]) + LEAST)


@dataclass(frozen=True)
class PhasedFeatures:
    """phi(x) = sqrt(2/J) cos(w . x + b), the random Fourier features of the published code.

    Their norm is 1 on average only (docs/errata.md, "4.5, norm of random features").

    Attributes
    ----------
    frequencies : w, shape (D, J).
    phases : b, shape (J,).
    """

    frequencies: Floats
    phases: Floats

    @classmethod
    def draw(cls, gamma: float, dimension: int, count: int, rng: np.random.RandomState) -> PhasedFeatures:
        """Draw J = `count` features of exp(-gamma |x - y|^2), in the order of the published code."""
        frequencies = rng.standard_normal((dimension, count)) * math.sqrt(2 * gamma)
        return cls(frequencies, 2 * math.pi * rng.random_sample(count))

    def embed(self, point: Floats) -> Floats:
        """phi of a point, shape (J,)."""
        return np.asarray(math.sqrt(2 / len(self.phases)) * np.cos(point @ self.frequencies + self.phases))

    def mean(self, table: Rows) -> Floats:
        """Mean of phi over a table, shape (J,) (Algorithm 3, line 3)."""
        cosines, sines = Features(np.ascontiguousarray(self.frequencies.T), ()).mean([table]).reshape(2, -1)
        return np.asarray(math.sqrt(2) * (np.cos(self.phases) * cosines - np.sin(self.phases) * sines))


def projection_loss(phi: PhasedFeatures, residual: Floats, point: Floats) -> tuple[float, Floats]:
    """-(residual . phi(z))^2 / |phi(z)|^2, what the best multiple of phi(z) takes off the squared residual.

    Parameters
    ----------
    residual : shape (J,).
    point : z, shape (D,).

    Returns
    -------
    loss, gradient : the number, and its gradient in z, shape (D,).
    """
    gradient = np.empty(len(point))
    return loss_and_gradient(phi.frequencies, phi.phases, residual, point, gradient), gradient


def pre_image(phi: PhasedFeatures, residual: Floats, start: Floats) -> Floats:
    """Point after STEPS steps of Adam down `projection_loss` from `start`, shape (D,)."""
    point = start.copy()
    adam(phi.frequencies, phi.phases, residual, point)
    return point


def reduced_sets(
    phi: PhasedFeatures, target: Floats, starts: Floats, numbers: Sequence[int], rows: int
) -> tuple[Floats, list[Floats]]:
    """Points and weights of Algorithm 3, line 6, for several numbers M of points.

    Parameters
    ----------
    target : noised mean of the features, shape (J,).
    starts : where the descent to each point begins, shape (at least the largest M, D).
    numbers : values of M, ascending; the first M points are those of M.
    rows : N, for the Lasso's penalty.

    Returns
    -------
    points, weights : shape (largest M, D), and for each M an array of shape (M,).
    """
    points = np.empty((numbers[-1], starts.shape[1]))
    features = np.empty((len(target), len(points)), order="F")
    residual, weights = target, []
    for m in range(len(points)):
        points[m] = pre_image(phi, residual, starts[m])
        features[:, m] = at = phi.embed(points[m])
        residual = residual - (residual @ at) / (at @ at) * at
        if m + 1 in numbers:
            weights.append(lasso(features[:, : m + 1], target, PENALTY / rows))
    return points, weights


def lasso(features: Floats, target: Floats, penalty: float) -> Floats:
    """Weights w that minimise |target - features w|^2 + penalty sum |w_m|, shape (M,).

    Parameters
    ----------
    features : phi of each point, shape (J, M).
    target : shape (J,).
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    alpha = penalty / (2 * len(target))  # scikit-learn has 1 / (2 J) before the square, and no 2 before the penalty
    with warnings.catch_warnings():  # the published fits end after as many steps, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(Lasso(alpha=alpha, fit_intercept=False).fit(features, target).coef_)
