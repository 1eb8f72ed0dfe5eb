"""The probability that each behaviour is the one that was meant: a softmax of linear scores.

The prior part of a score is of its best program: lines, functions and lambdas, inputs that it ignores, how many
programs of that length do the same. The evidence part is of the examples: every input has a value,
so a program that has values on few inputs gains with each of the M examples (the size principle),
and so does one whose outputs vary. A last score is that of everything that was not collected. The weights are
learnt (`fitting`), so that probabilities are shares of tasks in which the behaviour is the right one.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from thesis_cli.base.arrays import Floats, Words
from thesis_cli.synthesis.language.dsl import OPERATIONS, Semantics
from thesis_cli.synthesis.meant.classes import Behaviour, Collection, Runner
from thesis_cli.synthesis.meant.inputs import OWN

LONGEST = 7
"""Lengths from which on all programs count as equally long."""

MANY = 5
"""Examples that count, at most, in the evidence: what an example adds falls with their number."""

COLUMNS = (
    *(f"lines {n}" for n in range(1, LONGEST)),
    f"lines {LONGEST} or more",
    *("log programs", "variable twice", "two arguments", "inputs ignored"),
    *("log own valid", "log own valid x examples", "log other valid", "log other valid x examples"),
    *("log commonest", "log commonest x examples", "constant"),
    *(f"operation {o.name}" for o in OPERATIONS),
    *("other", "other, incomplete", "other, nothing found"),
    *(f"other, {n} examples" for n in range(1, MANY)),
    *(f"other, shortest {n}" for n in range(1, LONGEST)),
)
"""Features, in the order of the weights."""

_PLACES = {name: place for place, name in enumerate(COLUMNS)}
_FIRST_OPERATION = _PLACES[f"operation {OPERATIONS[0].name}"]
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
    behaviours : the most probable one of those that do the same on the inputs of that kind.
    shares : probabilities of all that do, together, shape (K,).
    unseen : probability that none of them was meant.
    """

    behaviours: list[Behaviour]
    shares: Floats
    unseen: float


def posterior(found: Collection, semantics: Semantics) -> Posterior:
    """Probabilities of all behaviours of a collection; those that differ on other inputs alone are
    one."""
    behaviours = list(found.behaviours.values())
    scores = features(found, behaviours, semantics) @ weights()
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    groups: dict[bytes, list[int]] = {}
    for k, behaviour in enumerate(behaviours):
        groups.setdefault(behaviour.codes[:OWN].tobytes(), []).append(k)
    best = [min(group, key=lambda k: (-chances[k], behaviours[k].rank)) for group in groups.values()]
    shares = np.array([chances[group].sum() for group in groups.values()])
    ranked = sorted(range(len(best)), key=lambda g: (-shares[g], behaviours[best[g]].rank))
    return Posterior([behaviours[best[g]] for g in ranked], shares[ranked], float(chances[-1]))


def features(found: Collection, behaviours: list[Behaviour], semantics: Semantics) -> Floats:
    """Features of each behaviour, then those of all that was not collected, shape (K + 1, F)."""
    rows = np.zeros((len(behaviours) + 1, len(COLUMNS)))
    examples, inputs = min(len(found.task.examples), MANY), len(found.task.inputs)
    runner = Runner(found.inputs, semantics, wide=False)
    by_length: dict[int, list[int]] = {}
    for k, behaviour in enumerate(behaviours):
        by_length.setdefault(len(behaviour.lines), []).append(k)
    for length, places in by_length.items():
        chosen = [behaviours[k] for k in places]
        lines = np.stack([behaviour.lines for behaviour in chosen])
        rows[places, min(length, LONGEST) - 1] = 1
        evidence = _evidence(runner.codes(lines), examples)
        numbers = np.stack([[np.log(b.count), b.rank[1], b.rank[2] - length] for b in chosen])
        ignored = sum((lines[:, :, 1:] != v).all(axis=(1, 2)).astype(float) for v in range(inputs))
        rows[places, LONGEST : LONGEST + 3], rows[places, LONGEST + 3] = numbers, ignored
        rows[places, LONGEST + 4 : _FIRST_OPERATION] = evidence
        for line in range(length):
            rows[places, _FIRST_OPERATION + lines[:, line, 0]] += 1
    other, shortest = rows[-1], min(by_length, default=LONGEST)
    other[_OTHER] = 1
    other[_OTHER + 1] = found.complete < shortest
    other[_OTHER + 2] = not behaviours
    if len(found.task.examples) < MANY:
        other[_PLACES[f"other, {len(found.task.examples)} examples"]] = 1
    if shortest < LONGEST:
        other[_PLACES[f"other, shortest {shortest}"]] = 1
    return rows


def _evidence(codes: Words, examples: int) -> Floats:
    """The part of the features that the examples weigh, shape (K, 7), from hashes of outputs."""
    valid = codes != 0
    own = valid[:, :OWN].mean(axis=1)
    others = valid[:, OWN:].mean(axis=1) if valid.shape[1] > OWN else own  # none of the others is in a small range
    commonest = np.array([_commonest(row[:OWN]) for row in codes])
    logs = np.log(np.stack([own + 0.01, others + 0.03, commonest + 0.01], axis=1))
    return np.column_stack([np.repeat(logs, 2, axis=1) * np.tile([1, examples], 3), commonest > 0.95])


def _commonest(codes: Words) -> float:
    """Share of the commonest output among all that there are."""
    there = codes[codes != 0]
    return float(np.unique(there, return_counts=True)[1].max() / len(there)) if len(there) else 1.0
