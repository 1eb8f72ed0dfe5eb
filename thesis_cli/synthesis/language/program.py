"""Programs, one operation a line, each on variables above it: their notation, interpreter and number, and
which of them do the same.

Observational equivalence is decided by outputs on random inputs, the probes. These are run in plain Python on
integers of any size, so a program that leaves the range is not taken for another one. NULL is an output
like any other.
"""

from __future__ import annotations

import hashlib
import marshal
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import (
    BY_NAME,
    DEEPCODER,
    DEFAULT,
    FUNCTIONS,
    INT,
    LANGUAGES,
    LIST,
    MOST_INPUTS,
    OPERATIONS,
    Language,
    Operation,
    Semantics,
    Type,
    Value,
    lambdas_of,
    type_of,
)

_NOTATION = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2190": "<-"})  # minus sign, en dash, left arrow
_STATEMENT = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*<-\s*(.*)", re.DOTALL)
_WORD = re.compile(r"\((?:[^()]|\([^()]*\))*\)|[^\s()]+")


@dataclass(frozen=True)
class Line:
    """One statement.

    Attributes
    ----------
    operation : id in `dsl.OPERATIONS`.
    arguments : numbers of the variables it takes, from 0: the inputs, then the results of lines.
    """

    operation: int
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A well-typed program; the result of its last line is its output. Raises InputError if it has
    no line, no input or more than 3, or a line does not fit the variables above it.

    Attributes
    ----------
    inputs : types of its 1 to 3 inputs.
    lines : its T >= 1 statements.
    """

    inputs: tuple[Type, ...]
    lines: tuple[Line, ...]

    most_inputs: ClassVar[int] = MOST_INPUTS

    def __post_init__(self) -> None:
        if not 1 <= len(self.inputs) <= self.most_inputs:
            raise InputError(f"the program has {len(self.inputs)} inputs", f"it must have 1 to {self.most_inputs}")
        if not self.lines:
            raise InputError("the program has no lines", "add a line such as b <- SORT a after its inputs")
        types = list(self.inputs)
        names = [name_of(i) for i in range(len(self.inputs) + len(self.lines))]
        for number, line in enumerate(self.lines, len(self.inputs) + 1):
            try:
                _check(line, types, names)
            except InputError as error:
                raise InputError(error.problem, error.remedy, source="program", line=number) from None
            types.append(OPERATIONS[line.operation].output)

    def __len__(self) -> int:
        """Length T: inputs are not counted."""
        return len(self.lines)

    @property
    def types(self) -> tuple[Type, ...]:
        """Types of all variables: inputs, then results of lines."""
        return self.inputs + tuple(OPERATIONS[line.operation].output for line in self.lines)

    @property
    def output(self) -> Type:
        """Type of the output."""
        return OPERATIONS[self.lines[-1].operation].output

    @property
    def attributes(self) -> frozenset[int]:
        """Places in `Language.attributes` of the functions and lambdas it uses (its attribute vector,
        section 5.4.1)."""
        return frozenset(a for line in self.lines for a in OPERATIONS[line.operation].attributes)

    @property
    def language(self) -> Language:
        """The smallest language that has its operations."""
        return next(found for found in LANGUAGES.values() if max(self.attributes) < len(found.attributes))

    @property
    def unused(self) -> tuple[int, ...]:
        """Variables, including inputs, that the output does not depend on."""
        total = len(self.inputs) + len(self.lines)
        used = {total - 1}
        for number in range(total - 1, len(self.inputs) - 1, -1):
            if number in used:
                used.update(self.lines[number - len(self.inputs)].arguments)
        return tuple(number for number in range(total) if number not in used)

    def __str__(self) -> str:
        """The notation of the thesis, one statement a line, with the names a, b, ..., z, a1, ...;
        `parse` reads it."""
        rows = [f"{name_of(i)} <- {kind}" for i, kind in enumerate(self.inputs)]
        for number, line in enumerate(self.lines, len(self.inputs)):
            words = (OPERATIONS[line.operation].name, *map(name_of, line.arguments))
            rows.append(f"{name_of(number)} <- {' '.join(words)}")
        return "\n".join(rows)

    @property
    def one_line(self) -> str:
        """The same in one line, with semicolons between statements."""
        return str(self).replace("\n", "; ")


@dataclass(frozen=True)
class Rest(Program):
    """The last lines of a program; all variables above them stand as inputs, so there may be more
    than 3."""

    most_inputs = 15


def program_on(inputs: tuple[Type, ...], lines: tuple[Line, ...]) -> Program:
    """A program, or a `Rest` if it has more inputs than a program may have."""
    return (Program if len(inputs) <= MOST_INPUTS else Rest)(inputs, lines)


def run(program: Program, inputs: Sequence[Value], semantics: Semantics = DEFAULT, ranged: bool = True) -> Value | None:
    """Output of a program; every compiled interpreter is compared with it. Raises InputError if the
    inputs are of other types.

    Parameters
    ----------
    inputs : values of the types that the program takes; numbers within the range.
    ranged : whether values out of range are refused.

    Returns
    -------
    The value of its last line; None if any line, used or not, gives NULL or, if that is refused, leaves
    the range.
    """
    values = list(inputs)
    found = tuple(map(type_of, values))
    if found != program.inputs:
        raise InputError(f"the inputs are {signature(found)}", f"the program takes {signature(program.inputs)}")
    apply = semantics.apply if ranged else semantics.compute
    for line in program.lines:
        value = apply(OPERATIONS[line.operation], *(values[i] for i in line.arguments))
        if value is None:
            return None
        values.append(value)
    return values[-1]


def parse(text: str, source: str | Path = "program") -> Program:
    """Read a program in the notation of the thesis.

    Statements are on separate lines, or separated by `;` or `|`. `a <- [int]` and `k <- int`
    declare inputs and come first; `c <- ZIPWITH (-) a b` applies an operation to variables above
    it. Arrows and minus signs may be the printed ones. Case matters only in names of variables,
    which are not kept. Raises InputError for a line that is not a statement, an unknown name, a
    name that is defined twice, or a wrong type; or there is no program at all. It names the line.
    """
    names: list[str] = []
    types: list[Type] = []
    lines: list[Line] = []
    for number, row in enumerate(text.translate(_NOTATION).splitlines(), 1):
        for statement in filter(None, map(str.strip, re.split("[;|]", row))):
            try:
                name, content = _split(statement, names)
                declared = "".join(content.lower().split())
                if declared in (INT, LIST):
                    if lines:
                        raise InputError(f"the input {name} is below a line", "inputs come first")
                    types.append(Type(declared))
                else:
                    lines.append(_read(content, names))
                    _check(lines[-1], types, names)
                    types.append(OPERATIONS[lines[-1].operation].output)
                names.append(name)
            except InputError as error:
                raise InputError(error.problem, error.remedy, source=source, line=number) from None
    try:
        return Program(tuple(types[: len(types) - len(lines)]), tuple(lines))
    except InputError as error:
        raise error.at(source) from None


def search_space(inputs: Sequence[Type], length: int) -> int:
    """Number of well-typed programs of `DEEPCODER` of exactly `length` lines on given inputs, unused
    variables allowed.

    The choices for the next line depend only on the numbers of variables of either type; nothing is
    enumerated.
    """
    states = Counter({(inputs.count(INT), inputs.count(LIST)): 1})
    for _ in range(length):
        longer: Counter[tuple[int, int]] = Counter()
        for (ints, lists), programs in states.items():
            for operation in DEEPCODER.operations:
                choices = math.prod(ints if kind is INT else lists for kind in operation.inputs)
                to_int = operation.output is INT
                longer[ints + to_int, lists + (not to_int)] += programs * choices
        states = longer
    return states.total()


def name_of(variable: int) -> str:
    """Canonical name of a variable: a to z, then a1 to z1, and so on."""
    turn, letter = divmod(variable, 26)
    return chr(ord("a") + letter) + (str(turn) if turn else "")


def signature(types: Sequence[Type]) -> str:
    """Types, as messages show them."""
    return f"({', '.join(types)})"


def _check(line: Line, types: Sequence[Type], names: Sequence[str]) -> None:
    """Refuse a line that does not fit the variables above it, which have these types and names."""
    if not 0 <= line.operation < len(OPERATIONS):
        raise InputError(f"no operation {line.operation}", f"it must be from 0 to {len(OPERATIONS) - 1}")
    for variable in line.arguments:
        if not 0 <= variable < len(types):
            raise InputError(f"no variable {variable} is above this line", f"it must be from 0 to {len(types) - 1}")
    operation = OPERATIONS[line.operation]
    found = tuple(types[variable] for variable in line.arguments)
    if found != operation.inputs:
        given = ", ".join(f"{names[i]} is {types[i]}" for i in dict.fromkeys(line.arguments)) or "nothing is given"
        raise InputError(f"{operation.name} takes {signature(operation.inputs)}", given)


def _split(statement: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and content of a statement."""
    match = _STATEMENT.fullmatch(statement)
    if not match or not match[2]:
        raise InputError(f"{statement[:40]!r} is not a statement", "write one such as c <- ZIPWITH (-) a b")
    if match[1] in names:
        raise InputError(f"the variable {match[1]} is defined twice", "every line needs a new name")
    return match[1], match[2]


