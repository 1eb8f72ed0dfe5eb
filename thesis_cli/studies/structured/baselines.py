"""Baselines of structured predictors, from scikit-learn, with the same regularisation.

Where Vembu et al. eq. 1 has lambda |Theta|^2 + mean loss, scikit-learn's logistic regression has
|w|^2 / 2 + C times the sum of the losses: C = 1 / (2 lambda m) makes them one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.learn import Problem
from thesis_cli.structured.tasks import Task

Predict = Callable[[Floats], Ints]
"""Structures for rows of inputs, shape (n, p) -> (n, width)."""


@dataclass(frozen=True)
class Baseline:
    """A method that predicts structures without a distribution over all of them.

    Attributes
    ----------
    learn : (task, problem) -> predictions.
    """

    name: str
    learn: Callable[[Task, Problem], Predict]


def logistic(problem: Problem, classes: Ints, rows: Any = slice(None)) -> Any:
    """Logistic regression of some observations on their classes, without an intercept of its own."""
    from sklearn.linear_model import LogisticRegression

    inputs = problem.inputs[rows]
    strength = 1 / (2 * problem.regularisation * len(inputs))
    return LogisticRegression(C=strength, fit_intercept=False, tol=1e-8, max_iter=2000).fit(inputs, classes)


def bit_chances(problem: Problem) -> Callable[[Floats], Floats]:
    """Probability of each bit by a logistic regression of its own (one-vs-rest)."""
    models = []
    for bits in problem.structures.T:
        constant = (bits == bits[0]).all()
        models.append(float(bits[0]) if constant else logistic(problem, bits))

    def chances(inputs: Floats) -> Floats:
        columns = [
            np.full(len(inputs), model) if isinstance(model, float) else model.predict_proba(inputs)[:, 1]
            for model in models
        ]
        return np.stack(columns, axis=1)

    return chances


def one_against_rest(task: Task, problem: Problem) -> Predict:
    """Bits with a probability above 1/2; in a hierarchy only below nodes that are predicted too."""
    chances = bit_chances(problem)

    def predict(inputs: Floats) -> Ints:
        found = (chances(inputs) > 0.5).astype(np.int64)
        for node, parent in enumerate(task.parents):
            found[:, node] = found[:, node] & found[:, parent] if parent >= 0 else 1
        return found

    return predict


def powerset(task: Task, problem: Problem) -> Predict:
    """One class for each structure that was observed, by multinomial logistic regression."""
    rows, classes = np.unique(problem.structures, axis=0, return_inverse=True)
    model = logistic(problem, classes.ravel())
    return lambda inputs: np.asarray(rows[model.predict(inputs)], np.int64)


def pairwise(task: Task, problem: Problem) -> Predict:
    """Ranking by pairwise comparison (Huellermeier et al., 2008): a logistic regression for each pair
    of items, and items sorted by the sums of their probabilities to come first.
    """
    positions, d = problem.structures, problem.space.elements
    pairs = list(zip(*np.triu_indices(d, 1), strict=True))
    models: list[Any] = []
    for i, j in pairs:
        first = (positions[:, i] < positions[:, j]).astype(np.int64)
        models.append(float(first[0]) if (first == first[0]).all() else logistic(problem, first))

    def predict(inputs: Floats) -> Ints:
        wins = np.zeros((len(inputs), d))
        for (i, j), model in zip(pairs, models, strict=True):
            chance = model if isinstance(model, float) else model.predict_proba(inputs)[:, 1]
            wins[:, i] += chance
            wins[:, j] += 1 - chance
        return _sorted(-wins)

    return predict


def regression(task: Task, problem: Problem) -> Predict:
    """Items sorted by scores of their own: ridge regressions on their positions."""
    inputs, count = problem.inputs, len(problem.inputs)
    ridge = inputs.T @ inputs + problem.regularisation * count * np.eye(inputs.shape[1])
    weights = np.linalg.solve(ridge, inputs.T @ problem.structures)
    return lambda values: _sorted(values @ weights)


def _sorted(scores: Floats) -> Ints:
    """Positions of items, least score first."""
    found = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable")
    return found.astype(np.int64)


REST, POWERSET = Baseline("one-vs-rest", one_against_rest), Baseline("label powerset", powerset)
PAIRWISE, REGRESSION = Baseline("pairwise comparison", pairwise), Baseline("regression of ranks", regression)

BASELINES = {
    "multilabel": (REST, POWERSET),
    "ranking": (PAIRWISE, REGRESSION),
    "hierarchy": (REST, POWERSET),
}
"""Baselines for each task."""
