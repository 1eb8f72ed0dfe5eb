"""What `thesis-cli synthesize` tells of its solutions: a sentence and rows for each, a summary of many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import typer

from thesis_cli.cli import output
from thesis_cli.synthesis.program import Program, signature
from thesis_cli.synthesis.solver import Limits, Order, Solution
from thesis_cli.synthesis.task import Task

LABELS = {"smt": "SMT (z3), in the place of Sketch", "deductive": "deductive, in the place of lambda^2"}
"""What else a solver is called."""

LISTED = 10
"""Tasks of which each is listed; of more, a summary is."""


def log_prior(program: Program, order: Order) -> float:
    """Logarithm of the product of the probabilities of a program's attributes."""
    chosen = [order.probabilities[a] for a in sorted(program.attributes)]
    return math.fsum(map(math.log, chosen)) if all(chosen) else -math.inf


def rows(task: Task, found: Solution, order: Order, limits: Limits) -> list[dict[str, Any]]:
    """Rows of the table: one for each program, or one that has none."""
    answer = _answer(found, limits)
    return [
        {
            "task": task.name,
            "rank": rank if program else None,
            "length": len(program) if program else None,
            "program": program.one_line if program else None,
            "proven": found.proven and program is not None and len(program) == len(found.programs[0]),
            "log_prior": round(log_prior(program, order), 6) if program else None,
            "programs": len(found.programs),
            "solver": found.solver,
            "nodes": found.nodes,
            "exhausted": found.exhausted,
            "stopped": found.stopped,
            "seconds": round(found.seconds, 4),
            "answer": answer if rank == 1 else None,
        }
        for rank, program in enumerate(found.programs or (None,), 1)
    ]


def print_task(task: Task, found: Solution, limits: Limits) -> None:
    """All about one task."""
    examples = _count(len(task.examples), "example")
    lines = [("task", f"{task.name}: {examples}, {signature(task.inputs)} -> {task.output}")]
    for program in found.programs:
        head = "program"
        for row in str(program).splitlines():
            lines.append((head, row))
            head = ""
    lines.append(("answer", _answer(found, limits)))
    if limits.count > 1:
        reached = "as many as were asked for" if len(found.programs) == limits.count else "no more were found"
        lines.append(("found", f"{_count(len(found.programs), 'program')}, {reached}"))
    examined = f"{_count(found.nodes, 'program')} examined, {found.seconds:.3g} s"
    lines.append(("search", f"{LABELS.get(found.solver, found.solver)}, {examined}"))
    output.print_table(lines)


def summary(solutions: Sequence[Solution]) -> dict[str, Any]:
    """What many solutions come to; seconds are those of a search, found or not."""
    import numpy as np

    seconds = [found.seconds for found in solutions]
    median, most, nearly_all = np.quantile(seconds, [0.5, 0.9, 0.99]).tolist()
    without = [found for found in solutions if not found.programs]
    return {
        "tasks": len(solutions),
        "solved": len(solutions) - len(without),
        "proven": sum(found.proven for found in solutions),
        "lengths": dict(sorted(Counter(len(found.programs[0]) for found in solutions if found.programs).items())),
        "no_program": sum(not found.stopped for found in without),
        "stopped": dict(Counter(found.stopped for found in without if found.stopped)),
        "solvers": dict(Counter(found.solver for found in solutions).most_common()),
        "nodes": sum(found.nodes for found in solutions),
        "seconds": {"median": median, "q90": most, "q99": nearly_all, "longest": max(seconds), "sum": sum(seconds)},
    }


def print_summary(told: dict[str, Any], limits: Limits) -> None:
    """`summary`, in a few lines."""
    lengths = ", ".join(f"{count:,} of length {length}" for length, count in told["lengths"].items())
    stopped = "".join(f", {count:,} stopped by {reason}" for reason, count in told["stopped"].items())
    seconds = told["seconds"]
    times = ", ".join(
        f"{name} {seconds[key]:.3g} s"
        for name, key in (("median", "median"), ("90%", "q90"), ("99%", "q99"), ("longest", "longest"))
    )
    output.print_table(
        [
            ("tasks", f"{told['tasks']:,}"),
            ("solved", f"{told['solved']:,}, of which {told['proven']:,} proven shortest"),
            *([("lengths", lengths)] if lengths else []),
            ("not solved", f"{told['no_program']:,} searched to length {limits.max_length}{stopped}"),
            ("solvers", ", ".join(f"{name} {count:,}" for name, count in told["solvers"].items())),
            ("search", f"{told['nodes']:,} programs examined in {seconds['sum']:.3g} s"),
            ("a task", times),
        ]
    )


def print_found(tasks: Sequence[Task], solutions: Sequence[Solution], limits: Limits) -> None:
    """Each of a few tasks, or the summary of many."""
    if len(tasks) > LISTED:
        print_summary(summary(solutions), limits)
        return
    for number, (task, found) in enumerate(zip(tasks, solutions, strict=True)):
        if number:
            typer.echo()
        print_task(task, found, limits)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _answer(found: Solution, limits: Limits) -> str:
    searched = "no length is exhausted"
    if found.exhausted:
        searched = f"all of at most {_count(found.exhausted, 'line')} are exhausted"
    cut = _cut(found, limits)
    if found.program is None:
        return f"no program of at most {_count(limits.max_length, 'line')} was found; {searched}{cut}"
    length = len(found.program)
    proof = "proven shortest" if found.proven else f"not proven shortest: {searched}"
    told = not found.proven or found.stopped.startswith("memory")
    return f"{_count(length, 'line')}, {proof}{cut * told}"


def _cut(found: Solution, limits: Limits) -> str:
    if not found.stopped.startswith("memory"):
        return f"; stopped by {found.stopped}" * bool(found.stopped)
    reached = f"; --memory {limits.memory:g} GiB was reached"
    over = ", and depth-first search took over" * (found.solver != "smt")
    return reached + over + ", then stopped by timeout" * (found.stopped != "memory")
