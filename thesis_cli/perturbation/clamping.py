"""Clamping: variables held at a state, and bounds summed over what they are held at (Thesis section 2.3.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.estimate import Estimate
from thesis_cli.perturbation.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank_bounds import half_width, upper_bound

MOST_STATES = 4096
"""Limit on the joint states of the clamped variables, each of which is a model to bound."""


def clamped_upper_bound(
    graph: FactorGraph,
    variables: Sequence[int],
    alpha: float,
    count: int,
    seed: np.random.SeedSequence,
    solver_of: Callable[[FactorGraph], MapSolver],
    *,
    confidence: float = 0.95,
    unsafe: bool = False,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Estimate:
    """ln of the sum of exp(U(alpha)) over the joint states that some variables are clamped to.

    At most U(alpha) of the model itself, and an upper bound on ln Z still (Thesis Lemma 1, Corollary 7); exactly ln Z
    if every variable is clamped. A joint state that is impossible adds nothing. As the function is convex and rises
    in each U(alpha), the estimate is an upper bound in expectation where they are.

    Parameters
    ----------
    variables : that are clamped; their joint states are at most 4096.
    alpha, unsafe : as for `upper_bound`.
    count : number M of perturbations for each joint state.
    seed : root of the random streams, one for each joint state.
    solver_of : prepares a solver for the model with evidence.
    confidence : of the normal interval, whose standard error is by the delta method.
    jobs : threads.
    progress : called with the number of MAP problems just solved.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    InputError : variables that are not there, or have too many joint states; alpha or confidence out of range.
    """
    for i in variables:
        if not 0 <= i < len(graph.cardinalities):
            raise InputError(f"clamping names variable {i}", f"variables are 0 to {len(graph.cardinalities) - 1}")
    chosen = [i for i in sorted(set(variables)) if graph.cardinalities[i] > 1]
    joint = math.prod(graph.cardinalities[i] for i in chosen)
    if joint > MOST_STATES:
        raise InputError(f"the clamped variables have {joint:,} joint states", f"at most {MOST_STATES:,}")
    found, calls = [], 0
    every = itertools.product(*(range(graph.cardinalities[i]) for i in chosen))
    for states, child in zip(every, seed.spawn(joint), strict=True):
        try:
            conditioned = graph.condition(dict(zip(chosen, states, strict=True)))
        except InputError:  # the variables and states exist, so that it is a factor that forbids them
            continue
        calls += count
        try:
            maxima = low_rank_maxima(solver_of(conditioned), count, child, jobs=jobs, progress=progress)
        except NoConfiguration:
            continue
        found.append(upper_bound(maxima, alpha, confidence=confidence, unsafe=unsafe))
    if not found:
        raise NoConfiguration()
    values = np.array([e.value for e in found])
    value = float(np.logaddexp.reduce(values))
    error = math.hypot(*np.exp(values - value) * [e.standard_error for e in found])
    half = half_width(error, confidence)
    kind = next((e.kind for e in found if e.kind.startswith("approximate")), found[0].kind)
    method = f"{found[0].method}, {len(chosen)} clamped"
    return Estimate(value, error, value - half, value + half, "ln Z", kind, confidence, calls, method, "Thesis Lemma 1")


class Clamped:
    """A solver with some variables held at a state: the solver itself, with a penalty on the other states.

    Parameters
    ----------
    solver : prepared for the model.
    evidence : variables, each with the state it is held at.

    Attributes
    ----------
    name, guarantee : those of `solver`.
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
        return FactorGraph(graph.cardinalities, [*graph.factors, *held], graph.observed)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """As `MapSolver.maximise`; a value is `-inf` if the state found is not the one held.

        The penalty exceeds the difference between any two possible configurations, noise included, so that an exact
        solver breaks the hold only where no possible configuration keeps it.
        """
        ranges = np.maximum.reduceat(noise, self._starts, axis=1) - np.minimum.reduceat(noise, self._starts, axis=1)
        tilted = noise.copy()
        tilted[:, self._others] -= 1 + self._spread + float(ranges.sum(axis=1).max())
        values, states = self._solver.maximise(tilted)
        kept = (states[:, list(self._evidence)] == list(self._evidence.values())).all(axis=1)
        return np.where(kept, values, -np.inf), states
