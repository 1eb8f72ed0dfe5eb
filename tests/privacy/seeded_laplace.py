"""Laplace noise of a seeded generator: NOT PRIVATE."""

from dataclasses import dataclass

import numpy as np

from thesis_cli.privacy.mechanisms.mechanism import Adding, Calibration, check_sizes, l1_sensitivity
from thesis_cli.studies.privacy.seeded import NOT_PRIVATE


@dataclass(frozen=True)
class SeededLaplace(Adding):
    rng: np.random.Generator | np.random.RandomState

    def calibrate(self, size, l2_sensitivity, budget):
        """See `Noise.calibrate`."""
        check_sizes(size, l2_sensitivity)
        l1 = l1_sensitivity(size, l2_sensitivity)
        return Calibration(
            mechanism=f"{NOT_PRIVATE}: seeded Laplace",
            scale=l1 / budget.epsilon,
            granularity=0.0,
            epsilon=budget.epsilon,
            delta=0.0,
            sensitivity=l1,
            norm=1,
        )

    def _draw(self, vector, found):
        return vector + self.rng.laplace(0.0, found.scale, vector.size)
