"""Choosing a MAP solver for a model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.slices import PATIENCE
from thesis_cli.inference.elimination.small import small_elimination
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph

NARROW = 2**12
"""States of a grid's boundary up to which grid transfer beats a minimum cut: its tables fit into a
core's cache.
"""


GRID_ENTRY = 1e-9
"""Seconds for each entry of the tables of grid transfer, of which a variable has one for each state
of the boundary and of its own."""

ELIMINATION_STEP, ELIMINATION_ENTRY = 1.5e-5, 3e-9
"""Seconds of a MAP problem for each variable and each entry of the tables of elimination."""

SLOW = 1.0
"""Predicted seconds of an exact solver for one MAP problem from which a search is tried as well."""

HOPELESS = 1e4
"""Predicted seconds of elimination from which no tree is sought."""

TRIAL, EXACT, APPROXIMATE = 500, 5000, 100
"""Most backtracks of toulbar2: on the perturbed problem that decides whether it is taken, and on
each problem after that if it solved this one and if not. Seconds in their place would make results
depend on the machine."""


FEW = 2.0**24
"""Entries of the tables of all MAP problems up to which NumPy takes a fraction of a second."""


def map_solver(
    graph: FactorGraph,
    name: SolverName = "auto",
    memory: int = DEFAULT_MEMORY,
    *,
    exact: bool = False,
    time_limit: float = 60.0,
    calls: float = math.inf,
) -> tuple[MapSolver, str]:
    """Prepare a solver for a model.

    Parameters
    ----------
    graph : the model.
    name : name of the solver; `auto` takes the first of grid transfer on a narrow grid, graph cut,
        grid transfer on any grid, elimination, and, if that is slow, contraction along a tree. If they
        refuse or are slow, strips of a grid, then TRW-S completed by toulbar2, are tried on one perturbed
        problem and taken if they solve that. What no exact solver takes goes to TRW-S, completed by
        toulbar2 if there are hard constraints.
    memory : bytes for the tables of a solver.
    exact : refuse the model instead of approximating; the `guarantee` of a solver that was tried
        says afterwards whether it has solved every problem.
    time_limit : seconds for each MAP problem that toulbar2 solves by name.
    calls : number of MAP problems, if it is known. With `auto`, few problems of a small model go to
        NumPy, which takes less time than compilation.

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
        return _make(name, graph, memory, time_limit), ""
    if math.isfinite(calls) and (small := small_elimination(graph, memory)) and calls * small.entries <= FEW:
        return small, ""
    why: list[str] = []
    slow, least = None, math.inf
    for solver, seconds in exact_solvers(graph, memory, why):
        if seconds <= SLOW:
            return solver, "; ".join(why)
        if seconds < least:
            slow, least = solver, seconds
    if (strips := _by_strips(graph, memory, slow, why)) is not None:
        return strips, "; ".join(why)
    if (search := _by_search(graph, memory, exact or slow is not None, why)) is not None:
        return search, "; ".join(why)
    if slow is None and exact:
        raise ModelTooLarge("no exact MAP solver takes the model", "; ".join(why))
    return slow or _make("trw-s", graph, memory, time_limit), "; ".join(why)


def exact_solvers(graph: FactorGraph, memory: int, why: list[str]) -> Iterator[tuple[MapSolver, float]]:
    """The exact solvers that take a model, the usually quickest first, each with the seconds that a
    MAP problem is predicted to take; those that refuse are added to `why`.
    """
    grid = _attempt("grid", graph, memory, why)
    states = max(2, *graph.cardinalities)
    width = getattr(grid, "width", 0)
    if grid and states**width <= NARROW:
        yield grid, 0.0
    if cut := _attempt("graph-cut", graph, memory, why):
        yield cut, 0.0
    if grid:
        yield grid, GRID_ENTRY * len(graph.cardinalities) * float(states) ** (width + 1)
    seconds = math.inf
    try:
        elimination = Elimination(graph, memory)
        seconds = ELIMINATION_STEP * len(elimination.order) + ELIMINATION_ENTRY * elimination.entries
        elimination.maxima_segments()  # refuses before the work
        yield elimination, seconds
    except ModelTooLarge as error:
        why.append(f"not elimination: {error.problem}")
        seconds = error.seconds if seconds == math.inf else seconds
    if not SLOW < seconds < HOPELESS:
        return
    from thesis_cli.inference.elimination.contraction import Contraction

    tree = _attempt("contraction", graph, memory, why)
    if isinstance(tree, Contraction) and (seconds := tree.maximum.cost.seconds) <= PATIENCE:
        yield tree, seconds
    elif isinstance(tree, Contraction):
        why.append(f"not contraction: it is predicted to take {seconds:.2g} s")


