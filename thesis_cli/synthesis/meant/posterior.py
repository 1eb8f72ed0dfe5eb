"""The probability that each behaviour is the one that was meant: a softmax of linear scores.

The score of a behaviour is that of its best program: lines, inputs that it ignores, and how many programs
of that length do the same. A last score is that of everything that was not collected. The weights are
learnt (`fitting`), so that probabilities are shares of tasks in which the behaviour is the right one. Which
functions a program has, and what its outputs look like on other inputs (how many have none, how many are
alike), predicts no better.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.synthesis.meant.classes import Behaviour, Collection
from thesis_cli.synthesis.meant.inputs import OWN

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
