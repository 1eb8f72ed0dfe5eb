"""Exact ln Z and MAP by whichever route takes the model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thesis_cli.errors import InputError, ModelTooLarge
from thesis_cli.inference.elimination import DEFAULT_MEMORY, Elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration, Progress, log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model


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


def exact_map(
    model: Model,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Progress | None = None,
) -> tuple[float, npt.NDArray[np.int64], str]:
    """A configuration of largest potential, by the routes and limits of `exact_log_partition_function`.

    Returns
    -------
    value : max_x phi(x).
    states : of the variables, shape (n,), numbered as without evidence; for a vector its index, shape (1,).
    method : `elimination` or `enumeration`.

    Raises
    ------
    ModelTooLarge : neither route takes the model; says the width.
    InputError : no configuration is possible.
    """
    if isinstance(model, FactorGraph):
        try:
            values, states = Elimination(model, memory).maximise(np.zeros((1, sum(model.cardinalities))))
        except ModelTooLarge:
            if model.size > max_configurations:
                raise
        else:
            return _possible(float(values[0])), model.original_states(states)[0], "elimination"
    best, at, start = -np.inf, 0, 0
    for block in Enumeration(model, max_configurations).blocks():
        if block.max() > best:
            best, at = float(block.max()), start + int(block.argmax())
        start += block.size
        if progress:
            progress(block.size)
    if isinstance(model, LogPotentials):
        return _possible(best), np.array([at]), "enumeration"
    index = np.array(np.unravel_index(at, model.cardinalities))
    return _possible(best), model.original_states(index[np.newaxis])[0], "enumeration"


def _possible(value: float) -> float:
    if value == -np.inf:
        raise InputError("no configuration is possible (Z = 0)", "a configuration of finite potential is wanted")
    return value
