"""Maxima under constraints on all bits where few or many of them hold, exact at both ends.

Few constraints take an axis each in a pass over a narrow model. Many leave few configurations, which
are listed. Between the ends, the maxima lie between those of the two levels that are known, since
each level's configurations are among those of the level before.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.inference.enumeration import layout_of
from thesis_cli.inference.parity.bands import ENTRY_SECONDS
from thesis_cli.inference.parity.constraints import HashLimits, ParityMaxima, nested
from thesis_cli.inference.parity.frontier import Constraints, Frontier
from thesis_cli.models.factor_graph import FactorGraph

MOST_BITS = 62
"""Bits that an integer packs, with one to spare for a right side."""
GAP = 6
"""Most levels between the two ends; the bounds there are loose."""
LARGEST, DEEPEST = 20, 26
"""log2 of the most entries of a table, and of the most configurations that are listed for a hash."""
TERM_SECONDS = 1.5e-9
"""Seconds for each factor of a configuration that is listed."""


class Ends:
    """Reach of the ends of a model within a time.

    Parameters
    ----------
    graph : any model of at most 62 bits.
    seconds : time limit of one hash.
    memory : bytes.

    Attributes
    ----------
    few : the most constraints that a pass takes; -1 if all configurations are listed.
    many : the fewest after which configurations are listed.

    Raises
    ------
    ModelTooLarge : there are too many bits, or too many levels between the ends.
    """

    def __init__(self, graph: FactorGraph, seconds: float, memory: int) -> None:
        self.frontier = Frontier(graph)
        bits, width = self.frontier.bits, self.frontier.log_entries
        entry, listed = 4 * ENTRY_SECONDS * len(self.frontier.order), 2 * TERM_SECONDS * (len(graph.factors) + 20)
        room = min(LARGEST, math.log2(memory / 32), math.log2(seconds / entry)) - width
        self.few = max(0, min(bits, math.floor(room)))
        self.many = max(0, bits - max(0, math.floor(min(DEEPEST, math.log2(seconds / listed)))))
        if self.many <= self.few:  # where a pass for a level less costs what listing the next level saves
            even = (math.log2(listed / entry) + bits - width) / 2
            self.many = min(max(self.many, round(even)), self.few + 1)
            self.few = self.many - 1
        if bits > MOST_BITS or self.many - self.few - 1 > GAP:
            raise ModelTooLarge(
                f"of the maxima under 0 to {bits} constraints, those under {self.few + 1} to {self.many - 1} are out "
                "of reach",
                "allow more time or fewer samples",
            )


def dense_maxima(
    graph: FactorGraph, count: int, rng: np.random.Generator, limits: HashLimits, progress: Tick | None = None
) -> ParityMaxima:
    """Maxima at all levels of hashes of all bits, exact at both ends and bounded between them.

    Parameters
    ----------
    graph : a narrow model of few bits.
    count : number T of hashes.
    rng : source of the hashes.
    limits : `seconds` is what the work may be predicted to take.
    progress : called with the number of hashes just done.

    Raises
    ------
    ModelTooLarge : as for `Ends`.
    NoConfiguration : no configuration is possible.
    InputError : `count` is below 1.
    """
    if count < 1:
        raise InputError(f"the number of hashes is {count}", "it must be 1 or more")
    ends = Ends(graph, limits.seconds / count, limits.memory)
    bits = ends.frontier.bits
    values, bounds = np.empty((count, bits + 1)), np.empty((count, bits + 1))

    def solve(row: int, own: np.random.Generator) -> int:
        every = Constraints(own.random((bits, bits)) < 0.5, own.random(bits) < 0.5)
        values[row], bounds[row] = _levels(ends, every)
        return 1

    with Threads(limits.jobs) as threads:
        threads.run(solve, range(count), rng.spawn(count), progress=progress)
    if values[0, 0] == -math.inf:
        raise NoConfiguration()
    return ParityMaxima(values, bounds, np.arange(bits + 1), graph.size, count * bits + 1)


def _levels(ends: Ends, every: Constraints) -> tuple[Floats, Floats]:
    """Largest log-potentials that are known at each level, and upper bounds, shapes (bits + 1,)."""
    bits = ends.frontier.bits
    values = np.full(bits + 1, -np.inf)
    values[ends.many :] = listed_maxima(ends.frontier, every, ends.many)
    bounds = values.copy()
    for level in range(min(ends.few, ends.many - 1) + 1):
        values[level] = bounds[level] = ends.frontier.maximum(Constraints(every.matrix[:level], every.right[:level]))
    between = slice(ends.few + 1, ends.many)
    values[between] = values[ends.many]
    bounds[between] = bounds[ends.few]
    return values, bounds


def listed_maxima(frontier: Frontier, every: Constraints, level: int) -> Floats:
    """Maxima under the first `level` constraints, and each number above; shape (bits - level + 1,)."""
    from thesis_cli.inference.parity.kernels import listed_sweep

    place = np.empty(len(frontier.order), np.int64)
    place[frontier.order] = np.cumsum(frontier.widths) - frontier.widths
    best = np.full((1, frontier.bits - level + 1), -np.inf)
    solution = solutions(Constraints(every.matrix[:level], every.right[:level]))
    if solution is not None:
        rows = packed(every.matrix[level:]) | every.right[level:].astype(np.int64) << MOST_BITS
        listed_sweep(*solution, place, rows, layout_of(frontier.graph), best[0])
    return np.asarray(nested(best)[0])


def packed(matrix: Bools) -> Ints:
    """Rows of bits as integers, the first bit lowest; shape (rows, bits) -> (rows,)."""
    return np.asarray(matrix.astype(np.int64) @ (1 << np.arange(matrix.shape[1])), np.int64)


def solutions(constraints: Constraints) -> tuple[int, Ints] | None:
    """A solution and a basis of the differences of all, shape (dimension,), packed as bits; None if there
    is no solution.
    """
    bits = constraints.matrix.shape[1]
    pivots: dict[int, int] = {}  # row by its pivot, reduced so that no other row has that bit
    for row, right in zip(packed(constraints.matrix).tolist(), constraints.right.tolist(), strict=True):
        row |= int(right) << bits
        for bit, other in pivots.items():
            if row >> bit & 1:
                row ^= other
        left = row & ((1 << bits) - 1)
        if not left:
            if row:
                return None
            continue
        pivot = left.bit_length() - 1
        pivots = {bit: other ^ row if other >> pivot & 1 else other for bit, other in pivots.items()}
        pivots[pivot] = row
    first = sum(1 << bit for bit, row in pivots.items() if row >> bits & 1)
    free = [bit for bit in range(bits) if bit not in pivots]
    basis = [1 << j | sum(1 << bit for bit, row in pivots.items() if row >> j & 1) for j in free]
    return first, np.array(basis, np.int64)
