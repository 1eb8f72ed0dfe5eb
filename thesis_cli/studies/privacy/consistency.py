"""Releases of ever larger tables, and their errors as estimates of the population (Thesis Theorems 10,
11, 13, Corollary 14, eqs. 4.5 and 4.6, appendix C.2.1).

X has finitely many values, on a grid in the unit square, so that every embedding is known exactly and
X is compact. The noise is seeded: NOT PRIVATE.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.simplex import simplex_weights
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.embedding.means import distance, mean_at, squared_norm
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release.subspace import Constraint, orthonormal_basis, reweighted
from thesis_cli.studies.privacy import published
from thesis_cli.studies.privacy.seeded import SeededGaussian

BUDGET = Budget(1.0, 1e-6)
SIDE = 17
GRID = Rows.of_reals(np.stack(np.meshgrid(*2 * [np.linspace(0, 1, SIDE)]), -1).reshape(-1, 2))
"""Values that X may take."""
PLANE, LINE = (RowKernel(np.full(d, 8.0), np.zeros(0)) for d in (2, 1))
IMAGES = {
    "product": Rows.of_reals(GRID.reals.prod(1, keepdims=True)),
    "maximum": Rows.of_reals(GRID.reals.max(1, keepdims=True)),
}
"""Functions of X: their values on the grid."""
BOUNDED: dict[str, tuple[Constraint, float]] = {"C = 1": ("l1", 1.0), "C = 2": ("l1", 2.0)}
FUNCTIONS = 20
"""Functions h whose means are estimated."""


class WeightedPoints(NamedTuple):
    """Weights of points."""

    points: Rows
    weights: Floats


def shares(rng: np.random.Generator) -> Floats:
    """Probabilities of the values of the grid: three bumps at random places."""
    centres, widths = rng.random((3, 2)), rng.uniform(0.1, 0.3, 3)
    squared = ((GRID.reals[:, np.newaxis] - centres) ** 2).sum(-1)
    found = np.exp(-squared / (2 * widths**2)).sum(1)
    return np.asarray(found / found.sum())


def releases(probabilities: Floats, rows: int, rng: np.random.Generator) -> tuple[dict[str, WeightedPoints], float]:
    """Releases of a fresh table of N rows, and the projection error of the first.

    Algorithm 2 has sqrt(N) points, uniform on the square; Algorithm 3 has N^(2/3) pairs of features
    and the best weights of the grid, so that eq. 4.7 is solved exactly.
    """
    table = rng.multinomial(rows, probabilities) / rows
    points = Rows.of_reals(rng.random((round(math.sqrt(rows)), 2)))
    basis, noise = orthonormal_basis(PLANE, points), SeededGaussian(rng)
    values = PLANE.matrix(points, GRID) @ table
    alpha = basis.coordinates(values)
    noised = noise.add(alpha, basis.l2_sensitivity(PLANE, points, rows), BUDGET).values
    found = {"Algorithm 2": WeightedPoints(points, reweighted(PLANE, points, basis, noised, "raw"))}
    for name, (constraint, most) in BOUNDED.items():
        found[name] = WeightedPoints(points, reweighted(PLANE, points, basis, noised, constraint, most))
    features = draw_features(PLANE, (), 2 * round(rows ** (2 / 3)), rng)
    embedded = features.embed(GRID)
    target = noise.add(table @ embedded, features.l2_sensitivity(rows), BUDGET).values
    found["Algorithm 3"] = WeightedPoints(GRID, simplex_weights(embedded @ embedded.T, embedded @ target))
    norm = float(table @ PLANE.matrix(GRID, GRID) @ table)
    return found, distance(PLANE, points, basis.expand(alpha, len(points)), values, norm)


def _to(kernel: RowKernel, release: WeightedPoints, grid: Rows, probabilities: Floats) -> float:
    """RKHS distance of a release to the embedding of values with these probabilities."""
    values = kernel.matrix(release.points, grid) @ probabilities
    norm = float(probabilities @ kernel.matrix(grid, grid) @ probabilities)
    return distance(kernel, release.points, release.weights, values, norm)


def errors(rows: int, rng: np.random.Generator) -> dict[str, float]:
    """Errors of releases of N rows, by "release: what it estimates"."""
    probabilities, other = shares(rng), shares(rng)
    found, projection = releases(probabilities, rows, rng)
    errors = {"Algorithm 2: projection": projection}
    for name, release in found.items():
        errors[f"{name}: X"] = _to(PLANE, release, GRID, probabilities)
    for f, image in IMAGES.items():
        for name in (*BOUNDED, "Algorithm 3"):
            points = image if name == "Algorithm 3" else _image(f, found[name].points)
            errors[f"{name}: {f}"] = _to(LINE, WeightedPoints(points, found[name].weights), image, probabilities)
    second = found["Algorithm 2"]
    errors["Algorithm 2: mean of h"] = _mean_of_functions(second, probabilities, rng)
    sample = rng.multinomial(rows, other) / rows
    errors["Algorithm 2: MMD"] = abs(_to(PLANE, second, GRID, sample) - _discrepancy(probabilities - other))
    return errors


def _image(f: str, points: Rows) -> Rows:
    reals = points.reals
    return Rows.of_reals(reals.prod(1, keepdims=True) if f == "product" else reals.max(1, keepdims=True))


def _discrepancy(difference: Floats) -> float:
    return math.sqrt(max(0.0, squared_norm(PLANE, GRID, difference)))


def _mean_of_functions(release: WeightedPoints, probabilities: Floats, rng: np.random.Generator) -> float:
    """Root mean square error of E h(X), over functions h of norm 1 in the RKHS (eq. 4.5)."""
    squared = []
    for _ in range(FUNCTIONS):
        at, heights = Rows.of_reals(rng.random((5, 2))), rng.standard_normal(5)
        heights /= math.sqrt(squared_norm(PLANE, at, heights))
        estimate = release.weights @ PLANE.matrix(release.points, at) @ heights
        squared.append(float(estimate - probabilities @ PLANE.matrix(GRID, at) @ heights) ** 2)
    return math.sqrt(float(np.mean(squared)))


class Proxy(NamedTuple):
    """Distances of one release of the table of Figure 4.1.

    Attributes
    ----------
    to_table, to_population : Delta of Thesis C.2.1, to the embedding of the table; and the distance
        to mu_X that it stands for.
    """

    epsilon: float
    to_table: float
    to_population: float


def proxies(dimension: int, points: int, draws: int, rng: np.random.Generator) -> tuple[list[Proxy], float]:
    """Releases by Algorithm 2 with public rows and the published noise; and the distance of the
    table's embedding to mu_X."""
    kernel, mixture = published.kernel(dimension), published.mixture(dimension)
    table = published.private_table(dimension)
    public = table[:points]
    basis, of_table = orthonormal_basis(kernel, public), mean_at(kernel, [table], public)
    alpha, of_mixture = basis.coordinates(of_table), mixture.embedding(kernel, public)
    norm, norm_of_mixture = published.MEAN_OF_MATRIX[dimension], mixture.squared_norm(kernel)
    found = []
    for epsilon in published.EPSILONS:
        scale = published.noise_scale("published", len(alpha), math.nan, epsilon)
        for _ in range(draws):
            weights = basis.expand(alpha + scale * rng.standard_normal(len(alpha)), points)
            found.append(
                Proxy(
                    epsilon,
                    distance(kernel, public, weights, of_table, norm),
                    distance(kernel, public, weights, of_mixture, norm_of_mixture),
                )
            )
    cross = float(
        np.mean([mixture.embedding(kernel, table[i : i + 10_000]).mean() for i in range(0, len(table), 10_000)])
    )
    return found, math.sqrt(max(0.0, norm - 2 * cross + norm_of_mixture))
