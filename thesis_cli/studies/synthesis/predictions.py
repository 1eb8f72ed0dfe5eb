"""Predictions of shipped networks for known programs, and standard errors of their metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.synthesis.networks.network_guide import network_guide
from thesis_cli.synthesis.networks.weights import card, load
from thesis_cli.synthesis.training.metrics import report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thesis_cli.synthesis.language.task import Task


def version(name: str) -> str:
    """Name of shipped weights and the start of their digest: a parameter of tasks, so that results
    of other weights do not count."""
    return f"{name} {card(name)['sha256'][:12]}"


def predicted(weights: str, tasks: Sequence[Task]) -> Floats:
    """Probability of each attribute for each task, shape (P, 34).

    Parameters
    ----------
    weights : weights, named as by `version`.
    """
    return network_guide(weights.split()[0]).probabilities(tasks)


def embedding(weights: str) -> tuple[npt.NDArray[np.int64], Floats]:
    """The integers that a network takes, and the point of each, shapes (P,) and (P, E).

    Parameters
    ----------
    weights : weights, named as by `version`.
    """
    found = load(weights.split()[0])
    integers = np.arange(found.semantics.low, found.semantics.high + 1)
    return integers, found.arrays["embedding"][1:].astype(np.float64)


RESAMPLES = 100


def metric_errors(
    probabilities: Floats, attributes: Bools, rng: np.random.Generator, resamples: int = RESAMPLES
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
