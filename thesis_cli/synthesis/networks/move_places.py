"""Where the score of a line stands among the scores of all lines of a program.

The scores of operations of one argument come first, shape (operations, V), then those of operations
of two, shape (operations, V, V). A pair of lists that can be swapped stands at its first and second
variable in ascending order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.language.dsl import OPERATIONS

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Ints

SINGLE = tuple(o.id for o in OPERATIONS if len(o.inputs) == 1)
"""Ids of operations of one argument."""

DOUBLE = tuple(o.id for o in OPERATIONS if len(o.inputs) == 2)
"""Ids of operations of two arguments."""

COMMUTING = tuple(DOUBLE.index(o.id) for o in OPERATIONS if o.commutes)
"""Places in `DOUBLE` of those whose arguments can be swapped."""

COLUMN = np.zeros(len(OPERATIONS), dtype=np.int64)
COLUMN[list(SINGLE)] = range(len(SINGLE))
COLUMN[list(DOUBLE)] = range(len(DOUBLE))
"""Place of each operation in `SINGLE` or `DOUBLE`."""

COMMUTES = np.array([o.commutes for o in OPERATIONS])
"""Whether the arguments of an operation can be swapped."""

_IS_DOUBLE = np.isin(range(len(OPERATIONS)), DOUBLE)


def places_in(variables: int) -> int:
    """Number of places for V variables."""
    return len(SINGLE) * variables + len(DOUBLE) * variables**2


def places_of(lines: Ints, variables: int) -> Ints:
    """Places of lines, shape (N,), from operations and arguments, shape (N, 3), for V variables."""
    id, x, y = lines.T
    swap = COMMUTES[id] & (y < x)
    x, y = np.where(swap, y, x), np.where(swap, x, y)
    double = (len(SINGLE) + COLUMN[id] * variables + x) * variables + y
    return np.asarray(np.where(_IS_DOUBLE[id], double, COLUMN[id] * variables + x))
