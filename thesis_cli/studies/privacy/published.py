"""The setting of Figures 4.1 and 4.2, with the random streams of the published runs (Thesis
appendix C.2).

NumPy's legacy generator of seed 0 draws the table. Another one of seed 0 draws the public points of
Figure 4.2 and then the noise: for each number of points and each epsilon, one standard normal per
basis vector. (Appendix C.2 calls 200, 30 and 500 covariances; in the published data they are
standard deviations.) All results are NOT PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.embedding.means import distance, mean_at
from thesis_cli.privacy.kernels import Codes, RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian, classical_scale
from thesis_cli.privacy.release.subspace import Basis, Constraint, orthonormal_basis, reweighted
from thesis_cli.studies.privacy.evaluation import GaussianMixture

Points = Literal["leak", "random"]
"""Public points: rows of the table (Figure 4.1), or draws from N(0, 500^2) (Figure 4.2)."""

Setting = Literal["published", "today"]
"""Noise: the classical scale for a sensitivity of 2/N, or the scale and the sensitivity of a release today."""

Distance = tuple[str, str, float, int, int, float]
"""Row of the results: curve, noise, epsilon, number of the draw, number of points, distance."""

Generator = np.random.Generator | np.random.RandomState

ROWS, MOST_POINTS = 100_000, 10_000
EPSILONS, DELTA = (0.01, 0.1, 1.0), 1e-6
SPREAD, WIDE = 30.0, 500.0
"""Standard deviations of each component of the mixture, and of drawn public points."""
MEAN_OF_MATRIX = {2: 0.21215986369427045, 5: 0.1672984963245975}
"""`mean_of_matrix` of the table by dimension; computing it takes seconds to minutes."""


def kernel(dimension: int) -> RowKernel:
    """Kernel exp(-|x - y|^2 1e-4 / D)."""
    return RowKernel(np.full(dimension, 1e-4 / dimension), np.zeros(0))


def mixture(dimension: int) -> GaussianMixture:
    """Population of the rows: 10 Gaussians N(c_i, 30^2) of weights proportional to 1, 1/2, ..., 1/10."""
    return _mixture(dimension)[0]


def _mixture(dimension: int) -> tuple[GaussianMixture, np.random.RandomState]:
    rng = np.random.RandomState(0)
    weights = 1 / np.arange(1.0, 11.0)
    return GaussianMixture(weights / weights.sum(), rng.normal(100.0, 200.0, (10, dimension)), SPREAD), rng


def private_table(dimension: int) -> Rows:
    """Table of 100,000 rows of the mixture."""
    found, rng = _mixture(dimension)
    return found.draw(ROWS, rng)


def wide_points(dimension: int, count: int, rng: Generator) -> Rows:
    """Points from N(0, 500^2), independent of the table."""
    return Rows.of_reals(rng.normal(0.0, WIDE, (count, dimension)))


def public_points(dimension: int, kind: Points, table: Rows | None = None) -> tuple[Rows, np.random.RandomState]:
    """10,000 public points, and the generator that then draws the noise.

    Parameters
    ----------
    table : the private table, if it has been drawn already.
    """
    rng = np.random.RandomState(0)
    if kind == "random":
        return wide_points(dimension, MOST_POINTS, rng), rng
    return (table or private_table(dimension))[:MOST_POINTS], rng


def numbers_of_points() -> tuple[int, ...]:
    """Numbers M of points, some 84 from 1 to 10,000, evenly spaced on a logarithmic scale."""
    found = np.exp(np.linspace(0, math.log(MOST_POINTS), 100)).astype(int)
    return tuple(sorted({*found.tolist(), MOST_POINTS}))


def noise_scale(setting: Setting, size: int, l2_sensitivity: float, epsilon: float) -> float:
    """Standard deviation of the noise in each of `size` coordinates at DELTA.

    Parameters
    ----------
    l2_sensitivity : sensitivity of the coordinates of tables of ROWS rows; the published setting
        takes 2 / ROWS.
    """
    budget = Budget(epsilon, DELTA)
    if setting == "published":
        return classical_scale(2 / ROWS, budget)
    return OpenDPGaussian().calibrate(size, l2_sensitivity, budget).scale


@dataclass(frozen=True)
class Projection:
    """Projections of the table's embedding onto the spans of the first M public points, for several
    M.

    Distances are to the table's embedding mu. For coordinates beta instead of mu's own alpha they
    are |mu - sum_f beta_f b_f|^2 = |mu|^2 - |alpha|^2 + |alpha - beta|^2.

    Attributes
    ----------
    kernel, points : kernel, and all public points.
    basis : orthonormal basis of their span.
    numbers : values of M, ascending, n of them.
    sizes : dimension of each span, shape (n,).
    values : mu at the points, shape (points,).
    coordinates : alpha, shape (F,).
    squared_norm : |mu|^2.
    """

    kernel: RowKernel
    points: Rows
    basis: Basis
    numbers: tuple[int, ...]
    sizes: Codes
    values: Floats
    coordinates: Floats
    squared_norm: float

    @classmethod
    def of(cls, dimension: int, points: Rows, table: Rows, jobs: int = 1, progress: Tick | None = None) -> Projection:
        """Project the published table.

        Parameters
        ----------
        table : rows of `private_table`.
        """
        k = kernel(dimension)
        numbers = tuple(m for m in numbers_of_points() if m <= len(points))
        points = points[: numbers[-1]]
        values, basis = mean_at(k, [table], points, jobs, progress), orthonormal_basis(k, points)
        sizes = np.searchsorted(basis.parents, numbers)
        coordinates = basis.coordinates(values)
        return cls(k, points, basis, numbers, sizes, values, coordinates, MEAN_OF_MATRIX[dimension])

    @property
    def distances(self) -> Floats:
        """Distances of the projections, shape (n,)."""
        return np.sqrt(np.maximum(self.squared_norm - np.cumsum(self.coordinates**2), 0))[self.sizes - 1]

    @property
    def baseline(self) -> Floats:
        """Distances of uniform weights, shape (n,)."""
        count = len(self.points)
        rows = (self.kernel.matrix(self.points[m : m + 1], self.points[: m + 1]) for m in range(count))
        up_to_diagonal = np.array([float(row.sum()) for row in rows])
        size = np.array(self.numbers)
        mean = (2 * np.cumsum(up_to_diagonal) - np.arange(1, count + 1))[size - 1] / size**2
        squared = mean - 2 * np.cumsum(self.values)[size - 1] / size + self.squared_norm
        return np.asarray(np.sqrt(np.maximum(squared, 0)))

    def scales(self, setting: Setting) -> Floats:
        """Scales of the noise at each epsilon; today's sensitivity is that of the largest span, a
        bound for all spans."""
        sensitivity = self.basis.l2_sensitivity(self.kernel, self.points, ROWS) if setting == "today" else math.nan
        return np.array([noise_scale(setting, len(self.coordinates), sensitivity, epsilon) for epsilon in EPSILONS])

    def released(self, scales: Floats, rng: Generator) -> Floats:
        """Distances of Algorithm 2, shape (scales, n); noise is drawn for each M and then for each scale."""
        missed, noise = self.distances**2, np.empty((len(scales), len(self.numbers)))
        for i, size in enumerate(self.sizes):
            for e, scale in enumerate(scales):
                noise[e, i] = ((scale * rng.standard_normal(size)) ** 2).sum()
        return np.asarray(np.sqrt(missed + noise))

    def constrained(self, points: int, scale: float, constraint: Constraint, rng: Generator) -> float:
        """Distance of Algorithm 2 at one M, with weights under a constraint."""
        basis, first = self.basis.first(points), self.points[:points]
        part = self.coordinates[: len(basis.parents)]
        noised = part + scale * rng.standard_normal(part.size)
        weights = reweighted(self.kernel, first, basis, noised, constraint)
        return distance(self.kernel, first, weights, self.values[:points], self.squared_norm)


def algorithm_2(
    dimension: int, kind: Points, seed: np.random.SeedSequence, most: int, draws: int, constrained: Sequence[int]
) -> list[Distance]:
    """Distances of Algorithm 2 and of its references, by number M of points.

    The curves are "projection"; "baseline"; "Algorithm 2" with the noise of either `Setting` from
    the same draws, or with that of the published "run"; and "simplex", with today's noise and
    weights on the simplex.

    Parameters
    ----------
    draws : number of draws of fresh noise, from `seed`.
    constrained : numbers of points at which weights are on the simplex.
    """
    table = private_table(dimension)
    points, stream = public_points(dimension, kind, table)
    found = Projection.of(dimension, points[:most], table)
    rows: list[Distance] = []

    def add(curve: str, noise: str, epsilon: float, draw: int, numbers: Sequence[int], distances: Floats) -> None:
        rows.extend((curve, noise, epsilon, draw, m, d) for m, d in zip(numbers, distances.tolist(), strict=True))

    def release(noise: str, scales: Floats, rng: Generator, draw: int = 0) -> None:
        for epsilon, distances in zip(EPSILONS, found.released(scales, rng), strict=True):
            add("Algorithm 2", noise, epsilon, draw, found.numbers, distances)

    add("projection", "none", math.nan, 0, found.numbers, found.distances)
    add("baseline", "none", math.nan, 0, found.numbers, found.baseline)
    published, today = found.scales("published"), found.scales("today")
    release("run", published, stream)
    for draw, child in enumerate(seed.spawn(draws)):
        free, held = child.spawn(2)
        release("published", published, np.random.default_rng(free), draw)
        release("today", today, np.random.default_rng(free), draw)
        rng = np.random.default_rng(held)
        for epsilon, scale in zip(EPSILONS, today, strict=True):
            distances = np.array([found.constrained(m, scale, "simplex", rng) for m in constrained])
            add("simplex", "today", epsilon, draw, constrained, distances)
    return rows
