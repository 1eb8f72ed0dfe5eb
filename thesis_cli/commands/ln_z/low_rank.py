"""Bounds and approximations of ln Z for several commands: one row of `METHODS` for each."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.core.fields import option
from thesis_cli.inference.names import SolverName

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.inference.solver import MapSolver
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima

BoundName = Literal[
    "trw", "max-marginal", "unary", "average", "subset", "clamp", "bethe", "mini-bucket", "importance", "junction-graph"
]
IntervalName = Literal["normal", "concentration"]
Side = Literal["upper", "lower", "neither", "both"]

UNIT = "MAP calls"

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class BoundOptions:
    """How MAP problems are made and solved; each method heeds some of it.

    Attributes
    ----------
    samples : number M of perturbations.
    seed : seed of all random numbers; each method has a stream of its own.
    jobs : threads.
    solver, memory : as for `map_solver`; the memory in bytes.
    alphas : exponents of the bounds, all from the same perturbations.
    confidence, interval, any_alpha : as for `upper_bound`.
    subsets : variables of each set that gets noise; by default each pair of neighbours.
    clamp : variables that are held at each of their states.
    deadline : `time.monotonic()` at which methods that heed it return the best so far.
    table_size : most entries of a table, for methods that choose it otherwise.
    """

    samples: int
    seed: int
    jobs: int
    solver: SolverName = "auto"
    memory: int = DEFAULT_MEMORY
    alphas: Sequence[float] = (0.0,)
    confidence: float = 0.95
    interval: IntervalName = "normal"
    any_alpha: bool = False
    subsets: Sequence[Sequence[int]] | None = None
    clamp: Sequence[int] = ()
    deadline: float | None = None
    table_size: int | None = None

    def stream(self, name: BoundName) -> np.random.SeedSequence:
        """Random numbers of a method that draws noise; a clamped model has those of `unary`."""
        import numpy as np

        streams = {"unary": 0, "clamp": 0, "average": 1, "subset": 2, "importance": 3}
        return np.random.SeedSequence(self.seed, spawn_key=(streams[name], 0))


class Bounds(NamedTuple):
    """Estimates by one method, one for each alpha or one in all, and the MAP problems they took."""

    estimates: list[Estimate]
    map_calls: int


class Method(NamedTuple):
    """A way to bound or approximate ln Z.

    Attributes
    ----------
    side : which side of ln Z the result is on; both, if it is two bounds.
    bound : the function that does the work.
    solved : whether it solves MAP problems, and so heeds `--solver`.
    sampled : whether it solves them under random noise, and so heeds `--samples` and `--alpha`.
    """

    side: Side
    bound: Callable[[FactorGraph, BoundOptions, Progress], Bounds]
    solved: bool = False
    sampled: bool = False


def bounds(model: Model, name: BoundName, options: BoundOptions, progress: Progress = silent) -> Bounds:
    """Bounds on ln Z, or an approximation of it, by one method.

    Raises
    ------
    UnsuitableModel : the model is a vector, or the solver that was named does not take it.
    ModelTooLarge : TRW, or the solver that was named, needs more memory.
    InputError : an alpha, a subset or a clamped variable out of range.
    NoConfiguration : no configuration is possible.
    """
    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials):
        raise UnsuitableModel(f"--method {name} takes models with variables, not a vector", "use estimate-z")
    found = METHODS[name].bound(model, options, progress)
    _warn_of_errors(found.estimates, options.samples)
    return found


def _warn_of_errors(estimates: Sequence[Estimate], samples: int) -> None:
    from thesis_cli.perturbation.low_rank.low_rank_bounds import UNCERTAIN

    if doubtful := [e.method for e in estimates if e.kind.endswith(UNCERTAIN)]:
        text = "the standard error of %s is uncertain: few of the %s samples outweigh the others; use more samples"
        logger.warning(text, " and ".join(doubtful), f"{samples:,}")


def _upper(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    return _sampled(graph, "unary", options, progress)


def _lower(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    return _sampled(graph, "average", options, progress)


def _subset(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.perturbation.low_rank.subsets import edges, undetermined, with_subset_variables

    subsets = edges(graph) if options.subsets is None else options.subsets
    if not subsets:
        raise InputError("--subset names no variables", "name some, as in 0,1")
    larger, noisy = with_subset_variables(graph, subsets)
    if free := undetermined(larger, noisy):
        raise InputError(f"variable {free[0]} is in no --subset", "each variable must be in one")
    return _sampled(larger, "subset", options, progress, noisy)


def _sampled(
    graph: FactorGraph, name: BoundName, options: BoundOptions, progress: Progress, noisy: Sequence[int] | None = None
) -> Bounds:
    """U(alpha) or, for `average`, L(alpha): all from one set of perturbations."""
    from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
    from thesis_cli.perturbation.low_rank.low_rank_bounds import lower_bound, slope_at_zero, upper_bound

    lower = name == "average"
    solver = _solver(graph, options)
    _check_alphas(solver, options, noisy)
    with progress(options.samples, UNIT) as tick:
        maxima = low_rank_maxima(
            solver,
            options.samples,
            options.stream(name),
            scale="average" if lower else "sum",
            noisy=noisy,
            jobs=options.jobs,
            progress=tick,
        )
    bound = lower_bound if lower else upper_bound
    how = {"confidence": options.confidence, "interval": options.interval, "unsafe": options.any_alpha}
    if not lower:
        _log_slope(maxima, slope_at_zero)
    return Bounds([bound(maxima, alpha, **how) for alpha in options.alphas], maxima.map_calls)  # type: ignore[arg-type]


def _log_slope(maxima: LowRankMaxima, slope_at_zero: Callable[[LowRankMaxima], tuple[float, float]]) -> None:
    if maxima.map_calls > 1:
        slope, error = slope_at_zero(maxima)
        logger.debug("dU/dalpha at 0 is %.3g +- %.2g (Thesis Proposition 4)", slope, error)


def _clamped(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.inference.choose import map_solver
    from thesis_cli.perturbation.low_rank.clamping import clamped_maxima, clamped_upper_bound, joint_states

    with progress(options.samples * joint_states(graph, options.clamp), UNIT) as tick:
        maxima = clamped_maxima(
            graph,
            options.clamp,
            options.samples,
            options.stream("clamp"),
            lambda conditioned: map_solver(conditioned, options.solver, options.memory)[0],
            jobs=options.jobs,
            progress=tick,
        )
    found = [
        clamped_upper_bound(maxima, alpha, confidence=options.confidence, unsafe=options.any_alpha)
        for alpha in options.alphas
    ]
    return Bounds(found, maxima.map_calls)


def _max_marginal(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.perturbation.low_rank.max_marginals import max_marginal_bound, problems

    with progress(problems(graph), UNIT) as tick:
        found = max_marginal_bound(_solver(graph, options), jobs=options.jobs, progress=tick)
    return Bounds([found], found.map_calls)


def _bethe(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = bethe_log_partition_function(graph, seed=options.seed)
    _check_possible(result.value)
    kind = "approximation" if result.converged else "approximation, not converged"
    return Bounds([fixed_estimate(log_of_sum(result.value), kind, "Bethe", "Yedidia, Freeman and Weiss 2005")], 0)


def _trw(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.message_passing.trw import trw_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = trw_log_partition_function(graph)
    _check_possible(result.value)
    kind = "upper bound" if result.converged else f"not converged, by {result.gap:.2g}"
    return Bounds([fixed_estimate(log_of_sum(result.value), kind, "TRW", "Wainwright, Jaakkola and Willsky 2005")], 0)


def _mini_bucket(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.commands.ln_z.sized import mini_bucket

    return Bounds(mini_bucket(graph, options), 0)


def _importance(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.commands.ln_z.sized import importance

    return Bounds(importance(graph, options), 0)


def _junction_graph(graph: FactorGraph, options: BoundOptions, progress: Progress) -> Bounds:
    from thesis_cli.commands.ln_z.sized import junction_graph

    return Bounds(junction_graph(graph, options), 0)


METHODS: dict[BoundName, Method] = {
    "trw": Method("upper", _trw),
    "max-marginal": Method("lower", _max_marginal, solved=True),
    "unary": Method("upper", _upper, solved=True, sampled=True),
    "average": Method("lower", _lower, solved=True, sampled=True),
    "subset": Method("upper", _subset, solved=True, sampled=True),
    "clamp": Method("upper", _clamped, solved=True, sampled=True),
    "bethe": Method("neither", _bethe),
    "mini-bucket": Method("both", _mini_bucket),
    "importance": Method("neither", _importance),
    "junction-graph": Method("neither", _junction_graph),
}
"""In the order in which `auto` tries them."""
assert tuple(METHODS) == get_args(BoundName)

SOLVED = tuple(name for name, method in METHODS.items() if method.solved)
SAMPLED = tuple(name for name, method in METHODS.items() if method.sampled)
TIMED = ("mini-bucket", "importance", "junction-graph")
"""Methods that take what memory and time they are given."""

CONCENTRATED = ("unary", "average", "subset")
"""Methods that `--confidence-method concentration` covers."""


def any_alpha_option(**about: Any) -> Any:
    """Whether to take alphas without a sure variance; its type is `bool`."""
    return option(False, "Accept exponents for which e^(-alpha U) may have no finite variance.", **about)


def interval_option(**about: Any) -> Any:
    """The interval of sampled bounds; its type is `IntervalName`."""
    return option(
        "normal",
        "Interval: normal, by the delta method; or concentration, which holds for any number of samples at alpha 0.",
        **about,
    )


def check_interval(interval: IntervalName, alphas: Sequence[float] | None) -> None:
    """Refuse intervals by concentration for other exponents than 0 (`InputError`)."""
    if interval == "concentration" and alphas and any(alphas):
        raise InputError("--confidence-method concentration does not go with --alpha other than 0", "leave --alpha out")


def variables_of(graph: FactorGraph, texts: Sequence[Any]) -> tuple[int, ...]:
    """Indices of variables given by numbers, by names, by texts that join these by commas, or by
    lists of them.

    Raises
    ------
    InputError : there is no such variable.
    """
    from thesis_cli.models.names import index_of

    names = graph.names.variables if graph.names else ()
    found: list[int] = []
    for text in texts:
        if not isinstance(text, str) and isinstance(text, Sequence):
            found += variables_of(graph, text)
            continue
        words = [str(text)] if str(text) in names else str(text).split(",")
        found += [index_of(word.strip(), names, len(graph.cardinalities), "variable") for word in words]
    return tuple(found)


def exact_bound(graph: FactorGraph, memory: int, max_configurations: int, progress: Progress) -> list[Estimate]:
    """The exact ln Z as an estimate; an empty list and a message if the model is too large."""
    from thesis_cli.inference.exact import exact_log_partition_function
    from thesis_cli.perturbation.estimate import exact_estimate

    try:
        with progress(graph.size, "configurations") as tick:
            log_z, method = exact_log_partition_function(
                graph, memory=memory, max_configurations=max_configurations, progress=tick
            )
    except ModelTooLarge as error:
        logger.info("no exact ln Z: %s", error.problem)
        return []
    _check_possible(log_z)
    return [exact_estimate(log_z, "lnZ", method)]


def _solver(graph: FactorGraph, options: BoundOptions) -> MapSolver:
    """The MAP solver that was named or chosen; a message says which."""
    from thesis_cli.inference.choose import map_solver

    solver, why = map_solver(graph, options.solver, options.memory, calls=options.samples)
    logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
    if solver.guarantee == "approximate":
        logger.warning("MAP by %s is approximate, so upper bounds may fail", solver.name)
    return solver


def _check_alphas(solver: MapSolver, options: BoundOptions, noisy: Sequence[int] | None) -> None:
    """Refuse alphas out of range before the work, and warn of those that need many more samples."""
    import numpy as np

    from thesis_cli.perturbation.low_rank.low_rank_bounds import check_alphas, second_moment

    graph = solver.graph
    variables = range(len(graph.cardinalities)) if noisy is None else noisy
    terms = sum(graph.cardinalities[i] > 1 for i in variables)
    check_alphas(np.array(options.alphas), terms, options.any_alpha)
    if options.interval == "concentration" and solver.guarantee != "exact":
        raise InputError("--confidence-method is concentration", f"it needs an exact solver, not {solver.name}")
    for alpha in options.alphas:
        if (needed := 10 * (second_moment(alpha, terms) - 1)) > options.samples:
            logger.warning("%s samples may be far too few for alpha = %g: up to %.1g", options.samples, alpha, needed)


def _check_possible(log_z: float) -> None:
    if log_z == -math.inf:  # message passing gives -inf only where ln Z is
        raise NoConfiguration()
