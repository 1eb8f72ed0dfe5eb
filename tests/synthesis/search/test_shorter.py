"""Programs of trees, and shorter ones."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthesis.brute_force import fitting
from tests.synthesis.join.test_roots import value_of, values_of
from tests.synthesis.test_fuzz import cases_of, random_value
from thesis_cli.synthesis.language.dsl import BY_NAME, DEEPCODER, DEFAULT, LIST, OPERATIONS, Value
from thesis_cli.synthesis.language.program import Line, Program, parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.bottom_up import Bank, Tree, program_of, shorter
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, Order

FEW = [BY_NAME[name] for name in ("REVERSE", "SORT", "MAP (+1)", "MAP (-1)", "MAP (*(-1))", "ZIPWITH MIN")]
"""Few operations, so that lines often repeat a value."""


def bank_of(rng: Random) -> tuple[Bank, Task]:
    rows = [tuple(random_value(rng, LIST, DEFAULT) for _ in range(2)) for _ in range(2)]
    task = Task("drawn", tuple(Example(row, (0,)) for row in rows))
    bank = Bank(task, Order.uniform(), Limits(9), DEFAULT)
    bank.make(Clock())
    return bank, task


def parts_of(tree: Tree, origins: list[list[int]], found: set[object]) -> object:
    """A tree without rows but those of inputs; its parts are collected."""
    if isinstance(tree, int) and tree <= 2:
        return tree
    id, *arguments = origins[tree] if isinstance(tree, int) else tree
    parts = (id, *(parts_of(x, origins, found) for x in arguments[: len(OPERATIONS[id].inputs)]))
    found.add(parts)
    return parts


@cases_of(20)
@given(st.integers(0, 2**32))
def test_a_program_computes_its_tree_and_equal_parts_once(seed: int) -> None:
    rng = Random(seed)
    bank, task = bank_of(rng)
    rows = values_of(bank, len(task.examples))
    lists = [row for row in range(1, len(rows)) if not bank.rows.kinds[row]]
    origins = bank.rows.origins[: len(rows)].tolist()
    trees: list[Tree] = [1, 2, *rng.sample(lists[2:], 3)]
    for _ in range(4):
        operation = rng.choice([o for o in DEEPCODER.operations if set(o.inputs) == {LIST} and o.output is LIST])
        trees.append((operation.id, *rng.choices(trees, k=len(operation.inputs))))  # type: ignore[arg-type]
    row = rng.choice(lists[2:])
    id, *arguments = origins[row]
    whole: Tree = (id, *arguments[: len(OPERATIONS[id].inputs)])
    least = BY_NAME["ZIPWITH MIN"].id
    trees.append((least, (least, row, trees[-1]), whole))  # a row of the bank, and what it is
    found: set[object] = set()
    parts_of(trees[-1], origins, found)
    program = program_of(trees[-1], task.inputs, bank.rows.origins)
    assert len(program) == len(found)
    value = value_of(trees[-1], rows, DEFAULT)
    results = tuple(run(program, example.inputs) for example in task.examples)
    assert results == value if value is not None else None in results


def drawn(rng: Random, length: int) -> tuple[Program, Task]:
    """A program of a few operations, and what it does."""
    lines: list[Line] = []
    for number in range(length):
        operation = rng.choice(FEW)
        lines.append(Line(operation.id, tuple(rng.randrange(1 + number) for _ in operation.inputs)))
    program = Program((LIST,), tuple(lines))
    inputs: list[Value] = [tuple(rng.randint(-3, 3) for _ in range(rng.randint(2, 4))) for _ in range(2)]
    outputs = [run(program, (x,)) for x in inputs]
    task = Task("drawn", tuple(Example((x,), y) for x, y in zip(inputs, outputs, strict=True) if y is not None))
    given_back = all(example.inputs[0] == example.output for example in task.examples)
    return drawn(rng, length) if given_back or not task.examples else (program, task)


@cases_of(60)
@given(st.integers(0, 2**32))
def test_a_shorter_program_fits_and_misses_none_of_the_same_values(seed: int) -> None:
    rng = Random(seed)
    program, task = drawn(rng, 5)
    values = [*zip(*(example.inputs for example in task.examples), strict=True)]
    for number in range(1, 6):
        part = Program(program.inputs, program.lines[:number])
        values.append(tuple(run(part, example.inputs) for example in task.examples))
    alike = [length for length in (1, 2) if any(set(rows) <= set(values) for _, rows in fitting(task, length))]
    for most in range(1, 6):
        found = shorter(program, task, DEFAULT, most)
        assert found is None or (check(found, task) and len(found) <= most)
        assert found is not None or not any(length <= most for length in alike)
        assert most < 5 or found is not None


@pytest.mark.parametrize(
    ("long", "short"),
    [
        # the output is there before the last line
        ("a <- [int]; b <- SORT a; c <- MAP (+1) b; d <- MAP (-1) c; e <- MAP (+1) d", 2),
        # of two ways to the output, the shorter one takes a value from below the first
        ("a <- [int]; b <- MAP (*2) a; c <- MAP (*3) b; d <- MAP (*2) c; e <- MAP (*3) a; f <- MAP (*4) e", 2),
        # the bank knows 3 a as a sum, and the program has 4 a already
        ("a <- [int]; b <- MAP (*2) a; c <- ZIPWITH (+) a b; d <- MAP (*4) a; e <- ZIPWITH (*) c d; f <- SORT e", 4),
        # 24 a anew, from 3 a and from 6 a, which the program lacks
        ("a <- [int]; b <- MAP (*3) a; c <- MAP (*2) a; d <- MAP (*4) c; e <- MAP (*3) d; f <- ZIPWITH MIN b e", 4),
    ],
)
def test_another_expression_of_a_value_shares_more(long: str, short: int) -> None:
    program = parse(long.replace("; ", "\n"))
    examples = []
    for x in [(3, -1, 2, 2), (4, 0, -2)]:
        output = run(program, (x,))
        assert output is not None
        examples.append(Example((x,), output))
    task = Task("long", tuple(examples))
    found = shorter(program, task, DEFAULT, short)
    assert found is not None
    assert len(found) <= short < len(program)
    assert check(found, task)
    assert shorter(program, task, DEFAULT, 1) is None
