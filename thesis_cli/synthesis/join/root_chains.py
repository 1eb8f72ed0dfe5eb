"""Operations that can stand above ZIPWITH, and what each demands of the list below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.join.inverses import INVERSES, Goal, unwound, wrap
from thesis_cli.synthesis.join.root_needs import ENDS, PARITY, WITHIN, Need, Needs
from thesis_cli.synthesis.language.dsl import INT, LIST, OPERATIONS, WIDEST, Operation, Semantics, Value
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.bottom_up import Bank
from thesis_cli.synthesis.search.trees import Tree

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Ints

Step = tuple[Operation, int]
"""An operation, and the row of the bank that it takes as a number, or -1."""

MOST_TESTS = 16
"""Tests of items for one root."""

NARROW = 64
"""Tests that allow fewer numbers are narrow."""

DEPTH = 1
"""Inverted operations between the output and a goal."""

UNARY = tuple(o for o in OPERATIONS if o.inputs.count(LIST) == 1)
INVERTIBLE = frozenset(o.id for o in UNARY if o.rule(o.function.kernel) in INVERSES)
ROOTS = tuple(o for o in UNARY if o.id not in INVERTIBLE)
"""Operations on one list, and those that cannot be inverted."""


@dataclass(frozen=True)
class Root:
    """Operations above ZIPWITH.

    Attributes
    ----------
    steps : from ZIPWITH upward.
    tests : rows as `roots_kernels.Plan.tests` has them.
    lengths, items : ends of those about lengths, which come first, and of those about items.
    goal : what the last step is to give.
    """

    steps: tuple[Step, ...]
    tests: tuple[tuple[int, ...], ...]
    lengths: int
    items: int
    goal: Goal

    @property
    def sharp(self) -> bool:
        """Whether few lists pass the tests."""
        narrow = [low for _, _, _, optional, low, high in self.tests[self.lengths : self.items] if high - low < NARROW]
        return len(narrow) >= 3 or len(self.tests) > self.items

    def above(self, tree: Tree) -> Tree:
        """The tree of the output, from that of the list below."""
        for operation, number in self.steps:
            tree = (operation.id, tree) if number < 0 else (operation.id, number, tree)
        return wrap(tree, self.goal.path)


@cache
def pairs() -> tuple[tuple[Operation, Operation], ...]:
    """Two operations on one list, the second of which cannot be inverted, that do what no single
    one does and no pair with an inverted one after it, as far as random lists show."""
    rng = Random(0)
    meaning = Semantics(low=-WIDEST, high=WIDEST)
    probes = [(rng.randint(0, 5), tuple(rng.randint(-9, 9) for _ in range(rng.randint(2, 7)))) for _ in range(16)]

    def apply(operation: Operation, values: Sequence[Value | None]) -> tuple[Value | None, ...]:
        numbers = [(k,) if INT in operation.inputs else () for k, _ in probes]
        rows = zip(numbers, values, strict=True)
        return tuple(x if x is None else meaning.apply(operation, *k, x) for k, x in rows)

    lists = [probe for _, probe in probes]
    once = {o: apply(o, lists) for o in UNARY}
    seen = {tuple(lists), *once.values()}
    lower = [o for o in UNARY if o.output is LIST]
    twice = [(v, u) for u, v in product(UNARY, lower) if (INT in u.inputs) + (INT in v.inputs) < 2]
    kept = []
    for v, u in sorted(twice, key=lambda pair: pair[1].id not in INVERTIBLE):
        found = apply(u, once[v])
        if found not in seen:
            seen.add(found)
            if u.id not in INVERTIBLE and INT not in v.inputs:
                kept.append((v, u))
    return tuple(kept)


class Chains:
    """Roots of a task, by the number of their operations.

    Parameters
    ----------
    bank : from which TAKE, DROP and ACCESS take their numbers.
    task, semantics : of the search.

    Attributes
    ----------
    columns : of the bank that tests are about: lengths, then items by example.
    least : least length of a list, for each example.
    """

    def __init__(self, bank: Bank, task: Task, semantics: Semantics) -> None:
        from thesis_cli.synthesis.language.lanes import WIDTH

        self._bank, self._output = bank, task.output
        self._bounds = semantics.low, semantics.high
        self._outputs = tuple(example.output for example in task.examples)
        found = unwound(self._outputs, semantics, DEPTH) if task.output is LIST else ((Goal(self._outputs),),)
        self._goals = [goal for goals in found for goal in goals]
        longest = [max(len(x) for x in e.inputs if not isinstance(x, int)) for e in task.examples]
        self._needs = [Needs(semantics, n) for n in longest]
        self._seen: set[object] = set()
        M = len(task.examples)
        places = [range(M * WIDTH, M * WIDTH + M), *(range(m * WIDTH, m * WIDTH + n) for m, n in enumerate(longest))]
        self.columns: Ints = np.array(list(chain(*places)), dtype=np.int64)
        self._single = WIDTH * np.arange(M)  # where numbers are; a list may have no first item
        self._firsts = [M + sum(longest[:m]) for m in range(M)]
        self.least = [len(y) if isinstance(y, tuple) else 0 for y in self._outputs]

    def of(self, c: int) -> list[Root]:
        """Roots of so many operations, together with those of their numbers."""
        return list(self._roots(c))

    def _roots(self, c: int) -> Iterator[Root]:
        for goal in self._goals:
            for steps, numbers in self._steps(goal, c - len(goal.path)):
                needs: list[Need] = []
                for rules, output, k in zip(self._needs, goal.values, numbers, strict=True):
                    need = rules.above(steps[-1][0], output, k)
                    for operation, _ in reversed(steps[:-1]):
                        need = need and rules.back(operation, need)
                    if need is None:
                        break
                    needs.append(need)
                else:
                    root = self._root(steps, needs, goal)
                    if len(steps) == 1 or root.sharp:
                        yield root

    def _steps(self, goal: Goal, c: int) -> Iterator[tuple[tuple[Step, ...], Sequence[int]]]:
        """Steps below a goal, and the number of the last one in each example."""
        none = [0] * len(self._outputs)
        for operation in (o for o in ROOTS if o.output is self._output):
            if INT in operation.inputs:
                yield from ((((operation, row),), ks) for row, ks in self._numbers(goal, (operation,), c - 1))
            elif c == 1:
                yield ((operation, -1),), none
        for v, u in (pair for pair in pairs() if pair[1].output is self._output and not goal.path):
            if INT in u.inputs:
                yield from ((((v, -1), (u, row)), ks) for row, ks in self._numbers(goal, (v, u), c - 2))
            elif c == 2:
                yield ((v, -1), (u, -1)), none

    def _numbers(self, goal: Goal, operations: tuple[Operation, ...], size: int) -> Iterator[tuple[int, list[int]]]:
        """Rows of numbers of a size that TAKE, DROP or ACCESS can have, and the numbers; of those
        that have the same effect the first."""
        if size < 0:
            return
        operation = operations[-1]
        longest = np.array([rules.longest for rules in self._needs])
        rows = rows_of(self._bank, size, True)
        k = self._bank.rows.pool[rows][:, self._single].astype(np.int64)
        if operation.function.name == "ACCESS":
            possible, same = (k >= 0) & (k < longest), k
        else:
            n = np.array([len(y) for y in self._outputs if isinstance(y, tuple)])
            if operation.function.name == "TAKE":  # of the first n items, of all n, or of all but -k
                possible = np.where(k < 0, (n == 0) | (n - k <= longest), n <= k)
                same = np.where(k < 0, np.where(n == 0, np.maximum(k, -longest), k), np.minimum(k, n + 1))
            else:
                possible = np.where(k < 0, n <= -k, (n == 0) | (n + k <= longest))
                same = np.where(k < 0, np.where(n < -k, 0, k), np.minimum(k, longest))
        fits = possible.all(1)
        chosen = (x[fits].tolist() for x in (rows, k, same))
        for row, numbers, effect in zip(*chosen, strict=True):
            key = goal.path, operations, tuple(effect)
            if key not in self._seen:
                self._seen.add(key)
                yield row, numbers

    def _root(self, steps: tuple[Step, ...], needs: Sequence[Need], goal: Goal) -> Root:
        """A root with its tests; the sharper ones come first."""
        from thesis_cli.synthesis.join import root_test_kernels as kernels

        low, high = self._bounds
        lengths, items, totals = [], [], []
        for m, need in enumerate(needs):
            least, most = need.lengths
            longest, column = self._needs[m].longest, self._firsts[m]
            if least > 0 or most < longest:
                lengths.append((most - least, (m, m, kernels.LENGTH, 0, least, most)))
            if need.last is not None:
                items.append(((need.last[1] - need.last[0], 0, m), (m, column, kernels.LAST, 1, *need.last)))
            for i, (kind, least, most) in need.tests:
                if i >= longest or (kind == WITHIN and least <= low and high <= most):
                    continue
                optional = int(i >= need.lengths[0])
                spread = {WITHIN: most - least, ENDS: 1, PARITY: (high - low) // 2}[kind] + optional * (high - low)
                items.append(((spread, i, m), (m, column + i, kernels.INTERVAL + kind, optional, least, most)))
            if need.total is not None:
                kind, of, total = need.total
                totals.append((m, column, kernels.FOLD + kind, of, total, 0))
        tests = [test for _, test in sorted(lengths)] + [test for _, test in sorted(items)[:MOST_TESTS]]
        return Root(steps, (*tests, *totals), len(lengths), len(tests), goal)


def rows_of(bank: Bank, size: int, is_int: bool) -> Ints:
    """Rows of the numbers or lists of a size."""
    rows: Ints = np.flatnonzero((bank.sizes == size) & (bank.rows.kinds[: bank.kept + 1] == is_int))
    return rows[rows > 0]  # the first is the output
