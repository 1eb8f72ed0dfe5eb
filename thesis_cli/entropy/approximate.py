"""Renyi entropies from any other estimate of ln Z (Thesis eq. 3.27): Bethe and tree-reweighted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.entropy.exact import renyi
from thesis_cli.entropy.maxima import check_orders
from thesis_cli.entropy.names import Approximation
from thesis_cli.inference.choose import map_solver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate, fixed_estimate
from thesis_cli.perturbation.low_rank import check_found

STEP = 0.01
"""H_1 is the mean of H_alpha this far to both sides of 1: message passing leaves some 1e-6, which is divided by it."""


def approximate_entropies(
    graph: FactorGraph,
    alphas: Sequence[float],
    name: Approximation,
    *,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> list[Estimate]:
    """H_alpha with ln Z_alpha and ln Z by message passing.

    TRW bounds each logarithm from above, but not their difference: no entropy here is a bound.

    Parameters
    ----------
    alphas : 0 to inf.
    name : `bethe`, or `trw`.
    seed : of the messages that `bethe` begins with.
    memory : bytes for the MAP solver, which alpha = inf wants.

    Raises
    ------
    NoConfiguration : no configuration is possible, as far as messages or the maximum tell.
    WorkFailed : alpha is inf, and an approximate solver found no configuration.
    InputError : an alpha that is negative or NaN.
    """
    check_orders(np.array(alphas))

    def log_z(alpha: float) -> tuple[float, bool]:
        return (_bethe if name == "bethe" else _trw)(graph.tempered(alpha), seed)

    whole, sure = log_z(1.0)
    if whole == -math.inf:
        raise NoConfiguration()
    found = []
    for alpha in alphas:
        converged = sure
        if alpha == math.inf:
            solver, _ = map_solver(graph, memory=memory)
            best, _ = solver.maximise(np.zeros((1, sum(graph.cardinalities))))
            check_found(best, solver)
            value = whole - float(best[0])
        else:
            near = (1 - STEP, 1 + STEP) if alpha == 1 else (alpha,)
            logs, dones = zip(*map(log_z, near), strict=True)
            value = sum(renyi(a, log, whole) for a, log in zip(near, logs, strict=True)) / len(near)
            converged = converged and all(dones)
        kind = "approximation" if converged else "approximation, not converged"
        method = "Bethe" if name == "bethe" else "TRW"
        found.append(fixed_estimate(value, kind, method, "Thesis eq. 3.27", f"H_{alpha:.12g}"))
    return found


def _bethe(graph: FactorGraph, seed: int) -> tuple[float, bool]:
    from thesis_cli.inference.belief_propagation import bethe_log_partition_function

    result = bethe_log_partition_function(graph, seed=seed)
    return result.value, result.converged


def _trw(graph: FactorGraph, seed: int) -> tuple[float, bool]:
    from thesis_cli.inference.trw import trw_log_partition_function

    result = trw_log_partition_function(graph)
    return result.value, result.converged
