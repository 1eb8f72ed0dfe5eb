"""The most probable of the programs that fit, with its share; inputs whose outputs would settle the rest; and
examples that look mistaken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import EXTENDED, Semantics
from thesis_cli.synthesis.language.equivalence import natural
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.meant.asking import questions
from thesis_cli.synthesis.meant.classes import Collection, collect
from thesis_cli.synthesis.meant.posterior import posterior
from thesis_cli.synthesis.search.depth_first import DepthFirst
from thesis_cli.synthesis.search.solver import Closest, Doubt, Limits, Meaning, Order, Solution

NAMED, ASKED = 10, 3
"""Other behaviours of which a program is kept, and inputs that would settle which one was meant."""


def meant(found: Solution, task: Task, order: Order, limits: Limits, semantics: Semantics) -> Solution:
    """The solution that is `weighed` after all that fits was collected.

    Parameters
    ----------
    found : what a search found; its programs are among those that are compared.
    task, order, limits, semantics : arguments of the search.
    """
    return weighed(found, collect(task, order, limits, semantics, found), semantics)


def weighed(found: Solution, collection: Collection, semantics: Semantics) -> Solution:
    """A solution whose program is that of the most probable behaviour, with its `Meaning`; as it is if
    no program fits."""
    task = collection.task
    if not collection.behaviours:
        return found
    ranked = posterior(collection)
    programs = tuple(natural(behaviour.program(task)) for behaviour in ranked.behaviours[: 1 + NAMED])
    assert all(check(program, task, semantics) for program in programs)
    meaning = Meaning(
        shares=tuple(map(float, ranked.shares[: len(programs)])),
        others=programs[1:],
        unseen=ranked.unseen,
        behaviours=len(ranked.behaviours) - 1,
        shortest=min(int(behaviour.rank[0]) for behaviour in ranked.behaviours),
        settles=tuple(questions(collection, ranked, semantics, ASKED)),
    )
    nodes, seconds = found.nodes + collection.nodes, found.seconds + collection.seconds
    return replace(found, programs=programs[:1], nodes=nodes, seconds=seconds, meaning=meaning)


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


SUBSETS = 32
"""Sets of examples of one size that are left out."""


def with_hints(found: Solution, task: Task, order: Order, limits: Limits, semantics: Semantics) -> Solution:
    """A solution without a program, with the one that fits the most examples, unless doubts have one,
    and one of the larger language."""
    if found.programs or found.stopped == "interrupted":
        return found
    brief = replace(limits, max_length=min(LONGEST, limits.max_length), nodes=WORK, count=1)
    closest = None if found.doubts else _closest(task, order, replace(brief, nodes=WORK // SUBSETS), semantics)
    larger = None
    if semantics.language is not EXTENDED:
        wide = replace(semantics, dsl=EXTENDED.name)
        larger = DepthFirst().solve(task, prior.load(EXTENDED), brief, wide).program
    return replace(found, closest=closest, larger=larger)


def _closest(task: Task, order: Order, limits: Limits, semantics: Semantics) -> Closest | None:
    """A program that fits all but two examples, or all but three and so on, and so most of them."""
    count = len(task.examples)
    for size in range(2, (count + 1) // 2):
        for missed in islice(combinations(range(count), size), SUBSETS):
            rest = tuple(example for place, example in enumerate(task.examples) if place not in missed)
            found = DepthFirst().solve(replace(task, examples=rest), order, limits, semantics)
            if found.program:
                return Closest(missed, found.program)
    return None


def _doubts(task: Task, order: Order, limits: Limits, semantics: Semantics) -> Iterator[Doubt]:
    for number in range(len(task.examples)):
        rest = task.examples[:number] + task.examples[number + 1 :]
        found = DepthFirst().solve(replace(task, examples=rest), order, limits, semantics)
        if found.program:
            yield Doubt(number, found.program)
