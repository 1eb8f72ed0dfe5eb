"""Exact Renyi entropies of any order, Shannon's among them (Thesis section 3.2.1, eqs. 3.26 and 3.27)."""

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
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination import IMPOSSIBLE, Elimination, weighted_expm1
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, Model

LIMIT = 2.0**54
"""Orders from which on H_alpha is H_inf to the last digit: H_inf <= H_alpha <= alpha / (alpha - 1) H_inf."""

STEP = 2.0**-10
"""Distance of the nodes of interpolation about alpha = 1: what rounds there is some 1e-12 |ln Z|, and what six nodes
leave out, STEP^6 / 20 times the sixth derivative of the entropy, is less by far."""


@dataclass(frozen=True)
class ExactEntropies:
    """Renyi entropies of one distribution.

    Attributes
    ----------
    alphas : orders, as they were asked for, shape (A,).
    entropies : H_alpha, nats, shape (A,).
    log_z : ln Z of the potential, nats.
    method : how they were found.
    """

    alphas: Floats
    entropies: Floats
    log_z: float
    method: str

    @property
    def log_power_sums(self) -> Floats:
        """ln sum_x p(x)^alpha = (1 - alpha) H_alpha, shape (A,).

        At alpha = inf it is the limit: 0 if one configuration has all the probability, -inf otherwise.
        """
        sure = self.entropies == 0
        return np.where(sure, 0.0, (1 - self.alphas) * np.where(sure, 1.0, self.entropies))


def renyi(alpha: float, log_z_alpha: float, log_z: float) -> float:
    """H_alpha = (ln Z_alpha - alpha ln Z) / (1 - alpha), nats (Thesis eq. 3.27).

    Its rounding error is that of ln Z_alpha over |1 - alpha|.

    Parameters
    ----------
    alpha : order, at least 0 and neither 1 nor inf.
    log_z_alpha, log_z : ln Z of alpha phi and of phi, nats.

    Raises
    ------
    InputError : alpha is out of range.
    """
    if not 0 <= alpha < math.inf or alpha == 1:
        raise InputError(f"alpha is {alpha:g}", "a finite number, 0 or above but not 1, is wanted")
    return (log_z_alpha - alpha * log_z) / (1 - alpha)


