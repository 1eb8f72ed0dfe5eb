"""Releases of a real table by the methods of `dp-release` and by baselines, for experiments.

The noise is seeded, with the scale of `dp-release`: NOT PRIVATE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.embedding.points import synthesise
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, release_stages, total_rho
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.release import Favour
from thesis_cli.studies.privacy.evaluation import histogram_release
from thesis_cli.studies.privacy.real_tables import RealTable
from thesis_cli.studies.privacy.seeded import SeededGaussian, subspace_release

TABLE = "rows of the table"
COPULA, THIRD, SECOND = "copula", "Algorithm 3", "Algorithm 2"
HISTOGRAMS = {"histogram": 6, "histograms of columns": 24}
"""Bins for each real of the joint histogram, and of a histogram of each column."""


@dataclass(frozen=True)
class SeededStages:
    """Gaussian noise of a seeded generator for stages of a release: NOT PRIVATE."""

    rng: np.random.Generator

    def calibrate(self, size: int, l2_sensitivity: float, rho: float) -> tuple[float, float, float]:
        """See `StageNoise.calibrate`."""
        return OpenDPStages().calibrate(size, l2_sensitivity, rho)

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        """See `StageNoise.add`."""
        return vector + scale * self.rng.standard_normal(vector.size)


def released(
    method: str, table: RealTable, budget: Budget, rows: int, features: int, rng: np.random.Generator
) -> list[Rows]:
    """Releases by one draw of noise: of as many rows as the table has, where that is affordable, and
    of `rows` rows.

    Parameters
    ----------
    method : `COPULA`, `THIRD`, `SECOND`, one of `HISTOGRAMS`, or `TABLE`.
    features : number of features of `THIRD`.
    """
    private, schema = table.private, table.schema
    if method == COPULA:
        return copula(table, budget, (len(private), rows), rng)
    if method == TABLE:
        again = rng.integers(len(private), size=len(private))
        return [private[again], private[rng.permutation(len(private))[:rows]]]
    noise, cardinalities, kernel = SeededGaussian(rng), schema.cardinalities, schema.kernel()
    if method == THIRD:
        drawn = draw_features(kernel, cardinalities, features, rng)
        noised = noise.add(drawn.mean([private]), drawn.l2_sensitivity(len(private)), budget)
        box = np.tile([0.0, 1.0], (schema.reals, 1))
        return [synthesise(noised.values, drawn, box, rows, rng, noise=noised.calibration.scale, uniform=True).rows]
    if method == SECOND:
        points = Rows(rng.random((rows, schema.reals)), rng.integers(0, cardinalities, (rows, len(cardinalities))))
        found = subspace_release(kernel, points, [private], len(private), noise, budget, "simplex")
        return [points[rng.choice(rows, rows, p=found.weights / found.weights.sum())]]
    joint = method == "histogram"
    return [histogram_release(private, cardinalities, HISTOGRAMS[method], noise, budget, rows, rng, joint=joint)]


def copula(
    table: RealTable,
    budget: Budget,
    counts: tuple[int, ...],
    rng: np.random.Generator,
    favour: Favour = "balance",
) -> list[Rows]:
    """Rows of `dp-release --method copula`, of each count, by one draw of noise."""
    private, schema = table.private, table.schema
    plan = CopulaStages(schema, len(private), total_rho(budget), favour)
    _, stages = release_stages(
        lambda _: plan,
        [private],
        len(private),
        budget,
        lambda *_: None,
        SeededStages(rng),
        lambda stage, blocks: stage.mean(blocks),
    )
    vectors = [np.array(stage.vector) for stage in stages]
    return [plan.fit(vectors, count, rng) for count in counts]
