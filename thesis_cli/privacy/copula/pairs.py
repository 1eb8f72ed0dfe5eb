"""Later stages of a copula release: products of functions of two columns, and the tables of pairs
that they leave after shrinkage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.bins import Features, Tree, squared_diameter
from thesis_cli.privacy.copula.cells import Cells, cells_of
from thesis_cli.privacy.copula.columns import ROUNDING, SLACK, counts_mean, simplex
from thesis_cli.privacy.kernels import Rows


@dataclass(frozen=True)
class Pairs:
    """Shares of the bins of columns, and means of products of features of two columns.

    Attributes
    ----------
    cells, trees, features : of all columns.
    pairs : numbers of two columns, the lower first, shape (P, 2).
    share : of the release's rho.
    singles : share of the columns' own bins in the squared diameter; 0 leaves them out.
    """

    cells: tuple[Cells, ...]
    trees: tuple[Tree, ...]
    features: tuple[Features, ...]
    pairs: Ints
    share: float
    singles: float
    name: str

    @cached_property
    def sizes(self) -> Ints:
        """Number of products of each pair."""
        counts = np.array([f.count for f in self.features])
        return np.asarray(counts[self.pairs].prod(1))

    @cached_property
    def squared_diameter(self) -> float:
        """Bound on the squared distance of the products of two rows."""
        return squared_diameter(self.features, self.pairs)

    @cached_property
    def weights(self) -> Floats:
        """Weight of the bins of each column, shape (columns,)."""
        long = np.array([tree.count for tree in self.trees]) ** (2 / 3)
        products = self.squared_diameter or 1.0
        return np.asarray(long / long.sum() * products / 2 * self.singles / (1 - self.singles))

    @property
    def count(self) -> int:
        """Length of the vector."""
        return int(self.sizes.sum()) + (sum(tree.count for tree in self.trees) if self.singles else 0)

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean feature vector of a table given in blocks, from whole counts."""
        from thesis_cli.privacy.copula.kernels import count_pairs

        width = max(tree.count for tree in self.trees)
        own = np.arange(len(self.trees))
        pairs = np.concatenate([np.stack([own, own], 1), self.pairs])

        def total(rows: Rows) -> Ints:
            found = np.zeros((len(pairs), width, width), np.int64)
            count_pairs(bins_of(self.cells, self.trees, rows), pairs, found)
            return found

        parts = [np.zeros(0)]
        for (i, j), table in zip(pairs, counts_mean(total, blocks, jobs, progress), strict=True):
            if i != j:
                a, b = self.features[i].values, self.features[j].values
                parts.append((a.T @ table[: len(a), : len(b)] @ b).reshape(-1))
            elif self.singles:
                parts.append(math.sqrt(self.weights[i]) * np.diag(table)[: self.trees[i].count])
        return np.concatenate(parts)

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the vectors of two tables of N = `rows` rows that differ in
        one, rounding included.
        """
        squared = self.squared_diameter + (2 * float(self.weights.sum()) if self.singles else 0)
        return math.sqrt(squared) / rows * SLACK + ROUNDING

    def masses(self, vector: Floats, noise: float, known: Sequence[Floats]) -> list[Floats]:
        """Masses of the trees' bins, shape (B,) each: weighted means of the trees' own, of variances
        `known`, and of the noisy ones of this stage.
        """
        if not self.singles:
            return [tree.masses for tree in self.trees]
        found = []
        ends = np.cumsum([tree.count for tree in self.trees])
        for tree, weight, variance, part in zip(self.trees, self.weights, known, np.split(vector, ends), strict=False):
            own, spread = part / math.sqrt(weight), noise**2 / weight
            if noise:
                own = (own / spread + tree.masses / variance) / (1 / spread + 1 / variance)
            found.append(simplex(own))
        return found

    def coefficients(self, vector: Floats, noise: float, masses: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Covariances of the trees' functions and their variances, shape (P, R, R).

        Products that were not measured have an infinite variance.
        """
        width = max(1, *(tree.count - 1 for tree in self.trees))
        found = np.zeros((len(self.pairs), width, width))
        variances = np.full(found.shape, math.inf)
        means = [
            own @ tree.functions[:, : f.count] - f.offset
            for own, tree, f in zip(masses, self.trees, self.features, strict=True)
        ]
        products = vector[self.count - int(self.sizes.sum()) :]
        parts = np.split(products, np.cumsum(self.sizes)[:-1])
        for p, ((i, j), part) in enumerate(zip(self.pairs, parts, strict=True)):
            f, g = self.features[i], self.features[j]
            scale = np.sqrt(np.multiply.outer(f.weights, g.weights))
            at = p, slice(f.count), slice(g.count)
            found[at] = part.reshape(scale.shape) / scale - np.multiply.outer(means[i], means[j])
            variances[at] = (noise / scale) ** 2
        return found, variances


