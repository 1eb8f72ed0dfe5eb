"""The fastest exact combination: depth-first search and a bank of values in turn, the cheaper one
next."""

from __future__ import annotations

from dataclasses import dataclass

from thesis_cli.synthesis.bottom_up import Bank, prepare
from thesis_cli.synthesis.depth_first import DepthFirst, Run
from thesis_cli.synthesis.dsl import DEFAULT, OPERATIONS, Semantics
from thesis_cli.synthesis.refutation import refutation
from thesis_cli.synthesis.solver import Limits, Order, Solution, Stop
from thesis_cli.synthesis.task import Task

KEPT, LAST = 2.0, 0.3
"""Cost of a tree that may enter the bank, and of one that is only compared, in programs of a
depth-first search."""


@dataclass(frozen=True)
class Auto:
    """Depth-first search by length and a bank by size, until a program is proven shortest.

    The cost of depth-first search of the next length, and of the bank's next size, is extrapolated:
    it should grow by the same factor as last time. The cheaper one goes first. The bank reaches
    long programs that share no results; depth-first search finds those that do, and shows that
    there is no shorter one. For more than one program it is depth-first search alone, because the
    bank keeps only one expression for each value.

    Notes
    -----
    `Solution.solver` is "dfs" or "bottom-up", whichever found the program, and "auto" if there is
    none.
    """

    name: str = "auto"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        if limits.count > 1:
            return DepthFirst().solve(task, order, limits, semantics)
        prepare()
        run = Run(self.name, task, limits, semantics)
        bank = Bank(task, order, limits, semantics)
        lines, trees = _Effort(), _Effort()
        fresh = [True] * len(OPERATIONS)
        full: Stop = ""
        try:
            while run.exhausted < run.shortest - 1:
                before, best = run.nodes, run.shortest
                cost = KEPT if bank.size + 1 < limits.max_length else LAST
                growing = not (run.complete or full) and bank.size < limits.max_length
                if growing and cost * trees.next <= lines.next:
                    name, short = "bottom-up", bank.grow(run)
                    full = "memory" if short == "memory" else full
                    trees.add(run.nodes - before)
                else:
                    length = run.exhausted + 1
                    name, short = "dfs", "" if run.examine(length, order.operations, fresh, 1) else "timeout"
                    lines.add(run.nodes - before)
                    if not short and run.shortest > length:
                        run.exhausted = length
                if run.shortest < best:
                    run.name = name
                if short == "timeout" or run.clock.is_up:
                    return run.solution("memory, then timeout" if full else "timeout")
        except KeyboardInterrupt:
            return run.solution("interrupted")
        return run.solution(full)


class _Effort:
    """Nodes of the last two steps of a search, and the number expected for the next one."""

    def __init__(self) -> None:
        self._last, self._before = 0, 0

    def add(self, nodes: int) -> None:
        self._last, self._before = nodes, self._last

    @property
    def next(self) -> float:
        return self._last**2 / max(self._before, 1)
