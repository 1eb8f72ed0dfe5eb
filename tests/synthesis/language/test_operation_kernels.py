"""Compiled operations against the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from numba import njit

from tests.tiers import examples
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, OPERATIONS, Operation, Semantics, Type, Value
from thesis_cli.synthesis.language.packing import WIDTH, bounds_of, pack
from thesis_cli.synthesis.search.depth_first import Lanes

ROUNDS = examples(540)
"""Rounds of each operation, over all semantics."""

SEMANTICS = [
    DEFAULT,
    Semantics(division="floor"),
    Semantics("trunc", -2, 3),
    Semantics("floor", 2, 9, longest=31),
    Semantics("trunc", -32766, 32766),
    Semantics("floor", -32766, -3),
]


def drawn(rng: Random, kind: Type, semantics: Semantics, index: bool) -> Value:
    """A value of a type: numbers near 0, near an end of the range or anywhere; lists of any
    length."""
    low, high = semantics.low, semantics.high

    def number() -> int:
        near = rng.choice(
            [rng.randint(-4, 4), low + rng.randint(0, 3), high - rng.randint(0, 3), rng.randint(low, high)]
        )
        return min(max(near, low), high)

    if kind is INT:
        return min(max(rng.randint(-33, 33), low), high) if index else number()
    length = rng.choice([0, 1, 2, semantics.longest, rng.randint(0, semantics.longest)])
    few = [number() for _ in range(3)]
    return tuple(rng.choice(few) if rng.random() < 0.3 else number() for _ in range(length))


def columns(operation: Operation, rng: Random, semantics: Semantics, examples: int) -> list[list[Value]]:
    index = operation.inputs[0] is INT
    return [[drawn(rng, kind, semantics, index) for _ in range(examples)] for kind in operation.inputs]


def split(pool: Lanes, examples: int) -> tuple[Lanes, Lanes]:
    """Lanes of each example, and its length."""

    size = WIDTH * examples
    return pool[:, :size].reshape(len(pool), examples, WIDTH), pool[:, size : size + examples]


@pytest.mark.parametrize("semantics", SEMANTICS, ids=str)
def test_operations_are_those_of_the_plain_interpreter(semantics: Semantics) -> None:
    from thesis_cli.synthesis.language.operation_kernels import apply

    for operation in OPERATIONS:
        rng = Random(operation.name)
        number = ROUNDS // len(SEMANTICS)
        arguments = columns(operation, rng, semantics, number)
        expected = [semantics.apply(operation, *values) for values in zip(*arguments, strict=True)]
        pool = pack([*arguments, [0 if value is None else value for value in expected]], len(arguments) + 2)
        before = pool[:-1].copy()
        pool[-1] = 77  # what was there before
        second, out = len(arguments) - 1, len(arguments) + 1
        bounds = bounds_of(semantics)
        given = [apply(operation.id, pool, 0, second, out, (m, m + 1), bounds) for m in range(number)]
        assert given == [value is not None for value in expected], operation.name
        lanes, lengths = split(pool, number)
        assert (lanes[out, given] == lanes[out - 1, given]).all(), operation.name
        assert (lengths[out, given] == lengths[out - 1, given]).all(), operation.name
        assert (pool[:out] == before).all()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_all_examples_at_once_are_each_by_itself(operation: Operation) -> None:
    from thesis_cli.synthesis.language.operation_kernels import apply

    rng, bounds = Random(operation.name), bounds_of(DEFAULT)
    seen = set()
    for _ in range(60):
        number = rng.randint(1, 5)
        arguments = columns(operation, rng, DEFAULT, number)
        if rng.random() < 0.5:  # tame, so that no example fails
            arguments = [
                [x % 3 if isinstance(x, int) else tuple(n % 5 for n in (*x, 1, 2, 1)[:3]) for x in column]
                for column in arguments
            ]
        pool = pack(arguments, len(arguments) + 1)
        pool[-1] = 77
        out = len(arguments)
        expected = [DEFAULT.apply(operation, *values) for values in zip(*arguments, strict=True)]
        first = rng.randint(0, number - 1)
        given = apply(operation.id, pool, 0, out - 1, out, (first, number), bounds)
        assert given == (None not in expected[first:])
        seen.add(given)
        lanes, lengths = split(pool, number)
        if given:
            values = [value for value in expected[first:] if value is not None]
            expected_lanes, numbers = split(pack([values], 1), number - first)
            assert (lanes[out, first:] == expected_lanes[0]).all()
            assert (lengths[out, first:] == numbers[0]).all()
        assert (lanes[out, :first] == 77).all()
        assert (lengths[out, :first] == 77).all()
    assert True in seen


@cache
def allows() -> Callable[..., bool]:
    from thesis_cli.synthesis.language.operation_kernels import has_room

    return njit(lambda id, pool, x, y, out: has_room(id, pool, x, y, out))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_lengths_allow_what_an_operation_gives(operation: Operation) -> None:
    compiled = allows()
    rng = Random(operation.name)
    refused = 0
    for _ in range(examples(200)):
        arguments = columns(operation, rng, DEFAULT, 3)
        made = [DEFAULT.apply(operation, *values) for values in zip(*arguments, strict=True)]
        values = [value for value in made if value is not None]
        if len(values) == 3:
            pool = pack([*arguments, values], len(arguments) + 1)
            assert compiled(operation.id, pool, 0, len(arguments) - 1, len(arguments))
            other = pack([*arguments, [drawn(rng, operation.output, DEFAULT, False) for _ in range(3)]], len(pool))
            refused += not compiled(operation.id, other, 0, len(arguments) - 1, len(arguments))
    assert (refused > 0) == (operation.output is not INT and not operation.function.lengthens)
