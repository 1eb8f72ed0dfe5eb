"""The last lines of partial programs, found by compiled searches.

A policy need not choose the last lines of a program. All ways to complete a partial program with
one or two more lines are examined depth first in some ten microseconds. A bank and its joins
(`join.Turns`) reach further. For them the results of all lines so far are inputs, which cost
nothing, however often they are taken: a join alone finds expressions, which compute a result anew
each time.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.join import join as searches
from thesis_cli.synthesis.join.join import LINE, Turns
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import Examination, Run, every
from thesis_cli.synthesis.search.solver import Limits, Order, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thesis_cli.synthesis.search.execution import Pool

BEGIN = 5e4
"""Nanoseconds to begin with a partial program."""

LEAST_JOINS = 4e6
"""Nanoseconds that a bank and its joins need at least."""


@cache
def prepare() -> None:
    """Compile the searches, or load them, before any clock runs."""
    searches.prepare()


class Tails:
    """Searches for the last lines.

    Parameters
    ----------
    run : search to which programs are reported.
    task, order, limits, semantics : arguments of a solver.
    """

    def __init__(self, run: Run, task: Task, order: Order, limits: Limits, semantics: Semantics) -> None:
        self._run, self._task, self._order = run, task, order
        self._limits, self._semantics = limits, semantics
        self._examinations: dict[int, Examination] = {}

    def search(self, pool: Pool, row: int, budget: float) -> Stop:
        """Search for the last lines of a program of a pool.

        Parameters
        ----------
        pool, row : a program that has values.
        budget : expected nanoseconds; half of them are for depth-first search, which takes all
            lines so far, and half for the joins.
        """
        lines = int(np.count_nonzero(pool.lines[row, :, 0] >= 0))
        short = self._examine(pool, row, lines, budget / 2)
        left = self._run.longest - lines
        if short or self._run.complete or budget / 2 < LEAST_JOINS or left < 3 or lines == 0:
            return short
        return self._join(pool, row, budget / 2)

    def _examine(self, pool: Pool, row: int, lines: int, budget: float) -> Stop:
        """Examine the programs of one more line, of two, and so on, as the budget allows."""
        from thesis_cli.synthesis.search.execution_kernels import INTS

        run, used = self._run, int(pool.sizes[row])
        expected, before = BEGIN, 1
        for length in range(lines + 1, run.longest + 1):
            if budget < expected:
                break
            examination = self._examination(length)
            examination.begin(pool.lines[row, :lines], pool.values[row, :used], pool.types[row, :used] == INTS)
            begun, offset = run.nodes, run.nodes - examination.nodes
            more = True
            while more:
                more = examination.advance()
                run.clock.nodes = offset + examination.nodes
                if more and run.clock.is_up:
                    return run.clock.stop
            nodes = run.nodes - begun
            budget -= BEGIN + LINE * nodes
            expected, before = BEGIN + LINE * nodes**2 / max(before, 1), nodes
            if found := examination.found:
                beginning = self._lines(pool, row)
                run.add([self._program((*beginning, *rest[lines:])) for rest in found])
                if run.complete:
                    break
        return ""

    def _examination(self, length: int) -> Examination:
        if length not in self._examinations:
            self._examinations[length] = Examination(
                self._task, self._semantics, length, every(self._semantics.language)
            )
        return self._examinations[length]

    def _join(self, pool: Pool, row: int, budget: float) -> Stop:
        """Search for a rest of the program with a bank and its joins."""
        columns = [pool.value(row, variable) for variable in range(int(pool.sizes[row]))]
        rows = zip(*columns, (example.output for example in self._task.examples), strict=True)
        part = Task(self._task.name, tuple(Example(tuple(values[:-1]), values[-1]) for values in rows))
        beginning = self._lines(pool, row)
        limits = Limits(self._run.longest - len(beginning), memory=self._limits.memory)
        run = _Rest(self, part, limits, self._run, beginning)
        turns = Turns(run, part, self._order, limits, self._semantics, close=0)
        while turns.spent < budget and not self._run.complete:
            name = turns.take(prove=False)
            if not name or self._run.clock.is_up:
                break
        return self._run.clock.stop if self._run.clock.is_up else ""

    def _lines(self, pool: Pool, row: int) -> tuple[Line, ...]:
        return pool.program(row).lines if pool.lines[row, 0, 0] >= 0 else ()

    def _program(self, lines: Sequence[Line]) -> Program:
        """A program of some lines, without those that its output does not depend on."""
        return without_unused(Program(self._task.inputs, tuple(lines)))


class _Rest(Run):
    """A search for the last lines of a program, which reports whole programs to another search."""

    def __init__(self, tails: Tails, part: Task, limits: Limits, whole: Run, beginning: tuple[Line, ...]) -> None:
        super().__init__(whole.name, part, limits, tails._semantics)
        self.clock = whole.clock
        self._tails, self._whole, self._beginning = tails, whole, beginning

    @property
    def complete(self) -> bool:
        """Whether enough programs were found in all."""
        return self._whole.complete

    @property
    def longest(self) -> int:
        """Length of the longest rest that is still worth finding."""
        return self._whole.longest - len(self._beginning)

    def add(self, programs: Sequence[Program]) -> None:
        """Report what becomes of programs of the part."""
        self._whole.add([self._tails._program((*self._beginning, *program.lines)) for program in programs])


def without_unused(program: Program) -> Program:
    """The program without lines that its output does not depend on."""
    inputs = len(program.inputs)
    unused = set(program.unused)
    numbers = {variable: variable for variable in range(inputs)}
    lines: list[Line] = []
    for variable, line in enumerate(program.lines, inputs):
        if variable not in unused:
            lines.append(Line(line.operation, tuple(numbers[x] for x in line.arguments)))
            numbers[variable] = inputs + len(lines) - 1
    return Program(program.inputs, tuple(lines))
