"""Depth-first search, a bank of values and joins on it in turn, the cheapest one next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis import bottom_up, depth_first, join, roots
from thesis_cli.synthesis.bottom_up import CLOSE, Bank
from thesis_cli.synthesis.depth_first import DepthFirst, Run
from thesis_cli.synthesis.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.join import Join
from thesis_cli.synthesis.refutation import refutation
from thesis_cli.synthesis.roots import Roots
from thesis_cli.synthesis.solver import Limits, LineOrder, Order, Solution, Stop
from thesis_cli.synthesis.spaces import bands
from thesis_cli.synthesis.task import Task

if TYPE_CHECKING:
    from thesis_cli.synthesis.anytime_beam import Beam

LINE, KEPT, LAST = 15.0, 300.0, 60.0
"""Nanoseconds for a program of a depth-first search, for a tree that may enter the bank, and for
one that is only compared."""

PLAN = 1e6
"""Nanoseconds for a size of the bank besides: joins are planned."""

GUIDED = 3e8
"""Nanoseconds of the other searches before the guided one."""


@cache
def prepare() -> None:
    """Compile all searches, or load them, before any clock runs."""
    depth_first.prepare()
    bottom_up.prepare()
    join.prepare()
    roots.prepare()


@dataclass(frozen=True)
class Auto:
    """Depth-first search by length, a bank by size and joins on it, until a program is proven
    shortest.

    The cost of depth-first search of the next length, and of the bank's next size, is extrapolated:
    it should grow by the same factor as last time. That of a join is known. Depth-first search goes
    next, or the cheapest step of the others, whichever side will then have cost less in all. The
    bank and its joins reach long programs; depth-first search finds those that share results, and
    shows that there is no shorter one. For more than one program it is depth-first search alone,
    because the bank keeps only one expression for each value.

    If the order names a network for next lines, a guided search (`anytime_beam`) takes turns, too,
    once the others have cost `GUIDED` nanoseconds: half of the time from then on.

    Parameters
    ----------
    prove : whether to search depth first. Without it, the search ends with the first program, which
        need not be the shortest.

    Notes
    -----
    `Solution.solver` is "dfs", "bottom-up" or "join", whichever found the program, and the name of
    the solver if there is none.
    """

    prove: bool = True
    name: str = "auto"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        if self.prove and limits.count > 1:
            return DepthFirst().solve(task, order, limits, semantics)
        prepare()
        run = Run(self.name, task, limits, semantics)
        turns = Turns(run, task, order, limits, semantics)
        asks = self.prove and isinstance(order, LineOrder)
        led = _Led(run, task, order, limits, semantics) if asks else None
        try:
            while (run.exhausted < run.shortest - 1) if self.prove else not run.complete:
                best = run.shortest
                if led and not run.complete and led.spent + led.next <= turns.spent - led.after:
                    name = "guided"
                    led.take()
                else:
                    name = turns.take(self.prove)
                if run.shortest < best:
                    run.name = name
                if run.clock.is_up:
                    return run.solution(run.cut_short(turns.full))
                if not name:
                    break
        except KeyboardInterrupt:
            return run.solution("interrupted")
        return run.solution(turns.full)


class Turns:
    """The searches, and what the next turn of each should cost.

    Attributes
    ----------
    full : "memory" if the bank has reached the limit.

    Parameters
    ----------
    run : to which programs are reported.
    task, order, limits, semantics : as a solver takes them.
    close : as in a `Bank`.
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


class _Led:
    """The guided search, made when its first turn comes."""

    after = GUIDED

    def __init__(self, run: Run, task: Task, order: Order, limits: Limits, semantics: Semantics) -> None:
        self.spent = self.next = 0.0
        self._run, self._given = run, (task, order, limits, semantics)
        self._beam: Beam | None = None

    def take(self) -> None:
        """Search with the next beam."""
        from thesis_cli.synthesis.anytime_beam import Beam, policy_of, prepare

        if self._beam is None:
            prepare()
            self._beam = Beam(self._run, policy_of(self._given[1]), *self._given)
        self.spent += self._beam.next
        short = self._beam.widen()
        self.next = np.inf if self._beam.complete or short == "memory" else self._beam.next


class _Effort:
    """Nodes of the last two steps of a search, and the number expected for the next one."""

    def __init__(self) -> None:
        self._last, self._before = 0, 0

    def add(self, nodes: int) -> None:
        self._last, self._before = nodes, self._last

    @property
    def next(self) -> float:
        return self._last**2 / max(self._before, 1)


@dataclass(frozen=True)
class MeetInTheMiddle(Auto):
    """A bank by size and joins on it, until a program is found, which need not be the shortest."""

    prove: bool = False
    name: str = "join"
