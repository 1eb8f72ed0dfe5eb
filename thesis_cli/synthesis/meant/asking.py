"""Inputs whose outputs would tell most about which program was meant."""

from __future__ import annotations

from itertools import product

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.synthesis.language.dsl import DEFAULT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.meant.classes import Collection, Runner, lines_of
from thesis_cli.synthesis.meant.inputs import Inputs, inputs_like
from thesis_cli.synthesis.meant.posterior import Posterior

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
