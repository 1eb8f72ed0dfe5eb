"""Search that meets in the middle: values forward from the inputs, goals backward from the output.

A bank (`bottom_up`) holds the values of all small expressions. Goals are lists from which
operations that can be inverted lead to the output. Where a goal is the result of ZIPWITH, a join
(`join_kernels`) finds both its arguments in the bank at once, and a double join those of two
ZIPWITH, one inside the other. TAKE, DROP, HEAD and ACCESS of what a ZIPWITH gives are joins, too:
they only choose which part of the lists is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import le

import numpy as np

from thesis_cli.synthesis.bottom_up import Bank
from thesis_cli.synthesis.depth_first import Clock, Run
from thesis_cli.synthesis.dsl import BY_NAME, DEFAULT, LIST, Semantics, Value
from thesis_cli.synthesis.inverses import Goal, goals_of
from thesis_cli.synthesis.join_kernels import ALONE, FOUND, Search, join, join_twice
from thesis_cli.synthesis.join_lists import Lists, Root
from thesis_cli.synthesis.lanes import WIDTH
from thesis_cli.synthesis.solver import Limits, Order, Stop
from thesis_cli.synthesis.task import Example, Task
from thesis_cli.synthesis.trees import Tree, program_of

ZIPS = tuple(BY_NAME[f"ZIPWITH {name}"].id for name in ("(+)", "(-)", "(*)", "MIN", "MAX"))
"""ZIPWITH with the lambdas of `join_kernels`, in order."""

HITS = 2**10
"""Room for the hits of one call."""

DEPTH = 2
"""Inverted operations between the output and a goal."""

SHARED = 3
"""By how many operations a tree may exceed the length of its program, which shares results."""

ROW, DOUBLE = 0.5, 1.5
"""Cost of a row in a join, and in a double join for each row outside, in programs of a depth-first
search."""

SLICE = 2.0**18
"""Cost of what is done before the clock is looked at again."""

NUMBERS = 100
"""How many numbers of the bank TAKE, DROP and ACCESS take; the first ones."""

HEAD, TAKE, DROP, ACCESS, REVERSE = (BY_NAME[name].id for name in ("HEAD", "TAKE", "DROP", "ACCESS", "REVERSE"))


class Join:
    """The joins on a bank, the cheapest first.

    Parameters
    ----------
    bank : whose lists are joined.
    task, limits, semantics : of the search.
    """

    def __init__(self, bank: Bank, task: Task, limits: Limits, semantics: Semantics) -> None:
        self._bank, self._task, self._limits, self._semantics = bank, task, limits, semantics
        self._outputs: tuple[Value, ...] = tuple(example.output for example in task.examples)
        self._goals = goals_of(self._outputs, semantics, DEPTH) if task.output is LIST else []
        self._found = np.empty((HITS, FOUND), dtype=np.int64)
        self._steps: list[tuple[float, Callable[[Run], Stop]]] = []

    @property
    def next(self) -> float:
        """Cost of the next step, in programs of a depth-first search; infinite if there is none."""
        return self._steps[-1][0] if self._steps else np.inf

    def advance(self, run: Run) -> Stop:
        """Do the next step, and report programs and nodes to a search."""
        return self._steps.pop()[1](run)

    def grow(self) -> None:
        """Plan the joins of all values that the bank has now."""
        lists = cache(partial(Lists, bank=self._bank))
        sizes = np.bincount(self._bank.sizes[1:])
        rows = int(sizes.sum())
        steps = []
        for root, factor in self._roots():
            steps.append((factor * rows * (1 + ROW * len(root.goals)), partial(self._join, lists, root)))
            for goal in range(sum(len(goal.path) < DEPTH for goal in root.goals)):
                first = 0
                for size in sizes:
                    work = partial(self._join_twice, lists, root, goal, (first, first + int(size)))
                    steps.append((factor * rows * int(size) * DOUBLE, work))
                    first += int(size)
        self._steps = sorted(steps, key=lambda step: -step[0])

    def _roots(self) -> Iterator[tuple[Root, float]]:
        """What a join can give, and a factor of its cost: lines that it needs besides cost more."""
        examples = len(self._outputs)
        if self._task.output is LIST:
            counts = tuple(len(output) for output in self._outputs)  # type: ignore[arg-type]
            if not any(counts):
                return
            yield Root((0,) * examples, counts, True, tuple(self._goals)), 1
            goals, last = (Goal(self._outputs),), DROP
        else:
            counts, last = (1,) * examples, ACCESS
            goals = (Goal(tuple((output,) for output in self._outputs)),)  # type: ignore[assignment]
            yield Root((0,) * examples, counts, False, goals, (HEAD,)), 2
        sizes = self._bank.sizes
        longest = [max(len(x) for x in e.inputs if not isinstance(x, int)) for e in self._task.examples]
        for row, numbers in self._numbers():
            ends = map(sum, zip(numbers, counts, strict=True))
            if min(numbers) >= 0 and any(numbers) and all(map(le, ends, longest)):
                yield Root(numbers, counts, last == DROP, goals, (last, row)), 4.0 * (1 + sizes[row])

    def _numbers(self) -> list[tuple[int, tuple[int, ...]]]:
        """Rows of the first numbers of the bank, and their values."""
        rows = np.flatnonzero(self._bank.rows.kinds[: self._bank.kept + 1])
        rows = rows[rows > 0][:NUMBERS]
        values = self._bank.rows.pool[rows][:, : WIDTH * len(self._outputs) : WIDTH]
        return list(zip(rows.tolist(), map(tuple, values.tolist()), strict=True))

    def _join(self, lists: Callable[[Root], Lists], root: Root, run: Run) -> Stop:
        """Join for all goals of a root."""
        found = lists(root)
        step = max(1, int(SLICE / (ROW * len(found.rows) + 1)))
        for first in range(0, len(root.goals), step):
            search = self._search(found, run)
            join(found.view, search, first, min(first + step, len(root.goals)))
            if stop := self._report(run, found, search):
                return stop
        return ""

    def _join_twice(
        self, lists: Callable[[Root], Lists], root: Root, goal: int, rows: tuple[int, int], run: Run
    ) -> Stop:
        """Join twice for one goal, with some rows of the bank outside."""
        found = lists(root)
        start, end = np.searchsorted(found.rows, np.add(rows, 1))
        step = max(1, int(SLICE / (DOUBLE * len(found.rows) + 1)))
        for first in range(int(start), int(end), step):
            search = self._search(found, run)
            join_twice(found.view, search, goal, first, min(first + step, int(end)))
            if stop := self._report(run, found, search):
                return stop
        return ""

    def _search(self, lists: Lists, run: Run) -> Search:
        most = min(self._limits.max_length, run.shortest - 1) + SHARED - bool(lists.root.last)
        bounds = np.array([self._semantics.low, self._semantics.high, most], dtype=np.int64)
        counts = np.zeros(2, dtype=np.int64)
        return Search(lists.goals, bounds, self._found, counts, np.zeros(4, dtype=np.int64))

    def _report(self, run: Run, lists: Lists, search: Search) -> Stop:
        """Report what was found and looked at; whether to stop, and why."""
        run.nodes += int(search.state[1])
        origins = self._bank.rows.origins
        trees = {tree for hit in self._found[: search.state[0]].tolist() for tree in self._trees(lists, hit)}
        programs = [program_of(tree, self._task.inputs, origins) for tree in trees if isinstance(tree, tuple)]
        for program in sorted(programs, key=len):
            if len(program) < run.shortest:
                run.add([program])
        if run.complete:
            return "enough"
        return "timeout" if run.clock.is_up else ""

    def _trees(self, lists: Lists, hit: list[int]) -> Iterator[Tree]:
        """Trees of the output, from a hit."""
        outer, a, second, goal, inner, x, y = hit
        rows = [int(lists.rows[i]) for i in ([x] if inner == ALONE else [x, y])]
        tree: Tree = rows[0] if inner == ALONE else (ZIPS[inner], rows[0], rows[1])
        if outer != ALONE:
            rows.append(int(lists.rows[a]))
            tree = (ZIPS[outer], tree, rows[-1]) if second else (ZIPS[outer], rows[-1], tree)
        root = lists.root
        if root.last:
            yield (*root.last, tree)  # type: ignore[misc]
            return
        path = root.goals[goal].path
        tree = root.goals[goal].wrap(tree)
        columns = slice(WIDTH * len(root.counts), (WIDTH + 1) * len(root.counts))
        lengths = self._bank.rows.pool[rows, columns].min(axis=0)
        if (lengths == root.counts).all():
            yield tree
        elif REVERSE not in path:
            for row, numbers in self._numbers():
                taken = [min(n, k) if k >= 0 else max(0, n + k) for n, k in zip(lengths.tolist(), numbers, strict=True)]
                if taken == list(root.counts):
                    yield (TAKE, row, tree)
                    return


@cache
def prepare() -> None:
    """Compile the joins, or load them, before any clock runs."""
    task = Task("any", (Example(((0, 1),), (0, 1)),))
    limits = Limits(2)
    run = Run("join", task, limits, DEFAULT)
    bank = Bank(task, Order.uniform(), limits, DEFAULT)
    bank.make(Clock(None))
    joins = Join(bank, task, limits, DEFAULT)
    joins.grow()
    while joins.next < np.inf:
        joins.advance(run)
