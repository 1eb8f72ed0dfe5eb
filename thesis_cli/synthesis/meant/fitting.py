"""Learns the weights of the posterior: `python -m thesis_cli.synthesis.meant.fitting`, some 4 minutes.

Random programs of 1 to 6 lines, none of which does what a held-out one does, get 1 to 10 examples, with
inputs of each of the `KINDS`, on which experiments measure the answers as well. The programs that fit are
collected as for a user, in the order of the prior, and the weights maximise the probability of the behaviour
of the program on inputs of the task's own kind (conditional logit, with a ridge). Then the questions to which
the answer gives the right output tell, all other weights being as they are, how much less is left to what was
not collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.pool import Killed, answers
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, Type, Value
from thesis_cli.synthesis.language.program import Program, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.meant.classes import OWN, Collection, Inputs, Runner, collect, lines_of
from thesis_cli.synthesis.meant.meaning import COLUMNS, CONFIRMED, TABLE, alike, features, weighed
from thesis_cli.synthesis.search.solver import Limits
from thesis_cli.synthesis.training.corpora import held_out

KINDS = {"varied": (1, 20, None), "small": (3, 6, (0, 9)), "signed": (4, 8, (-20, 20)), "large": (5, 12, (1, 99))}
"""Shortest and longest list, and range of the numbers; without one, each input has a magnitude of its own,
from 2 to 256, and a quarter has no negative number, as in a corpus (`corpus_maker`)."""

FRESH = 64
"""Further inputs on which an answer is compared with the program."""

DRAWN, CALM = 600, 0.5
"""Inputs that are drawn, and the part of them from which on magnitudes shrink, for programs that leave
the range of numbers on most inputs."""


def draw_inputs(types: Sequence[Type], kind: str, rng: np.random.Generator, reach: float = 1.0) -> Inputs:
    """Inputs of a kind, whose numbers reach a part of its range."""
    shortest, longest, bounds = KINDS[kind]
    if bounds is None:
        most = 2 << int(max(rng.integers(8, size=2)))
        bounds = (0 if rng.integers(4) == 0 else -most, min(most, DEFAULT.high))
    low, high = (int(np.ceil(reach * bound)) for bound in bounds)
    length = int(rng.integers(shortest, longest + 1))

    def value(type: Type) -> Value:
        if type is INT:
            return int(rng.integers(0, length + 1)) if rng.integers(4) else int(rng.integers(low, high + 1))
        n = length if rng.integers(2) else int(rng.integers(shortest, longest + 1))
        return tuple(map(int, rng.integers(low, high + 1, n)))

    return tuple(map(value, types))


def known_examples(program: Program, kind: str, count: int, rng: np.random.Generator) -> list[Example] | None:
    """Examples of a program, `count` to show and `FRESH` to compare; None if it has too few.

    The inputs are drawn until the program has a value. Those shown have different outputs as long
    as there are any.
    """
    calm = [1.0 if k < CALM * DRAWN else 2.0 ** (-8 * (k / DRAWN - CALM)) for k in range(DRAWN)]
    drawn = list(dict.fromkeys(draw_inputs(program.inputs, kind, rng, reach) for reach in calm))
    codes = Runner(drawn, DEFAULT, wide=False).codes(lines_of(program)[None])[0]
    places = [place for place, code in enumerate(codes.tolist()) if code]
    firsts = list({int(codes[place]): place for place in reversed(places)}.values())
    shown = sorted(firsts)[:count]
    shown += [place for place in places if place not in shown][: count - len(shown)]
    fresh = [place for place in places if place not in shown][:FRESH]
    if len(fresh) < FRESH or (len(firsts) == 1 and count > 1):
        return None
    found = []
    for place in [*shown, *fresh]:
        output = run(program, drawn[place])
        assert output is not None
        found.append(Example(drawn[place], output))
    same = any(all(example.inputs[i] == example.output for example in found) for i in range(len(program.inputs)))
    return None if same else found


def told(program: Program, questions: Iterable[Inputs]) -> Example | None:
    """The answer of a user who means a program to the first question for which it has a value."""
    outputs = ((inputs, run(program, inputs)) for inputs in questions)
    return next((Example(inputs, output) for inputs, output in outputs if output is not None), None)


LENGTHS, EXAMPLES = (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 10)
TASKS, ASKED, SEED = 80, 48, 0
"""Tasks of each length, and those of them with questions, which the present weights choose."""

LIMITS = Limits(max_length=max(LENGTHS), nodes=10**7)
"""Limits of the search before the collection."""

RIDGE, STEPS = 0.01, 40
"""A stronger ridge would draw the weights of lengths together, and make all probabilities too low."""

MOST = 400
"""Wrong behaviours of a task that are compared with the right one: the first ones by rank."""


def programs(length: int, count: int, seed: int) -> list[Program]:
    """Random programs to learn from, apart from held-out ones; fewer if there are fewer."""
    plan = CorpusPlan(length, count, shorter=length <= 2)
    corpus = make_corpus(plan, np.random.default_rng([seed, length]), held_out())
    return corpus.subset(corpus.lengths == length).programs()[:count]


def training_rows(tasks: int = TASKS, seed: int = SEED, jobs: int = 1) -> list[list[tuple[Floats, int]]]:
    """Features of the behaviours of each task and the place of the right one, before questions and after each."""
    given = [
        (known[number % len(known)], number, np.random.default_rng([seed, length, number]))
        for length in LENGTHS
        for known in [programs(length, tasks, seed)]
        for number in range(tasks)
    ]
    found = dict(answers(_rows, lambda places: (given[place] for place in places), range(len(given)), jobs))
    rows = [found[place] for place in range(len(given))]
    return [several for several in rows if several and not isinstance(several, Killed)]


def _rows(given: tuple[Program, int, np.random.Generator]) -> list[tuple[Floats, int]]:
    """Those of one program, with examples by its number; none if it has too few."""
    program, number, rng = given
    kind, count = list(KINDS)[number % len(KINDS)], EXAMPLES[(number // len(KINDS)) % len(EXAMPLES)]
    examples = known_examples(program, kind, count, rng)
    if examples is None:
        return []
    task = Task("known", tuple(examples[:count]))
    found: list[tuple[Floats, int]] = []
    while True:
        known = Auto().solve(task, prior.load(), LIMITS)
        collection = collect(task, prior.load(), LIMITS, DEFAULT, known, led=False)
        found.append(_row(program, collection))
        answer = weighed(known, collection, DEFAULT)
        example = told(program, answer.meaning.settles if answer.meaning else ())
        if example is None or number >= ASKED or len(found) > CONFIRMED:
            return found
        task = task.with_answer(example, answer.programs[0])


def _row(program: Program, collection: Collection) -> tuple[Floats, int]:
    """Features of the behaviours of a collection, and the place of that of a program."""
    wanted = Runner(collection.inputs[:OWN], DEFAULT).codes(lines_of(program)[None])[0]
    behaviours = sorted(alike(collection), key=lambda behaviour: behaviour.rank)
    right = [bool((behaviour.codes[:OWN] == wanted).all()) for behaviour in behaviours]
    first = [behaviour for behaviour, is_right in zip(behaviours, right, strict=True) if is_right]
    others = [behaviour for behaviour, is_right in zip(behaviours, right, strict=True) if not is_right]
    table = features(collection, [*first, *others[:MOST]])
    return table, 0 if first else len(table) - 1


def fit(rows: list[tuple[Floats, int]], ridge: float = RIDGE, known: Floats | None = None) -> Floats:
    """Weights that maximise the log-likelihood less ridge |w|^2 / 2, by Newton's method, shape (F,); of `known` ones,
    those of confirmed answers alone change."""
    found = np.zeros(len(COLUMNS)) if known is None else known.copy()
    free = slice(0 if known is None else -CONFIRMED, None)
    for _ in range(STEPS):
        gradient, curvature = -ridge * found, ridge * np.eye(len(found))
        for table, right in rows:
            scores = table @ found
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            mean = chances @ table
            gradient += table[right] - mean
            curvature += (table * chances[:, None]).T @ table - np.outer(mean, mean)
        step = np.linalg.solve(curvature[free, free], gradient[free])
        found[free] += step * min(1.0, 3.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    return found


def main() -> None:
    """Write the table of weights."""
    from importlib.resources import as_file

    rows = training_rows(jobs=jobs_or_all(None))
    asked = [row for several in rows for row in several[1:] if row[0][-1, -CONFIRMED:].any()]
    found = fit(asked, known=fit([several[0] for several in rows]))
    lines = [f'"{name}",{weight:.4f}' for name, weight in zip(COLUMNS, found, strict=True)]
    with as_file(TABLE) as path:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
