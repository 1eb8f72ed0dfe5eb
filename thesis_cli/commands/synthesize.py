"""`thesis-cli synthesize`: find the program that input-output examples mean, and tell it as rows of a table, as a
sentence, and as a summary of many."""

from __future__ import annotations

import json
import logging
import math
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from thesis_cli.base import VERSION
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about, counted
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, Stopwatch, silent
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.programs import (
    PRIOR,
    DivisionName,
    DslName,
    check_range,
    division_option,
    dsl_option,
    guide_lines,
    guide_of,
    max_list_option,
    prior_of,
    range_option,
    semantics_of,
)
from thesis_cli.synthesis.solvers import SOLVERS, SolverName, label, solve_batch, solver

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Semantics, Value
    from thesis_cli.synthesis.language.program import Program
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
    from thesis_cli.synthesis.journal import journal_beside
    from thesis_cli.synthesis.prior import Fixed
    from thesis_cli.synthesis.search.solver import Limits

    whole = Stopwatch()
    semantics = semantics_of(request.division, request.range, request.max_list, request.dsl)
    prior = prior_of(request.prior, semantics.language)
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


def _guide(request: SynthesizeRequest, prior: Order) -> Guide | None:
    """The guide of the request. Without one the solver has its default, but a prior that the user names is not
    overruled."""
    solver, guide = SOLVERS[request.solver], request.guide
    if guide is None:
        both = request.solver == "guided"  # the network for next lines, the prior for the rest
        known = request.dsl == "deepcoder" and (request.prior == PRIOR or both)
        guide = solver.guide if known else "none"
    return guide_of(guide, solver.weights, prior)


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


def log_prior(program: Program, order: Order) -> float:
    """Logarithm of the product of the probabilities of a program's attributes."""
    chosen = [order.probabilities[a] for a in sorted(program.attributes)]
    return math.fsum(map(math.log, chosen)) if all(chosen) else -math.inf


def ranked(found: Solution, order: Order) -> Solution:
    """A solution whose programs are ranked: shorter first, then by prior, then the more natural."""
    from thesis_cli.synthesis.language.program import naturalness

    def rank(place: int) -> tuple[float, ...]:
        program = found.programs[place]
        return (len(program), -log_prior(program, order), *naturalness(program))

    places = sorted(range(len(found.programs)), key=rank)
    same = [found.same[place] for place in places] if found.same else ()
    return replace(found, programs=tuple(found.programs[place] for place in places), same=tuple(same))


def rows(task: Task, found: Solution, order: Order, limits: Limits) -> list[dict[str, Any]]:
    """Rows of the table: one for each program, or a single one if there is none."""
    answer = sentence(found, limits)
    return [
        {
            "task": task.name,
            "rank": rank if program else None,
            "length": len(program) if program else None,
            "program": program.one_line if program else None,
            "proven": found.proven and program is not None and len(program) == len(found.programs[0]),
            "log_prior": round(log_prior(program, order), 6) if program else None,
            "programs": len(found.programs),
            "same": found.same[rank - 1] if found.same else None,
            "share": round(found.meaning.shares[0], 4) if found.meaning else None,
            "behaviours": found.meaning.behaviours if found.meaning else None,
            "solver": found.solver,
            "nodes": found.nodes,
            "exhausted": found.exhausted,
            "stopped": found.stopped,
            "found_after": None if found.found_after is None else round(found.found_after, 5),
            "seconds": round(found.seconds, 5),
            "answer": answer if rank == 1 else None,
        }
        for rank, program in enumerate(found.programs or (None,), 1)
    ]


def bad_row(task: BadTask) -> dict[str, Any]:
    """The row of a task that was skipped."""
    return {"task": task.name, "proven": False, "programs": 0, "answer": _skipped(task)}


def task_lines(task: Task, found: Solution, limits: Limits) -> list[tuple[str, str]]:
    """Everything about one task."""
    from thesis_cli.synthesis.language.program import signature

    examples = counted(len(task.examples), "example")
    lines = [("task", f"{task.name}: {examples}, {signature(task.inputs)} -> {task.output}")]
    for program in found.programs:
        head = "program"
        for row in str(program).splitlines():
            lines.append((head, row))
            head = ""
    lines.append(("answer", sentence(found, limits)))
    settles = found.meaning.settles if found.meaning else ()
    lines += [("settles it" if k == 0 else "", _shown(row)) for k, row in enumerate(settles)]
    if found.doubts:
        lines.append(("doubt", doubt(found)))
    if found.closest:
        lines.append(("closest", closest(found, len(task.examples))))
    if found.larger:
        lines.append(("fits", f"with --dsl extended: `{found.larger.one_line}`"))
    if limits.distinct and found.programs:
        lines.append(("found", _listing(found, limits)))
    after = f", found after {found.found_after:.3g} s" if found.found_after is not None else ""
    examined = f"{counted(found.nodes, 'program')} examined in {found.seconds:.3g} s"
    lines.append(("search", f"{label(found.solver)}{after}; {examined}"))
    return lines


