"""Legal next lines of partial programs, many at once.

The rules are those of depth-first search (`depth_first.Pruning`), in the same compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.corpus.corpus import TYPES
from thesis_cli.synthesis.language.dsl import DEEPCODER, INT
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import ALL, Pruning
from thesis_cli.synthesis.search.execution import Pool, start


@dataclass(frozen=True, eq=False)
class Moves:
    """N legal next lines of B partial programs.

    `execution.step(pool, moves.lines, moves.parents)` carries them out.

    Attributes
    ----------
    parents : places of the programs, ascending, shape (N,).
    lines : operation (its id in `dsl.OPERATIONS`) and two variables, the same one twice if the
        operation takes one, shape (N, 3). Those of a program come in the order in which a search
        tries them.
    programs : B.
    """

    parents: Ints
    lines: Ints
    programs: int


def moves(pool: Pool, operations: Sequence[int] | None = None, pruning: Pruning = ALL) -> Moves:
    """The legal next lines of partial programs.

    Every program of T lines, the length for which the pool has room, is reached by legal lines
    alone, or another one is that does the same. So is every shorter program. A program that has T
    lines, or no value, has no next line.

    Parameters
    ----------
    pool : the programs.
    operations : ids of those to use, in the order in which a search tries them; all of
        `DEEPCODER` by id if left out.
    pruning : moves to leave out. Only UNUSED, COMMUTED, PERMUTED and MISTYPED matter, which need no
        values. MISTYPED is about line T.
    """
    from thesis_cli.synthesis.language.operation_kernels import GIVES_INT
    from thesis_cli.synthesis.search.moves_kernels import MoveRoom, Unfinished, list_moves

    order = np.arange(len(DEEPCODER.operations)) if operations is None else np.array(operations, dtype=np.int64)
    (count, variables), length = pool.types.shape, pool.lines.shape[1]
    gives = GIVES_INT[order]
    every = np.ones_like(gives)
    ends = np.stack([~gives, gives, every] if pruning & Pruning.MISTYPED else [every] * 3)
    inputs = np.array([len(task.inputs) for task in pool.tasks])
    results = np.array([int(task.output is INT) for task in pool.tasks])
    batch = Unfinished(pool.types == TYPES.index(INT), inputs[pool.task], results[pool.task], pool.lines, pool.valid)
    room = MoveRoom(
        uses=np.zeros(variables, dtype=np.int64),
        chosen=np.zeros((length, 3), dtype=np.int64),
        variables=np.zeros((4, variables + 1), dtype=np.int64),
        rows=np.zeros((len(order) * variables**2, 3), dtype=np.int64),
    )
    found = np.zeros((64 * count, 4), dtype=np.int64)
    total = list_moves(batch, order, ends, int(pruning), room, found)
    if total > len(found):
        found = np.zeros((total, 4), dtype=np.int64)
        list_moves(batch, order, ends, int(pruning), room, found)
    return Moves(found[:total, 0], found[:total, 1:], count)


@cache
def prepare() -> None:
    """Compile `moves`, or load it."""
    moves(start([Task("any", (Example(((0,),), 0),))], 1))
