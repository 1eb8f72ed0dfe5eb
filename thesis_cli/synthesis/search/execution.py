"""Partial programs that are run line by line on their examples, many at once, and their legal next lines.

A search that is led by what a program has computed so far (execution-guided) keeps a pool of
partial programs. `start` makes it, `step` adds a line to each program, and `Pool.take` keeps some
of them, or one several times. The values of all variables stand in arrays, so that a network can
read them. `moves` lists what the next line may be, by the rules of depth-first search
(`depth_first.Pruning`), in the same compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import TYPES
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, INT, MOST_INPUTS, OPERATIONS, Semantics, Value
from thesis_cli.synthesis.language.packing import WIDTH, Lanes, bounds_of, pack, refuse
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import ALL, Pruning

if TYPE_CHECKING:
    from thesis_cli.synthesis.search.execution_kernels import Types


@dataclass(frozen=True, eq=False)
class Pool:
    """B partial programs with their values on M examples; V = 3 + T variables have room.

    The variables of a program are its inputs, then its lines, without a gap.

    Attributes
    ----------
    tasks : all tasks of the pool.
    semantics : range of numbers, length of lists, and rounding.
    task : place of the task of each program, shape (B,).
    values : values of all variables, in the lanes of compiled code, shape (B, V, .): see `lanes`.
    types : 0 for a variable that is not there yet, 1 for a number, 2 for a list, shape (B, V), int8.
    sizes : number of variables so far, shape (B,).
    lines : operation and arguments of each line, the argument twice if there is one, -1 where there
        is no line yet, shape (B, T, 3).
    valid : whether no line is NULL or leaves the range on any example, shape (B,). A program that
        is not valid stays so.
    solved : whether the last line is the output on all examples, shape (B,).
    repeated : whether the last line has the values of an earlier variable on all examples, so that
        a shorter program does the same there, shape (B,).
    """

    tasks: tuple[Task, ...]
    semantics: Semantics
    task: Ints
    values: Lanes
    types: Types
    sizes: Ints
    lines: Ints
    valid: Bools
    solved: Bools
    repeated: Bools
    _targets: Lanes
    _target_types: Types

    def __len__(self) -> int:
        return len(self.task)

    @property
    def numbers(self) -> Lanes:
        """All values, each number as a list of length 1, padded with NULL = -32768, shape (B, V, M,
        32); a view."""

        return self.values[:, :, : WIDTH * self._examples].reshape(*self.types.shape, self._examples, WIDTH)

    @property
    def lengths(self) -> Lanes:
        """Lengths of all values, 1 for a number, shape (B, V, M); a view."""

        return self.values[:, :, WIDTH * self._examples : (WIDTH + 1) * self._examples]

    @property
    def _examples(self) -> int:

        return int(self.values.shape[2] // (WIDTH + 1))

    def take(self, rows: Ints | Bools | Sequence[int]) -> Pool:
        """Some of the programs, in the order of `rows`; a copy."""
        chosen = np.asarray(rows)
        names = "task", "values", "types", "sizes", "lines", "valid", "solved", "repeated"
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def program(self, row: int) -> Program:
        """A program of the pool. Raises InputError if it has no lines yet."""
        rows = [[int(number) for number in line] for line in self.lines[row] if line[0] >= 0]
        lines = [Line(id, (x, y)[: len(OPERATIONS[id].inputs)]) for id, x, y in rows]
        return Program(self.tasks[self.task[row]].inputs, tuple(lines))

    def value(self, row: int, variable: int) -> list[Value]:
        """The values of a variable of a program, one for each example of its task."""
        found: list[Value] = []
        for m in range(len(self.tasks[self.task[row]].examples)):
            numbers = tuple(int(x) for x in self.numbers[row, variable, m, : self.lengths[row, variable, m]])
            found.append(numbers[0] if TYPES[self.types[row, variable]] is INT else numbers)
        return found


def start(tasks: Sequence[Task], length: int, semantics: Semantics = DEFAULT) -> Pool:
    """A pool with an empty program for each task. Raises InputError if there is no task, no line is
    allowed, or a list does not fit into lanes.

    Parameters
    ----------
    tasks : tasks, at least one. A task that has fewer examples than another repeats its last one.
    length : T, lines of the longest program.
    semantics : range of numbers, length of lists, and rounding.
    """

    if not tasks or length < 1:
        raise InputError(f"{len(tasks)} tasks and {length} lines are given", "both must be at least 1")
    most = max(len(task.examples) for task in tasks)
    blocks, targets = [], []
    for task in tasks:
        refuse(task, semantics)
        examples = _padded(task.examples, most)
        columns = [[example.inputs[i] for example in examples] for i in range(len(task.inputs))]
        blocks.append(pack(columns, MOST_INPUTS + length))
        blocks[-1][len(columns) :, WIDTH * most :] = 0
        targets.append(pack([[example.output for example in examples]], 1)[0])
    count = len(tasks)
    types = np.zeros((count, MOST_INPUTS + length), dtype=np.int8)
    for row, task in enumerate(tasks):
        types[row, : len(task.inputs)] = [TYPES.index(kind) for kind in task.inputs]
    return Pool(
        tasks=tuple(tasks),
        semantics=semantics,
        task=np.arange(count),
        values=np.stack(blocks),
        types=types,
        sizes=np.array([len(task.inputs) for task in tasks]),
        lines=np.full((count, length, 3), -1),
        valid=np.ones(count, dtype=np.bool_),
        solved=np.zeros(count, dtype=np.bool_),
        repeated=np.zeros(count, dtype=np.bool_),
        _targets=np.stack(targets),
        _target_types=np.array([TYPES.index(task.output) for task in tasks], dtype=np.int8),
    )


def step(pool: Pool, moves: npt.ArrayLike, parents: npt.ArrayLike | None = None) -> Pool:
    """Add a line to programs of a pool; the pool itself is left as it is. Raises InputError if a
    move does not fit the variables of its program, or there is no room for a line; names the first
    such program.

    Parameters
    ----------
    pool : the programs.
    moves : operation (its id in `dsl.OPERATIONS`) and two variables for each new program, shape (N,
        3), as `moves` lists them. An operation of one argument takes the first variable; the second
        is not read.
    parents : places in the pool of the programs that are continued, shape (N,); all of them in
        order if left out.

    Returns
    -------
    The N programs, each one line longer.
    """
    from thesis_cli.synthesis.language.operation_kernels import SINGLE
    from thesis_cli.synthesis.search.execution_kernels import Programs, extend

    chosen = np.arange(len(pool)) if parents is None else np.asarray(parents, dtype=np.int64)
    lines = np.array(moves, dtype=np.int64)
    if lines.shape != (len(chosen), 3):
        raise InputError(f"the moves have shape {lines.shape}", f"it must be ({len(chosen)}, 3)")
    found = pool.take(chosen)
    _check(found, lines)
    single = SINGLE[lines[:, 0]]
    lines[single, 2] = lines[single, 1]
    found.lines[np.arange(len(found)), np.count_nonzero(found.lines[:, :, 0] >= 0, axis=1)] = lines
    extend(
        Programs(
            found.values.reshape(-1, found.values.shape[2]),
            found.types,
            found.sizes,
            found.valid,
            found.solved,
            found.repeated,
            found.task,
            found._targets,
            found._target_types,
        ),
        lines,
        bounds_of(pool.semantics),
    )
    return found


@cache
def prepare() -> None:
    """Compile `step` and `moves`, or load them."""
    pool = start([Task("any", (Example(((0,),), 0),))], 1)
    step(pool, [[0, 0, 0]])
    moves(pool)


def _check(pool: Pool, lines: Ints) -> None:
    """Refuse moves that do not fit."""
    from thesis_cli.synthesis.language.operation_kernels import SINGLE, TAKES_INT
    from thesis_cli.synthesis.search.execution_kernels import INTS, LISTS

    id, x, y = lines.T
    known = (id >= 0) & (id < len(OPERATIONS))
    chosen = np.where(known, id, 0)
    last = np.where(SINGLE[chosen], x, y)
    rows = np.arange(len(pool))
    here = known & (np.minimum(x, last) >= 0) & (np.maximum(x, last) < pool.sizes)
    one, two = pool.types[rows, np.where(here, x, 0)], pool.types[rows, np.where(here, last, 0)]
    first, second = np.where(TAKES_INT[chosen], INTS, LISTS).T
    fits = here & (one == first) & (two == second)
    full = pool.lines[:, -1, 0] >= 0
    if not fits.all() or full.any():
        row = int(np.argmax(~fits | full))
        problem = f"the move {tuple(lines[row].tolist())} of program {row} does not fit its {pool.sizes[row]} variables"
        if full[row]:
            problem = f"program {row} has {pool.lines.shape[1]} lines already"
        raise InputError(problem, "give an operation, and variables of the types that it takes")


def _padded(examples: Sequence[Example], most: int) -> list[Example]:
    return [*examples, *[examples[-1]] * (most - len(examples))]


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
