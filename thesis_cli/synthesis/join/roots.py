"""Search for a last line that cannot be inverted, above ZIPWITH of two lists of a bank.

The join goes from the output backward through operations that can be inverted. HEAD, SUM, FILTER,
TAKE and others cannot: many lists give the same. But each bounds the lengths and items of the list
below it (`root_needs`). If that list is ZIPWITH f a b, these bounds and a bound the items of b, by
an interval each. So, for each list a, all lists b are tested by columns, thousands at a time, and
the few that pass are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.join.root_chains import Chains, RootChain, rows_of
from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.language.packing import Lanes, pack
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.bottom_up import Bank, Tree
from thesis_cli.synthesis.search.depth_first import Clock, Run
from thesis_cli.synthesis.search.solver import Limits, Order, Stop

if TYPE_CHECKING:
    from thesis_cli.synthesis.join.roots_kernels import RootPlan, Side

SHARED = 2
"""Operations that a tree may have beyond the greatest length, since a program computes equal parts
once."""

HITS = 64
"""Hits of one call of the kernel."""

SLICE = 10**7
"""Work after which the clock is looked at."""

ROOTS = 8.0, 240.0, 480.0
"""Roots of 1, 2 and 3 operations, about as many as there are; those of several operations are
tested less sharply, and count four times."""

STEP, PLANNED, QUERY, PAIR = 1e5, 100_000.0, 600.0, 3.0
"""Nanoseconds for a step, for a root that is to be planned, for a list a with one root, and for a
list b with them."""


@cache
def prepare() -> None:
    """Compile the search, or load it, before any clock runs."""
    task, limits = Task("any", (Example(((1, 2),), 5),)), Limits(2)
    bank = Bank(task, Order.uniform(), limits, DEFAULT)
    bank.make(Clock())
    roots = Roots(bank, task, limits, DEFAULT)
    roots.grow()
    roots.advance(Run("join", task, limits, DEFAULT))


class Roots:
    """Pairs of lists of a bank that give the output below a last line that cannot be inverted.

    A step takes the roots of so many operations, and the pairs of lists of two sizes; the cheapest
    step goes first. When the bank has grown, only pairs with a new list are new steps.

    Parameters
    ----------
    bank : bank of the task.
    task, limits, semantics : arguments of a solver.
    """

    def __init__(self, bank: Bank, task: Task, limits: Limits, semantics: Semantics) -> None:
        from thesis_cli.synthesis.language.operation_kernels import bounds_of

        self._bank, self._task, self._limits = bank, task, limits
        self._bounds = bounds_of(semantics)
        self._chains = Chains(bank, task, semantics)
        self._sides: dict[int, Side] = {}
        self._plans: dict[int, tuple[list[RootChain], RootPlan, Lanes]] = {}
        self._steps: list[tuple[float, int, int, int]] = []
        self._known = -1
        self._found = np.zeros((HITS, 4), dtype=np.int64)

    @property
    def next(self) -> float:
        """Expected nanoseconds of the next step; infinite if there is none."""
        return self._steps[-1][0] if self._steps else np.inf

    def grow(self) -> None:
        """Plan the steps of all sizes that the bank has now."""
        size = self._bank.size
        counts = np.bincount(
            self._bank.sizes, weights=~self._bank.rows.kinds[: self._bank.kept + 1], minlength=size + 1
        )
        for c, roots in enumerate(ROOTS[: size + 1], 1):
            planned = 0.0 if c in self._plans else PLANNED * roots
            for j in range(size + 1):
                for i in range(j + 1):
                    if max(j, c - 1) > self._known and c + i + j < self._limits.max_length + SHARED:
                        work = roots * float(counts[i]) * (QUERY + PAIR * float(counts[j]))
                        self._steps.append((STEP + planned + work, c, i, j))
        self._known = size
        self._steps.sort(reverse=True)

    def advance(self, run: Run) -> Stop:
        """Do the next step, and report programs and nodes to a search."""
        _, c, i, j = self._steps.pop()
        more = True
        state = np.zeros(8, dtype=np.int64)
        while more:
            more, trees = self._search(c, i, j, state)
            run.clock.nodes += int(state[7])
            self._bank.report(run, trees)
            if run.clock.is_up:
                return run.clock.stop
            more = more and not run.complete
        return ""

    def _search(self, c: int, i: int, j: int, state: Ints) -> tuple[bool, list[Tree]]:
        """Work for a while; returns whether more is to do, and trees of the output."""
        from thesis_cli.synthesis.join.roots_kernels import search

        roots, plan, scratch = self._plan(c)
        sides = self._side(i), self._side(j)
        state[3], state[4], state[5], state[6], state[7] = 0, i == j, 0, SLICE, 0
        more = search(self._bank.rows.pool, sides, plan, scratch, self._bounds, state, self._found)
        return more, [self._tree(roots, *hit) for hit in self._found[: state[3]].tolist()]

    def _tree(self, roots: Sequence[RootChain], root: int, f: int, a: int, b: int) -> Tree:
        from thesis_cli.synthesis.join.root_test_kernels import SUBTRACTED
        from thesis_cli.synthesis.join.roots_kernels import ZIPS

        return roots[root].above((int(ZIPS[f]), b, a) if f == SUBTRACTED else (int(ZIPS[f]), a, b))

    def _plan(self, c: int) -> tuple[list[RootChain], RootPlan, Lanes]:
        """Roots with so many operations."""
        if c not in self._plans:
            self._plans[c] = self._compile(self._chains.of(c))
        return self._plans[c]

    def _compile(self, roots: list[RootChain]) -> tuple[list[RootChain], RootPlan, Lanes]:
        """Roots, their tests in tables, and a pool with their targets and numbers."""
        from thesis_cli.synthesis.join.roots_kernels import FREE, RootPlan

        goals = list(dict.fromkeys(root.goal for root in roots))
        rows = sorted({number for root in roots for _, number in root.steps if number >= 0})
        blank = [self._bank.rows.pool[:1]] * FREE
        scratch = np.concatenate([*blank, *(pack([goal.values], 1) for goal in goals), self._bank.rows.pool[rows]])
        places = {row: FREE + len(goals) + n for n, row in enumerate(rows)}
        tests: list[tuple[int, ...]] = []
        parts, chains = [], []
        for root in roots:
            parts.append([len(tests) + n for n in (0, root.lengths, root.items, len(root.tests))])
            tests += root.tests
            chain = [(o.id, places.get(number, -1)) for o, number in root.steps]
            chains.append(chain + [(-1, -1)] * (2 - len(chain)))
        targets = [FREE + goals.index(root.goal) for root in roots]
        shapes = ((tests, (-1, 6)), (parts, (-1, 4)), (chains, (-1, 2, 2)), (targets, (-1,)))
        return roots, RootPlan(*(np.array(x, dtype=np.int64).reshape(shape) for x, shape in shapes)), scratch

    def _side(self, size: int) -> Side:
        """Lists of a size that are long enough, by column."""
        from thesis_cli.synthesis.join.roots_kernels import Side, gather

        if size not in self._sides:
            pool, rows = self._bank.rows.pool, rows_of(self._bank, size, False)
            chains = self._chains
            lengths = pool[rows][:, chains.columns[: len(chains.least)]]
            rows = rows[(lengths >= chains.least).all(1)]
            columns = np.empty((len(chains.columns), len(rows)), dtype=np.int16)
            gather(pool, rows, chains.columns, columns)
            self._sides[size] = Side(columns, rows)
        return self._sides[size]
