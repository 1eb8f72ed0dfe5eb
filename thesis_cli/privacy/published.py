"""The setting of Figures 4.1 and 4.2, with the random streams of the published runs (Thesis appendix C.2).

NumPy's legacy generator, seed 0, draws the table, and, from a fresh start, the public points of Figure 4.2 and then the
noise: for each number of points, for each epsilon, one standard normal per basis vector. (Appendix C.2 calls 200, 30
and 500 covariances; the published data has them as standard deviations.) All of it is NOT PRIVATE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.privacy.embedding import Progress, mean_at
from thesis_cli.privacy.kernels import Floats, Kernel, Rows
from thesis_cli.privacy.mechanism import Budget
from thesis_cli.privacy.seeded import SeededGaussian
from thesis_cli.privacy.subspace import orthonormal_basis

Points = Literal["leak", "random"]
"""Rows of the table (Figure 4.1), or draws from N(0, 500^2) (Figure 4.2)."""

ROWS, MOST_POINTS = 100_000, 10_000
EPSILONS, DELTA = (0.01, 0.1, 1.0), 1e-6

MEAN_OF_MATRIX = {2: 0.21215986369427045, 5: 0.1672984963245975}
"""`mean_of_matrix` of the table by dimension, which takes seconds to minutes."""


@dataclass(frozen=True)
class Curves:
    """RKHS distances to the table's embedding by number of points.

    Attributes
    ----------
    points : numbers M of points, shape (n,).
    projection : before noise, shape (n,).
    released : of Algorithm 2, shape (epsilons, n).
    baseline : of uniform weights, shape (n,).
    """

    points: tuple[int, ...]
    projection: Floats
    released: Floats
    baseline: Floats


def kernel(dimension: int) -> Kernel:
    """exp(-|x - y|^2 1e-4 / D)."""
    return Kernel(np.full(dimension, 1e-4 / dimension), np.zeros(0))


def private_table(dimension: int) -> Rows:
    """100,000 rows of a mixture of 10 Gaussians with weights proportional to 1, 1/2, ..., 1/10."""
    rng = np.random.RandomState(0)
    centres = rng.normal(100.0, 200.0, (10, dimension))
    weights = 1 / np.arange(1.0, 11.0)
    members = rng.choice(10, ROWS, p=weights / weights.sum())
    return Rows.of_reals(rng.normal(centres[members], 30.0))


def public_points(dimension: int, kind: Points, table: Rows | None = None) -> tuple[Rows, np.random.RandomState]:
    """10,000 points, and the generator that goes on to draw the noise.

    Parameters
    ----------
    table : the private table, if it is at hand.
    """
    rng = np.random.RandomState(0)
    if kind == "random":
        return Rows.of_reals(rng.normal(0.0, 500.0, (MOST_POINTS, dimension))), rng
    return (table or private_table(dimension))[:MOST_POINTS], rng


def numbers_of_points() -> tuple[int, ...]:
    """Some 84 numbers M from 1 to 10,000, evenly spaced on a logarithmic scale."""
    found = np.exp(np.linspace(0, math.log(MOST_POINTS), 100)).astype(int)
    return tuple(sorted({*found.tolist(), MOST_POINTS}))


def algorithm_2(
    dimension: int, kind: Points, most: int = MOST_POINTS, jobs: int = 1, progress: Progress | None = None
) -> Curves:
    """The published curves of Algorithm 2, noise and all, up to `most` points.

    Distances are those of coordinates: alpha of the projection, beta with noise, |mu - sum_f beta_f b_f|^2 =
    |mu|^2 - |alpha|^2 + |alpha - beta|^2.
    """
    numbers = tuple(m for m in numbers_of_points() if m <= most)
    table, k = private_table(dimension), kernel(dimension)
    points, rng = public_points(dimension, kind, table)
    points = points[: numbers[-1]]
    values = mean_at(k, [table], points, jobs, progress)
    basis = orthonormal_basis(k, points)
    squared_norm = MEAN_OF_MATRIX[dimension]
    alpha = basis.coordinates(values)
    missed = np.maximum(squared_norm - np.cumsum(alpha**2), 0)
    noise = SeededGaussian(rng, "classical", published=True)
    projection, released = np.empty(len(numbers)), np.empty((len(EPSILONS), len(numbers)))
    for i, m in enumerate(numbers):
        part = alpha[: basis.first(m).parents.size]
        projection[i] = missed[part.size - 1]
        for e, epsilon in enumerate(EPSILONS):
            noised = noise.add(part, 2 / ROWS, Budget(epsilon, DELTA)).values
            released[e, i] = projection[i] + float(((noised - part) ** 2).sum())
    return Curves(numbers, np.sqrt(projection), np.sqrt(released), _baseline(k, points, values, numbers, squared_norm))


def _baseline(k: Kernel, points: Rows, values: Floats, numbers: tuple[int, ...], squared_norm: float) -> Floats:
    """Of nested sets of points: row m of the kernel's matrix is summed up to its diagonal and counted twice."""
    sums = np.array([float(k.matrix(points[m : m + 1], points[: m + 1]).sum()) for m in range(len(points))])
    size = np.array(numbers)
    mean = (2 * np.cumsum(sums) - np.arange(1, len(points) + 1))[size - 1] / size**2
    squared = mean - 2 * np.cumsum(values)[size - 1] / size + squared_norm
    return np.asarray(np.sqrt(np.maximum(squared, 0)))
