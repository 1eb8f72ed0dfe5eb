"""Exact ln Z by the cheapest algorithm that takes the model.

What is predicted to take seconds at most is done at once: elimination of a small model in NumPy,
grid transfer, elimination, enumeration, contraction along a tree, which is sought only where all others
take longer.
For other models, algorithms that use zeros run beside the elimination, each in a process of its
own, and the first answer counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from thesis_cli.base.children import Attempt, Failed, attempts
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import log_of_sum
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.elimination.small import SmallElimination, small_elimination
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, log_partition_function
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.factor_graph import FactorGraph, Model

if TYPE_CHECKING:
    from thesis_cli.inference.elimination.contraction import Contraction

INSTANT = 0.2
"""Predicted seconds up to which an algorithm runs without a look at the zeros of the model."""

AT_ONCE = 1.0
"""Seconds for sparse tables before anything runs in a process of its own."""

QUICK = 2.0
"""Predicted seconds up to which an algorithm runs at once, and none beside it."""

SECONDS = 60.0
"""Seconds that an exact answer may take, unless more are given."""

PER_CONFIGURATION = 4e-8
"""Seconds of enumeration for a configuration."""

SPARSE_SHARE, COUNTING_SHARE = 0.3, 0.6
"""Shares of the time after which algorithms whose time cannot be predicted are given up; half of
these beside an algorithm that is predicted to end in time."""

HOPE, FIRST_SHARE = 0.5, 0.8
"""Predicted share of the time up to which an algorithm is likely to end in time, and the share that a
promising one gets at most, so that others have the rest."""

UNPROMISING = 1 / 3
"""Share of its time that model counting takes if it is not likely to end."""


def exact_log_partition_function(
    model: Model,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
    seconds: float = SECONDS,
    jobs: int | None = None,
) -> tuple[float, str]:
    """Exact ln Z, `-inf` if no configuration is possible, and the name of the algorithm.

    Parameters
    ----------
    memory : bytes for the tables of one algorithm.
    max_configurations : limit on enumeration, which serves vectors, small graphs, and graphs that
        nothing else takes.
    progress : called with the number of configurations just enumerated.
    seconds : time for algorithms whose predicted time exceeds `QUICK`; enumeration has no limit.
    jobs : processes; by default one a core.

    Raises
    ------
    ModelTooLarge : no algorithm takes it; the message gives the width.
    InputError : a vector has a NaN or a `+inf`.
    """
    if isinstance(model, FactorGraph):
        jobs = jobs_or_all(jobs)
        plan = exact_plan(model, memory, max_configurations, seconds, jobs)
        if plan.quick:
            return plan.quick()
        for _, answer in attempts(plan.attempts, seconds, jobs):
            if not isinstance(answer, Failed):
                log_z, method = answer
                return float(log_z), str(method)
        if model.size > max_configurations:
            raise plan.refusal
    return log_of_sum(log_partition_function(model, max_configurations=max_configurations, progress=progress)), (
        "enumeration"
    )


_REMEDY = "give it more time, or use a method that approximates"
_NONE = ModelTooLarge("no exact ln Z in time", _REMEDY)


@dataclass(frozen=True)
class ExactPlan:
    """Plan of the computation of the exact ln Z of a factor graph.

    Attributes
    ----------
    quick : returns ln Z and the name of the algorithm within seconds; None if none is that quick.
    attempts : what to try side by side otherwise; each yields ln Z and the name of the algorithm.
    promising : whether the first attempt is likely to end in time, so that it should not wait.
    refusal : what to say if all fail.
    """

    quick: Callable[[], tuple[float, str]] | None
    attempts: tuple[Attempt, ...] = ()
    promising: bool = False
    refusal: ModelTooLarge = _NONE


def exact_plan(
    graph: FactorGraph, memory: int, max_configurations: int, seconds: float = math.inf, jobs: int = 1
) -> ExactPlan:
    """Choose among the exact algorithms by their predicted costs; nothing large is allocated.

    Parameters
    ----------
    memory, max_configurations : as for `exact_log_partition_function`.
    seconds : time for all attempts together.
    jobs : threads that share the tables of one algorithm.
    """
    if (small := small_elimination(graph, memory)) and small.cost.seconds <= INSTANT:
        return ExactPlan(_Route(small, small.cost.seconds).run)
    refusals: list[ModelTooLarge] = []
    routes: list[_Route] = []
    for route in (_transfer, partial(_planned, Elimination, refusals=refusals)):
        routes += route(graph, memory, jobs)
        if quick := _within(routes, INSTANT):
            return ExactPlan(quick.run)
    if graph.size <= min(max_configurations, QUICK / PER_CONFIGURATION):
        return ExactPlan(partial(_enumerated, graph, max_configurations))
    from thesis_cli.inference.zeros.leaves import summed
    from thesis_cli.inference.zeros.reduction import reduced

    try:
        smaller = reduced(graph)
        leafless, constant = summed(smaller)
    except NoConfiguration:
        return ExactPlan(lambda: (-math.inf, "arc consistency"))
    if leafless.size < graph.size:
        routes += _planned(Elimination, leafless, memory, jobs, constant, refusals=refusals)
    if quick := _within(routes, INSTANT):
        return ExactPlan(quick.run)
    from thesis_cli.inference.elimination.contraction import Contraction

    routes += _planned(Contraction, leafless, memory, jobs, constant, refusals=refusals)
    zeros = smaller.graph.has_zeros
    work = smaller.graph, smaller.constant, memory
    if zeros and not _within(routes, INSTANT) and (answer := _sparse_at_once(*work)):
        return ExactPlan(lambda: answer)
    if quick := _within(routes, QUICK):
        return ExactPlan(quick.run)
    tried, unpredictable = [], seconds
    best = _within(routes, seconds)
    if best:
        tried.append(Attempt(best.solver.name, _run, (best,), seconds))
        unpredictable /= 2
    promising = best is not None and best.seconds <= HOPE * seconds
    if zeros:
        sparse = Attempt("sparse elimination", _sparse, work, SPARSE_SHARE * unpredictable)
        counting = Attempt("model counting", _counting, work, COUNTING_SHARE * unpredictable)
        if not best and _countable(*work):
            promising = True
            tried += [replace(counting, seconds=FIRST_SHARE * seconds), sparse]
        else:
            tried += [sparse, counting]
    if routes:
        fastest = min(routes, key=lambda route: route.seconds)
        refusals = [ModelTooLarge(f"{fastest.solver.name} is predicted to take {fastest.seconds:.2g} s", _REMEDY)]
    return ExactPlan(None, tuple(tried), promising, refusals[-1])


@dataclass(frozen=True)
class _Route:
    """A solver whose time is predicted, and what to add to its ln Z.

    Attributes
    ----------
    solver : prepared.
    seconds : predicted.
    constant : nats.
    """

    solver: GridTransfer | Elimination | SmallElimination | Contraction
    seconds: float
    constant: float = 0.0

    def run(self) -> tuple[float, str]:
        return log_of_sum(self.constant + self.solver.log_partition_function()), self.solver.name


def _transfer(graph: FactorGraph, memory: int, jobs: int) -> list[_Route]:
    try:
        grid = GridTransfer(graph, memory, sums_only=True, jobs=jobs)
    except (UnsuitableModel, ModelTooLarge):
        return []
    return [_Route(grid, grid.cost.seconds)] if grid.summable else []


def _planned(
    kind: type[Elimination] | type[Contraction],
    graph: FactorGraph,
    memory: int,
    jobs: int,
    constant: float = 0.0,
    *,
    refusals: list[ModelTooLarge],
) -> list[_Route]:
    """The route of a solver; none if it needs more memory, and then its refusal is noted."""
    try:
        solver = kind(graph, memory, jobs=jobs)
    except ModelTooLarge as error:
        refusals.append(error)
        return []
    return [_Route(solver, solver.cost.seconds, constant)]


def _enumerated(graph: FactorGraph, max_configurations: int) -> tuple[float, str]:
    return log_of_sum(log_partition_function(graph, max_configurations=max_configurations)), "enumeration"


def _within(routes: Sequence[_Route], seconds: float) -> _Route | None:
    """The quickest route, if its predicted time is within some seconds."""
    return min((route for route in routes if route.seconds <= seconds), key=lambda route: route.seconds, default=None)


def _run(deadline: float, route: _Route) -> Iterator[tuple[float, str]]:
    yield route.run()


def _countable(graph: FactorGraph, constant: float, memory: int) -> bool:
    """Whether model counting is likely to end."""
    from thesis_cli.inference.external.model_counting import ModelCounter

    try:
        return ModelCounter(graph, memory).promising
    except (UnsuitableModel, ModelTooLarge):
        return False


def _sparse_at_once(graph: FactorGraph, constant: float, memory: int) -> tuple[float, str] | None:
    """ln Z by sparse elimination, if it takes no longer than starting a process."""
    try:
        return next(_sparse(time.monotonic() + AT_ONCE, graph, constant, memory))
    except (ModelTooLarge, OutOfTime):
        return None


def _sparse(deadline: float, graph: FactorGraph, constant: float, memory: int) -> Iterator[tuple[float, str]]:
    from thesis_cli.inference.zeros.sparse_elimination import SparseElimination

    log_z = SparseElimination(graph, memory).log_partition_function(deadline)
    yield log_of_sum(constant + log_z), "sparse elimination"


def _counting(deadline: float, graph: FactorGraph, constant: float, memory: int) -> Iterator[tuple[float, str]]:
    from thesis_cli.inference.external.model_counting import ModelCounter

    counter = ModelCounter(graph, memory)
    seconds = deadline - time.monotonic()
    log_z = counter.log_partition_function(seconds if counter.promising else UNPROMISING * seconds)
    yield log_of_sum(constant + log_z), "model counting"
