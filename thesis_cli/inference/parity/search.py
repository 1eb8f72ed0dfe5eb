"""Maxima under constraints on neighbouring bits by a search that any model allows, within a time.

A constraint becomes a chain of parity variables, whose last one has noise that outweighs the model
where it is not the right side. So a search is prepared once for the constraints of a level, and
serves many right sides.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.inference.external.cost_function_search import CostFunctionSearch
from thesis_cli.inference.parity.bands import bands, levels_near
from thesis_cli.inference.parity.constraints import HashLimits, ParityMaxima
from thesis_cli.inference.parity.frontier import Frontier, parities
from thesis_cli.models.factor_graph import Factor, FactorGraph

ROOM = 4
"""Constraints that are open at once; more make the search slower by more than bounds gain."""
TRIED = 10
"""Most numbers of constraints that the pilot tries."""
BACKTRACKS = 20_000
"""Most backtracks for a MAP problem, which unlike seconds are the same on every machine."""


class Extended(NamedTuple):
    """A model with a variable for the parity of each constraint.

    Attributes
    ----------
    graph : the variables of the model, then those of the chains.
    ends : the variable that holds each constraint's parity, shape (constraints,).
    """

    graph: FactorGraph
    ends: Ints


def searched_maxima(
    graph: FactorGraph, count: int, rng: np.random.Generator, limits: HashLimits, progress: Tick | None = None
) -> ParityMaxima:
    """The best configurations that toulbar2 finds under random constraints on neighbouring bits.

    The hashes of a level share their matrix and differ in the right side: given the matrix, they
    are independent and each configuration satisfies all i constraints with probability 2^-i.

    Parameters
    ----------
    graph : any model.
    count : number T of hashes for each number of constraints.
    rng : source of the hashes.
    limits : `seconds` for all searches together, and `memory` for one.
    progress : called with the number of MAP problems just solved.

    Raises
    ------
    UnsuitableModel : toulbar2 is missing.
    ModelTooLarge : its tables exceed the memory.
    NoConfiguration : no configuration was found.
    InputError : `count` is below 1.
    """
    if count < 1:
        raise InputError(f"the number of hashes is {count}", "it must be 1 or more")
    coding = Frontier(graph)
    tried = levels_near(coding.bits, TRIED)
    seconds = limits.seconds / (len(tried) * (count + 1))
    none = Extended(graph, np.zeros(0, np.int64))
    (top,), (most,) = _search(none, np.zeros((1, 0), np.bool_), seconds, limits)
    if top == -math.inf:
        raise NoConfiguration("no possible configuration was found")
    pilot = np.array([_level(coding, int(i), 1, rng, seconds, limits)[0][0] for i in tried[1:]])
    levels = levels_near(coding.bits, TRIED, top, pilot)
    columns, bounds = [np.full(count, top)], [np.full(count, most)]
    for level in levels[1:].tolist():
        values, above = _level(coding, level, count, rng, seconds, limits)
        columns.append(values)
        bounds.append(np.minimum(above, most))
        if progress:
            progress(count)
    calls = len(tried) + count * (len(levels) - 1)
    return ParityMaxima(
        np.stack(columns, axis=1), np.stack(bounds, axis=1), levels, graph.size, calls, independent=False
    )


def _level(
    coding: Frontier, level: int, count: int, rng: np.random.Generator, seconds: float, limits: HashLimits
) -> tuple[Floats, Floats]:
    matrix = bands(coding.bits, level, ROOM, rng)
    return _search(extended(coding, matrix), rng.random((count, level)) < 0.5, seconds, limits)


def _search(model: Extended, rights: Bools, seconds: float, limits: HashLimits) -> tuple[Floats, Floats]:
    """Log-potentials of what is found under each row of right sides, and upper bounds, shapes (T,).

    The noise exceeds all differences of log-potentials, so a proven maximum that has noise means
    that no configuration satisfies the constraints.
    """
    graph = model.graph
    finite = (f.table[np.isfinite(f.table)] for f in graph.factors)
    penalty = 1.0 + math.fsum(float(t.max() - t.min()) for t in finite)
    start = np.cumsum(graph.cardinalities) - graph.cardinalities
    noise = np.zeros((len(rights), sum(graph.cardinalities)))
    for right, row in zip(rights, noise, strict=True):
        row[start[model.ends] + ~right] = -penalty
    search = CostFunctionSearch(graph, seconds, backtracks=BACKTRACKS, memory=limits.memory)
    found = search.solve(noise)
    met = (found.states[:, model.ends] == rights).all(axis=1)
    values = np.where(met, found.values, -np.inf)
    return values, np.where(found.proven, values, found.bounds)


def extended(coding: Frontier, matrix: Bools) -> Extended:
    """The model with a chain of parities for each constraint.

    Parameters
    ----------
    coding : the model and the bits of its variables.
    matrix : constraints, shape (constraints, bits).
    """
    graph = coding.graph
    cardinalities, factors, ends = list(graph.cardinalities), list(graph.factors), []
    owner = np.repeat(np.arange(len(coding.widths)), coding.widths)
    for row in matrix:
        last: int | None = None
        for step in np.unique(owner[row]).tolist():
            variable = int(coding.order[step])
            own = row[None, owner == step]
            odd = np.array([parities(own, state)[0] for state in range(graph.cardinalities[variable])])
            before = np.zeros(1, np.bool_) if last is None else np.array([False, True])
            sums = before[:, None] ^ odd
            table = np.where(sums[..., None] == np.array([False, True]), 0.0, -np.inf)
            new = len(cardinalities)
            cardinalities.append(2)
            scope = (variable, new) if last is None else (last, variable, new)
            factors.append(Factor(scope, table[0] if last is None else table))
            last = new
        ends.append(last)
    return Extended(FactorGraph(cardinalities, factors), np.array(ends, np.int64))
