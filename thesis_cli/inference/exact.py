"""Exact ln Z by the cheapest algorithm that takes the model."""

from __future__ import annotations

from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import log_of_sum
from thesis_cli.inference.elimination import Elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, Model


def exact_log_partition_function(
    model: Model,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> tuple[float, str]:
    """Exact ln Z and the name of the algorithm: grid transfer or elimination for factor graphs,
    else enumeration.

    Parameters
    ----------
    memory : bytes for grid transfer or elimination.
    max_configurations : limit on enumeration, which serves vectors and graphs too wide for
        `memory`.
    progress : called with the number of configurations just enumerated.

    Raises
    ------
    ModelTooLarge : no algorithm takes it; the message gives the width.
    InputError : a vector has a NaN or a `+inf`.
    """
    log_z, method = _log_z(model, memory, max_configurations, progress)
    return log_of_sum(log_z), method


def _log_z(model: Model, memory: int, max_configurations: int, progress: Tick | None) -> tuple[float, str]:
    if isinstance(model, FactorGraph):
        if (log_z := _by_grid(model, memory)) is not None:
            return log_z, "grid transfer"
        try:
            return Elimination(model, memory).log_partition_function(), "elimination"
        except ModelTooLarge:
            if model.size > max_configurations:
                raise
    return log_partition_function(model, max_configurations=max_configurations, progress=progress), "enumeration"


def _by_grid(graph: FactorGraph, memory: int) -> float | None:
    from thesis_cli.inference.grid import GridTransfer

    try:
        grid = GridTransfer(graph, memory)
    except (UnsuitableModel, ModelTooLarge):
        return None
    return grid.log_partition_function() if grid.summable else None
