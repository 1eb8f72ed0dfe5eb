r"""Means of products of functions of three columns, and rows that have them.

Rows made of tables of pairs know nothing of three columns together. `TripleStage` measures, for all
triples of columns, products of coarse functions of the three; `interactions` compares them with the
same means of rows that have the tables of pairs, and keeps the triples whose difference stands out
of the noise. `search` in `rows.py` then moves rows towards the tables of these triples.

Sensitivity. Triples are all there are, and the functions depend on noisy vectors of earlier stages.
Let k_i in [-m_i, 1] be the inner product of two rows' feature vectors in column i, of norm at most 1
(`BinFunctions`). A row's vector of a triple is the product of its three vectors, of norm at most 1,
and the inner product of those of two rows is k_i k_j k_l. The sum of these over all T triples is
linear in each k_i, so that it is least where every k_i is -m_i or 1: L, say. The squared distance over
all triples is thus at most 2 (T - L). All k_i = -m_i show that L is at most 0, so that the squared norm,
at most T, is at most half of that. Means over N rows of tables that differ in one row differ by the
distance / N at most. The worst pair of rows differs most in the columns where k_i is -m_i.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import BinFunctions, Cells, Tree
from thesis_cli.privacy.copula.vectors import ROUNDING, SLACK, bins_of, counts_mean, shrunk
from thesis_cli.privacy.kernels import Rows

RESOLUTION = {8: 0.01, 4: 0.02}
"""Groups of bins of a column in a triple, and the most noise on a product of functions for them."""
LARGEST = 2**17
"""Largest number of combinations of groups, in all triples together."""
BLOCK = 4096
"""Rows that are counted at a time."""
CORNERS = 12
"""Largest number of columns for which the sensitivity is the least over all corners."""
MOST = 12
"""Largest number of triples whose tables rows are moved to."""
CLEAR = 5.0
"""Deviations by which the squares of a triple's differences exceed those of noise."""


def all_triples(columns: int) -> Ints:
    """Numbers of all triples of columns, shape (T, 3)."""
    return np.array(list(itertools.combinations(range(columns), 3)), np.int64).reshape(-1, 3)


def resolution(columns: int, rows: int, rho: float) -> int:
    """Groups of a column's bins for a stage of budget `rho`; 0 if noise leaves nothing to see of a product."""
    triples = math.comb(columns, 3)
    noise = 2 * math.sqrt(triples) / rows / math.sqrt(2 * rho)
    fitting = (g for g, most in RESOLUTION.items() if triples * g**3 <= LARGEST and noise <= most)
    return next(fitting, 0) if triples else 0


def least_sum(least: Floats) -> float:
    """Lower bound on the sum of k_i k_j k_l over all triples, for k_i from -least[i] to 1.

    It is the least one over the corners, up to `CORNERS` columns. Beyond, it is that of a box with the
    largest of `least` on all sides, whose corners differ in the number of columns with -least alone.
    """
    d = len(least)
    if d <= CORNERS:
        low = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
        k = np.where(low, -least, 1.0)
    else:
        k = np.where(np.arange(d) < np.arange(d + 1)[:, None], -least.max(), 1.0)
    one, two, three = (np.sum(k**power, 1) for power in (1, 2, 3))
    return float(((one**3 - 3 * one * two + 2 * three) / 6).min()) - 1e-9


def coarse(tree: Tree, groups: int) -> Ints:
    """Group of each bin, shape (B,), by the first cuts of a tree."""
    cuts = tree.functions[:, : groups - 1]
    return np.asarray(np.unique(cuts, axis=0, return_inverse=True)[1]).reshape(-1)


