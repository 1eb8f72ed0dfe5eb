"""Observational equivalence: which of several programs do the same, decided by their outputs on
random inputs, the probes.

Probes are run in plain Python on integers of any size, so a program that leaves the range is not
taken for another one. NULL is an output like any other.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Sequence
from functools import cache

import numpy as np

from thesis_cli.synthesis.language.dsl import BY_NAME, INT, OPERATIONS, Semantics, Type, Value
from thesis_cli.synthesis.language.program import Line, Program

PROBES = 64
"""Inputs on which programs are compared."""

_LONGEST = 12
"""Length of the longest list in a probe."""

_HUGE = 2**1024
"""Magnitude from which a number has no value: long products would grow without end."""

_Column = list[Value | None]


@cache
def probes(inputs: tuple[Type, ...]) -> tuple[tuple[Value, ...], ...]:
    """Inputs of given types, shape (`PROBES`, inputs); always the same.

    Lists have 0 to 12 numbers, of magnitudes from 1 to 256; half of those in a probe are as long as
    its first, some are sorted, positive or negative. Inputs that are numbers are from -2 to one
    more than that length.
    """
    rng = np.random.default_rng(3)

    def numbers(length: int, magnitude: int) -> tuple[int, ...]:
        drawn = rng.integers(-magnitude, magnitude + 1, length)
        change = rng.integers(12)
        if change < 3:
            drawn = (np.sort(drawn), abs(drawn), -abs(drawn))[change]
        return tuple(map(int, drawn))

    def row(m: int) -> tuple[Value, ...]:
        length = int(rng.integers(_LONGEST + 1))
        return tuple(
            int(rng.integers(-2, length + 2))
            if kind is INT
            else numbers(length if rng.random() < 0.5 else int(rng.integers(_LONGEST + 1)), 1 << m % 9)
            for kind in inputs
        )

    return tuple(map(row, range(PROBES)))


def naturalness(program: Program) -> tuple[int, int, int]:
    """Smaller for the better of two programs that do the same: lines, those that take a variable
    twice, and arguments in all.

    `MAP (*2) a` comes before `ZIPWITH (+) a a`.
    """
    arguments = [line.arguments for line in program.lines]
    return len(arguments), sum(len(set(taken)) < len(taken) for taken in arguments), sum(map(len, arguments))


def natural(program: Program) -> Program:
    """The same program with `MAP (*2) a` for `ZIPWITH (+) a a`, and `MAP (**2) a` for `ZIPWITH (*) a
    a`.

    These are equal for all numbers, and leave the range together.
    """
    lines = [
        Line(BY_NAME[OPERATIONS[line.operation].doubled].id, line.arguments[:1]) if _is_doubled(line) else line
        for line in program.lines
    ]
    return Program(program.inputs, tuple(lines))


def _is_doubled(line: Line) -> bool:
    return bool(OPERATIONS[line.operation].doubled) and len(set(line.arguments)) == 1


class Kept:
    """Programs that a search has found, as `natural` writes them: all that are added, or those that
    do different things.

    Parameters
    ----------
    inputs : their types.
    semantics : only how quotients are rounded matters.
    distinct : whether one that does the same as an earlier one is only counted.

    Attributes
    ----------
    programs : the programs, in order; with `distinct`, the best of those that do the same on all
        probes.
    same : number of further programs that do the same as each, with `distinct`.
    """

    def __init__(self, inputs: tuple[Type, ...], semantics: Semantics, distinct: bool) -> None:
        self.programs: list[Program] = []
        self.same: list[int] = []
        self._types, self._semantics, self._distinct = inputs, semantics, distinct
        self._known: set[Program] = set()
        self._places: dict[bytes, int] = {}
        self._lines: list[Line] = []
        self._columns: list[_Column] = []

    def add(self, program: Program) -> None:
        """Keep a program, or count it; a program is kept once."""
        program = natural(program)
        if not self._distinct:
            if program not in self._known:
                self._known.add(program)
                self.programs.append(program)
            return
        place = self._places.setdefault(self._behaviour(program), len(self.programs))
        if place == len(self.programs):
            self.programs.append(program)
            self.same.append(0)
            return
        self.same[place] += 1
        if naturalness(program) < naturalness(self.programs[place]):
            self.programs[place] = program

    def _behaviour(self, program: Program) -> bytes:
        """A digest of the outputs on all probes; lines that the last program had, too, are not run
        again."""
        shared = 0
        while shared < min(len(self._lines), len(program)) and self._lines[shared] == program.lines[shared]:
            shared += 1
        inputs: list[_Column] = [list(column) for column in zip(*probes(self._types), strict=True)]
        del self._lines[shared:], self._columns[shared:]
        for line in program.lines[shared:]:
            columns = inputs + self._columns
            self._columns.append(_apply(line, [columns[i] for i in line.arguments], self._semantics))
            self._lines.append(line)
        outputs = _with_null(self._columns)
        return hashlib.blake2b(marshal.dumps(outputs, 2), digest_size=16).digest()  # 2: equal values, equal bytes


def _apply(line: Line, taken: Sequence[_Column], semantics: Semantics) -> _Column:
    """Results of an operation on all probes; None where an argument or the result has no value."""
    operation = OPERATIONS[line.operation]
    found: _Column = []
    for arguments in zip(*taken, strict=True):
        value = None if None in arguments else semantics.compute(operation, *arguments)
        found.append(None if value is None or _is_huge(value) else value)
    return found


def _is_huge(value: Value) -> bool:
    numbers = (value,) if isinstance(value, int) else value
    return bool(numbers) and max(max(numbers), -min(numbers)) >= _HUGE


def _with_null(columns: Sequence[_Column]) -> list[Value | None]:
    """The last column, without a value where any line has none."""
    return [None if None in row else row[-1] for row in zip(*columns, strict=True)]
