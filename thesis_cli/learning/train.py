"""Training of a grid model from pairs of noisy and clean images, by any method."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.learning import perturb_max, smooth, structured_svm
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.settings import Method, Settings
from thesis_cli.learning.shared_model import Weights
from thesis_cli.learning.training_run import EVERY, TrainingRun, tried_before

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

    weights: Weights
    columns: Columns
    map_calls: int

    @cached_property
    def trace(self) -> pd.DataFrame:
        """Columns iteration, map_calls, seconds, objective, step, and of some methods more."""
        return self.columns.frame()


def train(
    noisy: Bools | Floats,
    clean: Bools,
    settings: Settings,
    seed: int,
    progress: Tick | None = None,
    checkpoint: Path | None = None,
    every: float = EVERY,
    tried: Sequence[Mapping[str, Any]] = (),
) -> Trained:
    """Learn weights from pairs of images, shape (count, h, w); noisy ones of booleans, or of numbers about 0.

    Parameters
    ----------
    seed : seed of all random numbers; same images, settings and seed: same weights.
    progress : called with the number of iterations just done.
    checkpoint : file that the training goes on from after any end, and that it keeps.
    every : seconds between two checkpoints.
    tried : what trainings before this one found, in types of JSON, which the checkpoint keeps; one of
        the last of them is replaced.

    Raises
    ------
    InputError : the images do not fit each other, or the checkpoint is damaged or of another
        training.
    ModelTooLarge : the grid is too wide for the exact gradient of `crf`.
    WorkFailed : the weights grow beyond all bounds.
    """
    _check(settings)
    problem = Problem(noisy, clean, settings)
    data = np.packbits(noisy.astype(np.bool_)).tobytes() if noisy.dtype == np.bool_ else noisy.tobytes()
    digest = hashlib.sha256(data + np.packbits(clean).tobytes()).hexdigest()
    made_from: dict[str, Any] = {**asdict(settings), "seed": seed, "shape": list(noisy.shape), "images_sha256": digest}
    made_from["tried"] = list(tried)
    anew = checkpoint is not None and len(tried_before(checkpoint)) < len(tried)
    run = TrainingRun(made_from, checkpoint, progress, every, anew)
    vector = _method(settings)(problem, seed, run)
    about = {"settings": asdict(settings), "seed": seed, "images": problem.count, "images_sha256": digest}
    return Trained(problem.layout.model(vector, about), run.columns(), run.map_calls)


def _method(settings: Settings) -> Callable[[Problem, int, TrainingRun], Floats]:
    descents = {"halving": perturb_max.descend, "decaying": perturb_max.average, "adam": perturb_max.adam}
    methods: dict[Method, Callable[[Problem, int, TrainingRun], Floats]] = {
        "perturb-max": descents[settings.schedule],
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
    if settings.patch < 1 or not settings.patch % 2:
        raise InputError(f"the side of the patches is {settings.patch}", "it must be odd")
    if settings.hidden and (settings.weights, settings.method, settings.schedule) != ("shared", "perturb-max", "adam"):
        raise InputError("hidden units go with shared weights, perturb-max and Adam alone", "leave them out")
    if not 0 < settings.regularisation < np.inf:
        raise InputError(f"the regularisation is {settings.regularisation}", "it must be finite and above 0")
