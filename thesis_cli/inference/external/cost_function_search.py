"""MAP by toulbar2, a complete search on cost function networks, in a process of its own."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.child import Child
from thesis_cli.base.errors import ModelTooLarge, OutOfTime, UnsuitableModel, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.base.modules import how_to_install, is_installed
from thesis_cli.inference.external.cost_function_process import Found, MapProblem, entries, searches
from thesis_cli.inference.message_passing.belief_propagation import perturbed_values
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

PACKAGE = "pytoulbar2"

GRACE = 3.0
"""Seconds that the library has to heed the end of its time before its process is stopped."""

START = 60.0
"""Seconds that the process may take to start."""

ENTRY_BYTES, WIDE_ENTRY_BYTES = 40, 250
"""Memory for each entry of a table of up to three variables, and of a wider one, as measured."""

TOLERANCE = 1e-9
"""A configuration is the MAP if its log-potential is within this share of the bound; the rounding
of costs leaves far less unless log-potentials differ by 1e10 or so."""


class Searched(NamedTuple):
    """Results of a search for each row of a batch.

    Attributes
    ----------
    values : phi(x) + sum_i noise_i(x_i) of the configurations found, shape (batch,); -inf for none.
    states : the configurations, shape (batch, n).
    bounds : upper bounds on the maxima, shape (batch,); -inf if no configuration is possible.
    """

    values: Floats
    states: Ints
    bounds: Floats

    @property
    def proven(self) -> Bools:
        """Whether a row is solved: its value meets its bound, or nothing is possible."""
        scale = np.maximum(1, np.abs(np.where(np.isfinite(self.bounds), self.bounds, 0)))
        return np.asarray(self.values >= self.bounds - TOLERANCE * scale)


class CostFunctionSearch:
    """Branch and bound with soft local consistency (Hurley et al., Constraints 21, 2016), by
    toulbar2.

    It takes every model; hard constraints help it. toulbar2 computes in integers of 64 bits, so
    log-potentials are rounded down to multiples of a unit, the smallest power of two with which the
    range of no table exceeds 2^52 units, nor the sum of the ranges 2^56. The rounding of m tables
    makes the bound at most m units higher than the maximum: about m 2^-56 of the sum of ranges. If
    that is too much, because log-potentials differ by 1e10 or so, the search is repeated with all
    entries forbidden that the first configuration found excludes. The values are computed from the
    tables in double precision.

    Parameters
    ----------
    graph : any model.
    time_limit : seconds for each MAP problem.
    backtracks : largest number of backtracks for each MAP problem that a configuration is known of,
        which unlike a time limit gives the same result on any machine; no limit if None.
    memory : bytes for the search.

    Attributes
    ----------
    guarantee : `exact` as long as every problem has been solved within the limits.

    Raises
    ------
    UnsuitableModel : the package is missing.
    ModelTooLarge : the tables take more memory.
    """

    name = "toulbar2"

    def __init__(
        self,
        graph: FactorGraph,
        time_limit: float = 60.0,
        *,
        backtracks: int | None = None,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        if not is_installed(PACKAGE):
            raise UnsuitableModel(f"toulbar2 needs the package {PACKAGE}", how_to_install(PACKAGE))
        small, wide = entries(graph.cardinalities, graph.factors)
        needed = ENTRY_BYTES * small + WIDE_ENTRY_BYTES * wide
        if needed > memory:
            raise ModelTooLarge(
                f"toulbar2 needs {bytes_text(needed)}",
                f"raise the memory from {bytes_text(memory)}, or use a method that approximates",
            )
        self.graph, self.time_limit, self._backtracks = graph, time_limit, backtracks
        self.guarantee: Guarantee = "exact"
        self._idle: list[Child] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _stop, self._idle)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        found = self.solve(noise)
        return found.values, found.states

    def solve(self, noise: Floats, known: Ints | None = None, forbidden: Ints | None = None) -> Searched:
        """MAP under perturbed unary tables, with bounds.

        Parameters
        ----------
        noise : finite, added to the unary log-potentials, shape (batch, sum of cardinalities).
        known : a configuration for each row to start from, shape (batch, n); it may be impossible.
        forbidden : configurations to leave out, shape (any, n).
        """
        batch, n = len(noise), len(self.graph.cardinalities)
        states = np.zeros((batch, n), np.int64) if known is None else known.astype(np.int64)
        values = np.full(batch, -np.inf) if known is None else perturbed_values(self.graph, noise, states)
        bounds = np.full(batch, np.inf)
        none = np.empty((0, n), np.int64) if forbidden is None else forbidden
        for row in range(batch):
            at = slice(row, row + 1)
            self._solve_row(noise[at], none, Searched(values[at], states[at], bounds[at]))
        searched = Searched(values, states, bounds)
        if not searched.proven.all():
            self.guarantee = "approximate"
        return searched

    def _solve_row(self, noise: Floats, forbidden: Ints, row: Searched) -> None:
        """Improve a row of the results, given by views of one entry each.

        A complete search is repeated once if its bound is not tight, since what it found makes the
        unit small. An incomplete one that found nothing is repeated with more backtracks.
        """
        backtracks, refined, end = self._backtracks, False, time.monotonic() + self.time_limit
        while (left := end - time.monotonic()) > 0:
            found = self._answer(MapProblem(noise[0], float(row.values[0]), backtracks, forbidden), left)
            if found is None:
                return
            row.bounds[0] = min(row.bounds[0], found.bound)
            if found.states is not None:
                value = float(perturbed_values(self.graph, noise, found.states[None])[0])
                if value > row.values[0]:
                    row.values[0], row.states[0] = value, found.states
            row.bounds[0] = max(row.bounds[0], row.values[0])
            if row.proven[0]:
                return
            if found.complete and not refined:
                refined = True
            elif not found.complete and backtracks is not None and row.values[0] == -np.inf:
                backtracks *= 10
            else:
                return

    def _answer(self, problem: MapProblem, seconds: float) -> Found | None:
        """Solve a problem in an idle process, or in a new one if there is none or the library
        crashes; None if it gave no answer in time or crashes again.
        """
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        for child in (idle, None):
            child = child or Child(searches, self.graph.cardinalities, self.graph.factors, requests=True)
            answered = False
            try:
                if child is not idle:
                    child.next(START)
                found = _reply(child, problem, seconds)
                answered = True
            except OutOfTime:
                return None
            except WorkFailed:
                continue
            finally:
                if not answered:
                    child.stop()
            with self._lock:
                self._idle.append(child)
            return found
        return None


def _reply(child: Child, problem: MapProblem, seconds: float) -> Found:
    """Answer of a process; OutOfTime if it does not heed the end of its seconds, WorkFailed if it crashed."""
    child.send(problem)
    try:
        found: Found = child.next(seconds)
    except OutOfTime:
        child.signal(signal.SIGVTALRM)
        found = child.next(GRACE)
    return found


def _stop(children: Iterable[Child]) -> None:
    for child in children:
        child.stop()
