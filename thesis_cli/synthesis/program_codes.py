"""Programs as rows of whole numbers, one for each line: `id << 6 | x << 3 | y`.

x and y are the variables that the line takes; y is x if it takes one. So codes sort as operations
and arguments do. Three bits hold the variables of a program of `MOST_LINES` lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, permutations
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.dsl import INT, LIST, MOST_INPUTS, OPERATIONS, Type
from thesis_cli.synthesis.program import Line, Program

if TYPE_CHECKING:
    from thesis_cli.synthesis.input_range_kernels import Codes

Signature = tuple[Type, ...]

MOST_LINES = 2**3 - MOST_INPUTS
"""Lines of the longest program that has a code."""

SIGNATURES: tuple[Signature, ...] = tuple(
    types
    for count in range(1, MOST_INPUTS + 1)
    for types in combinations_with_replacement((INT, LIST), count)
    if LIST in types
)
"""Types of 1 to 3 inputs, at least one of them a list, numbers first."""


def encode(program: Program) -> Codes:
    """Codes of a program's lines, shape (T,), int32.

    Raises
    ------
    InputError : more than `MOST_LINES` lines.
    """
    import numpy as np

    if len(program) > MOST_LINES:
        raise InputError(f"the program has {len(program)} lines", f"it may have at most {MOST_LINES}")
    codes = [line.operation << 6 | line.arguments[0] << 3 | line.arguments[-1] for line in program.lines]
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
            id, arguments = code >> 6, (code >> 3 & 7, code & 7)
            lines.append(Line(id, arguments[: len(OPERATIONS[id].inputs)]))
    return Program(tuple(inputs), tuple(lines))
