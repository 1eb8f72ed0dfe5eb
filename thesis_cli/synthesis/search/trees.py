"""Expressions on the values of a bank, and the programs that compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import OPERATIONS, Type
from thesis_cli.synthesis.language.program import Line, Program, program_on

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