def _attempt(name: SolverName, graph: FactorGraph, memory: int, why: list[str]) -> MapSolver | None:
    try:
        return _make(name, graph, memory)
    except (UnsuitableModel, ModelTooLarge) as error:
        why.append(f"not {name}: {error.problem}")
        return None


def _by_strips(graph: FactorGraph, memory: int, rest: MapSolver | None, why: list[str]) -> MapSolver | None:
    """Strips of a binary grid, if they solve one perturbed problem; what they do not solve after
    that goes to `rest`.
    """
    from thesis_cli.inference.grid.strips import GridStrips

    try:
        strips = GridStrips(graph, memory, rest=rest)
    except UnsuitableModel:
        return None  # grid transfer has said why
    except ModelTooLarge as error:
        why.append(f"not grid-strips: {error.problem}")
        return None
    strips.solve(np.random.default_rng(0).gumbel(size=(1, sum(graph.cardinalities))))
    if strips.certified.all():
        return strips
    why.append("not grid-strips: they do not certify the maximum of a perturbed problem")
    return None


def _by_search(graph: FactorGraph, memory: int, only_exact: bool, why: list[str]) -> MapSolver | None:
    """TRW-S completed by toulbar2, if that solves one perturbed problem, or may approximate and is
    needed, since TRW-S may find no possible configuration.
    """
    from thesis_cli.inference.completed import Completed

    try:
        trial = Completed(graph, TRIAL, memory)
    except (UnsuitableModel, ModelTooLarge) as error:
        why.append(f"not toulbar2: {error.problem}")
        return None
    trial.maximise(np.random.default_rng(0).gumbel(size=(1, sum(graph.cardinalities))))
    if trial.guarantee == "exact":
        return Completed(graph, None if only_exact else EXACT, memory)
    why.append(f"not toulbar2: a perturbed problem takes more than {TRIAL} backtracks")
    hard = graph.has_zeros
    return Completed(graph, APPROXIMATE, memory, hopeful=False) if hard and not only_exact else None


def _make(name: SolverName, graph: FactorGraph, memory: int, time_limit: float = 60.0) -> MapSolver:
    if name == "grid":
        from thesis_cli.inference.grid.grid import GridTransfer

        return GridTransfer(graph, memory)
    if name == "elimination":
        elimination = Elimination(graph, memory)
        elimination.maxima_segments()  # refuses before the work
        return elimination
    if name == "contraction":
        from thesis_cli.inference.elimination.contraction import Contraction

        contraction = Contraction(graph, memory)
        _ = contraction.maximum  # refuses before the work
        return contraction
    if name == "graph-cut":
        from thesis_cli.inference.graph_cut.graph_cut import GraphCut

        return GraphCut(graph)
    if name == "grid-strips":
        from thesis_cli.inference.grid.strips import GridStrips

        return GridStrips(graph, memory)
    if name == "qpbo":
        from thesis_cli.inference.graph_cut.qpbo import QPBO

        return QPBO(graph)
    if name == "toulbar2":
        from thesis_cli.inference.external.cost_function_search import CostFunctionSearch

        return CostFunctionSearch(graph, time_limit, memory=memory)
    if name == "trw-s":
        from thesis_cli.inference.message_passing.trws import TRWS

        return TRWS(graph)
    from thesis_cli.inference.message_passing.belief_propagation import MaxProduct

    return MaxProduct(graph)
