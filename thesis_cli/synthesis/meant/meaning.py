"""The program that was most probably meant: the probability of each behaviour, inputs whose outputs would
settle which it was, and examples that look mistaken.

Probabilities are a softmax of linear scores. The score of a behaviour is that of its best program: lines,
inputs that it ignores, and how many programs of that length do the same. A last score is that of everything
that was not collected. The weights are learnt (`fitting`), so that probabilities are shares of tasks in which
the behaviour is the right one. Which functions a program has, and what its outputs look like on other inputs
(how many have none, how many are alike), predicts no better.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from itertools import combinations, islice, product

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEFAULT, EXTENDED, OPERATIONS, Semantics
from thesis_cli.synthesis.language.program import Program, natural
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.meant.classes import (
    OWN,
    Behaviour,
    Collection,
    Inputs,
    Runner,
    collect,
    inputs_like,
    lines_of,
)
from thesis_cli.synthesis.search.depth_first import DepthFirst
from thesis_cli.synthesis.search.solver import Closest, Doubt, Limits, Meaning, Order, Solution

LONGEST = 7
"""Lengths from which on all programs count as equally long."""

MANY = 5
"""Examples from which on nothing more is concluded from their number."""

CONFIRMED = 2
"""Answers to questions from which on nothing more is concluded from their number."""

COLUMNS = (
    *(f"lines {n}" for n in range(1, LONGEST)),
    f"lines {LONGEST} or more",
    *("log programs", "inputs ignored"),
    *("other", "other, incomplete", "other, nothing found"),
    *(f"other, {n} examples" for n in range(1, MANY)),
    *(f"other, shortest {n}" for n in range(1, LONGEST)),
    *(f"other, {n} confirmed" for n in range(1, CONFIRMED + 1)),
)
"""Features, in the order of the weights."""

_PLACES = {name: place for place, name in enumerate(COLUMNS)}
_OTHER = _PLACES["other"]
TABLE = files("thesis_cli.synthesis.meant") / "weights.csv"


@cache
def weights() -> Floats:
    """The learnt weights, shape (F,), in the order of `COLUMNS`."""
    with as_file(TABLE) as path, open(path, encoding="utf-8", newline="") as file:
        found = {name: float(weight) for name, weight in csv.reader(file)}
    return np.array([found[name] for name in COLUMNS])


@dataclass(frozen=True)
class Posterior:
    """Behaviours on inputs of the task's own kind, by falling probability.

    Attributes
    ----------
    behaviours : the one of each that is `alike`.
    shares : their probabilities, shape (K,).
    unseen : probability that none of them was meant.
    """

    behaviours: list[Behaviour]
    shares: Floats
    unseen: float


def posterior(found: Collection) -> Posterior:
    """Probabilities of all behaviours of a collection."""
    behaviours = alike(found)
    scores = features(found, behaviours) @ weights()
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    ranked = sorted(range(len(behaviours)), key=lambda k: (-chances[k], behaviours[k].rank))
    return Posterior([behaviours[k] for k in ranked], chances[ranked], float(chances[-1]))


def alike(found: Collection) -> list[Behaviour]:
    """One of the behaviours that do the same on inputs of the task's own kind, for each of these: one that
    ignores no input if there is one, then of the fewest lines, then of the most programs."""
    groups: dict[bytes, list[Behaviour]] = {}
    for behaviour in found.behaviours.values():
        groups.setdefault(behaviour.codes[:OWN].tobytes(), []).append(behaviour)
    inputs = len(found.task.inputs)
    return [
        min(group, key=lambda b: (_ignored(b, inputs), len(b.lines), -b.count, b.rank)) for group in groups.values()
    ]


def _ignored(behaviour: Behaviour, inputs: int) -> int:
    """Number of inputs that a program does not take."""
    return inputs - len({v for v in behaviour.lines[:, 1:].ravel().tolist() if v < inputs})


def features(found: Collection, behaviours: list[Behaviour]) -> Floats:
    """Features of each behaviour, then those of all that was not collected, shape (K + 1, F)."""
    rows = np.zeros((len(behaviours) + 1, len(COLUMNS)))
    for row, behaviour in zip(rows, behaviours, strict=False):
        row[min(len(behaviour.lines), LONGEST) - 1] = 1
        row[LONGEST : LONGEST + 2] = np.log(behaviour.count), _ignored(behaviour, len(found.task.inputs))
    other, shortest = rows[-1], min((len(behaviour.lines) for behaviour in behaviours), default=LONGEST)
    other[_OTHER] = 1
    other[_OTHER + 1] = found.complete < shortest
    other[_OTHER + 2] = not behaviours
    if len(found.task.examples) < MANY:
        other[_PLACES[f"other, {len(found.task.examples)} examples"]] = 1
    if shortest < LONGEST:
        other[_PLACES[f"other, shortest {shortest}"]] = 1
    if found.task.confirmed:
        other[_PLACES[f"other, {min(found.task.confirmed, CONFIRMED)} confirmed"]] = 1
    return rows


SETTLED = 0.99
"""Share from which on nothing is asked."""

COMPARED, DRAWN, SHORT = 64, 256, 5
"""Behaviours that are told apart, inputs of which the best are asked about, and length of the lists in two
thirds of them."""

EFFORT = 50
"""Numbers that take as long to read as the question itself: gains are compared by the effort."""

NEARER = 2.0
"""How much more an example that it fits makes a variant count, as a logarithm."""


def questions(collection: Collection, found: Posterior, semantics: Semantics, count: int) -> list[Inputs]:
    """Inputs of the task's own kind whose outputs should tell most, the best first; none repeats an example.

    The gain of an input is the entropy of its output, in nats, by the effort of reading it; an output that the user
    need not know, as it leaves the range, is worth nothing. The most probable behaviour has a value there. What
    was not collected is represented by variants of that behaviour, those that fit most examples above all, and by
    behaviours that only differ on other inputs.
    """
    task = collection.task
    if not found.behaviours or found.shares[0] >= SETTLED:
        return []
    known = {example.inputs for example in task.examples}
    candidates = [row for row in _candidates(task, semantics) if row not in known]
    if not candidates:
        return []
    compared = found.behaviours[:COMPARED]
    kept = set(compared)
    like = sorted((b for b in collection.behaviours.values() if b not in kept), key=lambda b: b.rank)[:COMPARED]
    others = [*(b.lines[None] for b in like), *variants(compared[0].program(task), semantics)]
    runner, shown = (Runner(rows, semantics, wide=False) for rows in (candidates, list(known)))
    codes = np.concatenate([runner.codes(lines) for lines in [*(b.lines[None] for b in compared), *others]])
    fits = np.concatenate([shown.codes(lines) for lines in others]) == shown.codes(compared[0].lines[None])
    near = np.exp(NEARER * (fits.sum(axis=1) - float(len(known))))
    weights = np.concatenate([found.shares[:COMPARED], found.unseen * near / near.sum()])
    gains = np.array([_gain(column, weights) for column in codes.T])
    sizes = np.array([sum(1 if isinstance(x, int) else len(x) for x in row) for row in candidates])
    chosen: dict[tuple[int, ...], int] = {}
    for place in np.argsort(-gains / (EFFORT + sizes), kind="stable").tolist():
        if gains[place] > 0 and len(chosen) < count:
            chosen.setdefault(tuple(np.unique(codes[:, place], return_inverse=True)[1].tolist()), place)
    return [candidates[place] for place in chosen.values()]


def _gain(codes: Words, weights: Floats) -> float:
    """Entropy of the output of an input, where there is one; 0 where the first behaviour has none."""
    if not codes[0]:
        return 0.0
    _, groups = np.unique(codes[codes != 0], return_inverse=True)
    mass = np.bincount(groups, weights=weights[codes != 0])
    mass = mass[mass > 0]
    return max(float(-(mass * np.log(mass / mass.sum())).sum()), 0.0)


def _candidates(task: Task, semantics: Semantics) -> list[Inputs]:
    """Inputs of the task's kind, as many with short lists, with smaller numbers, and at the edges of the kind."""
    rng = np.random.default_rng(1)
    drawn = inputs_like(task, DRAWN, rng, semantics)
    short = [tuple(x if isinstance(x, int) else x[:SHORT] for x in row) for row in drawn]
    small = [_smaller(row, rng) for row in short[DRAWN // 4 :]]
    edges = [_edge(row, task, rng) for row in small[DRAWN // 2 :]]
    found = [*short[: DRAWN // 4], *small[: DRAWN // 2], *edges, *drawn[: DRAWN // 4]]
    return [row for row in dict.fromkeys(found) if all(map(semantics.holds, row))]


def _edge(row: Inputs, task: Task, rng: np.random.Generator) -> Inputs:
    """The same with numbers about 0 and about the length of a list, negative ones if any of the examples is, and with
    lists of other lengths, unless those of each example are as long as each other."""
    shown = [[(x,) if isinstance(x, int) else x for x in example.inputs] for example in task.examples]
    least = min((n for inputs in shown for numbers in inputs for n in numbers), default=0)
    low = max(min(least, 0), -SHORT)
    lists = [[x for x in example.inputs if not isinstance(x, int)] for example in task.examples]
    alike = len(lists) > 1 and all(len(set(map(len, found))) < 2 for found in lists)
    lengths = rng.integers(1, SHORT + 1, len(row))
    return tuple(
        int(rng.integers(low, SHORT + 2)) if isinstance(x, int) else x[: lengths[0 if alike else i]]
        for i, x in enumerate(row)
    )


def _smaller(row: Inputs, rng: np.random.Generator) -> Inputs:
    """The same with the numbers of the lists divided by a power of two, toward zero, and others that count few."""
    most = max((abs(n) for xs in row if not isinstance(xs, int) for n in xs), default=1)
    by = 2 ** int(rng.integers(max(most.bit_length(), 1)))
    return tuple(
        int(rng.integers(-(xs < 0), SHORT + 1)) if isinstance(xs, int) else tuple(int(n / by) for n in xs) for xs in row
    )


def variants(program: Program, semantics: Semantics = DEFAULT) -> list[Ints]:
    """Programs that differ in one line, and those with one line more, of which a line takes the result or which
    is the last one, shape (N, T, 3) each."""
    lines, inputs = lines_of(program).tolist(), len(program.inputs)
    changed, longer = [], []
    for place in range(len(lines) + 1):
        here = inputs + place
        below = [(id, x + (x >= here), y + (y >= here)) for id, x, y in lines[place:]]
        for operation in semantics.language.operations:
            fitting = [
                [v for v, kind in enumerate(program.types[:here]) if kind is taken] for taken in operation.inputs
            ]
            for arguments in product(*fitting):
                line = operation.id, arguments[0], arguments[-1]
                if not below:
                    longer += [[*lines, line]] * (operation.output is program.output)
                    continue
                if operation.output is program.types[here]:
                    changed.append([*lines[:place], line, *lines[place + 1 :]])
                for k, (id, x, y) in enumerate(below):
                    kinds = OPERATIONS[id].inputs
                    single = len(kinds) == 1
                    taking = [(here, here if single else y)] * (kinds[0] is operation.output)
                    taking += [(x, here)] * (not single and kinds[1] is operation.output)
                    longer += [[*lines[:place], line, *below[:k], (id, *pair), *below[k + 1 :]] for pair in taking]
    return [np.array(rows, dtype=np.int64) for rows in (changed, longer)]


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

SHORTER, BRIEF = 2, 4
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
    longest = min(len(found.programs[0]) - SHORTER if found.programs else BRIEF, limits.max_length)
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
    brief = replace(limits, max_length=min(BRIEF, limits.max_length), nodes=WORK, count=1)
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
