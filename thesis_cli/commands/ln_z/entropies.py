"""The methods of `renyi`: noise on every configuration, exact, low-rank bounds, and message passing;
and ln Z before any of them, the sum of a vector of probabilities or an exact value.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from thesis_cli.base.errors import InputError, NoConfiguration, presentation
from thesis_cli.base.progress import Progress

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.progress import Tick
    from thesis_cli.entropy.estimators import ControlVariate, EntropyMaxima
    from thesis_cli.entropy.low_rank import TemperedSolvers
    from thesis_cli.entropy.names import Approximation, Design, Quantity
    from thesis_cli.inference.names import SolverName
    from thesis_cli.inference.solver import MapSolver
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.tricks.tricks import Trick


BRACKET = 0.9, 1.1
"""Orders of the entropies that bracket Shannon's, if each configuration has its noise."""

CURVE = 60
"""Points of a profile, evenly spaced in order / (1 + order) from 0 to 1; none is at order 1."""

DOUBTFUL = 6.0
"""Standard errors between a given ln Z and its estimate above which a warning appears."""

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class EntropySettings:
    """The quantity and the methods of an estimate.

    Attributes
    ----------
    quantity, orders, confidence : the estimates.
    trick, control : as for `renyi_entropy`.
    samples : number M of perturbations.
    share_above, design : as for `maxima.Noise`.
    log_z : ln Z, if it is known.
    solver, memory : as for `map_solver`; the memory in bytes.
    max_configurations : largest number of configurations to enumerate.
    seed, jobs : seed of all random numbers; threads.
    """

    quantity: Quantity
    orders: tuple[float, ...]
    confidence: float
    trick: Trick
    control: bool
    samples: int
    share_above: float
    design: Design
    log_z: float | None
    solver: SolverName
    memory: int
    max_configurations: int
    seed: int
    jobs: int

    def stream(self, key: int) -> np.random.SeedSequence:
        """Random numbers of one of the methods."""
        import numpy as np

        return np.random.SeedSequence(self.seed, spawn_key=(key,))


class Methods(NamedTuple):
    """The methods to carry out; `perturb` is noise on every configuration."""

    perturb: bool
    exact: bool
    profile: bool
    shannon: bool
    bounds: bool
    bethe: bool
    trw: bool


@dataclass(frozen=True)
class Row:
    """One number: its order (None for an integral), the estimate, and the effect of a control
    variate."""

    order: float | None
    estimate: Estimate
    control: ControlVariate | None = None

    def values(self) -> dict[str, Any]:
        """The row of a table."""
        coefficient, saved = (self.control.coefficient, self.control.saved) if self.control else (None, None)
        return {
            "order": self.order,
            **self.estimate.row(),
            "control_coefficient": coefficient,
            "control_saved": saved,
        }

    @presentation
    def described(self) -> str:
        """Method, kind, and the share of the variance that the control variate saved."""
        saved = f", saving {max(0.0, 100 * self.control.saved):.0f}% of the variance" if self.control else ""
        return f"{self.estimate.method}{saved}, {self.estimate.kind}"


class EntropyRows(NamedTuple):
    """The estimates, and the curves of a profile."""

    rows: Sequence[Row]
    curve: Sequence[Row] = ()
    exact_curve: Sequence[Row] = ()


def rows(model: Model, settings: EntropySettings, methods: Methods, progress: Progress) -> EntropyRows:
    """The estimates of all methods, those of one order together.

    Raises
    ------
    ModelTooLarge : an exact algorithm, or noise on every configuration, is not possible.
    UnsuitableModel : the solver does not take the model.
    NoConfiguration : no configuration is possible.
    """
    from thesis_cli.models.factor_graph import FactorGraph

    orders, found, curve, exact_curve = settings.orders, list[Row](), list[Row](), list[Row]()
    grid = curve_orders() if methods.profile else []
    if methods.exact:
        with progress(2 * model.size, "configurations") as tick:
            both = exact(model, settings, [*orders, *grid], tick)
        found, exact_curve = both[: len(orders)], both[len(orders) :]
    if methods.perturb:
        if settings.samples == 1:
            logger.warning("one perturbation gives no standard error")
        with progress(model.size, "configurations") as tick:
            maxima = perturb(model, settings, [*orders, *(BRACKET if methods.shannon else ()), *grid], tick)
        _doubt_log_z(maxima, settings)
        estimated = full_rank(maxima, settings, orders)
        found += [row for row in estimated if row.estimate.kind != "exact" or not methods.exact]
        found += full_rank_bracket(maxima, settings) if methods.shannon else []
        curve = full_rank(maxima, settings, grid)
    if isinstance(model, FactorGraph):
        bracket = (methods.shannon and not methods.perturb) or (methods.bounds and 1 in orders)
        if methods.bounds or bracket:
            found += low_rank(model, settings, methods.bounds, bracket, progress)
        found += approximate(model, settings, "bethe") if methods.bethe else []
        found += approximate(model, settings, "trw") if methods.trw else []
    found.sort(key=lambda row: orders.index(row.order) if row.order in orders else len(orders))
    return EntropyRows(found, curve, exact_curve)


