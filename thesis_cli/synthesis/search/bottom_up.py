"""Bottom-up enumeration with observational equivalence: a bank of values, each from the smallest
expression known.

An expression (tree) of size s has s operations. If two expressions give the same values on all
examples, the bank keeps the first: larger expressions cannot distinguish them. That finds the
fewest operations. A program may take one result twice, so it can have fewer lines than its tree has
operations, and a program with a larger tree can have even fewer lines. Depth-first search decides.

Sizes are a special case of levels: operations may have other costs than 1, such as lower ones where
a guide finds them probable, and the level of an expression is the sum of its costs.

A bank knows one expression of each value, and another one may share more results: `shorter` looks for
a shorter program from one that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, OPERATIONS, Semantics, Type, Value
from thesis_cli.synthesis.language.packing import WIDTH, bounds_of, pack
from thesis_cli.synthesis.language.program import Line, Program, program_on
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import SLICE, Clock, Examination, Run, every
from thesis_cli.synthesis.search.solver import GIB, Limits, Order, Solution, Stop, refutation

if TYPE_CHECKING:
    from thesis_cli.synthesis.search.bottom_up_kernels import BankRows

FIRST, SECOND = 2**12, 2**16
"""Rows of the bank at first, and when these are full; then it has all that the memory allows."""

REPORTED, CLOSE = 10, 3
"""Programs of one step of a search that are looked at, the shortest first, and by how many lines
they may be too long, if nothing else is said, for an attempt to shorten them."""

GROWTH = 4
"""Factor by which the table of the rows grows."""


@dataclass(frozen=True)
class BottomUp:
    """Bottom-up enumeration, then depth-first search for programs that share results.

    With T = `Limits.max_length`, the bank misses no program whose tree has at most T operations. If
    it finds a program of n lines, depth-first search looks for one of fewer lines, which takes a
    result twice; if it finds none, for one of up to T lines. A bank that reaches `Limits.memory`
    finishes its level without growing, and depth-first search takes over; `Solution.stopped` is
    then "memory", whatever that search finds.

    Parameters
    ----------
    prove : whether depth-first search follows. Without it, the first program has the fewest
        operations as a tree, or the least cost.
    costs : "size", each operation costs 1, or "prior", probable operations cost less (`levels_of`).

    Notes
    -----
    `nodes` counts expressions examined, and programs of the depth-first search. Several programs
    for one task differ in their last line; there may be others.
    """

    prove: bool = True
    costs: Literal["size", "prior"] = "size"
    name: str = "bottom-up"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        prepare()
        run = Run(self.name, task, limits, semantics)
        bank = Bank(task, order, limits, semantics, levels_of(order) if self.costs == "prior" else SIZES)
        short: Stop = ""
        try:
            while bank.size < bank.last and not (short or run.complete):
                short = bank.grow(run)
            if short not in ("", "memory") or not self.prove:
                return run.solution(short)
            return run.by_length(order, run.exhausted + 1, run.shortest - 1, short)
        except KeyboardInterrupt:
            return run.solution("interrupted")


SIZES = (1,) * len(OPERATIONS)
"""Costs by which the level of a tree is its number of operations."""

UNIT, HIGHEST = 1.0, 12
"""Logarithms of probabilities in a unit of cost, and the highest cost of an operation."""


def levels_of(order: Order, unit: float = UNIT) -> tuple[int, ...]:
    """Costs of operations: -ln p in whole units, from 1 to `HIGHEST`, p being the probability by
    which an order ranks them. Raises InputError if the unit is not above 0."""
    if not unit > 0:
        raise InputError(f"the unit of costs is {unit:g}", "it must be above 0")
    least = math.exp(-HIGHEST * unit)
    return tuple(max(1, round(-math.log(max(p, least)) / unit)) for p in order.of_operations)


@cache
def prepare() -> None:
    """Compile the growth of a bank, or load it, before any clock runs."""
    task = Task("any", (Example(((0,),), 0),))
    bank = Bank(task, Order.uniform(), Limits(1), DEFAULT)
    bank.make(Clock())
    bank.enlarge()


def _empty_table(rows: int) -> npt.NDArray[np.int32]:
    """A table for so many rows, at most half full."""
    return np.full(1 << (2 * rows - 1).bit_length(), -1, dtype=np.int32)


class Bank:
    """Values by level, in rows that grow. The level of a tree is the sum of the costs of its
    operations.

    Parameters
    ----------
    task, order, limits, semantics : arguments of a solver.
    costs : costs of the operations by id, whole numbers, at least 1.

    Attributes
    ----------
    size : highest level of the trees that were made; if each operation costs 1, their size.
    last : level by which all trees of at most T = `Limits.max_length` operations are made.
    close : excess of lines up to which a program is shortened.
    """

    close = CLOSE

    def __init__(
        self, task: Task, order: Order, limits: Limits, semantics: Semantics, costs: Sequence[int] = SIZES
    ) -> None:
        from thesis_cli.synthesis.search.bottom_up_kernels import AHEAD, enter

        self._task = task
        self.size, self.last = 0, limits.max_length * max(costs)
        inputs = len(task.inputs)
        columns = [[example.output for example in task.examples]]
        columns += [[example.inputs[i] for example in task.examples] for i in range(inputs)]
        self._pool = pack(columns, len(columns))
        width = self._pool.shape[1]
        self._most = int(limits.memory * GIB / (2 * width + 1 + 12 + 8 + 16))
        self._kinds = np.array([task.output is INT, *(kind is INT for kind in task.inputs)])
        self._origins = np.full((len(columns), 3), -1, dtype=np.int32)
        self._hashes = np.zeros(len(columns), dtype=np.uint64)
        self._multipliers = np.random.default_rng(0).integers(
            2**64, size=WIDTH * len(task.examples) // 4, dtype=np.uint64
        ) | np.uint64(1)
        self._starts = np.zeros(self.last + 2, dtype=np.int64)
        self._starts[:2] = 1, len(columns)
        self._state = np.zeros(7, dtype=np.int64)
        self._state[4] = len(columns)
        self._found = np.zeros((limits.count, 3), dtype=np.int64)
        self._programs: list[Program] = []
        self._reported: set[Program] = set()
        self._hit = False
        self._limits = limits
        self._order = np.array(order.operations, dtype=np.int64)
        self._costs = np.array(costs, dtype=np.int64)
        self._bounds, self._semantics = bounds_of(semantics), semantics
        rows = max(FIRST, len(columns) + AHEAD + 1)
        self._most = max(self._most, rows)
        self._reserve(rows)
        self._table = _empty_table(rows)
        enter(self.rows, 1, len(columns))

    @property
    def kept(self) -> int:
        """Values in the bank, inputs among them."""
        return int(self._state[4]) - 1

    @property
    def sizes(self) -> Ints:
        """Size of each value, from the first row on; 0 for the output and the inputs."""
        used = np.arange(self.kept + 1)
        return np.asarray(np.maximum(np.searchsorted(self._starts[: self.size + 2], used, side="right") - 1, 0))

    @property
    def rows(self) -> BankRows:
        """The values and their origins; only the first 1 + `kept` rows are in use."""
        from thesis_cli.synthesis.search.bottom_up_kernels import BankRows

        words = self._pool.view(np.uint64)
        return BankRows(self._pool, words, self._multipliers, self._kinds, self._origins, self._hashes, self._table)

    def grow(self, run: Run) -> Stop:
        """Make the values of the next level, and report programs and nodes to a search."""
        try:
            short = self.make(run.clock)
        finally:
            run.add(self.programs())
        if short in ("", "memory") and not self._hit:
            run.exhausted = max(run.exhausted, self.covered)
        return short

    @property
    def covered(self) -> int:
        """The greatest n so that all programs of n lines have a tree of at most this level.

        The tree of a program of n lines is largest if each line takes the one above it twice.
        """
        lines, cost = 0, int(self._costs.max())
        twice = int(self._costs[[o.id for o in self._semantics.language.operations if len(o.inputs) == 2]].max())
        while cost <= self.size:
            lines, cost = lines + 1, 2 * cost + twice
        return lines

    def make(self, clock: Clock) -> Stop:
        """Make the values of the next level, from those of all lower ones."""
        from thesis_cli.synthesis.search.bottom_up_kernels import DONE, ENOUGH, FULL, Level, grow

        self.size += 1
        self._state[:4] = 0, -1, 0, 0
        keep = self.size + int(self._costs.min()) <= self.last
        budget = max(1, SLICE // len(self._task.examples))
        short: Stop = ""
        reason = FULL
        while reason != DONE:
            level = Level(
                self._starts, self.size, keep, self._bounds, self._task.output is INT, self._order, self._costs
            )
            try:
                reason = grow(self.rows, level, budget, self._state, self._found)
            finally:
                clock.nodes += self._take_nodes()
            if reason == FULL and not self.enlarge():
                keep, short = False, "memory"
            if reason == ENOUGH and self._collect():
                break
            if clock.is_up:
                return clock.stop
        self._starts[self.size + 1] = self._state[4]
        return short

    def enlarge(self) -> bool:
        """Make room for more values, within the memory; returns whether there was any."""
        from thesis_cli.synthesis.search.bottom_up_kernels import rebuild

        rows = len(self._pool)
        if len(self._table) >= 2 * rows and not self._reserve(SECOND if rows < SECOND else self._most):
            return False
        rows = min(GROWTH * len(self._table) // 2, len(self._pool))
        self._table = _empty_table(rows)
        rebuild(self._hashes, self._table, 1, int(self._state[4]))
        return True

    def _reserve(self, rows: int) -> bool:
        """Copy all values to as many rows, or fewer if the system refuses; returns whether there is
        more room. The system gives memory to rows when they are used, and only then."""
        used, rows = int(self._state[4]), min(rows, self._most)
        arrays: tuple[Any, ...] = self._pool, self._kinds, self._origins, self._hashes
        while rows > len(self._pool):
            try:
                longer: list[Any] = [np.empty((rows, *array.shape[1:]), array.dtype) for array in arrays]
            except MemoryError:
                rows //= 2
                continue
            for array, copy in zip(arrays, longer, strict=True):
                copy[:used] = array[:used]
            self._pool, self._kinds, self._origins, self._hashes = longer
            return True
        return False

    def _take_nodes(self) -> int:
        """Expressions examined since the last call."""
        nodes, self._state[5] = int(self._state[5]), 0
        return nodes

    def programs(self) -> list[Program]:
        """Programs of the expressions found since the last call, in order."""
        self._collect()
        programs, self._programs = self._programs, []
        return programs

    def _collect(self) -> bool:
        """Make programs of the expressions found, unless they are too long; returns whether there
        are enough."""
        hits: list[Tree] = [(id, x, y) for id, x, y in self._found[: self._state[6]].tolist()]
        made = [program_of(hit, self._task.inputs, self._origins) for hit in hits]
        self._programs += [program for program in made if len(program) <= self._limits.max_length]
        self._hit |= bool(self._state[6])
        self._state[6] = 0
        return len(self._programs) >= self._limits.count

    def report(self, run: Run, trees: Iterable[Tree]) -> None:
        """Report to a search the programs of trees that give the output, if they are short
        enough."""
        inputs = self._task.inputs
        made = (program_of(tree, inputs, self._origins) for tree in trees if not isinstance(tree, int))
        for program in sorted(dict.fromkeys(made), key=len)[:REPORTED]:  # ties in order: hashes of texts are random
            found: Program | None = program
            if run.longest < len(program) <= run.longest + self.close and check(program, self._task, self._semantics):
                found = shorter(program, self._task, self._semantics, run.longest)
            if found and len(found) <= run.longest and found not in self._reported:
                self._reported.add(found)
                run.add([found])


Tree = int | tuple[int, "Tree"] | tuple[int, "Tree", "Tree"]
"""A row of a bank (`bottom_up_kernels.BankRows`), or the id of an operation and the trees of its
arguments, in order."""


def program_of(tree: Tree, inputs: Sequence[Type], origins: npt.NDArray[np.int32]) -> Program:
    """The program that computes a tree; equal parts are computed once.

    Parameters
    ----------
    tree : an operation on trees, not a row alone.
    inputs : types of the inputs, which are the rows from 1 on.
    origins : operation and arguments of each row, shape (V, 3).
    """
    variables: dict[Tree, int] = {1 + i: i for i in range(len(inputs))}
    lines: dict[Line, int] = {}

    def variable(tree: Tree) -> int:
        if tree not in variables:
            id, *arguments = map(int, origins[tree]) if isinstance(tree, int) else tree
            line = Line(id, tuple(map(variable, arguments[: len(OPERATIONS[id].inputs)])))
            variables[tree] = lines.setdefault(line, len(inputs) + len(lines))
        return variables[tree]

    variable(tree)
    return program_on(tuple(inputs), tuple(lines))


MOST = 3
"""Lines that are sought for one value."""


def shorter(program: Program, task: Task, semantics: Semantics, most: int) -> Program | None:
    """A program of at most `most` lines that gives what a longer one gives, if one is found.

    It has the same values, or one of them is computed from the others anew.

    Parameters
    ----------
    program : fits all examples of the task.
    """
    found = _of_same_values(program, task, semantics)
    if len(found) <= most:
        return found
    columns = _columns(found, task, semantics)
    for place in reversed(range(len(found) - 1)):
        remade = _remade(found, place, columns, task, semantics, most)
        if remade is not None:
            return remade
    return None


def _columns(program: Program, task: Task, semantics: Semantics) -> list[tuple[Value, ...]]:
    """Values of all variables on the examples, all of which the program fits."""
    columns = list(zip(*(example.inputs for example in task.examples), strict=True))
    for line in program.lines:
        rows = zip(*(columns[x] for x in line.arguments), strict=True)
        values = (semantics.apply(OPERATIONS[line.operation], *row) for row in rows)
        columns.append(tuple(value for value in values if value is not None))
    return columns


def _remade(
    program: Program, place: int, columns: list[tuple[Value, ...]], task: Task, semantics: Semantics, most: int
) -> Program | None:
    """The program with other lines for the value of one line, in at most `most` lines."""
    inputs = len(program.inputs)
    after = {place}
    for number in range(place + 1, len(program)):
        if any(x - inputs in after for x in program.lines[number].arguments):
            after.add(number)
    after.remove(place)
    kept: set[int] = set()
    for number in reversed(range(len(program))):
        if number in after or number in kept:
            arguments = {x - inputs for x in program.lines[number].arguments}
            kept |= {x for x in arguments if x >= 0 and x != place and x not in after}
    before = [*range(inputs), *(inputs + number for number in sorted(kept))]
    length = most - len(kept) - len(after)
    if not 1 <= length <= MOST:
        return None
    rows = zip(*(columns[x] for x in before), columns[inputs + place], strict=True)
    part = Task(task.name, tuple(Example(row[:-1], row[-1]) for row in rows))
    for lines in range(1, length + 1):
        examination = Examination(part, semantics, lines, every(semantics.language))
        while examination.advance():
            pass
        if examination.found:
            numbers = {old: new for new, old in enumerate(before)}
            chosen = [_renamed(program.lines[x - inputs], numbers) for x in before[inputs:]]
            chosen += examination.found[0]
            numbers[inputs + place] = inputs + len(chosen) - 1
            for number in sorted(after):
                chosen.append(_renamed(program.lines[number], numbers))
                numbers[inputs + number] = inputs + len(chosen) - 1
            return Program(program.inputs, tuple(chosen))
    return None


def _renamed(line: Line, numbers: dict[int, int]) -> Line:
    return Line(line.operation, tuple(numbers[x] for x in line.arguments))


def _of_same_values(program: Program, task: Task, semantics: Semantics) -> Program:
    """The shortest program that gives the output of a program, all of whose values are among its."""
    inputs = len(program.inputs)
    columns = _columns(program, task, semantics)
    firsts = {column[0]: place for place, column in reversed(list(enumerate(columns)))}
    places: dict[tuple[Value | None, ...], int] = {}
    for place, column in enumerate(columns):
        places.setdefault(column, place)
    lines: dict[int, list[Line]] = {}
    for operation in semantics.language.operations:
        fitting = [[i for i, kind in enumerate(program.types) if kind is needed] for needed in operation.inputs]
        for arguments in product(*fitting):
            if semantics.apply(operation, *(columns[x][0] for x in arguments)) in firsts:
                rows = zip(*(columns[x] for x in arguments), strict=True)
                made = places.get(tuple(semantics.apply(operation, *row) for row in rows))
                if made is not None and made >= inputs:
                    lines.setdefault(made, []).append(Line(operation.id, arguments))
    output = places[columns[-1]]
    for size in range(len(program)):
        for others in combinations([place for place in lines if place != output], size):
            found = _arranged({*others, output}, output, inputs, lines)
            if found:
                return Program(program.inputs, found)
    return program


def _arranged(needed: set[int], output: int, inputs: int, lines: dict[int, list[Line]]) -> tuple[Line, ...] | None:
    """Lines that compute some values, each from those before it, the output last; None if there are
    none."""
    numbers = {place: place for place in range(inputs)}
    found: list[Line] = []
    while len(found) < len(needed):
        for place in needed - numbers.keys():
            line = next((line for line in lines[place] if numbers.keys() >= set(line.arguments)), None)
            if line is not None:
                found.append(_renamed(line, numbers))
                numbers[place] = inputs + len(found) - 1
                break
        else:
            return None
    last = numbers[output]
    return tuple(found) if last == inputs + len(found) - 1 else None
