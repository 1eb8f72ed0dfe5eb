r"""Staged releases that protect any unit (`units`): a first stage releases the number of rows.

The first stage is the noisy number n of the rows that count; a unit changes it by at most K. Later
stages release sums of features, and the plan of a stage sees them divided by n, together with the
number of rows at which a mean with a public number would have noise of that scale. A plan uses the
number of rows for the scale of its noise alone, so all that it decides comes from noisy vectors.

Let D be the plan's bound on the distance of two rows' vectors. Their norm must be at most D /
sqrt(2), as it is wherever two rows of that norm have no positive inner product. One unit then moves
the sum by at most K D / sqrt(2) if it is added or removed, and by at most K D if it is replaced: of
s >= s' rows, s' pairs are at most D apart, and s - s' single ones have norms below D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.units import LARGEST, SPARE, Unit, summed
from thesis_cli.privacy.release.record import Counted, Stage
from thesis_cli.privacy.release.staged import StagePlan, Stages

COUNT_SHARE = 0.02
"""Share of the total rho that the number of rows gets."""


@dataclass(frozen=True)
class SecretStages:
    """Stages of a table whose number of rows is secret.

    Attributes
    ----------
    plan : stages with a public number of rows, from that number and the total rho.
    unit : what neighbours differ in.
    rho : total rho.
    """

    plan: Callable[[int, float], Stages]
    unit: Unit
    rho: float

    def stage(self, vectors: Sequence[Floats]) -> StagePlan | None:
        """The stage after those with these noisy vectors; None if there is no further one."""
        if not vectors:
            return CountStage(self.unit.most or 1)
        rows = _rows(float(vectors[0][0]))
        plan = self.plan(effective(rows, self.unit), self.rho * (1 - COUNT_SHARE))
        found = plan.stage([vector / rows for vector in vectors[1:]])
        return None if found is None else SumStage(found, self.unit)


@dataclass(frozen=True)
class CountStage:
    """Number of rows; a person has at most `most`."""

    most: int
    name: str = "number of rows"
    share: float = COUNT_SHARE
    count: int = 1

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """The number, exactly, shape (1,)."""
        return np.array([float(sum(map(len, blocks)))])

    def l2_sensitivity(self, rows: int) -> float:
        """Largest number of rows of a unit."""
        return float(self.most)


@dataclass(frozen=True)
class SumStage:
    """A stage that releases the sum of its features, not their mean."""

    plan: StagePlan
    unit: Unit

    @property
    def name(self) -> str:
        """Name of the stage."""
        return self.plan.name

    @property
    def share(self) -> float:
        """Share of the total rho, of which the number of rows has one too."""
        return self.plan.share * (1 - COUNT_SHARE)

    @property
    def count(self) -> int:
        """Length of the vector."""
        return self.plan.count

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Sum of the features over a private table."""
        return summed(self.plan, blocks, jobs, progress)[0]

    def l2_sensitivity(self, rows: int) -> float:
        """Sensitivity of the sum, rounding included, for tables of at most LARGEST rows: see
        `Totals.l2_sensitivity`.
        """
        return _factor(self.unit) * self.plan.l2_sensitivity(SPARE * LARGEST) * SPARE * LARGEST


def mean_stages(stages: Sequence[Stage], unit: Unit) -> tuple[Counted, tuple[Stage, ...]]:
    """Number of rows, and the later stages as those of means, by post-processing."""
    first, *rest = stages
    rows = _rows(first.vector[0])
    counted = Counted(rows, first.scale, unit.most or 1, effective(rows, unit))
    return counted, tuple(
        replace(
            stage,
            sensitivity=stage.sensitivity / rows,
            scale=stage.scale / rows,
            granularity=stage.granularity / rows,
            vector=tuple(value / rows for value in stage.vector),
        )
        for stage in rest
    )


def _factor(unit: Unit) -> float:
    """Sensitivity of a sum for one of D between two rows."""
    return (unit.most or 1) * (1 if unit.neighbours == "replace" else math.sqrt(0.5))


def _rows(noisy: float) -> float:
    return max(1.0, noisy)


def effective(rows: float, unit: Unit) -> int:
    """Number of rows with one for each person and a public number whose means have noise of the
    same scale as those of `rows` rows.
    """
    return max(1, int(rows / _factor(unit)))
