"""The release method `copula`: kernels of single columns and of pairs of columns, in adaptive stages.

`CopulaStages` plans the stages and makes rows of their vectors; `CopulaMethod` is the method. Each stage
is the mean over the rows of a bounded feature vector, with Gaussian noise; the features of a stage depend
on the schema, the number of rows, the budget and the noisy vectors of earlier stages, so that the budgets
rho of zero-concentrated differential privacy add up (Bun and Steinke 2016).

1. columns: every column's shares of fine cells, and of groups of cells.
2. pairs: columns are cut into bins of near equal mass by the noisy shares; shares of these bins,
   and means of products of orthonormal functions of the bins of two columns, for all pairs.
3. triples: means of products of coarse functions of three columns, where the number of rows, the
   budget and the number of triples leave something to see.
4. cells of pairs: full tables of a few pairs that depend much, if bins blur a column; the vector of
   the pairs once more, if none does (likewise if fewer than three columns vary).

Both last stages (`relations.py`) are there if `favour` is "relations". Whether there is a third one
depends on public numbers; what the fourth one counts, on the noisy vectors of the first two.

Synthetic rows come from the noisy vectors alone. Covariances are shrunk, by empirical Bayes over
all pairs, towards those of normal ranks; rows start as normal ranks with these correlations, and
are changed until they have the tables of all pairs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.privacy.copula.cells import (
    BinFunctions,
    Cells,
    Tree,
    cells_of_last,
    features,
    grow,
    packed,
    packed_bytes,
    schema_cells,
)
from thesis_cli.privacy.copula.relations import (
    DetailStage,
    TripleStage,
    binned,
    coarse,
    expected_table,
    joint_table,
    placed_jointly,
    resolution,
    strongest,
    worthwhile,
)
from thesis_cli.privacy.copula.rows import normal_guess, normal_scores, placed, scores_of, search, starting_bins
from thesis_cli.privacy.copula.vectors import ColumnStage, PairStage, all_pairs, shrunk, tables
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import (
    COUNT_SHARE,
    LARGEST,
    NoisyStage,
    OpenDPStages,
    Passes,
    SecretStages,
    StagedNoise,
    StageFeatures,
    StageNoise,
    Stages,
    effective,
    is_held,
    mean_stages,
    release_stages,
    total_rho,
)
from thesis_cli.privacy.release.record import Record, Release, uniform_weights
from thesis_cli.privacy.release.release import (
    SAMPLE,
    Errors,
    ExpectedStage,
    Favour,
    Implementation,
    Needs,
    NoisyMean,
    PrivateRows,
    Released,
    ReleasePlan,
    RowSettings,
    check_size,
    linear_errors,
    noise_text,
    sample,
)
from thesis_cli.privacy.tables.schema import Schema

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


REHEARSED = 2000
"""Public rows whose release is timed."""


@dataclass(frozen=True, kw_only=True)
class CopulaVectors:
    """Noisy vectors of all stages.

    Attributes
    ----------
    favour : statistics that the rows should keep best; None in records of earlier versions.
    known : as in `CopulaStages`.
    plain : whether shares are not shrunk, in simulated releases: their spread measures the error, and
        shrinkage would hide it.
    """

    SPARSE = True

    favour: Favour | None = None
    plain: bool | None = None
    known: tuple[tuple[float, ...], ...] | None = None
    stages: tuple[NoisyStage, ...]


class CopulaMethod(Implementation):
    """Counts of columns, then of pairs of columns."""

    proof = StagedNoise
    output = CopulaVectors

    def release(self, plan: ReleasePlan, private: PrivateRows) -> Released:
        """Release the vectors of all stages, of a large table in one pass each."""
        schema = plan.schema

        def stages_of(rows: int, rho: float) -> CopulaStages:
            return CopulaStages(schema, rows, rho, plan.favour, known=plan.known)

        cells = schema_cells(schema)
        stages: Callable[[float], Stages]
        if private.count is None:
            stages = partial(SecretStages, stages_of, plan.unit)
        else:
            stages = partial(stages_of, private.count)
        proof, found = release_stages(
            stages,
            Passes(private.blocks, private.count, packed_bytes(cells), partial(packed, cells)),
            private.count or LARGEST,
            plan.budget,
            private.spend,
            cast("StageNoise", private.noise or OpenDPStages()),
            lambda stage, rows: stage.mean(rows, private.jobs, private.progress),
        )
        counted = None
        if private.count is None:
            counted, found = mean_stages(found, plan.unit)
        size = sum(len(stage.vector) for stage in found)
        output = CopulaVectors(favour=plan.favour, known=plan.known or None, stages=found)
        return Released(proof, output, size, counted)

    def passes(self, plan: ReleasePlan) -> int:
        """One for each stage that there may be."""
        return _planned(plan, LARGEST).stages

    def effective(self, plan: ReleasePlan, count: int) -> int:
        """See `Implementation.effective`."""
        return effective(count, plan.unit)

    def expected(self, plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
        """Later stages depend on the noisy vectors before them: those of uniform rows stand for them.

        Shares and means are estimated from the first stage, which counts the columns.
        """
        rho, rows = total_rho(plan.budget), sample(plan)
        running, vectors = _planned(plan, count), list[Floats]()
        stages, maps = list[ExpectedStage](), list[StageFeatures]()
        while (stage := running.stage(tuple(vectors))) is not None:
            sensitivity = stage.l2_sensitivity(count)
            scale, _, _ = OpenDPStages().calibrate(stage.count, sensitivity, rho * stage.share)
            noise = scale * math.sqrt(stage.count)
            stages.append(ExpectedStage(stage.name, stage.count, sensitivity, scale, noise, sensitivity * count))
            maps.append(stage)
            vectors.append(stage.mean([rows]))

        def errors() -> tuple[float, float | None]:
            each = np.stack([maps[0].mean([rows[i : i + 1]]) for i in range(SAMPLE)])
            return linear_errors(plan.schema, rows, each @ each.T, stages[0].scale)

        return tuple(stages), errors

    def needs(self, plan: ReleasePlan, count: int, made: int) -> Needs:
        """Seconds are those of a release of public rows, whose columns depend on each other."""
        running = _planned(plan, self.effective(plan, count))
        vectors, rng, counting = list[Floats](), np.random.default_rng(0), 0.0
        rows = packed(running.cells, _dependent_rows(plan.schema, REHEARSED, rng))
        while (stage := running.stage(vectors)) is not None:
            mean = partial(stage.mean, [rows])
            vectors.append(mean() + running.noise(stage) * rng.standard_normal(stage.count))
            counting += max(0.0, _seconds(partial(stage.mean, [rows] * 3)) - _seconds(mean)) / (2 * REHEARSED)
        running.fit(vectors, 1, rng)  # compiles
        few, many = (_seconds(partial(running.fit, vectors, n, rng)) for n in (REHEARSED, 3 * REHEARSED))
        each = max(0.0, many - few) / (2 * REHEARSED)
        found = super().needs(plan, count, made)
        seconds, width = count * counting + few + each * (made - REHEARSED), packed_bytes(running.cells)
        if is_held(None if plan.unit.secret else count, width):
            return Needs(seconds, max(count * width, found.memory))
        return Needs(seconds, found.memory, running.stages - 1)

    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """Rows that have the tables of all pairs of columns."""
        vectors = [np.array(stage.vector) for stage in noisy_stages(record)]
        points = recorded_stages(record).fit(vectors, settings.count, rng, settings.jobs)
        return Release(record.schema, points, uniform_weights(points), record)

    def check(self, record: Record) -> None:
        """Number, names and sizes of the stages, whose features depend on the noisy vectors of earlier
        ones.
        """
        running, found = recorded_stages(record), noisy_stages(record)
        own = len(running.cells) - len(running.known)
        if own < 1:
            raise InputError(f"known has {len(running.known)} columns", f"there are {len(running.cells)} in all")
        for i, (cells, shares) in enumerate(zip(running.cells[own:], running.known, strict=True)):
            check_size(f"known[{i}]", len(shares), cells.count)
            if min(shares) < 0 or not sum(shares) > 0:
                raise InputError(f"known[{i}] is no distribution", "its shares must be at least 0")
        if len(found) != running.stages:
            raise InputError(f"there are {len(found)} stages", f"there must be {running.stages}")
        for i, stage in enumerate(found):
            features = running.stage([np.array(before.vector) for before in found[:i]])
            assert features is not None
            if stage.name != features.name:
                raise InputError(f"stages[{i}].name is {stage.name!r}", f"it must be {features.name!r}")
            check_size(f"stages[{i}].vector", len(stage.vector), features.count)

    def means(self, plan: ReleasePlan, record: Record) -> list[NoisyMean]:
        """Mean features of each stage."""
        running, vectors, found = recorded_stages(record), list[Floats](), list[NoisyMean]()
        for stage in noisy_stages(record):
            features = running.stage(vectors)
            assert features is not None
            vectors.append(np.array(stage.vector))
            found.append(NoisyMean(features.mean, vectors[-1], stage.scale))
        return found

    @presentation
    def noise_lines(self, record: Record) -> list[tuple[str, str]]:
        """See `Implementation.noise_lines`."""
        return [(f"noise, {s.name}", noise_text(s.scale, len(s.vector), s.sensitivity)) for s in noisy_stages(record)]

    def simulated(self, record: Record, rows: Rows, rng: np.random.Generator) -> Record:
        """See `Implementation.simulated`."""
        record = replace(record, output=replace(_output(record), plain=True))
        running, vectors, stages = recorded_stages(record), list[Floats](), noisy_stages(record)
        made = list[NoisyStage]()
        for stage in stages:
            public = running.stage(vectors)
            assert public is not None
            mean, scale = public.mean([rows]), stage.scale
            if public.name != stage.name:  # other rows may have another last stage
                scale = running.noise(public)
            vectors.append(mean + scale * rng.standard_normal(mean.size))
            made.append(replace(stage, name=public.name, scale=scale, vector=tuple(vectors[-1].tolist())))
        return replace(record, output=with_stages(record, tuple(made)), entropy=int(rng.integers(2**63)))


def _planned(plan: ReleasePlan, rows: int) -> CopulaStages:
    """Stages of a plan, if a table has so many rows."""
    return CopulaStages(plan.schema, rows, total_rho(plan.budget), plan.favour, known=plan.known)


def _dependent_rows(schema: Schema, count: int, rng: np.random.Generator) -> Rows:
    """Rows of the schema in which all columns depend on one number."""
    from scipy.special import ndtr

    width = schema.reals + len(schema.cardinalities)
    uniform = ndtr((rng.normal(size=(count, 1)) + rng.normal(size=(count, width))) / math.sqrt(2))
    codes = (uniform[:, schema.reals :] * np.array(schema.cardinalities)).astype(np.int64)
    return Rows(uniform[:, : schema.reals], codes)


def _seconds(work: Callable[[], object]) -> float:
    """Seconds of a core that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def noisy_stages(record: Record) -> tuple[NoisyStage, ...]:
    """Noisy vectors of a release by copula.

    Raises
    ------
    InputError : the release is by another method.
    """
    return _output(record).stages


def with_stages(record: Record, stages: tuple[NoisyStage, ...]) -> CopulaVectors:
    """Output of a release by copula with other noisy vectors."""
    return replace(_output(record), stages=stages)


def recorded_stages(record: Record) -> CopulaStages:
    """Stages of a release by copula, from the public part of its record."""
    assert isinstance(record.mechanism, StagedNoise)
    rho = record.mechanism.total * (1 if record.counted is None else 1 - COUNT_SHARE)
    output = _output(record)
    return CopulaStages(
        record.schema,
        record.count.effective,
        rho,
        output.favour or "balance",
        shrinks=not output.plain,
        known=output.known or (),
    )


def _output(record: Record) -> CopulaVectors:
    if not isinstance(record.output, CopulaVectors):
        raise InputError("a release by copula has no stages", "it must have one or more")
    return record.output


METHOD = CopulaMethod()
