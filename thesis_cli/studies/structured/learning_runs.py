"""Measurements on data sets of structured predictors, and of baselines from scikit-learn with the same
regularisation.

Where Vembu et al. eq. 1 has lambda |Theta|^2 + mean loss, scikit-learn's logistic regression has
|w|^2 / 2 + C times the sum of the losses: C = 1 / (2 lambda m) makes them one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.encoding import design, standardisation
from thesis_cli.structured.learn import Fit, Problem, fit
from thesis_cli.structured.online import OnlineState, TrainingPace, fit_online
from thesis_cli.structured.tasks import Task, feature_names
from thesis_cli.studies.structured.datasets import Dataset, folds

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


TOLERANCE = 1e-6
"""Excess of the objective at which fits end, nats an observation."""

FINE = 1e-12
"""The same where the parameters, and with them the objective's range, are small."""

VALIDATED = 4
"""One in so many observations that are not tested on serves to choose the regularisation."""

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Observations of one fold: indices to train on, to choose the regularisation with, to test on."""

    train: Ints
    validation: Ints
    test: Ints


def splits(count: int, number: int, rng: np.random.Generator) -> list[Split]:
    """Splits whose test parts are disjoint and together everything."""
    found = []
    for test in folds(count, number, rng):
        rest = rng.permutation(np.setdiff1d(np.arange(count), test))
        size = len(rest) // VALIDATED
        found.append(Split(np.sort(rest[size:]), np.sort(rest[:size]), test))
    return found


def problem_of(data: Dataset, task: Task, rows: Ints, regularisation: float, unit: bool = False) -> Problem:
    """The problem of some observations, with inputs standardised by them.

    Parameters
    ----------
    unit : whether the inputs are divided by R, so that no joint feature vector is longer than 1.
    """
    shift, scale = standardisation(data.inputs[rows])
    found = Problem(task.space, design(data.inputs[rows], shift, scale), data.structures[rows], regularisation)
    return dataclasses.replace(found, inputs=found.inputs / found.radius) if unit else found


def losses_of_fold(data: Dataset, split: Split, regularisations: Sequence[float], tolerance: float) -> Iterator[Row]:
    """Rows of kind `loss` for each method, regularisation, decision and loss, and of kind `fit`."""
    shift, scale = standardisation(data.inputs[split.train])
    parts = {
        name: (design(data.inputs[rows], shift, scale), data.structures[rows])
        for name, rows in (("validation", split.validation), ("test", split.test))
    }
    tasks = (dataclasses.replace(data.task, features=features) for features in feature_names(data.task.name))
    for task in (task for task in tasks if task.space.linear):  # as the source has it
        for regularisation in regularisations:
            problem = problem_of(data, task, split.train, regularisation)
            found = fit(problem, tolerance=tolerance)
            facts = {"method": task.features, "regularisation": regularisation}
            yield {**facts, "kind": "fit", **fit_facts(problem, found)}
            for decision in ("map", "marginal"):
                decided = {
                    name: task.losses(truth, task.decide(inputs @ found.parameters, decision))
                    for name, (inputs, truth) in parts.items()
                }
                yield from _rows({**facts, "decision": decision}, decided)
    for baseline in BASELINES[data.task.name]:
        for regularisation in regularisations:
            problem = problem_of(data, data.task, split.train, regularisation)
            predict = baseline.learn(data.task, problem)
            facts = {"method": baseline.name, "regularisation": regularisation, "decision": "map"}
            yield from _rows(
                facts, {name: data.task.losses(truth, predict(inputs)) for name, (inputs, truth) in parts.items()}
            )


def _rows(facts: Mapping[str, Any], found: Mapping[str, Mapping[str, Floats]]) -> Iterator[Row]:
    for loss, values in found["test"].items():
        validation = float(found["validation"][loss].mean())
        yield {**facts, "kind": "loss", "loss": loss, "validation": validation, "test": float(values.mean())}


def fit_facts(problem: Problem, found: Fit) -> Row:
    """Norm of the parameters, both bounds on it, and what META would cost with these parameters.

    `log_steps` is ln of the mean over observations of |Y| exp(max) / Z, the expected number of
    uniform proposals for an exact sample, and `log_bound` is 2 B R, with |Theta| for B, which bounds
    its logarithm (Vembu et al. Theorem 3.1).
    """
    weights = problem.inputs @ found.parameters
    norm, (first, second) = float(np.linalg.norm(found.parameters)), problem.norm_bounds()
    log_steps = problem.space.maximise(weights).values - problem.space.log_partition(weights)
    log_size = math.log(problem.space.size())
    return {
        "objective": found.objective,
        "excess": found.excess,
        "norm": norm,
        "bound_c1": first,
        "bound_gradient": second,
        "radius": problem.radius,
        "log_size": log_size,
        "log_steps": float(logsumexp(log_steps) - math.log(len(weights)) + log_size),
        "log_bound": 2 * problem.radius * norm,
    }


def normalised_fold(data: Dataset, split: Split) -> Iterator[Row]:
    """The same with R = 1 and lambda = ln |Y|, which Vembu et al. section 3 recommend."""
    problem = problem_of(data, data.task, split.train, math.log(data.task.space.size()), unit=True)
    found = fit(problem, tolerance=FINE)
    facts = {"method": NORMALISED, "regularisation": problem.regularisation}
    yield {**facts, "kind": "fit", **fit_facts(problem, found)}
    shift, scale = standardisation(data.inputs[split.train])
    inputs = design(data.inputs[split.test], shift, scale)
    decided = data.task.losses(data.structures[split.test], data.task.decide(inputs @ found.parameters))
    yield from _rows({**facts, "decision": "map"}, {"test": decided, "validation": decided})


NORMALISED = "R = 1, lambda = ln |Y|"


def logistic_difference(data: Dataset, regularisation: float) -> float:
    """Largest difference between the bits' probabilities by features `linear` and by one logistic
    regression a bit.
    """
    problem = problem_of(data, data.task, np.arange(len(data.inputs)), regularisation)
    ours = problem.space.mean_features(problem.inputs @ fit(problem, tolerance=FINE).parameters)
    return float(np.abs(ours - bit_chances(problem)(problem.inputs)).max())


def traces(problem: Problem, pace: TrainingPace, seeds: Sequence[int]) -> Iterator[Row]:
    """Rows of kind `trace`: share of the way from F(0) to the minimum that is left after each pass.

    `method` is L-BFGS, with exact gradients, or online with so many samples an observation; `draw`
    counts the seeds.
    """
    best = fit(problem)
    start = math.log(problem.space.size())
    facts = {"kind": "trace", "regularisation": problem.regularisation}

    def left(objective: float) -> float:
        return max((objective - best.objective) / (start - best.objective), 0.0)

    for done, value in enumerate(best.trace["objective"], start=1):
        if done <= pace.passes:
            yield {**facts, "method": EXACT, "passes": done, "left": left(value)}
    for samples in SAMPLES:
        for number, seed in enumerate(seeds[: MOST_DRAWS[samples]]):
            states: list[OnlineState] = []
            fit_online(problem, dataclasses.replace(pace, samples=samples), seed, seen=states.append)
            for state in states:
                if state.done in SHOWN or state.done == pace.passes:
                    way = {"passes": state.done, "left": left(problem.objective(state.mean))}
                    yield {**facts, "method": ONLINE[samples], "draw": number, **way}


SAMPLES = (1, 10)
MOST_DRAWS = {1: None, 10: 5}
"""Draws of so many samples an observation; None for all."""

EXACT, ONLINE = "L-BFGS", {1: "online, 1 sample", 10: "online, 10 samples"}
SHOWN = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80)
