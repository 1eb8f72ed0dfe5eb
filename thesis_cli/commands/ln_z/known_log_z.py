"""ln Z of a model before any estimate: the sum of a vector of probabilities, or an exact value."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, NoConfiguration

if TYPE_CHECKING:
    from thesis_cli.base.progress import Tick
    from thesis_cli.models.factor_graph import Model

NEARLY_ONE = 1e-9
"""Largest |ln of the sum of probabilities| without a warning."""

logger = logging.getLogger("thesis_cli")


def sum_of_probabilities(model: Model, strict: bool, max_configurations: int, tick: Tick) -> float:
    """ln of the sum of a vector of probabilities.

    A sum other than 1 brings a warning or, if `strict`, an `InputError`.
    """
    from thesis_cli.inference.enumeration import log_partition_function

    log_sum = log_partition_function(model, max_configurations=max_configurations, progress=tick)
    if log_sum == -math.inf:
        raise NoConfiguration("all probabilities are 0", "some must be above 0")
    if abs(log_sum) > NEARLY_ONE:
        total = f"{math.exp(log_sum):.12g}" if log_sum < 700 else f"e^{log_sum:.6g}"
        if strict:
            raise InputError(
                f"the probabilities sum to {total}", "they must sum to 1; without --strict they are scaled"
            )
        logger.warning("the probabilities sum to %s; they are scaled to 1", total)
    return log_sum


def warn_of_probabilities(model: Model) -> None:
    """Warn if a vector of log-potentials looks like one of probabilities."""
    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials) and model.values[0] >= 0:
        values = model.values[:]
        if values.min() >= 0 and abs(float(values.sum()) - 1) < 1e-6:
            logger.warning("the log-potentials sum to 1; if they are probabilities, add --probabilities")


def exact_log_z(model: Model, memory: int, max_configurations: int, tick: Tick) -> float:
    """ln Z by any exact algorithm; a message names it."""
    from thesis_cli.inference.exact import exact_log_partition_function

    log_z, method = exact_log_partition_function(
        model, memory=memory, max_configurations=max_configurations, progress=tick
    )
    if log_z == -math.inf:
        raise NoConfiguration()
    logger.info("ln Z = %.12g (%s)", log_z, method)
    return log_z
