"""`thesis-cli synthesize`: find the program that input-output examples mean."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from thesis_cli.base import VERSION
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, Stopwatch, silent
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.programs import (
    DivisionName,
    DslName,
    check_range,
    division_option,
    dsl_option,
    guide_lines,
    guide_named,
    line_guide_named,
    max_list_option,
    range_option,
    semantics_of,
)
from thesis_cli.commands.outputs.solutions import (
    bad_lines,
    bad_row,
    meant_facts,
    ranked,
    read_answer,
    rows,
    summary,
    summary_lines,
    task_lines,
)
from thesis_cli.synthesis.solvers import SOLVERS, SolverName, solver

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Language, Semantics, Value
    from thesis_cli.synthesis.language.task import BadTask, Example, Task
    from thesis_cli.synthesis.prior import Guide
    from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Solver

    TaskSource = str | Path | Task | Mapping[str, Any] | list[Any] | tuple[Any, ...]
    """A file, a task, a list of tasks, or examples; see `task.tasks_of`."""
    Prior = str | Path | Order | Mapping[str, float]
    """A name, a file, or probabilities."""
    GuideSource = str | Path | Guide
    """A name, a file, or a guide, which gives each task an order of its own."""
else:
    TaskSource = Prior = GuideSource = str

logger = logging.getLogger("thesis_cli")

T = TypeVar("T")

MOST_PROGRAMS = 10**4

WHOLE = ("rank", "length", "same", "programs", "nodes", "exhausted")
"""Columns that are empty in some rows, and of whole numbers in the others."""

PRIOR = "corpus"
"""The prior, unless the user names another one."""

LISTED = 10
"""Up to so many tasks are listed one by one; more are summed up."""


@dataclass(frozen=True, kw_only=True)
class SynthesizeRequest(Request):
    """Find the program of the DSL of DeepCoder that was most probably meant by examples.

    A batch of tasks that is cut short goes on where it stopped when the same command is run again.
    The exit status is 1 if a task has no program within the limits, or is skipped.
    """

    usual = ("solver", "programs", "max_length", "timeout", "guide", "out")

    tasks: TaskSource = argument(
        "Examples: JSON, or JSON Lines with one task a line; - reads standard input.", names="file", objects=True
    )
    solver: SolverName = option("auto", "Search; auto is the fastest that proves its answer shortest.")
    shortest: bool = option(False, "Give the first of the shortest programs, not the most probable one.")
    ask: bool = option(
        False,
        "Ask in the terminal for outputs that tell which program was meant.",
        not_swept="a sweep has nobody to ask",
    )
    programs: int | None = option(
        None,
        "Number of programs to find, shortest first, no two of which do the same.",
        least=1,
        most=MOST_PROGRAMS,
        default_text="1, or 10,000 with --all",
    )
    all: bool = option(False, "Find all programs of the shortest length that do different things.")
    max_length: int = option(5, "Lines of the longest program.", least=1, most=10)
    timeout: float | None = option(None, "Seconds for each task.", above=0, default_text="none")
    memory: float = option(2.0, "Memory in GiB that a search may use, in each job.", least=0.001, most=1e6)
    guide: GuideSource | None = option(
        None,
        "Guide that sees the examples and orders the search: none, network, the name of shipped weights, or a file of "
        "weights.",
        default_text="none for auto, join, dfs and bottom-up, network for others unless --prior is given",
        names="file",
        objects=True,
    )
    prior: Prior = option(
        PRIOR,
        "Probabilities of functions and lambdas: corpus, uniform, or a CSV file of attribute,probability.",
        names="file",
        objects=True,
    )
    dsl: DslName = dsl_option()
    division: DivisionName = division_option()
    range: tuple[int, int] = range_option()
    max_list: int = max_list_option()
    skip_bad: bool = option(False, "Skip tasks of a batch that cannot be read, with a row and a message for each.")
    jobs: int | None = jobs_option()
    out: Path | None = option(
        None,
        "File for the table, .csv; the record goes beside it, .json, and meanwhile the journal of a batch.",
        names="output",
        not_swept="a sweep merges the tables of its tasks",
    )

    def check(self) -> None:
        """Refuse bounds in the wrong order, a table that is no CSV file, and --all of a solver that
        leaves programs out."""
        check_range(self.range)
        if self.all and not SOLVERS[self.solver].lists_all:
            names = ", ".join(name for name, entry in SOLVERS.items() if entry.lists_all)
            raise InputError(f"--all does not go with --solver {self.solver}", f"it is for {names}")
        if self.dsl not in SOLVERS[self.solver].dsls:
            names = ", ".join(name for name, entry in SOLVERS.items() if self.dsl in entry.dsls)
            raise InputError(f"--dsl {self.dsl} does not go with --solver {self.solver}", f"it is for {names}")
        if self.dsl != "deepcoder" and isinstance(self.guide, str | Path) and str(self.guide) != "none":
            remedy = "leave out --guide, since networks know deepcoder alone"
            raise InputError(f"--dsl {self.dsl} does not go with --guide {self.guide}", remedy)
        if self.ask and not self.weighs:
            raise InputError("--ask needs the most probable program", f"leave out {self._overruling}")
        if self.out is not None and self.out.suffix.lower() != ".csv":
            raise InputError(f"--out {self.out}", "it must end in .csv")

    @property
    def weighs(self) -> bool:
        """Whether the answer is the most probable program: that of `auto`, unless others are asked for."""
        return not self._overruling

    @property
    def _overruling(self) -> str:
        """The first option that asks for other programs than the most probable one."""
        by = {"shortest": self.shortest, "all": self.all, "programs": self.programs, "solver": self.solver != "auto"}
        return next((f"--{name}" for name, is_set in by.items() if is_set), "")


@dataclass(frozen=True, kw_only=True, repr=False)
class SynthesizeResult(Result):
    """The programs that were found.

    Attributes
    ----------
    tasks : in order, without bad ones.
    solutions : of each task: its programs, what the search proves, and its cost.
    bad : tasks that were skipped, by their place among all.
    limits : of the searches.
    guidance : of searches with a guide: its `identity`, the `seconds` that it took for all tasks, and
        how many tasks it left to the prior, `by_prior`. Empty without one.
    answers : examples that `answer` has added to the task.
    """

    tasks: tuple[Task, ...]
    solutions: tuple[Solution, ...]
    bad: Mapping[int, BadTask]
    limits: Limits
    guidance: Mapping[str, Any]
    answers: tuple[Example, ...] = ()

    @property
    def status(self) -> int:
        """1 if a task has no program, or was skipped."""
        return int(bool(self.bad) or not all(found.programs for found in self.solutions))

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Each of a few tasks, or the totals of many."""
        guide = guide_lines(self.guidance, len(self.tasks))
        if len(self.tasks) + len(self.bad) > LISTED:
            return [*summary_lines(self.facts()["summary"], self.limits), *guide]
        blocks = [task_lines(t, found, self.limits) for t, found in zip(self.tasks, self.solutions, strict=True)]
        blocks = _with_bad(blocks, {place: bad_lines(bad) for place, bad in self.bad.items()})
        apart = [("", "")] * bool(guide and len(blocks) > 1)
        lines = [line for number, block in enumerate(blocks) for line in [("", "")] * (number > 0) + block]
        return lines + apart + guide

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The totals, and what the guide did."""
        found: dict[str, Any] = {"summary": summary(self.solutions, len(self.bad))}
        if self.guidance:
            found["guidance"] = self.guidance
        if meant := meant_facts(self.tasks, self.solutions):
            found["meant"] = meant
        if self.answers:
            found["answers"] = [{"inputs": example.inputs, "output": example.output} for example in self.answers]
        return found

    def question(self) -> tuple[Value, ...] | None:
        """Inputs whose output would tell most about which program was meant; None if one behaviour
        has 99 % of the probability, or no program fits. Raises InputError if there are several tasks."""
        meaning = self._only.meaning
        return meaning.settles[0] if meaning and meaning.settles else None

    def answer(self, output: object) -> SynthesizeResult:
        """The result with the output of `question` as a further example.

        Programs are searched anew, so that an output that none of the present ones gives leads to
        others, or to none: then the line `doubt` names examples that cannot hold together. An output
        that the present answer gives, too, makes programs that were not collected less probable.

        Parameters
        ----------
        output : a number or a list, or a text of JSON.

        Raises
        ------
        InputError : there is nothing to answer, or the output is of another type than those of the
            examples, out of range, or too long.
        """
        inputs = self.question()
        if inputs is None:
            raise InputError("nothing is asked", "see question()")
        example = read_answer(inputs, output, self.tasks[0], self._semantics)
        task = self.tasks[0].with_answer(example, self.solutions[0].programs[0], self._semantics)
        request = self.request
        assert isinstance(request, SynthesizeRequest)
        found = run(replace(request, tasks=task, out=None), silent)
        result = replace(found, request=request, settings=self.settings, answers=(*self.answers, example))
        if request.out is not None:
            result.save(request.out)
        return result

    @property
    def _only(self) -> Solution:
        """The solution of the only task. Raises InputError if there are several."""
        if len(self.tasks) != 1:
            raise InputError(f"there are {len(self.tasks)} tasks", "questions are for one task")
        return self.solutions[0]

    @property
    def _semantics(self) -> Semantics:
        request: Any = self.request
        return semantics_of(request.division, request.range, request.max_list, request.dsl)

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """Settings, totals and all rows."""
        return {**super().to_dict(), "found": self.columns.records()}


def run(request: SynthesizeRequest, progress: Progress) -> SynthesizeResult:
    """Solve the tasks; with `out`, keep a journal meanwhile and write the table."""
    from thesis_cli.synthesis.batch import journal_beside, solve_batch
    from thesis_cli.synthesis.prior import Fixed
    from thesis_cli.synthesis.search.solver import Limits

    whole = Stopwatch()
    semantics = semantics_of(request.division, request.range, request.max_list, request.dsl)
    prior = _prior(request.prior, semantics.language)
    guide = _guide(request, prior)
    tasks, bad = _tasks(request, semantics)
    orders, guidance = _orders(guide, tasks, prior)
    for order in orders:
        if order.language is not semantics.language:
            raise InputError(f"an order is of {order.language.name}", f"it must be of --dsl {request.dsl}")
    reading = whole.seconds
    search = solver(request.solver)  # compiles, so it comes after all that can be refused
    watch = Stopwatch()
    count = request.programs or (MOST_PROGRAMS if request.all else 1)
    several = request.all or count > 1
    limits = Limits(request.max_length, request.timeout, request.memory, count, several, request.all)
    names = {"prior": Fixed(prior).identity, "guide": guide.identity if guide else "none"}
    objects = {key: name for key, name in names.items() if not isinstance(getattr(request, key), str | Path)}
    settings = settings_of(request, programs=count, **objects)
    with ExitStack() as stack:
        journal = None
        if request.out is not None and len(tasks) > 1:
            key = {name: value for name, value in settings.items() if name not in ("tasks", "jobs", "out")}
            key |= {**names, "version": VERSION}
            journal = stack.enter_context(journal_beside(request.out, tasks, orders, key, semantics))
        tick = stack.enter_context(progress(len(tasks), "tasks"))
        solve = partial(_solve, search, limits, semantics, request.weighs)
        solutions = solve_batch(solve, tasks, orders, jobs_or_all(request.jobs), tick, journal)
        parts = zip(tasks, solutions, orders, strict=True)
        blocks = [rows(task, found, order, limits) for task, found, order in parts]
        blocks = _with_bad(blocks, {place: [bad_row(task)] for place, task in bad.items()})
        result = SynthesizeResult(
            columns=Columns([row for block in blocks for row in block], whole=WHOLE),
            request=request,
            settings=settings,
            seconds=reading + watch.seconds,
            compilation=whole.compilation,
            tasks=tuple(tasks),
            solutions=tuple(solutions),
            bad=bad,
            limits=limits,
            guidance=guidance,
        )
        if request.out is not None:
            result.save(request.out)
    return result


def _tasks(request: SynthesizeRequest, semantics: Semantics) -> tuple[list[Task], dict[int, BadTask]]:
    """The tasks, and bad ones by their place among all; each is reported."""
    from thesis_cli.synthesis.language.task import BadTask, Task, tasks_and_bad_ones, tasks_of

    if not request.skip_bad:
        return tasks_of(request.tasks, semantics), {}
    found = tasks_and_bad_ones(request.tasks, semantics)
    bad = {place: task for place, task in enumerate(found) if isinstance(task, BadTask)}
    for task in list(bad.values())[:LISTED]:
        logger.warning("%s is skipped: %s", task.name, task.reason)
    if len(bad) > LISTED:
        logger.warning("%s other tasks are skipped, too", f"{len(bad) - LISTED:,}")
    return [task for task in found if isinstance(task, Task)], bad


def _with_bad(blocks: Sequence[list[T]], bad: Mapping[int, list[T]]) -> list[list[T]]:
    """Blocks of the tasks, with those of bad tasks at their places among all."""
    good = iter(blocks)
    return [bad[place] if place in bad else next(good) for place in range(len(blocks) + len(bad))]


def _orders(guide: Guide | None, tasks: Sequence[Task], prior: Order) -> tuple[list[Order], dict[str, Any]]:
    """The order of each task, and what the guide did."""
    from thesis_cli.synthesis.prior import orders_of

    if guide is None:
        return [prior] * len(tasks), {}
    watch = Stopwatch()
    orders = orders_of(guide, tasks, prior)
    seconds = watch.seconds
    by_prior = sum(order is prior for order in orders)
    return orders, {"identity": guide.identity, "seconds": round(seconds, 6), "by_prior": by_prior}


def _prior(prior: object, language: Language) -> Order:
    """Probabilities by name, from a file, or from a mapping."""
    from thesis_cli.synthesis.prior import Guide, from_mapping, load, read
    from thesis_cli.synthesis.search.solver import Order

    if isinstance(prior, Order):
        return prior
    if isinstance(prior, Mapping):
        return from_mapping(prior, language)
    if not isinstance(prior, str | Path):
        remedy = "it must be corpus, uniform, a CSV file, probabilities by name, or an Order"
        remedy = "give it as guide" if isinstance(prior, Guide) else remedy
        raise InputError(f"--prior is an object of type {type(prior).__name__}", remedy)
    if prior == PRIOR:
        return load(language)
    return Order.uniform(language) if prior == "uniform" else read(Path(prior), language)


def _guide(request: SynthesizeRequest, prior: Order) -> Guide | None:
    """A guide by name, from a file of weights, or as it is; None for `none`.

    `network` stands for the weights that the solver is made for, if any. Without a name the solver has
    its default, but a prior that the user names is not overruled.
    """
    from thesis_cli.synthesis.prior import Guide

    guide: object = request.guide
    solver = request.solver
    if guide is None:
        both = solver == "guided"  # the network for next lines, the prior for the rest
        known = request.dsl == "deepcoder" and (request.prior == PRIOR or both)
        guide = SOLVERS[solver].guide if known else "none"
    if isinstance(guide, str | Path):
        own = SOLVERS[solver].weights if guide == "network" else ""
        if guide == "none":
            return None
        asks_for_lines = SOLVERS[solver].weights == "next-line"
        return line_guide_named(own or guide, prior) if asks_for_lines else guide_named(own or guide)
    if not isinstance(guide, Guide):
        remedy = "it must be none, network, a file of weights, or a Guide"
        raise InputError(f"--guide is an object of type {type(guide).__name__}", remedy)
    return guide


def _solve(search: Solver, limits: Limits, semantics: Semantics, weighs: bool, task: Task, order: Order) -> Solution:
    """Search, and rank the programs; `weighs` gives the most probable one, names examples that look
    mistaken, and says what could be done where no program fits."""
    from thesis_cli.synthesis.meant.meaning import meant, with_doubts, with_hints

    with about(task.name):
        found = search.solve(task, order, limits, semantics)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if weighs:
        given = task, order, limits, semantics
        return with_hints(with_doubts(meant(found, *given), *given), *given)
    return ranked(found, order)


COMMAND = Command(
    SynthesizeRequest,
    run,
    examples=(
        "synthesize data/tasks/league.json",
        "synthesize data/tasks/all.jsonl --timeout 2 --jobs 2",
        "synthesize data/tasks/league.json --programs 3 --max-length 4",
        "synthesize data/tasks/mirror.json --all",
        "synthesize data/tasks/heaps.json --guide network",
    ),
)
