"""All searches in turn: depth-first search, a bank of values and joins on it, and the guided search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.join.join import Turns, prepare
from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.depth_first import DepthFirst, Run
from thesis_cli.synthesis.search.solver import Limits, LineOrder, Order, Solution, refutation

if TYPE_CHECKING:
    from thesis_cli.synthesis.guided.anytime_beam import WideningBeam

GUIDED = 3e8
"""Nanoseconds of the other searches before the guided one."""


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


@dataclass(frozen=True)
class MeetInTheMiddle(Auto):
    """A bank by size and joins on it, until a program is found, which need not be the shortest."""

    prove: bool = False
    name: str = "join"


class _Led:
    """The guided search, made when its first turn comes."""

    after = GUIDED

    def __init__(self, run: Run, task: Task, order: Order, limits: Limits, semantics: Semantics) -> None:
        self.spent = self.next = 0.0
        self._run, self._given = run, (task, order, limits, semantics)
        self._beam: WideningBeam | None = None

    def take(self) -> None:
        """Search with the next beam."""
        from thesis_cli.synthesis.guided.anytime_beam import WideningBeam, policy_of, prepare

        if self._beam is None:
            prepare()
            self._beam = WideningBeam(self._run, policy_of(self._given[1]), *self._given)
        self.spent += self._beam.next
        short = self._beam.widen()
        self.next = np.inf if self._beam.complete or short == "memory" else self._beam.next
