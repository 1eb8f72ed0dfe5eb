"""Speed of searches: programs a second, and seconds until tasks are solved.

All seconds are processor time, which other programs hardly change. They end no search: that is done by
a number of programs, so that the same tasks are solved on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

import numpy as np

from thesis_cli.synthesis.language.dsl import DEFAULT, INT, Type, Value
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.depth_first import EVERY, NONE, DepthFirst, Examination, SortAndAdd, prepare
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Solver
from thesis_cli.synthesis.solvers import SOLVERS as REGISTERED

SOLVERS: dict[str, Solver] = {
    **{name: entry.make() for name, entry in REGISTERED.items()},
    "dfs, unpruned": DepthFirst(NONE),
    "sort-and-add, unpruned": SortAndAdd(NONE),
}
"""Solvers by name: all that are registered, and two without pruning, which are exactly the searches
that section 5.4.4 describes."""

SHARES = (0.2, 0.4, 0.6)
"""Shares of the tasks; Table 5.1 has the time within which each share is solved."""


RATES = {
    "dfs": 45e6,
    "dfs, unpruned": 45e6,
    "sort-and-add": 22e6,
    "sort-and-add, unpruned": 43e6,
    "bottom-up": 12e6,
    "join": 40e6,
    "auto": 48e6,
    "guided": 12e6,
    "beam": 330e3,
    "deductive": 33e3,
}
"""Programs a second by search, of which limits in seconds are made: rounded medians of searches of over
0.3 s, on the machine of the committed results. `smt` is not among them, as z3 counts no work."""


def within(search: str, length: int, seconds: float | None) -> Limits:
    """Limits of a search for programs of up to T lines that is to take some seconds.

    They are a number of programs, by `RATES`; `smt` has a timeout.

    Parameters
    ----------
    seconds : None for no limit.
    """
    if seconds is None or search not in RATES:
        return Limits(length, seconds)
    return Limits(length, nodes=int(seconds * RATES[search]))


@cache
def solver(name: str) -> Solver:
    """A solver that has answered once: everything is compiled, loaded and imported."""
    found = SOLVERS[name]
    if name in REGISTERED:
        REGISTERED[name].prepare()
    found.solve(Task("any", (Example(((0,),), 0),)), Order.uniform(), Limits(1))
    return found


def solution_of(solver: Solver, task: Task, order: Order, limits: Limits) -> Solution:
    """The solution of a solver. Raises KeyboardInterrupt if the user has stopped the search. A
    solver returns what it has by then, which is no result of an experiment."""
    found = solver.solve(task, order, limits)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    return found


def timed(name: str, task: Task, order: Order, limits: Limits) -> tuple[Solution, float]:
    """The solution of a solver, and its seconds."""
    found = solver(name)
    began = time.process_time()
    solution = solution_of(found, task, order, limits)
    return solution, time.process_time() - began


def until_found(solution: Solution, seconds: float) -> float:
    """Processor seconds until a solver had its first program; inf if it has none.

    Parameters
    ----------
    seconds : processor seconds of the search, of which the first program took the same share as of
        the wall-clock ones.
    """
    first = solution.found_after if solution.first_after is None else solution.first_after
    if first is None:
        return float("inf")
    return seconds * (first / solution.seconds if solution.seconds else 1.0)


def time_limits(seconds: Sequence[float], shares: Sequence[float] = SHARES) -> list[float]:
    """The least time in which each share of tasks is solved.

    Parameters
    ----------
    seconds : seconds of each task; inf for one that was not solved.
    """
    return [float(x) for x in np.quantile(seconds, shares, method="inverted_cdf")]


def unsolvable(inputs: Sequence[Type], rng: np.random.Generator, examples: int = 5) -> Task:
    """A task that no program fits: the last two of its M examples have equal inputs and different
    outputs.

    Lists, one of which is the output, have 5 to 14 numbers from -20 to 20; numbers are from 0 to 4.
    """

    def some() -> tuple[int, ...]:
        return tuple(int(x) for x in rng.integers(-20, 21, int(rng.integers(5, 15))))

    def row() -> tuple[Value, ...]:
        return tuple(int(rng.integers(5)) if kind is INT else some() for kind in inputs)

    rows = [row() for _ in range(examples - 1)]
    outputs = [some() for _ in rows]
    pairs = [*zip(rows, outputs, strict=True), (rows[-1], (*outputs[-1][:-1], 21))]
    return Task("unsolvable", tuple(Example(*pair) for pair in pairs))


def examine(task: Task, length: int, lazily: bool) -> tuple[int, float]:
    """Examine all programs of a length T as appendix D.4 does: depth first, each beginning run
    once, nothing left out.

    Parameters
    ----------
    lazily : whether a last line is run on an example only if it fits those before it, or on all of
        them.

    Returns
    -------
    Number of programs, and seconds. A program whose beginning gives NULL or leaves the range
    counts, too.
    """
    prepare()
    examination = Examination(task, DEFAULT, length, EVERY, 1, NONE, lazily)
    began = time.process_time()
    while examination.advance():
        pass
    return examination.nodes, time.process_time() - began