def bins_of(cells: tuple[Cells, ...], trees: tuple[Tree, ...], rows: Rows) -> Ints:
    """Bins of rows, shape (N, columns)."""
    found = cells_of(cells, rows)
    for i, tree in enumerate(trees):
        found[:, i] = tree.bins[found[:, i]]
    return found


def all_pairs(columns: int) -> Ints:
    """Numbers of all pairs of columns, shape (P, 2)."""
    return np.stack(np.triu_indices(columns, 1), 1).astype(np.int64)


SCALES = np.concatenate([[0.0], 0.004 * 2.0 ** np.arange(0, 9.5, 0.75)])
"""Standard deviations of coefficients among which the shrinkage chooses."""
ROUNDS, RAKES = 60, 40
LEAST_RATIO = 1e-3
"""Least share of a pair of bins, relative to that of independent columns."""


def shrunk(found: Floats, variances: Floats, groups: Ints) -> Floats:
    """Posterior means of coefficients, by empirical Bayes.

    The coefficients of one pair in one group are normal with one of `SCALES`; how often each scale
    occurs in a group is estimated from all pairs by expectation maximisation.

    Parameters
    ----------
    found, variances : of P pairs, shape (P, R, R); an infinite variance where nothing is known.
    groups : group of each coefficient of each pair, -1 where a column has no such function.
    """
    result = np.zeros(found.shape)
    known = np.isfinite(variances) & (groups >= 0)
    for group in np.unique(groups[known]):
        inside = known & (groups == group)
        rows = np.flatnonzero(inside.any((1, 2)))
        mask = inside[rows]
        x, v = np.where(mask, found[rows], 0.0), np.where(mask, variances[rows], 1.0)
        if not v[mask].any():
            result[rows] += x
            continue
        logs = np.empty((len(rows), len(SCALES)))
        for s, scale in enumerate(SCALES):
            spread = v + scale**2
            logs[:, s] = -0.5 * (np.where(mask, np.log(spread) + x**2 / spread, 0)).sum((1, 2))
        likelihood = np.exp(logs - logs.max(1, keepdims=True))
        prior = np.full(len(SCALES), 1 / len(SCALES))
        for _ in range(ROUNDS):
            posterior = likelihood * prior
            posterior /= posterior.sum(1, keepdims=True)
            prior = (posterior.sum(0) + 0.5 / len(SCALES)) / (len(rows) + 0.5)
        factor = np.zeros(x.shape)
        for s, scale in enumerate(SCALES):
            factor += posterior[:, s, None, None] * scale**2 / (v + scale**2)
        result[rows] += np.where(mask, factor * x, 0)
    return result


def tables(trees: Sequence[Tree], masses: Sequence[Floats], pairs: Ints, covariances: Floats) -> Floats:
    """Tables of pairs with given masses as margins, shape (P, B, B)."""
    width = max(tree.count for tree in trees)
    if not len(pairs):
        return np.zeros((0, width, width))
    functions = np.zeros((len(trees), width, max(1, width - 1)))
    margins = np.zeros((len(trees), width))
    for i, (tree, own) in enumerate(zip(trees, masses, strict=True)):
        functions[i, : tree.count, : tree.count - 1] = tree.functions * tree.masses[:, None]
        margins[i, : tree.count] = own
    i, j = pairs.T
    apart = margins[i][:, :, None] * margins[j][:, None, :]
    found = np.maximum(apart + functions[i] @ covariances @ functions[j].swapaxes(1, 2), LEAST_RATIO * apart)
    for _ in range(RAKES):
        for axis, margin in ((2, margins[i]), (1, margins[j])):
            sums = found.sum(axis)
            found *= np.expand_dims(np.where(sums > 0, margin / np.where(sums > 0, sums, 1), 0), axis)
    return np.asarray(found)
