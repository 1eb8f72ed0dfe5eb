"""Exact Renyi entropies of any order, including Shannon's (Thesis section 3.2.1, eqs. 3.26 and
3.27)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import difference
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.entropy import IMPOSSIBLE, weighted_expm1
from thesis_cli.inference.elimination.small import small_elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, Model

AS_INFINITE = 2.0**54
"""From this order on H_a equals H_inf to the last digit: H_inf <= H_a <= a / (a - 1) H_inf."""

STEP = 2.0**-10
"""Distance between the nodes of interpolation around order 1. Rounding costs about 1e-12 |ln Z|;
the error of six nodes, STEP^6 / 20 times the sixth derivative of the entropy, is far smaller."""


@dataclass(frozen=True)
class ExactEntropies:
    """Renyi entropies of one distribution.

    Attributes
    ----------
    orders : orders in the order of the call, shape (A,).
    entropies : entropy at each order, nats, shape (A,).
    log_z : ln Z of the potential, nats.
    method : names of the algorithms used.
    """

    orders: Floats
    entropies: Floats
    log_z: float
    method: str


def renyi(order: float, log_z_at_order: float, log_z: float) -> float:
    """H_a = (ln Z_a - a ln Z) / (1 - a) at order a, nats (Thesis eq. 3.27).

    Its rounding error is that of ln Z_a divided by |1 - a|; it is 0 if it is within that. Raises
    InputError if the order is out of range.

    Parameters
    ----------
    order : a; 0 or more, neither 1 nor inf.
    log_z_at_order, log_z : ln Z of a phi and of phi, nats.
    """
    if not 0 <= order < math.inf or order == 1:
        raise InputError(f"the order is {order:g}", "it must be finite, 0 or more, and not 1")
    return difference(log_z_at_order, order * log_z) / (1 - order)


def exact_entropies(
    model: Model,
    orders: Sequence[float] | Floats,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> ExactEntropies:
    """Exact Renyi entropies of a model, all orders at once.

    For a graph they follow from ln Z of its tempered copies (grid transfer or elimination), at
    order inf from its maximum, and near 1, where |a - 1| max(2, ln |X|) <= 1, from
    `Elimination.renyi_entropy`. If that does not fit into the memory, H_a for |a - 1| < `STEP` is
    interpolated from six orders around 1; at 1 this is the derivative of ln Z_a by central
    differences with Richardson's extrapolation, with an error of about 1e-12 |ln Z|. A vector, or a
    graph that is too wide, is enumerated in two sweeps.

    Parameters
    ----------
    orders : 0 to inf, in any sequence and with repetitions, shape (A,).
    memory : bytes for grid transfer or elimination.
    max_configurations : largest number of configurations to enumerate.
    progress : called with the number of configurations just enumerated, 2 |X| in all.

    Raises
    ------
    InputError : an order is negative or NaN, or a vector has a NaN or a `+inf`.
    ModelTooLarge : no algorithm can solve the model; the message gives its width.
    NoConfiguration : no configuration is possible.
    """
    given = np.array(orders, dtype=np.float64)
    for order in given:
        if not order >= 0:
            raise InputError(f"the order is {order:g}", "it must be 0 or more, or inf")
    distinct, where = np.unique(np.where(given >= AS_INFINITE, np.inf, given), return_inverse=True)
    entropies, log_z, method = _entropies(model, distinct, memory, max_configurations, progress)
    return ExactEntropies(given, np.where(entropies > 0, entropies, 0.0)[where], log_z, method)


def _entropies(
    model: Model, orders: Floats, memory: int, max_configurations: int, progress: Tick | None
) -> tuple[Floats, float, str]:
    """Entropies up to rounding, ln Z, and the method."""
    if isinstance(model, FactorGraph):
        try:
            return _by_structure(model, orders, memory)
        except ModelTooLarge:
            if model.size > max_configurations:
                raise
    return *_by_enumeration(model, orders, max_configurations, progress), "enumeration"


def _near_one(orders: Floats, size: int) -> npt.NDArray[np.bool_]:
    """Orders a from 1/2 to 3/2 with sum_x p^a within a factor e of 1; its difference from 1 is then
    computed."""
    return np.abs(orders - 1) * max(2.0, math.log(size)) <= 1


def _by_structure(graph: FactorGraph, orders: Floats, memory: int) -> tuple[Floats, float, str]:
    log_z, method = exact_log_partition_function(graph, memory=memory, max_configurations=0)
    if log_z == -math.inf:
        raise NoConfiguration()
    methods = [method]
    near = _near_one(orders, graph.size)
    found = np.empty(orders.size)
    if near.any():
        found[near], method = _about_one(graph, orders[near], log_z, memory)
        methods.append(method)
    for a in np.flatnonzero(~near):
        if orders[a] == math.inf:
            solver, _ = map_solver(graph, memory=memory, exact=True, calls=1)
            best = float(solver.maximise(np.zeros((1, sum(graph.cardinalities))))[0][0])
            found[a], method = difference(log_z, best), solver.name
        else:
            found[a], method = _by_tempering(graph, orders[a], log_z, memory)
        methods.append(method)
    return found, log_z, ", ".join(dict.fromkeys(methods))


def _by_tempering(graph: FactorGraph, order: float, log_z: float, memory: int) -> tuple[float, str]:
    tempered, method = exact_log_partition_function(graph.tempered(order), memory=memory, max_configurations=0)
    return renyi(order, tempered, log_z), method


def _about_one(graph: FactorGraph, orders: Floats, log_z: float, memory: int) -> tuple[Floats, str]:
    try:
        elimination = small_elimination(graph, memory) or Elimination(graph, memory)
        return np.array([elimination.renyi_entropy(order)[1] for order in orders]), elimination.name
    except ModelTooLarge:
        inside = np.abs(orders - 1) < STEP
    found = np.empty(orders.size)
    found[~inside] = [_by_tempering(graph, order, log_z, memory)[0] for order in orders[~inside]]
    nodes = STEP * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    known = [_by_tempering(graph, 1 + node, log_z, memory)[0] for node in nodes]
    found[inside] = np.polynomial.Polynomial.fit(nodes, known, len(nodes) - 1)(orders[inside] - 1)
    return found, "interpolation around order 1"


def _by_enumeration(
    model: Model, orders: Floats, max_configurations: int, progress: Tick | None
) -> tuple[Floats, float]:
    """Entropies from the weights w = e^{phi - max phi}: H_inf = ln sum w, and nothing cancels near
    order 1."""
    enumeration = Enumeration(model, max_configurations)

    def sweep() -> Iterator[Floats]:
        for block in enumeration.blocks():
            yield block
            if progress:
                progress(block.size)

    top = max(float(block.max()) for block in sweep())
    if top == -math.inf:
        raise NoConfiguration()
    near = _near_one(orders, enumeration.size)
    total, sums = 0.0, np.zeros(orders.size)
    for block in sweep():
        with np.errstate(over="ignore"):
            gaps = block - top
        logs = np.maximum(gaps, IMPOSSIBLE)
        weights = np.exp(logs)
        total += float(weights.sum())
        for a, order in enumerate(orders):
            if order == 0:
                sums[a] += np.count_nonzero(block > -np.inf)
            elif order == 1:
                sums[a] -= float((weights * logs).sum())
            elif near[a]:
                sums[a] += float(weighted_expm1(logs, (order - 1) * logs).sum())
            elif order < math.inf:
                with np.errstate(over="ignore"):
                    sums[a] += float(np.exp(order * gaps).sum())
    log_total = math.log(total)

    def entropy(order: float, summed: float, is_near: bool) -> float:
        if order == math.inf:
            return log_total
        if order == 1:
            return log_total + summed / total
        if is_near:
            return log_total + math.log1p(summed / total) / (1 - order)
        return renyi(order, math.log(summed), log_total)

    return np.array([entropy(*each) for each in zip(orders, sums, near, strict=True)]), top + log_total
