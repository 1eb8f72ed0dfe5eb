"""Measurements of structured predictors and of their baselines on data sets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.learn import Fit, Problem, fit
from thesis_cli.structured.online import OnlineState, TrainingPace, fit_online
from thesis_cli.structured.predictor import design, standardisation
from thesis_cli.structured.tasks import Task, feature_names
from thesis_cli.studies.structured.baselines import BASELINES, bit_chances
from thesis_cli.studies.structured.datasets import Dataset, folds

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
    for features in feature_names(data.task.name):
        task = dataclasses.replace(data.task, features=features)
        for regularisation in regularisations:
            problem = problem_of(data, task, split.train, regularisation)
            found = fit(problem, tolerance=tolerance)
            facts = {"method": features, "regularisation": regularisation}
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
