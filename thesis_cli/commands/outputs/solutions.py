"""Solutions of synthesis tasks as rows of a table, as a sentence, and as a summary of many."""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, counted
from thesis_cli.synthesis.solvers import label

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Semantics, Value
    from thesis_cli.synthesis.language.program import Program
    from thesis_cli.synthesis.language.task import BadTask, Example, Task
    from thesis_cli.synthesis.search.solver import Limits, Order, Solution


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
    lines += [("settles it" if k == 0 else "", _shown(row)) for k, row in enumerate(_settles(found))]
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


def _settles(found: Solution) -> Sequence[Sequence[Value]]:
    return found.meaning.settles if found.meaning else ()


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
