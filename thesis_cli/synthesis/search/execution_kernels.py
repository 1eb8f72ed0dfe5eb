"""Compiled steps of many partial programs; `execution` describes them, and `dsl.Semantics.apply` is
the plain reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.compiled import ZERO, kernel
from thesis_cli.synthesis.language.lanes import examples_of, same
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT, apply
from thesis_cli.synthesis.language.packing import NULL, WIDTH, Bounds, Lanes

Types = npt.NDArray[np.int8]

NONE, INTS, LISTS = range(3)
"""Types of variables, as a corpus has them: none yet, a number, a list."""


class Programs(NamedTuple):
    """B partial programs, with room for V variables each; all but `task` and `targets` is updated.

    Attributes
    ----------
    rows : values of all variables (`lanes`), shape (B V, .).
    types : types of the variables, shape (B, V).
    sizes : number of variables so far, shape (B,).
    valid, solved, repeated : flags as in `execution.Pool`, shape (B,).
    task : place of the task of each, shape (B,).
    targets : outputs of the tasks, shape (tasks, .).
    target_types : their types, shape (tasks,).
    """

    rows: Lanes
    types: Types
    sizes: Ints
    valid: Bools
    solved: Bools
    repeated: Bools
    task: Ints
    targets: Lanes
    target_types: Types


@kernel()
def extend(programs: Programs, moves: Ints, bounds: Bounds) -> None:
    """Add a line to each program that has values so far.

    Parameters
    ----------
    programs : programs, each with room for another variable; updated.
    moves : operation and arguments of each line, shape (B, 3), the same argument twice if the
        operation takes one. They fit the types of the variables.
    bounds : range of numbers, and rounding.
    """
    rows, types, sizes, valid, solved, repeated, task, targets, target_types = programs
    examples = examples_of(rows)
    room = types.shape[1]
    for b in range(sizes.size):
        first, line, id = b * room, sizes[b], moves[b, 0]
        out = first + line
        kind = INTS if GIVES_INT[id] else LISTS
        types[b, line] = kind
        sizes[b] += 1
        solved[b] = repeated[b] = False
        if valid[b]:
            valid[b] = apply(id, rows, first + moves[b, 1], first + moves[b, 2], out, (ZERO, examples), bounds)
        if not valid[b]:
            for i in range(rows.shape[1]):
                rows[out, i] = NULL if i < WIDTH * examples else 0
            continue
        for v in range(line):
            repeated[b] |= types[b, v] == kind and same(rows, first + v, out, ZERO, examples)
        differs = np.int16(kind != target_types[task[b]])
        for i in range(WIDTH * examples):
            differs |= rows[out, i] ^ targets[task[b], i]
        solved[b] = differs == 0
