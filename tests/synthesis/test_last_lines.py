"""The compiled tests of last lines against the plain operations."""

from __future__ import annotations

from random import Random

import pytest

from tests.synthesis.brute_force import fitting
from tests.tiers import examples
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, Operation, Semantics, Value
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import Examination, Pruning, every


@pytest.mark.parametrize("semantics", [DEFAULT, Semantics("floor", -40, 30), Semantics(dsl="extended")], ids=str)
def test_no_last_line_that_fits_is_left_out(semantics: Semantics) -> None:
    rng = Random(5)
    for operation in semantics.language.operations:
        for _ in range(examples(8)):
            task = example(rng, operation, semantics)
            it = Examination(task, semantics, 1, every(semantics.language), 1000, Pruning.UNFIT)
            it.advance(10**6)
            assert it.programs == sorted(
                (p for p, _ in fitting(task, 1, semantics)), key=lambda p: p.lines[0].operation
            )


def example(rng: Random, operation: Operation, semantics: Semantics) -> Task:
    """What an operation gives, or nearly so."""
    while True:
        taken = tuple(number(rng) if kind is INT else numbers(rng) for kind in operation.inputs)
        output = semantics.apply(operation, *taken)
        if output is not None:
            return Task("one", (Example(taken, changed(rng, output)),))


def number(rng: Random) -> int:
    return rng.choice((0, 1, -1, 2, 3, -4, rng.randint(-20, 20)))


def numbers(rng: Random) -> tuple[int, ...]:
    return tuple(number(rng) for _ in range(rng.choice((0, 1, 3, 6, 20))))


def changed(rng: Random, value: Value) -> Value:
    """Half of the time the same, else a near miss."""
    if isinstance(value, int):
        return value + rng.choice((0, 0, 1, -1))
    return rng.choice((value, value, value, value[:-1], value[1:], (*value[:-1], number(rng)), (*value, 0)))
