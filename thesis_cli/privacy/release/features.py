"""The release method `features`: the noisy mean of random features (Thesis Algorithm 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.embedding.points import Effort, synthesise
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.record import Record, Release
from thesis_cli.privacy.release.release import ReleasePlan, RowSettings, check_size, generator
from thesis_cli.privacy.release.vectors import NoisyVector, VectorMethod, noisy_vector
from thesis_cli.privacy.tables.schema import Schema


class FeatureMethod(VectorMethod):
    """Random features of the kernel, drawn from public entropy."""

    def embedding(self, plan: ReleasePlan) -> Features:
        """See `VectorMethod.embedding`."""
        return _drawn(plan.schema, plan.size, plan.entropy)

    def features(self, record: Record) -> Features:
        """See `Implementation.features`."""
        return _drawn(record.schema, record.size, record.entropy)

    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """Rows fitted to the noisy vector."""
        vector, noise = noisy_vector(record)
        made = synthesise(
            np.array(vector),
            self.features(record),
            np.tile([0.0, 1.0], (record.schema.reals, 1)),
            settings.count,
            rng,
            noise=noise.deviation,
            uniform=settings.weights == "uniform",
            effort=Effort(settings.time_limit, settings.jobs, settings.progress),
        )
        return Release(record.schema, made.rows, made.weights, replace(record, objective=made.objective))

    def check(self, record: Record) -> None:
        """See `Implementation.check`."""
        check_size("vector", len(noisy_vector(record)[0]), record.size)

    def simulated(self, record: Record, rows: Rows, rng: np.random.Generator) -> Record:
        """See `Implementation.simulated`."""
        _, noise = noisy_vector(record)
        mean = self.features(record).mean([rows])
        law = rng.laplace if noise.norm == 1 else rng.normal
        values = mean + law(0, noise.scale, mean.size)
        return replace(record, output=NoisyVector(tuple(values.tolist())))


def _drawn(schema: Schema, size: int, entropy: int) -> Features:
    return draw_features(schema.kernel(), schema.cardinalities, size, generator(entropy, "features"))


METHOD = FeatureMethod()
