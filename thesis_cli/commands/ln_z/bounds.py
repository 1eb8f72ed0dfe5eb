"""Bounds and approximations of ln Z as functions of a graph, options and progress, and their rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, counted
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.ln_z.estimates import IntervalName, LnZAnswer, LnZOptions
from thesis_cli.commands.ln_z.method import LnZMethod, Share

if TYPE_CHECKING:
    from thesis_cli.inference.solver import MapSolver
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima

UNIT = "MAP calls"

logger = logging.getLogger("thesis_cli")


def unary(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """Upper bounds U(alpha) from noise on each variable."""
    return _sampled(graph, "sum", options, progress)


def average(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """Lower bounds L(alpha) from noise on each variable, divided by the number of variables."""
    return _sampled(graph, "average", options, progress)


def subset(
    graph: FactorGraph, options: LnZOptions, progress: Progress, *, subset: Sequence[Sequence[int]] | None = None
) -> LnZAnswer:
    """Upper bounds from noise on sets of variables, by default on each pair of neighbours.

    Raises
    ------
    InputError : no set has a variable, or a variable is in none.
    """
    from thesis_cli.perturbation.low_rank.subsets import edges, undetermined, with_subset_variables

    subsets = edges(graph) if subset is None else subset
    if not subsets:
        raise InputError("--subset names no variables", "name some, as in 0,1")
    larger, noisy = with_subset_variables(graph, subsets)
    if free := undetermined(larger, noisy):
        raise InputError(f"variable {free[0]} is in no --subset", "each variable must be in one")
    return _sampled(larger, "sum", options, progress, noisy)


def _sampled(
    graph: FactorGraph,
    scale: Literal["sum", "average"],
    options: LnZOptions,
    progress: Progress,
    noisy: Sequence[int] | None = None,
) -> LnZAnswer:
    """U(alpha) or, for `average`, L(alpha): all from one set of perturbations."""
    from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
    from thesis_cli.perturbation.low_rank.low_rank_bounds import lower_bound, slope_at_zero, upper_bound

    solver = _solver(graph, options)
    _check_alphas(solver, options, noisy)
    with progress(options.samples, UNIT) as tick:
        maxima = low_rank_maxima(
            solver,
            options.samples,
            options.noise(),
            scale=scale,
            noisy=noisy,
            jobs=options.jobs,
            progress=tick,
        )
    bound = lower_bound if scale == "average" else upper_bound
    if scale == "sum":
        _log_slope(maxima, slope_at_zero)
    found = [
        bound(maxima, alpha, confidence=options.confidence, interval=options.interval, unsafe=options.any_alpha)
        for alpha in options.alphas
    ]
    return _warned(found, options.samples, maxima.map_calls)


def _warned(found: Sequence[Estimate], samples: int, map_calls: int) -> LnZAnswer:
    """Bounds from samples, with a warning about standard errors that are uncertain."""
    from thesis_cli.perturbation.low_rank.low_rank_bounds import UNCERTAIN

    if doubtful := [e.method for e in found if e.kind.endswith(UNCERTAIN)]:
        text = "the standard error of %s is uncertain: few of the %s samples outweigh the others; use more samples"
        logger.warning(text, " and ".join(doubtful), f"{samples:,}")
    return LnZAnswer(tuple(found), map_calls)


def _log_slope(maxima: LowRankMaxima, slope_at_zero: Callable[[LowRankMaxima], tuple[float, float]]) -> None:
    if maxima.map_calls > 1:
        slope, error = slope_at_zero(maxima)
        logger.debug("dU/dalpha at 0 is %.3g +- %.2g (Thesis Proposition 4)", slope, error)


def clamped(graph: FactorGraph, options: LnZOptions, progress: Progress, *, clamp: Sequence[int] = ()) -> LnZAnswer:
    """Upper bounds U(alpha), summed over the states of some variables."""
    from thesis_cli.inference.choose import map_solver
    from thesis_cli.perturbation.low_rank.clamping import clamped_maxima, clamped_upper_bound, joint_states

    with progress(options.samples * joint_states(graph, clamp), UNIT) as tick:
        maxima = clamped_maxima(
            graph,
            clamp,
            options.samples,
            options.noise(),
            lambda conditioned: map_solver(conditioned, options.solver, options.memory)[0],
            jobs=options.jobs,
            progress=tick,
        )
    found = [
        clamped_upper_bound(maxima, alpha, confidence=options.confidence, unsafe=options.any_alpha)
        for alpha in options.alphas
    ]
    return _warned(found, options.samples, maxima.map_calls)


def max_marginal(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """The lower bound from the max-marginals of one variable."""
    from thesis_cli.perturbation.low_rank.max_marginals import max_marginal_bound, problems

    with progress(problems(graph), UNIT) as tick:
        found = max_marginal_bound(_solver(graph, options), jobs=options.jobs, progress=tick)
    return LnZAnswer((found,), found.map_calls)


def max_marginal_problems(graph: FactorGraph) -> int:
    """Number of MAP problems that `max_marginal` solves."""
    from thesis_cli.perturbation.low_rank.max_marginals import problems

    return problems(graph)


def bethe(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """The Bethe approximation by belief propagation."""
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = bethe_log_partition_function(graph, seed=options.seed)
    _check_possible(result.value)
    kind = "approximation" if result.converged else "approximation, not converged"
    return LnZAnswer((fixed_estimate(log_of_sum(result.value), kind, "Bethe", "Yedidia, Freeman and Weiss 2005"),))


def trw(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """The tree-reweighted upper bound, once its messages have converged."""
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.message_passing.trw import trw_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = trw_log_partition_function(graph)
    _check_possible(result.value)
    kind = "upper bound" if result.converged else f"not converged, by {result.gap:.2g}"
    return LnZAnswer((fixed_estimate(log_of_sum(result.value), kind, "TRW", "Wainwright, Jaakkola and Willsky 2005"),))


def mini_bucket(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """An upper and a lower bound, if there is one, from tables of limited size."""
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.mini_bucket.mini_bucket import mini_bucket_bounds
    from thesis_cli.perturbation.estimate import exact_estimate, fixed_estimate

    found = mini_bucket_bounds(graph, options.memory, options.deadline, limit=options.table_size)
    logger.debug("mini-buckets of up to %s entries, %s passes", f"{found.largest:,}", found.passes)
    if found.exact:
        return LnZAnswer((exact_estimate(log_of_sum(found.upper), "lnZ", "mini-buckets, none divided"),))
    ends = [(found.upper, "upper bound"), (found.lower, "lower bound")]
    source = "Liu and Ihler 2011"
    return LnZAnswer(
        tuple(fixed_estimate(end, kind, "mini-bucket", source) for end, kind in ends if math.isfinite(end))
    )


def importance(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """An estimate by importance sampling, without a standard error if it is not to be trusted."""
    import numpy as np

    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.mini_bucket.sampling import importance_estimate
    from thesis_cli.perturbation.estimate import Estimate, exact_estimate, fixed_estimate

    rng = np.random.default_rng(options.noise())
    found = importance_estimate(
        graph, rng, options.memory, options.deadline, confidence=options.confidence, limit=options.table_size
    )
    if found.exact:
        return LnZAnswer((exact_estimate(log_of_sum(found.value), "lnZ", "mini-buckets, none divided"),))
    logger.debug("%s %s, %.3g of them effective", f"{found.samples:,}", found.unit, found.effective)
    few = counted(found.effective, f"effective {found.unit.removesuffix('s')}", ".0f")
    kind = "Z unbiased" if found.trusted else f"Z unbiased, but only {few}"
    estimate = Estimate(
        value=found.value,
        standard_error=found.standard_error if found.trusted else math.inf,
        low=found.low,
        high=found.high,
        target="ln Z",
        kind=kind,
        confidence=found.confidence,
        map_calls=0,
        method="importance",
        source="Liu, Fisher and Ihler 2015",
    )
    return LnZAnswer((estimate, fixed_estimate(found.bound, "upper bound", "mini-bucket", "Liu and Ihler 2011")))


def junction_graph(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """An approximation by propagation on a join graph."""
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.inference.mini_bucket.junction_graph import junction_graph_log_partition_function
    from thesis_cli.perturbation.estimate import exact_estimate, fixed_estimate

    size, memory = options.table_size, options.memory
    found = junction_graph_log_partition_function(graph, size, memory=memory, deadline=options.deadline)
    logger.debug("clusters of up to %s entries, %s sweeps", f"{found.largest:,}", found.sweeps)
    value = log_of_sum(found.value)
    if found.exact:
        return LnZAnswer((exact_estimate(value, "lnZ", "junction tree"),))
    kind = "approximation" if found.converged else "approximation, not converged"
    return LnZAnswer((fixed_estimate(value, kind, "junction graph", "Mateescu et al. 2010"),))


def any_alpha_option(**about: Any) -> Any:
    """Whether to take alphas without a sure variance; its type is `bool`."""
    return option(
        False,
        "Accept exponents of -1/(2 sqrt(n)) and below for n variables, for which the error may be infinite.",
        **about,
    )


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
    from thesis_cli.models.factor_graph import index_of

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


def _solver(graph: FactorGraph, options: LnZOptions) -> MapSolver:
    """The MAP solver that was named or chosen; a message says which."""
    from thesis_cli.inference.choose import map_solver

    solver, why = map_solver(graph, options.solver, options.memory, calls=options.samples)
    logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
    if solver.guarantee == "approximate":
        logger.warning("MAP by %s is approximate, so upper bounds may fail", solver.name)
    return solver


def _check_alphas(solver: MapSolver, options: LnZOptions, noisy: Sequence[int] | None) -> None:
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


_NOISE = ("alpha", "samples", "any_alpha", "confidence", "solver", "memory")
_SIZED = ("time_limit", "table_size", "memory")

METHODS = {
    "trw": LnZMethod("bound", "upper bound", trw, share=Share(4, 0.1)),
    "max-marginal": LnZMethod(
        "bound", "lower bound", max_marginal, heeds=("solver", "memory"), problems=max_marginal_problems
    ),
    "unary": LnZMethod(
        "bound",
        "upper bound",
        unary,
        heeds=(*_NOISE, "confidence_method"),
        share=Share(7, 0.1, grows="samples"),
        help="noise on variables",
    ),
    "average": LnZMethod(
        "bound",
        "lower bound",
        average,
        heeds=(*_NOISE, "confidence_method"),
        stream=1,
        share=Share(6, 0.1, grows="samples"),
        help="the noise of unary, divided by the number of variables",
    ),
    "subset": LnZMethod(
        "bound",
        "upper bound",
        subset,
        heeds=(*_NOISE, "confidence_method"),
        own={"subset": None},
        stream=2,
        help="noise on sets of them",
    ),
    "clamp": LnZMethod(
        "bound",
        "upper bound",
        clamped,
        heeds=_NOISE,
        own={"clamp": None},
        help="unary, summed over the states of some variables",
    ),
    "bethe": LnZMethod("bound", "approximation", bethe, share=Share(3, 0.1, alone=True)),
    "mini-bucket": LnZMethod("bound", "both bounds", mini_bucket, heeds=_SIZED, share=Share(1, 0.2, alone=True)),
    "importance": LnZMethod(
        "bound",
        "Z unbiased",
        importance,
        heeds=("confidence", *_SIZED),
        stream=3,
        share=Share(9, 1.0, alone=True),
        encloses=True,
    ),
    "junction-graph": LnZMethod("bound", "approximation", junction_graph, heeds=_SIZED, share=Share(5, 0.15)),
}
"""Methods by name, in the order in which `auto` of `bound` tries them."""
