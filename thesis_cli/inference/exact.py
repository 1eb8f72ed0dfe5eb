"""Exact ln Z by whichever route takes the model."""

from __future__ import annotations

from thesis_cli.errors import ModelTooLarge
from thesis_cli.inference.elimination import DEFAULT_MEMORY, Elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Progress, log_partition_function
from thesis_cli.models.factor_graph import LogPotentials, Model


def exact_log_partition_function(
    model: Model,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Progress | None = None,
) -> tuple[float, str]:
    """Exact ln Z, and how it was found: by elimination for a factor graph, else by enumeration.

    Parameters
    ----------
    memory : bytes for elimination.
    max_configurations : limit on enumeration, which is the way of vectors, and of graphs too wide for `memory`.
    progress : called with the number of configurations just enumerated.

    Raises
    ------
    ModelTooLarge : neither takes it; says the width.
    InputError : a vector has a NaN or a `+inf`.
    """
    if isinstance(model, LogPotentials):
        return log_partition_function(model, max_configurations=max_configurations, progress=progress), "enumeration"
    try:
        return Elimination(model, memory).log_partition_function(), "elimination"
    except ModelTooLarge:
        if model.size > max_configurations:
            raise
    return log_partition_function(model, max_configurations=max_configurations, progress=progress), "enumeration"
