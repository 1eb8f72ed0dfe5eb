"""Standard errors of what `training.metrics` reports, by the choice of programs."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.synthesis.language.lanes import Flags
from thesis_cli.synthesis.training.metrics import report

RESAMPLES = 100


def metric_errors(
    probabilities: Floats, attributes: Flags, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Standard errors of the loss and of the mean average precision, by the bootstrap over programs.

    Parameters
    ----------
    probabilities, attributes : shape (P, 34).
    """
    found = []
    for _ in range(resamples):
        drawn = rng.integers(len(attributes), size=len(attributes))
        metrics = report(probabilities[drawn], attributes[drawn])
        found.append((metrics["loss"], metrics["mean_average_precision"]))
    loss, precision = np.std(found, axis=0)
    return float(loss), float(precision)
