"""Settings of a training of a grid model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["perturb-max", "structured-svm", "svm-frank-wolfe", "crf", "pseudo-likelihood"]

Schedule = Literal["halving", "decaying"]
Couplings = Literal["attractive", "any"]
Loss = Literal["none", "hamming"]

ITERATIONS: dict[Method, int] = {
    "perturb-max": 30,
    "structured-svm": 10_000,
    "svm-frank-wolfe": 50,
    "crf": 200,
    "pseudo-likelihood": 500,
}
"""Iterations by default: gradient steps, steps of one image, passes over the images, and most
iterations of L-BFGS."""


@dataclass(frozen=True)
class Settings:
    """Settings of `train`; those that a method does not heed change nothing.

    Attributes
    ----------
    method : `perturb-max` and `structured-svm` as Hazan et al. section V prints them;
        `svm-frank-wolfe`, `crf` and `pseudo-likelihood` as their modules say.
    iterations : None for `ITERATIONS`.
    regularisation : weight of the squared norm in the objective.
    bias : whether each pixel has a bias of its own beside its field.
    couplings : `attractive` keeps them at 0 or above.
    perturbations : perturbations of each image in a gradient of `perturb-max`.
    schedule : step sizes of `perturb-max`: halved where a step does not improve the objective, or
        1 / (2 regularisation t) at iteration t, averaged.
    rate : first step size of `perturb-max` by halving, step size of `structured-svm`; None for 1
        and for 10 / sqrt(iterations).
    loss : label loss of `structured-svm`.
    images_per_step : images in a step of `structured-svm`; None for all.
    """

    method: Method = "perturb-max"
    iterations: int | None = None
    regularisation: float = 1.0
    bias: bool = False
    couplings: Couplings = "attractive"
    perturbations: int = 5
    schedule: Schedule = "halving"
    rate: float | None = None
    loss: Loss = "none"
    images_per_step: int | None = 1

    @property
    def total(self) -> int:
        """Number of iterations."""
        return ITERATIONS[self.method] if self.iterations is None else self.iterations
