"""Values in lanes, and the bounds on their numbers, as compiled code reads them.

A value is a row of a pool. It has `WIDTH` int16 lanes for each of M examples, one example after the
other, then the length of each. Lanes beyond the length, at least one, hold NULL; a number is a list
of length 1. Loops over all lanes of all examples become vector instructions, which loops over true
lengths would not; where a loop cannot become one, the length that is stored bounds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import Semantics, Value

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.task import Task

Lanes = npt.NDArray[np.int16]

WIDTH = 32
"""Lanes of a list; it is shorter by at least 1."""

NULL = np.int16(-(2**15))
"""Filler of lanes beyond the length. Like 2^15 - 1, to which larger numbers are clamped, it is
in no range."""


def row_size(examples: int) -> int:
    """Lanes and lengths of a value, in words of 64 bits."""
    return WIDTH * examples + -(-examples // 4) * 4


def pack(columns: Sequence[Sequence[Value]], rows: int) -> Lanes:
    """Values in the lanes that compiled code reads.

    Parameters
    ----------
    columns : values over M examples, shape (V, M).
    rows : number of rows, at least V; those after V are empty.

    Returns
    -------
    A pool, shape (rows, `row_size(M)`): see `operation_kernels`.
    """

    examples = len(columns[0])
    pool = np.full((rows, row_size(examples)), NULL)
    for row, column in enumerate(columns):
        for m, value in enumerate(column):
            numbers = (value,) if isinstance(value, int) else value
            pool[row, m * WIDTH : m * WIDTH + len(numbers)] = numbers
            pool[row, examples * WIDTH + m] = len(numbers)
    return pool


def refuse(task: Task, semantics: Semantics) -> None:
    """Refuse lists that do not fit into lanes. Raises InputError for a list that is too long."""

    values = [value for example in task.examples for value in (*example.inputs, example.output)]
    longest = max((len(value) for value in values if not isinstance(value, int)), default=0)
    if longest >= WIDTH:
        problem = f"a compiled search takes no list of {longest} numbers"
        raise InputError(problem, f"it may have at most {WIDTH - 1}")


class Bounds(NamedTuple):
    """The part of `dsl.Semantics` that kernels need.

    Attributes
    ----------
    low, high : the range of numbers, int16.
    floor : whether quotients are rounded down.
    """

    low: np.int16
    high: np.int16
    floor: bool


def bounds_of(semantics: Semantics) -> Bounds:
    """The bounds of some semantics."""
    return Bounds(np.int16(semantics.low), np.int16(semantics.high), semantics.division == "floor")
