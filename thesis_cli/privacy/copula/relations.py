r"""The last two stages of a copula release that favours relations: triples, and cells of pairs.

Triples. Rows made of tables of pairs know nothing of three columns together. `TripleStage` measures, for all
triples of columns, products of coarse functions of the three; `interactions` compares them with the
same means of rows that have the tables of pairs, and keeps the triples whose difference stands out
of the noise. `search` in `rows.py` then moves rows towards the tables of these triples.

Sensitivity of triples. They are all there are, and the functions depend on noisy vectors of earlier stages.
Let k_i in [-m_i, 1] be the inner product of two rows' feature vectors in column i, of norm at most 1
(`BinFunctions`). A row's vector of a triple is the product of its three vectors, of norm at most 1,
and the inner product of those of two rows is k_i k_j k_l. The sum of these over all T triples is
linear in each k_i, so that it is least where every k_i is -m_i or 1: L, say. The squared distance over
all triples is thus at most 2 (T - L). All k_i = -m_i show that L is at most 0, so that the squared norm,
at most T, is at most half of that. Means over N rows of tables that differ in one row differ by the
distance / N at most. The worst pair of rows differs most in the columns where k_i is -m_i.

Cells of pairs. Pairs of bins blur what the cells of a column say of another: a district that one of a
hundred postal codes determines. `DetailStage` counts the cells of the pairs that `strongest` picks from
the noisy tables of the stage before, `joint_table` is what these counts leave after shrinkage, and
`placed_jointly` puts rows into cells along a forest of pairs.

Sensitivity of cells of pairs. The pairs are a function of noisy vectors, so that the choice costs
nothing. In each of the K tables a row has one number other than 0, the root of the table's weight; the
weights add up to 1. The vector of a row has norm 1 and no negative number, so that two have distance at
most sqrt 2, and means over N rows of tables that differ in one row at most sqrt(2) / N. The worst pair of
rows has different cells in every table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import BinFunctions, Cells, Tree, cells_of
from thesis_cli.privacy.copula.rows import systematic
from thesis_cli.privacy.copula.vectors import ROUNDING, SLACK, bins_of, counts_mean, shrunk, simplex
from thesis_cli.privacy.kernels import Rows

RESOLUTION = {8: 0.01, 4: 0.02}
"""Groups of bins of a column in a triple, and the most noise on a product of functions for them."""
LARGEST = 2**17
"""Largest number of combinations of groups, in all triples together."""
BLOCK = 4096
"""Rows that are counted at a time."""
CORNERS = 12
"""Largest number of columns for which the sensitivity is the least over all corners."""
MOST_TRIPLES = 12
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
        chosen = [t for t in np.argsort(-excess, kind="stable")[:MOST_TRIPLES].tolist() if excess[t] > CLEAR]
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


BLUR = 1.5
"""Least ratio of a column's cells to its bins for which a full table is worth its noise."""
LEAST_NOISE = 0.005
"""Noise on the share of a pair of cells beyond which there are no full tables."""
FINE = 128
"""Largest number of cells of a column in a full table."""
MOST_TABLES = 4
"""Largest number of full tables."""
DEPENDS = 0.2
"""Least mutual information of the bins of a pair with a full table, in nats."""
LEAK = 1e-3
"""Odds of a cell beyond the bin that the search has chosen, where no cell within is possible."""


def fine(cells: Cells, tree: Tree) -> bool:
    """Whether a column's bins blur it, and a table may have all its cells."""
    return BLUR * tree.count <= cells.count <= FINE


def worthwhile(cells: Sequence[Cells], bins: int, rows: int, rho: float) -> bool:
    """Whether bins blur some column, and full tables of budget `rho` have little noise."""
    noise = math.sqrt(2 * MOST_TABLES) / rows / math.sqrt(2 * rho) if rho else math.inf
    return len(cells) > 1 and noise <= LEAST_NOISE and any(BLUR * bins <= c.count <= FINE for c in cells)


