"""How often the answer of `synthesize` is the program that made the examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from thesis_cli.base.arrays import Floats
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.join.join import prepare
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.program import Program, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.meant.classes import OWN, Runner, collect, lines_of
from thesis_cli.synthesis.meant.fitting import known_examples, told
from thesis_cli.synthesis.meant.meaning import weighed
from thesis_cli.synthesis.search.solver import Limits, Solution
from thesis_cli.synthesis.training.corpora import held_out

COLUMNS = (
    *(
        "length",
        "kind",
        "program",
        "examples",
        "fits",
        "shortest",
        "meant",
        "share",
        "unseen",
        "collected",
        "behaviours",
    ),
    *("questions", "after two"),
)
MOST_QUESTIONS = 2
LIMITS = Limits(max_length=6, nodes=10**8)
"""Limits of the search before programs are weighed; its work is counted, not timed."""


def answers(
    seed: np.random.SeedSequence, length: int, kind: str, first: int, programs: int, examples: Sequence[int], asked: int
) -> pd.DataFrame:
    """Answers for held-out programs: rows by program and number of examples.

    `fits` is 1 if there is an answer; `shortest` and `meant` if that of the search, and the most probable one,
    give the outputs of the program on all fresh inputs (`kinds.FRESH`); `share` is the probability of the
    latter, 0 without an answer, `unseen` that of all that was not weighed, and `collected` 1 if the program's
    behaviour on inputs of the task's kind was.
    With `asked` examples a user who knows the program answers `questions`, up to `MOST_QUESTIONS`; `after two`
    is 1 if the answer is right then.

    Parameters
    ----------
    length, kind : of the programs, and of their inputs (`kinds.KINDS`).
    first, programs : place of the first held-out program, and their number; they are taken again, with other
        inputs, if there are too few.
    examples : numbers of examples.
    """
    prepare()
    corpus = held_out(length)
    rows = []
    for number in range(first, first + programs):
        program = corpus.program(number % len(corpus))
        rng = np.random.default_rng([*seed.generate_state(4), number])
        known = known_examples(program, kind, max(examples), rng)
        if known is None:  # it leaves the range on nearly all such inputs
            continue
        shown, fresh = known[: max(examples)], known[max(examples) :]
        for count in examples:
            task = Task("known", tuple(shown[:count]))
            what = {"length": length, "kind": kind, "program": number, "examples": count}
            solved = _solved(task, program)
            row = {**what, **_answer(solved, fresh)}
            rows.append({**row, **(_asked(solved, task, program, fresh) if count == asked else {})})
    return pd.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True)
class _Solved:
    """The solution of the search, the one that is weighed, and whether the right behaviour was collected."""

    shortest: Solution
    weighed: Solution
    collected: bool


def _solved(task: Task, program: Program) -> _Solved:
    order = prior.load()
    shortest = Auto().solve(task, order, LIMITS)
    collection = collect(task, order, LIMITS, DEFAULT, shortest)
    right = Runner(collection.inputs[:OWN], DEFAULT).codes(lines_of(program)[None])[0]
    collected = any((behaviour.codes[:OWN] == right).all() for behaviour in collection.behaviours.values())
    return _Solved(shortest, weighed(shortest, collection, DEFAULT), collected)


def _answer(solved: _Solved, fresh: Sequence[Example]) -> dict[str, object]:
    meaning = solved.weighed.meaning
    return {
        "fits": int(bool(solved.weighed.programs)),
        "shortest": _agrees(solved.shortest, fresh),
        "meant": _agrees(solved.weighed, fresh),
        "share": round(meaning.shares[0], 12) if meaning else 0.0,
        "unseen": round(meaning.unseen, 12) if meaning else 1.0,
        "collected": int(solved.collected),
        "behaviours": 1 + meaning.behaviours if meaning else 0,
    }


def _agrees(found: Solution, fresh: Sequence[Example]) -> int:
    """Whether the program of a solution gives all outputs."""
    program = found.program
    return int(program is not None and all(run(program, example.inputs) == example.output for example in fresh))


def _asked(solved: _Solved, task: Task, program: Program, fresh: Sequence[Example]) -> dict[str, int]:
    """A user who knows the program answers the first question for which it has a value, until there is none."""
    questions = 0
    while True:
        meaning = solved.weighed.meaning
        answer = told(program, meaning.settles if meaning else ())
        if answer is None or questions == MOST_QUESTIONS:
            return {"questions": questions, "after two": _agrees(solved.weighed, fresh)}
        questions += 1
        task = task.with_answer(answer, solved.weighed.programs[0])
        solved = _solved(task, program)


def calibration(shares: Floats, right: Floats, bins: int = 10) -> Floats:
    """Mean share, share that is right, and number of answers, by intervals of the share, shape (B, 3), B up
    to `bins`; intervals without answers are left out."""
    place = np.minimum((shares * bins).astype(np.int64), bins - 1)
    rows = [(shares[place == k].mean(), right[place == k].mean(), (place == k).sum()) for k in np.unique(place)]
    return np.array(rows)
