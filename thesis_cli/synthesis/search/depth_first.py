"""Depth-first search, which runs programs line by line, and Sort and add, its variant over a growing set
of operations (Thesis section 5.4.4): the programs that it examines, those that it may leave out, and last
lines that cannot give the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, lru_cache
from itertools import pairwise
from math import isqrt

import numpy as np

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.progress import Stopwatch
from thesis_cli.synthesis.language.dsl import (
    DEEPCODER,
    DEFAULT,
    INT,
    LONGEST,
    OPERATIONS,
    Lambda,
    Language,
    Operation,
    Semantics,
    Value,
    check_rules,
)
from thesis_cli.synthesis.language.packing import Lanes, bounds_of, pack, refuse
from thesis_cli.synthesis.language.program import Kept, Line, Program, program_on
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Stop, longest_list, refutation


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

    def ends(self, task: Task, pruning: Pruning) -> Bools:
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


def may_end(operation: Operation, task: Task, lengthen: bool = False) -> bool:
    """Whether an operation may give the outputs of a task, on whatever values.

    The operation and the outputs are of one type. `lengthen` says that lists may be longer than all
    inputs.
    """
    rule = RULES.get(operation.rule(operation.function.kernel))
    if rule is None:
        return True
    examples = ((_numbers(e.output), LONGEST if lengthen else longest_list(e)) for e in task.examples)
    return all(rule(operation.f, numbers, longest) for numbers, longest in examples)


def _numbers(value: Value) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


# Rules: lambda, numbers of an output, length of the longest list -> whether an operation may give
# it.

Rule = Callable[[Lambda | None, Sequence[int], int], bool]


def _multiples(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return f is not None and all(z % f.by == 0 for z in zs)


def _squares(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(z >= 0 and isqrt(z) ** 2 == z for z in zs)


def _kept(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return f is not None and all(map(f.apply, zs))


def _rising(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(x <= y for x, y in pairwise(zs))


def _falling(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(x >= y for x, y in pairwise(zs))


def _products(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(y % x == 0 if x else y == 0 for x, y in pairwise(zs))


def _few(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return 0 <= zs[0] <= longest


RULES: dict[str, Rule] = {
    "map scale": _multiples,
    "map square": _squares,
    "filter": _kept,
    "count": _few,
    "sort": _rising,
    "scanl1 max": _rising,
    "scanl1 min": _falling,
    "scanl1 times": _products,
}
"""Rules by the names of kernels; an operation without one may give everything."""
_kernels = {operation.rule(operation.function.kernel) for operation in OPERATIONS}
check_rules("last lines", _kernels & RULES.keys(), RULES)


SLICE = 2**16
"""Lines tried before the clock is looked at again: some milliseconds."""

ROOM = 2**8
"""Programs that are found before those that do the same are sorted out."""


class Clock(Stopwatch):
    """A stopwatch and a counter of work, each with a limit; it starts when it is made, and stands still
    while code is compiled.

    Attributes
    ----------
    nodes : programs examined so far, which searches add to.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__()
        self.nodes = 0
        self._timeout, self._most = (limits.timeout, limits.nodes) if limits else (None, None)

    @property
    def is_up(self) -> bool:
        """Whether a limit is reached."""
        return self.stop == "nodes" or (self._timeout is not None and self.seconds >= self._timeout)

    @property
    def stop(self) -> Stop:
        """The limit that is reached, if one is."""
        return "nodes" if self._most is not None and self.nodes >= self._most else "timeout"


@cache
def prepare() -> None:
    """Compile the search, or load it, before any clock runs; compiling takes some ten seconds."""
    task = Task("any", (Example(((0,),), 0),))
    Examination(task, DEFAULT, 1, Space((0,))).advance()


