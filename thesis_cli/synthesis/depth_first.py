"""Searches that run programs line by line: depth first, and over a growing set of operations (section 5.4.4)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.dsl import DEFAULT, INT, OPERATIONS, Semantics, Value
from thesis_cli.synthesis.program import Line, Program
from thesis_cli.synthesis.solver import Limits, Order, Solution, Stop
from thesis_cli.synthesis.task import Example, Task, check

Lanes = npt.NDArray[np.int16]

SLICE = 2**16
"""Lines tried between looks at the clock: some milliseconds."""


class Pruning(IntFlag):
    """What a search may leave out. Of each, the first of the shortest programs in depth-first order survives.

    It has no line that it does not need, gives a value at every line, and makes no value twice: the second could be
    replaced by the first, and its line dropped. Neither arguments that change places nor neighbouring lines that do
    lead to an earlier program that does the same.
    """

    UNUSED = 1
    """Programs with a line whose result is not taken, and beginnings that lead to no others."""
    COMMUTED = 2
    """ZIPWITH (+), (*), MIN and MAX with the later of two variables first."""
    PERMUTED = 4
    """A line that does not take the result of the line above it and would stand before it in order."""
    REPEATED = 8
    """Beginnings whose last line gives a value, over all examples, that an earlier variable has."""
    IMPOSSIBLE = 16
    """Beginnings whose last line gives NULL, or a number out of range, on an example."""
    MISTYPED = 32
    """Last lines that do not give the type of the output."""


ALL = Pruning(63)
NONE = Pruning(0)


class Clock:
    """Time since it was made, and whether it is up."""

    def __init__(self, timeout: float | None) -> None:
        self._start = time.perf_counter()
        self._timeout = timeout

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start

    @property
    def is_up(self) -> bool:
        """Whether the timeout has passed."""
        return self._timeout is not None and self.seconds >= self._timeout


def pack(columns: Sequence[Sequence[Value]], rows: int) -> Lanes:
    """Values in the lanes that compiled code reads.

    Parameters
    ----------
    columns : values over M examples, shape (V, M).
    rows : at least V; those after V are empty.

    Returns
    -------
    A pool, shape (rows, `row_size(M)`): see `operation_kernels`.
    """
    from thesis_cli.synthesis.lanes import NULL, WIDTH, row_size

    examples = len(columns[0])
    pool = np.full((rows, row_size(examples)), NULL)
    for row, column in enumerate(columns):
        for m, value in enumerate(column):
            numbers = (value,) if isinstance(value, int) else value
            pool[row, m * WIDTH : m * WIDTH + len(numbers)] = numbers
            pool[row, examples * WIDTH + m] = len(numbers)
    return pool


def refuse(task: Task, semantics: Semantics) -> None:
    """Refuse what does not fit into lanes.

    Raises
    ------
    InputError : a list that is too long.
    """
    from thesis_cli.synthesis.lanes import WIDTH

    values = [value for example in task.examples for value in (*example.inputs, example.output)]
    longest = max((len(value) for value in values if not isinstance(value, int)), default=0)
    if longest >= WIDTH:
        problem = f"a compiled search takes no list of {longest} numbers"
        raise InputError(problem, f"at most {WIDTH - 1} are wanted")


@cache
def prepare() -> None:
    """Compile the search, or load it, so that no clock counts that; the first time takes some ten seconds."""
    task = Task("any", (Example(((0,),), 0),))
    Examination(task, DEFAULT, 1, [0], [True]).advance()


class Examination:
    """Depth-first examination of the programs of one length, a slice at a time.

    Parameters
    ----------
    task, semantics : what fits.
    length : T, number of lines.
    operations : ids, in the order in which they are tried.
    fresh : whether an operation is one of those of which a program has at least one; shape of `operations`.
    count : programs at which it ends.
    pruning : what it leaves out.
    lazily : whether a last line is run on an example only if it fits those before it.
    """

    def __init__(
        self,
        task: Task,
        semantics: Semantics,
        length: int,
        operations: Sequence[int],
        fresh: Sequence[bool],
        count: int = 1,
        pruning: Pruning = ALL,
        lazily: bool = True,
    ) -> None:
        from thesis_cli.synthesis.depth_first_kernels import Problem, State
        from thesis_cli.synthesis.operation_kernels import bounds_of

        inputs = len(task.inputs)
        columns = [[example.inputs[i] for example in task.examples] for i in range(inputs)]
        pool = pack(columns, inputs + length + 1)
        pool[-1] = pack([[example.output for example in task.examples]], 1)
        variables = inputs + length
        self._task = task
        self._problem = Problem(
            pool=pool,
            bounds=bounds_of(semantics),
            types=np.array([kind is INT for kind in task.inputs] + [False] * length),
            result_is_int=task.output is INT,
            order=np.array(operations, dtype=np.int64),
            fresh=np.array(fresh, dtype=np.bool_),
            pruning=int(pruning),
            lazily=lazily,
        )
        self._state = State(
            counts=np.zeros(4, dtype=np.int64),
            cursor=np.zeros(length, dtype=np.int64),
            sizes=np.array([-1, *[0] * (length - 1)]),
            uses=np.zeros(variables, dtype=np.int64),
            valid=np.ones(length + 1, dtype=np.bool_),
            choices=np.zeros((length, len(operations) * variables**2, 3), dtype=np.int64),
            found=np.zeros((count, length, 3), dtype=np.int64),
        )

    def advance(self, budget: int = SLICE) -> bool:
        """Examine some more programs; whether there is reason to go on."""
        from thesis_cli.synthesis.depth_first_kernels import PAUSED, search

        return bool(search(self._problem, self._state, budget) == PAUSED)

    @property
    def nodes(self) -> int:
        """Programs examined so far."""
        return int(self._state.counts[2])

    @property
    def programs(self) -> list[Program]:
        """Programs found so far, in order."""
        return [
            Program(self._task.inputs, tuple(_line(*map(int, row)) for row in rows))
            for rows in self._state.found[: self._state.counts[3]]
        ]


def _line(id: int, x: int, y: int) -> Line:
    return Line(id, (x, y)[: len(OPERATIONS[id].inputs)])


@dataclass(frozen=True)
class DepthFirst:
    """Depth-first search (appendix D.4), length by length, so that the first program found is shortest.

    Parameters
    ----------
    pruning : what it leaves out.

    Notes
    -----
    `nodes` counts each program once, at its own length; with no pruning they are all programs of these lengths.
    """

    pruning: Pruning = ALL
    name: str = "dfs"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        return Run(self.name, task, limits, semantics, self.pruning).over([order.operations], 1, limits.max_length)


@dataclass(frozen=True)
class SortAndAdd:
    """Depth-first search over an active set that grows by the next most probable attribute (section 5.4.4).

    The search of a set goes up to the greatest length before the set grows, so that what it finds need not be
    shortest: it is the shortest over that set. Programs over an earlier set, which have been examined, are left out.

    Parameters
    ----------
    pruning : what else it leaves out.
    """

    pruning: Pruning = ALL
    name: str = "sort-and-add"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        run = Run(self.name, task, limits, semantics, self.pruning)
        return run.over(active_sets(order), 1, limits.max_length)


def active_sets(order: Order) -> list[tuple[int, ...]]:
    """Sets of operations that attributes enable, from the most probable one to all of them; each larger than the last.

    Operations stand in their order in each.
    """
    sets: list[tuple[int, ...]] = []
    active: set[int] = set()
    for attribute in order.attributes:
        active.add(attribute)
        chosen = tuple(id for id in order.operations if active.issuperset(OPERATIONS[id].attributes))
        if len(chosen) > (len(sets[-1]) if sets else 0):
            sets.append(chosen)
    return sets


class Run:
    """One search: its clock, and what it found and examined so far.

    Attributes
    ----------
    name : of the solver that is to answer.
    clock : since it began.
    programs : those found, in order; all fit.
    nodes : programs examined.
    exhausted : every program of at most this length was examined, or is left out with reason.

    Raises
    ------
    InputError : a range or a list that does not fit into lanes.
    """

    def __init__(self, name: str, task: Task, limits: Limits, semantics: Semantics, pruning: Pruning = ALL) -> None:
        refuse(task, semantics)
        prepare()
        self.name, self._task, self._limits = name, task, limits
        self._semantics, self._pruning = semantics, pruning
        self.clock = Clock(limits.timeout)
        self.programs: list[Program] = []
        self.nodes = 0
        self.exhausted = 0

    def over(self, sets: Sequence[tuple[int, ...]], first: int, last: int, stopped: Stop = "") -> Solution:
        """Search depth first over sets of operations, each with those before it, until enough programs are found.

        Parameters
        ----------
        sets : in the order of the search; each holds the one before it. Programs over that are left out.
        first, last : lengths, least and greatest.
        stopped : what cut short what went before.
        """
        wanted = len(self.programs) + self._limits.count
        known: frozenset[int] = frozenset()
        try:
            for operations in sets:
                fresh = [id not in known for id in operations]
                for length in range(first, last + 1):
                    if self.clock.is_up or not self.examine(length, operations, fresh, wanted - len(self.programs)):
                        return self.solution("memory, then timeout" if stopped == "memory" else "timeout")
                    if len(self.programs) == wanted:
                        return self.solution(stopped)
                    if len(operations) == len(OPERATIONS):
                        self.exhausted = length
                known = frozenset(operations)
        except KeyboardInterrupt:
            return self.solution("interrupted")
        return self.solution(stopped)

    @property
    def complete(self) -> bool:
        """Whether as many programs as are wanted were found."""
        return len(self.programs) >= self._limits.count

    @property
    def shortest(self) -> int:
        """Length of the shortest program found; one more than the greatest length if there is none."""
        return min(map(len, self.programs), default=self._limits.max_length + 1)

    def solution(self, stopped: Stop) -> Solution:
        """What came of it: the shortest programs, as many as are wanted."""
        programs = tuple(sorted(self.programs, key=len)[: self._limits.count])
        return Solution(programs, self.name, self.nodes, self.clock.seconds, self.exhausted, stopped)

    def add(self, programs: Sequence[Program]) -> None:
        """Take programs that compiled code found, if the plain interpreter agrees."""
        self.programs += [p for p in programs if check(p, self._task, self._semantics)]

    def examine(self, length: int, operations: Sequence[int], fresh: Sequence[bool], wanted: int) -> bool:
        """Search one length; whether it ended in time."""
        examination = Examination(self._task, self._semantics, length, operations, fresh, wanted, self._pruning)
        try:
            while examination.advance():
                if self.clock.is_up:
                    return False
        finally:
            self.nodes += examination.nodes
            self.add(examination.programs)
        return True