def _read(content: str, names: Sequence[str]) -> Line:
    """A line from its function, lambda and names of variables; types are left to `_check`."""
    if _WORD.sub("", content).strip():
        raise InputError("parentheses do not match", "write lambdas as in (*3) or (*(-1))")
    words = _WORD.findall(content)
    operation, words = _operation(words)
    for word in words:
        if word not in names:
            above = f"above are {', '.join(names[:30])}" if names else "begin with an input such as a <- [int]"
            raise InputError(f"no variable {word[:40]!r} is above this line", above)
    return Line(operation.id, tuple(map(names.index, words)))


def _operation(words: list[str]) -> tuple[Operation, list[str]]:
    """The operation that a line begins with, and the words after it."""
    function = next((f for f in FUNCTIONS if f.name == words[0].upper()), None)
    if function is None:
        functions = ", ".join(f.name for f in FUNCTIONS)
        raise InputError(f"unknown function {words[0][:40]!r}", f"it must be one of {functions}")
    if not function.takes:
        return BY_NAME[function.name], words[1:]
    known = {_bare(f.name): f for f in lambdas_of(function)}
    chosen = known.get(_bare(words[1])) if len(words) > 1 else None
    if chosen is None:
        problem = f"{function.name} has no lambda {words[1][:40]}" if words[1:] else f"{function.name} lacks its lambda"
        raise InputError(problem, f"it must be one of {', '.join(f.name for f in known.values())}")
    return BY_NAME[f"{function.name} {chosen.name}"], words[2:]


def _bare(name: str) -> str:
    """Name of a lambda without parentheses, spaces and case, in which writers differ."""
    return re.sub(r"[()\s]", "", name).upper()


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
    import numpy as np

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