def strongest(cells: Sequence[Cells], trees: Sequence[Tree], pairs: Ints, tables: Floats) -> Ints:
    """Pairs to count in full, shape (K, 2): a forest of those that depend most, if any depends much.

    Parameters
    ----------
    pairs, tables : all pairs of columns, shape (P, 2), and tables of their bins, shape (P, B, B).
    """
    left, right = tables.sum(2, keepdims=True), tables.sum(1, keepdims=True)
    ratio = np.where(tables > 0, tables / np.where(tables > 0, left * right, 1), 1)
    depends = (tables * np.log(ratio)).sum((1, 2))
    group, found = list(range(len(cells))), list[tuple[int, int]]()
    for p in np.argsort(-depends, kind="stable").tolist():
        i, j = pairs[p].tolist()
        if depends[p] < DEPENDS:
            break
        small = max(cells[i].count, cells[j].count) <= FINE
        if small and (fine(cells[i], trees[i]) or fine(cells[j], trees[j])) and group[i] != group[j]:
            found.append((i, j))
            group = [group[i] if g == group[j] else g for g in group]
            if len(found) == MOST_TABLES:
                break
    return np.array(found, np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class DetailStage:
    """Shares of the rows in each pair of cells of a few pairs of columns: see the module.

    Attributes
    ----------
    cells : cells of all columns.
    pairs : numbers of two columns, shape (K, 2); at least one pair.
    share : share of the release's rho.
    """

    cells: tuple[Cells, ...]
    pairs: Ints
    share: float
    name: str = "cells of pairs"

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Cells of both columns of each pair."""
        return [(self.cells[i].count, self.cells[j].count) for i, j in self.pairs.tolist()]

    @property
    def weight(self) -> float:
        """Weight of each table."""
        return 1 / len(self.pairs)

    @property
    def count(self) -> int:
        """Length of the vector."""
        return sum(a * b for a, b in self.shapes)

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean feature vector of a table given in blocks, from whole counts."""
        sizes = np.array([b for _, b in self.shapes])
        starts = np.cumsum([0, *(a * b for a, b in self.shapes)])

        def total(rows: Rows) -> Ints:
            found = cells_of(self.cells, rows)
            keys = found[:, self.pairs[:, 0]] * sizes + found[:, self.pairs[:, 1]] + starts[:-1]
            return np.bincount(keys.reshape(-1), minlength=int(starts[-1]))

        return np.asarray(math.sqrt(self.weight) * counts_mean(total, blocks, jobs, progress))

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the vectors of two tables of N = `rows` rows that differ in one,
        rounding included: see the module.
        """
        return math.sqrt(2) / rows * SLACK + ROUNDING

    def tables(self, vector: Floats) -> list[Floats]:
        """Noisy table of each pair."""
        ends = np.cumsum([a * b for a, b in self.shapes])[:-1]
        return [
            part.reshape(shape) / math.sqrt(self.weight)
            for part, shape in zip(np.split(vector, ends), self.shapes, strict=True)
        ]


def joint_table(noisy: Floats, noise: float, expected: Floats) -> Floats:
    """Table of the cells of a pair from noisy shares, of the same margins as the expected one.

    A row of the table is the expected one, or all its share is in one cell; how often it is the
    latter is estimated from all rows by expectation maximisation, and likewise for the columns of
    the table. Where neither side determines the other, rows are shrunk towards the expected ones.

    Parameters
    ----------
    noisy : noisy shares, shape (cells, cells).
    noise : standard deviation of the noise on each share.
    expected : the table that knows bins only, of the same shape.
    """
    if not noise:
        return simplex(noisy.reshape(-1)).reshape(noisy.shape)
    (one, by_rows), (other, by_columns) = (
        _determined(x, noise, e) for x, e in ((noisy, expected), (noisy.T, expected.T))
    )
    if max(by_rows, by_columns) >= 0.5:
        return one if by_rows >= by_columns else other.T
    apart = noisy - expected
    squared = (apart**2).sum(1, keepdims=True)
    spread = noise**2 * noisy.shape[1]
    kept = np.maximum(0, 1 - spread / np.maximum(squared, 1e-300))
    found = np.maximum(expected + kept * apart, 0)
    return np.asarray(found / found.sum())


ROUNDS = 50


def _determined(noisy: Floats, noise: float, expected: Floats) -> tuple[Floats, float]:
    """Table of rows that are as expected or in one cell, and the share of the latter."""
    share = expected.sum(1, keepdims=True)
    prior = np.where(share > 0, expected / np.where(share > 0, share, 1), 1 / expected.shape[1])
    alone = np.log(np.maximum(prior, 1e-9)) + (share * noisy - share**2 / 2) / noise**2
    as_is = ((noisy * expected).sum(1) - (expected**2).sum(1) / 2) / noise**2
    top = np.maximum(alone.max(1), as_is)
    cells, whole = np.exp(alone - top[:, None]), np.exp(as_is - top)
    rate, weights = 0.5, share[:, 0] / share.sum()
    for _ in range(ROUNDS):
        likely = rate * cells.sum(1)
        posterior = likely / np.maximum(likely + (1 - rate) * whole, 1e-300)
        rate = float(np.clip((posterior * weights).sum(), 1e-6, 1 - 1e-6))
    inside = cells / np.maximum(cells.sum(1, keepdims=True), 1e-300)
    return share * (posterior[:, None] * inside + (1 - posterior[:, None]) * prior), rate


def expected_table(trees: Sequence[Tree], shares: Sequence[Floats], pair: tuple[int, int], table: Floats) -> Floats:
    """Table of cells, shape (cells, cells), of a pair whose bins have given shares.

    Parameters
    ----------
    trees : bins of each column.
    shares : shares of the cells of each column, shape (cells,); they set the shares within a bin.
    pair : numbers of both columns.
    table : shares of the bins, shape (R, R); it may be larger than there are bins.
    """
    i, j = pair
    spread = [_within(trees[k], shares[k]) for k in (i, j)]
    part = table[: trees[i].count, : trees[j].count]
    return np.asarray(part[trees[i].bins][:, trees[j].bins] * np.multiply.outer(*spread))


def _within(tree: Tree, shares: Floats) -> Floats:
    """Share of each cell within its bin."""
    totals = np.bincount(tree.bins, shares, tree.count)
    sizes = np.bincount(tree.bins, minlength=tree.count)
    return np.where(totals[tree.bins] > 0, shares / np.maximum(totals[tree.bins], 1e-300), 1 / sizes[tree.bins])


def binned(trees: Sequence[Tree], pair: tuple[int, int], joint: Floats, width: int) -> Floats:
    """Table of bins, shape (width, width), of one of cells.

    Parameters
    ----------
    trees : bins of each column.
    pair : numbers of both columns.
    joint : shares of the cells, shape (cells, cells).
    """
    found = np.zeros((width, width))
    i, j = pair
    np.add.at(found, (trees[i].bins[:, None], trees[j].bins[None, :]), joint)
    return found


def placed_jointly(
    trees: Sequence[Tree],
    shares: Sequence[Floats],
    pairs: Ints,
    joints: Sequence[Floats],
    bins: Ints,
    scores: Floats,
    rng: np.random.Generator,
    kept: Mapping[int, Ints],
) -> dict[int, Ints]:
    """Cells of rows in the columns of a forest of pairs, shape (M,) each, from their bins.

    The cell of a column is drawn given its bin, the cells of the columns beside it in the forest that
    have theirs, and the bins of the others. A bin that the table of the pair excludes gives way.

    Parameters
    ----------
    trees : bins of each column.
    shares : shares of the cells of each column, shape (cells,).
    pairs, joints : pairs of the forest, shape (P, 2), and the table of the cells of each.
    bins, scores : bins of the rows, and scores that order them within a bin; shape (M, columns).
    kept : cells of the columns that have theirs already, which are among those returned.
    """
    beside: dict[int, list[tuple[int, Floats]]] = {}
    for (i, j), joint in zip(pairs.tolist(), joints, strict=True):
        beside.setdefault(i, []).append((j, joint))
        beside.setdefault(j, []).append((i, joint.T))
    found = dict(kept)
    for root in sorted(beside, key=lambda c: -len(shares[c])):
        waiting = [root]
        while waiting:
            column = waiting.pop()
            if column in found:
                continue
            keys = [bins[:, column]]
            tree = trees[column]
            weights = [np.where(tree.bins == np.arange(tree.count)[:, None], 1.0, LEAK**2)]
            before = next((other for other, _ in beside[column] if other in found), -1)
            if before < 0:
                weights[0] = weights[0] * (shares[column] + 1e-12)
            for other, joint in beside[column]:
                given = joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)
                if other == before:
                    keys.append(found[before])
                    table = joint.T / np.maximum(joint.sum(0)[:, None], 1e-300)
                    weights.append(table + 1e-9)
                elif other in found:
                    keys.append(found[other])
                    weights.append(given.T + LEAK)
                else:
                    keys.append(bins[:, other])
                    sums = np.stack([given[:, trees[other].bins == b].sum(1) for b in range(trees[other].count)])
                    weights.append(sums + LEAK)
                    waiting.append(other)
            found[column] = _drawn(np.stack(keys, 1), weights, scores[:, column], rng)
    return found


def _drawn(keys: Ints, weights: Sequence[Floats], scores: Floats, rng: np.random.Generator) -> Ints:
    """Cells of rows: among those of one combination of keys each occurs as often as the product of
    the keys' weights, up to rounding, in the order of the scores.
    """
    combinations, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.lexsort((scores, group.reshape(-1)))
    found = np.zeros(len(keys), np.int64)
    parts = np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1])
    for keys_of, rows in zip(combinations.tolist(), parts, strict=True):
        product = np.ones(weights[0].shape[1])
        for key, weight in zip(keys_of, weights, strict=True):
            product = product * weight[key]
        found[rows] = np.sort(systematic(product / product.sum(), len(rows), rng))
    return found
