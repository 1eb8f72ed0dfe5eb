"""Learning a predictor from a table: inputs, trees, regularisation, parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.progress import Tick
from thesis_cli.structured.encoding import Encoding, learnt_encoding, with_trees
from thesis_cli.structured.learn import Fit, Problem, fit
from thesis_cli.structured.learning_data import Table, observed
from thesis_cli.structured.names import Interactions
from thesis_cli.structured.observations import Observed
from thesis_cli.structured.rankings import PlackettLuce
from thesis_cli.structured.tasks import Task
from thesis_cli.structured.validation import Chosen, chosen_regularisation

DECREASE = 2.5e-5
"""Gain of an iteration at which a fit ends, as a share of the objective at 0."""

DEFAULT = 0.01
"""Regularisation where none is chosen."""

FEWEST = 10
"""Rows of a table below which no regularisation is chosen."""

FEWEST_FOR_TREES = 50
"""Rows of a table below which there are no trees: what they say of so few rows is noise."""

STIFFNESS = 10.0
"""Weight of the squares of how weights of pairs of labels depend on inputs."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that is ready to be learnt from.

    Attributes
    ----------
    encoding : how inputs become numbers.
    problem : the observations, with a regularisation of 1.
    observed : what they say.
    """

    encoding: Encoding
    problem: Problem
    observed: Observed


def prepared(
    table: Table,
    task: Task,
    inputs: Sequence[str],
    categories: Sequence[str] = (),
    interactions: Interactions = "trees",
    standardise: bool = True,
    labels: Table | None = None,
) -> Prepared:
    """Encode the inputs of a table, and grow trees if they shall interact and there are 50 rows.

    Raises InputError naming the line of a row whose labels make no structure, or a category that is no input.

    Parameters
    ----------
    inputs : names of the columns that are inputs.
    categories : those whose numbers stand for categories.
    labels : the table that holds what is observed, if it is another.
    """
    for name in categories:
        if name not in inputs:
            raise InputError(f"the category {name[:40]!r} is no input", nearest(name, inputs))
    told = observed(labels or table, task)
    if not len(told.rows):
        raise InputError("no row says that an item comes before another", "give more ranks")
    cells = dict(zip(inputs, table.columns(inputs), strict=True))
    encoding, numbers = learnt_encoding(cells, table.count, categories, standardise)
    targets, rows = _targets(task, told)
    if interactions == "trees" and inputs and len(rows) >= FEWEST_FOR_TREES:
        encoding, numbers = with_trees(encoding, numbers, targets, rows)
    numbers, penalties = numbers[told.rows], None
    if task.features == "pairs":
        penalties = np.ones((numbers.shape[1], task.space.dimension))
        penalties[:-1, len(task.labels) :] = STIFFNESS
    return Prepared(encoding, Problem(task.space, numbers, told.structures, 1.0, told.known, penalties), told)


def _targets(task: Task, told: Observed) -> tuple[Floats, Ints]:
    """Expected labels or positions in each row of a table that says something, and those rows."""
    targets = told.expected_positions() if task.name == "ranking" else told.structures.astype(float)
    rows, which, counts = np.unique(told.rows, return_inverse=True, return_counts=True)
    sums = np.zeros((len(rows), targets.shape[1]))
    np.add.at(sums, which, targets)
    return sums / counts[:, None], rows


@dataclass(frozen=True, eq=False)
class Learnt:
    """Parameters, and how they came about.

    Attributes
    ----------
    fit : the parameters.
    regularisation : that was given or chosen.
    chosen : what cross-validation tried; None if the regularisation was given.
    """

    fit: Fit
    regularisation: float
    chosen: Chosen | None = None


def learnt(
    ready: Prepared,
    regularisation: float | None = None,
    iterations: int = 1000,
    start: Floats | None = None,
    progress: Tick | None = None,
    seen: Callable[[int, Floats, float], None] | None = None,
) -> Learnt:
    """Minimise the objective. Raises ModelTooLarge if the space has no exact ln Z of that size.

    Parameters
    ----------
    regularisation : lambda; None for the one that cross-validation chooses.
    iterations : most iterations of the descent on all observations.
    start : parameters of the same descent that was cut short.
    progress : called with the number of iterations of that descent just done.
    seen : called after each of its iterations with its number, the parameters and the regularisation.
    """
    problem = dataclasses.replace(ready.problem, space=ready.problem.space.rough())
    begun, starts, chosen, frozen = start, tuple[Floats, ...](), None, problem.space.frozen
    if frozen and start is None:
        scores = dataclasses.replace(problem, space=PlackettLuce(problem.space.elements))
        centre = learnt(dataclasses.replace(ready, problem=scores), regularisation, iterations)
        begun = _with_dispersion(centre.fit.parameters)
        starts = tuple(map(_with_dispersion, centre.chosen.starts)) if centre.chosen else ()
    if regularisation is None and len(np.unique(ready.observed.rows)) < FEWEST:
        regularisation = DEFAULT
    if regularisation is None:
        chosen = chosen_regularisation(problem, ready.observed.rows, starts)
        regularisation = chosen.regularisation
        begun = chosen.start if begun is None else np.hstack([begun[:, :frozen], chosen.start[:, frozen:]])
    strength = regularisation

    def iterated(number: int, parameters: Floats) -> None:
        if seen:
            seen(number, parameters, strength)

    found = fit(
        dataclasses.replace(problem, regularisation=strength),
        *(iterations, begun, progress, iterated),
        decrease=DECREASE * math.log(problem.space.size()),
        near=begun is not None,
    )
    return Learnt(found, regularisation, chosen)


def _with_dispersion(scores: Floats) -> Floats:
    """Parameters of Mallows with the scores of Plackett-Luce, and dispersion 0."""
    return np.column_stack([scores, np.zeros(len(scores))])
