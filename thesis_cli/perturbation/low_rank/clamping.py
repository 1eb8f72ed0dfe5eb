"""Clamping: variables held at a state, and bounds summed over these states (Thesis 2.3.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import log_of_sum
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.estimate import Estimate
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import UNCERTAIN, half_width, upper_bound

MOST_STATES = 4096
"""Most joint states of the clamped variables; each is a model to bound."""


@dataclass(frozen=True)
class ClampedMaxima:
    """Low-rank perturbed maxima of a model with variables clamped to each of their joint states.

    Attributes
    ----------
    parts : one for each joint state that is possible.
    clamped : number of clamped variables with two states or more.
    map_calls : number of MAP problems solved.
    """

    parts: tuple[LowRankMaxima, ...]
    clamped: int
    map_calls: int


def clamped_maxima(
    graph: FactorGraph,
    variables: Sequence[int],
    count: int,
    seed: np.random.SeedSequence,
    solver_of: Callable[[FactorGraph], MapSolver],
    *,
    jobs: int = 1,
    progress: Tick | None = None,
) -> ClampedMaxima:
    """Solve `count` MAP problems for each joint state of some variables, each under its own noise.

    Parameters
    ----------
    variables : those that are clamped; they may have at most 4096 joint states.
    count : number M of perturbations for each joint state.
    seed : root of the random streams, one for each joint state.
    solver_of : prepares a solver for the model with evidence.
    jobs : threads.
    progress : called with the number of MAP problems just solved.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    InputError : a variable that does not exist, or too many joint states.
    """
    chosen, joint = _to_clamp(graph, variables)
    found, calls = [], 0
    every = itertools.product(*(range(graph.cardinalities[i]) for i in chosen))
    for states, child in zip(every, seed.spawn(joint), strict=True):
        try:
            conditioned = graph.condition(dict(zip(chosen, states, strict=True)))
        except InputError:  # the variables and states exist, so a factor forbids them
            continue
        calls += count
        try:
            found.append(low_rank_maxima(solver_of(conditioned), count, child, jobs=jobs, progress=progress))
        except NoConfiguration:
            continue
    if not found:
        raise NoConfiguration()
    return ClampedMaxima(tuple(found), len(chosen), calls)


def joint_states(graph: FactorGraph, variables: Sequence[int]) -> int:
    """Number of joint states to clamp some variables to.

    Raises
    ------
    InputError : a variable that does not exist, or too many joint states.
    """
    return _to_clamp(graph, variables)[1]


def _to_clamp(graph: FactorGraph, variables: Sequence[int]) -> tuple[list[int], int]:
    for i in variables:
        if not 0 <= i < len(graph.cardinalities):
            raise InputError(f"there is no variable {i} to clamp", f"variables are 0 to {len(graph.cardinalities) - 1}")
    chosen = [i for i in sorted(set(variables)) if graph.cardinalities[i] > 1]
    joint = math.prod(graph.cardinalities[i] for i in chosen)
    if joint > MOST_STATES:
        raise InputError(f"the clamped variables have {joint:,} joint states", f"they may have at most {MOST_STATES:,}")
    return chosen, joint


def clamped_upper_bound(
    maxima: ClampedMaxima, alpha: float, *, confidence: float = 0.95, unsafe: bool = False
) -> Estimate:
    """ln of the sum of exp(U(alpha)) over the joint states of the clamped variables.

    It is an upper bound on ln Z and at most U(alpha) of the model itself (Thesis Lemma 1, Corollary
    7). With every variable clamped it is ln Z. An impossible joint state adds nothing. The function
    is convex and rises in each U(alpha), so the estimate is an upper bound in expectation where the
    U(alpha) are.

    Parameters
    ----------
    alpha, unsafe : as for `upper_bound`.
    confidence : of the normal interval, whose standard error comes from the delta method. The
        kind ends with `error uncertain` if at least half of the squared error is.

    Raises
    ------
    InputError : alpha or confidence out of range.
    """
    found = [upper_bound(part, alpha, confidence=confidence, unsafe=unsafe) for part in maxima.parts]
    values = np.array([e.value for e in found])
    value = log_of_sum(float(np.logaddexp.reduce(values)))
    errors = np.exp(values - value) * [e.standard_error for e in found]
    error = math.hypot(*errors)
    half = half_width(error, confidence)
    kinds = [e.kind.removesuffix(UNCERTAIN) for e in found]
    kind = next((kind for kind in kinds if kind.startswith("approximate")), kinds[0])
    if 2 * (errors[[e.kind.endswith(UNCERTAIN) for e in found]] ** 2).sum() > error**2:
        kind += UNCERTAIN
    method = f"{found[0].method}, {maxima.clamped} clamped"
    low, high = value - half, value + half
    return Estimate(value, error, low, high, "ln Z", kind, confidence, maxima.map_calls, method, "Thesis Lemma 1")


class Clamped:
    """A solver with some variables held at a state, by a penalty on their other states.

    Parameters
    ----------
    solver : prepared for the model.
    evidence : the held variables, each with its state.

    Attributes
    ----------
    name, guarantee : of `solver`.
    graph : the model with factors that forbid the other states.
    """

    def __init__(self, solver: MapSolver, evidence: Mapping[int, int]) -> None:
        self._solver, self._evidence = solver, dict(evidence)
        graph = solver.graph
        self._starts = np.cumsum([0, *graph.cardinalities[:-1]])
        self._others = np.array(
            [self._starts[i] + k for i, held in evidence.items() for k in range(graph.cardinalities[i]) if k != held],
            np.int64,
        )
        self._spread = sum(float(np.ptp(f.table[f.table > -np.inf])) for f in graph.factors)

    @property
    def name(self) -> str:
        return self._solver.name

    @property
    def guarantee(self) -> Guarantee:
        return self._solver.guarantee

    @cached_property
    def graph(self) -> FactorGraph:
        graph = self._solver.graph
        held = [
            Factor((i,), np.where(np.arange(graph.cardinalities[i]) == k, 0.0, -np.inf))
            for i, k in self._evidence.items()
        ]
        return graph.with_factors([*graph.factors, *held])

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """Maximise as `MapSolver.maximise` does; a value is `-inf` if a held variable has another state.

        The penalty exceeds the difference between any two possible configurations, noise included,
        so an exact solver leaves the held states only if no possible configuration has them.
        """
        ranges = np.maximum.reduceat(noise, self._starts, axis=1) - np.minimum.reduceat(noise, self._starts, axis=1)
        tilted = noise.copy()
        tilted[:, self._others] -= 1 + self._spread + float(ranges.sum(axis=1).max())
        values, states = self._solver.maximise(tilted)
        kept = (states[:, list(self._evidence)] == list(self._evidence.values())).all(axis=1)
        return np.where(kept, values, -np.inf), states
