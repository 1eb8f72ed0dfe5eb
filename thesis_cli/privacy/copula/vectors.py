"""Vectors of both stages of a copula release.

The first stage counts every column in fine cells and in groups of cells. The second has products of
functions of two columns, and `tables` are the tables of pairs that they leave after shrinkage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import BinFunctions, Cells, Tree, cells_of, squared_diameter
from thesis_cli.privacy.kernels import UNIT, Rows, exact_mean

SLACK = 1 + 2.0**-40
"""Relative allowance for rounding; the true share is below 1e-14."""
WEIGHTS = {1: (1.0,), 2: (0.6, 0.4), 3: (0.45, 0.35, 0.2)}
"""Weights of the scales of a column, the coarsest first, by their number."""
ROUNDING = 2.0**-40
"""Absolute allowance for the rounding of sums of products of up to 512 numbers, in vectors of norm
1; the true share is below 1e-13, and it matters where N is large.
"""
CLEAR = 3.0
"""Deviations of the noise from which a share stands out of it."""
LEAST_KEPT = 0.02
"""Least share of the differences between shares that shrinkage keeps."""
LONG = 16
"""Number of cells from which a column gets no further weight."""


@dataclass(frozen=True)
class ColumnStage:
    """Shares of the rows in each cell, and in each group of cells, of every column.

    A row's feature vector has one number other than 0 in each histogram, the root of its weight.
    The weights add up to 1, so that a feature vector has norm 1, and two have distance at most
    sqrt 2.

    Attributes
    ----------
    cells : cells of all columns.
    share : share of the release's rho.
    shrinks : whether shares of few cells are shrunk towards equal ones, where noise outweighs them.
    """

    cells: tuple[Cells, ...]
    share: float
    name: str = "columns"
    shrinks: bool = False

    @property
    def histograms(self) -> list[tuple[int, Ints, float]]:
        """Column, group of each cell, and weight of each histogram; the coarsest of a column
        first.
        """
        long = [min(column.count, LONG) ** (2 / 3) for column in self.cells]
        found = []
        for i, (column, weight) in enumerate(zip(self.cells, long, strict=True)):
            scales = column.scales()
            parts = WEIGHTS[len(scales)]
            found += [(i, groups, weight * part / sum(long)) for groups, part in zip(scales, parts, strict=True)]
        return found

    @property
    def count(self) -> int:
        """Length of the vector."""
        return sum(int(groups.max()) + 1 for _, groups, _ in self.histograms)

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean feature vector of a table given in blocks.

        It is made of whole counts, so that the order of the rows changes no bit.
        """
        sizes = [column.count for column in self.cells]
        starts = np.cumsum([0, *sizes])

        def total(rows: Rows) -> Ints:
            return np.bincount((cells_of(self.cells, rows) + starts[:-1]).reshape(-1), minlength=int(starts[-1]))

        shares = np.split(counts_mean(total, blocks, jobs, progress), starts[1:-1])
        parts = [math.sqrt(weight) * np.bincount(groups, shares[i]) for i, groups, weight in self.histograms]
        return np.concatenate(parts)

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the vectors of two tables of N = `rows` rows that differ in one,
        rounding included.
        """
        return math.sqrt(2) / rows * SLACK + ROUNDING

    def estimate(self, vector: Floats, noise: float) -> list[Floats]:
        """Distribution of each column over its cells, from a noisy vector of deviation `noise`."""
        histograms = self.histograms
        ends = np.cumsum([int(groups.max()) + 1 for _, groups, _ in histograms])[:-1]
        found = []
        scales: list[tuple[Ints, Floats, float]] = []
        for (i, groups, weight), part in zip(histograms, np.split(vector, ends), strict=True):
            scales.append((groups, part / math.sqrt(weight), noise**2 / weight))
            if len(part) == self.cells[i].count:
                column = self.cells[i]
                if self.shrinks and len(scales) == 1:
                    groups, own, variance = scales[0]
                    kept = self._kept(own, variance)
                    scales = [(groups, 1 / len(own) + kept * (own - own.mean()), kept * variance)]
                shares = _combined(scales, np.unique(scales[0][0][column.numbers]))
                found.append(shares if column.line else _kept(shares, math.sqrt(scales[-1][2])))
                scales = []
        return found

    def kept(self, vector: Floats, noise: float) -> list[float]:
        """Share of each column's differences from equal shares that shrinkage keeps."""
        histograms = self.histograms
        ends = np.cumsum([int(groups.max()) + 1 for _, groups, _ in histograms])[:-1]
        found = [1.0] * len(self.cells)
        for (i, _, weight), part in zip(histograms, np.split(vector, ends), strict=True):
            if self.shrinks and len(self.cells[i].scales()) == 1:
                found[i] = self._kept(part / math.sqrt(weight), noise**2 / weight)
        return found

    @staticmethod
    def _kept(shares: Floats, variance: float) -> float:
        """Share of the differences from equal shares that is no noise.

        Their variance is a mean of that in the data and of that under a uniform law on the simplex,
        by the precision of both.
        """
        size = len(shares)
        if size < 2 or not variance:
            return 1.0
        prior = (1 - 1 / size) / (size * (size + 1))
        seen = float(shares.var(ddof=1)) - variance
        known, certain = (size - 1) / (2 * variance**2), 1 / prior**2
        spread = max(0.0, (seen * known + prior * certain) / (known + certain))
        return max(LEAST_KEPT, spread / (spread + variance))

    def variances(self, bins: Sequence[Ints], noise: float) -> list[Floats]:
        """Variances of the shares of bins, given the bin of each cell, before shrinkage: each scale
        has the groups that a bin touches.
        """
        found = [np.zeros(int(own.max()) + 1) for own in bins]
        for i, groups, weight in self.histograms:
            touched = np.unique(np.stack([bins[i], groups]), axis=1)[0]
            found[i] += weight / np.bincount(touched)
        return [noise**2 / precision for precision in found]


