"""Depth-first search over a growing set of operations (Sort and add, section 5.4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from thesis_cli.synthesis.language.dsl import DEFAULT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.refutation import refutation
from thesis_cli.synthesis.search.solver import Limits, Order, Solution
from thesis_cli.synthesis.search.spaces import ALL, Pruning, Space


@dataclass(frozen=True)
class SortAndAdd:
    """Depth-first search over an active set that grows by the next most probable attribute (section
    5.4.4).

    The search over a set reaches the greatest length before the set grows. So the program that it
    finds is the shortest over that set, but need not be the shortest of all.

    Parameters
    ----------
    pruning : what it leaves out besides.
    again : whether the search over a larger set starts anew, and examines the programs over the
        earlier ones again, as that of section 5.4.4 does.
    """

    pruning: Pruning = ALL
    again: bool = False
    name: str = "sort-and-add"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if self.pruning & Pruning.UNFIT and (found := refutation(self.name, task, limits, semantics)):
            return found
        run = Run(self.name, task, limits, semantics, self.pruning)
        sets = active_sets(order)
        known = [(), *([()] * len(sets) if self.again else sets)]
        new = [Space(now, tuple(id not in old for id in now)) for old, now in zip(known, sets, strict=False)]
        return run.over((length, [space]) for space in new for length in range(1, limits.max_length + 1))


def active_sets(order: Order) -> list[tuple[int, ...]]:
    """Sets of operations that the most probable attributes enable, each set larger than the one
    before.

    The last set has all operations. Each set keeps their order.
    """
    sets: list[tuple[int, ...]] = []
    active: set[int] = set()
    for attribute in order.attributes:
        active.add(attribute)
        chosen = tuple(id for id in order.operations if active.issuperset(OPERATIONS[id].attributes))
        if len(chosen) > (len(sets[-1]) if sets else 0):
            sets.append(chosen)
    return sets
