"""First stage of a copula release: counts of every column in fine cells and in groups of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import Cells, cells_of
from thesis_cli.privacy.embedding.means import exact_mean
from thesis_cli.privacy.kernels import Rows

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
LONG = 16
"""Number of cells from which a column gets no further weight."""


@dataclass(frozen=True)
class Columns:
    """Shares of the rows in each cell, and in each group of cells, of every column.

    A row's feature vector has one number other than 0 in each histogram, the root of its weight.
    The weights add up to 1, so that a feature vector has norm 1, and two have distance at most
    sqrt 2.
    """

    cells: tuple[Cells, ...]
    share: float
    name: str = "columns"

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
                shares = _combined(scales, len(scales[0][1]) - (column.count - column.line))
                found.append(shares if column.line else _kept(shares, math.sqrt(scales[-1][2])))
                scales = []
        return found

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
    """Shares of the rows from whole counts of at most 4096 rows at a time."""
    from thesis_cli.privacy.embedding.kernels import UNIT

    return exact_mean(total, blocks, jobs, progress) / UNIT


def simplex(vector: Floats, total: float = 1.0) -> Floats:
    """Nearest numbers of at least 0 with a given sum, in Euclidean distance."""
    falling = np.sort(vector)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, len(vector) + 1)
    above = np.flatnonzero(falling > levels)
    return np.asarray(np.maximum(vector - levels[above[-1] if len(above) else 0], 0))


def _combined(scales: list[tuple[Ints, Floats, float]], line: int) -> Floats:
    """Distribution over cells from noisy shares at nested scales, the coarsest first; `line` groups
    of these are on the line.

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
    found = simplex(_falling_tails(shares[0], np.sqrt(variances[0]), line))
    for places, own, spread in zip(inside, shares[1:], variances[1:], strict=True):
        sizes = np.bincount(places)
        divided = np.zeros(len(own))
        order = np.argsort(places, kind="stable")
        for group, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            if found[group] > 0:
                divided[members] = _divided(float(found[group]), own[members], float(spread[members[0]]))
        found = divided
    return np.asarray(found / found.sum())


def _falling_tails(noisy: Floats, deviations: Floats, line: int) -> Floats:
    """Shares that fall towards both ends of a line, beyond the outermost ones that stand out of the
    noise.

    Least squares (pool adjacent violators); without it, the positive part of the noise far from all
    rows would move means.
    """
    found = noisy.copy()
    clear = np.flatnonzero(noisy[:line] > CLEAR * deviations[:line])
    if len(clear):
        tail = slice(clear[-1] + 1, line)
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


def _divided(total: float, noisy: Floats, variance: float) -> Floats:
    """Parts of a sum: near their noisy shares, or shrunk towards equal ones (James and Stein).

    The choice goes by an unbiased estimate of the squared error.
    """
    size = len(noisy)
    if size == 1:
        return np.array([total])
    apart = noisy - noisy.mean()
    squared = float((apart**2).sum())
    near = simplex(noisy, total)
    risk = float(((near - total / size - apart) ** 2).sum()) + variance * (2 * np.count_nonzero(near) - 1 - size)
    kept = max(0.0, 1 - max(1, size - 3) * variance / squared) if squared else 0.0
    if (1 - kept) ** 2 * squared + variance * (2 * kept - 1) * (size - 1) < risk:
        return simplex(total / size + kept * apart, total)
    return near


def _kept(shares: Floats, noise: float) -> Floats:
    """Shares of levels of which none vanishes, since noise hides whether it does."""
    shares = np.maximum(shares, min(noise / 4, 0.02 / len(shares)))
    return np.asarray(shares / shares.sum())
