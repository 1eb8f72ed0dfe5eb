"""Expressions on the values of a bank, and the programs that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.dsl import OPERATIONS, Semantics, Type
from thesis_cli.synthesis.program import Line, Program
from thesis_cli.synthesis.task import Task

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
    lines: list[Line] = []

    def variable(tree: Tree) -> int:
        if tree not in variables:
            id, *arguments = map(int, origins[tree]) if isinstance(tree, int) else tree
            line = Line(id, tuple(map(variable, arguments[: len(OPERATIONS[id].inputs)])))
            lines.append(line)
            variables[tree] = len(inputs) + len(lines) - 1
        return variables[tree]

    variable(tree)
    return Program(tuple(inputs), tuple(lines))


def shortened(program: Program, task: Task, semantics: Semantics) -> Program:
    """A shortest program that gives the output of a program, all of whose values are among its.

    A bank knows one expression of each value. Another one may share more results.

    Parameters
    ----------
    program : fits all examples of the task.
    """
    inputs = len(program.inputs)
    columns = list(zip(*(example.inputs for example in task.examples), strict=True))
    for line in program.lines:
        rows = zip(*(columns[x] for x in line.arguments), strict=True)
        columns.append(tuple(semantics.apply(OPERATIONS[line.operation], *row) for row in rows))
    firsts = {column[0]: place for place, column in reversed(list(enumerate(columns)))}
    places = {column: place for place, column in reversed(list(enumerate(columns)))}
    lines: dict[int, list[Line]] = {}
    for operation in OPERATIONS:
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
            found = _arranged({*others, output}, inputs, lines)
            if found:
                return Program(program.inputs, found)
    return program


def _arranged(needed: set[int], inputs: int, lines: dict[int, list[Line]]) -> tuple[Line, ...] | None:
    """Lines that compute some values, each from those before it; None if there are none."""
    numbers = {place: place for place in range(inputs)}
    found: list[Line] = []
    while len(found) < len(needed):
        for place in needed - numbers.keys():
            line = next((line for line in lines[place] if numbers.keys() >= set(line.arguments)), None)
            if line is not None:
                found.append(Line(line.operation, tuple(numbers[x] for x in line.arguments)))
                numbers[place] = inputs + len(found) - 1
                break
        else:
            return None
    output = numbers[max(needed)]
    return tuple(found) if output == inputs + len(found) - 1 else None
