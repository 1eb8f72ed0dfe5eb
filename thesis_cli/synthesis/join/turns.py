"""A bank of values, joins on it, and depth-first search in turn, the cheapest one next."""

from __future__ import annotations

from functools import cache

import numpy as np

from thesis_cli.synthesis.join import join, roots
from thesis_cli.synthesis.join.join import Join
from thesis_cli.synthesis.join.roots import Roots
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search import bottom_up, depth_first
from thesis_cli.synthesis.search.bottom_up import CLOSE, Bank
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.solver import Limits, Order, Stop
from thesis_cli.synthesis.search.spaces import bands

LINE, KEPT, LAST = 15.0, 300.0, 60.0
"""Nanoseconds for a program of a depth-first search, for a tree that may enter the bank, and for
one that is only compared."""

PLAN = 1e6
"""Nanoseconds for a size of the bank besides: joins are planned."""


@cache
def prepare() -> None:
    """Compile all searches, or load them, before any clock runs."""
    depth_first.prepare()
    bottom_up.prepare()
    join.prepare()
    roots.prepare()


class Turns:
    """The searches, and what the next turn of each should cost.

    Attributes
    ----------
    full : "memory" if the bank has reached the limit.

    Parameters
    ----------
    run : search to which programs are reported.
    task, order, limits, semantics : arguments of a solver.
    close : excess of lines up to which a program is shortened, as in a `Bank`.
    """

    def __init__(
        self, run: Run, task: Task, order: Order, limits: Limits, semantics: Semantics, close: int = CLOSE
    ) -> None:
        self.full: Stop = ""
        self._run, self._order, self._limits = run, order, limits
        self._bank = Bank(task, order, limits, semantics)
        self._bank.close = close
        self._joins: tuple[Join | Roots, ...] = (
            Join(self._bank, task, limits, semantics),
            Roots(self._bank, task, limits, semantics),
        )
        self._lines, self._trees = _Effort(), _Effort()
        self._spent = [0.0, 0.0]

    @property
    def spent(self) -> float:
        """Expected nanoseconds of all turns so far."""
        return sum(self._spent)

    def take(self, prove: bool) -> str:
        """Take the next turn, of the side that will then have cost less: depth-first search, or the
        bank and its joins.

        Returns
        -------
        The search; empty if none is left.
        """
        run, growing = self._run, not self.full and self._bank.size < self._limits.max_length
        joins = min(self._joins, key=lambda joins: joins.next)
        tree = KEPT if self._bank.size + 1 < self._limits.max_length else LAST
        costs = {"dfs": LINE * self._lines.next if prove else np.inf}
        if not run.complete:
            costs |= {"bottom-up": PLAN + tree * self._trees.next if growing else np.inf, "join": joins.next}
        name = min(costs, key=lambda name: costs[name] + self._spent[name == "dfs"])
        if costs[name] == np.inf:
            return ""
        self._spent[name == "dfs"] += costs[name]
        before = run.nodes
        if name == "join":
            joins.advance(run)
            return name
        if name == "bottom-up":
            short = self._bank.grow(run)
            self.full = "memory" if short == "memory" else self.full
            self._trees.add(run.nodes - before)
            for joins in self._joins:
                joins.grow()
            return name
        length = run.exhausted + 1
        in_time = all(run.shortest == length or run.examine(length, space, 1) for space in bands(self._order, length))
        self._lines.add(run.nodes - before)
        if in_time and run.shortest > length:
            run.exhausted = length
        return name


class _Effort:
    """Nodes of the last two steps of a search, and the number expected for the next one."""

    def __init__(self) -> None:
        self._last, self._before = 0, 0

    def add(self, nodes: int) -> None:
        self._last, self._before = nodes, self._last

    @property
    def next(self) -> float:
        return self._last**2 / max(self._before, 1)