def counts_mean(
    total: Callable[[Rows], Ints], blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None
) -> Floats:
    """Shares of the rows, shape (F,), from whole counts of at most 4096 rows at a time."""
    return exact_mean(total, blocks, jobs, progress) / UNIT


def simplex(vectors: Floats, totals: Floats | float = 1.0) -> Floats:
    """Nearest numbers of at least 0 with given sums, in Euclidean distance.

    Parameters
    ----------
    vectors, totals : vectors along the last axis, shape (..., n), and the sum for each, shape (...).
    """
    size = vectors.shape[-1]
    falling = np.sort(vectors)[..., ::-1]
    levels = (np.cumsum(falling, -1) - np.asarray(totals)[..., None]) / np.arange(1, size + 1)
    above = falling > levels
    last = np.where(above.any(-1), size - 1 - above[..., ::-1].argmax(-1), 0)
    return np.asarray(np.maximum(vectors - np.take_along_axis(levels, last[..., None], -1), 0))


def _combined(scales: list[tuple[Ints, Floats, float]], line: Ints) -> Floats:
    """Distribution over cells from noisy shares at nested scales, the coarsest first; `line` are those
    of its groups that have numbers, along the line.

    Each scale is a triple: group of each cell, shares of the groups, and the variance of each. From
    the finest scale up, the share of a group is the weighted mean of its own and of the sum of its
    parts; from the coarsest down, a group is divided among its parts.
    """
    shares: list[Floats] = []
    variances: list[Floats] = []
    inside: list[Ints] = []
    for k, (groups, own, variance) in reversed(list(enumerate(scales))):
        if not shares:
            shares, variances = [own], [np.full(len(own), variance)]
            continue
        places = np.zeros(len(shares[0]), np.int64)
        places[scales[k + 1][0]] = groups
        inside.insert(0, places)
        sums, spread = (np.bincount(places, x, len(own)).astype(np.float64) for x in (shares[0], variances[0]))
        if variance:
            weight = 1 / variance + 1 / spread
            shares.insert(0, (own / variance + sums / spread) / weight)
            variances.insert(0, 1 / weight)
        else:
            shares.insert(0, own)
            variances.insert(0, spread)
    tails = shares[0].copy()
    tails[line] = _falling_tails(tails[line], np.sqrt(variances[0])[line])
    found = simplex(tails)
    for places, own, spread in zip(inside, shares[1:], variances[1:], strict=True):
        sizes = np.bincount(places)
        divided = np.zeros(len(own))
        order, ends = np.argsort(places, kind="stable"), np.cumsum(sizes)
        for size in np.unique(sizes[found > 0]).tolist():
            groups = np.flatnonzero((sizes == size) & (found > 0))
            members = order[(ends[groups] - size)[:, None] + np.arange(size)]
            divided[members] = _divided(found[groups], own[members], spread[members[:, 0]])
        found = divided
    return np.asarray(found / found.sum())


