"""The release method `copula`: kernels of columns and of pairs of columns, in adaptive stages
(`copula.CopulaStages`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.privacy.copula.cells import packed, packed_bytes, schema_cells
from thesis_cli.privacy.copula.copula import CopulaStages, Favour
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