class Examination:
    """Depth-first examination of the programs of one length, a slice at a time.

    Parameters
    ----------
    task, semantics : examples that programs must fit, and range of numbers.
    length : T, number of lines.
    space : which programs.
    count : programs at which it ends.
    pruning : programs that it leaves out.
    lazily : whether a last line is run on an example only if it fits those before it.
    """

    def __init__(
        self,
        task: Task,
        semantics: Semantics,
        length: int,
        space: Space,
        count: int = 1,
        pruning: Pruning = ALL,
        lazily: bool = True,
    ) -> None:
        from thesis_cli.synthesis.search.depth_first_kernels import SearchProblem, SearchState
        from thesis_cli.synthesis.search.moves_kernels import LineRules

        inputs = len(task.inputs)
        columns = [[example.inputs[i] for example in task.examples] for i in range(inputs)]
        pool = pack(columns, inputs + length + 1)
        pool[-1] = pack([[example.output for example in task.examples]], 1)
        variables = inputs + length
        self._task = task
        self._problem = SearchProblem(
            pool=pool,
            bounds=bounds_of(semantics),
            types=np.array([kind is INT for kind in task.inputs] + [False] * length),
            result_is_int=task.output is INT,
            rules=LineRules(
                inputs=inputs,
                length=length,
                order=np.array(space.operations, dtype=np.int64),
                fresh=np.array(space.fresh, dtype=np.bool_),
                ends=space.ends(task, pruning),
                pruning=int(pruning),
            ),
            probe=max(range(len(task.examples)), key=lambda m: _size(task.examples[m].output)),
            lazily=lazily,
            costs=np.array(space.costs, dtype=np.int64),
            least=space.least,
            most=space.most,
        )
        self._state = SearchState(
            counts=np.zeros(4, dtype=np.int64),
            cursor=np.zeros(length, dtype=np.int64),
            sizes=np.array([-1, *[0] * (length - 1)]),
            uses=np.zeros(variables, dtype=np.int64),
            valid=np.ones(length + 1, dtype=np.bool_),
            choices=np.zeros((length, len(space.operations) * variables**2, 3), dtype=np.int64),
            chosen=np.zeros((length, 3), dtype=np.int64),
            variables=np.zeros((4, variables + 1), dtype=np.int64),
            ends=np.zeros((4 * variables, len(space.operations) * 2 * variables, 3), dtype=np.int64),
            known=np.zeros(4 * variables, dtype=np.int64),
            short=np.zeros(variables, dtype=np.bool_),
            found=np.zeros((count, length, 3), dtype=np.int64),
            spent=np.zeros(length + 1, dtype=np.int64),
        )

    def begin(self, lines: Ints, values: Lanes, types: Bools) -> None:
        """Begin anew, with the programs that have given first lines.

        No program is left out because one of these lines could stand elsewhere.

        Parameters
        ----------
        lines : operation and arguments of each, shape (k, 3), k < T, as in `execution.Pool`.
        values : values of the inputs and these lines, shape (inputs + k, .).
        types : whether they are numbers, shape (inputs + k,).
        """
        state, k = self._state, len(lines)
        self._problem.pool[: len(values)] = values
        self._problem.types[: len(types)] = types
        state.chosen[:k], state.chosen[:k, 0] = lines, -1  # before all others in order
        state.uses[:] = 0
        np.add.at(state.uses, lines[:, 1:], 1)
        state.valid[: k + 1] = True
        state.cursor[: k + 1] = state.sizes[:k] = state.spent[: k + 1] = 0
        state.sizes[k], state.known[:] = -1, -1
        state.counts[0] = k
        state.counts[3] = 0

    def advance(self, budget: int = SLICE) -> bool:
        """Examine some more programs; returns whether to go on."""
        from thesis_cli.synthesis.search.depth_first_kernels import PAUSED, search

        return bool(search(self._problem, self._state, budget) == PAUSED)

    @property
    def nodes(self) -> int:
        """Programs examined so far."""
        return int(self._state.counts[2])

    @property
    def beginning(self) -> Ints:
        """The lines above that which comes next: places of operations in the space, and arguments, shape (k, 3)."""
        return self._state.chosen[: self._state.counts[0]]

    @property
    def full(self) -> bool:
        """Whether it ended because it had found enough; `take` makes room to go on."""
        return bool(self._state.counts[3] == len(self._state.found))

    def take(self) -> list[Program]:
        """Programs found since they were taken last."""
        found = self.programs
        self._state.counts[3] = 0
        return found

    def take_rows(self) -> Ints:
        """Operation and arguments of each line of the programs found since they were taken last, the
        argument twice if there is one, shape (N, T, 3)."""
        found = self._state.found[: self._state.counts[3]].copy()
        self._state.counts[3] = 0
        return found

    @property
    def programs(self) -> list[Program]:
        """Programs found and not taken, in order."""
        return [program_on(self._task.inputs, lines) for lines in self.found]

    @property
    def found(self) -> list[tuple[Line, ...]]:
        """Lines of the programs found and not taken, in order."""
        return [tuple(_line(*map(int, row)) for row in rows) for rows in self._state.found[: self._state.counts[3]]]