def _falling_tails(noisy: Floats, deviations: Floats) -> Floats:
    """Shares that fall towards both ends of a line, beyond the outermost ones that stand out of the
    noise.

    Least squares (pool adjacent violators); without it, the positive part of the noise far from all
    rows would move means.
    """
    found = noisy.copy()
    clear = np.flatnonzero(noisy > CLEAR * deviations)
    if len(clear):
        tail = slice(clear[-1] + 1, len(noisy))
        found[tail] = _falling(noisy[tail])
        tail = slice(0, clear[0])
        found[tail] = _falling(noisy[tail][::-1])[::-1]
    return found


def _falling(values: Floats) -> Floats:
    """Nearest sequence that does not rise, in Euclidean distance."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes)


def _divided(totals: Floats, noisy: Floats, variances: Floats) -> Floats:
    """Parts of sums: near their noisy shares, or shrunk towards equal ones (James and Stein).

    The choice for each sum goes by an unbiased estimate of the squared error.

    Parameters
    ----------
    totals, noisy, variances : sums, noisy shares of the parts of each, and the variance of their
        noise, shapes (G,), (G, n) and (G,).
    """
    size = noisy.shape[1]
    if size == 1:
        return totals[:, None]
    equal, apart = (totals / size)[:, None], noisy - noisy.mean(1, keepdims=True)
    squared = (apart**2).sum(1)
    near = simplex(noisy, totals)
    risk = ((near - equal - apart) ** 2).sum(1) + variances * (2 * np.count_nonzero(near, 1) - 1 - size)
    lost = np.divide(max(1, size - 3) * variances, squared, out=np.ones(len(squared)), where=squared > 0)
    kept = np.maximum(0.0, 1 - lost)
    shrunken = (1 - kept) ** 2 * squared + variances * (2 * kept - 1) * (size - 1) < risk
    return np.where(shrunken[:, None], simplex(equal + kept[:, None] * apart, totals), near)


def _kept(shares: Floats, noise: float) -> Floats:
    """Shares of levels of which none vanishes, since noise hides whether it does."""
    shares = np.maximum(shares, min(noise / 4, 0.02 / len(shares)))
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True)
class PairStage:
    """Shares of the bins of columns, and means of products of features of two columns.

    Attributes
    ----------
    cells, trees, features : cells, bins and functions of all columns.
    pairs : numbers of two columns, the lower first, shape (P, 2).
    share : share of the release's rho.
    singles : share of the columns' own bins in the squared diameter; 0 leaves them out.
    """

    cells: tuple[Cells, ...]
    trees: tuple[Tree, ...]
    features: tuple[BinFunctions, ...]
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
    return np.stack([tree.bins[own] for tree, own in zip(trees, found.T, strict=True)], 1)


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
    found, variances : covariances of P pairs and their variances, shape (P, R, R); infinite where nothing
        is known.
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
