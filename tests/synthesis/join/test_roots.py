"""Pairs of lists below a last line that cannot be inverted, against all pairs in plain Python."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.synthesis.test_fuzz import cases_of, random_value
from thesis_cli.synthesis.auto import MeetInTheMiddle
from thesis_cli.synthesis.join import join
from thesis_cli.synthesis.join.backward import ROOTS
from thesis_cli.synthesis.join.join import Roots
from thesis_cli.synthesis.language.dsl import (
    BY_NAME,
    DEEPCODER,
    INT,
    LIST,
    OPERATIONS,
    Operation,
    Semantics,
    Type,
    Value,
)
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.bottom_up import Bank, Tree
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, Order

Values = tuple[Value, ...]
ZIPS = [o for o in DEEPCODER.operations if o.inputs == (LIST, LIST)]


def values_of(bank: Bank, examples: int) -> list[Values]:
    """Values of the rows of a bank."""
    found: list[Values] = []
    for row, is_int in zip(bank.rows.pool[: bank.kept + 1], bank.rows.kinds, strict=False):
        lengths = row[32 * examples : 33 * examples]
        lists = [tuple(map(int, row[32 * m : 32 * m + n])) for m, n in enumerate(lengths)]
        found.append(tuple(x[0] for x in lists) if is_int else tuple(lists))
    return found


def apply(operation: Operation, meaning: Semantics, *arguments: Values) -> Values | None:
    results = [meaning.apply(operation, *row) for row in zip(*arguments, strict=True)]
    return None if any(x is None for x in results) else tuple(results)  # type: ignore[arg-type]


def value_of(tree: Tree, rows: list[Values], meaning: Semantics) -> Values | None:
    """Value of a tree by the plain interpreter."""
    if isinstance(tree, int):
        return rows[tree]
    arguments = [value_of(branch, rows, meaning) for branch in tree[1:]]
    return None if None in arguments else apply(OPERATIONS[tree[0]], meaning, *arguments)  # type: ignore[arg-type]


def shape_of(tree: Tree) -> Any:
    """A tree without the numbers that its operations take, and with swapped arguments alike."""
    if isinstance(tree, int):
        return tree
    operation = OPERATIONS[tree[0]]
    if operation in ZIPS:
        pair = tree[1:]
        return (operation.name, *(sorted(pair) if operation.commutes else pair))
    return operation.name, shape_of(tree[-1])


def pair_of(tree: Tree) -> tuple[int, int]:
    """The rows below ZIPWITH."""
    assert isinstance(tree, tuple)
    if OPERATIONS[tree[0]] not in ZIPS:
        return pair_of(tree[-1])
    a, b = tree[1], tree[-1]
    assert isinstance(a, int)
    assert isinstance(b, int)
    return a, b


def all_of(rows: list[Values], lists: list[int], numbers: list[int], target: Values, meaning: Semantics) -> set[object]:
    """Shapes of all roots over a pair of some lists that give the target."""
    found: set[object] = set()
    tops = [o for o in ROOTS if (o.output is INT) == isinstance(target[0], int)]
    for zip_, a, b in product(ZIPS, lists, lists):
        z = apply(zip_, meaning, rows[a], rows[b])
        if z is None or (zip_.commutes and a > b):
            continue
        for top in tops:
            for number in numbers if INT in top.inputs else [-1]:
                first = [] if number < 0 else [rows[number]]
                if apply(top, meaning, *first, z) == target:
                    found.add(shape_of((top.id, (zip_.id, a, b))))
    return found


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Task, Semantics]:
    """A root over a pair of an input and a list of one more operation, on few examples."""
    rng = Random(draw(st.integers(0, 2**32)))
    low = draw(st.sampled_from([-256, -100, -5]))
    meaning = Semantics(draw(st.sampled_from(["trunc", "floor"])), low, -low - 1)
    top = draw(st.sampled_from(ROOTS))
    inputs: tuple[Type, ...] = (INT, LIST, LIST)[draw(st.integers(0, 1)) :]
    zip_ = rng.choice(ZIPS)
    other = rng.choice([o for o in DEEPCODER.operations if o.inputs == (LIST,) and o.output is LIST])
    found: list[Example] = []
    for _ in range(60):
        row = tuple(random_value(rng, kind, meaning) for kind in inputs)
        k = (row[0] if inputs[0] is INT else meaning.apply(BY_NAME["HEAD"], row[0])) if INT in top.inputs else None
        b = meaning.apply(other, row[-1])
        z = b is not None and meaning.apply(zip_, row[-2], b)
        if z is False or z is None or (INT in top.inputs and k is None):
            continue
        output = meaning.apply(top, z) if k is None else meaning.apply(top, k, z)
        if output is not None:
            found.append(Example(row, output))
    if not found:
        return draw(tasks())
    return Task("drawn", tuple(found[: rng.choice([1, 2, 4])])), meaning


EMPTY = Task("empty", (Example((-3, (-2, -6), (1, -8)), ()), Example((-5, (7, 6), (-6, 0, -3, 1, 3, -7, 2)), ())))
"""TAKE of all but the last 3 or 5 items gives the outputs, even of lists that are shorter."""


@cases_of(3)
@example((EMPTY, Semantics("floor", -256, 255)))
@given(tasks())
def test_all_pairs_below_a_root_are_found(drawn: tuple[Task, Semantics]) -> None:
    task, meaning = drawn
    limits = Limits(5, count=10**4)
    bank = Bank(task, Order.uniform(), limits, meaning)
    hits: list[Tree] = []
    with patch.object(join, "ROOT_HITS", 10**4), patch.object(join, "ROOT_SLICE", 10**4):
        search = Roots(bank, task, limits, meaning)
        for _ in range(2):
            search.grow()
            for _, c, i, j in search._steps:
                state, more = np.zeros(8, dtype=np.int64), True
                while more:
                    more, found = search._search(c, i, j, state)
                    hits += found
            search._steps.clear()
            bank.size or bank.make(Clock())
    rows = values_of(bank, len(task.examples))
    target = tuple(example.output for example in task.examples)
    assert all(value_of(tree, rows, meaning) == target for tree in hits)
    numbers = [row for row in range(1, len(rows)) if bank.rows.kinds[row]]
    lists = sorted(set(range(1, len(rows))) - set(numbers))
    some = sorted(Random(0).sample(lists, min(12, len(lists))))
    shapes = {shape_of(tree) for tree in hits if {*pair_of(tree)} <= {*some}}
    assert {shape for shape in shapes if shape[1][0].startswith("ZIPWITH")} == all_of(
        rows, some, numbers, target, meaning
    )
    few = some[:5]
    planned = [root for c in (1, 2) for root in search._plan(c)[0]]
    trees = [
        root.above((zip_.id, a, b))
        for root in planned
        for zip_, a, b in product(ZIPS, few, few)
        if len(root.steps) + len(root.goal.path) == 2 and not (zip_.commutes and a > b)
    ]
    fitting = {shape_of(tree) for tree in trees if value_of(tree, rows, meaning) == target}
    assert fitting <= {shape_of(tree) for tree in hits}


@pytest.mark.parametrize(
    "text",
    [
        "a <- [int]\nb <- int\nc <- MAP (/3) a\nd <- SCANL1 (*) c\ne <- MAP (/2) d\nf <- COUNT (<0) e",
        "a <- int\nb <- [int]\nc <- REVERSE b\nd <- FILTER (%2==0) c\ne <- SORT c\nf <- ZIPWITH (-) e d",
        "a <- [int]\nb <- [int]\nc <- MAP (/4) a\nd <- COUNT (%2==1) a\ne <- SCANL1 MIN c\nf <- TAKE d e",
    ],
)
def test_an_example_without_items_may_stand_anywhere(text):
    program, meaning, rng = parse(text), Semantics(), Random(2)
    rows = [tuple(random_value(rng, kind, meaning) for kind in program.inputs) for _ in range(30)]
    rows[2] = tuple(value if isinstance(value, int) else () for value in rows[2])
    examples = [Example(row, y) for row in rows if (y := run(program, row, meaning)) is not None][:5]
    assert any(all(x == () for x in e.inputs if not isinstance(x, int)) for e in examples)
    lengths = set()
    for turn in (0, 2, 3):
        task = Task("turned", tuple(examples[turn:] + examples[:turn]))
        found = MeetInTheMiddle().solve(task, Order.uniform(), Limits(4), meaning).program
        assert found is not None
        assert check(found, task, meaning)
        lengths.add(len(found))
    assert len(lengths) == 1
