"""Algorithm 2 with a kernel that is Lipschitz and no smoother (Thesis Propositions 10, 11 and Lemma
5).

The kernel is k(x, y) = exp(-|x - y|), and X takes few values. A value at distance r from the nearest
synthetic point is then missed by about sqrt(2 r), the order that the proof of Lemma 5 allows. (A
Gaussian kernel is smooth: its projection error is far below the noise.) The noise is seeded: NOT
PRIVATE.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.mechanisms.mechanism import Budget, classical_scale


class Errors(NamedTuple):
    """RKHS distances of one release, the terms of Thesis eq. C.14.

    Attributes
    ----------
    total : distance of the release to mu_X.
    sample : distance of the table's embedding to mu_X.
    projection : distance of the table's embedding to its projection.
    privacy : distance of the projection to the release.
    """

    total: float
    sample: float
    projection: float
    privacy: float


def kernel_matrix(a: Floats, b: Floats) -> Floats:
    """k(x, y) = exp(-|x - y|) of all pairs of rows, shape (len(a), len(b))."""
    from scipy.spatial.distance import cdist

    return np.asarray(np.exp(-cdist(a, b)))


def rough_release(
    points: Floats, values: Floats, shares: Floats, count: int, budget: Budget, rng: np.random.Generator
) -> Errors:
    """Errors of Algorithm 2 on a fresh table of N = `count` rows, with the noise that it prints.

    Parameters
    ----------
    points : synthetic points z, different from each other, shape (M, D).
    values, shares : values of X, shape (K, D), and their probabilities, shape (K,).
    """
    from scipy.linalg import cholesky, solve_triangular

    sampled = rng.multinomial(count, shares) / count
    factor = cholesky(kernel_matrix(points, points), lower=True)
    across = solve_triangular(factor, kernel_matrix(points, values), lower=True)
    gram = kernel_matrix(values, values)
    missed = gram - across.T @ across  # what the span lacks of k(x, .), x a value of X
    noise = classical_scale(2 / count, budget) * rng.standard_normal(len(points))
    apart = across @ (sampled - shares) + noise

    def norm(weights: Floats, matrix: Floats) -> float:
        return math.sqrt(max(0.0, float(weights @ matrix @ weights)))

    return Errors(
        total=math.hypot(norm(shares, missed), float(np.linalg.norm(apart))),
        sample=norm(sampled - shares, gram),
        projection=norm(sampled, missed),
        privacy=float(np.linalg.norm(noise)),
    )
