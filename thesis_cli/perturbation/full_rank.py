"""Full-rank perturb-and-MAP: independent Gumbel noise on every configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from thesis_cli.errors import InputError, NoConfiguration
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration, Progress
from thesis_cli.models.factor_graph import Floats, Model

GROUPS = 32
"""Perturbations share this many random streams at most, so that cores can share the work."""

CLOCKS = 2**25
"""Draws in one call of the compiled kernel, a tenth of a second, after which Ctrl-C is heard."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PerturbedMaxima:
    """What solving MAP under full-rank noise gave.

    Attributes
    ----------
    values : max_x {phi(x) + gamma(x)}, gamma ~ Gumbel(-c) independent, shape (M,); each is distributed
        as Gumbel(ln Z - c), whose mean is ln Z (Thesis eq. 2.1').
    states : number of the maximising configuration, shape (M,); exact samples of p (eq. 2.2').
    highest : max_x phi(x), the MAP value without noise.
    """

    values: Floats
    states: Ints
    highest: float


def perturbed_maxima(
    model: Model,
    count: int,
    seed: np.random.SeedSequence,
    *,
    jobs: int = 1,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Progress | None = None,
) -> PerturbedMaxima:
    """Solve `count` MAP problems, each under its own noise on every configuration, in one sweep.

    The maximum of phi + gamma is a race of exponential clocks with rates exp(phi): a configuration
    costs one exponential draw a perturbation. The result depends on `seed` and `count` alone.

    Parameters
    ----------
    model : anything that can be enumerated.
    count : number M of perturbations.
    seed : root of the random streams.
    jobs : threads.
    max_configurations : refuse a larger model.
    progress : called with the number of clocks just run, of |X| M in all.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration is possible.
    """
    if count < 1:
        raise InputError(f"{count} perturbations", "at least one is wanted")
    enumeration = Enumeration(model, max_configurations)
    best = np.full(count, -np.inf)
    winner = np.full(count, -1, np.int64)
    groups = np.array_split(np.arange(count), min(GROUPS, count))
    streams = [np.random.default_rng(child) for child in seed.spawn(len(groups))]
    start, highest = 0, -np.inf
    with ThreadPoolExecutor(jobs) as pool:
        for block in enumeration.blocks():
            top = float(block.max())
            highest = max(highest, top)
            with np.errstate(over="ignore", invalid="ignore"):
                waits = np.exp(top - block)
            step = max(1, CLOCKS // block.size)
            for first in range(0, len(groups[0]) if top > -np.inf else 0, step):
                parts = [group[first : first + step] for group in groups]
                join = partial(_join, waits, top, start, best, winner)
                for size in pool.map(join, streams, parts) if jobs > 1 else map(join, streams, parts):
                    if progress:
                        progress(size * block.size)
            start += block.size
    if highest == -np.inf:
        raise NoConfiguration()
    return PerturbedMaxima(best - np.euler_gamma, winner, highest)


def _join(
    waits: Floats, top: float, start: int, best: Floats, winner: Ints, stream: np.random.Generator, part: Ints
) -> int:
    """Let a block's clocks join the races of the perturbations `part`, consecutive; returns how many."""
    from thesis_cli.perturbation import clock_kernels

    if part.size:
        where = slice(part[0], part[-1] + 1)
        clock_kernels.race(stream, waits, top, start, best[where], winner[where])
    return part.size
