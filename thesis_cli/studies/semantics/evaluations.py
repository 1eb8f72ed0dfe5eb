"""Distances of evaluated expressions from their exact laws."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from thesis_cli.embeddings.expansion import Expansion, wasserstein
from thesis_cli.embeddings.kernels import Gaussian, median_distance
from thesis_cli.privacy.release.files import read_release
from thesis_cli.privacy.tables.expressions import read_columns
from thesis_cli.semantics.composition import compose
from thesis_cli.semantics.denotation import Composed, JointTable, Settings
from thesis_cli.semantics.parser import parse
from thesis_cli.semantics.syntax import Call, Expression, Let
from thesis_cli.studies.semantics.cases import Case, Conditioned
from thesis_cli.studies.semantics.rates import TargetEmbedding, dense


@dataclass(frozen=True)
class Accuracy:
    """Errors of an evaluated expression; NaN where there is none.

    Attributes
    ----------
    error, standard_error : RKHS distance from the exact law, its mean over runs and the standard
        error of that.
    bound : the program's bound of it.
    distance, distance_bound : W1 distance, and the program's bound.
    values : values of functions and points of distributions that were computed.
    reductions : number of reductions.
    monte_carlo : root mean square error of independent values of the expression that take as many.
    seconds : seconds of one evaluation.
    monte_carlo_seconds : seconds of those independent values.
    """

    error: float
    standard_error: float
    bound: float
    distance: float
    distance_bound: float
    values: int
    reductions: int
    monte_carlo: float
    seconds: float
    monte_carlo_seconds: float


@dataclass(frozen=True)
class Way:
    """A way to evaluate an expression, as in `Settings`; `repeats` runs with seeds of their own."""

    size: int
    method: str
    draws: Literal["cells", "random"] = "cells"
    repeats: int = 1


class EvaluationJudge:
    """Measures evaluations of one expression against its law, in the RKHS of the Gaussian kernel
    whose bandwidth is the law's median distance.
    """

    def __init__(self, example: Case | Conditioned) -> None:
        self._example, self._law = example, dense(example.quantile)
        self._kernel = Gaussian(median_distance(self._law))
        self._target, self._expression = TargetEmbedding(self._law, self._kernel), parse(example.text)

    def accuracy(self, way: Way, rng: np.random.Generator) -> Accuracy:
        """Errors of an evaluation, those of the last run but for the mean error."""
        settings = Settings(way.size, "gaussian", self._kernel.bandwidth, way.method, way.draws)
        errors = np.empty(way.repeats)
        for k in range(way.repeats):
            start = time.perf_counter()
            found = compose(self._expression, settings, int(rng.integers(2**31)))
            seconds = time.perf_counter() - start
            errors[k] = self._target.distance(found.expansion)
        values = max(1, found.evaluations // calls(self._expression))
        start = time.perf_counter()
        if isinstance(self._example, Case):
            self._example.sample(rng, values)
        sampled = time.perf_counter() - start
        error = float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(way.repeats)) if way.repeats > 1 else 0.0
        times = seconds, sampled if isinstance(self._example, Case) else math.nan
        return _accuracy(found, self._law, error, self._target.monte_carlo(values), times)


def _accuracy(
    found: Composed, law: Expansion, error: tuple[float, float], monte_carlo: float, seconds: tuple[float, float]
) -> Accuracy:
    """Errors of an evaluation, given those in the RKHS and the seconds, its own and those of Monte Carlo."""
    apart = wasserstein(law, found.expansion)
    return Accuracy(
        *error,
        bound=_finite(found.rkhs_error),
        distance=math.nan if apart is None else apart,
        distance_bound=_finite(found.error.largest),
        values=found.evaluations,
        reductions=len(found.steps),
        monte_carlo=monte_carlo,
        seconds=seconds[0],
        monte_carlo_seconds=seconds[1],
    )


def calls(expression: Expression) -> int:
    """Number of functions and distributions that one value of an expression takes."""
    match expression:
        case Call():
            return 1 + sum(calls(argument) for argument in expression.arguments)
        case Let():
            bound = sum(calls(each) for _, each in expression.bindings)
            return bound + sum(calls(each) for each in expression.observations) + calls(expression.body)
    return 0


def _finite(bound: float) -> float:
    return bound if math.isfinite(bound) else math.nan


RELEASED = "log(1 + income) * age"
"""Function of two columns of the example releases."""


def released(path: Path, way: Way, rng: np.random.Generator) -> Accuracy:
    """Errors of `RELEASED` over the rows of a private release, from all its rows with their weights;
    rows without a value do not count.
    """
    release = read_release(path)
    columns = {name: value.data for name, value in read_columns(release.schema.columns, release.columns).items()}
    income, age = (np.asarray(columns[name], np.float64) for name in ("income", "age"))
    present = ~np.isnan(income * age)
    weights = release.weights[present]
    law = Expansion(np.log1p(income[present]) * age[present], weights / weights.sum())
    kernel = Gaussian(median_distance(law))
    table = JointTable({"income": income, "age": age}, release.weights)
    settings = Settings(way.size, "gaussian", kernel.bandwidth, way.method)
    start = time.perf_counter()
    found = compose(parse(RELEASED, table.columns), settings, int(rng.integers(2**31)), table)
    seconds = time.perf_counter() - start
    error = kernel.distance(law, found.expansion), 0.0
    return _accuracy(found, law, error, math.nan, (seconds, math.nan))
