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

import numpy as np

from thesis_cli.base.child import Attempt, Failed, attempts
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
    from thesis_cli.inference.zeros.reduction import Reduction

    _Solver = GridTransfer | Elimination | SmallElimination | Contraction

INSTANT = 0.2
"""Predicted seconds up to which an algorithm runs without a look at the zeros of the model."""

AT_ONCE = 1.0
"""Seconds for sparse tables before anything runs in a process of its own."""

QUICK = 2.0
"""Predicted seconds up to which an algorithm runs at once, and none beside it."""

SECONDS = 60.0
"""Seconds that an exact answer may take, unless more are given."""

SMALL = "elimination in NumPy"
"""Name of the elimination of a small model among the candidates."""

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

ENTRIES_A_SECOND, OUT_OF_REACH = 2.0**30, 2.0**16
"""Entries of tables that elimination makes in a second, and times by which it may take too long for a tree of
contractions to be sought, which is seldom 2^13 times as quick."""


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


UNPREDICTED = ("sparse elimination", "model counting")


@dataclass(frozen=True)
class Candidate:
    """An exact algorithm, and what it is predicted to take.

    Attributes
    ----------
    algorithm : its name.
    reduced : whether it is for the model that zeros and leaves leave.
    seconds, memory : predicted, with as much memory as it needs if it does not fit; nan seconds if nobody
        can tell, within the memory that it is given.
    width : variables of the largest table that is kept; 0 if it is not known.
    slices : number of slices.
    run : returns ln Z and the name of the algorithm; None if it does not fit or its time is not known.
    refusal : why it does not fit.
    smaller : the model without what its zeros decide, if the algorithm is for that.
    """

    algorithm: str
    reduced: bool
    seconds: float
    memory: int
    width: int
    slices: int
    run: Callable[[], tuple[float, str]] | None = None
    refusal: ModelTooLarge | None = None
    smaller: Reduction | None = None

    @property
    def unpredicted(self) -> bool:
        """Whether its time is known only when it has run."""
        return self.algorithm in UNPREDICTED


