"""Shorter programs from one that fits: a bank knows one expression of each value, and another one may
share more results."""

from __future__ import annotations

from itertools import combinations, product

from thesis_cli.synthesis.language.dsl import OPERATIONS, Semantics, Value
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import Examination
from thesis_cli.synthesis.search.spaces import EVERY

MOST = 3
"""Lines that are sought for one value."""


def shorter(program: Program, task: Task, semantics: Semantics, most: int) -> Program | None:
    """A program of at most `most` lines that gives what a longer one gives, if one is found.

    It has the same values, or one of them is computed from the others anew.

    Parameters
    ----------
    program : fits all examples of the task.
    """
    found = _of_same_values(program, task, semantics)
    if len(found) <= most:
        return found
    columns = _columns(found, task, semantics)
    for place in reversed(range(len(found) - 1)):
        remade = _remade(found, place, columns, task, semantics, most)
        if remade is not None:
            return remade
    return None


def _columns(program: Program, task: Task, semantics: Semantics) -> list[tuple[Value, ...]]:
    """Values of all variables on the examples, all of which the program fits."""
    columns = list(zip(*(example.inputs for example in task.examples), strict=True))
    for line in program.lines:
        rows = zip(*(columns[x] for x in line.arguments), strict=True)
        values = (semantics.apply(OPERATIONS[line.operation], *row) for row in rows)
        columns.append(tuple(value for value in values if value is not None))
    return columns


def _remade(
    program: Program, place: int, columns: list[tuple[Value, ...]], task: Task, semantics: Semantics, most: int
) -> Program | None:
    """The program with other lines for the value of one line, in at most `most` lines."""
    inputs = len(program.inputs)
    after = {place}
    for number in range(place + 1, len(program)):
        if any(x - inputs in after for x in program.lines[number].arguments):
            after.add(number)
    after.remove(place)
    kept: set[int] = set()
    for number in reversed(range(len(program))):
        if number in after or number in kept:
            arguments = {x - inputs for x in program.lines[number].arguments}
            kept |= {x for x in arguments if x >= 0 and x != place and x not in after}
    before = [*range(inputs), *(inputs + number for number in sorted(kept))]
    length = most - len(kept) - len(after)
    if not 1 <= length <= MOST:
        return None
    rows = zip(*(columns[x] for x in before), columns[inputs + place], strict=True)
    part = Task(task.name, tuple(Example(row[:-1], row[-1]) for row in rows))
    for lines in range(1, length + 1):
        examination = Examination(part, semantics, lines, EVERY)
        while examination.advance():
            pass
        if examination.found:
            numbers = {old: new for new, old in enumerate(before)}
            chosen = [_renamed(program.lines[x - inputs], numbers) for x in before[inputs:]]
            chosen += examination.found[0]
            numbers[inputs + place] = inputs + len(chosen) - 1
            for number in sorted(after):
                chosen.append(_renamed(program.lines[number], numbers))
                numbers[inputs + number] = inputs + len(chosen) - 1
            return Program(program.inputs, tuple(chosen))
    return None


def _renamed(line: Line, numbers: dict[int, int]) -> Line:
    return Line(line.operation, tuple(numbers[x] for x in line.arguments))


def _of_same_values(program: Program, task: Task, semantics: Semantics) -> Program:
    """The shortest program that gives the output of a program, all of whose values are among its."""
    inputs = len(program.inputs)
    columns = _columns(program, task, semantics)
    firsts = {column[0]: place for place, column in reversed(list(enumerate(columns)))}
    places: dict[tuple[Value | None, ...], int] = {}
    for place, column in enumerate(columns):
        places.setdefault(column, place)
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
            found = _arranged({*others, output}, output, inputs, lines)
            if found:
                return Program(program.inputs, found)
    return program


def _arranged(needed: set[int], output: int, inputs: int, lines: dict[int, list[Line]]) -> tuple[Line, ...] | None:
    """Lines that compute some values, each from those before it, the output last; None if there are
    none."""
    numbers = {place: place for place in range(inputs)}
    found: list[Line] = []
    while len(found) < len(needed):
        for place in needed - numbers.keys():
            line = next((line for line in lines[place] if numbers.keys() >= set(line.arguments)), None)
            if line is not None:
                found.append(_renamed(line, numbers))
                numbers[place] = inputs + len(found) - 1
                break
        else:
            return None
    last = numbers[output]
    return tuple(found) if last == inputs + len(found) - 1 else None
