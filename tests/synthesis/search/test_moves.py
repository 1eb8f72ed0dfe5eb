"""The legal next lines of partial programs against plain rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, reduce
from itertools import pairwise, product
from operator import or_

import numpy as np
import pytest

from thesis_cli.synthesis.language.dsl import BY_NAME, INT, LIST, OPERATIONS, Type, Value
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import NONE, Pruning
from thesis_cli.synthesis.search.execution import Pool, moves, start, step

Codes = tuple[tuple[int, ...], ...]

ORDER = [BY_NAME[name].id for name in ("ZIPWITH MAX", "TAKE", "LAST", "SORT", "ZIPWITH (-)")]


def task(inputs: tuple[Type, ...], output: Type) -> Task:
    values: dict[Type, Value] = {INT: 1, LIST: (3, 1, 2)}
    return Task("any", (Example(tuple(values[kind] for kind in inputs), values[output]),))


def reached(pool: Pool, length: int, pruning: Pruning) -> list[Codes]:
    for _ in range(length):
        found = moves(pool, ORDER, pruning)
        pool = step(pool, found.lines, found.parents)
    return [tuple(map(tuple, lines)) for lines in pool.lines.tolist()]


@cache
def programs(inputs: tuple[Type, ...], length: int) -> list[tuple[Codes, Type, Pruning]]:
    """All well-typed programs, in order: their lines as a pool has them, the type of their output,
    and what leaves them out."""
    rows = []
    for program in written(inputs, length):
        codes = tuple((line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines)
        rows.append((codes, program.output, broken(program)))
    return rows


def written(inputs: tuple[Type, ...], length: int) -> Iterator[Program]:
    """All well-typed programs, in order."""

    def extend(types: tuple[Type, ...], lines: tuple[Line, ...]) -> Iterator[Program]:
        if len(lines) == length:
            yield Program(inputs, lines)
            return
        for operation in (OPERATIONS[id] for id in ORDER):
            for arguments in product(range(len(types)), repeat=len(operation.inputs)):
                if tuple(types[i] for i in arguments) == operation.inputs:
                    yield from extend((*types, operation.output), (*lines, Line(operation.id, arguments)))

    return extend(inputs, ())


def broken(program: Program) -> Pruning:
    """The rules that a program breaks, by the words of `Pruning`."""
    inputs, lines = len(program.inputs), program.lines
    commuted = any(OPERATIONS[line.operation].commutes and line.arguments[0] > line.arguments[1] for line in lines)
    places = [(ORDER.index(line.operation), line.arguments[0], line.arguments[-1]) for line in lines]
    permuted = any(
        inputs + i - 1 not in lines[i].arguments and places[i] <= places[i - 1] for i in range(1, len(lines))
    )
    unused = any(v >= inputs for v in program.unused)
    rules = ((Pruning.UNUSED, unused), (Pruning.COMMUTED, commuted), (Pruning.PERMUTED, permuted))
    return reduce(or_, (rule for rule, holds in rules if holds), NONE)


@pytest.mark.parametrize("inputs", [(LIST,), (INT, LIST), (LIST, LIST)], ids=str)
@pytest.mark.parametrize("pruning", [NONE, *Pruning, Pruning(127)], ids=str)
def test_legal_lines_reach_the_legal_programs(inputs: tuple[Type, ...], pruning: Pruning) -> None:
    length = 3 if inputs == (LIST,) else 2
    for output in Type:
        found = reached(start([task(inputs, output)], length), length, pruning)
        assert found == [
            codes
            for codes, kind, rules in programs(inputs, length)
            if not (rules & pruning or (pruning & Pruning.MISTYPED and kind is not output))
        ]


def test_programs_of_several_tasks_at_once() -> None:
    kinds = [((LIST,), INT), ((INT, LIST), LIST), ((LIST, LIST), LIST)]
    pool = start([task(inputs, output) for inputs, output in kinds], 3)
    first = moves(pool, ORDER)
    pool = step(pool, first.lines, first.parents)
    found = moves(pool, ORDER)
    rows = [moves(pool.take([row]), ORDER).lines for row in range(len(pool))]
    assert np.array_equal(found.lines, np.concatenate(rows))
    assert np.array_equal(found.parents, np.repeat(np.arange(len(pool)), list(map(len, rows))))
    each = [(b, *line) for b, line in zip(found.parents, map(tuple, found.lines), strict=True)]
    assert len(set(each)) == len(each)


def test_a_program_without_a_value_or_room_has_no_next_line() -> None:
    empty = Task("empty", (Example(((),), 0),))
    pool = step(start([empty], 2), [[BY_NAME["HEAD"].id, 0, 0]])
    assert len(moves(pool).lines) == 0
    full = step(start([empty], 1), [[BY_NAME["SUM"].id, 0, 0]])
    assert len(moves(full).lines) == 0
    assert all(a <= b for a, b in pairwise(moves(start([empty, empty], 1)).parents))
