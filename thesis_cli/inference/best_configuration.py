"""The MAP with its certificate, by the cheapest algorithm that takes the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, UnsuitableModel, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model


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
    progress: Tick | None = None,
) -> MapResult:
    """MAP of a model: exact by a solver or by enumeration if one takes it, otherwise by TRW-S with
    its bound.

    Parameters
    ----------
    solver : name of the solver; `auto` for the choice above.
    memory, max_configurations, progress : as for `exact.exact_log_partition_function`.

    Raises
    ------
    UnsuitableModel, ModelTooLarge : the named solver does not take the model.
    NoConfiguration : no configuration is possible.
    WorkFailed : an approximate solver finds no possible configuration.
    """
    if isinstance(model, LogPotentials):
        if solver != "auto":
            raise UnsuitableModel(f"--solver {solver} needs variables, and the model is a vector", "leave --solver out")
        return _enumerate(model, max_configurations, progress)
    if solver == "auto":
        try:
            return _solve(model, "auto", memory, exact=True)
        except ModelTooLarge as error:
            if model.size <= max_configurations:
                return replace(_enumerate(model, max_configurations, progress), why=error.remedy)
    return _solve(model, solver, memory, exact=False)


def _solve(graph: FactorGraph, name: SolverName, memory: int, *, exact: bool) -> MapResult:
    from thesis_cli.inference.qpbo import QPBO
    from thesis_cli.inference.trws import TRWS

    solver, why = map_solver(graph, name, memory, exact=exact)
    quiet = np.zeros((1, sum(graph.cardinalities)))
    if isinstance(solver, TRWS):
        values, states, bounds = solver.solve(quiet)
    else:
        values, states = solver.maximise(quiet)
        bounds = solver.persistent(quiet)[1] if isinstance(solver, QPBO) else np.array([np.inf])
    bound = float((values if solver.guarantee == "exact" else bounds)[0])
    proven = solver.guarantee == "exact" or bool(values[0] >= bound - 1e-9 * max(1.0, abs(bound)))
    value = _possible(float(values[0]), proven)
    return MapResult(
        value, graph.original_states(states)[0], solver.name, "exact" if proven else "approximate", bound, why
    )


def _enumerate(model: Model, max_configurations: int, progress: Tick | None) -> MapResult:
    best, at, start = -np.inf, 0, 0
    for block in Enumeration(model, max_configurations).blocks():
        if block.max() > best:
            best, at = float(block.max()), start + int(block.argmax())
        start += block.size
        if progress:
            progress(block.size)
    states = np.array([at])
    if isinstance(model, FactorGraph):
        states = model.original_states(np.array([np.unravel_index(at, model.cardinalities)]))[0]
    return MapResult(_possible(best, True), states, "enumeration", "exact", best)


def _possible(value: float, proven: bool) -> float:
    if value == -np.inf:
        raise NoConfiguration() if proven else WorkFailed("the solver found no possible configuration")
    return value
