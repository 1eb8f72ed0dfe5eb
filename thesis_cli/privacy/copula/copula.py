r"""Releases by kernels of single columns and of pairs of columns ("copula").

A release has stages. Each is the mean over the rows of a bounded feature vector, with Gaussian
noise; the features of a stage depend on the schema, the number of rows, the budget and the noisy
vectors of earlier stages, so that the budgets rho of zero-concentrated differential privacy add up
(Bun and Steinke 2016).

1. columns: every column's shares of fine cells, and of groups of cells.
2. pairs: columns are cut into bins of near equal mass by the noisy shares; shares of these bins,
   and means of products of orthonormal functions of the bins of two columns, for all pairs.

Synthetic rows come from the noisy vectors alone. Covariances are shrunk, by empirical Bayes over
all pairs, towards those of normal ranks; rows start as normal ranks with these correlations, and
are changed until they have the tables of all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.cells import Cells, Tree, features, grow, schema_cells
from thesis_cli.privacy.copula.rows import normal_guess, normal_scores, placed, search, starting_bins
from thesis_cli.privacy.copula.vectors import ColumnStage, PairStage, all_pairs, shrunk, tables
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import StageFeatures
from thesis_cli.privacy.tables.schema import Schema

Favour = Literal["balance", "marginals", "correlations", "rows"]
"""Statistics that the rows of a release should keep best."""

SHARES: dict[Favour, tuple[float, float]] = {
    "balance": (0.35, 0.65),
    "marginals": (0.6, 0.4),
    "correlations": (0.2, 0.8),
    "rows": (0.25, 0.75),
}
"""Shares of the budget of the stages."""

BINS, MANY = 16, 48
"""Bins of a column, and number of columns beyond which there are half as many."""
RESOLUTION = {4: 0.01, 8: 0.004, 16: 0.0}
"""Bins whose covariances are released, and least noise on a correlation of two bins for them."""
DECAY = 1.5
"""Power of its mass with which the weight of a cut falls: fine cuts say less."""
SINGLES = 0.25
"""Share of the bins of single columns in the second stage."""


@dataclass(frozen=True)
class CopulaStages:
    """Stages of a copula release, from public settings alone.

    Attributes
    ----------
    schema : columns.
    rows : number N of rows of the table.
    rho : budget of zero-concentrated differential privacy of all stages together.
    favour : statistics that are to be answered well; it sets the stages' shares of the budget.
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

    def stage(self, vectors: Sequence[Floats]) -> StageFeatures | None:
        """The stage after those with these noisy vectors; None if there is no further one."""
        if len(vectors) == self.stages:
            return None
        if not vectors:
            return self._columns
        return self._pairs(self._trees(self._shares(vectors[0])))

    def noise(self, stage: StageFeatures) -> float:
        """Standard deviation of the noise on each coordinate of a stage."""
        return stage.l2_sensitivity(self.rows) / math.sqrt(2 * self.rho * stage.share)

    def fit(self, vectors: Sequence[Floats], count: int, rng: np.random.Generator, jobs: int = 1) -> Rows:
        """Encoded synthetic rows, `count` of them, from the noisy vectors of all stages."""
        shares = self._shares(vectors[0])
        trees = self._trees(shares)
        pairs = all_pairs(len(trees))
        masses = [tree.masses for tree in trees]
        covariances, correlations = np.zeros((0, 1, 1)), np.zeros(0)
        if len(vectors) > 1:
            stage = self._pairs(trees)
            noise = self.noise(stage)
            known = self._columns.variances([tree.bins for tree in trees], self.noise(self._columns))
            masses = stage.masses(vectors[1], noise, known)
            found, variances = stage.coefficients(vectors[1], noise, masses)
            guess, correlations = normal_guess(self.cells, trees, pairs, found, variances)
            covariances = guess + shrunk(found - guess, variances, _groups(trees, pairs))
        scores = normal_scores(len(trees), pairs, correlations, count, rng)
        bins = starting_bins(self.cells, trees, masses, scores, rng)
        bins = search(trees, bins, pairs, tables(trees, masses, pairs, covariances), rng)
        return placed(self.cells, trees, shares, bins, scores, rng)

    @property
    def _cuts(self) -> int:
        """Number of bins whose covariances are released: fewer where the fine ones would be
        noise-dominated.
        """
        columns = len(self.cells)
        noise = columns / self.rows / math.sqrt(2 * self.rho * SHARES[self.favour][1])
        return next(bins for bins, least in RESOLUTION.items() if noise >= least)

    @property
    def _columns(self) -> ColumnStage:
        share = SHARES[self.favour][0] if self.stages > 1 else 1.0
        return ColumnStage(self.cells, share)

    def _shares(self, vector: Floats) -> list[Floats]:
        return self._columns.estimate(vector, self.noise(self._columns))

    def _trees(self, shares: list[Floats]) -> tuple[Tree, ...]:
        return tuple(
            grow(column, own, BINS if len(self.cells) <= MANY else BINS // 2)
            for column, own in zip(self.cells, shares, strict=True)
        )

    def _pairs(self, trees: tuple[Tree, ...]) -> PairStage:
        found = tuple(features(tree, self._cuts, DECAY) for tree in trees)
        return PairStage(self.cells, trees, found, all_pairs(len(trees)), SHARES[self.favour][1], SINGLES, "pairs")


def _groups(trees: tuple[Tree, ...], pairs: Ints) -> Ints:
    """Group of each coefficient by the depths of its two cuts, shape (P, R, R)."""
    width = max(1, *(tree.count - 1 for tree in trees))
    depths = np.full((len(trees), width), -1)
    for i, tree in enumerate(trees):
        depths[i, : tree.count - 1] = np.minimum(tree.depths, 3)
    a, b = depths[pairs[:, 0]][:, :, None], depths[pairs[:, 1]][:, None, :]
    return np.where((a < 0) | (b < 0), -1, 4 * np.minimum(a, b) + np.maximum(a, b))