def _shown(inputs: Sequence[Value]) -> str:
    """Inputs as JSON, without the brackets around all of them."""
    return ", ".join(json.dumps(value) for value in inputs)


def meant_facts(tasks: Sequence[Task], solutions: Sequence[Solution]) -> list[dict[str, Any]]:
    """Behaviours with their shares, inputs that settle which was meant, examples that look mistaken, and what
    could be done where no program fits, of each task that has any."""
    return [
        {
            "task": task.name,
            **_meaning_facts(found),
            "doubts": [{"example": d.example + 1, "program": d.program.one_line} for d in found.doubts],
            **_hint_facts(found),
        }
        for task, found in zip(tasks, solutions, strict=True)
        if found.meaning or found.doubts or found.closest or found.larger
    ]


def _hint_facts(found: Solution) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if found.closest:
        missed = [place + 1 for place in found.closest.missed]
        facts["closest"] = {"missed": missed, "program": found.closest.program.one_line}
    if found.larger:
        facts["extended"] = found.larger.one_line
    return facts


def _meaning_facts(found: Solution) -> dict[str, Any]:
    if found.meaning is None:
        return {}
    programs = found.programs + found.meaning.others
    shares = zip(programs, found.meaning.shares, strict=True)
    return {
        "behaviours": [{"program": program.one_line, "share": round(share, 4)} for program, share in shares],
        "unseen": round(found.meaning.unseen, 4),
        "settles": found.meaning.settles,
    }


def read_answer(inputs: tuple[Value, ...], output: object, task: Task, semantics: Semantics) -> Example:
    """The example that an answer makes. Raises InputError if it is no JSON, or not of the type of the task's
    outputs, out of range, or too long."""
    from thesis_cli.synthesis.language.dsl import type_of
    from thesis_cli.synthesis.language.task import Example, plain, read_value

    if isinstance(output, str):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            remedy = "it must be a number or a list, such as 3 or [1, 2]"
            raise InputError(f"the output is {reprlib.repr(output)}", remedy) from None
    value = read_value(plain(output), "the output", semantics)
    if type_of(value) is not task.output:
        raise InputError(f"the output is of type {type_of(value)}", f"it must be {task.output}, as in the examples")
    return Example(inputs, value)


def doubt(found: Solution) -> str:
    """Examples that look mistaken, and a program that fits without them."""
    numbers = [str(doubt.example + 1) for doubt in found.doubts]
    program = found.doubts[0].program
    fits = f"`{program.one_line}` fits without"
    if len(numbers) == 1:
        return f"example {numbers[0]} looks mistaken: {fits} it"
    head = f"examples {', '.join(numbers[:-1])} and {numbers[-1]}"
    if len(numbers) == 2:
        return f"{head} cannot both hold: {fits} {numbers[0]}"
    return f"one of {head} looks mistaken: {fits} {numbers[0]}"


def closest(found: Solution, examples: int) -> str:
    """The program that fits the most examples, and those that it does not fit."""
    assert found.closest
    missed = [str(place + 1) for place in found.closest.missed]
    fits = f"fits {examples - len(missed)} of {examples} examples: `{found.closest.program.one_line}`"
    return f"{fits}; not examples {', '.join(missed[:-1])} and {missed[-1]}"


def bad_lines(task: BadTask) -> list[tuple[str, str]]:
    """Everything about a task that was skipped."""
    return [("task", task.name), ("answer", _skipped(task))]


def _skipped(task: BadTask) -> str:
    return f"skipped: {task.reason}"


def _listing(found: Solution, limits: Limits) -> str:
    """Number of listed programs, whether there may be more, and the probes that compare them."""
    from thesis_cli.synthesis.language.program import PROBES

    count = len(found.programs)
    if count == limits.count:
        reached = "as many as requested"
    elif found.exhausted < (len(found.programs[0]) if limits.shortest else limits.max_length):
        reached = "there may be more"
    else:
        length = len(found.programs[0]) if limits.shortest else limits.max_length
        reached = f"all of {'at most ' * (not limits.shortest)}{counted(length, 'line')}"
    further = sum(found.same)
    same = f"; {counted(further, 'further program')} did the same" * bool(further)
    return f"{counted(count, 'program')}, {reached}, compared on {PROBES} random inputs{same}"


