r"""Range queries, distances, and noisy histograms as baselines, for experiments.

They are computed from private rows without noise: they are NOT PRIVATE. The histograms are
private through the `Noise` that they are given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.means import distance, squared_norm
from thesis_cli.privacy.kernels import Codes, RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, Noise

QUERIES, COLUMNS = 1000, 3
"""Range queries, and the columns that each restricts."""


@dataclass(frozen=True)
class Ranges:
    """Queries for the share of rows in each of Q boxes: reals between two ends, categories in sets
    of levels.

    Attributes
    ----------
    low, high : ends, shape (Q, D); infinite where a query does not restrict a coordinate.
    levels : whether each level of each category is in the query's set, shape (Q, cardinality).
    """

    low: Floats
    high: Floats
    levels: tuple[npt.NDArray[np.bool_], ...]

    def shares(self, rows: Rows, weights: Floats) -> Floats:
        """Weight of the rows in each box, shape (Q,)."""
        found = np.empty(len(self.low))
        for q, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            inside = np.ones(len(rows), bool)
            for d in np.flatnonzero(np.isfinite(low)):
                inside &= (rows.reals[:, d] >= low[d]) & (rows.reals[:, d] <= high[d])
            for c, levels in enumerate(self.levels):
                if not levels[q].all():
                    inside &= levels[q][rows.codes[:, c]]
            found[q] = weights[inside].sum()
        return found


def random_ranges(rows: Rows, cardinalities: Sequence[int], rng: np.random.Generator, count: int = QUERIES) -> Ranges:
    """Boxes in up to `COLUMNS` random columns: between the values of two random rows, or a random
    set of levels.

    A set has 1 to L - 1 of the L levels; all sizes are equally likely.
    """
    reals, columns = rows.reals.shape[1], rows.reals.shape[1] + len(cardinalities)
    low, high = np.full((count, reals), -math.inf), np.full((count, reals), math.inf)
    levels = tuple(np.ones((count, cardinality), bool) for cardinality in cardinalities)
    for q in range(count):
        for column in rng.permutation(columns)[:COLUMNS]:
            if column < reals:
                low[q, column], high[q, column] = np.sort(rows.reals[rng.integers(len(rows), size=2), column])
            else:
                out = levels[column - reals][q]
                out[rng.permutation(out.size)[rng.integers(1, out.size) :]] = False
    return Ranges(low, high, levels)


def squared_distance(kernel: RowKernel, a: Rows, weights_a: Floats, b: Rows, weights_b: Floats) -> float:
    """|sum_m u_m k(a_m, .) - sum_n w_n k(b_n, .)|^2 in the RKHS (Thesis eq. 4.6)."""
    return max(0.0, squared_norm(kernel, Rows.concatenate([a, b]), np.concatenate([weights_a, -weights_b])))


@dataclass(frozen=True)
class GaussianMixture:
    """A population whose embedding in a Gaussian kernel is known in closed form.

    Attributes
    ----------
    weights : weights of sum 1, shape (K,).
    centres : centres, shape (K, D).
    deviation : standard deviation of every component in every direction.
    """

    weights: Floats
    centres: Floats
    deviation: float

    def draw(self, count: int, rng: np.random.Generator | np.random.RandomState) -> Rows:
        """Independent rows."""
        members = rng.choice(len(self.weights), count, p=self.weights)
        return Rows.of_reals(rng.normal(self.centres[members], self.deviation))

    def embedding(self, kernel: RowKernel, points: Rows) -> Floats:
        """Embedding mu_X(z) = E k(X, z) at points, shape (M,)."""
        return self._smoothed(kernel, points.reals, 1) @ self.weights

    def squared_norm(self, kernel: RowKernel) -> float:
        """Squared norm |mu_X|^2 = E k(X, X') for independent X and X'."""
        return float(self.weights @ self._smoothed(kernel, self.centres, 2) @ self.weights)

    def distance(self, kernel: RowKernel, points: Rows, weights: Floats) -> float:
        """RKHS distance of sum_m w_m k(z_m, .) to mu_X."""
        return distance(kernel, points, weights, self.embedding(kernel, points), self.squared_norm(kernel))

    def _smoothed(self, kernel: RowKernel, at: Floats, times: int) -> Floats:
        """E k(c + noise, z) for centres c and noise of `times` the variance, shape (M, K): a wider, lower Gaussian."""
        wider = 1 + 2 * times * kernel.gamma * self.deviation**2
        exponent = sum(
            g * np.subtract.outer(z, c) ** 2 for g, z, c in zip(kernel.gamma / wider, at.T, self.centres.T, strict=True)
        )
        return np.asarray(np.exp(-exponent) / math.sqrt(wider.prod()))


def histogram_release(
    rows: Rows,
    cardinalities: Sequence[int],
    bins: int,
    noise: Noise,
    budget: Budget,
    count: int,
    rng: np.random.Generator,
    *,
    joint: bool,
) -> Rows:
    """Baseline: rows drawn from noisy histograms that are projected onto the simplex.

    Parameters
    ----------
    rows : N private rows, reals in [0, 1].
    bins : number of equal bins on [0, 1] for each real; values are drawn uniformly within a bin.
    joint : whether there is one histogram of all columns, or one for each column, drawn from
        independently.

    Raises
    ------
    InputError : there are no rows.
    """
    if not len(rows):
        raise InputError("the table has no rows", "it must have at least one")
    sizes = [bins] * rows.reals.shape[1] + list(cardinalities)
    columns = [*np.minimum((rows.reals * bins).astype(np.int64), bins - 1).T, *rows.codes.T]
    if joint:
        cells = [np.ravel_multi_index(columns, sizes)]
        lengths = [math.prod(sizes)]
    else:
        cells, lengths = columns, sizes
    shares = np.concatenate([np.bincount(x, minlength=n) for x, n in zip(cells, lengths, strict=True)]) / len(rows)
    # A row counts once in each histogram, and moving it changes two cells of each by 1/N.
    noised = noise.add(shares, math.sqrt(2 * len(cells)) / len(rows) * (1 + 1e-12), budget).values
    parts = np.split(noised, np.cumsum(lengths)[:-1])
    drawn = [_systematic(project_to_simplex(part), count, rng) for part in parts]
    found = np.stack(np.unravel_index(drawn[0], sizes) if joint else drawn, 1)
    reals = rows.reals.shape[1]
    within = rng.random((count, reals))
    return Rows((found[:, :reals] + within) / bins, np.ascontiguousarray(found[:, reals:]))


def _systematic(shares: Floats, count: int, rng: np.random.Generator) -> Codes:
    """Numbers of `count` cells in random order; each occurs as often as its share of count, up to one."""
    at = (np.arange(count) + rng.random()) / count * shares.sum()
    cells = np.searchsorted(np.cumsum(shares), at, "right").clip(max=len(shares) - 1)
    return np.asarray(rng.permutation(cells))


def project_to_simplex(vector: Floats) -> Floats:
    """Nearest w >= 0 of sum 1 in Euclidean distance."""
    falling = np.sort(vector)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(vector) + 1)
    return np.asarray(np.maximum(vector - levels[np.flatnonzero(falling > levels)[-1]], 0))
