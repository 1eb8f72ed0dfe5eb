"""First stage of a copula release: counts of every column in fine cells and in groups of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula_cells import Cells, cells_of
from thesis_cli.privacy.embedding import exact_mean
from thesis_cli.privacy.kernels import Rows

SLACK = 1 + 2.0**-40
"""Relative allowance for rounding; the true share is below 1e-14."""
ROUNDING = 2.0**-40
"""Absolute allowance for the rounding of sums of products of up to 512 numbers, in vectors of norm
1; the true share is below 1e-13, and it matters where N is large.
"""
FINE = 0.4
"""Share of the single cells in the weight of a column that is counted in groups too."""
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
        """Column, group of each cell, and weight of each histogram."""
        long = [min(column.count, LONG) ** (2 / 3) for column in self.cells]
        found = []
        for i, (column, weight) in enumerate(zip(self.cells, long, strict=True)):
            groups, own = column.groups(), weight / sum(long)
            if groups is not None:
                found.append((i, groups, (1 - FINE) * own))
                own *= FINE
            found.append((i, np.arange(column.count), own))
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
        found: list[Floats] = []
        coarse: tuple[Ints, Floats, float] | None = None
        for (i, groups, weight), part in zip(histograms, np.split(vector, ends), strict=True):
            shares, variance = part / math.sqrt(weight), noise**2 / weight
            if len(shares) < self.cells[i].count:
                coarse = groups, shares, variance
                continue
            if coarse is None:
                found.append(_kept(simplex(shares), math.sqrt(variance), not self.cells[i].line))
            else:
                found.append(_refined(*coarse, shares, variance))
            coarse = None
        return found


def counts_mean(
    total: Callable[[Rows], Ints], blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None
) -> Floats:
    """Shares of the rows from whole counts of at most 4096 rows at a time."""
    from thesis_cli.privacy.embedding_kernels import UNIT

    return exact_mean(total, blocks, jobs, progress) / UNIT


def simplex(vector: Floats, total: float = 1.0) -> Floats:
    """Nearest numbers of at least 0 with a given sum, in Euclidean distance."""
    falling = np.sort(vector)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, len(vector) + 1)
    above = np.flatnonzero(falling > levels)
    return np.asarray(np.maximum(vector - levels[above[-1] if len(above) else 0], 0))


def _refined(groups: Ints, coarse: Floats, coarse_variance: float, fine: Floats, variance: float) -> Floats:
    """Distribution over cells from noisy shares of groups and of cells.

    The share of a group is the weighted mean of its own noisy share and the sum of its cells. The
    cells' deviations from the group's mean are shrunk (James and Stein) towards equal cells.
    """
    sizes = np.bincount(groups)
    sums = np.bincount(groups, fine).astype(np.float64)
    if variance:
        own = sizes * variance
        sums = (coarse / coarse_variance + sums / own) / (1 / coarse_variance + 1 / own)
    sums = simplex(sums)
    found = np.zeros(len(fine))
    for group, size in enumerate(sizes):
        members = groups == group
        apart = fine[members] - fine[members].mean()
        squared = float((apart**2).sum())
        kept = max(0.0, 1 - max(1, size - 3) * variance / squared) if squared else 0.0
        if sums[group] > 0:
            found[members] = simplex(sums[group] / size + kept * apart, sums[group])
    return np.asarray(found / found.sum())


def _kept(shares: Floats, noise: float, levels: bool) -> Floats:
    """Shares in which no level of a category vanishes, since noise hides whether it does."""
    if levels:
        shares = np.maximum(shares, min(noise / 4, 0.02 / len(shares)))
    return np.asarray(shares / shares.sum())
