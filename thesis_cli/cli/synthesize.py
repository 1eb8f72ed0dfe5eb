"""`thesis-cli synthesize`: the shortest program that fits input-output examples."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thesis_cli.cli import options, output
from thesis_cli.errors import InputError

if TYPE_CHECKING:
    from thesis_cli.synthesis.dsl import Semantics
    from thesis_cli.synthesis.solver import Limits, Solution, Solver
    from thesis_cli.synthesis.task import Task

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli synthesize data/tasks/league.json
  thesis-cli synthesize data/tasks/all.jsonl --timeout 10
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
    memory: Annotated[float, typer.Option(min=0.001, help="GiB that bottom-up or smt may take.")] = 2.0,
    division: Annotated[
        Literal["trunc", "floor"], typer.Option(help="How (/2), (/3) and (/4) round negative numbers.")
    ] = "trunc",
    range: Annotated[
        tuple[int, int], typer.Option(help="Least and largest number that a value may have.", metavar="LO HI")
    ] = (-256, 255),
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Find the shortest program of the DSL of DeepCoder that fits all examples.

    Exit status 1 if a task has no program within the limits.
    """
    options.set_messages(quiet, verbose)

    from thesis_cli.synthesis.dsl import Semantics

    semantics = Semantics(division, *range)
    if run is not None:
        if tasks is not None:
            raise InputError("--run with TASKS", "it takes its inputs as they are given")
        typer.echo(json.dumps(_run(*run, semantics)))
        return
    if tasks is None:
        raise InputError("TASKS is missing", "see thesis-cli synthesize --help")
    out = output.out_file(out, "synthesize", tasks)

    from thesis_cli.synthesis.solver import Limits
    from thesis_cli.synthesis.task import load_tasks

    limits = Limits(max_length, timeout, memory, count)
    loaded = load_tasks(tasks, semantics)
    search = _solver(solver)
    began = time.perf_counter()
    solutions = []
    for task in loaded:
        solutions.append(_solve(search, task, limits, semantics))
        if not as_json:
            if len(solutions) > 1:
                typer.echo()
            _print(task, solutions[-1], limits)
    rows = [_row(task, found) for task, found in zip(loaded, solutions, strict=True)]
    settings = {"tasks": tasks, "solver": solver, **vars(limits), "division": division, "range": list(range)}
    output.write_table(out, rows, settings, time.perf_counter() - began)
    if as_json:
        output.print_json({**settings, "found": rows, "out": str(out)})
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


def _solver(name: str) -> Solver:
    """Compiled, or loaded from the cache."""
    from thesis_cli.synthesis import bottom_up, search

    if name in ("auto", "dfs", "sort-and-add", "bottom-up"):
        options.logger.debug("preparing the search, which is compiled when it is first used")
        search.prepare()
    if name == "bottom-up":
        bottom_up.prepare()
        return bottom_up.BottomUp()
    if name == "deductive":
        from thesis_cli.synthesis.deductive import Deductive

        return Deductive()
    if name == "smt":
        from thesis_cli.synthesis.smt import Smt

        return Smt()
    return search.SortAndAdd() if name == "sort-and-add" else search.DepthFirst()


def _solve(search: Solver, task: Task, limits: Limits, semantics: Semantics) -> Solution:
    from thesis_cli.synthesis.solver import Order

    with output.naming(task.name):
        found = search.solve(task, Order.uniform(), limits, semantics)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    return found


def _print(task: Task, found: Solution, limits: Limits) -> None:
    from thesis_cli.synthesis.program import signature

    lines = [("task", f"{task.name}: {len(task.examples)} examples, {signature(task.inputs)} -> {task.output}")]
    for program in found.programs:
        head = "program"
        for row in str(program).splitlines():
            lines.append((head, row))
            head = ""
    lines.append(("answer", _answer(found, limits)))
    lines.append(("search", f"{found.solver}, {found.nodes:,} programs examined, {found.seconds:.3g} s"))
    output.print_table(lines)


def _answer(found: Solution, limits: Limits) -> str:
    searched = f"all of at most {found.exhausted} lines are exhausted" if found.exhausted else "no length is exhausted"
    cut = f"; stopped by {found.stopped}" * bool(found.stopped)
    if found.program is None:
        return f"no program of at most {limits.max_length} lines was found; {searched}{cut}"
    length = len(found.program)
    proof = "proven shortest" if found.proven else f"not proven shortest: {searched}"
    return f"{length} line{'s' * (length > 1)}, {proof}{cut * (not found.proven)}"


def _row(task: Task, found: Solution) -> dict[str, Any]:
    return {
        "task": task.name,
        "length": len(found.program) if found.program else None,
        "program": found.program.one_line if found.program else None,
        "proven": found.proven,
        "programs": len(found.programs),
        "solver": found.solver,
        "nodes": found.nodes,
        "exhausted": found.exhausted,
        "stopped": found.stopped,
        "seconds": round(found.seconds, 4),
    }
