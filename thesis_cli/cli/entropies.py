"""What `renyi` estimates, by each of its methods."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, UnsuitableModel
from thesis_cli.cli import options, output
from thesis_cli.cli.found import Found, Result
from thesis_cli.cli.full_rank import DEFAULT_ALPHA
from thesis_cli.cli.profile import curve_orders

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.progress import Tick
    from thesis_cli.cli.full_rank import TrickName
    from thesis_cli.entropy.maxima import EntropyMaxima
    from thesis_cli.entropy.names import Approximation, Design, Quantity
    from thesis_cli.inference.names import SolverName
    from thesis_cli.inference.solver import MapSolver
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.tricks import Trick

BRACKET = 0.9, 1.1
"""Orders of the entropies that bracket Shannon's, where every configuration has its noise."""

DOUBTFUL = 6.0
"""Standard errors by which a given ln Z may differ from its estimate without a word."""

NEARLY_ONE = 1e-9
"""Probabilities whose sum is as near to 1 are not said to miss it."""

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class Asked:
    """What is wanted of a model, and how.

    Attributes
    ----------
    quantity, alphas, confidence : what is estimated.
    trick, control : as for `renyi_entropy`.
    samples, share_above, design : as for `entropy_maxima`.
    log_z : ln Z, if it is known.
    solver, memory : as for `map_solver`.
    limit : on configurations.
    seed, jobs : of everything random, of everything long.
    """

    quantity: Quantity
    alphas: tuple[float, ...]
    confidence: float
    trick: Trick
    control: bool
    samples: int
    share_above: float
    design: Design
    log_z: float | None
    solver: SolverName
    memory: int
    limit: int
    seed: int
    jobs: int

    def stream(self, key: int) -> np.random.SeedSequence:
        """Seed of one of the methods."""
        import numpy as np

        return np.random.SeedSequence(self.seed, spawn_key=(key,))


@dataclass(frozen=True)
class Wanted:
    """Which methods are wanted, beside noise on every configuration."""

    exact: bool
    profile: bool
    shannon: bool
    bounds: bool
    bethe: bool
    trw: bool


def entropies(model: Model, asked: Asked, wanted: Wanted, quiet: bool) -> Result:
    """Every estimate asked for, those of an order together.

    Where there are too many configurations for noise on each, and nothing else is asked for, the exact answer stands
    in for the estimate, or, if it cannot be had, low-rank bounds.
    """
    from thesis_cli.models.factor_graph import FactorGraph

    graph = model if isinstance(model, FactorGraph) else None
    if graph is None and (wanted.bounds or wanted.bethe or wanted.trw):
        raise UnsuitableModel("--bounds, --bethe and --trw want variables, this is a vector", "leave them out")
    perturbable = graph is None or model.size <= asked.limit
    if not perturbable and wanted.profile:
        raise ModelTooLarge(f"{model.describe()}: too many for a profile", "--bounds or --exact at some --alpha")
    if not perturbable and not (wanted.exact or wanted.bounds or wanted.shannon or wanted.bethe or wanted.trw):
        logger.info("too many configurations for noise on each; the exact answer, if it can be had")
        try:
            return entropies(model, replace(asked, samples=0), replace(wanted, exact=True), quiet)
        except ModelTooLarge as error:
            logger.info("no exact answer: %s; bounds instead", error.problem)
            wanted = replace(wanted, bounds=True)
    found: list[Found] = []
    curve: list[Found] = []
    exact_curve: list[Found] = []
    grid = curve_orders() if wanted.profile else []
    if wanted.exact:
        with options.progress(2 * model.size, "configurations", quiet) as tick:
            both = exact(model, asked, [*asked.alphas, *grid], tick)
        found, exact_curve = both[: len(asked.alphas)], both[len(asked.alphas) :]
    if perturbable and asked.samples:
        if asked.samples == 1:
            logger.warning("one perturbation tells no standard error")
        bracket = BRACKET if wanted.shannon else ()
        with options.progress(model.size, "configurations", quiet) as tick:
            maxima = perturb(model, asked, [*asked.alphas, *bracket, *grid], tick)
        _doubt_log_z(maxima, asked)
        estimated = full_rank(maxima, asked, asked.alphas)
        found += [f for f in estimated if f.estimate.kind != "exact" or not wanted.exact]
        found += full_rank_bracket(maxima, asked) if wanted.shannon else []
        curve = full_rank(maxima, asked, grid)
    if graph is not None:
        found += _of_graph(graph, asked, replace(wanted, shannon=wanted.shannon and not perturbable), quiet)
    found.sort(key=lambda f: asked.alphas.index(f.alpha) if f.alpha in asked.alphas else len(asked.alphas))
    return Result(found, curve, exact_curve)


