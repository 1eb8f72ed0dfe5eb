"""`thesis-cli synthesize`: the shortest program that fits input-output examples."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thesis_cli.base.errors import InputError, WorkFailed, describe
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from thesis_cli.cli.synthesize_batch import Journal, Solve
    from thesis_cli.synthesis.dsl import Semantics
    from thesis_cli.synthesis.solver import Limits, Order, Solution, Solver
    from thesis_cli.synthesis.task import Task

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli synthesize data/tasks/league.json
  thesis-cli synthesize data/tasks/all.jsonl --timeout 2 --jobs 2
  thesis-cli synthesize --run "a <- [int]; b <- FILTER (<0) a; c <- SORT b" "[[3, -1, 2, -5]]"
"""


def synthesize(
    tasks: Annotated[
        str | None, typer.Argument(help="Examples: JSON, or JSON Lines with a task a line; - reads standard input.")
    ] = None,
    run: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Run a program on inputs, a JSON list of them, instead of a search.", metavar="PROGRAM INPUTS"
        ),
    ] = None,
    solver: Annotated[
        Literal["auto", "dfs", "sort-and-add", "bottom-up", "deductive", "smt"],
        typer.Option(help="What searches; auto is the fastest that proves its answer shortest."),
    ] = "auto",
    count: Annotated[int, typer.Option("--all", min=1, max=10**4, help="Programs wanted, shortest first.")] = 1,
    max_length: Annotated[int, typer.Option(min=1, max=10, help="Lines of the longest program.")] = 5,
    timeout: Annotated[float | None, typer.Option(help="Seconds for each task.", show_default="none")] = None,
    memory: Annotated[float, typer.Option(min=0.001, help="GiB that bottom-up or smt may take, in each job.")] = 2.0,
    prior: Annotated[
        str,
        typer.Option(help="Of functions and lambdas: corpus, uniform, or a CSV file of attribute,probability."),
    ] = "corpus",
    division: options.Division = "trunc",
    range: options.Range = (-256, 255),
    jobs: options.Jobs = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Find the shortest program of the DSL of DeepCoder that fits all examples.

    A batch of tasks that is cut short goes on where it was when the same command is given again. Exit status 1 if a
    task has no program within the limits.
    """
    options.set_messages(quiet, verbose)

    from thesis_cli.synthesis.dsl import Semantics

    semantics = Semantics(division, *range)
    if run is not None:
        if tasks is not None or out is not None:
            raise InputError("--run with TASKS or --out", "it takes its inputs as they stand and prints what it gives")
        typer.echo(json.dumps(_run(*run, semantics)))
        return
    if tasks is None:
        raise InputError("TASKS is missing", "see thesis-cli synthesize --help")
    if not math.isfinite(memory):
        raise InputError(f"--memory {memory}", "a number of GiB is wanted")
    out = output.out_file(out, "synthesize", tasks, prior)

    from thesis_cli.cli import synthesize_report as report
    from thesis_cli.synthesis.solver import Limits
    from thesis_cli.synthesis.task import load_tasks

    limits = Limits(max_length, timeout, memory, count)
    order = _order(prior)
    loaded = load_tasks(tasks, semantics)
    solve = partial(_solve, _solver(solver), order, limits, semantics)
    settings = {"solver": solver, **vars(limits), "prior": prior, "division": division, "range": list(range)}
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []

    def write(solutions: Sequence[Solution]) -> None:
        for task, found in zip(loaded, solutions, strict=True):
            rows.extend(report.rows(task, found, order, limits))
        output.write_table(out, rows, {"tasks": tasks, **settings}, time.perf_counter() - began)

    if len(loaded) == 1:
        solutions = [solve(loaded[0])]
        write(solutions)
    else:
        from thesis_cli.cli.synthesize_batch import Journal

        key = {**settings, "prior": order.probabilities}
        with Journal(out, loaded, key, semantics) as journal, _telling_what_is_kept(journal):
            solutions = _solve_all(solve, loaded, journal, options.jobs_or_all(jobs), quiet)
            write(solutions)
    if as_json:
        told = {"tasks": tasks, **settings, "summary": report.summary(solutions), "found": rows, "out": str(out)}
        output.print_json(told)
    else:
        report.print_found(loaded, solutions, limits)
    options.logger.info("wrote %s", out)
    if not all(found.programs for found in solutions):
        raise typer.Exit(1)


def _run(text: str, inputs: str, semantics: Semantics) -> object:
    from thesis_cli.synthesis.program import parse, run
    from thesis_cli.synthesis.task import read_inputs

    program = parse(text)
    try:
        content = json.loads(inputs)
    except (ValueError, RecursionError):
        raise InputError(f"the inputs {inputs[:60]!r} are no JSON", "such as [[1, 2, 3]] are wanted") from None
    return run(program, read_inputs(content, "--run", semantics), semantics)


def _order(prior: str) -> Order:
    """Probabilities by name, or from a file of the user's own."""
    from thesis_cli.synthesis.prior import load, read
    from thesis_cli.synthesis.solver import Order

    if prior == "corpus":
        return load()
    return Order.uniform() if prior == "uniform" else read(Path(prior))


def _solver(name: str) -> Solver:
    """A solver, compiled or loaded from the cache."""
    if name == "deductive":
        from thesis_cli.synthesis.deductive import Deductive

        return Deductive()
    if name == "smt":
        from thesis_cli.synthesis.smt import Smt

        return Smt()
    from thesis_cli.synthesis import auto, bottom_up, search

    with options.telling_of_compilation():
        search.prepare()
        if name in ("auto", "bottom-up"):
            bottom_up.prepare()
    solvers: dict[str, Solver] = {
        "auto": auto.Auto(),
        "bottom-up": bottom_up.BottomUp(),
        "sort-and-add": search.SortAndAdd(),
    }
    return solvers.get(name, search.DepthFirst())


def _solve(search: Solver, order: Order, limits: Limits, semantics: Semantics, task: Task) -> Solution:
    """Search, and rank what is found: shorter first, then by prior."""
    from thesis_cli.cli.synthesize_report import log_prior

    with output.naming(task.name):
        found = search.solve(task, order, limits, semantics)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    ranked = sorted(found.programs, key=lambda program: (len(program), -log_prior(program, order)))
    return replace(found, programs=tuple(ranked))


def _solve_all(solve: Solve, tasks: Sequence[Task], journal: Journal, jobs: int, quiet: bool) -> list[Solution]:
    """Solve the tasks that are not kept; gives the solutions of all, in order."""
    from thesis_cli.cli.synthesize_batch import solutions

    missing = {place: task for place, task in enumerate(tasks) if place not in journal.kept}
    if journal.kept:
        options.logger.info("%s of %s tasks are kept from before", f"{len(journal.kept):,}", f"{len(tasks):,}")
    with options.progress(len(missing), "task", quiet) as tick:
        for place, found in solutions(solve, missing, jobs):
            journal.add(place, found)
            tick(1)
    return [journal.kept[place] for place in range(len(tasks))]


@contextmanager
def _telling_what_is_kept(journal: Journal) -> Iterator[None]:
    """Whatever stops a batch says what is not lost."""
    try:
        yield
    except (WorkFailed, OSError, MemoryError) as error:
        raise WorkFailed(f"{describe(error)}; {journal}") from error
    except KeyboardInterrupt:
        options.logger.info("%s", journal)
        raise