def exact_entropies(
    model: Model,
    alphas: Sequence[float] | Floats,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> ExactEntropies:
    """Exact Renyi entropies of a model, of all orders at once.

    A graph goes by ln Z of its tempered copies (grid transfer or elimination), by its maximum at alpha = inf, and
    near 1, where |alpha - 1| max(2, ln |X|) <= 1, by `Elimination.renyi_entropy`. If that does not fit into the
    memory, H_alpha for |alpha - 1| < `STEP` is interpolated from six orders about 1; at 1 that is the derivative of
    ln Z_alpha by central differences with Richardson's extrapolation, in error by about 1e-12 |ln Z|. What is no
    graph, or too wide a one, is enumerated in two sweeps.

    Parameters
    ----------
    alphas : orders in [0, inf], in any order and as often as wanted, shape (A,).
    memory : bytes for grid transfer or elimination.
    max_configurations : limit on enumeration.
    progress : called with the number of configurations just enumerated, in all twice their number.

    Raises
    ------
    InputError : an order is negative or NaN, or a vector has a NaN or a `+inf`.
    ModelTooLarge : no route takes the model; says the width.
    NoConfiguration : no configuration is possible.
    """
    wanted = np.array(alphas, dtype=np.float64)
    for alpha in wanted:
        if not alpha >= 0:
            raise InputError(f"alpha is {alpha:g}", "an order from 0 to inf is wanted")
    orders, where = np.unique(np.where(wanted >= LIMIT, np.inf, wanted), return_inverse=True)
    entropies, log_z, method = _entropies(model, orders, memory, max_configurations, progress)
    return ExactEntropies(wanted, np.where(entropies > 0, entropies, 0.0)[where], log_z, method)


def _entropies(
    model: Model, alphas: Floats, memory: int, max_configurations: int, progress: Tick | None
) -> tuple[Floats, float, str]:
    """Entropies, to rounding; ln Z; the method."""
    if isinstance(model, FactorGraph):
        try:
            return _by_structure(model, alphas, memory)
        except ModelTooLarge:
            if model.size > max_configurations:
                raise
    return *_by_enumeration(model, alphas, max_configurations, progress), "enumeration"


def _near_one(alphas: Floats, size: int) -> npt.NDArray[np.bool_]:
    """Orders from 1/2 to 3/2 at which sum_x p^alpha is within a factor e of 1: its difference from 1 is computed."""
    return np.abs(alphas - 1) * max(2.0, math.log(size)) <= 1


def _by_structure(graph: FactorGraph, alphas: Floats, memory: int) -> tuple[Floats, float, str]:
    log_z, method = exact_log_partition_function(graph, memory=memory, max_configurations=0)
    if log_z == -math.inf:
        raise NoConfiguration()
    methods = [method]
    near = _near_one(alphas, graph.size)
    found = np.empty(alphas.size)
    if near.any():
        found[near], method = _about_one(graph, alphas[near], log_z, memory)
        methods.append(method)
    for a in np.flatnonzero(~near):
        if alphas[a] == math.inf:
            solver, _ = map_solver(graph, memory=memory, exact=True)
            best = float(solver.maximise(np.zeros((1, sum(graph.cardinalities))))[0][0])
            found[a], method = log_z - best, solver.name
        else:
            found[a], method = _by_tempering(graph, alphas[a], log_z, memory)
        methods.append(method)
    return found, log_z, ", ".join(dict.fromkeys(methods))


def _by_tempering(graph: FactorGraph, alpha: float, log_z: float, memory: int) -> tuple[float, str]:
    log_z_alpha, method = exact_log_partition_function(graph.tempered(alpha), memory=memory, max_configurations=0)
    return renyi(alpha, log_z_alpha, log_z), method


def _about_one(graph: FactorGraph, alphas: Floats, log_z: float, memory: int) -> tuple[Floats, str]:
    try:
        elimination = Elimination(graph, memory)
        return np.array([elimination.renyi_entropy(alpha)[1] for alpha in alphas]), elimination.name
    except ModelTooLarge:
        inside = np.abs(alphas - 1) < STEP
    found = np.empty(alphas.size)
    found[~inside] = [_by_tempering(graph, alpha, log_z, memory)[0] for alpha in alphas[~inside]]
    nodes = STEP * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    known = [_by_tempering(graph, 1 + node, log_z, memory)[0] for node in nodes]
    found[inside] = np.polynomial.Polynomial.fit(nodes, known, len(nodes) - 1)(alphas[inside] - 1)
    return found, "interpolation about alpha = 1"


def _by_enumeration(
    model: Model, alphas: Floats, max_configurations: int, progress: Tick | None
) -> tuple[Floats, float]:
    """Entropies from the weights w = e^{phi - max phi}, so that H_inf = ln sum w and nothing cancels near 1."""
    enumeration = Enumeration(model, max_configurations)

    def sweep() -> Iterator[Floats]:
        for block in enumeration.blocks():
            yield block
            if progress:
                progress(block.size)

    top = max(float(block.max()) for block in sweep())
    if top == -math.inf:
        raise NoConfiguration()
    near = _near_one(alphas, enumeration.size)
    total, sums = 0.0, np.zeros(alphas.size)
    for block in sweep():
        with np.errstate(over="ignore"):
            gaps = block - top
        logs = np.maximum(gaps, IMPOSSIBLE)
        weights = np.exp(logs)
        total += float(weights.sum())
        for a, alpha in enumerate(alphas):
            if alpha == 0:
                sums[a] += np.count_nonzero(block > -np.inf)
            elif alpha == 1:
                sums[a] -= float((weights * logs).sum())
            elif near[a]:
                sums[a] += float(weighted_expm1(logs, (alpha - 1) * logs).sum())
            elif alpha < math.inf:
                with np.errstate(over="ignore"):
                    sums[a] += float(np.exp(alpha * gaps).sum())
    log_total = math.log(total)

    def entropy(alpha: float, summed: float, is_near: bool) -> float:
        if alpha == math.inf:
            return log_total
        if alpha == 1:
            return log_total + summed / total
        if is_near:
            return log_total + math.log1p(summed / total) / (1 - alpha)
        return renyi(alpha, math.log(summed), log_total)

    return np.array([entropy(*each) for each in zip(alphas, sums, near, strict=True)]), top + log_total
