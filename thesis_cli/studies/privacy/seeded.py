"""Noise of a seeded generator, for experiments. It protects nothing, and its mechanism is named NOT
PRIVATE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms.mechanism import (
    Adding,
    Budget,
    Calibration,
    OpenDPGaussian,
    analytic_scale,
    check_gaussian,
    check_sizes,
    classical_scale,
    l1_sensitivity,
)

Formula = Literal["opendp", "analytic", "classical"]

NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True)
class SeededGaussian(Adding):
    """Gaussian noise of a seeded generator, for experiments: NOT PRIVATE.

    Attributes
    ----------
    rng : source of the noise.
    formula : scale of the noise: "opendp" as `OpenDPGaussian`, "analytic" or "classical" (see
        `Calibration`).
    published : whether the classical formula is allowed at epsilon >= 1, where it is not proven, as
        in the published runs.

    Raises
    ------
    InputError : the formula is classical at epsilon >= 1, and not `published`.
    """

    rng: np.random.Generator | np.random.RandomState
    formula: Formula = "opendp"
    published: bool = False

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """See `Noise.calibrate`."""
        check_sizes(size, l2_sensitivity)
        check_gaussian(budget)
        if self.formula == "opendp":
            scale = OpenDPGaussian().calibrate(size, l2_sensitivity, budget).scale
        elif self.formula == "analytic":
            scale = analytic_scale(l2_sensitivity, budget)
        elif self.published or budget.epsilon < 1:
            scale = classical_scale(l2_sensitivity, budget)
        else:
            raise InputError(f"the classical formula has epsilon = {budget.epsilon:g}", "it is proven below 1 only")
        return Calibration(
            mechanism=f"{NOT_PRIVATE}: seeded Gaussian, {self.formula} scale",
            scale=scale,
            granularity=0.0,
            epsilon=budget.epsilon,
            delta=budget.delta,
            sensitivity=l2_sensitivity,
        )

    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        return vector + found.scale * self.rng.standard_normal(vector.size)


@dataclass(frozen=True)
class SeededLaplace(Adding):
    """Laplace noise of a seeded generator, for experiments: NOT PRIVATE."""

    rng: np.random.Generator | np.random.RandomState

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
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

    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        return vector + self.rng.laplace(0.0, found.scale, vector.size)
