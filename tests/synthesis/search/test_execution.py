"""Partial programs, many at once, against the plain interpreter."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import BY_NAME, INT, LIST, OPERATIONS, Semantics, Type, Value
from thesis_cli.synthesis.language.program import Line, Program, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.execution import Pool, start, step

LINES = 4
NARROW = Semantics("floor", -9, 12)

SIGNATURES = (LIST,), (INT, LIST), (LIST, INT, LIST)
SORT, REVERSE, SUM, TAKE, HEAD = (BY_NAME[name].id for name in ("SORT", "REVERSE", "SUM", "TAKE", "HEAD"))


def drawn(rng: Random, kind: Type) -> Value:
    if kind is INT:
        return rng.randint(-2, 4)
    return tuple(rng.randint(-9, 12) for _ in range(rng.choice([0, 1, 3, 5])))


def random_task(rng: Random, inputs: tuple[Type, ...], examples: int) -> Task:
    """Examples whose output is one of the inputs, so that some programs solve it."""
    rows = [tuple(drawn(rng, kind) for kind in inputs) for _ in range(examples)]
    return Task("any", tuple(Example(row, row[inputs.index(LIST)]) for row in rows))


def random_move(rng: Random, types: tuple[Type, ...]) -> Line:
    operation = rng.choice([o for o in OPERATIONS if set(o.inputs) <= set(types)])
    places = [rng.choice([v for v, kind in enumerate(types) if kind is needed]) for needed in operation.inputs]
    return Line(operation.id, tuple(places))


def reference(program: Program, task: Task) -> list[list[Value | None]]:
    """Values of all lines by the plain interpreter, on each example."""
    values: list[list[Value | None]] = [
        [example.inputs[i] for example in task.examples] for i in range(len(task.inputs))
    ]
    for line in program.lines:
        rows = zip(*(values[v] for v in line.arguments), strict=True)
        found = [None if None in row else NARROW.apply(OPERATIONS[line.operation], *row) for row in rows]
        values.append(found)
    return values


def test_steps_are_those_of_the_plain_interpreter() -> None:
    rng = Random(1)
    tasks = [random_task(rng, inputs, examples) for inputs in SIGNATURES for examples in (1, 4, 5)]
    pool = start(tasks, LINES, NARROW).take([row for row in range(len(tasks)) for _ in range(40)])
    lines: list[tuple[Line, ...]] = [()] * len(pool)
    seen = {"valid": 0, "invalid": 0, "solved": 0, "repeated": 0}
    for _ in range(LINES):
        parents = [rng.randrange(len(pool)) for _ in range(len(pool))]
        chosen = [tasks[pool.task[p]] for p in parents]
        types = [
            task.inputs + tuple(OPERATIONS[line.operation].output for line in lines[p])
            for p, task in zip(parents, chosen, strict=True)
        ]
        added = [random_move(rng, kinds) for kinds in types]
        before = pool.values.copy()
        after = step(pool, [(line.operation, line.arguments[0], line.arguments[-1]) for line in added], parents)
        assert (pool.values == before).all()
        pool, lines = after, [(*lines[p], line) for p, line in zip(parents, added, strict=True)]
        for row, task in enumerate(chosen):
            program = Program(task.inputs, lines[row])
            assert pool.program(row) == program
            values = reference(program, task)
            valid = all(None not in column for column in values)
            assert pool.valid[row] == valid
            last, *others = values[::-1]
            same = [
                kind is program.output and column == last
                for kind, column in zip(program.types[-2::-1], others, strict=True)
            ]
            assert pool.repeated[row] == (valid and any(same))
            fits = valid and program.output is task.output and last == [example.output for example in task.examples]
            assert pool.solved[row] == fits
            if valid:
                assert [pool.value(row, v) for v in range(len(values))] == values
                outputs = [run(program, example.inputs, NARROW) for example in task.examples]
                assert outputs == last
            for name in seen:
                seen[name] += not valid if name == "invalid" else bool(getattr(pool, name)[row])
    assert min(seen.values()) > 5, seen


def two() -> Pool:
    examples = Example(((3, 1, 2), 2), (1, 2)), Example(((5, 4), 0), ())
    return start([Task("one", examples), Task("two", (Example(((2, 1),), 3),))], 2)


def test_arrays_hold_what_a_network_reads() -> None:
    pool = step(two(), [[SORT, 0, 0], [SUM, 0, 0]])
    assert pool.types.tolist() == [[2, 1, 2, 0, 0], [2, 1, 0, 0, 0]]
    assert pool.sizes.tolist() == [3, 2]
    assert pool.numbers.shape == (2, 5, 2, 32)
    assert pool.numbers[0, 2, 0, :4].tolist() == [1, 2, 3, -(2**15)]
    assert pool.lengths[0, :, 0].tolist() == [3, 1, 3, 0, 0]
    assert pool.numbers[1, 1, :, 0].tolist() == [3, 3]
    assert pool.solved.tolist() == [False, True]
    pool = step(pool, [[TAKE, 1, 2], [SORT, 0, 0]])
    assert (pool.solved.tolist(), pool.repeated.tolist()) == ([True, False], [False, False])
    assert pool.program(0).one_line == "a <- [int]; b <- int; c <- SORT a; d <- TAKE b c"


def test_a_line_without_a_value_is_null_on_all_examples() -> None:
    pool = step(step(two().take([0]), [[TAKE, 1, 0]]), [[HEAD, 2, 2]])
    assert (pool.valid.tolist(), pool.sizes.tolist()) == ([False], [4])
    assert (pool.numbers[0, 3] == -(2**15)).all()
    assert pool.lengths[0, 3].tolist() == [0, 0]


def test_the_second_variable_of_an_operation_of_one_is_not_read() -> None:
    assert step(two().take([1]), [[SORT, 0, 7]]).program(0).one_line == "a <- [int]; b <- SORT a"


@pytest.mark.parametrize(
    ("move", "match"),
    [
        ((SORT, 1, 1), "program 1"),
        ((SORT, -1, -1), "program 1"),
        ((TAKE, 0, 0), "program 1"),
        ((len(OPERATIONS), 0, 0), "program 1"),
        ((-1, 0, 0), "program 1"),
    ],
)
def test_moves_that_do_not_fit_are_refused(move: tuple[int, int, int], match: str) -> None:
    with pytest.raises(InputError, match=match):
        step(two(), [(TAKE, 1, 0), move])


def test_programs_have_a_greatest_length() -> None:
    pool = step(step(two(), [[SORT, 0, 0]] * 2), [[REVERSE, 0, 0]] * 2)
    with pytest.raises(InputError, match="program 0 has 2 lines already"):
        step(pool, [[SORT, 0, 0]] * 2)


def test_shapes_and_tasks_that_are_wrong_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 3\)"):
        step(two(), [[SORT, 0, 0]])
    with pytest.raises(InputError, match="at least 1"):
        start([], 2)
    with pytest.raises(InputError, match="list of 32 numbers"):
        start([Task("long", (Example((tuple(range(32)),), 1),))], 1)


def test_an_empty_choice_is_an_empty_pool() -> None:
    pool = two().take(np.zeros(2, dtype=np.bool_))
    assert len(step(pool, np.zeros((0, 3)))) == 0
