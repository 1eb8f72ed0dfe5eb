"""Values of a task as compiled code reads them (`lanes`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import Semantics, Value

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.lanes import Lanes
    from thesis_cli.synthesis.language.task import Task


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
    from thesis_cli.synthesis.language.lanes import NULL, WIDTH, row_size

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
    from thesis_cli.synthesis.language.lanes import WIDTH

    values = [value for example in task.examples for value in (*example.inputs, example.output)]
    longest = max((len(value) for value in values if not isinstance(value, int)), default=0)
    if longest >= WIDTH:
        problem = f"a compiled search takes no list of {longest} numbers"
        raise InputError(problem, f"it may have at most {WIDTH - 1}")