def curve_orders() -> list[float]:
    """Orders of a profile, 0 to inf."""
    shares = [k / (CURVE - 1) for k in range(CURVE)]
    return [t / (1 - t) if t < 1 else math.inf for t in shares]


def _doubt_log_z(maxima: EntropyMaxima, settings: EntropySettings) -> None:
    """Warn if the mean of the maxima, which estimates ln Z, is far from the ln Z that was given."""
    if settings.log_z is None:
        return
    error = math.pi / math.sqrt(6 * maxima.samples)
    estimate = float(maxima.at_one.mean())
    if abs(estimate - settings.log_z) > DOUBTFUL * error:
        text = "ln Z is given as %.6g, but its estimate is %.6g with standard error %.2g"
        logger.warning(text, settings.log_z, estimate, error)


def approximate(graph: FactorGraph, settings: EntropySettings, name: Approximation) -> list[Row]:
    """Entropies by message passing."""
    from thesis_cli.entropy.approximate import approximate_entropies

    values = approximate_entropies(graph, settings.orders, name, seed=settings.seed, memory=settings.memory)
    return [Row(order, value) for order, value in zip(settings.orders, values, strict=True)]


def exact(model: Model, settings: EntropySettings, orders: Sequence[float], tick: Tick) -> list[Row]:
    """The exact quantity at every order."""
    from thesis_cli.entropy.exact import exact_entropies
    from thesis_cli.entropy.quantities import target, value_of
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = exact_entropies(
        model, orders, memory=settings.memory, max_configurations=settings.max_configurations, progress=tick
    )
    found = []
    for order, entropy in zip(orders, result.entropies, strict=True):
        value, exponent = value_of(settings.quantity, order, float(entropy))
        name = target(settings.quantity, order)
        estimate = fixed_estimate(value, "exact", result.method, "Thesis section 3.2.1", name)
        found.append(Row(order, replace(estimate, exponent10=exponent)))
    return found


def perturb(model: Model, settings: EntropySettings, orders: Sequence[float], tick: Tick) -> EntropyMaxima:
    """Maxima at every order from one set of perturbations."""
    import numpy as np

    from thesis_cli.entropy.estimators import Noise, entropy_maxima

    return entropy_maxima(
        model,
        np.array(orders),
        settings.samples,
        settings.stream(0),
        Noise(settings.share_above, settings.design),
        jobs=settings.jobs,
        max_configurations=settings.max_configurations,
        progress=tick,
    )


def full_rank(maxima: EntropyMaxima, settings: EntropySettings, orders: Sequence[float]) -> list[Row]:
    """Estimates of the quantity at every order from perturbed maxima."""
    from thesis_cli.entropy.estimators import renyi_entropy
    from thesis_cli.entropy.names import ENTROPIES
    from thesis_cli.entropy.quantities import estimate_quantity

    log_z, confidence = settings.log_z, settings.confidence
    if settings.quantity not in ENTROPIES:
        return [
            Row(order, estimate_quantity(maxima, settings.quantity, order, log_z=log_z, confidence=confidence))
            for order in orders
        ]
    trick, control = settings.trick, settings.control
    return [
        Row(order, *renyi_entropy(maxima, order, log_z=log_z, trick=trick, control=control, confidence=confidence))
        for order in orders
    ]


def full_rank_bracket(maxima: EntropyMaxima, settings: EntropySettings) -> list[Row]:
    """Estimates of two entropies that enclose Shannon's (Thesis section 3.4)."""
    below, above = full_rank(maxima, settings, BRACKET)
    unbiased = below.estimate.kind == "unbiased"
    return [
        Row(
            1.0,
            replace(
                row.estimate,
                target="H_1",
                method=row.estimate.target,
                kind=f"{side} bound in expectation" if unbiased else f"{side} bound in the limit",
                source="Thesis section 3.4",
            ),
        )
        for side, row in (("lower", above), ("upper", below))
    ]


