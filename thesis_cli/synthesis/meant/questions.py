"""Inputs whose output tells which behaviour was meant."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Words
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.meant.classes import Runner
from thesis_cli.synthesis.meant.inputs import Inputs, inputs_like
from thesis_cli.synthesis.meant.posterior import Posterior

SETTLED = 0.99
"""Share from which on nothing is asked."""

COMPARED, DRAWN, SHORT = 64, 128, 5
"""Behaviours that are told apart, inputs of which the best are asked about, and length of the lists in half
of them."""

NUMBER = 0.01
"""Expected gain, in nats, for which a question may have another number."""


def questions(task: Task, found: Posterior, semantics: Semantics, count: int) -> list[Inputs]:
    """Inputs of the task's own kind whose outputs differ most among the behaviours, the best first.

    The gain of an input is the entropy of its output, in nats, less a little for each number that the
    user must read. The most probable behaviour has a value there. None repeats an example.
    """
    if len(found.shares) < 2 or found.shares[0] >= SETTLED:
        return []
    known = {example.inputs for example in task.examples}
    candidates = [row for row in _candidates(task, semantics) if row not in known]
    if not candidates:
        return []
    runner = Runner(candidates, semantics, wide=False)
    codes = np.concatenate([runner.codes(behaviour.lines[None]) for behaviour in found.behaviours[:COMPARED]])
    shares = found.shares[:COMPARED] / found.shares[:COMPARED].sum()
    chosen: list[int] = []
    partitions: set[tuple[int, ...]] = set()
    gains = np.array([_gain(column, shares) for column in codes.T])
    costs = np.array([NUMBER * sum(1 if isinstance(x, int) else len(x) for x in row) for row in candidates])
    for place in np.argsort(costs - gains, kind="stable").tolist():
        firsts: dict[int, int] = {}
        partition = tuple(firsts.setdefault(code, k) for k, code in enumerate(codes[:, place].tolist()))
        if gains[place] > 0 and partition not in partitions and len(chosen) < count:
            partitions.add(partition)
            chosen.append(place)
    return [candidates[place] for place in chosen]


def _gain(codes: Words, shares: Floats) -> float:
    """Entropy of the output of an input; 0 where the first behaviour has none."""
    if not codes[0]:
        return 0.0
    _, groups = np.unique(codes, return_inverse=True)
    mass = np.bincount(groups, weights=shares)
    mass = mass[mass > 0]
    return max(float(-(mass * np.log(mass)).sum()), 0.0)


def _candidates(task: Task, semantics: Semantics) -> list[Inputs]:
    """Inputs of the task's kind, and as many with short lists."""
    drawn = inputs_like(task, DRAWN, np.random.default_rng(1), semantics)
    cut = [tuple(x if isinstance(x, int) else x[:SHORT] for x in row) for row in drawn[DRAWN // 2 :]]
    return [row for row in dict.fromkeys([*cut, *drawn]) if all(map(semantics.holds, row))]
