"""The MAP with its certificate, by the cheapest algorithm that takes the model."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime, UnsuitableModel, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.modules import how_to_install
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import exact_solvers, map_solver
from thesis_cli.inference.elimination.small import small_elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.external.cost_function_search import PACKAGE, CostFunctionSearch
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.block_search import BlockSearch

TIME_LIMIT = 60.0
"""Seconds that the search for a MAP may take."""

QUICK = 0.2
"""Predicted seconds of an exact solver below which no other is tried before it."""

ROUNDS = (100, 0.05, 0.1), (2000, 0.4, 0.5)
"""Iterations of TRW-S, then shares of the time left that go to moves of blocks and to toulbar2; at the end, moves
of blocks have the rest."""

ENUMERATED = 1e7
"""Terms of log-potentials that enumeration adds in a second, with room to spare."""

TOLERANCE = 1e-9
"""A configuration is exact if its log-potential is within this share of its bound."""


@dataclass(frozen=True)
class MapResult:
    """A configuration of large log-potential, with its certificate.

    Attributes
    ----------
    value : phi(x).
    states : of the variables, shape (n,), numbered as without evidence; for a vector its index,
        shape (1,).
    method : the algorithm that found it.
    guarantee : `exact` if no configuration has a larger log-potential.
    bound : upper bound on the log-potential of every configuration; inf if the method gives none.
    why : the algorithms that do not take the model, and why.
    """

    value: float
    states: npt.NDArray[np.int64]
    method: str
    guarantee: Guarantee
    bound: float
    why: str = ""


def best_configuration(
    model: Model,
    solver: SolverName = "auto",
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    time_limit: float = TIME_LIMIT,
    progress: Tick | None = None,
) -> MapResult:
    """MAP of a model: exact if an algorithm takes it within the limits, otherwise the best
    configuration that TRW-S, moves of blocks and toulbar2 find, each from that of the others, with the lowest bound.

    Parameters
    ----------
    solver : name of the solver; `auto` for the choice above.
    time_limit : seconds that searches may take, and that decide with `auto` what is tried: nothing
        that is predicted to take longer.
    memory, max_configurations, progress : as for `exact.exact_log_partition_function`.

    Raises
    ------
    UnsuitableModel, ModelTooLarge : the named solver does not take the model.
    NoConfiguration : no configuration is possible.
    WorkFailed : no possible configuration was found, and not for lack of time.
    OutOfTime : no possible configuration was found in time.
    """
    if isinstance(model, LogPotentials):
        if solver != "auto":
            raise UnsuitableModel(f"--solver {solver} needs variables, and the model is a vector", "leave --solver out")
        return _enumerate(model, max_configurations, progress)
    if solver != "auto":
        prepared, why = map_solver(model, solver, memory, time_limit=time_limit)
        return _result(model, _solved(prepared), why)
    return _Auto(model, memory, max_configurations, time_limit, progress).result()


@dataclass
class _Answer:
    """Answer of a solver: a configuration, `-inf` and anything if none, and a bound."""

    value: float
    states: Ints
    bound: float
    method: str

    @property
    def proven(self) -> bool:
        return self.value == self.bound or self.value >= self.bound - TOLERANCE * max(1.0, abs(self.bound))


class _Auto:
    """The choice of algorithms for one model, in the order of what they are predicted to take."""

    def __init__(
        self, graph: FactorGraph, memory: int, max_configurations: int, time_limit: float, progress: Tick | None
    ) -> None:
        self._end = time.monotonic() + time_limit
        self._memory, self._max_configurations = memory, max_configurations
        self._progress, self._original, self._graph = progress, graph, graph
        self._why: list[str] = []

    def result(self) -> MapResult:
        original = self._original
        if small := small_elimination(original, self._memory):
            return _result(original, _solved(small), "")
        if not original.has_zeros:
            return _result(original, self._answer(), "; ".join(self._why))
        from thesis_cli.inference.zeros.reduction import reduced

        reduction = reduced(original)
        self._graph = reduction.graph
        found = self._answer()
        found.states = reduction.original_states(found.states[None])[0]
        proven = found.proven
        found.bound += reduction.potential
        if found.value > -np.inf:
            found.value = float(original.log_potential(found.states[None])[0])
            found.bound = found.value if proven else max(found.bound, found.value)
        return _result(original, found, "; ".join(self._why))

    def _answer(self) -> _Answer:
        solver, seconds = self._exact_solver()
        if solver and seconds <= QUICK:
            return _solved(solver)
        terms = self._graph.size * max(1, len(self._graph.factors))
        counted = terms / ENUMERATED if self._graph.size <= self._max_configurations else np.inf
        if counted <= QUICK:
            return self._enumerated()
        best = _Answer(-np.inf, np.zeros(len(self._graph.cardinalities), np.int64), np.inf, "TRW-S")
        exact = min(seconds, counted)
        for iterations, moved, searched in ROUNDS:
            best = self._iterated(best, iterations)
            if best.proven:
                return best
            if exact > self._left:
                best = self._moved(best, moved * self._left)
            best = self._searched(best, min(exact, searched * self._left))
            if best.proven:
                return best
            if exact <= self._left:
                return _solved(solver) if solver and seconds <= counted else self._enumerated()
        return self._moved(best, self._left)

    @property
    def _left(self) -> float:
        """Seconds that are left."""
        return self._end - time.monotonic()

    def _exact_solver(self) -> tuple[MapSolver | None, float]:
        """The exact solver that is predicted to be the quickest, and its seconds."""
        fastest, least = None, np.inf
        for solver, seconds in exact_solvers(self._graph, self._memory, self._why):
            if seconds < least:
                fastest, least = solver, seconds
            if seconds <= QUICK:
                break
        return fastest, least

    def _enumerated(self) -> _Answer:
        found = _enumerate(self._graph, self._max_configurations, self._progress)
        states = found.states.copy()
        states[list(self._graph.observed)] = 0
        return _Answer(found.value, states, found.bound, found.method)

    def _iterated(self, best: _Answer, iterations: int) -> _Answer:
        """The better of a configuration and that of TRW-S, or at first of the strips of a grid;
        either may take a quarter of the time."""
        from thesis_cli.inference.grid.strips import GridStrips
        from thesis_cli.inference.message_passing.trws import TRWS

        solver: GridStrips | TRWS = TRWS(self._graph, max_iterations=iterations)
        if best.bound == np.inf:
            with suppress(UnsuitableModel, ModelTooLarge):
                solver = GridStrips(self._graph, self._memory)
        solver.limit(self._left / 4)
        found = _solved(solver)
        found.bound = min(found.bound, best.bound)
        return found if found.value >= best.value else replace(best, bound=found.bound)

    def _moved(self, best: _Answer, seconds: float) -> _Answer:
        """The better of a configuration and what moves of blocks make of it."""
        if self._blocks is None or seconds <= 0:
            return best
        value, states = self._blocks.improve(best.states, seconds=seconds)
        return best if value <= best.value else _Answer(value, states, best.bound, self._blocks.name)

    def _searched(self, best: _Answer, seconds: float) -> _Answer:
        """The better of a configuration and what toulbar2 makes of it, with the lower bound."""
        search = self._search
        if search is None:
            return best
        search.time_limit = max(0.1, seconds)
        found = search.solve(_quiet(self._graph), known=best.states[None])
        value, bound = float(found.values[0]), min(best.bound, float(found.bounds[0]))
        better = _Answer(value, found.states[0], bound, search.name)
        return better if value > best.value or value == -np.inf or better.proven else replace(best, bound=bound)

    @cached_property
    def _blocks(self) -> BlockSearch | None:
        from thesis_cli.inference.message_passing.block_search import BlockSearch

        try:
            return BlockSearch(self._graph)
        except UnsuitableModel as error:
            self._why.append(f"not block moves: {error}")
            return None

    @cached_property
    def _search(self) -> CostFunctionSearch | None:
        try:
            return CostFunctionSearch(self._graph, memory=self._memory)
        except (UnsuitableModel, ModelTooLarge) as error:
            self._why.append(f"not toulbar2: {error}")
            return None


def _quiet(graph: FactorGraph) -> Floats:
    return np.zeros((1, sum(graph.cardinalities)))


def _solved(solver: MapSolver) -> _Answer:
    """The MAP of the model that a solver is prepared for."""
    from thesis_cli.inference.graph_cut.qpbo import QPBO
    from thesis_cli.inference.grid.strips import GridStrips
    from thesis_cli.inference.message_passing.trws import TRWS

    quiet = _quiet(solver.graph)
    if isinstance(solver, TRWS | GridStrips | CostFunctionSearch):
        values, states, bounds = solver.solve(quiet)
    else:
        values, states = solver.maximise(quiet)
        bounds = solver.persistent(quiet)[1] if isinstance(solver, QPBO) else np.array([np.inf])
        if solver.guarantee == "exact":
            bounds = values
    return _Answer(float(values[0]), states[0], float(bounds[0]), solver.name)


def _result(graph: FactorGraph, found: _Answer, why: str) -> MapResult:
    if found.value == -np.inf:
        if found.proven:
            raise NoConfiguration()
        if found.method == "toulbar2":
            raise OutOfTime("no possible configuration was found in time; raise --time-limit")
        install = how_to_install(PACKAGE)
        missing = f"; a complete search may: {install}" * (install in why)
        raise WorkFailed(f"the solver found no possible configuration{missing}")
    states = graph.original_states(found.states[None])[0]
    guarantee: Guarantee = "exact" if found.proven else "approximate"
    return MapResult(found.value, states, found.method, guarantee, max(found.bound, found.value), why)


def _enumerate(model: Model, max_configurations: int, progress: Tick | None) -> MapResult:
    best, at, start = -np.inf, 0, 0
    for block in Enumeration(model, max_configurations).blocks():
        if block.max() > best:
            best, at = float(block.max()), start + int(block.argmax())
        start += block.size
        if progress:
            progress(block.size)
    if best == -np.inf:
        raise NoConfiguration()
    states = np.array([at])
    if isinstance(model, FactorGraph):
        states = model.original_states(np.array([np.unravel_index(at, model.cardinalities)]))[0]
    return MapResult(best, states, "enumeration", "exact", best)