def low_rank(
    graph: FactorGraph, settings: EntropySettings, bounds: bool, bracket: bool, progress: Progress
) -> list[Row]:
    """Bounds from noise on the variables: at every order but 1, and for Shannon's entropy."""
    from thesis_cli.entropy.low_rank import SHANNON_ORDERS, TemperedSolvers

    solvers, found = TemperedSolvers(_solver_maker(settings), graph), list[Row]()
    if bounds:
        finite = sum(a < math.inf for a in settings.orders) + (settings.log_z is None)
        with progress(2 * finite * settings.samples, "MAP calls") as tick:
            found += low_rank_bounds(solvers, settings, tick)
    if bracket:
        with progress((len(SHANNON_ORDERS) // 2 + 5) * settings.samples, "MAP calls") as tick:
            found += low_rank_bracket(solvers, settings, tick)
    return found


def low_rank_bounds(solvers: TemperedSolvers, settings: EntropySettings, tick: Tick) -> list[Row]:
    """Bounds on the entropy at every order but 1."""
    from thesis_cli.entropy import low_rank

    found = low_rank.low_rank_bounds(
        solvers,
        [order for order in settings.orders if order != 1],
        settings.samples,
        settings.stream(1),
        log_z=settings.log_z,
        confidence=settings.confidence,
        jobs=settings.jobs,
        progress=tick,
    )
    return [Row(bounds.order, side) for bounds in found for side in (bounds.lower, bounds.upper)]


def low_rank_bracket(solvers: TemperedSolvers, settings: EntropySettings, tick: Tick) -> list[Row]:
    """Bounds on Shannon's entropy of p, and one on that of the maximiser, which has another
    distribution."""
    from thesis_cli.entropy.low_rank import shannon_sandwich
    from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
    from thesis_cli.perturbation.low_rank.low_rank_bounds import entropy_bound

    samples, jobs = settings.samples, settings.jobs
    sandwich = shannon_sandwich(
        solvers,
        samples,
        settings.stream(2),
        log_z=settings.log_z,
        confidence=settings.confidence,
        jobs=jobs,
        progress=tick,
    )
    maxima = low_rank_maxima(solvers.at(1), samples, settings.stream(3), jobs=jobs, progress=tick)
    bound = entropy_bound(maxima, confidence=settings.confidence)
    return [Row(1.0, estimate) for estimate in (sandwich.lower, sandwich.upper, bound)]


def _solver_maker(settings: EntropySettings) -> Callable[[FactorGraph], MapSolver]:
    from thesis_cli.inference.choose import map_solver

    def make(graph: FactorGraph) -> MapSolver:
        solver, why = map_solver(graph, settings.solver, settings.memory, calls=settings.samples)
        logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
        if solver.guarantee == "approximate":
            logger.warning("MAP by %s is approximate, so bounds may fail", solver.name)
        return solver

    return make


def integral(model: Model, weights: Model, settings: EntropySettings, exactly: bool, progress: Progress) -> EntropyRows:
    """ln E_p[f].

    Parameters
    ----------
    weights : ln f.
    exactly : whether to compute the exact value too.
    """
    from thesis_cli.entropy.integrals import SOURCE, TARGET, exact_log_expectation, log_expectation, paired_maxima
    from thesis_cli.perturbation.estimate import fixed_estimate

    most, found = settings.max_configurations, list[Row]()
    if exactly:
        with progress(model.size, "configurations") as tick:
            value, method = exact_log_expectation(
                model, weights, memory=settings.memory, max_configurations=most, progress=tick
            )
        found.append(Row(None, fixed_estimate(value, "exact", method, SOURCE, TARGET)))
    if settings.samples:
        with progress(model.size * settings.samples, "clocks") as tick:
            pair = paired_maxima(
                model,
                weights,
                settings.samples,
                settings.stream(0),
                jobs=settings.jobs,
                max_configurations=most,
                progress=tick,
            )
        found.append(Row(None, log_expectation(pair, log_z=settings.log_z, confidence=settings.confidence)))
    return EntropyRows(found)


NEARLY_ONE = 1e-9
"""Largest |ln of the sum of probabilities| without a warning."""


def sum_of_probabilities(model: Model, strict: bool, max_configurations: int, tick: Tick) -> float:
    """ln of the sum of a vector of probabilities.

    A sum other than 1 brings a warning or, if `strict`, an `InputError`.
    """
    from thesis_cli.inference.enumeration import log_partition_function

    log_sum = log_partition_function(model, max_configurations=max_configurations, progress=tick)
    if log_sum == -math.inf:
        raise NoConfiguration("all probabilities are 0", "some must be above 0")
    if abs(log_sum) > NEARLY_ONE:
        total = f"{math.exp(log_sum):.12g}" if log_sum < 700 else f"e^{log_sum:.6g}"
        if strict:
            raise InputError(
                f"the probabilities sum to {total}", "they must sum to 1; without --strict they are scaled"
            )
        logger.warning("the probabilities sum to %s; they are scaled to 1", total)
    return log_sum


def warn_of_probabilities(model: Model) -> None:
    """Warn if a vector of log-potentials looks like one of probabilities."""
    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials) and model.values[0] >= 0:
        values = model.values[:]
        if values.min() >= 0 and abs(float(values.sum()) - 1) < 1e-6:
            logger.warning("the log-potentials sum to 1; if they are probabilities, add --probabilities")


def exact_log_z(model: Model, memory: int, max_configurations: int, tick: Tick) -> float:
    """ln Z by any exact algorithm; a message names it."""
    from thesis_cli.inference.exact import exact_log_partition_function

    log_z, method = exact_log_partition_function(
        model, memory=memory, max_configurations=max_configurations, progress=tick
    )
    if log_z == -math.inf:
        raise NoConfiguration()
    logger.info("ln Z = %.12g (%s)", log_z, method)
    return log_z
