"""Estimates of ln Z beside full-rank perturb-and-MAP, by their names on the command line."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.base.errors import InputError, NoConfiguration, UnsuitableModel
from thesis_cli.inference.names import SolverName

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.progress import Tick
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.low_rank import LowRankMaxima

BoundName = Literal["unary", "average", "subset", "bethe", "trw"]
IntervalName = Literal["normal", "concentration"]

AnyAlpha = Annotated[bool, typer.Option("--any-alpha", help="Take alphas whose samples may have no finite variance.")]
Interval = Annotated[
    IntervalName,
    typer.Option("--confidence-method", help="Interval of U(0), L(0): delta method, or measure concentration."),
]
Subsets = Annotated[
    str | None,
    typer.Option(
        help="Of --method subset: 'edges' (each pair of neighbours), or variables as in '0,1 1,2'.",
        show_default="edges",
    ),
]
Clamp = Annotated[
    str | None,
    typer.Option(help="Variables whose states are summed over, the rest being bounded; as in '0,5'."),
]

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class Perturbing:
    """How MAP problems are made and solved.

    Attributes
    ----------
    samples : M of each estimate.
    seed : of everything; each bound has a stream of its own.
    jobs : threads.
    solver, memory : as for `map_solver`.
    alphas : of the bounds, all from the same samples.
    confidence, interval, any_alpha : of the estimates.
    """

    samples: int
    seed: int
    jobs: int
    solver: SolverName
    memory: int
    alphas: Sequence[float] = (0.0,)
    confidence: float = 0.95
    interval: IntervalName = "normal"
    any_alpha: bool = False

    def stream(self, name: BoundName) -> np.random.SeedSequence:
        import numpy as np

        return np.random.SeedSequence(self.seed, spawn_key=(("unary", "average", "subset").index(name), 0))


def bounds(
    model: Model,
    name: BoundName,
    how: Perturbing,
    *,
    subsets: str | None = None,
    clamp: Sequence[int] = (),
    tick: Tick | None = None,
) -> list[Estimate]:
    """The estimates of ln Z that go by a name: one for each alpha, or one."""
    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials):
        raise UnsuitableModel(f"--method {name} wants variables, this is a vector", "full-rank takes vectors")
    if name == "bethe":
        return [_bethe(model, how.seed)]
    if name == "trw":
        return [_trw(model)]
    if clamp:
        return [_clamped(model, clamp, alpha, how, tick) for alpha in how.alphas]
    from thesis_cli.perturbation.low_rank_bounds import lower_bound, slope_at_zero, upper_bound

    maxima = perturb(model, name, how, subsets=subsets, tick=tick)
    bound = lower_bound if name == "average" else upper_bound
    found = []
    for alpha in how.alphas:
        found.append(bound(maxima, alpha, confidence=how.confidence, interval=how.interval, unsafe=how.any_alpha))
    if name != "average" and maxima.map_calls > 1:
        slope, error = slope_at_zero(maxima)
        logger.debug("dU/dalpha at 0 is %.3g +- %.2g (Thesis Proposition 4)", slope, error)
    return found


def perturb(
    graph: FactorGraph, name: BoundName, how: Perturbing, *, subsets: str | None = None, tick: Tick | None = None
) -> LowRankMaxima:
    """Perturbed maxima of the solver asked for, which is named in a message."""
    import numpy as np

    from thesis_cli.inference.choose import map_solver
    from thesis_cli.perturbation.low_rank import low_rank_maxima
    from thesis_cli.perturbation.low_rank_bounds import check_alphas, second_moment
    from thesis_cli.perturbation.subsets import edges, with_subset_variables

    noisy = None
    if name == "subset":
        chosen = edges(graph) if subsets in (None, "edges") else [_variables(word) for word in str(subsets).split()]
        if not chosen:
            raise InputError("--subsets is empty", "variables as in '0,1 1,2' are wanted")
        graph, noisy = with_subset_variables(graph, chosen)
    terms = sum(graph.cardinalities[i] > 1 for i in (range(len(graph.cardinalities)) if noisy is None else noisy))
    check_alphas(np.array(how.alphas), terms, how.any_alpha)
    solver, why = map_solver(graph, how.solver, how.memory)
    logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
    if solver.guarantee == "approximate":
        logger.warning("MAP by %s, which approximates: upper bounds are no longer sure", solver.name)
    if how.interval == "concentration" and (any(how.alphas) or solver.guarantee != "exact"):
        raise InputError("--confidence-method concentration", "alpha 0 alone and an exact solver are wanted")
    for alpha in how.alphas:
        if (wanted := 10 * (second_moment(alpha, terms) - 1)) > how.samples:
            logger.warning("%s samples may be far too few for alpha = %g: up to %.1g", how.samples, alpha, wanted)
    return low_rank_maxima(
        solver,
        how.samples,
        how.stream(name),
        scale="average" if name == "average" else "sum",
        noisy=noisy,
        jobs=how.jobs,
        progress=tick,
    )


def parse_variables(text: str | None) -> tuple[int, ...]:
    """`0,5` -> (0, 5)."""
    return _variables(text) if text else ()


def _variables(word: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in word.split(","))
    except ValueError:
        raise InputError(
            f"'{word[:40]}' is no list of variables", "numbers with commas are wanted, as in 0,5"
        ) from None


def _clamped(graph: FactorGraph, clamp: Sequence[int], alpha: float, how: Perturbing, tick: Tick | None) -> Estimate:
    from thesis_cli.inference.choose import map_solver
    from thesis_cli.perturbation.clamping import clamped_maxima, clamped_upper_bound

    maxima = clamped_maxima(
        graph,
        clamp,
        how.samples,
        how.stream("unary"),
        lambda conditioned: map_solver(conditioned, how.solver, how.memory)[0],
        jobs=how.jobs,
        progress=tick,
    )
    return clamped_upper_bound(maxima, alpha, confidence=how.confidence, unsafe=how.any_alpha)


def _bethe(graph: FactorGraph, seed: int) -> Estimate:
    from thesis_cli.inference.belief_propagation import bethe_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = bethe_log_partition_function(graph, seed=seed)
    _check_possible(result.value)
    kind = "approximation" if result.converged else "approximation, not converged"
    return fixed_estimate(result.value, kind, "Bethe", "Yedidia, Freeman and Weiss 2005")


def _trw(graph: FactorGraph) -> Estimate:
    from thesis_cli.inference.trw import trw_log_partition_function
    from thesis_cli.perturbation.estimate import fixed_estimate

    result = trw_log_partition_function(graph)
    _check_possible(result.value)
    kind = "upper bound" if result.converged else f"not converged, by {result.gap:.2g}"
    return fixed_estimate(result.value, kind, "TRW", "Wainwright, Jaakkola and Willsky 2005")


def _check_possible(log_z: float) -> None:
    if log_z == -math.inf:  # what messages say of ln Z is -inf only where it is
        raise NoConfiguration()
