"""Baselines of perturb-and-MAP for ln Z as functions of a model, options and progress, and their rows:
expanded models, WISH, the Bethe mesh, Frank-Wolfe, annealed importance sampling, coupling and thermodynamic
integration.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from thesis_cli.base.errors import ModelTooLarge, WorkFailed, counted
from thesis_cli.base.memory import bytes_text
from thesis_cli.base.progress import Progress
from thesis_cli.commands.ln_z.estimates import TIME_LIMIT, LnZAnswer, LnZOptions
from thesis_cli.commands.ln_z.method import LnZMethod, Share

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.inference.names import EntropyName, StepName
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.expanded.expanded import ExpandedMaximum

CUTS = 10
"""Most minimum cuts, of some 0.3 s each."""

ANNOUNCED = 2.0
"""Predicted seconds from which the work is announced."""

logger = logging.getLogger("thesis_cli")


def expanded(graph: FactorGraph, options: LnZOptions, progress: Progress, *, copies: int) -> LnZAnswer:
    """Bounds on ln Z from copies of the variables: the expanded maximum, the mean-field bound, and the
    statement of Corollary 4.

    Raises
    ------
    ModelTooLarge : the copies take more memory.
    NoConfiguration : no configuration is possible.
    """
    from thesis_cli.perturbation.expanded.copies import bytes_of_copies, most_copies
    from thesis_cli.perturbation.expanded.expanded import expanded_maximum, predicted_seconds

    needed = bytes_of_copies(graph.cardinalities, copies)
    if needed > options.memory:
        raise ModelTooLarge(
            f"copies exceed --memory: {copies:,} of each variable take {bytes_text(needed)}",
            f"take --copies {most_copies(graph.cardinalities, options.memory)} or fewer, or more --memory",
        )
    if (seconds := predicted_seconds(graph, copies)) > ANNOUNCED:
        logger.info("%s copies take about %.0f s and %s", f"{copies * noisy(graph):,}", seconds, bytes_text(needed))
    with progress(copies * len(graph.cardinalities), "copies") as tick:
        found = expanded_maximum(graph, copies, options.seed, memory=options.memory, cuts=CUTS, progress=tick)
    return _expanded_answer(graph, found, options.confidence)


def noisy(graph: FactorGraph) -> int:
    """Number of variables with noise."""
    return sum(k > 1 for k in graph.cardinalities)


def _expanded_answer(graph: FactorGraph, found: ExpandedMaximum, confidence: float) -> LnZAnswer:
    from thesis_cli.perturbation.estimate import fixed_estimate
    from thesis_cli.perturbation.expanded.expanded import log_corollary_epsilon

    source, percent = "Hazan et al. Corollary 4", f"{100 * confidence:.12g}%"
    log_epsilon = log_corollary_epsilon(graph, found.copies, confidence)
    epsilon = math.exp(log_epsilon) if log_epsilon < 700 else math.inf
    low = found.value - epsilon * found.variables if found.variables else found.value
    empty = low <= found.mean_field
    kind = f"lower bound with probability {percent}" + ", says nothing: below the certain one" * empty
    rows = (
        replace(fixed_estimate(found.value, "epsilon 0, not proven to be a bound", "expanded", source), map_calls=1),
        fixed_estimate(found.mean_field, "lower bound", "mean field", "Hazan et al. eq. 18, with entropies for noise"),
        fixed_estimate(low, kind, "Corollary 4", source),
    )
    if found.exact:
        sure = "their maximum is proven"
    else:
        sure = "the best found" + ("" if found.upper is None else f", the maximum is at most {found.upper:.6g}")
    text = f"{found.copies:,} of each of {counted(found.variables, 'variable')}: {sure}"
    return LnZAnswer(rows, 1, _expanded_meaning(found, log_epsilon, percent, empty), text)


def _expanded_meaning(found: ExpandedMaximum, log_epsilon: float, percent: str, empty: bool) -> str:
    """The statement that holds for certain, with its epsilon."""
    power = log_epsilon / math.log(10)
    exponent = math.floor(power) if math.isfinite(power) else 0
    epsilon = f"{10 ** (power - exponent):.3g}e{exponent:+d}" if abs(exponent) > 2 else f"{math.exp(log_epsilon):.3g}"
    printed = f"eq. 20 needs epsilon {epsilon} at {percent}" + " and says nothing here" * empty
    needed = f"with these copies epsilon {max(0.0, found.certain_epsilon):.3g} is enough"
    return f"ln Z >= {found.mean_field:.6g} for certain; {printed}; {needed}"


def wish(model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """An interval that covers ln Z with a probability, or a lower bound, from hashed maxima."""
    import numpy as np

    from thesis_cli.inference.parity.constraints import HashLimits, bits_of
    from thesis_cli.perturbation.wish import sufficient_samples
    from thesis_cli.perturbation.wish import wish as hashed

    seconds = TIME_LIMIT if options.seconds is None else options.seconds
    limits = HashLimits(seconds=seconds, memory=options.memory, jobs=options.jobs)
    if options.max_configurations is not None:
        limits = limits._replace(max_configurations=options.max_configurations)
    seed = np.random.SeedSequence(options.seed)
    with progress(model.size * options.samples, "hashes") as tick:
        found = hashed(model, options.samples, seed, confidence=options.confidence, limits=limits, progress=tick)
    percent, bits = f"{100 * options.confidence:.12g}%", bits_of(model.size)
    meaning = f"ln Z is in the interval with probability {percent} at least"
    if len(found) > 1:
        meaning = f"ln Z >= {found[1].value:.6g} with probability {percent} at least; no more is known"
    elif options.samples < (enough := sufficient_samples(bits, options.confidence)):
        meaning += f"; {enough} samples promise a factor of 16 beforehand"
    value, rounding = found[0].value, 1e-9 * max(1.0, abs(found[0].value))
    if not found[0].low - rounding <= value <= found[0].high + rounding:
        meaning += "; the estimate of Algorithm 1 is outside of it; believe the interval"
    return LnZAnswer(tuple(found), found[0].map_calls, meaning)


def mesh_bethe(graph: FactorGraph, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """The largest Bethe approximation of an attractive binary model, a lower bound on ln Z.

    Raises
    ------
    UnsuitableModel : the model is not binary, pairwise and attractive.
    """
    from thesis_cli.perturbation import mesh_bethe as method

    (found,) = method.mesh_bethe(graph)
    meaning = (
        f"ln Z >= {found.value:.6g} for certain; the best Bethe approximation is at most {found.high:.6g}, "
        "and ln Z may be above it"
    )
    bound = replace(found, high=found.value)
    return LnZAnswer((bound,), found.map_calls, meaning)


def frank_wolfe(
    graph: FactorGraph,
    options: LnZOptions,
    progress: Progress,
    *,
    map_calls: int,
    entropy: EntropyName,
    steps: StepName,
) -> LnZAnswer:
    """An upper bound on ln Z, or Bethe's approximation, by MAP calls under the potential of a
    gradient.

    Raises
    ------
    UnsuitableModel : a factor has three variables or more, or one forbids something.
    ModelTooLarge : the model is too wide for its spanning trees.
    """
    import scipy.optimize  # noqa: F401  # its BLAS is there to be limited
    from threadpoolctl import threadpool_limits

    from thesis_cli.inference.variational import frank_wolfe as method
    from thesis_cli.perturbation.estimate import fixed_estimate

    # small products; the order of their sums must not depend on the number of cores
    with progress(map_calls, "MAP calls") as tick, threadpool_limits(1, "blas"):
        found = method.frank_wolfe(
            graph,
            map_calls,
            entropy=entropy,
            steps=steps,
            memory=options.memory,
            progress=tick,
        )
    if entropy == "bethe":
        kind = "approximation" + ("" if found.converged else f", not converged, gap {found.gap:.2g}")
        row = fixed_estimate(found.value, kind, "frank-wolfe", "Belanger, Sheldon and McCallum 2013")
        meaning = "Bethe's approximation at a local maximum over the marginals; its error is not known"
    else:
        sure = found.guarantee == "exact"
        kind = "upper bound" if sure else "no bound, since MAP is approximate"
        row = fixed_estimate(found.upper, kind, "frank-wolfe", "Krishnan, Lacoste-Julien and Sontag 2015")
        meaning = f"ln Z <= {found.upper:.6g} " + ("for certain" if sure else "if each MAP was right")
        meaning += f"; the objective is {found.value:.6g}, {found.gap:.2g} at most below its maximum"
    return LnZAnswer((replace(row, map_calls=found.map_calls),), found.map_calls, meaning)


def ais(
    graph: FactorGraph,
    options: LnZOptions,
    progress: Progress,
    *,
    chains: int,
    temperatures: int,
    reverse: bool = False,
) -> LnZAnswer:
    """An estimate by annealed importance sampling, and bounds that hold with a probability.

    Raises
    ------
    ModelTooLarge : the chains take too much memory, or there are no exact samples to go back from.
    NoConfiguration : the unary factors forbid all states of a variable.
    """
    import numpy as np

    from thesis_cli.inference.sampling.annealing import annealed
    from thesis_cli.perturbation.estimate import Estimate, fixed_estimate, normal_quantile

    seeds = np.random.SeedSequence(options.seed).spawn(2)
    with progress(chains * temperatures, "sweeps") as tick:
        found = annealed(graph, chains, temperatures, seeds[0], jobs=options.jobs, progress=tick)
    low, error, percent = found.lower(options.confidence), found.standard_error, f"{100 * options.confidence:.12g}%"
    trusted, borne = math.isfinite(error), counted(found.effective, "effective chain", ".0f")
    reach = normal_quantile((1 + options.confidence) / 2) * error if trusted else 0.0
    estimate = Estimate(
        value=found.value,
        standard_error=error,
        low=found.value - reach if trusted else low,
        high=found.value + reach if trusted else math.inf,
        target="ln Z",
        kind="Z unbiased" if trusted else f"Z unbiased, but only {borne}",
        confidence=options.confidence,
        map_calls=0,
        method="ais",
        source="Neal 2001",
    )
    rows = [estimate, fixed_estimate(low, f"lower bound with probability {percent}", "ais", "Neal 2001")]
    if not trusted and found.seen > -math.inf:
        rows.append(fixed_estimate(found.seen, "lower bound", "configurations found", "this project"))
    meaning = f"ln Z >= {low:.6g} with probability {percent}, however badly the chains mix"
    if reverse:
        high = _from_above(graph, options, chains, found.steps, seeds[1])
        source = "Grosse, Ghahramani and Adams 2015"
        rows.append(fixed_estimate(high, f"upper bound with probability {percent}", "reverse ais", source))
        meaning += f"; ln Z <= {high:.6g} with the same"
    return LnZAnswer(tuple(rows), meaning=f"{meaning}; no error shows what no chain found; {borne} of {chains:,}")


def _from_above(
    graph: FactorGraph, options: LnZOptions, chains: int, steps: Floats, seed: np.random.SeedSequence
) -> float:
    """An upper bound by chains that start in exact samples."""
    import numpy as np

    from thesis_cli.inference.sampling.annealing import reversely_annealed
    from thesis_cli.inference.sampling.draws import exact_samples

    rng = np.random.default_rng(seed)
    states, _ = exact_samples(graph, chains, rng, memory=options.memory)
    states[:, list(graph.observed)] = 0
    return -reversely_annealed(graph, states, steps, rng).lower(options.confidence)


def coupling(
    graph: FactorGraph, options: LnZOptions, progress: Progress, *, chains: int, temperatures: int
) -> LnZAnswer:
    """An upper bound by annealing back from samples that are exact by coupling from the past.

    Raises
    ------
    OutOfTime : chains from all configurations did not meet in time.
    UnsuitableModel : a factor of several variables forbids something.
    NoConfiguration : the unary factors forbid all states of a variable.
    """
    import numpy as np

    from thesis_cli.inference.sampling.annealing import annealing_steps, reversely_annealed
    from thesis_cli.inference.sampling.coupling import coupled_samples
    from thesis_cli.perturbation.estimate import fixed_estimate

    deadline = options.deadline or time.monotonic() + (options.seconds or TIME_LIMIT)
    rng = np.random.default_rng(options.noise())
    states = coupled_samples(graph, chains, rng, deadline, sweeps=temperatures)
    found = reversely_annealed(graph, states, annealing_steps(graph, temperatures, rng), rng)
    high, percent = -found.lower(options.confidence), f"{100 * options.confidence:.12g}%"
    row = fixed_estimate(high, f"upper bound with probability {percent}", "coupling", "Propp and Wilson 1996")
    return LnZAnswer(
        (row,), meaning=f"ln Z <= {high:.6g} with probability {percent}, by {counted(len(states), 'chain')}"
    )


def thermodynamic(
    graph: FactorGraph,
    options: LnZOptions,
    progress: Progress,
    *,
    chains: int,
    temperatures: int,
    sweeps: int,
) -> LnZAnswer:
    """An estimate by an integral over inverse temperatures.

    Raises
    ------
    ModelTooLarge : the chains take too much memory.
    NoConfiguration : the unary factors forbid all states of a variable.
    WorkFailed : no chain ended in a possible configuration.
    """
    import numpy as np

    from thesis_cli.inference.sampling.annealing import thermodynamic_integral
    from thesis_cli.perturbation.estimate import Estimate, normal_quantile

    seed = np.random.SeedSequence(options.seed)
    with progress(chains * (temperatures + 1), "temperatures") as tick:
        found = thermodynamic_integral(
            graph, chains, temperatures, seed, sweeps=sweeps, jobs=options.jobs, progress=tick
        )
    if found.value == -math.inf:
        raise WorkFailed("no chain ended in a possible configuration: take more --temperatures, or --method ais")
    reach = normal_quantile((1 + options.confidence) / 2) * found.standard_error
    row = Estimate(
        value=found.value,
        standard_error=found.standard_error,
        low=found.value - reach,
        high=found.value + reach,
        target="ln Z",
        kind="consistent if the chains mix",
        confidence=options.confidence,
        map_calls=0,
        method="thermodynamic",
        source="Kirkwood 1935",
    )
    sums = f"between the left and right sums {found.lower:.6g} and {found.upper:.6g}"
    return LnZAnswer((row,), meaning=f"nothing is proven; in equilibrium ln Z is {sums}, up to the standard error")


METHODS = {
    "expanded": LnZMethod(
        "estimate-z",
        "lower bound",
        expanded,
        heeds=("confidence",),
        own={"copies": 10_000},
        help="maxima over copies of the variables",
    ),
    "wish": LnZMethod(
        "estimate-z",
        "probable interval",
        wish,
        heeds=("time_limit", "samples", "confidence"),
        vectors=True,
        help="maxima under random parity constraints",
    ),
    "mesh-bethe": LnZMethod("estimate-z", "lower bound", mesh_bethe, help="of attractive binary models"),
    "frank-wolfe": LnZMethod(
        "estimate-z",
        "upper bound",
        frank_wolfe,
        own={"map_calls": 200, "entropy": "trw", "steps": "corrective"},
        help="by MAP calls",
    ),
    "ais": LnZMethod(
        "estimate-z",
        "Z unbiased",
        ais,
        heeds=("confidence",),
        own={"chains": 100, "temperatures": 1000, "reverse": False},
        share=Share(8, 0.2, alone=True, grows="temperatures"),
        help="annealed Gibbs chains",
    ),
    "coupling": LnZMethod(
        "estimate-z",
        "upper bound",
        coupling,
        heeds=("time_limit", "confidence"),
        own={"chains": 100, "temperatures": 1000},
        stream=4,
        share=Share(2, 0.3, alone=True),
        help="annealed chains back from exact samples, of models without zeros in which chains from everywhere meet",
    ),
    "thermodynamic": LnZMethod(
        "estimate-z",
        "consistent",
        thermodynamic,
        heeds=("confidence",),
        own={"chains": 100, "temperatures": 100, "sweeps": 10},
        help="an integral over temperatures",
    ),
}
"""Methods by name."""
