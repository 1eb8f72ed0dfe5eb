"""The noise of the copies of each variable (Hazan et al. eq. 19), drawn one variable at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.base.progress import Tick
from thesis_cli.inference.enumeration import starts
from thesis_cli.perturbation.expanded.kernels import CopyNoise
from thesis_cli.perturbation.noise import gumbel


def variable_noise(seed: np.random.SeedSequence, variable: int, copies: int, states: int) -> Floats:
    """Gumbel noise of mean 0 of the copies of one variable, shape (copies, states).

    It depends on no other variable; the first copies do not depend on how many follow.
    """
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, variable))
    return gumbel(np.random.default_rng(child), copies, states)


def copy_noise(
    cardinalities: Sequence[int],
    copies: int,
    seed: np.random.SeedSequence,
    memory: int = DEFAULT_MEMORY,
    progress: Tick | None = None,
) -> CopyNoise:
    """Draw the noise of all copies; variables with one state have none.

    Parameters
    ----------
    memory : bytes that the noise may take.
    progress : called with the number of copies just drawn.

    Raises
    ------
    InputError : there is no copy.
    ModelTooLarge : the noise takes more memory.
    """
    if copies < 1:
        raise InputError(f"the number of copies is {copies}", "it must be 1 or more")
    sizes = [copies * _numbers(k) for k in cardinalities]
    needed = bytes_of_copies(cardinalities, copies)
    if needed > memory:
        raise ModelTooLarge(
            f"{copies:,} copies of each variable take {bytes_text(needed)}, and {bytes_text(memory)} may be used",
            f"take {most_copies(cardinalities, memory):,} copies or fewer, or allow more memory",
        )
    places = starts(sizes)
    numbers, base = np.empty(places[-1]), np.zeros(len(sizes))
    for i, k in enumerate(cardinalities):
        own = numbers[places[i] : places[i + 1]]
        if k > 1:
            drawn = variable_noise(seed, i, copies, k)
            if k == 2:
                base[i] = drawn[:, 0].mean()
                np.subtract(drawn[:, 0], drawn[:, 1], out=own[:copies])
                own[:copies].sort()
                np.negative(own[:copies], out=own[:copies])
                np.cumsum(own[:copies], out=own[copies:])
            else:
                own[:] = drawn.reshape(-1)
        if progress:
            progress(copies)
    return CopyNoise(copies, places, numbers, base)


def coarser(noise: CopyNoise, cardinalities: Sequence[int], copies: int) -> CopyNoise:
    """The noise of fewer copies: means over runs of sorted differences, or the first copies."""
    places = starts([copies * _numbers(k) for k in cardinalities])
    numbers = np.empty(places[-1])
    ends = np.arange(copies + 1) * noise.copies // copies
    for i, k in enumerate(cardinalities):
        held, own = noise.numbers[noise.places[i] : noise.places[i + 1]], numbers[places[i] : places[i + 1]]
        if k == 2:
            sums = np.concatenate([[0.0], held[noise.copies :]])[ends]
            own[:copies] = np.diff(sums) / np.diff(ends)
            own[copies:] = own[:copies].cumsum()
        else:
            own[:] = held[: own.size]
    return CopyNoise(copies, places, numbers, noise.base)


def bytes_of_copies(cardinalities: Sequence[int], copies: int) -> int:
    """Bytes that the noise of so many copies of each variable takes, and the draws of one variable."""
    widest = max(cardinalities)
    return 8 * copies * (sum(map(_numbers, cardinalities)) + (2 * widest if widest > 1 else 0))


def most_copies(cardinalities: Sequence[int], memory: int) -> int:
    """Most copies of each variable whose noise fits into some bytes; at least 1."""
    return max(1, memory // max(1, bytes_of_copies(cardinalities, 1)))


def _numbers(states: int) -> int:
    """Numbers that are kept for each copy of a variable."""
    return states if states > 1 else 0
