"""Renyi entropies from approximations of ln Z: Bethe and tree-reweighted (Thesis eq. 3.27)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.rounding import difference
from thesis_cli.entropy.estimators import check_orders
from thesis_cli.entropy.exact import renyi
from thesis_cli.entropy.names import Approximation
from thesis_cli.inference.choose import map_solver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate, fixed_estimate
from thesis_cli.perturbation.low_rank.low_rank import check_found

STEP = 0.01
"""H_1 is the mean of the entropies at orders 1 - STEP and 1 + STEP, which divides the error of
message passing, about 1e-6, by STEP."""


def approximate_entropies(
    graph: FactorGraph,
    orders: Sequence[float],
    name: Approximation,
    *,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> list[Estimate]:
    """Entropies with the ln Z of each order, and that of the model, by message passing.

    TRW bounds each logarithm from above but not their difference, so none of these entropies is a
    bound.

    Parameters
    ----------
    orders : 0 to inf.
    name : `bethe`, or `trw`.
    seed : seed of the initial messages of `bethe`.
    memory : bytes for the MAP solver at order inf.

    Raises
    ------
    NoConfiguration : no configuration is possible according to the messages or the maximum.
    WorkFailed : the order is inf, and an approximate solver found no configuration.
    InputError : an order is negative or NaN.
    """
    check_orders(np.array(orders))

    def log_z(order: float) -> tuple[float, bool]:
        return (_bethe if name == "bethe" else _trw)(graph.tempered(order), seed)

    whole, sure = log_z(1.0)
    if whole == -math.inf:
        raise NoConfiguration()
    found = []
    for order in orders:
        converged = sure
        if order == math.inf:
            solver, _ = map_solver(graph, memory=memory)
            best, _ = solver.maximise(np.zeros((1, sum(graph.cardinalities))))
            check_found(best, solver)
            value = difference(whole, float(best[0]))
        else:
            near = (1 - STEP, 1 + STEP) if order == 1 else (order,)
            logs, dones = zip(*map(log_z, near), strict=True)
            value = sum(renyi(a, log, whole) for a, log in zip(near, logs, strict=True)) / len(near)
            converged = converged and all(dones)
        kind = "approximation" if converged else "approximation, not converged"
        method = "Bethe" if name == "bethe" else "TRW"
        found.append(fixed_estimate(value, kind, method, "Thesis eq. 3.27", f"H_{order:.12g}"))
    return found


def _bethe(graph: FactorGraph, seed: int) -> tuple[float, bool]:
    from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function

    result = bethe_log_partition_function(graph, seed=seed)
    return result.value, result.converged


def _trw(graph: FactorGraph, seed: int) -> tuple[float, bool]:
    from thesis_cli.inference.message_passing.trw import trw_log_partition_function

    result = trw_log_partition_function(graph)
    return result.value, result.converged
