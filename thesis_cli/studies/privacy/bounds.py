"""Both sides of the inequalities and identities of Thesis chapter 4 and appendix C.1, on small
random tables. They are computed from the rows without noise: NOT PRIVATE."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.simplex import simplex_weights
from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.embedding.means import distance, mean_at, mean_of_matrix, squared_norm
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, classical_scale, gaussian_delta
from thesis_cli.privacy.release.exponential import databases, images, score_sensitivity, scores
from thesis_cli.privacy.release.record import uniform_weights
from thesis_cli.privacy.release.subspace import Subspace
from thesis_cli.studies.privacy.evaluation import GaussianMixture, squared_distance

COUNT, POINTS = 60, 20
"""Rows of a table, and synthetic points."""
DELTA, EPSILONS = 1e-6, (0.01, 0.1, 1.0, 10.0)
COUNTS, PRINTED = (10, 1000), 10_000
"""Numbers of features, and of those of Thesis C.2.2."""


class Sides(NamedTuple):
    """A statement, and the two numbers that it relates.

    Attributes
    ----------
    size : number of rows or of features; 0 where it is always the same.
    epsilon : nan where there is none.
    """

    statement: str
    left: float
    right: float
    size: int = 0
    epsilon: float = math.nan


def random_table(dimension: int, rng: np.random.Generator) -> tuple[RowKernel, Rows, Rows, Rows]:
    """A Gaussian kernel of random width, a table in the unit box, a table that differs in one row
    (which may lie anywhere), and points in the box."""
    kernel = RowKernel(np.exp(rng.uniform(-1, 3, dimension)), np.zeros(0))
    rows = rng.random((COUNT, dimension))
    other = rows.copy()
    other[-1] = rng.choice([1.0, 10.0]) * rng.standard_normal(dimension)
    return kernel, Rows.of_reals(rows), Rows.of_reals(other), Rows.of_reals(rng.random((POINTS, dimension)))


def every_bound(dimension: int, rng: np.random.Generator) -> list[Sides]:
    """All inequalities, each on random tables of its own."""
    found = subspace_sides(dimension, rng) + exponential_sides(rng) + printed_norm(dimension, PRINTED, rng)
    found += [side for count in COUNTS for side in feature_sides(dimension, count, rng)]
    return found + [side for epsilon in EPSILONS for side in privacy_sides(dimension, epsilon, rng)]


def subspace_sides(dimension: int, rng: np.random.Generator) -> list[Sides]:
    """Statements on Algorithm 2."""
    kernel, table, other, points = random_table(dimension, rng)
    equal, space = uniform_weights(table), Subspace.of(kernel, points)
    alpha, moved = space.mean([table]), space.mean([other])
    found = [
        Sides("Lemma 6", math.sqrt(squared_distance(kernel, table, equal, other, equal)), 2 / COUNT),
        Sides("eq. C.20", float(np.linalg.norm(alpha - moved)), 2 / COUNT),
    ]
    values, norm = mean_at(kernel, [table], points), mean_of_matrix(kernel, table)

    def away(coordinates: Floats) -> float:
        return distance(kernel, points, space.basis.expand(coordinates, POINTS), values, norm)

    missed = away(alpha)
    found.append(Sides("eq. C.2", missed, float(np.sqrt(2 - 2 * kernel.matrix(table, points).max(1)).mean())))
    scale = classical_scale(2 / COUNT, Budget(1.0, 0.01))
    noised = alpha + scale * rng.standard_normal(space.count)
    privacy = squared_norm(kernel, points, space.basis.expand(noised - alpha, POINTS))
    found.append(Sides("eq. C.6", privacy, scale**2 * space.count))
    found.append(Sides("eq. C.5", away(noised), math.sqrt(privacy) + missed))
    public = table[:POINTS]
    of_public = Subspace.of(kernel, public)
    at = mean_at(kernel, [table], public)
    raw = of_public.basis.expand(of_public.mean([table]), POINTS)
    found.append(
        Sides(
            "eq. C.17",
            distance(kernel, public, raw, at, norm),
            distance(kernel, public, uniform_weights(public), at, norm),
        )
    )
    return found + _expectation(kernel, table, points, space.basis.expand(noised, POINTS), away(noised), rng)


def _expectation(
    kernel: RowKernel, table: Rows, points: Rows, weights: Floats, away: float, rng: np.random.Generator
) -> list[Sides]:
    """Error of the mean of a function h of the RKHS (eq. 4.5), and |h| times the distance."""
    at, shares = Rows.of_reals(rng.random((5, table.reals.shape[1]))), rng.standard_normal(5)
    error = abs(float(weights @ kernel.matrix(points, at) @ shares - (kernel.matrix(table, at) @ shares).mean()))
    return [Sides("eq. 4.5", error, math.sqrt(squared_norm(kernel, at, shares)) * away)]


def feature_sides(dimension: int, count: int, rng: np.random.Generator) -> list[Sides]:
    """Statements on Algorithm 3 with J = `count` features."""
    kernel, table, other, points = random_table(dimension, rng)
    features = draw_features(kernel, (), count, rng)
    apart = float(np.linalg.norm(features.mean([table]) - features.mean([other])))
    weights = rng.standard_normal(POINTS)
    weights /= np.abs(weights).sum()
    both = Rows.concatenate([table, points])
    embedded = features.embed(both)
    worst = float(np.abs(embedded @ embedded.T - kernel.matrix(both, both)).max())
    of_all = np.concatenate([-uniform_weights(table), weights])
    differ = abs(float(np.linalg.norm(of_all @ embedded)) - math.sqrt(max(0.0, squared_norm(kernel, both, of_all))))
    mean = embedded[:COUNT].mean(0)
    noise = classical_scale(2 / COUNT, Budget(1.0, 0.01)) * rng.standard_normal(count)
    best = simplex_weights(embedded[:COUNT] @ embedded[:COUNT].T, embedded[:COUNT] @ (mean + noise))
    reduced = float(np.linalg.norm(best @ embedded[:COUNT] - mean - noise))
    return [
        Sides("eq. C.28", apart, 2 / COUNT, count),
        Sides("Lemma 7", differ, 2 * math.sqrt(worst), count),
        Sides("eq. C.26", reduced, float(np.linalg.norm(noise)), count),
    ]


def privacy_sides(dimension: int, epsilon: float, rng: np.random.Generator) -> list[Sides]:
    """The exact delta of the noise of Algorithms 2 and 3 for two tables over the guaranteed one, and 1."""
    kernel, table, other, points = random_table(dimension, rng)
    scale, space = classical_scale(2 / COUNT, Budget(epsilon, DELTA)), Subspace.of(kernel, points)
    one = Features(np.full((1, dimension), math.pi), ())
    opposite = Rows.of_reals(table.reals.copy())
    opposite.reals[-1, 0] += 1  # turns the only angle by pi
    apart = {
        "Proposition 10": float(np.linalg.norm(space.mean([table]) - space.mean([other]))),
        "Proposition 14": float(np.linalg.norm(one.mean([table]) - one.mean([opposite]))),
    }
    return [
        Sides(name, gaussian_delta(found / scale, epsilon) / DELTA, 1.0, epsilon=epsilon)
        for name, found in apart.items()
    ]


def exponential_sides(rng: np.random.Generator) -> list[Sides]:
    """Largest |ln p(R) / p'(R)| over all tables R of 3 of 6 values that the exponential mechanism may
    release for two tables of 4 rows (Thesis section 4.3.4), and epsilon."""
    kernel, epsilon = RowKernel(np.exp(rng.uniform(-1, 3, 1)), np.zeros(0)), 1.0
    vectors = images(kernel, Rows.of_reals(rng.random((6, 1))))
    table, moved = rng.integers(6, size=4), rng.integers(6)
    histograms = [np.bincount(np.append(table[:3], last), minlength=6) for last in (table[3], moved)]
    logs = []
    for histogram in histograms:
        exponent = epsilon / (2 * score_sensitivity(vectors, 4)) * scores(vectors, histogram, 3)
        assert len(exponent) == databases(6, 3)
        logs.append(exponent - np.logaddexp.reduce(exponent))
    return [Sides("exponential mechanism", float(np.abs(logs[0] - logs[1]).max()), epsilon, epsilon=epsilon)]


def sample_sides(dimension: int, count: int, rng: np.random.Generator) -> list[Sides]:
    """Squared distance of a table's embedding to that of its population, and its mean (1 - |mu|^2)/N."""
    kernel = RowKernel(np.full(dimension, 8.0), np.zeros(0))
    population = GaussianMixture(np.array([0.5, 0.3, 0.2]), rng.random((3, dimension)), 0.1)
    table, norm = population.draw(count, rng), population.squared_norm(kernel)
    squared = mean_of_matrix(kernel, table) - 2 * float(population.embedding(kernel, table).mean()) + norm
    return [Sides("finite sample", squared, (1 - norm) / count, count)]


def printed_norm(dimension: int, count: int, rng: np.random.Generator) -> list[Sides]:
    """Largest squared norm, over rows in the unit box, of the printed features sqrt(2/J) cos(w . x + b), and 1."""
    frequencies, phases = 4 * rng.standard_normal((count, dimension)), rng.uniform(0, 2 * math.pi, count)
    cosines = np.cos(rng.random((COUNT, dimension)) @ frequencies.T + phases)
    return [Sides("printed features", float((2 / count * cosines**2).sum(1).max()), 1.0, count)]
