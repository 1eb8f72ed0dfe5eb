"""Exact single-variable marginals of a factor graph, by the cheapest algorithm that takes it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.small import SmallElimination, small_elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.factor_graph import FactorGraph

if TYPE_CHECKING:
    from thesis_cli.inference.elimination.contraction import Contraction
    from thesis_cli.inference.zeros.reduction import Reduction

INSTANT = 0.2
"""Predicted seconds of an algorithm up to which no other is looked for."""

QUICK = 2.0
"""Predicted seconds of elimination up to which sparse elimination is not tried before it."""

ELIMINATION_BACK = 5.0
"""Time of marginals by elimination, relative to the predicted time of a sum: measured on ten networks of
`benchmarks/exact.py`, 2.4 to 5.8."""

FEW = 2**22
"""Configurations up to which enumeration takes seconds at most."""

MOST_SECONDS, PASSES = 60.0, 3.0
"""Time for sparse elimination, whose cost is not known beforehand: so many seconds at most, and as many as the
passes of the quickest route are predicted to take."""


class Marginals(NamedTuple):
    """Single-variable marginals, and how they were found.

    Attributes
    ----------
    log_z : ln Z in nats.
    probabilities : P(x_i) of the states of variable 0, then of variable 1, ..., shape (sum of
        cardinalities,).
    method : `elimination`, `contraction`, `grid transfer`, `sparse elimination` or `enumeration`.
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
    routes, refusals = backward_routes(graph, memory)
    if not any(route.seconds <= QUICK for route in routes):
        if graph.size <= min(max_configurations, FEW):
            return _by_enumeration(graph, max_configurations, progress)
        if not routes and (found := _by_parts(graph, memory)):
            return found
        seconds = min([MOST_SECONDS, *(PASSES * route.seconds for route in routes)])
        if found := _by_supports(graph, memory, seconds):
            return found
    if found := _by_routes(routes, refusals):
        return found
    if graph.size > max_configurations:
        raise ModelTooLarge.best(refusals)
    return _by_enumeration(graph, max_configurations, progress)


class BackwardRoute(NamedTuple):
    """A solver that gives marginals and samples.

    Attributes
    ----------
    solver : prepared.
    seconds, back : predicted, of a sum or its samples and of marginals.
    reduction : if the solver is for the model that zeros leave.
    """

    solver: SmallElimination | Elimination | GridTransfer | Contraction
    seconds: float
    back: float
    reduction: Reduction | None = None


def backward_routes(graph: FactorGraph, memory: int) -> tuple[list[BackwardRoute], list[ModelTooLarge]]:
    """The solvers that take a model, the quickest first, and the refusals of others.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """
    if small := small_elimination(graph, memory):
        return [BackwardRoute(small, small.cost.seconds, small.cost.seconds)], []
    found: list[BackwardRoute] = []
    refusals: list[ModelTooLarge] = []
    try:
        solver = Elimination(graph, memory)
        found.append(_eliminated(solver))
    except ModelTooLarge as error:
        refusals.append(error)
    if not found or found[0].seconds > INSTANT:
        found += _grid_route(graph, memory)
    if any(route.seconds <= INSTANT for route in found):
        return sorted(found, key=lambda route: route.seconds), refusals
    reduction = None
    if graph.has_zeros:
        from thesis_cli.inference.zeros.reduction import reduced

        reduction = reduced(graph)
        try:
            found.append(_eliminated(Elimination(reduction.graph, memory), reduction))
        except ModelTooLarge as error:
            refusals.append(error)
    if not any(route.seconds <= INSTANT for route in found):
        from thesis_cli.inference.elimination.contraction import Contraction

        try:
            tree = Contraction(reduction.graph if reduction else graph, memory)
            found.append(BackwardRoute(tree, tree.cost.seconds, _pass_back(tree), reduction))
        except ModelTooLarge as error:
            refusals.append(error)
    return sorted(found, key=lambda route: route.seconds), refusals


def _grid_route(graph: FactorGraph, memory: int) -> list[BackwardRoute]:
    try:
        with np.errstate(over="ignore"):  # where sites have no possible state
            grid = GridTransfer(graph, memory, sums_only=True)
    except (UnsuitableModel, ModelTooLarge):
        return []
    seconds = grid.cost_of_marginals().seconds
    return [BackwardRoute(grid, seconds, seconds)] if grid.summable else []


def _eliminated(solver: Elimination, reduction: Reduction | None = None) -> BackwardRoute:
    return BackwardRoute(solver, solver.cost.seconds, ELIMINATION_BACK * solver.cost.seconds, reduction)


def _pass_back(tree: Contraction) -> float:
    try:
        return tree.back.cost.seconds
    except ModelTooLarge:
        return math.inf


def _by_routes(routes: list[BackwardRoute], refusals: list[ModelTooLarge]) -> Marginals | None:
    """Marginals by the quickest solver whose pass back fits; None if there is none, and why is added to `refusals`."""
    for route in sorted(routes, key=lambda route: route.back):
        try:
            log_z, marginals = route.solver.marginals()
        except ModelTooLarge as error:
            refusals.append(error)
            continue
        if route.reduction:
            return Marginals(
                route.reduction.constant + log_z, route.reduction.original_marginals(marginals), route.solver.name
            )
        return Marginals(log_z, marginals, route.solver.name)
    return None


def _by_parts(graph: FactorGraph, memory: int) -> Marginals | None:
    """Marginals of the variables that are left once leaves are summed out, then of one leaf after the other with
    what it needs; None if a part does not fit. In a Bayesian network, nodes below the evidence may make the
    whole far wider than each part.
    """
    from thesis_cli.inference.zeros.leaves import without_leaves
    from thesis_cli.inference.zeros.reduction import reduced

    small = reduced(graph)
    states = small.graph.cardinalities
    found = [np.full(k, 1 / k) for k in states]  # as long as no table depends on it
    left, kept, log_z, method = set(range(len(states))), set[int](), 0.0, ""
    while left:
        part = without_leaves(small.graph, kept)
        own = part and _by_routes(*backward_routes(part[0], memory))
        if not part or not own:
            return None
        free = sum(math.log(states[i]) for i in kept.difference(part[2]))
        log_z, method = small.constant + part[1] + own.log_z + free, own.method
        tables = np.split(own.probabilities, np.cumsum(part[0].cardinalities))
        for i, table in zip(part[2], tables, strict=False):
            found[i] = table
        left -= {*part[2], *kept}
        kept = {max(left, default=0)}  # parents come first as a rule, and are in the part of a child
    return Marginals(log_z, small.original_marginals(np.concatenate(found)), method)


def _by_supports(graph: FactorGraph, memory: int, seconds: float) -> Marginals | None:
    """Marginals by elimination on the supports of tables; None if there are no zeros, or the tables
    are too large or take longer than some seconds.
    """
    if not graph.has_zeros:
        return None
    from thesis_cli.inference.zeros.sparse_elimination import SparseElimination

    try:
        sparse = SparseElimination(graph, memory)
        return Marginals(*sparse.marginals(time.monotonic() + seconds), sparse.name)
    except (ModelTooLarge, OutOfTime):
        return None


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
