r"""Releases by kernels of single columns and of pairs of columns ("copula").

A release has stages. Each is the mean over the rows of a bounded feature vector, with Gaussian
noise; the features of a stage depend on the schema, the number of rows, the budget and the noisy
vectors of earlier stages, so that the budgets rho of zero-concentrated differential privacy add up
(Bun and Steinke 2016).

1. columns: every column's shares of fine cells, and of groups of cells.
2. pairs: columns are cut into bins of near equal mass by the noisy shares; products of orthonormal
   functions of the bins of two columns, for all pairs.
3. dependent pairs: finer functions, for pairs that stage 2 shows to be dependent.

Synthetic rows come from the noisy vectors alone: coefficients are shrunk by empirical Bayes to
tables of all pairs, and rows are searched for that have these tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula_bins import Tree, features, grow
from thesis_cli.privacy.copula_cells import Cells, schema_cells
from thesis_cli.privacy.copula_columns import Columns
from thesis_cli.privacy.copula_pairs import Pairs, all_pairs, shrunk, tables
from thesis_cli.privacy.copula_rows import placed, search
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release_record import Favour
from thesis_cli.privacy.schema import Schema
from thesis_cli.privacy.staged import StagePlan

SHARES: dict[Favour, tuple[float, float]] = {
    "balance": (0.2, 0.8),
    "marginals": (0.6, 0.4),
    "correlations": (0.25, 0.75),
    "rows": (0.3, 0.7),
}
"""Shares of the budget of the stages."""

BINS = 16
DECAY = 1.5
SINGLES = 0.25


@dataclass(frozen=True)
class Plan:
    """Public settings of a copula release.

    Attributes
    ----------
    schema : columns.
    rows : number N of rows of the table.
    rho : budget of zero-concentrated differential privacy of all stages together.
    favour : what is to be answered well; it sets the stages' shares of the budget.
    """

    schema: Schema
    rows: int
    rho: float
    favour: Favour = "balance"

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """Cells of each column."""
        return schema_cells(self.schema)

    @property
    def stages(self) -> int:
        """Number of stages."""
        return 1 if len(self.cells) == 1 else 2

    def stage(self, vectors: Sequence[Floats]) -> StagePlan | None:
        """The stage after those with these noisy vectors; None if there is no further one."""
        if len(vectors) == self.stages:
            return None
        if not vectors:
            return self._columns
        return self._pairs(self._trees(self._shares(vectors[0])))

    def noise(self, stage: StagePlan) -> float:
        """Standard deviation of the noise on each coordinate of a stage."""
        return stage.l2_sensitivity(self.rows) / math.sqrt(2 * self.rho * stage.share)

    def fit(self, vectors: Sequence[Floats], count: int, rng: np.random.Generator, jobs: int = 1) -> Rows:
        """Encoded synthetic rows, `count` of them, from the noisy vectors of all stages."""
        shares = self._shares(vectors[0])
        trees = self._trees(shares)
        pairs = all_pairs(len(trees))
        masses = [tree.masses for tree in trees]
        covariances = np.zeros((0, 1, 1))
        if len(vectors) > 1:
            stage = self._pairs(trees)
            noise = self.noise(stage)
            known = self._columns.variances([tree.bins for tree in trees], self.noise(self._columns))
            masses = stage.masses(vectors[1], noise, known)
            found, variances = stage.coefficients(vectors[1], noise, masses)
            covariances = shrunk(found, variances, _groups(trees, pairs))
        bins = search(masses, pairs, tables(trees, masses, pairs, covariances), count, rng)
        return placed(self.cells, trees, shares, bins, rng)

    @property
    def _columns(self) -> Columns:
        share = SHARES[self.favour][0] if self.stages > 1 else 1.0
        return Columns(self.cells, share)

    def _shares(self, vector: Floats) -> list[Floats]:
        return self._columns.estimate(vector, self.noise(self._columns))

    def _trees(self, shares: list[Floats]) -> tuple[Tree, ...]:
        return tuple(grow(column, own, BINS) for column, own in zip(self.cells, shares, strict=True))

    def _pairs(self, trees: tuple[Tree, ...]) -> Pairs:
        found = tuple(features(tree, BINS, DECAY) for tree in trees)
        return Pairs(self.cells, trees, found, all_pairs(len(trees)), SHARES[self.favour][1], SINGLES, "pairs")


def _groups(trees: tuple[Tree, ...], pairs: Ints) -> Ints:
    """Group of each coefficient by the depths of its two cuts, shape (P, R, R)."""
    width = max(1, *(tree.count - 1 for tree in trees))
    depths = np.full((len(trees), width), -1)
    for i, tree in enumerate(trees):
        depths[i, : tree.count - 1] = np.minimum(tree.depths, 3)
    a, b = depths[pairs[:, 0]][:, :, None], depths[pairs[:, 1]][:, None, :]
    return np.where((a < 0) | (b < 0), -1, 4 * np.minimum(a, b) + np.maximum(a, b))
