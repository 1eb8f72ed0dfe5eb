"""The most probable of the programs that fit, with its share, and what would settle the rest."""

from __future__ import annotations

from dataclasses import replace

from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.equivalence import natural
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.meant.classes import Collection
from thesis_cli.synthesis.meant.collecting import collect
from thesis_cli.synthesis.meant.posterior import posterior
from thesis_cli.synthesis.meant.questions import questions
from thesis_cli.synthesis.search.solver import Limits, Meaning, Order, Solution

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
        settles=tuple(questions(task, ranked, semantics, ASKED)),
    )
    nodes, seconds = found.nodes + collection.nodes, found.seconds + collection.seconds
    return replace(found, programs=programs[:1], nodes=nodes, seconds=seconds, meaning=meaning)
