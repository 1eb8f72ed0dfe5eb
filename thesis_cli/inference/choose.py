"""Choosing a MAP solver for a model."""

from __future__ import annotations

from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph

NARROW = 2**12
"""States of a grid's boundary up to which grid transfer beats a minimum cut: its tables fit into a
core's cache.
"""


def map_solver(
    graph: FactorGraph, name: SolverName = "auto", memory: int = DEFAULT_MEMORY, *, exact: bool = False
) -> tuple[MapSolver, str]:
    """Prepare a solver for a model.

    Parameters
    ----------
    graph : the model.
    name : name of the solver; `auto` takes the first of grid transfer on a narrow grid, graph cut,
        grid transfer on any grid, elimination, and TRW-S, which takes every model but approximates.
    memory : bytes for the tables of grid transfer or elimination.
    exact : refuse the model instead of approximating.

    Returns
    -------
    solver : the prepared solver.
    why : the solvers that `auto` passed over, and why; empty if the solver was named.

    Raises
    ------
    UnsuitableModel, ModelTooLarge : the named solver does not take the model, or no exact solver
        does.
    """
    if name != "auto":
        return _make(name, graph, memory), ""
    refusals: list[str] = []

    def attempt(name: SolverName) -> MapSolver | None:
        try:
            return _make(name, graph, memory)
        except (UnsuitableModel, ModelTooLarge) as error:
            refusals.append(f"not {name}: {error.problem}")
            return None

    grid = attempt("grid")
    if grid and max(2, *graph.cardinalities) ** getattr(grid, "width", 0) <= NARROW:
        return grid, ""
    solver = attempt("graph-cut") or grid or attempt("elimination")
    if solver is None:
        if exact:
            raise ModelTooLarge("no exact MAP solver takes the model", "; ".join(refusals))
        solver = _make("trw-s", graph, memory)
    return solver, "; ".join(refusals)


def _make(name: SolverName, graph: FactorGraph, memory: int) -> MapSolver:
    if name == "grid":
        from thesis_cli.inference.grid import GridTransfer

        return GridTransfer(graph, memory)
    if name == "elimination":
        from thesis_cli.inference.elimination import Elimination

        return Elimination(graph, memory)
    if name == "graph-cut":
        from thesis_cli.inference.graph_cut import GraphCut

        return GraphCut(graph)
    if name == "qpbo":
        from thesis_cli.inference.qpbo import QPBO

        return QPBO(graph)
    if name == "toulbar2":
        from thesis_cli.inference.cost_function_search import CostFunctionSearch

        return CostFunctionSearch(graph, memory=memory)
    if name == "trw-s":
        from thesis_cli.inference.trws import TRWS

        return TRWS(graph)
    from thesis_cli.inference.belief_propagation import MaxProduct

    return MaxProduct(graph)
