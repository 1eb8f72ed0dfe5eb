"""`thesis-cli synthesize`: find the shortest program that fits input-output examples."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli import __version__
from thesis_cli.base.columns import Columns
from thesis_cli.base.compilation import Stopwatch
from thesis_cli.base.cores import jobs_or_all
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import argument, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.shared.semantics import (
    DivisionName,
    check_range,
    division_option,
    range_option,
    semantics_of,
)
from thesis_cli.commands.shared.solutions import log_prior, rows, summary, summary_lines, task_lines
from thesis_cli.synthesis.solvers import SolverName, solver

if TYPE_CHECKING:
    from thesis_cli.synthesis.dsl import Semantics
    from thesis_cli.synthesis.guide import Guide
    from thesis_cli.synthesis.solver import Limits, Order, Solution, Solver
    from thesis_cli.synthesis.task import Task

    TaskSource = str | Path | Task | Mapping[str, Any] | list[Any] | tuple[Any, ...]
    """A file, a task, a list of tasks, or examples; see `task.tasks_of`."""
    Prior = str | Path | Order | Mapping[str, float] | Guide
    """A name, a file, probabilities, or a guide, which gives each task an order of its own."""
else:
    TaskSource = Prior = str

LISTED = 10
"""Up to so many tasks are listed one by one; more are summed up."""


@dataclass(frozen=True, kw_only=True)
class SynthesizeRequest(Request):
    """Find the shortest program of the DSL of DeepCoder that fits all examples.

    A batch of tasks that is cut short goes on where it stopped when the same command is run again.
    The exit status is 1 if a task has no program within the limits.
    """

    tasks: TaskSource = argument(
        "Examples: JSON, or JSON Lines with one task a line; - reads standard input.", names="file", objects=True
    )
    solver: SolverName = option("auto", "Search; auto is the fastest that proves its answer shortest.")
    programs: int = option(1, "Number of programs to find, shortest first.", least=1, most=10**4)
    max_length: int = option(5, "Lines of the longest program.", least=1, most=10)
    timeout: float | None = option(None, "Seconds for each task.", above=0, default_text="none")
    memory: float = option(2.0, "Memory in GiB that a search may use, in each job.", least=0.001, most=1e6)
    prior: Prior = option(
        "corpus",
        "Probabilities of functions and lambdas: corpus, uniform, or a CSV file of attribute,probability.",
        names="file",
        objects=True,
    )
    division: DivisionName = division_option()
    range: tuple[int, int] = range_option()
    jobs: int | None = jobs_option()
    out: Path | None = option(
        None,
        "File for the table, .csv; the record goes beside it, .json, and meanwhile the journal of a batch.",
        names="output",
        not_swept="a sweep merges the tables of its tasks",
    )

    def check(self) -> None:
        """Refuse bounds in the wrong order, and a table that is no CSV file."""
        check_range(self.range)
        if self.out is not None and self.out.suffix.lower() != ".csv":
            raise InputError(f"--out {self.out}", "it must end in .csv")


@dataclass(frozen=True, kw_only=True, repr=False)
class SynthesizeResult(Result):
    """The programs that were found.

    Attributes
    ----------
    tasks : in order.
    solutions : of each task: its programs, what the search proves, and its cost.
    limits : of the searches.
    """

    tasks: tuple[Task, ...]
    solutions: tuple[Solution, ...]
    limits: Limits

    @property
    def status(self) -> int:
        """1 if a task has no program."""
        return int(not all(found.programs for found in self.solutions))

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Each of a few tasks, or the totals of many."""
        if len(self.tasks) > LISTED:
            return summary_lines(summary(self.solutions), self.limits)
        blocks = [task_lines(t, found, self.limits) for t, found in zip(self.tasks, self.solutions, strict=True)]
        return [line for number, block in enumerate(blocks) for line in [("", "")] * (number > 0) + block]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The totals."""
        return {"summary": summary(self.solutions)}

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """Settings, totals and all rows."""
        return {**super().to_dict(), "found": self.columns.records()}


def run(request: SynthesizeRequest, progress: Progress) -> SynthesizeResult:
    """Solve the tasks; with `out`, keep a journal meanwhile and write the table."""
    from thesis_cli.synthesis.batch import journal_beside, solve_batch
    from thesis_cli.synthesis.guide import orders_of
    from thesis_cli.synthesis.solver import Limits
    from thesis_cli.synthesis.task import tasks_of

    watch = Stopwatch()
    semantics = semantics_of(request.division, request.range)
    guide = _guide(request.prior)
    tasks = tasks_of(request.tasks, semantics)
    orders = orders_of(guide, tasks)
    limits = Limits(request.max_length, request.timeout, request.memory, request.programs)
    solve = partial(_solve, solver(request.solver), limits, semantics)
    named = isinstance(request.prior, str | Path)
    settings = settings_of(request, **({} if named else {"prior": guide.identity}))
    with ExitStack() as stack:
        journal = None
        if request.out is not None and len(tasks) > 1:
            key = {name: value for name, value in settings.items() if name not in ("tasks", "jobs", "out")}
            key |= {"prior": guide.identity, "version": __version__}
            journal = stack.enter_context(journal_beside(request.out, tasks, orders, key, semantics))
        tick = stack.enter_context(progress(len(tasks), "tasks"))
        solutions = solve_batch(solve, tasks, orders, jobs_or_all(request.jobs), tick, journal)
        parts = zip(tasks, solutions, orders, strict=True)
        found = [row for task, s, order in parts for row in rows(task, s, order, limits)]
        result = SynthesizeResult(
            columns=Columns(found, whole=("rank", "length")),
            request=request,
            settings=settings,
            seconds=watch.seconds,
            compilation=watch.compilation,
            tasks=tuple(tasks),
            solutions=tuple(solutions),
            limits=limits,
        )
        if request.out is not None:
            result.save(request.out)
    return result


def _guide(prior: object) -> Guide:
    """Probabilities by name, from a file, or from a mapping, for all tasks; or a guide as it is."""
    from thesis_cli.synthesis.guide import Fixed, Guide
    from thesis_cli.synthesis.prior import from_mapping, load, read
    from thesis_cli.synthesis.solver import Order

    if isinstance(prior, Guide):
        return prior
    if isinstance(prior, Order):
        return Fixed(prior)
    if isinstance(prior, Mapping):
        return Fixed(from_mapping(prior))
    if not isinstance(prior, str | Path):
        remedy = "it must be corpus, uniform, a CSV file, probabilities by name, an Order or a Guide"
        raise InputError(f"--prior is an object of type {type(prior).__name__}", remedy)
    if prior == "corpus":
        return Fixed(load())
    return Fixed(Order.uniform() if prior == "uniform" else read(Path(prior)))


def _solve(search: Solver, limits: Limits, semantics: Semantics, task: Task, order: Order) -> Solution:
    """Search, and rank the programs: shorter first, then by prior."""
    with about(task.name):
        found = search.solve(task, order, limits, semantics)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    ranked = sorted(found.programs, key=lambda program: (len(program), -log_prior(program, order)))
    return replace(found, programs=tuple(ranked))


COMMAND = Command(
    SynthesizeRequest,
    run,
    examples=(
        "synthesize data/tasks/league.json",
        "synthesize data/tasks/all.jsonl --timeout 2 --jobs 2",
        "synthesize data/tasks/mirror.json --programs 3 --max-length 3",
    ),
)