def _size(value: Value) -> int:
    """Amount of information that a value gives about its line."""
    return abs(value) if isinstance(value, int) else len(value)


def _line(id: int, x: int, y: int) -> Line:
    return Line(id, (x, y)[: len(OPERATIONS[id].inputs)])


@dataclass(frozen=True)
class DepthFirst:
    """Depth-first search (appendix D.4), length by length, so that the first program found is
    shortest.

    Programs of a length come in bands of falling probability (`bands`), and in depth-first
    order within a band. Without pruning there are no bands, as in the thesis.

    Parameters
    ----------
    pruning : programs that it leaves out. Each program counts once, at its own length; without
        pruning they are all programs of these lengths.
    nodes : programs after which it stops, at the end of a slice and so at the same one on every
        machine; None for no limit.
    """

    pruning: Pruning = ALL
    name: str = "dfs"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if self.pruning & Pruning.UNFIT and (found := refutation(self.name, task, limits, semantics)):
            return found
        run = Run(self.name, task, limits, semantics, self.pruning)
        return run.by_length(order, 1, limits.max_length)


class Run:
    """One search: its clock, and what it found and examined so far. Raises InputError if a list
    does not fit into lanes.

    Attributes
    ----------
    name : name of the solver, for the solution.
    clock : started with the search.
    programs : those found, in order; all fit.
    exhausted : every program of at most this length was examined, or could be left out.
    found_after, first_after : seconds after which the shortest program was found, and the first
        one; None if there is none.
    """

    def __init__(self, name: str, task: Task, limits: Limits, semantics: Semantics, pruning: Pruning = ALL) -> None:
        refuse(task, semantics)
        prepare()
        self.name, self._task, self._limits = name, task, limits
        self._semantics, self._pruning = semantics, pruning
        if limits.distinct and not limits.shortest:  # a shorter program fits where a line repeats a value
            self._pruning &= ~Pruning.REPEATED
        self.clock = Clock(limits)
        self._kept = Kept(task.inputs, semantics, limits.distinct)
        self.programs = self._kept.programs
        self.exhausted = 0
        self.found_after: float | None = None
        self.first_after: float | None = None

    @property
    def nodes(self) -> int:
        """Programs examined."""
        return self.clock.nodes

    def by_length(self, order: Order, first: int, last: int, stopped: Stop = "") -> Solution:
        """Search depth first, length by length from the first to the last one."""
        plain = (Space(order.operations),)
        lengths = range(first, last + 1)
        return self.over(((length, bands(order, length) if self._pruning else plain) for length in lengths), stopped)

    def over(self, parts: Iterable[tuple[int, Sequence[Space]]], stopped: Stop = "") -> Solution:
        """Search depth first until enough programs are found.

        Parameters
        ----------
        parts : lengths with the programs to examine; if the first of these have all operations, all
            programs of that length are among them.
        stopped : reason for which the search before this one stopped, if any.
        """
        enough = len(self.programs) + self._limits.count
        try:
            for length, spaces in parts:
                for space in spaces:
                    if self.clock.is_up or not self.examine(length, space, enough - len(self.programs)):
                        return self.solution(self.cut_short(stopped))
                    if len(self.programs) >= enough:
                        return self.solution(stopped)
                if len(spaces[0].operations) == len(self._semantics.language.operations):
                    self.exhausted = length
                if self._limits.shortest and self.programs:
                    return self.solution(stopped)
        except KeyboardInterrupt:
            return self.solution("interrupted")
        return self.solution(stopped)

    @property
    def complete(self) -> bool:
        """Whether enough programs were found."""
        return len(self.programs) >= self._limits.count

    @property
    def shortest(self) -> int:
        """Length of the shortest program found; one more than the greatest length if there is
        none."""
        return min(map(len, self.programs), default=self._limits.max_length + 1)

    @property
    def longest(self) -> int:
        """Length of the longest program that is still worth finding: any, or, if one program is
        enough, less than that of the shortest one found."""
        return self.shortest - 1 if self._limits.count == 1 else self._limits.max_length

    def cut_short(self, before: Stop) -> Stop:
        """The reason why the search stopped, after that of a part of it."""
        limit = self.clock.stop
        return "memory, then timeout" if (before, limit) == ("memory", "timeout") else limit

    def solution(self, stopped: Stop) -> Solution:
        """The shortest programs found, as many as the limits allow."""
        longest = self.shortest if self._limits.shortest else self._limits.max_length
        places = [place for place, program in enumerate(self.programs) if len(program) <= longest]
        places = sorted(places, key=lambda place: len(self.programs[place]))[: self._limits.count]
        return Solution(
            programs=tuple(self.programs[place] for place in places),
            solver=self.name,
            nodes=self.nodes,
            seconds=self.clock.seconds,
            exhausted=self.exhausted,
            stopped=stopped,
            found_after=self.found_after,
            first_after=self.first_after,
            same=tuple(self._kept.same[place] for place in places) if self._limits.distinct else (),
        )

    def add(self, programs: Sequence[Program]) -> None:
        """Add programs that compiled code found, if the plain interpreter agrees that they fit."""
        before = self.shortest
        for program in programs:
            if check(program, self._task, self._semantics):
                self._kept.add(program)
        if self.shortest < before:
            self.found_after = self.clock.seconds
            self.first_after = self.first_after or self.found_after

    def examine(self, length: int, space: Space, count: int) -> bool:
        """Search programs of one length for up to `count` of them; returns whether it ended within
        the limits."""
        room = ROOM if self._limits.distinct else count
        examination = Examination(self._task, self._semantics, length, space, room, self._pruning)
        enough = len(self.programs) + count
        before = self.nodes
        try:
            while examination.advance() or examination.full:
                self.clock.nodes = before + examination.nodes
                if examination.full:
                    self.add(examination.take())
                    if len(self.programs) >= enough:
                        break
                if self.clock.is_up:
                    return False
        finally:
            self.clock.nodes = before + examination.nodes
            self.add(examination.take())
        return True


