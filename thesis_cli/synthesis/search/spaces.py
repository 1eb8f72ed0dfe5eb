"""Programs that a depth-first search examines, and those that it may leave out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import DEEPCODER, OPERATIONS, Language
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.refutation import may_end
from thesis_cli.synthesis.search.solver import Order


class Pruning(IntFlag):
    """Programs that a search may leave out. The first of the shortest programs, in depth-first
    order, is never left out.

    That program has no needless line, a value at every line, and no value twice: the second could
    be replaced by the first, and its line dropped. Swapping the arguments of a line, or two
    neighbouring lines, leads to no earlier program that does the same.
    """

    UNUSED = 1
    """Programs with a line whose result no line takes, and beginnings that lead only to such
    programs."""
    COMMUTED = 2
    """ZIPWITH with (+), (*), MIN or MAX whose first variable is the later one."""
    PERMUTED = 4
    """A line that does not take the result of the line above it and comes before it in order."""
    REPEATED = 8
    """Beginnings whose last line repeats, on all examples, the values of an earlier variable."""
    IMPOSSIBLE = 16
    """Beginnings whose last line gives NULL or leaves the range on an example."""
    MISTYPED = 32
    """Last lines of another type than the output."""
    UNFIT = 64
    """Last lines that cannot give the outputs, and beginnings that no last line makes fit."""


ALL = Pruning(127)
NONE = Pruning(0)


@dataclass(frozen=True)
class Space:
    """Programs of some operations, of which each has a cost; the cost of a program is the sum of
    those of its lines but the last.

    Attributes
    ----------
    operations : ids, in the order in which they are tried.
    fresh : whether each operation is new; every program has a new one. By default all are.
    costs : costs of these operations, ascending; 0 by default.
    least, most : the cost of a program is at least the first and below the second.
    """

    operations: tuple[int, ...]
    fresh: tuple[bool, ...] = ()
    costs: tuple[int, ...] = ()
    least: int = 0
    most: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "fresh", self.fresh or (True,) * len(self.operations))
        object.__setattr__(self, "costs", self.costs or (0,) * len(self.operations))

    def ends(self, task: Task, pruning: Pruning) -> npt.NDArray[np.bool_]:
        """Whether the last line can have an operation, for each of them."""
        output, mistyped, unfit = task.output, not pruning & Pruning.MISTYPED, not pruning & Pruning.UNFIT
        chosen = [OPERATIONS[id] for id in self.operations]
        lengthen = any(o.function.lengthens for o in chosen)
        found = [mistyped if o.output is not output else unfit or may_end(o, task, lengthen) for o in chosen]
        return np.array(found, dtype=np.bool_)


@cache
def every(language: Language) -> Space:
    """All programs of a language, operations by id."""
    return Space(tuple(operation.id for operation in language.operations))


EVERY = every(DEEPCODER)
"""All programs of the language of the thesis."""

UNIT, LEAST = 0.1, 1e-4
"""Logarithms of probabilities in a unit of cost, and the least probability that counts."""

SMALL, FIRST, GROWTH = 1e8, 1e6, 16.0
"""Programs of a length that has one band, programs of the first band of another length, and how many
times as many each further one brings it to, about."""


@lru_cache(maxsize=2**8)
def bands(order: Order, length: int) -> tuple[Space, ...]:
    """All programs of a length, in bands of falling probability.

    The cost of an operation is -ln p, p being the probability by which the order ranks it. The last
    line does not count: to try all operations there costs less than to come back to the lines above.
    """
    operations = order.operations
    probabilities = order.of_operations
    costs = tuple(round(-math.log(max(probabilities[id], LEAST)) / UNIT) for id in operations)
    weights = np.zeros(costs[-1] + 1)
    for id, cost in zip(operations, costs, strict=True):
        weights[cost] += 2.0 ** len(OPERATIONS[id].inputs)  # so many choices of arguments, about
    if weights.sum() ** length <= SMALL or costs[0] == costs[-1]:
        return (Space(operations),)
    sizes = weights.sum(keepdims=True)
    for _ in range(length - 1):
        sizes = np.convolve(sizes, weights)
    below = np.cumsum(sizes)  # programs of up to each cost
    steps = math.ceil(math.log(below[-1] / FIRST, GROWTH))
    ends = np.searchsorted(below, FIRST * GROWTH ** np.arange(steps)).tolist()
    ends = [0, *sorted({end + 1 for end in ends if end + 1 < len(below)}), len(below)]
    return tuple(Space(operations, (), costs, *ends[k : k + 2]) for k in range(len(ends) - 1))
