"""Solutions of synthesis tasks as rows of a table, as a sentence, and as a summary of many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thesis_cli.base.wording import counted
from thesis_cli.synthesis.solvers import label

if TYPE_CHECKING:
    from thesis_cli.synthesis.program import Program
    from thesis_cli.synthesis.solver import Limits, Order, Solution
    from thesis_cli.synthesis.task import Task


def log_prior(program: Program, order: Order) -> float:
    """Logarithm of the product of the probabilities of a program's attributes."""
    chosen = [order.probabilities[a] for a in sorted(program.attributes)]
    return math.fsum(map(math.log, chosen)) if all(chosen) else -math.inf


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
            "solver": found.solver,
            "nodes": found.nodes,
            "exhausted": found.exhausted,
            "stopped": found.stopped,
            "seconds": round(found.seconds, 4),
            "answer": answer if rank == 1 else None,
        }
        for rank, program in enumerate(found.programs or (None,), 1)
    ]


def task_lines(task: Task, found: Solution, limits: Limits) -> list[tuple[str, str]]:
    """Everything about one task."""
    from thesis_cli.synthesis.program import signature

    examples = counted(len(task.examples), "example")
    lines = [("task", f"{task.name}: {examples}, {signature(task.inputs)} -> {task.output}")]
    for program in found.programs:
        head = "program"
        for row in str(program).splitlines():
            lines.append((head, row))
            head = ""
    lines.append(("answer", sentence(found, limits)))
    if limits.count > 1:
        reached = "as many as requested" if len(found.programs) == limits.count else "no more were found"
        lines.append(("found", f"{counted(len(found.programs), 'program')}, {reached}"))
    examined = f"{counted(found.nodes, 'program')} examined, {found.seconds:.3g} s"
    lines.append(("search", f"{label(found.solver)}, {examined}"))
    return lines


def summary(solutions: Sequence[Solution]) -> dict[str, Any]:
    """Totals over many tasks; seconds are those of a search, successful or not."""
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


def summary_lines(totals: Mapping[str, Any], limits: Limits) -> list[tuple[str, str]]:
    """`summary` in a few lines."""
    lengths = ", ".join(f"{count:,} of length {length}" for length, count in totals["lengths"].items())
    stopped = "".join(f", {count:,} stopped by {reason}" for reason, count in totals["stopped"].items())
    seconds = totals["seconds"]
    times = ", ".join(
        f"{name} {seconds[key]:.3g} s"
        for name, key in (("median", "median"), ("90%", "q90"), ("99%", "q99"), ("longest", "longest"))
    )
    return [
        ("tasks", f"{totals['tasks']:,}"),
        ("solved", f"{totals['solved']:,}, of which {totals['proven']:,} proven shortest"),
        *([("lengths", lengths)] if lengths else []),
        ("not solved", f"{totals['no_program']:,} searched to length {limits.max_length}{stopped}"),
        ("solvers", ", ".join(f"{name} {count:,}" for name, count in totals["solvers"].items())),
        ("search", f"{totals['nodes']:,} programs examined in {seconds['sum']:.3g} s"),
        ("per task", times),
    ]


def sentence(found: Solution, limits: Limits) -> str:
    """What a search found and what it proves."""
    if found.refuted:
        return f"no program of any length: {found.refuted}"
    searched = "no length is exhausted"
    if found.exhausted:
        searched = f"all of at most {counted(found.exhausted, 'line')} are exhausted"
    cut = _cut(found, limits)
    if found.program is None:
        return f"no program of at most {counted(limits.max_length, 'line')} was found; {searched}{cut}"
    length = len(found.program)
    proof = "proven shortest" if found.proven else f"not proven shortest: {searched}"
    matters = not found.proven or found.stopped.startswith("memory")
    return f"{counted(length, 'line')}, {proof}{cut * matters}"


def _cut(found: Solution, limits: Limits) -> str:
    if not found.stopped.startswith("memory"):
        return f"; stopped by {found.stopped}" * bool(found.stopped)
    reached = f"; --memory {limits.memory:g} GiB was reached"
    over = ", and depth-first search took over" * (found.solver != "smt")
    return reached + over + ", then stopped by timeout" * (found.stopped != "memory")