def summary(solutions: Sequence[Solution], skipped: int = 0) -> dict[str, Any]:
    """Totals over many tasks; seconds are those of a search, successful or not."""
    import numpy as np

    seconds = [found.seconds for found in solutions]
    middle, most, nearly_all = np.quantile(seconds, [0.5, 0.9, 0.99]).tolist()
    without = [found for found in solutions if not found.programs]
    return {
        "tasks": len(solutions) + skipped,
        "skipped": skipped,
        "solved": len(solutions) - len(without),
        "proven": sum(found.proven for found in solutions),
        "refuted": sum(bool(found.refuted) for found in solutions),
        "lengths": dict(sorted(Counter(len(found.programs[0]) for found in solutions if found.programs).items())),
        "no_program": sum(not found.stopped for found in without),
        "stopped": dict(Counter(found.stopped for found in without if found.stopped)),
        "solvers": dict(Counter(found.solver for found in solutions).most_common()),
        "nodes": sum(found.nodes for found in solutions),
        "seconds": {"median": middle, "q90": most, "q99": nearly_all, "longest": max(seconds), "sum": sum(seconds)},
        "median_found_after": _median([found.found_after for found in solutions if found.programs]),
        "median_proven_after": _median([found.seconds for found in solutions if found.proven]),
    }


def _median(seconds: Sequence[float | None]) -> float | None:
    """Median of those that are known; None if there are none."""
    known = [second for second in seconds if second is not None]
    return median(known) if known else None


def summary_lines(totals: Mapping[str, Any], limits: Limits) -> list[tuple[str, str]]:
    """`summary` in a few lines."""
    lengths = ", ".join(f"{count:,} of length {length}" for length, count in totals["lengths"].items())
    stopped = "".join(f", {count:,} stopped by {reason}" for reason, count in totals["stopped"].items())
    searched = totals["no_program"] - totals["refuted"]
    refuted = f", {totals['refuted']:,} of no length" * bool(totals["refuted"])
    skipped = counted(totals["skipped"], "bad task")
    seconds = totals["seconds"]
    times = ", ".join(
        f"{name} {seconds[key]:.3g} s"
        for name, key in (("median", "median"), ("90%", "q90"), ("99%", "q99"), ("longest", "longest"))
    )
    medians = [
        f"{name} after a median of {totals[key]:.3g} s"
        for name, key in (("found", "median_found_after"), ("proven", "median_proven_after"))
        if totals[key] is not None
    ]
    return [
        ("tasks", f"{totals['tasks']:,}"),
        *([("skipped", f"{skipped}; the table has the reasons")] if totals["skipped"] else []),
        ("solved", f"{totals['solved']:,}, of which {totals['proven']:,} proven shortest"),
        *([("lengths", lengths)] if lengths else []),
        ("not solved", f"{searched:,} searched to length {limits.max_length}{refuted}{stopped}"),
        ("solvers", ", ".join(f"{name} {count:,}" for name, count in totals["solvers"].items())),
        ("search", f"{totals['nodes']:,} programs examined in {seconds['sum']:.3g} s"),
        ("per task", times),
        *([("programs", ", ".join(medians))] if medians else []),
    ]


def sentence(found: Solution, limits: Limits) -> str:
    """Lines about the program that a search found, and about its proof."""
    searched = "no length is exhausted"
    if found.exhausted:
        searched = f"all of at most {counted(found.exhausted, 'line')} are exhausted"
    cut = _cut(found, limits)
    if found.refuted:
        return f"no program of any length: {found.refuted}"
    if found.program is None:
        return f"no program of at most {counted(limits.max_length, 'line')} was found; {searched}{cut}"
    length = len(found.program)
    proof = "proven shortest" if found.proven else f"not proven shortest: {searched}"
    matters = not found.proven or found.stopped.startswith("memory")
    meaning = found.meaning
    if meaning is None:
        return f"{counted(length, 'line')}, {proof}{cut * matters}"
    if meaning.shortest < length:
        proof, matters = f"the shortest that fits has {meaning.shortest}", bool(found.stopped)
    others = f"; {counted(meaning.behaviours, 'other behaviour')} fit{'s' * (meaning.behaviours == 1)}"
    share = f"{_share(meaning.shares[0])} of the probability{others * bool(meaning.behaviours)}"
    return f"{counted(length, 'line')}, {proof}, {share}{cut * matters}"


def _share(share: float) -> str:
    """A probability with two digits, never rounded up to 1."""
    return f"{share:.2f}" if share < 0.995 else "over 0.99"


def _cut(found: Solution, limits: Limits) -> str:
    if not found.stopped.startswith("memory"):
        return f"; stopped by {found.stopped}" * bool(found.stopped)
    reached = f"; --memory {limits.memory:g} GiB was reached"
    over = ", and depth-first search took over" * (found.solver != "smt")
    return reached + over + ", then stopped by timeout" * (found.stopped != "memory")


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
