"""Search length by length, and within a length over growing sets of operations: for searches in
plain Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.program import Kept, Program
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Stop

SMALLEST = 5
"""Operations in the first set; each further set has twice as many as the one before."""


def doubling_sets(order: Order) -> Iterator[tuple[tuple[int, ...], frozenset[int]]]:
    """Sets of the most probable operations, each twice as large as the last, up to all (Sort and
    add, section 5.4.4).

    Yields
    ------
    The set, by falling probability, and what is new in it: programs without a new operation were
    seen before.
    """
    operations, before, size = order.operations, 0, SMALLEST
    while before < len(operations):
        yield operations[:size], frozenset(operations[before:size])
        before, size = size, 2 * size


class LengthByLength(ABC):
    """One task, length by length, so that the first program found is shortest.

    Attributes
    ----------
    clock : started with the search; it counts what `Solution.nodes` is.
    """

    def __init__(self, task: Task, limits: Limits, semantics: Semantics) -> None:
        self.task, self.limits, self.semantics = task, limits, semantics
        self.clock = Clock(limits)

    @abstractmethod
    def programs(self, length: int, active: Sequence[int], fresh: frozenset[int]) -> Iterator[Program]:
        """Programs of a length that fit, over the active operations, with at least one fresh one;
        each once.

        A program may be left out if another one fits as well.

        Raises
        ------
        TimeoutError : a limit of the clock is reached.
        MemoryError : the memory is used up.
        KeyboardInterrupt : the user has stopped it.
        """

    def solve(self, name: str, order: Order) -> Solution:
        """Search; a search that is cut short keeps what it found. The plain interpreter checks
        every program."""
        kept = Kept(self.task.inputs, self.semantics, self.limits.distinct)
        exhausted = 0
        found_after: float | None = None
        stopped: Stop = ""
        try:
            for length in range(1, self.limits.max_length + 1):
                every = (p for active, fresh in doubling_sets(order) for p in self.programs(length, active, fresh))
                fitting = (program for program in every if check(program, self.task, self.semantics))
                for program in fitting:
                    found_after = self.clock.seconds if found_after is None else found_after
                    kept.add(program)
                    if len(kept.programs) == self.limits.count:
                        break
                if len(kept.programs) == self.limits.count:
                    break
                exhausted = length
                if self.limits.shortest and kept.programs:
                    break
        except TimeoutError:
            stopped = self.clock.stop
        except MemoryError:
            stopped = "memory"
        except KeyboardInterrupt:
            stopped = "interrupted"
        programs, seconds = tuple(kept.programs), self.clock.seconds
        return Solution(programs, name, self.clock.nodes, seconds, exhausted, stopped, found_after, tuple(kept.same))

    def look(self) -> None:
        """Look at the clock. Raises TimeoutError if a limit is reached."""
        if self.clock.is_up:
            raise TimeoutError
