"""Full-rank perturb-and-MAP: independent Gumbel noise on every configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.models.factor_graph import Model

CLOCKS = 2**25
"""Most draws in one call of the kernel, a tenth of a second; Ctrl-C takes effect between calls."""

Race = Callable[[np.random.Generator, slice], None]
"""Runs the clocks of one block of configurations in the races of consecutive perturbations."""


GROUPS = 32
"""Most groups; each has a random stream."""


def groups(count: int) -> list[slice]:
    """Split `count` perturbations into groups of consecutive ones, the larger groups first."""
    return [slice(int(g[0]), int(g[-1]) + 1) for g in np.array_split(np.arange(count), min(GROUPS, count))]


def streams(count: int, seed: np.random.SeedSequence) -> list[np.random.Generator]:
    """The random stream of each group of `count` perturbations."""
    return [np.random.default_rng(child) for child in seed.spawn(len(groups(count)))]


def rounds(count: int, most: int) -> Iterator[list[slice]]:
    """Split groups into parts of at most `most` perturbations: all first parts, all second, ...

    Each round is a list of parts, one for each of the first groups; later rounds may have fewer.
    """
    whole = groups(count)
    for offset in range(0, whole[0].stop, most):
        parts = [slice(g.start + offset, min(g.start + offset + most, g.stop)) for g in whole]
        yield [part for part in parts if part.start < part.stop]


@dataclass(frozen=True)
class PerturbedMaxima:
    """The solutions of MAP problems under full-rank noise.

    Attributes
    ----------
    values : max_x {phi(x) + gamma(x)}, gamma ~ Gumbel(-c) independent, shape (M,); each is
        distributed as Gumbel(ln Z - c), whose mean is ln Z (Thesis eq. 2.1').
    states : index of each maximising configuration, shape (M,); exact samples of p (eq. 2.2').
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
    progress: Tick | None = None,
) -> PerturbedMaxima:
    """Solve `count` MAP problems, each under its own noise on every configuration, in one sweep.

    The maximum of phi + gamma is a race of exponential clocks with rates exp(phi): each
    configuration costs one exponential draw for each perturbation. The result depends only on
    `seed` and `count`.

    Parameters
    ----------
    model : anything that can be enumerated.
    count : number M of perturbations.
    seed : root of the random streams.
    jobs : threads.
    max_configurations : largest number of configurations to enumerate.
    progress : called with the number of clocks just run, of |X| M in all.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration is possible.
    """
    if count < 1:
        raise InputError(f"the number of perturbations is {count}", "it must be 1 or more")
    enumeration = Enumeration(model, max_configurations)
    best = np.full(count, -np.inf)
    winner = np.full(count, -1, np.int64)
    highest = -np.inf

    def races() -> Iterator[tuple[int, Race]]:
        nonlocal highest
        start = 0
        for block in enumeration.blocks():
            top = float(block.max())
            if top > -np.inf:
                highest = max(highest, top)
                with np.errstate(over="ignore", invalid="ignore"):
                    waits = np.exp(top - block)
                yield block.size, partial(_race, waits, top, start, best, winner)
            start += block.size

    run_races(races(), count, seed, jobs, progress)
    if highest == -np.inf:
        raise NoConfiguration()
    return PerturbedMaxima(best - np.euler_gamma, winner, highest)


def _race(
    waits: Floats, top: float, start: int, best: Floats, winner: Ints, stream: np.random.Generator, part: slice
) -> None:
    from thesis_cli.perturbation.tricks import clock_kernels

    clock_kernels.race(stream, waits, top, start, best[part], winner[part])


def run_races(
    races: Iterable[tuple[int, Race]], count: int, seed: np.random.SeedSequence, jobs: int, progress: Tick | None
) -> None:
    """Run the clocks of all configurations, block after block, in the races of all perturbations.

    Parameters
    ----------
    races : for each block its number of configurations and the function that runs their clocks.
    count : number M of perturbations.
    seed, jobs, progress : as for `perturbed_maxima`.
    """
    generators = streams(count, seed)
    with Threads(jobs) as threads:
        for size, race in races:
            run = partial(_ran, race, size)
            for parts in rounds(count, max(1, CLOCKS // size)):
                threads.run(run, generators[: len(parts)], parts, progress=progress)


def _ran(race: Race, size: int, stream: np.random.Generator, part: slice) -> int:
    race(stream, part)
    return int(part.stop - part.start) * size
