"""The k best configurations of a model, in order, each once."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import exact_solvers, map_solver
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model

EXACT = ("auto", "grid", "graph-cut", "elimination", "toulbar2")
ENTRIES = 2**22
"""Most entries of the noise of one call of a solver."""
ENUMERATED = 2e7
"""Terms of log-potentials below which a model is enumerated, in about a second."""


@dataclass(frozen=True)
class Ranking:
    """The best configurations in order.

    Attributes
    ----------
    values : phi of each, falling, shape (k,).
    states : numbered as without evidence, shape (k, n); for a vector its indices, shape (k, 1).
    method : the algorithm that found them.
    complete : no other configuration is possible.
    late : there may be more, but time was up.
    """

    values: Floats
    states: Ints
    method: str
    complete: bool
    late: bool


def best_configurations(
    model: Model,
    count: int,
    solver: SolverName = "auto",
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    time_limit: float = 60.0,
    progress: Tick | None = None,
) -> Ranking:
    """The `count` configurations of largest log-potential, exact to rounding; ties in any order.

    Small models and vectors are enumerated. toulbar2 is asked again and again for the best
    configuration but those found. Any other exact solver serves the partition of Lawler (Management
    Science 18, 1972).

    Parameters
    ----------
    solver : name of an exact solver; `auto` chooses one.
    time_limit : seconds; what was ranked by then is returned.
    memory, max_configurations, progress : as for `best_configuration`.

    Raises
    ------
    UnsuitableModel, ModelTooLarge : the solver is not exact or does not take the model, or none
        does.
    NoConfiguration : no configuration is possible.
    OutOfTime : not even the best was found in time.
    """
    if solver not in EXACT:
        raise UnsuitableModel(f"--best needs an exact solver, not {solver}", "leave --solver out")
    end = time.monotonic() + time_limit
    if isinstance(model, LogPotentials) or (
        solver == "auto" and model.size * (1 + len(model.factors)) <= min(ENUMERATED, max_configurations)
    ):
        if solver != "auto":
            raise UnsuitableModel(f"--solver {solver} needs variables, and the model is a vector", "leave --solver out")
        return _enumerated(model, count, max_configurations, progress)
    prepared = _solver(model, count, solver, memory, time_limit)
    ranked, late = [], False
    try:
        for states in _in_order(prepared, count, end):
            ranked.append(states)
            if len(ranked) == count:
                break
    except OutOfTime:
        late = True
        if not ranked:
            raise
    if not ranked:
        raise NoConfiguration()
    states = np.array(ranked)
    values = model.log_potential(states)
    order = np.argsort(-values, kind="stable")
    complete = len(ranked) < count and not late
    return Ranking(values[order], model.original_states(states[order]), prepared.name, complete, late)


def _solver(graph: FactorGraph, count: int, name: SolverName, memory: int, time_limit: float) -> MapSolver:
    """The exact solver that is predicted to take the least time."""
    if name != "auto":
        return map_solver(graph, name, memory, time_limit=time_limit)[0]
    from thesis_cli.inference.external.cost_function_search import CostFunctionSearch

    why: list[str] = []
    problems = 1 + (count - 1) * sum(k > 1 for k in graph.cardinalities)
    slow = None
    for solver, seconds in exact_solvers(graph, memory, why):
        if problems * seconds <= time_limit / 4:
            return solver
        slow = slow or solver
    try:
        return CostFunctionSearch(graph, time_limit, memory=memory)
    except (UnsuitableModel, ModelTooLarge) as error:
        if slow is None:
            raise ModelTooLarge(
                "no exact MAP solver takes the model, as --best needs", "; ".join([*why, f"not toulbar2: {error}"])
            ) from None
    return slow


def _in_order(solver: MapSolver, count: int, end: float) -> Iterator[Ints]:
    from thesis_cli.inference.external.cost_function_search import CostFunctionSearch

    if isinstance(solver, CostFunctionSearch):
        return _by_exclusion(solver, end)
    return _Partition(solver, end).configurations()


def _by_exclusion(solver: Any, end: float) -> Iterator[Ints]:
    """The best configuration, the best other, and so on, until the next is not certain in time (OutOfTime)."""
    graph = solver.graph
    found: list[Ints] = []
    quiet = np.zeros((1, sum(graph.cardinalities)))
    while True:
        solver.time_limit = max(0.1, end - time.monotonic())
        forbidden = np.array(found, np.int64).reshape(len(found), len(graph.cardinalities))
        searched = solver.solve(quiet, forbidden=forbidden)
        if not searched.proven[0]:
            raise OutOfTime("the next best configuration is not known in time; raise --time-limit")
        if searched.values[0] == -np.inf:
            return
        found.append(searched.states[0])
        yield searched.states[0]


class _Partition:
    """Lawler's partition: all configurations but those found, in parts with a best one each.

    A part holds the states of the first variables and bans some states of the next one. When its
    best configuration is taken out, what is left of it are such parts again: for each later
    variable, the configurations that agree before it and differ there. Held and banned states are
    unary penalties above all that is at stake, so one call of the solver serves many parts.
    """

    def __init__(self, solver: MapSolver, end: float) -> None:
        self._solver, self._end, self._graph = solver, end, solver.graph
        cardinalities = np.array(self._graph.cardinalities)
        self._starts = np.cumsum(cardinalities) - cardinalities
        self._free = np.flatnonzero(cardinalities > 1)
        self._penalty = 1 + 2 * sum(float(np.ptp(f.table[f.table > -np.inf])) for f in self._graph.factors)

    def configurations(self) -> Iterator[Ints]:
        """Configurations from the best on, until the next is not certain in time (OutOfTime)."""
        size = sum(self._graph.cardinalities)
        parts: list[tuple[float, int, Ints, int, Bools]] = []
        made = 0

        def add(banned: Bools, firsts: list[int], bans: Bools) -> None:
            nonlocal made
            values, states = self._maximise(banned)
            for value, found, first, ban in zip(values.tolist(), states, firsts, bans, strict=True):
                if value > -math.inf:
                    heapq.heappush(parts, (-value, made, found, first, ban))
                    made += 1

        add(np.zeros((1, size), np.bool_), [0], np.zeros((1, size), np.bool_))
        while parts:
            _, _, best, first, ban = heapq.heappop(parts)
            yield best
            firsts = list(range(first, self._free.size))
            chunk = max(1, ENTRIES // size)
            for start in range(0, len(firsts), chunk):
                if time.monotonic() > self._end:
                    raise OutOfTime("the next best configuration is not known in time; raise --time-limit")
                some = firsts[start : start + chunk]
                bans = np.zeros((len(some), size), np.bool_)
                banned = np.zeros((len(some), size), np.bool_)
                for row, j in enumerate(some):
                    i = self._free[j]
                    if j == first:
                        bans[row] = ban
                    bans[row, self._starts[i] + best[i]] = True
                    for held in self._free[:j]:
                        at = self._starts[held]
                        banned[row, at : at + self._graph.cardinalities[held]] = True
                        banned[row, at + best[held]] = False
                left = [not bans[row, self._own(j)].all() for row, j in enumerate(some)]
                if any(left):
                    add((banned | bans)[left], [j for j, stays in zip(some, left, strict=True) if stays], bans[left])

    def _own(self, j: int) -> slice:
        """Places of the states of the free variable j."""
        i = self._free[j]
        return slice(int(self._starts[i]), int(self._starts[i]) + self._graph.cardinalities[i])

    def _maximise(self, banned: Bools) -> tuple[Floats, Ints]:
        """The best configuration without the banned states in each row; `-inf` if there is none."""
        noise = np.where(banned, -self._penalty, 0.0)
        values, states = self._solver.maximise(noise)
        kept = ~np.take_along_axis(banned, states + self._starts, axis=1).any(axis=1) & (values > -np.inf)
        exact = np.full(len(states), -np.inf)
        exact[kept] = self._graph.log_potential(states[kept])
        return exact, states


def _enumerated(model: Model, count: int, max_configurations: int, progress: Tick | None) -> Ranking:
    values, places, start = np.empty(0), np.empty(0, np.int64), 0
    for block in Enumeration(model, max_configurations).blocks():
        at = np.flatnonzero(block > (values.min() if values.size == count else -np.inf))
        values, places = np.concatenate([values, block[at]]), np.concatenate([places, start + at])
        kept = np.argsort(-values, kind="stable")[:count]
        values, places = values[kept], places[kept]
        start += block.size
        if progress:
            progress(block.size)
    if not values.size:
        raise NoConfiguration()
    states = places[:, None]
    if isinstance(model, FactorGraph):
        states = model.original_states(np.stack(np.unravel_index(places, model.cardinalities), axis=1))
        values = model.log_potential(np.stack(np.unravel_index(places, model.cardinalities), axis=1))
    return Ranking(values, states, "enumeration", values.size < count, False)
