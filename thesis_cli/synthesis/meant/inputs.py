"""Inputs of a task's own kind, on which programs that fit it are compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from thesis_cli.synthesis.language.dsl import DEFAULT, INT, Semantics, Value
from thesis_cli.synthesis.language.equivalence import probes
from thesis_cli.synthesis.language.task import Task

OWN, OTHERS = 96, 32
"""Inputs of the task's own kind, and others of its types (`equivalence.probes`)."""

Inputs = tuple[Value, ...]


def inputs_for(task: Task, semantics: Semantics = DEFAULT) -> list[Inputs]:
    """`OWN` inputs like those of a task, then `OTHERS` of its types; the same in every run."""
    rng = np.random.default_rng(0)
    others = [row for row in probes(task.inputs) if all(map(semantics.holds, row))]
    return [*inputs_like(task, OWN, rng, semantics), *others[:OTHERS]]


def inputs_like(task: Task, count: int, rng: np.random.Generator, semantics: Semantics = DEFAULT) -> list[Inputs]:
    """Random inputs like those of a task.

    The numbers of a list lie between the least and the greatest one of this input in a random example,
    or up to twice as far from 0; a third of the lists take numbers of the examples alone. Lists are as
    long as those of the examples, give or take one number. What holds of all examples holds of the
    inputs: lists are as long as each other, or sorted; a number lies between 0 and the length of the
    first list.
    """
    return [_Kind(task, semantics).draw(rng) for _ in range(count)]


class _Kind:
    """Lengths, ranges and relations that the inputs of a task have in common."""

    def __init__(self, task: Task, semantics: Semantics) -> None:
        self._rows = [example.inputs for example in task.examples]
        self._columns = list(zip(*self._rows, strict=True))
        self._lists = [i for i, kind in enumerate(task.inputs) if kind is not INT]
        self._low, self._high = semantics.low, semantics.high
        lengths = [[_length(row[i]) for i in self._lists] for row in self._rows]
        flat = [n for row in lengths for n in row]
        fewest = min(flat, default=0)
        self._longest = min(max(flat, default=0) + 1, semantics.longest)
        self._shortest = max(fewest - 1, min(1, fewest))
        self._alike = len(self._lists) > 1 and len(flat) > 2 and all(len(set(row)) == 1 for row in lengths)
        self._sorted = [i for i in self._lists if _all_sorted(self._columns[i])]

    def draw(self, rng: np.random.Generator) -> Inputs:
        """One input of this kind."""
        row = self._rows[rng.integers(len(self._rows))]
        length = int(rng.integers(self._shortest, self._longest + 1))
        found: list[Value] = []
        for i, value in enumerate(row):
            if i not in self._lists:
                found.append(self._number(i, length, rng))
                continue
            n = length if self._alike or i == self._lists[0] else int(rng.integers(self._shortest, self._longest + 1))
            found.append(self._list(i, value, n, rng))
        return tuple(found)

    def _number(self, i: int, length: int, rng: np.random.Generator) -> int:
        seen = [number for row in self._rows if isinstance(number := row[i], int)]
        shortest = [_length(row[i]) for row in self._rows for i in self._lists[:1]]
        if shortest and all(0 <= x <= n for x, n in zip(seen, shortest, strict=True)):
            return int(rng.integers(0, length + 1))
        low, high = min(seen), max(seen)
        return int(rng.integers(max(low - (low < 0 or low > 1), self._low), min(high + 1, self._high) + 1))

    def _list(self, i: int, value: Value, n: int, rng: np.random.Generator) -> Value:
        every = [x for other in self._columns[i] for x in other]
        numbers = ([] if isinstance(value, int) else list(value)) or every or [0, 9]
        reach = 1 + int(rng.integers(3)) // 2
        low, high = max(reach * min(*numbers, 0), self._low), min(reach * max(numbers), self._high)
        if min(numbers) > 0:
            low = min(min(numbers), 1) if rng.random() < 0.5 else min(numbers)
        seen = bool(every) and rng.random() < 1 / 3
        drawn = rng.choice(every, n) if seen else rng.integers(low, max(high, low) + 1, n)
        return tuple(map(int, np.sort(drawn) if i in self._sorted else drawn))


def _length(value: Value) -> int:
    return 0 if isinstance(value, int) else len(value)


def _all_sorted(values: Sequence[Value]) -> bool:
    """Whether all lists of an input are sorted, and there is enough to tell."""
    lists = [value for value in values if not isinstance(value, int)]
    return sum(max(len(xs) - 1, 0) for xs in lists) > 5 and all(x <= y for xs in lists for x, y in pairwise(xs))
