"""Predictions of shipped networks for programs that are known, as experiments compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.networks.network_guide import network_guide
from thesis_cli.synthesis.networks.weights import card, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thesis_cli.base.arrays import Floats
    from thesis_cli.synthesis.language.task import Task


def version(name: str) -> str:
    """Name of shipped weights and the start of their digest: a parameter of tasks, so that results
    of other weights do not count."""
    return f"{name} {card(name)['sha256'][:12]}"


def predicted(weights: str, tasks: Sequence[Task]) -> Floats:
    """Probability of each attribute for each task, shape (P, 34).

    Parameters
    ----------
    weights : as `version` names them.
    """
    return network_guide(weights.split()[0]).probabilities(tasks)


def embedding(weights: str) -> tuple[npt.NDArray[np.int64], Floats]:
    """The integers that a network takes, and the point of each, shapes (P,) and (P, E).

    Parameters
    ----------
    weights : as `version` names them.
    """
    found = load(weights.split()[0])
    integers = np.arange(found.semantics.low, found.semantics.high + 1)
    return integers, found.arrays["embedding"][1:].astype(np.float64)
