"""Tasks from random programs, and all programs that fit them, by the plain interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from tests.synthesis.strategies import programs
from thesis_cli.synthesis.language.dsl import DEFAULT, LIST, OPERATIONS, Semantics, Value
from thesis_cli.synthesis.language.program import Line, Program, run
from thesis_cli.synthesis.language.task import Example, Task

Tree = tuple[object, ...] | int
"""A program as its last line with what stands for its arguments: trees, or numbers of inputs."""


@st.composite
def tasks(draw: st.DrawFn, longest: int = 2, semantics: Semantics = DEFAULT) -> Task:
    """What a random program of up to `longest` lines does to inputs of few small numbers, in 2 or 3
    examples."""
    program = draw(programs(longest, language=semantics.language))
    numbers = st.integers(max(-9, semantics.low), min(9, semantics.high))
    kinds = [st.lists(numbers, max_size=5).map(tuple) if kind is LIST else numbers for kind in program.inputs]
    rows = draw(st.lists(st.tuples(*kinds), min_size=3, max_size=6, unique=True))
    outputs = [run(program, row, semantics) for row in rows]
    examples = [Example(row, output) for row, output in zip(rows, outputs, strict=True) if output is not None]
    return Task("random", tuple(examples[:3])) if examples else draw(tasks(longest, semantics))


def fitting(
    task: Task, length: int, semantics: Semantics = DEFAULT
) -> Iterator[tuple[Program, list[tuple[Value, ...]]]]:
    """Every program of a length that fits, with the values of its variables, one row an example
    each."""

    outputs = [example.output for example in task.examples]

    def extend(lines: list[Line], rows: list[tuple[Value, ...]], types: list[object]) -> Iterator[list[Line]]:
        last = len(lines) + 1 == length
        for operation in semantics.language.operations:
            places = [[i for i, t in enumerate(types) if t is kind] for kind in operation.inputs]
            for arguments in product(*places):
                values = []
                for output, *columns in zip(outputs, *(rows[i] for i in arguments), strict=True):
                    values.append(semantics.apply(operation, *columns))
                    if values[-1] is None or (last and values[-1] != output):
                        break
                else:
                    longer = [*lines, Line(operation.id, arguments)]
                    rows.append(tuple(values))
                    yield from [longer] if last else extend(longer, rows, [*types, operation.output])
                    rows.pop()

    inputs = list(zip(*(example.inputs for example in task.examples), strict=True))
    rows = list(inputs)
    for lines in extend([], rows, list(task.inputs)):
        yield Program(task.inputs, tuple(lines)), list(rows)


def shortest(task: Task, length: int, semantics: Semantics = DEFAULT) -> int | None:
    """Length of the shortest program that fits, up to a length."""
    return next((t for t in range(1, length + 1) if any(fitting(task, t, semantics))), None)


def tree(program: Program) -> Tree:
    """The same for programs that differ in the order of lines alone, or of arguments that may be
    swapped."""
    trees: list[Tree] = list(range(len(program.inputs)))
    for line in program.lines:
        arguments = [trees[i] for i in line.arguments]
        if OPERATIONS[line.operation].commutes:
            arguments.sort(key=repr)
        trees.append((line.operation, *arguments))
    return trees[-1]
