r"""Releases by kernels of single columns and of pairs of columns ("copula").

A release has stages. Each is the mean over the rows of a bounded feature vector, with Gaussian
noise; the features of a stage depend on the schema, the number of rows, the budget and the noisy
vectors of earlier stages, so that the budgets rho of zero-concentrated differential privacy add up
(Bun and Steinke 2016).

1. columns: every column's shares of fine cells, and of groups of cells.
2. pairs: columns are cut into bins of near equal mass by the noisy shares; shares of these bins,
   and means of products of orthonormal functions of the bins of two columns, for all pairs.
3. triples: means of products of coarse functions of three columns, where the number of rows, the
   budget and the number of triples leave something to see (`triples.py`).
4. cells of pairs: full tables of a few pairs that depend much, if bins blur a column (`detail.py`);
   the vector of the pairs once more, if none does (likewise if fewer than three columns vary).

Both last stages are there if `favour` is "relations". Whether there is a third one depends on public
numbers; what the fourth one counts, on the noisy vectors of the first two.

Synthetic rows come from the noisy vectors alone. Covariances are shrunk, by empirical Bayes over
all pairs, towards those of normal ranks; rows start as normal ranks with these correlations, and
are changed until they have the tables of all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.cells import BinFunctions, Cells, Tree, cells_of_last, features, grow, schema_cells
from thesis_cli.privacy.copula.detail import (
    DetailStage,
    binned,
    expected_table,
    joint_table,
    placed_jointly,
    strongest,
    worthwhile,
)
from thesis_cli.privacy.copula.rows import normal_guess, normal_scores, placed, scores_of, search, starting_bins
from thesis_cli.privacy.copula.triples import TripleStage, coarse, resolution
from thesis_cli.privacy.copula.vectors import ColumnStage, PairStage, all_pairs, shrunk, tables
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import StageFeatures
from thesis_cli.privacy.tables.schema import Schema

Favour = Literal["relations", "balance", "marginals", "correlations", "rows"]
"""Statistics that the rows of a release should keep best."""

SHARES: dict[Favour, tuple[float, float]] = {
    "relations": (0.35, 0.65),
    "balance": (0.35, 0.65),
    "marginals": (0.6, 0.4),
    "correlations": (0.2, 0.8),
    "rows": (0.25, 0.75),
}
"""Shares of the budget of the first two stages, of what later ones leave."""
EXACT = 1e-20
"""Variance of shares without noise; it is above 0, to be divided by."""
TRIPLES, DETAIL = 0.05, 0.15
"""Shares of the third and the fourth stage."""

BINS, MANY = 16, 48
"""Bins of a column, and number of columns beyond which there are half as many."""
RESOLUTION = {4: 0.01, 8: 0.004, 16: 0.0}
"""Bins whose covariances are released, and least noise on a correlation of two bins for them."""
DECAY = 1.5
"""Power of its mass with which the weight of a cut falls: fine cuts say less."""
SINGLES = 0.25
"""Share of the bins of single columns in the second stage."""


@dataclass(frozen=True)
class Marginals:
    """Distribution, bins and functions of each column, by the noisy vector of the first stage.

    Attributes
    ----------
    shares : distribution of each column over its cells.
    trees : bins of each column.
    functions : functions of the bins of each column, for its products with other columns.
    """

    shares: list[Floats]
    trees: tuple[Tree, ...]
    functions: tuple[BinFunctions, ...]


@dataclass(frozen=True)
class CopulaStages:
    """Stages of a copula release, from public settings alone.

    Attributes
    ----------
    schema : columns.
    rows : number N of rows of the table.
    rho : budget of zero-concentrated differential privacy of all stages together.
    favour : statistics that are to be answered well; it sets the stages' shares of the budget.
    shrinks : whether to shrink noise-dominated shares of levels, if `favour` is "relations".
    known : distributions over their cells of the last columns, if these are public: the first stage
        leaves these columns out.
    """

    schema: Schema
    rows: int
    rho: float
    favour: Favour = "balance"
    shrinks: bool = True
    known: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """Cells of each column."""
        return schema_cells(self.schema)

    @property
    def stages(self) -> int:
        """Number of stages."""
        return 1 if len(self.cells) == 1 else 2 + bool(self._groups) + self._has_detail

    @cached_property
    def _groups(self) -> int:
        """Groups of bins in triples; 0 if these are not measured."""
        return resolution(len(self.cells), self.rows, TRIPLES * self.rho) if self.favour == "relations" else 0

    @cached_property
    def _has_detail(self) -> bool:
        rho = DETAIL * self.rho
        return self.favour == "relations" and worthwhile(self.cells, self._bins, self.rows, rho)

    @property
    def _bins(self) -> int:
        return BINS if len(self.cells) <= MANY else BINS // 2

    def stage(self, vectors: Sequence[Floats]) -> StageFeatures | None:
        """The stage after those with these noisy vectors; None if there is no further one."""
        if len(vectors) == self.stages:
            return None
        if not vectors:
            return self._columns
        found = self._marginals(vectors[0])
        if len(vectors) == 1:
            return self._pairs(found)
        if self._groups and len(vectors) == 2:
            return self._triples(found.trees) or self._again(found, TRIPLES)
        return self._detail(found.trees, self._model(vectors[:2])[1]) or self._again(found, DETAIL)

    def noise(self, stage: StageFeatures) -> float:
        """Standard deviation of the noise on each coordinate of a stage."""
        return stage.l2_sensitivity(self.rows) / math.sqrt(2 * self.rho * stage.share)

    def fit(
        self,
        vectors: Sequence[Floats],
        count: int,
        rng: np.random.Generator,
        jobs: int = 1,
        last: Rows | None = None,
    ) -> Rows:
        """Encoded synthetic rows, `count` of them, from the noisy vectors of all stages.

        Parameters
        ----------
        last : encoded rows of the last columns, which the rows keep; none are kept by default.
        """
        kept = {} if last is None else cells_of_last(self.cells, last)
        found = self._marginals(vectors[0])
        shares, trees = found.shares, found.trees
        pairs = all_pairs(len(trees))
        masses, targets, correlations = self._model(vectors[:2])
        joints: list[Floats] = []
        detail = self._detail(trees, targets) if self._has_detail else None
        triples = self._triples(trees) if self._groups else None
        again = [(vectors[2], TRIPLES)] if self._groups and not triples else []
        again += [(vectors[-1], DETAIL)] if self._has_detail and not detail else []
        if again:
            masses, targets, correlations = self._model(vectors[:2], again)
        if detail:
            places = {(i, j): p for p, (i, j) in enumerate(pairs.tolist())}
            noise = self.noise(detail)
            for pair, noisy in zip(detail.pairs.tolist(), detail.tables(vectors[-1]), strict=True):
                at = places[pair[0], pair[1]]
                expected = expected_table(trees, shares, pair, targets[at])
                joints.append(joint_table(noisy, noise / math.sqrt(detail.weight), expected))
                targets[at] = binned(trees, pair, joints[-1], targets.shape[1])
        known = {i: scores_of(own, rng) for i, own in kept.items()}
        scores = normal_scores(len(trees), pairs, correlations, count, rng, known)
        bins = starting_bins(self.cells, trees, masses, scores, rng)
        for i, own in kept.items():
            bins[:, i] = trees[i].bins[own]
        bins = search(trees, bins, pairs, targets, rng, kept=kept)
        if triples:
            lacking = triples.interactions(vectors[2], self.noise(triples), bins)
            if lacking:
                groups = [coarse(tree, self._groups) for tree in trees]
                bins = search(trees, bins, pairs, targets, rng, lacking, groups, kept)
        given: Mapping[int, Ints] = kept
        if detail:
            given = placed_jointly(trees, shares, detail.pairs, joints, bins, scores, rng, kept)
        return placed(self.cells, trees, shares, bins, scores, rng, given)

    def _model(
        self, vectors: Sequence[Floats], again: Sequence[tuple[Floats, float]] = ()
    ) -> tuple[list[Floats], Floats, Floats]:
        """Masses of the bins of each column, tables of all pairs and their correlations, from the
        noisy vectors of the first two stages, and of the pairs `again`, with their shares.
        """
        columns = self._marginals(vectors[0])
        trees = columns.trees
        pairs = all_pairs(len(trees))
        masses = [tree.masses for tree in trees]
        covariances, correlations = np.zeros((0, 1, 1)), np.zeros(0)
        if len(vectors) > 1:
            stage = self._pairs(columns)
            vector = vectors[1]
            for other, share in again:
                vector = (stage.share * vector + share * other) / (stage.share + share)
                stage = replace(stage, share=stage.share + share)
            noise = self.noise(stage)
            deviation = self.noise(self._columns)
            own = trees[: len(self._columns.cells)]
            known = self._columns.variances([tree.bins for tree in own], deviation)
            if self._columns.shrinks:
                kept = self._columns.kept(vectors[0], deviation)
                known = [share * variance for share, variance in zip(kept, known, strict=True)]
            known += [np.full(tree.count, EXACT) for tree in trees[len(own) :]]
            masses = stage.masses(vector, noise, known)
            found, variances = stage.coefficients(vector, noise, masses)
            guess, correlations = normal_guess(self.cells, trees, pairs, found, variances)
            covariances = guess + shrunk(found - guess, variances, _groups(trees, pairs))
        return masses, tables(trees, masses, pairs, covariances), correlations

    @property
    def _left(self) -> float:
        """Share of the first two stages."""
        return 1 - TRIPLES * bool(self._groups) - DETAIL * self._has_detail

    @property
    def _cuts(self) -> int:
        """Number of bins whose covariances are released: fewer where the fine ones would be
        noise-dominated.
        """
        columns = len(self.cells)
        noise = columns / self.rows / math.sqrt(2 * self.rho * SHARES[self.favour][1] * self._left)
        return next(bins for bins, least in RESOLUTION.items() if noise >= least)

    @property
    def _columns(self) -> ColumnStage:
        share = SHARES[self.favour][0] * self._left if self.stages > 1 else 1.0
        cells = self.cells[: len(self.cells) - len(self.known)]
        return ColumnStage(cells, share, shrinks=self.shrinks and self.favour == "relations")

    def _marginals(self, vector: Floats) -> Marginals:
        """Kept for the last noisy vector, since every later stage and the rows ask for it."""
        key = vector.tobytes()
        if key not in self._last:
            shares = self._columns.estimate(vector, self.noise(self._columns)) + [np.array(own) for own in self.known]
            trees = tuple(grow(column, own, self._bins) for column, own in zip(self.cells, shares, strict=True))
            self._last.clear()
            self._last[key] = Marginals(shares, trees, tuple(features(tree, self._cuts, DECAY) for tree in trees))
        return self._last[key]

    @cached_property
    def _last(self) -> dict[bytes, Marginals]:
        return {}

    def _pairs(self, columns: Marginals) -> PairStage:
        trees, share = columns.trees, SHARES[self.favour][1] * self._left
        return PairStage(self.cells, trees, columns.functions, all_pairs(len(trees)), share, SINGLES, "pairs")

    def _again(self, columns: Marginals, share: float) -> PairStage:
        """The stage of the pairs once more, where another one has nothing to measure."""
        return replace(self._pairs(columns), share=share, name="pairs, again")

    def _triples(self, trees: tuple[Tree, ...]) -> TripleStage | None:
        """All triples; None if too few columns vary."""
        found = TripleStage(
            self.cells, trees, tuple(features(tree, self._groups, DECAY) for tree in trees), self._groups, TRIPLES
        )
        return found if found.count else None

    def _detail(self, trees: tuple[Tree, ...], targets: Floats) -> DetailStage | None:
        """Full tables of pairs that depend much; None if there are none."""
        pairs = strongest(self.cells, trees, all_pairs(len(trees)), targets)
        return DetailStage(self.cells, pairs, DETAIL) if len(pairs) else None


def _groups(trees: tuple[Tree, ...], pairs: Ints) -> Ints:
    """Group of each coefficient by the depths of its two cuts, shape (P, R, R)."""
    width = max(1, *(tree.count - 1 for tree in trees))
    depths = np.full((len(trees), width), -1)
    for i, tree in enumerate(trees):
        depths[i, : tree.count - 1] = np.minimum(tree.depths, 3)
    a, b = depths[pairs[:, 0]][:, :, None], depths[pairs[:, 1]][:, None, :]
    return np.where((a < 0) | (b < 0), -1, 4 * np.minimum(a, b) + np.maximum(a, b))