@dataclass(frozen=True)
class SortAndAdd:
    """Depth-first search over an active set that grows by the next most probable attribute (section
    5.4.4).

    The search over a set reaches the greatest length before the set grows. So the program that it
    finds is the shortest over that set, but need not be the shortest of all.

    Parameters
    ----------
    pruning : programs that it leaves out besides.
    again : whether the search over a larger set starts anew, and examines the programs over the
        earlier ones again, as that of section 5.4.4 does.
    """

    pruning: Pruning = ALL
    again: bool = False
    name: str = "sort-and-add"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if self.pruning & Pruning.UNFIT and (found := refutation(self.name, task, limits, semantics)):
            return found
        run = Run(self.name, task, limits, semantics, self.pruning)
        sets = active_sets(order)
        known = [(), *([()] * len(sets) if self.again else sets)]
        new = [Space(now, tuple(id not in old for id in now)) for old, now in zip(known, sets, strict=False)]
        return run.over((length, [space]) for space in new for length in range(1, limits.max_length + 1))


def active_sets(order: Order) -> list[tuple[int, ...]]:
    """Sets of operations that the most probable attributes enable, each set larger than the one
    before.

    The last set has all operations. Each set keeps their order.
    """
    rank = {attribute: place for place, attribute in enumerate(order.attributes)}
    enabled = {id: max(rank[a] for a in OPERATIONS[id].attributes) for id in order.operations}
    return [tuple(id for id, at in enabled.items() if at <= place) for place in sorted(set(enabled.values()))]
