"""Bottom-up enumeration with observational equivalence: a bank of values, each from the smallest
expression known.

An expression (tree) of size s has s operations. If two expressions give the same values on all
examples, the bank keeps the first: larger expressions cannot distinguish them. That finds the
fewest operations. A program may take one result twice, so it can have fewer lines than its tree has
operations, and a program with a larger tree can have even fewer lines. Depth-first search decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.depth_first import SLICE, Clock, Run, pack
from thesis_cli.synthesis.dsl import DEFAULT, INT, OPERATIONS, Semantics
from thesis_cli.synthesis.program import Line, Program
from thesis_cli.synthesis.solver import GIB, Limits, Order, Solution, Stop
from thesis_cli.synthesis.task import Example, Task

if TYPE_CHECKING:
    from thesis_cli.synthesis.bottom_up_kernels import BankRows

FIRST = 2**12
"""Rows of the bank at first; it doubles."""


@dataclass(frozen=True)
class BottomUp:
    """Bottom-up enumeration, then depth-first search for programs that share results.

    With T = `Limits.max_length`, the bank misses no program whose tree has at most T operations. If
    it finds a program of n lines, depth-first search looks for one of fewer lines, which takes a
    result twice; if it finds none, for one of up to T lines. A bank that reaches `Limits.memory`
    finishes its size without growing, and depth-first search takes over; `Solution.stopped` is then
    "memory", whatever that search finds.

    Parameters
    ----------
    prove : whether depth-first search follows. Without it, the first program has the fewest
        operations as a tree.

    Notes
    -----
    `nodes` counts expressions examined, and programs of the depth-first search. Several programs
    for one task differ in their last line; there may be others.
    """

    prove: bool = True
    name: str = "bottom-up"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        prepare()
        run = Run(self.name, task, limits, semantics)
        bank = Bank(task, order, limits, semantics)
        short: Stop = ""
        try:
            while bank.size < limits.max_length and not (short or run.complete):
                short = bank.grow(run)
            if short == "timeout" or not self.prove:
                return run.solution(short)
            return run.over([order.operations], run.exhausted + 1, run.shortest - 1, short)
        except KeyboardInterrupt:
            return run.solution("interrupted")


@cache
def prepare() -> None:
    """Compile the growth of a bank, or load it, before any clock runs."""
    task = Task("any", (Example(((0,),), 0),))
    Bank(task, Order.uniform(), Limits(1), DEFAULT).make(Clock(None))


class Bank:
    """Values by size, in rows that grow.

    Attributes
    ----------
    size : operations of the largest trees that were made.
    """

    def __init__(self, task: Task, order: Order, limits: Limits, semantics: Semantics) -> None:
        from thesis_cli.synthesis.bottom_up_kernels import TARGET, enter
        from thesis_cli.synthesis.lanes import WIDTH
        from thesis_cli.synthesis.operation_kernels import bounds_of

        self._task = task
        self.size = 0
        inputs = len(task.inputs)
        columns = [[example.output for example in task.examples]]
        columns += [[example.inputs[i] for example in task.examples] for i in range(inputs)]
        rows = max(FIRST, inputs + 3)
        self._pool = pack(columns, rows)
        width = self._pool.shape[1]
        self._most = int(limits.memory * GIB / (2 * width + 1 + 12 + 8 + 16))
        self._kinds = np.zeros(rows, dtype=np.bool_)
        self._kinds[TARGET + 1 : TARGET + 1 + inputs] = [kind is INT for kind in task.inputs]
        self._origins = np.full((rows, 3), -1, dtype=np.int32)
        self._hashes = np.zeros(rows, dtype=np.uint64)
        self._multipliers = np.random.default_rng(0).integers(
            2**64, size=WIDTH * len(task.examples) // 4, dtype=np.uint64
        ) | np.uint64(1)
        self._table = np.full(2 * rows, -1, dtype=np.int32)
        self._starts = np.zeros(limits.max_length + 2, dtype=np.int64)
        self._starts[:2] = 1, 1 + inputs
        self._state = np.zeros(7, dtype=np.int64)
        self._state[4] = 1 + inputs
        self._found = np.zeros((limits.count, 3), dtype=np.int64)
        self._last = limits.max_length
        self._order = np.array(order.operations, dtype=np.int64)
        self._bounds = bounds_of(semantics)
        enter(self._rows, 1, 1 + inputs)

    @property
    def kept(self) -> int:
        """Values in the bank, inputs among them."""
        return int(self._state[4]) - 1

    @property
    def _rows(self) -> BankRows:
        from thesis_cli.synthesis.bottom_up_kernels import BankRows

        words = self._pool.view(np.uint64)
        return BankRows(self._pool, words, self._multipliers, self._kinds, self._origins, self._hashes, self._table)

    def grow(self, run: Run) -> Stop:
        """Make the values of the next size, and report programs and nodes to a search."""
        try:
            short = self.make(run.clock)
        finally:
            run.nodes += self.take_nodes()
            run.add(self.programs())
        if short != "timeout" and not run.complete:  # n lines are at most 2^n - 1 operations
            run.exhausted = max(run.exhausted, (self.size + 1).bit_length() - 1)
        return short

    def make(self, clock: Clock) -> Stop:
        """Make the values of the next size, from those of all smaller ones."""
        from thesis_cli.synthesis.bottom_up_kernels import DONE, ENOUGH, FULL, Level, grow

        self.size += 1
        size = self.size
        self._state[:4] = 0, -1, 0, 0
        keep = size < self._last
        short: Stop = ""
        while True:
            level = Level(self._starts, size, keep, self._bounds, self._task.output is INT, self._order)
            reason = grow(self._rows, level, SLICE, self._state, self._found)
            if reason == FULL and not self._enlarge():
                keep, short = False, "memory"
            if reason in (DONE, ENOUGH):
                break
            if clock.is_up:
                return "timeout"
        self._starts[size + 1] = self._state[4]
        return short

    def _enlarge(self) -> bool:
        """Double the rows, within the memory; returns whether there was room."""
        from thesis_cli.synthesis.bottom_up_kernels import enter

        rows = min(2 * len(self._pool), self._most)
        if rows <= len(self._pool):
            return False
        self._pool.resize((rows, self._pool.shape[1]), refcheck=False)
        self._origins.resize((rows, 3), refcheck=False)
        self._kinds.resize(rows, refcheck=False)
        self._hashes.resize(rows, refcheck=False)
        self._table = np.full(1 << (2 * rows - 1).bit_length(), -1, dtype=np.int32)
        enter(self._rows, 1, int(self._state[4]))
        return True

    def take_nodes(self) -> int:
        """Expressions examined since the last call."""
        nodes, self._state[5] = int(self._state[5]), 0
        return nodes

    def programs(self) -> list[Program]:
        """Programs of the expressions found since the last call, in order."""
        rows = self._found[: self._state[6]]
        self._state[6] = 0
        return [self._program(*map(int, row)) for row in rows]

    def _program(self, id: int, x: int, y: int) -> Program:
        inputs = len(self._task.inputs)
        variables = {row: row - 1 for row in range(1, 1 + inputs)}
        lines: list[Line] = []

        def line(id: int, *rows: int) -> int:
            arguments = tuple(variable(row) for row in rows[: len(OPERATIONS[id].inputs)])
            lines.append(Line(id, arguments))
            return inputs + len(lines) - 1

        def variable(row: int) -> int:
            if row not in variables:
                variables[row] = line(*map(int, self._origins[row]))
            return variables[row]

        line(id, x, y)
        return Program(self._task.inputs, tuple(lines))
