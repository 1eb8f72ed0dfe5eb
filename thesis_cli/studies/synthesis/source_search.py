"""The source's searches (Thesis section 5.4.4), counted: what they find, and how many programs they examine.

They examine all programs of a length, so how many come before a program depends on types alone, and `Programs`
counts them. Only programs that may fit are run: a search that leaves out those that cannot, and those for which an
earlier or a shorter one fits (`spaces.Pruning`), finds the same first program. `DepthFirst(NONE)` and
`SortAndAdd(NONE, again=True)` are the searches themselves, which examine some 5e7 programs a second; they give the
same programs and numbers of programs, and stop at the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from thesis_cli.synthesis.language.dsl import DEFAULT, INT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.search.depth_first import SLICE, Clock, Examination, active_sets
from thesis_cli.synthesis.search.solver import Limits, Order, Solution
from thesis_cli.synthesis.search.spaces import Space

STRIDE = 4 * SLICE
"""Lines tried before the search looks at its limit."""

Place = Sequence[int]
"""A line: place of its operation among those of the search, first and last argument."""


class Programs:
    """All programs of T lines over some operations, in depth-first order.

    A search tries lines one at a time, and counts all programs that a last line makes of a beginning at once.

    Parameters
    ----------
    task : gives the types of the inputs.
    operations : ids, in the order in which they are tried.
    length : T.
    """

    def __init__(self, task: Task, operations: Sequence[int], length: int) -> None:
        self._inputs = [kind is INT for kind in task.inputs]
        self._length = length
        self._operations = [OPERATIONS[id] for id in operations]
        self._gives = [o.output is INT for o in self._operations]
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def total(self) -> tuple[int, int]:
        """Numbers of programs and of lines tried."""
        return self._below(0, sum(self._inputs))

    def _choices(self, place: int, numbers: int, lists: int) -> int:
        """Number of lines with an operation."""
        kinds = self._operations[place].inputs
        return prod(numbers if kind is INT else lists for kind in kinds)

    def _below(self, depth: int, numbers: int) -> tuple[int, int]:
        """Numbers of programs and of lines that begin with `depth` given lines; `numbers` of the variables are
        numbers."""
        if depth == self._length:
            return 1, 0
        if (depth, numbers) not in self._known:
            programs = lines = 0
            lists = len(self._inputs) + depth - numbers
            for place, gives in enumerate(self._gives):
                count, (more, further) = self._choices(place, numbers, lists), self._below(depth + 1, numbers + gives)
                programs, lines = programs + count * more, lines + count * (1 + further)
            self._known[depth, numbers] = programs, lines
        return self._known[depth, numbers]

    def until(self, beginning: Sequence[Place]) -> tuple[int, int]:
        """Numbers of programs counted and of lines tried when the last line of a beginning is tried."""
        types = list(self._inputs)
        programs = lines = 0
        for depth, (place, x, y) in enumerate(beginning):
            numbers, lists = sum(types), len(types) - sum(types)
            before = [(each, self._choices(each, numbers, lists)) for each in range(place)]
            before.append((place, self._rank(place, types, x, y)))
            if depth == self._length - 1:
                programs += self._below(depth, numbers)[0]
                lines += sum(count for _, count in before)
            else:
                for each, count in before:
                    more, further = self._below(depth + 1, numbers + self._gives[each])
                    programs, lines = programs + count * more, lines + count * (1 + further)
            lines += 1
            types.append(self._gives[place])
        return programs, lines

    def _rank(self, place: int, types: Sequence[bool], x: int, y: int) -> int:
        """Number of lines with the operation that come before that with given arguments."""
        rank = 0
        for kind, variable in zip(self._operations[place].inputs, (x, y), strict=False):
            same = [v for v, number in enumerate(types) if number == (kind is INT)]
            rank = rank * len(same) + same.index(variable)
        return rank

    def after(self, lines: int) -> int:
        """Number of programs counted when so many lines are tried."""
        programs, numbers = 0, sum(self._inputs)
        for depth in range(self._length):
            if not lines:
                break
            if depth == self._length - 1:
                programs += self._below(depth, numbers)[0]
                break
            for place, gives in enumerate(self._gives):
                count = self._choices(place, numbers, len(self._inputs) + depth - numbers)
                more, further = self._below(depth + 1, numbers + gives)
                whole = min(count, lines // (1 + further))
                programs, lines = programs + whole * more, lines - whole * (1 + further)
                if whole < count:
                    break
            lines = max(lines - 1, 0)  # the line that comes next
            numbers += gives
        return programs

    def lines_until(self, most: int) -> int | None:
        """Lines tried when a search that looks at its limit after each `SLICE` of them has counted `most`
        programs; None if it ends before."""
        ends = self.total[1] // SLICE
        if self.after(ends * SLICE) < most:
            return None
        low, high = 0, ends
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.after(middle * SLICE) >= most else (middle, high)
        return high * SLICE


@dataclass(frozen=True)
class SourceSearch:
    """Depth-first search of the source, or its Sort and add.

    Parameters
    ----------
    name : `dfs`, or `sort-and-add`, whose set of operations grows.
    """

    name: str

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`; of the limits, those of length and of programs. `seconds` are those of counting."""
        clock, exhausted = Clock(), 0
        most = limits.nodes
        for length, space in self._parts(order, limits.max_length):
            if most is not None and clock.nodes >= most:
                return Solution((), self.name, clock.nodes, clock.seconds, exhausted, "nodes")
            every = Programs(task, space.operations, length)
            end = None if most is None else every.lines_until(most - clock.nodes)
            examination = Examination(task, semantics, length, space)
            going = True
            while going and (end is None or every.until(examination.beginning.tolist())[1] <= end):
                going = examination.advance(STRIDE)
            for program in examination.programs:
                lines = [(line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines]
                programs, tried = every.until([(space.operations.index(id), x, y) for id, x, y in lines])
                if end is None or tried <= end:
                    assert check(program, task, semantics)
                    nodes, seconds = clock.nodes + programs, clock.seconds
                    return Solution((program,), self.name, nodes, seconds, exhausted, found_after=seconds)
            if end is not None:
                nodes = clock.nodes + every.after(end)
                return Solution((), self.name, nodes, clock.seconds, exhausted, "nodes")
            clock.nodes += every.total[0]
            exhausted = length if len(space.operations) == len(order.operations) else exhausted
        return Solution((), self.name, clock.nodes, clock.seconds, exhausted)

    def _parts(self, order: Order, longest: int) -> Iterator[tuple[int, Space]]:
        """Lengths, with the programs that may be the first one that fits: over a larger set, those with a new
        operation."""
        known: tuple[int, ...] = ()
        for now in active_sets(order) if self.name == "sort-and-add" else [order.operations]:
            space = Space(now, tuple(id not in known for id in now))
            yield from ((length, space) for length in range(1, longest + 1))
            known = now
