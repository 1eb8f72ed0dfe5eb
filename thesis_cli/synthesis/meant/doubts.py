"""Examples that look mistaken: without one of them, a short program fits all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.depth_first import DepthFirst
from thesis_cli.synthesis.search.solver import Doubt, Limits, Order, Solution

LEAST = 3
"""Examples that must remain."""

SHORTER, LONGEST = 2, 4
"""Lines that the program without an example has fewer than that with it, at least, and lines that it
has at most."""

WORK = 10**7
"""Programs that are examined for each example, some 0.15 s."""


def with_doubts(found: Solution, task: Task, order: Order, limits: Limits, semantics: Semantics) -> Solution:
    """A solution with the examples that look mistaken, those with the shortest program alone.

    If no program fits, they may also be the examples that cannot hold together. Nothing is doubted if
    fewer than `LEAST` examples would remain and a program fits, or if there is one example.
    """
    least = LEAST if found.programs else 1
    longest = min(len(found.programs[0]) - SHORTER if found.programs else LONGEST, limits.max_length)
    if len(task.examples) <= least or longest < 1 or found.stopped == "interrupted":
        return found
    doubts = list(_doubts(task, order, replace(limits, max_length=longest, nodes=WORK, count=1), semantics))
    shortest = min((len(doubt.program) for doubt in doubts), default=0)
    return replace(found, doubts=tuple(doubt for doubt in doubts if len(doubt.program) == shortest))


def _doubts(task: Task, order: Order, limits: Limits, semantics: Semantics) -> Iterator[Doubt]:
    for number in range(len(task.examples)):
        rest = task.examples[:number] + task.examples[number + 1 :]
        found = DepthFirst().solve(replace(task, examples=rest), order, limits, semantics)
        if found.program:
            yield Doubt(number, found.program)