@dataclass(frozen=True)
class TripleStage:
    """Means of products of functions of three columns, for all triples: see the module.

    Attributes
    ----------
    cells, trees, features : cells, bins and at most `groups` - 1 functions of all columns.
    groups : groups G of a column's bins.
    share : share of the release's rho.
    """

    cells: tuple[Cells, ...]
    trees: tuple[Tree, ...]
    features: tuple[BinFunctions, ...]
    groups: int
    share: float
    name: str = "triples"

    @cached_property
    def triples(self) -> Ints:
        """Numbers of three columns, shape (T, 3)."""
        return all_triples(len(self.cells))

    @property
    def count(self) -> int:
        """Length of the vector."""
        counts = np.array([f.count for f in self.features])
        return int(counts[self.triples].prod(1).sum())

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean feature vector of a table given in blocks, from whole counts."""

        def total(rows: Rows) -> Ints:
            return self.counts(bins_of(self.cells, self.trees, rows))

        return self.products(counts_mean(total, blocks, jobs, progress))

    def counts(self, bins: Ints) -> Ints:
        """Rows of each combination of groups, shape (T, G, G, G), from the bins of rows, shape (n, columns)."""
        found = np.stack([own[bins[:, c]] for c, own in enumerate(self._coarse)], 1)
        i, j, k = self.triples.T
        keys = (
            (found[:, i] * self.groups + found[:, j]) * self.groups
            + found[:, k]
            + self.groups**3 * np.arange(len(self.triples))
        )
        size = len(self.triples) * self.groups**3
        return np.bincount(keys.reshape(-1), minlength=size).reshape(-1, self.groups, self.groups, self.groups)

    @cached_property
    def _coarse(self) -> list[Ints]:
        """Group of each bin of each column."""
        return [coarse(tree, self.groups) for tree in self.trees]

    def products(self, tables: Floats) -> Floats:
        """Vector of tables of all triples."""
        values = [self._values(i) for i in range(len(self.trees))]
        parts = [
            np.einsum("abc,ap,bq,cr->pqr", table, values[i], values[j], values[k], optimize=True).reshape(-1)
            for (i, j, k), table in zip(self.triples.tolist(), tables, strict=True)
        ]
        return np.concatenate(parts)

    def _values(self, column: int) -> Floats:
        """Feature vector of each group of a column, shape (G, r)."""
        own = self.features[column].values
        found = np.zeros((self.groups, own.shape[1]))
        found[self._coarse[column]] = own
        return found

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the vectors of two tables of N = `rows` rows that differ in one,
        rounding included: see the module.
        """
        least = -np.array([f.least for f in self.features])
        return math.sqrt(2 * (len(self.triples) - least_sum(least))) / rows * SLACK + ROUNDING

    def interactions(self, vector: Floats, noise: float, bins: Ints) -> list[tuple[Ints, Floats]]:
        """Triples that rows with bins of shape (M, columns) do not have, and what their shares of
        groups lack, shape (G, G, G) each.

        The differences of the products are shrunk as covariances are.
        """
        counted = (self.counts(bins[start : start + BLOCK]) for start in range(0, len(bins), BLOCK))
        counts = sum(counted, np.zeros(1, np.int64))
        apart = vector - self.products(counts / len(bins))
        width = self.groups - 1
        found = np.zeros((len(self.triples), width, width * width))
        variances = np.full(found.shape, math.inf)
        sizes = [tuple(self.features[c].count for c in triple) for triple in self.triples.tolist()]
        parts = np.split(apart, np.cumsum([math.prod(size) for size in sizes])[:-1])
        for t, (triple, size, part) in enumerate(zip(self.triples.tolist(), sizes, parts, strict=True)):
            scales = [np.sqrt(self.features[c].weights) for c in triple]
            scale = np.einsum("p,q,r->pqr", *scales)
            at = tuple(slice(n) for n in size)
            found[t].reshape(width, width, width)[at] = part.reshape(size) / scale
            variances[t].reshape(width, width, width)[at] = (noise / scale) ** 2
        known = np.isfinite(variances)
        if noise:
            z = np.where(known, found, 0) ** 2 / np.where(known, variances, 1)
            count = known.sum((1, 2))
            excess = (z.sum((1, 2)) - count) / np.sqrt(2 * np.maximum(count, 1))
        else:
            excess = CLEAR + (np.where(known, found, 0) ** 2).sum((1, 2))
        chosen = [t for t in np.argsort(-excess, kind="stable")[:MOST].tolist() if excess[t] > CLEAR]
        kept = shrunk(found, variances, np.where(known, self._depths(), -1)) if chosen else found
        lacking = []
        for t in chosen:
            sides = [self._orthonormal(c) for c in self.triples[t].tolist()]
            lacking.append(np.einsum("pqr,ap,bq,cr->abc", kept[t].reshape(width, width, width), *sides))
        return [(self.triples[t], lack) for t, lack in zip(chosen, lacking, strict=True)]

    def _depths(self) -> Ints:
        """Number of cuts above the three of each product, shape (T, G - 1, (G - 1)^2)."""
        width = self.groups - 1
        own = np.zeros((len(self.trees), width), np.int64)
        for found, tree in zip(own, self.trees, strict=True):
            found[: len(tree.depths)] = tree.depths[:width]
        i, j, k = (own[self.triples[:, side]] for side in range(3))
        return (i[:, :, None, None] + j[:, None, :, None] + k[:, None, None, :]).reshape(-1, width, width * width)

    def _orthonormal(self, column: int) -> Floats:
        """Mass of each group times the tree's functions, shape (G, G - 1)."""
        tree, group = self.trees[column], self._coarse[column]
        found = np.zeros((self.groups, self.groups - 1))
        cuts = tree.functions[:, : self.groups - 1]
        np.add.at(found[:, : cuts.shape[1]], group, cuts * tree.masses[:, None])
        return found