def _doubt_log_z(maxima: EntropyMaxima, asked: Asked) -> None:
    """Say so if the maxima, whose mean is ln Z, are far from the one that was given."""
    if asked.log_z is None:
        return
    error = math.pi / math.sqrt(6 * maxima.samples)
    estimate = float(maxima.at_one.mean())
    if abs(estimate - asked.log_z) > DOUBTFUL * error:
        logger.warning("ln Z is given as %.6g; the maxima say %.6g, standard error %.2g", asked.log_z, estimate, error)


def _of_graph(graph: FactorGraph, asked: Asked, wanted: Wanted, quiet: bool) -> list[Found]:
    """What takes variables: low-rank bounds, and other approximations of ln Z."""
    found: list[Found] = []
    finite = sum(a < math.inf for a in asked.alphas) + (asked.log_z is None)
    if wanted.bounds:
        with options.progress(2 * finite * asked.samples, "MAP calls", quiet) as tick:
            found += low_rank(graph, asked, asked.alphas, tick)
    if wanted.shannon or (wanted.bounds and 1 in asked.alphas):
        from thesis_cli.entropy.low_rank import SHANNON_ORDERS

        with options.progress((len(SHANNON_ORDERS) // 2 + 5) * asked.samples, "MAP calls", quiet) as tick:
            found += low_rank_bracket(graph, asked, tick)
    if wanted.bethe:
        found += _approximate(graph, asked, "bethe")
    if wanted.trw:
        found += _approximate(graph, asked, "trw")
    return found


def _approximate(graph: FactorGraph, asked: Asked, name: Approximation) -> list[Found]:
    from thesis_cli.entropy.approximate import approximate_entropies

    values = approximate_entropies(graph, asked.alphas, name, seed=asked.seed, memory=asked.memory)
    return [Found(alpha, value) for alpha, value in zip(asked.alphas, values, strict=True)]


def make_trick(name: TrickName, power: float | None) -> Trick:
    """The trick that goes by a name, with the power of T that it averages."""
    from thesis_cli.perturbation import tricks

    if power is not None and name not in DEFAULT_ALPHA:
        raise InputError(f"--power does not go with --trick {name}", "it belongs to weibull and frechet")
    if name == "gumbel":
        return tricks.gumbel()
    exponent = 1.0 if name == "exponential" else DEFAULT_ALPHA[name] if power is None else power
    try:
        made = tricks.power(exponent)
    except InputError as error:
        raise InputError(f"--power {exponent:g}", error.remedy) from error
    if made.name not in (name, "exponential"):
        raise InputError(
            f"--power {exponent:g} does not go with --trick {name}", "weibull has it above 0, frechet below"
        )
    return made


def sum_of_probabilities(model: Model, strict: bool, limit: int, tick: Tick) -> float:
    """ln of their sum. A sum that is not 1 is said, or if `strict` refused."""
    from thesis_cli.inference.enumeration import log_partition_function
    from thesis_cli.models.factor_graph import FactorGraph

    if isinstance(model, FactorGraph):
        raise InputError("its factors hold potentials", "--probabilities is for vectors; drop it")

    log_sum = log_partition_function(model, max_configurations=limit, progress=tick)
    if log_sum == -math.inf:
        raise NoConfiguration("every probability is 0", "some are above 0")
    if abs(log_sum) > NEARLY_ONE:
        total = f"{math.exp(log_sum):.12g}" if log_sum < 700 else f"e^{log_sum:.6g}"
        if strict:
            raise InputError(f"the probabilities sum to {total}", "1 is wanted; without --strict they are scaled")
        logger.warning("the probabilities sum to %s, and are scaled to 1", total)
    return log_sum


def warn_of_probabilities(model: Model) -> None:
    """Say so if a vector of log-potentials looks like one of probabilities."""
    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials) and model.values[0] >= 0:
        values = model.values[:]
        if values.min() >= 0 and abs(float(values.sum()) - 1) < 1e-6:
            logger.warning("the log-potentials sum to 1: if they are probabilities, --probabilities says so")


def exact_log_z(model: Model, memory: int, limit: int, tick: Tick) -> float:
    """ln Z, by whichever way there is."""
    from thesis_cli.inference.exact import exact_log_partition_function

    log_z, method = exact_log_partition_function(model, memory=memory, max_configurations=limit, progress=tick)
    if log_z == -math.inf:
        raise NoConfiguration()
    logger.info("ln Z = %.12g (%s)", log_z, method)
    return log_z


def exact(model: Model, asked: Asked, alphas: Sequence[float], tick: Tick) -> list[Found]:
    """The quantity itself at every order."""
    from thesis_cli.entropy.exact import exact_entropies
    from thesis_cli.entropy.quantities import target, value_of
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = exact_entropies(model, alphas, memory=asked.memory, max_configurations=asked.limit, progress=tick)
    found = []
    for alpha, entropy in zip(alphas, result.entropies, strict=True):
        value, exponent = value_of(asked.quantity, alpha, float(entropy))
        estimate = fixed_estimate(value, "exact", result.method, "Thesis section 3.2.1", target(asked.quantity, alpha))
        found.append(Found(alpha, replace(estimate, exponent10=exponent)))
    return found


def perturb(model: Model, asked: Asked, alphas: Sequence[float], tick: Tick) -> EntropyMaxima:
    """Maxima at every order, from one set of perturbations."""
    import numpy as np

    from thesis_cli.entropy.maxima import Noise, entropy_maxima

    return entropy_maxima(
        model,
        np.array(alphas),
        asked.samples,
        asked.stream(0),
        Noise(asked.share_above, asked.design),
        jobs=asked.jobs,
        max_configurations=asked.limit,
        progress=tick,
    )


def full_rank(maxima: EntropyMaxima, asked: Asked, alphas: Sequence[float]) -> list[Found]:
    """The quantity at every order, as perturbed maxima tell it."""
    from thesis_cli.entropy.estimators import renyi_entropy
    from thesis_cli.entropy.names import ENTROPIES
    from thesis_cli.entropy.quantities import estimate_quantity

    found = []
    for alpha in alphas:
        if asked.quantity in ENTROPIES:
            found.append(
                Found(
                    alpha,
                    *renyi_entropy(
                        maxima,
                        alpha,
                        log_z=asked.log_z,
                        trick=asked.trick,
                        control=asked.control,
                        confidence=asked.confidence,
                    ),
                )
            )
        else:
            estimate = estimate_quantity(maxima, asked.quantity, alpha, log_z=asked.log_z, confidence=asked.confidence)
            found.append(Found(alpha, estimate))
    return found


def full_rank_bracket(maxima: EntropyMaxima, asked: Asked) -> list[Found]:
    """Shannon's entropy between two others (Thesis section 3.4), each estimated."""
    below, above = full_rank(maxima, asked, BRACKET)
    unbiased = below.estimate.kind == "unbiased"
    return [
        Found(
            1.0,
            replace(
                f.estimate,
                target="H_1",
                method=f.estimate.target,
                kind=f"{side} bound in expectation" if unbiased else f"{side} bound in the limit",
                source="Thesis section 3.4",
            ),
        )
        for side, f in (("lower", above), ("upper", below))
    ]


def low_rank(graph: FactorGraph, asked: Asked, alphas: Sequence[float], tick: Tick) -> list[Found]:
    """Bounds on H_alpha at every order but 1, by noise on the variables."""
    from thesis_cli.entropy.low_rank import TemperedSolvers, low_rank_bounds

    rows = low_rank_bounds(
        TemperedSolvers(_solver_maker(asked), graph),
        [a for a in alphas if a != 1],
        asked.samples,
        asked.stream(1),
        log_z=asked.log_z,
        confidence=asked.confidence,
        jobs=asked.jobs,
        progress=tick,
    )
    return [Found(row.order, side) for row in rows for side in (row.lower, row.upper)]


def low_rank_bracket(graph: FactorGraph, asked: Asked, tick: Tick) -> list[Found]:
    """The two-sided bracket of Shannon's entropy, and a bound on that of the maximiser, which is not p's."""
    from thesis_cli.entropy.low_rank import TemperedSolvers, shannon_sandwich
    from thesis_cli.perturbation.low_rank import low_rank_maxima
    from thesis_cli.perturbation.low_rank_bounds import entropy_bound

    make = _solver_maker(asked)
    sandwich = shannon_sandwich(
        TemperedSolvers(make, graph),
        asked.samples,
        asked.stream(2),
        log_z=asked.log_z,
        confidence=asked.confidence,
        jobs=asked.jobs,
        progress=tick,
    )
    maxima = low_rank_maxima(make(graph), asked.samples, asked.stream(3), jobs=asked.jobs, progress=tick)
    bound = entropy_bound(maxima, confidence=asked.confidence)
    return [Found(1.0, e) for e in (sandwich.lower, sandwich.upper, bound)]


def _solver_maker(asked: Asked) -> Callable[[FactorGraph], MapSolver]:
    from thesis_cli.inference.choose import map_solver

    def make(graph: FactorGraph) -> MapSolver:
        solver, why = map_solver(graph, asked.solver, asked.memory)
        logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
        if solver.guarantee == "approximate":
            logger.warning("MAP by %s, which approximates: not every bound is sure", solver.name)
        return solver

    return make


def integral(model: Model, integrand: str, asked: Asked, exactly: bool, quiet: bool) -> Result:
    """ln E_p[f], f from a file: a vector of its values, or a model whose potential is ln f."""
    from thesis_cli.entropy.integrals import SOURCE, TARGET, exact_log_expectation, log_expectation, paired_maxima
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.models.files import load_model
    from thesis_cli.perturbation.estimate import fixed_estimate

    weights = load_model(integrand, probabilities=True)
    if isinstance(model, FactorGraph) and isinstance(weights, FactorGraph) and model.observed:
        weights = weights.condition(model.observed)
    found = []
    with output.naming(integrand):
        if exactly:
            with options.progress(model.size, "configurations", quiet) as tick:
                value, method = exact_log_expectation(
                    model, weights, memory=asked.memory, max_configurations=asked.limit, progress=tick
                )
            found.append(Found(None, fixed_estimate(value, "exact", method, SOURCE, TARGET)))
        if asked.samples:
            with options.progress(model.size * asked.samples, "clocks", quiet) as tick:
                pair = paired_maxima(
                    model,
                    weights,
                    asked.samples,
                    asked.stream(0),
                    jobs=asked.jobs,
                    max_configurations=asked.limit,
                    progress=tick,
                )
            found.append(Found(None, log_expectation(pair, log_z=asked.log_z, confidence=asked.confidence)))
    return Result(found)
