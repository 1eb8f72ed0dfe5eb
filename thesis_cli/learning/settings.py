"""Settings of a training of a grid model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["perturb-max", "structured-svm", "svm-frank-wolfe", "crf", "pseudo-likelihood"]

Kind = Literal["two", "grey", "labels"]
WeightsKind = Literal["pixel", "shared"]
Schedule = Literal["halving", "decaying", "adam"]
Couplings = Literal["attractive", "any"]
Loss = Literal["none", "hamming"]

LEVELS = 32
"""Levels of grey images by default."""

FOLDS = 3
"""Parts of the pairs, each of which is held out once to choose settings by."""

ITERATIONS: dict[Method, int] = {
    "perturb-max": 30,
    "structured-svm": 10_000,
    "svm-frank-wolfe": 50,
    "crf": 200,
    "pseudo-likelihood": 500,
}
"""Iterations by default: gradient steps, steps of one image, passes over the images, and most
iterations of L-BFGS."""

ADAM = 400
"""Iterations of `perturb-max` by default with the schedule `adam`, whose steps take a few images each."""


@dataclass(frozen=True)
class Settings:
    """Settings of `train`; those that a method does not heed change nothing.

    Attributes
    ----------
    method : `perturb-max` and `structured-svm` as Hazan et al. section V prints them;
        `svm-frank-wolfe`, `crf` and `pseudo-likelihood` as their modules say.
    iterations : None for `ITERATIONS`.
    regularisation : weight of the squared norm in the objective.
    weights : `pixel`, a weight for each pixel and each pair of neighbours, or `shared`, the same
        everywhere.
    patch : side of the patches of shared weights, odd.
    hidden : hidden units of the network on these patches, which `perturb-max` alone learns.
    bias : whether each pixel has a bias of its own beside its field; shared weights have one.
    couplings : `attractive` keeps them at 0 or above.
    perturbations : perturbations of each image in a gradient of `perturb-max`.
    schedule : step sizes of `perturb-max`: halved where a step does not improve the objective; 1 /
        (2 regularisation t) at iteration t, averaged; or those of Adam.
    rate : first step size of `perturb-max`, step size of `structured-svm`; None for 1 by halving,
        0.05 by Adam, and 10 / sqrt(iterations).
    loss : label loss of `structured-svm`.
    images_per_step : images in a step of `structured-svm`; None for all.
    """

    method: Method = "perturb-max"
    iterations: int | None = None
    regularisation: float = 1.0
    weights: WeightsKind = "pixel"
    patch: int = 7
    hidden: int = 0
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
        if self.iterations is not None:
            return self.iterations
        return ADAM if self.method == "perturb-max" and self.schedule == "adam" else ITERATIONS[self.method]
