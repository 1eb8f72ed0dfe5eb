"""Full-rank perturb-and-MAP: independent Gumbel noise on every configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from thesis_cli.errors import InputError
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration, Progress
from thesis_cli.models.factor_graph import Floats, Model

GROUPS = 32
"""Perturbations share this many random streams at most, so that cores can share the work."""


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
    states: npt.NDArray[np.int64]
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
    progress : called with the number of configurations just swept.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    InputError : no configuration is possible.
    """
    if count < 1:
        raise InputError(f"{count} perturbations", "at least one is wanted")
    enumeration = Enumeration(model, max_configurations)
    best = np.full(count, -np.inf)
    winner = np.full(count, -1, np.int64)
    parts = np.array_split(np.arange(count), min(GROUPS, count))
    groups = [
        (np.random.default_rng(child), best[part[0] : part[-1] + 1], winner[part[0] : part[-1] + 1])
        for child, part in zip(seed.spawn(len(parts)), parts, strict=True)
    ]
    start, highest = 0, -np.inf
    with ThreadPoolExecutor(jobs) as pool:
        for block in enumeration.blocks():
            top = float(block.max())
            highest = max(highest, top)
            if top > -np.inf:
                with np.errstate(over="ignore"):
                    waits = np.exp(top - block)
                join = partial(_join, waits, top, start)
                for _ in pool.map(join, groups) if jobs > 1 else map(join, groups):
                    pass
            start += block.size
            if progress:
                progress(block.size)
    if highest == -np.inf:
        raise InputError("no configuration is possible (Z = 0)", "a configuration of finite potential is wanted")
    return PerturbedMaxima(best - np.euler_gamma, winner, highest)


def _join(
    waits: Floats, top: float, start: int, group: tuple[np.random.Generator, Floats, npt.NDArray[np.int64]]
) -> None:
    from thesis_cli.perturbation import clock_kernels

    rng, best, winner = group
    clock_kernels.race(rng, waits, top, start, best, winner)
