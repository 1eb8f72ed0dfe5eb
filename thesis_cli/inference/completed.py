"""TRW-S, with a complete search where it does not prove its configuration the best."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.external.cost_function_search import CostFunctionSearch, Searched
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

ITERATIONS, SECONDS = 200, 0.2
"""Most iterations of TRW-S, and what they may be predicted to take, before the search, which
profits from a good configuration, not from the best."""


class Completed:
    """TRW-S first; toulbar2 solves what it does not certify, and starts from its configuration.

    Parameters
    ----------
    graph : any model.
    backtracks : largest number of backtracks of toulbar2 for each MAP problem.
    memory : bytes for the search.
    hopeful : whether the problems are likely to be solved within the limits.

    Attributes
    ----------
    guarantee : `exact` if hopeful, and as long as every problem has been solved within the limits.

    Raises
    ------
    UnsuitableModel, ModelTooLarge : as `CostFunctionSearch`.
    """

    name = "TRW-S and toulbar2"

    def __init__(
        self, graph: FactorGraph, backtracks: int | None, memory: int = DEFAULT_MEMORY, *, hopeful: bool = True
    ) -> None:
        self.graph, self._hopeful = graph, hopeful
        self._search = CostFunctionSearch(graph, backtracks=backtracks, memory=memory)
        self._quick = TRWS(graph, max_iterations=ITERATIONS)
        self._quick.limit(SECONDS)

    @property
    def guarantee(self) -> Guarantee:
        return self._search.guarantee if self._hopeful else "approximate"

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        found = Searched(*self._quick.solve(noise))
        open_rows = np.flatnonzero(~found.proven)
        if open_rows.size:
            searched = self._search.solve(noise[open_rows], known=found.states[open_rows])
            found.values[open_rows], found.states[open_rows] = searched.values, searched.states
        return found.values, found.states