@dataclass(frozen=True)
class ExactPlan:
    """Plan of the computation of the exact ln Z of a factor graph.

    Attributes
    ----------
    quick : returns ln Z and the name of the algorithm within seconds; None if none is that quick.
    attempts : what to try side by side otherwise; each yields ln Z and the name of the algorithm.
    promising : whether the first attempt is likely to end in time, so that it should not wait.
    refusal : what to say if all fail.
    takes : the algorithms in the order in which they start, for all that is known before one runs.
    candidates : the algorithms that were looked at.
    smaller : the model without what its zeros decide, where it is not quick.
    """

    quick: Callable[[], tuple[float, str]] | None
    attempts: tuple[Attempt, ...] = ()
    promising: bool = False
    refusal: ModelTooLarge = _NONE
    takes: tuple[Candidate, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    smaller: Reduction | None = None


def exact_plan(
    graph: FactorGraph,
    memory: int,
    max_configurations: int,
    seconds: float = math.inf,
    jobs: int = 1,
    *,
    whole: bool = False,
) -> ExactPlan:
    """Choose among the exact algorithms by their predicted costs; nothing large is allocated.

    Parameters
    ----------
    memory, max_configurations : as for `exact_log_partition_function`.
    seconds : time for all attempts together.
    jobs : threads that share the tables of one algorithm.
    whole : look at all algorithms and run nothing; otherwise the first that is quick is enough, and sparse
        tables are tried for `AT_ONCE` before what takes longer.
    """
    found: list[Candidate] = []
    quick: Candidate | None = None
    try:
        for candidate in _candidates(graph, memory, max_configurations, math.inf if whole else seconds, jobs):
            found.append(candidate)
            most = QUICK if candidate.algorithm == "enumeration" else INSTANT
            if candidate.run and candidate.seconds <= most and not quick:
                quick = candidate
                if not whole:
                    break
    except NoConfiguration:
        return ExactPlan(lambda: (-math.inf, "arc consistency"))
    if quick:
        return ExactPlan(quick.run, takes=(quick,), candidates=tuple(found))
    unpredicted = [candidate for candidate in found if candidate.unpredicted]
    routes = [each for each in found if each.run and each.algorithm not in ("enumeration", SMALL)]
    zeros = bool(unpredicted)
    smaller = found[-1].smaller
    assert smaller is not None
    work = smaller.graph, smaller.constant, memory
    if zeros and not whole and (answer := _sparse_at_once(*work)):
        return ExactPlan(lambda: answer)
    if quick := _within(routes, QUICK):
        return ExactPlan(quick.run, takes=(*unpredicted[:1], quick), candidates=tuple(found))
    tried, unpredictable = [], seconds
    best = _within(routes, seconds)
    if best:
        tried.append(Attempt(best.algorithm, _run, (best,), seconds))
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
    refusal = ModelTooLarge.best([each.refusal for each in found if each.refusal] or [_NONE])
    if routes:
        fastest = min(routes, key=lambda route: route.seconds)
        refusal = ModelTooLarge(f"{fastest.algorithm} is predicted to take {fastest.seconds:.2g} s", _REMEDY)
    names = [attempt.name for attempt in tried]
    takes = [each for each in (best, *unpredicted) if each and each.algorithm in names]
    takes.sort(key=lambda each: names.index(each.algorithm))
    takes += [each for each in found if each.algorithm == "enumeration" and each.run]
    return ExactPlan(None, tuple(tried), promising, refusal, (*unpredicted[:1], *takes), tuple(found), smaller)


def _candidates(
    graph: FactorGraph, memory: int, max_configurations: int, seconds: float, jobs: int
) -> Iterator[Candidate]:
    """The exact algorithms and what each is predicted to take, in the order in which they are looked at;
    nothing large is allocated.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """
    if small := small_elimination(graph, memory):
        yield _prepared(SMALL, small)
    try:
        with np.errstate(over="ignore"):  # where sites have no possible state
            grid = GridTransfer(graph, memory, sums_only=True, jobs=jobs)
        if grid.summable:
            yield _prepared(grid.name, grid)
    except UnsuitableModel:
        pass
    except ModelTooLarge as error:
        yield _refused("grid transfer", error)
    instant = partial(Elimination, graph, memory, jobs=jobs, seconds=seconds if seconds == math.inf else INSTANT)
    own = _planned(Elimination.name, instant)
    yield own
    yield enumerated(graph, max_configurations)
    from thesis_cli.inference.zeros.leaves import summed
    from thesis_cli.inference.zeros.reduction import reduced

    smaller = reduced(graph)
    leafless, constant = summed(smaller)
    if leafless.size < graph.size:
        own = _planned(Elimination.name, partial(Elimination, leafless, memory, jobs=jobs), constant)
        own = replace(own, reduced=True)
        yield own
    elif not own.run:
        own = _planned(Elimination.name, partial(Elimination, graph, memory, jobs=jobs))
        yield own
    from thesis_cli.inference.elimination.contraction import Contraction

    tree = Candidate(Contraction.name, True, math.inf, 0, 0, 1)
    if own.run or _in_reach(leafless, seconds):
        tree = _planned(Contraction.name, partial(Contraction, leafless, memory, jobs=jobs), constant)
    yield replace(tree, reduced=True, smaller=smaller)
    if smaller.graph.has_zeros:
        for name in UNPREDICTED:
            yield Candidate(name, True, math.nan, memory, 0, 1, smaller=smaller)


def _in_reach(graph: FactorGraph, seconds: float) -> bool:
    """Whether a tree of contractions may be quick enough, judged by an elimination order."""
    from thesis_cli.inference.elimination.order import best_order

    if seconds == math.inf:
        return True
    order = best_order(graph.cardinalities, [factor.scope for factor in graph.factors])
    return order.bits <= math.log2(seconds * ENTRIES_A_SECOND * OUT_OF_REACH)


def _prepared(name: str, solver: _Solver, constant: float = 0.0) -> Candidate:
    cost, slices = solver.cost, getattr(solver, "slices", 1)
    return Candidate(name, False, cost.seconds, cost.memory, solver.width, slices, partial(_sum, solver, constant))


def _refused(name: str, error: ModelTooLarge) -> Candidate:
    return Candidate(name, False, error.seconds, error.memory, error.width, 1, refusal=error)


def _planned(name: str, make: Callable[[], Elimination | Contraction], constant: float = 0.0) -> Candidate:
    try:
        return _prepared(name, make(), constant)
    except ModelTooLarge as error:
        return _refused(name, error)


def _sum(solver: _Solver, constant: float) -> tuple[float, str]:
    return log_of_sum(constant + solver.log_partition_function()), solver.name


def enumerated(model: Model, max_configurations: int) -> Candidate:
    """Enumeration, and what it is predicted to take."""
    seconds = PER_CONFIGURATION * min(model.size, 10**300)
    if model.size > max_configurations:
        refusal = ModelTooLarge(f"there are more than {max_configurations:,} configurations")
        return Candidate("enumeration", False, seconds, 0, 0, 1, refusal=refusal)
    return Candidate("enumeration", False, seconds, 0, 0, 1, partial(_enumerated, model, max_configurations))


def _enumerated(graph: Model, max_configurations: int) -> tuple[float, str]:
    return log_of_sum(log_partition_function(graph, max_configurations=max_configurations)), "enumeration"


def _within(routes: Sequence[Candidate], seconds: float) -> Candidate | None:
    """The quickest algorithm, if its predicted time is within some seconds."""
    return min((route for route in routes if route.seconds <= seconds), key=lambda route: route.seconds, default=None)


def _run(deadline: float, route: Candidate) -> Iterator[tuple[float, str]]:
    assert route.run
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
