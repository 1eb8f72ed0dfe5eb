"""Exact single-variable marginals of a factor graph, by the cheapest algorithm that takes it."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.elimination import Elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.grid import GridTransfer
from thesis_cli.inference.reduction import reduced
from thesis_cli.inference.sparse_elimination import SparseElimination
from thesis_cli.models.factor_graph import FactorGraph

INSTANT = 0.2
"""Predicted seconds of elimination up to which no other algorithm is looked for."""


MOST_SECONDS = 60.0
"""Time for sparse elimination, whose cost is not known beforehand."""


class Marginals(NamedTuple):
    """Single-variable marginals, and how they were found.

    Attributes
    ----------
    log_z : ln Z in nats.
    probabilities : P(x_i) of the states of variable 0, then of variable 1, ..., shape (sum of
        cardinalities,).
    method : `elimination`, `grid transfer`, `sparse elimination` or `enumeration`.
    """

    log_z: float
    probabilities: Floats
    method: str


def exact_marginals(
    graph: FactorGraph,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> Marginals:
    """Compute exact marginals: by elimination, by grid transfer where that is quicker, or, if the
    width is too large, by enumeration or with the help of zeros.

    Parameters
    ----------
    memory : bytes that elimination or grid transfer may use.
    max_configurations : largest number of configurations to enumerate.
    progress : called with the number of configurations just enumerated.

    Raises
    ------
    ModelTooLarge : no algorithm takes the model; the message gives its width.
    NoConfiguration : no configuration is possible.
    """
    grid, seconds = summable_grid(graph, memory)
    try:
        solver = Elimination(graph, memory)
        if solver.cost.seconds <= max(INSTANT, seconds):
            return Marginals(*solver.marginals(), "elimination")
    except ModelTooLarge:
        if grid is None and graph.size > max_configurations:
            if (found := _by_zeros(graph, memory)) is None:
                raise
            return found
    if grid:
        return Marginals(*grid.marginals(), grid.name)
    return _by_enumeration(graph, max_configurations, progress)


def _by_zeros(graph: FactorGraph, memory: int) -> Marginals | None:
    """Marginals by elimination of the model that the zeros leave, or on the supports of its tables;
    None if both are too large or too slow.
    """
    if not any(np.isneginf(f.table).any() for f in graph.factors):
        return None
    small = reduced(graph)
    try:
        log_z, found = Elimination(small.graph, memory).marginals()
        return Marginals(small.constant + log_z, small.original_marginals(found), "elimination")
    except ModelTooLarge:
        pass
    try:
        sparse = SparseElimination(graph, memory)
        return Marginals(*sparse.marginals(time.monotonic() + MOST_SECONDS), sparse.name)
    except (ModelTooLarge, OutOfTime):
        return None


def summable_grid(graph: FactorGraph, memory: int) -> tuple[GridTransfer | None, float]:
    """Grid transfer and its predicted seconds for marginals; None and infinity if it does not take
    the model.
    """
    try:
        grid = GridTransfer(graph, memory, sums_only=True)
        return (grid, grid.cost_of_marginals().seconds) if grid.summable else (None, math.inf)
    except (UnsuitableModel, ModelTooLarge):
        return None, math.inf


def _by_enumeration(graph: FactorGraph, max_configurations: int, progress: Tick | None) -> Marginals:
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])
    weights = np.zeros(offsets[-1])  # times exp(-highest)
    highest, start = -math.inf, 0
    for block in Enumeration(graph, max_configurations).blocks():
        top = float(block.max())
        if top > highest:
            weights *= math.exp(highest - top)
            highest = top
        if highest > -math.inf:
            mass = np.exp(block - highest)
            states = np.unravel_index(np.arange(start, start + block.size), graph.cardinalities)
            for low, own, k in zip(offsets, states, graph.cardinalities, strict=False):
                weights[low : low + k] += np.bincount(own, mass, k)
        start += block.size
        if progress:
            progress(block.size)
    if highest == -math.inf:
        raise NoConfiguration()
    total = weights[: graph.cardinalities[0]].sum()
    return Marginals(highest + math.log(total), weights / total, "enumeration")
