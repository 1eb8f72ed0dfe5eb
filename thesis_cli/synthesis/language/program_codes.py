"""Programs as rows of whole numbers, one for each line: `id << 8 | x << 4 | y`.

x and y are the variables that the line takes; y is x if it takes one. So codes sort as operations
and arguments do. Four bits hold a variable of a program of up to `MOST_LINES` lines. Only
`code_of` and the functions after it know how a code is packed; kernels compile them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, permutations
from typing import TYPE_CHECKING, Any, TypeAlias

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import INT, LIST, MOST_INPUTS, OPERATIONS, Type
from thesis_cli.synthesis.language.program import Line, Program

if TYPE_CHECKING:
    import numpy as np

Codes: TypeAlias = "np.typing.NDArray[np.int32]"
"""Programs by the codes of their lines."""

Signature = tuple[Type, ...]

MOST_LINES = 10
"""Lines of the longest program that has a code."""

VARIABLE_BITS = 4
"""Bits of a variable in a code."""

assert MOST_INPUTS + MOST_LINES <= 2**VARIABLE_BITS

SIGNATURES: tuple[Signature, ...] = tuple(
    types
    for count in range(1, MOST_INPUTS + 1)
    for types in combinations_with_replacement((INT, LIST), count)
    if LIST in types
)
"""Types of 1 to 3 inputs, at least one of them a list, numbers first."""


def code_of(id: Any, x: Any, y: Any) -> Any:
    """The code of a line, or an array of them: an operation, and the variables that it takes."""
    return id << 2 * VARIABLE_BITS | x << VARIABLE_BITS | y


def operation_of(code: Any, bits: Any = VARIABLE_BITS) -> Any:
    """The id of the operation of a code, or of an array of them; below 0 where there is no line."""
    return code >> 2 * bits


def arguments_of(code: Any, bits: Any = VARIABLE_BITS) -> Any:
    """The variables x and y that the line of a code takes, or those of an array of codes."""
    return code >> bits & (1 << bits) - 1, code & (1 << bits) - 1


def encode(program: Program) -> Codes:
    """Codes of a program's lines, shape (T,), int32. Raises InputError for more than `MOST_LINES`
    lines."""
    import numpy as np

    if len(program) > MOST_LINES:
        raise InputError(f"the program has {len(program)} lines", f"it may have at most {MOST_LINES}")
    codes = [code_of(line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines]
    return np.array(codes, dtype=np.int32)


def arrangements(program: Program) -> Iterator[Program]:
    """The same program with its inputs in every order that makes a signature."""
    count = len(program.inputs)
    for order in permutations(range(count)):
        inputs = tuple(program.inputs[i] for i in order)
        if inputs in SIGNATURES:
            place = {old: new for new, old in enumerate(order)}
            lines = (
                Line(line.operation, tuple(place.get(variable, variable) for variable in line.arguments))
                for line in program.lines
            )
            yield Program(inputs, tuple(lines))


def decode(inputs: Sequence[Type], codes: Iterable[int]) -> Program:
    """The program of some codes; those below 0 stand for no line."""
    lines = []
    for code in map(int, codes):
        if code >= 0:
            id = operation_of(code)
            lines.append(Line(id, arguments_of(code)[: len(OPERATIONS[id].inputs)]))
    return Program(tuple(inputs), tuple(lines))
