r"""Low-rank perturb-and-MAP: a Gumbel variable for each state of each variable (Thesis 2.3).

A variable with one state, such as an observed one, gets no noise, since that noise would be added
to every configuration alike. In U(alpha) its moment Gamma(1 + alpha) e^{alpha c} would cancel its
term exactly, but add to the variance. In L(alpha) it would loosen the bound: L(alpha) is U(alpha)
of the model n phi, divided by n, and U(0) of the model m phi, divided by m, falls as m grows (E
max{m phi + noise} is convex in m, and tends to m max phi).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Stopwatch, Tick
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.low_rank.subsets import undetermined
from thesis_cli.perturbation.noise import gumbel

Scale = Literal["sum", "average"]

BLOCK, BLOCK_ENTRIES = 128, 2**20
"""Most perturbations, and noise entries (8 MiB), in a block, which has its own random stream."""

QUICK = 0.1
"""Seconds of a call of the solver below which the next call takes four times as much."""


@dataclass(frozen=True)
class LowRankMaxima:
    """The solutions of MAP problems under low-rank noise.

    Attributes
    ----------
    values : max_x {phi(x) + s sum_i gamma_i(x_i)}, gamma_i(x_i) ~ Gumbel(-c) independent, shape
        (M,): the sum-unary U with s = 1 (Thesis eq. 2.7), the average-unary L with s = 1 / terms
        (eq. 2.13).
    states : the maximisers, shape (M, n), in the smallest unsigned type.
    noise_at_max : sum_i gamma_i(x_i*), not scaled by s, shape (M,).
    scale : `sum` or `average`.
    noisy : variables i of the sum; each has two states or more.
    graph, guarantee : of the solver.
    """

    values: Floats
    states: npt.NDArray[np.unsignedinteger[Any]]
    noise_at_max: Floats
    scale: Scale
    noisy: tuple[int, ...]
    graph: FactorGraph
    guarantee: Guarantee

    @property
    def terms(self) -> int:
        """Number of noise terms at a configuration: the n of eqs. 2.8 and 2.14."""
        return len(self.noisy)

    @property
    def map_calls(self) -> int:
        """Number M of MAP problems solved."""
        return int(self.values.size)

    @cached_property
    def undetermined(self) -> tuple[int, ...]:
        """Variables whose states the noisy ones do not determine."""
        return undetermined(self.graph, self.noisy)


def low_rank_maxima(
    solver: MapSolver,
    count: int,
    seed: np.random.SeedSequence,
    *,
    scale: Scale = "sum",
    noisy: Sequence[int] | None = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> LowRankMaxima:
    """Solve `count` MAP problems, each under its own noise on the states of the variables.

    The result depends only on `seed` and `count`; the first maxima do not depend on how many
    follow.

    Parameters
    ----------
    solver : prepared for the model.
    count : number M of perturbations.
    seed : root of the random streams.
    scale : `sum` for upper bounds, `average` for lower bounds.
    noisy : variables that get noise, by default all; those with one state never get any.
    jobs : threads.
    progress : called with the number of MAP problems just solved.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    WorkFailed : an approximate solver found no configuration in some of the problems.
    """
    if count < 1:
        raise InputError(f"the number of perturbations is {count}", "it must be 1 or more")
    graph = solver.graph
    cardinalities = graph.cardinalities
    chosen = [i for i in sorted(set(range(len(cardinalities)) if noisy is None else noisy)) if cardinalities[i] > 1]
    offsets = np.concatenate([[0], np.cumsum(cardinalities)])
    columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen] or [np.arange(0)])
    factor = 1.0 if scale == "sum" else 1 / max(1, len(chosen))
    values, at_max = np.empty(count), np.empty(count)
    states = np.empty((count, len(cardinalities)), np.min_scalar_type(max(cardinalities) - 1))

    rows = max(1, min(BLOCK, BLOCK_ENTRIES // int(offsets[-1])))
    blocks = [slice(start, min(start + rows, count)) for start in range(0, count, rows)]

    with Threads(jobs) as threads:
        pace = Pace(threads)

        def solve(block: slice, child: np.random.SeedSequence) -> int:
            noise = np.zeros((block.stop - block.start, offsets[-1]))
            noise[:, columns] = gumbel(np.random.default_rng(child), noise.shape[0], columns.size)
            values[block], found = pace.maximise(solver, noise if factor == 1 else factor * noise)
            at_max[block] = np.take_along_axis(noise, offsets[chosen] + found[:, chosen], axis=1).sum(axis=1)
            states[block] = found
            return int(noise.shape[0])

        threads.run(solve, blocks, seed.spawn(len(blocks)), progress=progress)
    check_found(values, solver)
    return LowRankMaxima(values, states, at_max, scale, tuple(chosen), graph, solver.guarantee)


class Pace:
    """Gives a solver few problems at a time while it is slow, so that Ctrl-C soon takes effect."""

    def __init__(self, threads: Threads) -> None:
        self._rows, self._threads = 1, threads

    def maximise(self, solver: MapSolver, noise: Floats) -> tuple[Floats, Ints]:
        """The result of `solver.maximise`.

        Raises
        ------
        CancelledError : the work has been interrupted.
        """
        parts, start = [], 0
        while start < len(noise):
            if self._threads.stopped:
                raise CancelledError
            rows, watch = self._rows, Stopwatch()
            parts.append(solver.maximise(noise[start : start + rows]))
            start += rows
            if watch.seconds < QUICK:
                self._rows = min(4 * rows, BLOCK)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def check_found(values: Floats, solver: MapSolver) -> None:
    """Check that a solver found configurations: no value, of shape (problems,), may be `-inf`.

    Raises
    ------
    NoConfiguration : an exact solver found none in any problem.
    WorkFailed : a solver found none in some of the problems.
    """
    failed = int((values == -np.inf).sum())
    if failed == values.size and solver.guarantee == "exact":
        raise NoConfiguration()
    if failed:
        raise WorkFailed(f"{solver.name} found no possible configuration in {failed} of {values.size} MAP problems")
