"""Search for a last line that cannot be inverted, above ZIPWITH of two lists of a bank.

The join goes from the output backward through operations that can be inverted. HEAD, SUM, FILTER,
TAKE and others cannot: many lists give the same. But each bounds the lengths and items of the list
below it (`root_needs`). If that list is ZIPWITH f a b, these bounds and a bound the items of b, by
an interval each. So, for each list a, all lists b are tested by columns, thousands at a time, and
the few that pass are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.bottom_up import Bank
from thesis_cli.synthesis.dsl import DEFAULT, INT, LIST, OPERATIONS, Operation, Semantics
from thesis_cli.synthesis.root_needs import ENDS, PARITY, WITHIN, Need, Needs
from thesis_cli.synthesis.solver import Limits, Order
from thesis_cli.synthesis.task import Example, Task
from thesis_cli.synthesis.trees import Tree

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Ints
    from thesis_cli.synthesis.lanes import Lanes
    from thesis_cli.synthesis.roots_kernels import Plan, Side

Step = tuple[Operation, int]
"""An operation, and the row of the bank that it takes as a number, or -1."""

MOST_TESTS = 16
"""Tests of items for one root."""

SHARED = 2
"""Operations that a tree may have beyond the greatest length, since a program computes equal parts
once."""

HITS = 16
"""Hits of one call of the kernel."""

INVERTIBLE = frozenset(
    o.id
    for o in OPERATIONS
    if o.function.name == "REVERSE"
    or (o.function.name in ("MAP", "SCANL1") and o.f and o.f.rule in ("shift", "scale", "negate", "plus", "minus"))
)
"""Operations that the join inverts."""

UNARY = tuple(o for o in OPERATIONS if o.inputs.count(LIST) == 1)
ROOTS = tuple(o for o in UNARY if o.id not in INVERTIBLE)


@cache
def prepare() -> None:
    """Compile the search, or load it, before any clock runs."""
    task = Task("any", (Example(((1, 2),), 5),))
    order, limits = Order.uniform(), Limits(1)
    Roots(Bank(task, order, limits, DEFAULT), task, order, limits, DEFAULT).advance(1)


@dataclass(frozen=True)
class Root:
    """Operations above ZIPWITH.

    Attributes
    ----------
    steps : from ZIPWITH upward.
    tests : rows as `roots_kernels.Plan.tests` has them, with columns of the bank.
    lengths, items : ends of those about lengths, which come first, and of those about items.
    """

    steps: tuple[Step, ...]
    tests: tuple[tuple[int, ...], ...]
    lengths: int
    items: int


class Roots:
    """Pairs of lists of a bank that give the output below a last line that cannot be inverted.

    Sizes of pairs are taken in order, small ones first. When the bank has grown, only pairs with a
    new list are examined.

    Parameters
    ----------
    bank : of the task; `advance` sees the values that it has at the time.
    task, order, limits, semantics : as solvers take them.

    Attributes
    ----------
    hits : trees that give the output on all examples.
    work : list tests so far; about 0.1 ns each.
    """

    def __init__(self, bank: Bank, task: Task, order: Order, limits: Limits, semantics: Semantics) -> None:
        from thesis_cli.synthesis.lanes import WIDTH
        from thesis_cli.synthesis.operation_kernels import bounds_of

        self._bank, self._task, self._order = bank, task, order
        self._most = limits.max_length + SHARED
        self._bounds = bounds_of(semantics)
        self._outputs = tuple(example.output for example in task.examples)
        longest = [max(len(x) for x in e.inputs if not isinstance(x, int)) for e in task.examples]
        self._needs = [Needs(semantics, n) for n in longest]
        self._sides: dict[int, Side] = {}
        self._done: set[tuple[int, int, int]] = set()
        self._plans: dict[int, tuple[list[Root], Plan, Lanes]] = {}
        self._seen: set[object] = set()
        M = len(task.examples)
        places = [range(M * WIDTH, M * WIDTH + M), *(range(m * WIDTH, m * WIDTH + n) for m, n in enumerate(longest))]
        self._columns = np.array([place for part in places for place in part])
        self._firsts = [M + sum(longest[:m]) for m in range(M)]
        self._state = np.zeros(7, dtype=np.int64)
        self._step: tuple[int, int, int] | None = None
        self._found = np.zeros((HITS, 4), dtype=np.int64)
        self.hits: list[Tree] = []
        self.work = 0

    @property
    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Operations above ZIPWITH and sizes of pairs to be taken, in order of the total."""
        sizes = range(self._bank.size + 1)
        found = [(c, i, j) for c in range(1, min(self._bank.size, 2) + 2) for i in sizes for j in sizes if i <= j]
        found = [step for step in found if sum(step) < self._most and step not in self._done]
        yield from sorted(found, key=lambda step: (sum(step), step))

    @property
    def size(self) -> int:
        """Operations of the trees that come next, at least; 0 if the bank must grow first."""
        return next((sum(step) + 1 for step in self.steps), 0)

    @property
    def cost(self) -> float:
        """Expected work of the pairs of these sizes."""
        step = next(self.steps, None)
        if step is None:
            return 0.0
        c, i, j = step
        few, many = (len(self._side(size).rows) for size in (i, j))
        return 6.0 * len(self._plan(c)[0]) * few * (3 * many + 100)

    def advance(self, budget: int) -> bool:
        """Work for a while; returns whether there is more to do before the bank grows."""
        from thesis_cli.synthesis.roots_kernels import search

        stop = self.work + budget
        while self.work < stop:
            if self._step is None:
                self._step = next(self.steps, None)
                if self._step is None:
                    return False
                self._state[:] = 0
                self._state[4] = self._step[1] == self._step[2]
            c, i, j = self._step
            roots, plan, scratch = self._plan(c)
            sides = self._side(i), self._side(j)
            self._state[3], self._state[5], self._state[6] = 0, self.work, stop
            more = roots and search(self._bank.rows.pool, sides, plan, scratch, self._bounds, self._state, self._found)
            self.work = int(self._state[5]) + 1
            self.hits += [self._tree(roots, *map(int, row)) for row in self._found[: self._state[3]]]
            if not more:
                self._done.add(self._step)
                self._step = None
        return True

    def _tree(self, roots: Sequence[Root], root: int, f: int, a: int, b: int) -> Tree:
        from thesis_cli.synthesis.root_test_kernels import SUBTRACTED
        from thesis_cli.synthesis.roots_kernels import ZIPS

        tree: Tree = (int(ZIPS[f]), b, a) if f == SUBTRACTED else (int(ZIPS[f]), a, b)
        for operation, number in roots[root].steps:
            tree = (operation.id, tree) if number < 0 else (operation.id, number, tree)
        return tree

    def _plan(self, c: int) -> tuple[list[Root], Plan, Lanes]:
        """Roots with so many operations."""
        if c not in self._plans:
            self._plans[c] = self._compile(list(self._roots(c)))
        return self._plans[c]

    def _compile(self, roots: list[Root]) -> tuple[list[Root], Plan, Lanes]:
        from thesis_cli.synthesis.roots_kernels import FREE, Plan

        pool = self._bank.rows.pool
        rows = sorted({number for root in roots for _, number in root.steps if number >= 0})
        scratch = pool[[0] * (FREE + 1) + rows]
        places = {row: FREE + 1 + n for n, row in enumerate(rows)}
        tests: list[tuple[int, ...]] = []
        parts, chains = [], []
        for root in roots:
            parts.append([len(tests) + n for n in (0, root.lengths, root.items, len(root.tests))])
            tests += root.tests
            chain = [(o.id, places.get(number, -1)) for o, number in root.steps]
            chains.append(chain + [(-1, -1)] * (2 - len(chain)))
        tables = (np.array(x, dtype=np.int64) for x in (tests, parts, chains, [FREE] * len(roots)))
        return roots, Plan(*tables), scratch

    def _side(self, size: int) -> Side:
        """Lists of a size that are long enough, by column."""
        from thesis_cli.synthesis.roots_kernels import Side, gather

        if size not in self._sides:
            pool, rows = self._bank.rows.pool, self._rows(size, False)
            lengths = pool[rows][:, self._columns[: len(self._outputs)]]
            least = [len(y) if isinstance(y, tuple) else 0 for y in self._outputs]
            rows = rows[(lengths >= least).all(1)]
            columns = np.empty((len(self._columns), len(rows)), dtype=np.int16)
            gather(pool, rows, self._columns, columns)
            self._sides[size] = Side(columns, rows)
        return self._sides[size]

    def _roots(self, c: int) -> Iterator[Root]:
        """Operations that can stand above ZIPWITH, so many of them together with those of their
        numbers."""
        for steps, numbers in self._chains(c):
            needs: list[Need] = []
            for rules, output, k in zip(self._needs, self._outputs, numbers, strict=True):
                need = rules.above(steps[-1][0], output, k)
                for operation, _ in reversed(steps[:-1]):
                    need = need and rules.back(operation, need)
                if need is None:
                    break
                needs.append(need)
            else:
                yield self._root(steps, needs)

    def _chains(self, c: int) -> Iterator[tuple[tuple[Step, ...], Sequence[int]]]:
        """Steps, and the number of the last one in each example."""
        none = [0] * len(self._outputs)
        for operation in (o for o in ROOTS if o.output is self._task.output):
            if INT in operation.inputs:
                yield from ((((operation, row),), numbers) for row, numbers in self._numbers(operation, c - 1))
            elif c == 1:
                yield ((operation, -1),), none

    def _numbers(self, operation: Operation, size: int) -> Iterator[tuple[int, list[int]]]:
        """Rows of numbers of a size that TAKE, DROP or ACCESS can have, and the numbers; of those
        that have the same effect the first."""
        longest = np.array([rules.longest for rules in self._needs])
        rows = self._rows(size, True)
        k = self._bank.rows.pool[rows][:, self._columns[self._firsts]].astype(np.int64)
        if operation.function.name == "ACCESS":
            possible, same = (k >= 0) & (k < longest), k
        else:
            n = np.array([len(y) for y in self._outputs if isinstance(y, tuple)])
            if operation.function.name == "TAKE":  # of the first n items, of all n, or of all but -k
                possible = np.where(k < 0, n - k <= longest, n <= k)
                same = np.where(k < 0, np.where(n == 0, np.maximum(k, -longest), k), np.minimum(k, n + 1))
            else:
                possible = np.where(k < 0, n <= -k, (n == 0) | (n + k <= longest))
                same = np.where(k < 0, np.where(n < -k, 0, k), np.minimum(k, longest))
        fits = possible.all(1)
        chosen = (x[fits].tolist() for x in (rows, k, same))
        for row, numbers, effect in zip(*chosen, strict=True):
            key = operation.id, tuple(effect)
            if key not in self._seen:
                self._seen.add(key)
                yield row, numbers

    def _rows(self, size: int, is_int: bool) -> Ints:
        """Rows of the numbers or lists of a size."""
        rows: Ints = np.flatnonzero(
            (self._bank.sizes == size) & (self._bank.rows.kinds[: self._bank.kept + 1] == is_int)
        )
        return rows[rows > 0]  # the first is the output

    def _root(self, steps: tuple[Step, ...], needs: Sequence[Need]) -> Root:
        """A root with its tests; the sharper ones come first."""
        from thesis_cli.synthesis import root_test_kernels as kernels

        low, high = int(self._bounds.low), int(self._bounds.high)
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
        return Root(steps, (*tests, *totals), len(lengths), len(tests))
