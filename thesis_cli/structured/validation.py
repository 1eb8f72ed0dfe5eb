"""Regularisation that cross-validation chooses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.structured.learn import Problem, fit

FOLDS = 3

ENOUGH = 250
"""Held-out observations after which further folds are left out; the rest of three folds of so many is
enough to learn from, too."""

START, LEAST, MOST = -2, -4, 3
"""Decimal logarithms of the regularisation: the first to be tried, and the range."""

GAIN = 0.01
"""Share of the loss that a step must gain."""

DECREASE = 5e-4
"""Gain of an iteration at which the fit of a fold ends, as a share of the objective at 0."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A regularisation, and what was tried.

    Attributes
    ----------
    regularisation : lambda of the least loss.
    loss : that loss, the mean of -ln p of held-out observations, nats.
    starts : parameters of the folds there.
    tried : regularisations with their losses.
    """

    regularisation: float
    loss: float
    starts: tuple[Floats, ...]
    tried: Columns

    @property
    def start(self) -> Floats:
        """Parameters from which a fit of all observations is near."""
        return np.asarray(np.mean(self.starts, axis=0))


def chosen_regularisation(problem: Problem, rows: Ints | None = None, starts: Sequence[Floats] = ()) -> Chosen:
    """The regularisation of the least loss of held-out observations, by steps of a factor of 10 and a
    parabola through the best three.

    Folds learn by the surrogate of the space, and the loss is that of the space itself. A fold that learns
    from m' of the m observations has lambda m / m' for lambda, which weighs the penalty against each
    observation as the fit of all of them does. Raises ModelTooLarge if the space has no exact ln Z of that
    size.

    Parameters
    ----------
    problem : all observations; its regularisation does not count.
    rows : numbers of which equal ones mark observations that are held out together, shape (m,).
    starts : parameters with which the fits of the folds begin; 0 by default.
    """
    folds = _folds(problem, rows)
    known: dict[int, tuple[float, list[Floats]]] = {}

    def loss(at: int) -> float:
        if at not in known:
            near = known[min(known, key=lambda other: abs(other - at))][1] if known else starts
            known[at] = _held_out(folds, 10.0**at, len(problem.inputs), near)
        return known[at][0]

    best, step = START, 1  # fits of larger ones take less time
    while LEAST < best < MOST:
        here = loss(best)
        if loss(best + step) < (1 - GAIN) * here:
            best += step
        elif step == 1 and best == START:
            step = -1
        else:
            break
    found = float(best)
    if LEAST < best < MOST:
        below, here, above = loss(best - 1), loss(best), loss(best + 1)
        bend = below - 2 * here + above
        found += (below - above) / (2 * bend) if bend > 0 else 0.0
    ordered = sorted(known)
    tried = Columns({"regularisation": [10.0**at for at in ordered], "loss": [known[at][0] for at in ordered]})
    return Chosen(10.0**found, known[best][0], tuple(known[best][1]), tried)


def _folds(problem: Problem, rows: Ints | None) -> list[tuple[Problem, Problem]]:
    """Observations to learn from and held-out ones, of some folds."""
    rows = np.arange(len(problem.inputs)) if rows is None else rows
    some = np.random.default_rng(0).permutation(np.unique(rows))[: FOLDS * ENOUGH]
    parts = np.array_split(some, min(FOLDS, len(some)))
    rough = dataclasses.replace(problem, space=problem.space.rough())
    surrogate = dataclasses.replace(rough, space=problem.space.surrogate())
    found = []
    for part in parts[: math.ceil(ENOUGH / len(parts[-1]))]:
        held_out = np.isin(rows, part)
        learnt = np.isin(rows, some) & ~held_out
        found.append((surrogate.subset(np.flatnonzero(learnt), 1.0), rough.subset(np.flatnonzero(held_out), 1.0)))
    return found


def _held_out(
    folds: Sequence[tuple[Problem, Problem]], regularisation: float, count: int, starts: Sequence[Floats]
) -> tuple[float, list[Floats]]:
    """Mean loss of held-out observations, and the parameters of the folds."""
    decrease = DECREASE * math.log(folds[0][0].space.size())
    total, found = 0.0, []
    for at, (learnt, held_out) in enumerate(folds):
        one = dataclasses.replace(learnt, regularisation=regularisation * count / len(learnt.inputs))
        fitted = fit(one, start=starts[at] if starts else None, decrease=decrease, near=bool(starts))
        found.append(fitted.parameters)
        total += float(held_out.losses(fitted.parameters).sum())
    return total / sum(len(held_out.inputs) for _, held_out in folds), found
