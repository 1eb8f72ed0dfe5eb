"""Training of a grid model from pairs of noisy and clean images, by any method."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.learning import perturb_max, smooth, structured_svm
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.settings import Method, Settings
from thesis_cli.learning.training_run import EVERY, TrainingRun

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Trained:
    """Weights, and how they came about.

    Attributes
    ----------
    weights : learnt.
    columns : the trace, as `trace` has it.
    map_calls : MAP problems solved, without those that the trace alone needs.
    """

    weights: GridWeights
    columns: Columns
    map_calls: int

    @cached_property
    def trace(self) -> pd.DataFrame:
        """Columns iteration, map_calls, seconds, objective, step, and of some methods more."""
        return self.columns.frame()


def train(
    noisy: Bools,
    clean: Bools,
    settings: Settings,
    seed: int,
    progress: Tick | None = None,
    checkpoint: Path | None = None,
    every: float = EVERY,
) -> Trained:
    """Learn weights from pairs of images, shape (count, h, w).

    Parameters
    ----------
    seed : seed of all random numbers; same images, settings and seed: same weights.
    progress : called with the number of iterations just done.
    checkpoint : file that the training goes on from after any end, and that it keeps.
    every : seconds between two checkpoints.

    Raises
    ------
    InputError : the images do not fit each other, or the checkpoint is damaged or of another
        training.
    ModelTooLarge : the grid is too wide for the exact gradient of `crf`.
    WorkFailed : the weights grow beyond all bounds.
    """
    _check(settings)
    problem = Problem(noisy, clean, settings)
    digest = hashlib.sha256(np.packbits(noisy).tobytes() + np.packbits(clean).tobytes()).hexdigest()
    made_from = {**asdict(settings), "seed": seed, "shape": list(noisy.shape), "images_sha256": digest}
    run = TrainingRun(made_from, checkpoint, progress, every)
    vector = _method(settings)(problem, seed, run)
    about = {"settings": asdict(settings), "seed": seed, "images": problem.count, "images_sha256": digest}
    return Trained(problem.layout.weights(vector, about), run.columns(), run.map_calls)


def _method(settings: Settings) -> Callable[[Problem, int, TrainingRun], Floats]:
    methods: dict[Method, Callable[[Problem, int, TrainingRun], Floats]] = {
        "perturb-max": perturb_max.descend if settings.schedule == "halving" else perturb_max.average,
        "structured-svm": structured_svm.subgradient,
        "svm-frank-wolfe": structured_svm.frank_wolfe,
        "crf": smooth.random_field,
        "pseudo-likelihood": smooth.pseudo_likelihood,
    }
    return methods[settings.method]


def _check(settings: Settings) -> None:
    """Refuse numbers that no method takes (`InputError`)."""
    for name, least in (("total", 0), ("perturbations", 1)):
        if getattr(settings, name) < least:
            raise InputError(f"{name} is {getattr(settings, name)}", f"it must be {least} or more")
    if not 0 < settings.regularisation < np.inf:
        raise InputError(f"the regularisation is {settings.regularisation}", "it must be finite and above 0")
