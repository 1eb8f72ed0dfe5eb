"""All solvers by name: what the command offers, and what benchmarks and experiments time; and many tasks, solved in
several processes.

Imports no solver before it is used, so that `--help` stays fast.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import WorkFailed

if TYPE_CHECKING:
    from thesis_cli.base.progress import Tick
    from thesis_cli.synthesis.journal import Journal
    from thesis_cli.synthesis.language.task import Task
    from thesis_cli.synthesis.search.solver import Order, Solution, Solver

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class SolverEntry:
    """A row of the registry.

    Attributes
    ----------
    module : module of this package.
    maker : its class; without arguments, it makes the solver.
    kernels : modules whose `prepare` compiles or loads what the solver calls; none if it is plain
        Python.
    label : name in the answer; empty for the solver's name.
    lists_all : whether it finds every program of the shortest length.
    weights : weights that the guide `network` stands for, if not those that predict functions and
        lambdas.
    guide : the guide that it has unless the user names one: the network, where measurements show that
        it pays for programs of any length (experiments `guidance` and `table-5-1`).
    dsls : names of the languages that it can search.
    """

    module: str
    maker: str
    kernels: tuple[str, ...] = ()
    label: str = ""
    lists_all: bool = False
    weights: str = ""
    guide: str = "none"
    dsls: tuple[str, ...] = ("deepcoder",)

    @property
    def compiled(self) -> bool:
        """Whether it runs compiled code."""
        return bool(self.kernels)

    def make(self) -> Solver:
        """The solver; nothing is compiled yet."""
        solver: Solver = getattr(_module(self.module), self.maker)()
        return solver

    def prepare(self) -> None:
        """Compile what it calls, or load it, before any clock runs."""
        for name in self.kernels:
            _module(name).prepare()


BOTH = "deepcoder", "extended"

SOLVERS = {
    "auto": SolverEntry("auto", "Auto", ("auto",), lists_all=True, weights="next-line", dsls=BOTH),
    "join": SolverEntry("auto", "MeetInTheMiddle", ("auto",), dsls=BOTH),
    "dfs": SolverEntry("depth_first", "DepthFirst", ("depth_first",), lists_all=True, dsls=BOTH),
    "sort-and-add": SolverEntry("depth_first", "SortAndAdd", ("depth_first",), guide="network", dsls=BOTH),
    "bottom-up": SolverEntry("bottom_up", "BottomUp", ("depth_first", "bottom_up"), dsls=BOTH),
    "beam": SolverEntry("beam_search", "Beam", ("beam_search",), weights="program", guide="network"),
    "guided": SolverEntry("anytime_beam", "AnytimeBeam", ("anytime_beam",), weights="next-line", guide="network"),
    "deductive": SolverEntry("deductive_search", "Deductive", label="deductive, instead of lambda^2", guide="network"),
    "smt": SolverEntry("smt_search", "Smt", label="SMT (z3), instead of Sketch", guide="network"),
}
"""The solvers, in the order in which help texts name them."""

COMPILED = tuple(name for name, entry in SOLVERS.items() if entry.compiled)
"""Names of the solvers that run compiled code; the others are slow."""

UNGUIDED = tuple(name for name, entry in SOLVERS.items() if not (entry.weights and entry.guide == "network"))
"""Names of the solvers that are not made for a network of their own."""

if TYPE_CHECKING:
    SolverName = str
else:
    SolverName = Literal[tuple(SOLVERS)]


def solver(name: SolverName) -> Solver:
    """A solver whose code is compiled or loaded."""
    entry = SOLVERS[name]
    entry.prepare()
    return entry.make()


def solve_batch(
    solve: Callable[[Task, Order], Solution],
    tasks: Sequence[Task],
    orders: Sequence[Order],
    jobs: int,
    tick: Tick,
    journal: Journal | None = None,
) -> list[Solution]:
    """Solve tasks, each with its order, except those that a journal holds already; returns the
    solutions of all, in order.

    Raises
    ------
    WorkFailed : the process of a task was killed each time it was tried; all other tasks are solved
        before.
    Exception : whatever `solve` raises.
    """
    from thesis_cli.base.pool import Killed, answers

    kept = {} if journal is None else dict(journal.kept)
    if kept:
        logger.info("%s of %s tasks are kept from before", f"{len(kept):,}", f"{len(tasks):,}")
        tick(len(kept))
    missing = [place for place in range(len(tasks)) if place not in kept]
    killed = []
    for place, found in answers(
        partial(_apply, solve), lambda places: ((tasks[i], orders[i]) for i in places), missing, jobs
    ):
        if isinstance(found, Killed):
            killed.append((place, found))
            continue
        kept[place] = found
        if journal is not None:
            journal.add(place, found)
        tick(1)
    if killed:
        place, answer = killed[0]
        others = f" and {len(killed) - 1:,} others" * (len(killed) > 1)
        raise WorkFailed(f"task {tasks[place].name}{others}: {answer}; fewer --jobs may help")
    return [kept[place] for place in range(len(tasks))]


def _apply(solve: Callable[[Task, Order], Solution], pair: tuple[Task, Order]) -> Solution:
    return solve(*pair)


def label(name: str) -> str:
    """Name in answers of a solver, or of a part of one such as the turns of `auto`."""
    return SOLVERS[name].label or name if name in SOLVERS else name


def _module(name: str) -> Any:
    """A module of this package. Its name stands in an import, by which results of experiments are
    known to depend on it."""
    if name == "anytime_beam":
        from thesis_cli.synthesis.guided import anytime_beam

        return anytime_beam
    if name == "auto":
        from thesis_cli.synthesis import auto

        return auto
    if name == "beam_search":
        from thesis_cli.synthesis.guided import beam_search

        return beam_search
    if name == "bottom_up":
        from thesis_cli.synthesis.search import bottom_up

        return bottom_up
    if name == "deductive_search":
        from thesis_cli.synthesis.deductive import deductive_search

        return deductive_search
    if name == "smt_search":
        from thesis_cli.synthesis.deductive import smt_search

        return smt_search
    from thesis_cli.synthesis.search import depth_first

    return depth_first
