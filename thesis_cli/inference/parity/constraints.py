"""Maxima of a model under random parity constraints, each of which about halves what is left.

A hash of n bits is h(x) = A x + b (mod 2) with A and b uniform (Ermon et al. 2013, section 4), so
that any two configurations are hashed independently. Level i keeps the configurations whose first i
bits of h are 0. One hash serves all its levels: the analysis adds up the failures of the levels,
which need not be independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.inference.enumeration import Enumeration
from thesis_cli.models.factor_graph import Model

WORK = 2**25
"""Most steps of one call of the kernel, a tenth of a second; Ctrl-C takes effect between calls."""


class HashLimits(NamedTuple):
    """Limits on the work of maxima under parity constraints.

    Attributes
    ----------
    max_configurations : most configurations to enumerate; the default is a minute for 100 hashes.
    seconds : time limit of all MAP problems that are not enumerated.
    memory : bytes.
    jobs : threads; results do not depend on them, unless the seconds end the work.
    """

    max_configurations: int = 2**26
    seconds: float = 60.0
    memory: int = DEFAULT_MEMORY
    jobs: int = 1


_DEFAULT = HashLimits()


class ParityMaxima(NamedTuple):
    """Maxima under i constraints of each hash, for several i.

    Attributes
    ----------
    values : log-potentials of the best configurations found, in nats, shape (T, L) for T hashes and
        L numbers of constraints; -inf where none was found.
    bounds : upper bounds on the maxima, the same shape; equal to `values` where these are maxima.
    levels : numbers of constraints, from 0 up, shape (L,).
    configurations : number of configurations of the model.
    calls : number of MAP problems that gave them.
    independent : any two configurations satisfy constraints independently. Otherwise each alone
        does with probability 2^-i, and no more is known.
    """

    values: Floats
    bounds: Floats
    levels: Ints
    configurations: int
    calls: int
    independent: bool = True

    @property
    def exact(self) -> Bools:
        """Whether each value is a maximum, shape (T, L)."""
        return np.asarray(self.values >= self.bounds)


def bits_of(configurations: int) -> int:
    """Bits of an index of so many configurations, at least 1."""
    return max(1, (configurations - 1).bit_length())


def enumerated_maxima(
    model: Model,
    count: int,
    rng: np.random.Generator,
    *,
    limits: HashLimits = _DEFAULT,
    progress: Tick | None = None,
) -> ParityMaxima:
    """Exact maxima at all levels of all hashes, by one sweep over the configurations.

    The hash takes the bits of a configuration's index, the fewest that tell configurations apart,
    whatever the numbers of states.

    Parameters
    ----------
    model : anything that can be enumerated.
    count : number T of hashes.
    rng : source of the hashes.
    limits : largest number of configurations, and threads; the others do not matter here.
    progress : called with the number of hashes just computed, of |X| T in all.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration is possible.
    InputError : `count` is below 1.
    """
    from thesis_cli.inference.parity.kernels import hashed_maxima

    if count < 1:
        raise InputError(f"the number of hashes is {count}", "it must be 1 or more")
    enumeration = Enumeration(model, limits.max_configurations)
    bits = bits_of(model.size)
    steps = np.bitwise_xor.accumulate(rng.integers(0, 2**bits, (count, bits)), axis=1)
    hashes = rng.integers(0, 2**bits, count)
    best = np.full((count, bits + 1), -np.inf)

    def share(block: Floats, start: int, part: slice) -> int:
        hashed_maxima(block, start, steps[part], hashes[part], best[part])
        return int(part.stop - part.start) * block.size

    start = 0
    with Threads(limits.jobs) as threads:
        for block in enumeration.blocks():
            size = max(1, min(-(-count // limits.jobs), WORK // block.size))
            parts = [slice(first, min(first + size, count)) for first in range(0, count, size)]
            blocks, starts = [block] * len(parts), [start] * len(parts)
            threads.run(share, blocks, starts, parts, progress=progress)
            start += block.size
    values = nested(best)
    if values[0, 0] == -np.inf:
        raise NoConfiguration()
    return ParityMaxima(values, values, np.arange(bits + 1), model.size, count * bits + 1)


def nested(best: Floats) -> Floats:
    """Maxima among configurations that reach level i or more, from those that reach exactly it; both of
    shape (batch, levels).
    """
    return np.ascontiguousarray(np.maximum.accumulate(best[:, ::-1], axis=1)[:, ::-1])
