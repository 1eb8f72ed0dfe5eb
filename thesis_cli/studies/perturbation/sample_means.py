"""Rows of the experiments on sample means of perturb-max values (Hazan et al. Figures 8 and 9).

Two functions of the noise are measured: the perturbed maximum, and the noise at the maximiser, whose
expectation is the entropy bound and which alone the source draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.studies.perturbation.concentration import deviation
from thesis_cli.studies.perturbation.deviations import deviations, shape, squared_gradients, steepest

COUNTS = (1, 5, 10)
MAXIMUM, NOISE = "maximum", "noise at the maximiser"

UNITS = np.arange(17) / 4
"""Deviations of the histogram, in standard deviations of a sample mean."""

FIXED = 0.8
"""A deviation that is the same for all M, in standard deviations of one value."""

MOVES = (1.0, 0.1, 0.01)
COLUMNS = ["coupling", "terms", "function", "count", "quantity", "at", "units", "value", "standard_error", "sets"]

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"couplings": [0, 2, 4], "size": 40, "models": 2, "samples": 200, "moves": 500},
    "paper": {"couplings": [k / 2 for k in range(9)], "size": 100, "models": 10, "samples": 1_000, "moves": 20_000},
}

Row = tuple[str, int, str, float, float, float, float, int]
"""Function, M, quantity, where, the same in standard deviations, value, standard error, draws."""


def tasks(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each coupling, and one for moves of the noise."""
    sizes = {name: settings[name] for name in ("size", "models", "samples")}
    moves = {"part": "moves", "coupling": 2.0, "size": 10, "models": 1, "samples": settings["moves"]}
    return [*({"part": "means", "coupling": c, **sizes} for c in settings["couplings"]), moves]


def run(seed: np.random.SeedSequence, part: str, coupling: float, size: int, models: int, samples: int) -> pd.DataFrame:
    """A row for each number.

    `means`: attractive models with fields from [-1, 1]. `variance` is of one value, per variable;
    `error` is the mean |sample mean of M values - expectation| in nats, `relative error` the same
    over the expectation; `shape` is E[D^2] / E[|D|]^2; `exceeded` is the share of sample means
    further than `at` nats from the expectation, `units` standard deviations; `fixed` the same at
    one distance for all M; `outside` the share outside the double-sided interval of section IV-E
    that has confidence `at`. `moves`: |grad F|^2 over the number of variables, and the largest
    change of F under moves of the noise of length `at`, over sqrt(n) times the length.
    """
    solvers, noises = [], []
    for child in seed.spawn(models):
        tables, noise = child.spawn(2)
        glass = random_spin_glass(size, size, coupling, 1.0, "attractive", np.random.default_rng(tables))
        solvers.append(GraphCut(glass.graph()))
        noises.append(noise)
    if part == "moves":
        rows = list(_moves(solvers[0], samples, np.random.default_rng(noises[0])))
    else:
        found = [low_rank_maxima(solver, samples, noise) for solver, noise in zip(solvers, noises, strict=True)]
        rows = [
            *_means(MAXIMUM, np.array([f.values for f in found]), size**2),
            *_means(NOISE, np.array([f.noise_at_max for f in found]), size**2),
        ]
    frame = pd.DataFrame(rows, columns=COLUMNS[2:])
    return frame.assign(coupling=coupling, terms=size**2)[COLUMNS]


def _means(function: str, values: Floats, n: int) -> Iterator[Row]:
    """Rows of one function; `values` has a row for each model."""
    expectations = values.mean(axis=1, keepdims=True)
    square = deviations(values, 1) ** 2
    sigmas = np.sqrt(square.mean(axis=1, keepdims=True))
    sigma = float(sigmas.mean())

    def row(count: int, quantity: str, numbers: Any, at: float = math.nan, units: float = math.nan) -> Row:
        error = numbers.std() / math.sqrt(numbers.size)
        return function, count, quantity, at, units, numbers.mean(), error, numbers.size

    yield function, 1, "expectation", math.nan, math.nan, expectations.mean(), sigma / values.size**0.5, values.size
    yield row(1, "variance", square / n)
    for count in COUNTS:
        found = deviations(values, count)
        scaled = np.abs(found) * math.sqrt(count) / sigmas
        yield row(count, "error", np.abs(found))
        yield row(count, "relative error", np.abs(found / expectations))
        yield function, count, "shape", math.nan, math.nan, *shape(scaled), found.size
        for k in UNITS:
            yield row(count, "exceeded", scaled > k, k * sigma / math.sqrt(count), k)
        fixed = FIXED * math.sqrt(count)
        yield row(count, "fixed", scaled > fixed, FIXED * sigma, fixed)
        for confidence in (0.5, 0.95):
            yield row(count, "outside", np.abs(found) > deviation(math.sqrt(n), count, confidence), confidence)


def _moves(solver: GraphCut, draws: int, rng: np.random.Generator) -> Iterator[Row]:
    n = len(solver.graph.cardinalities)
    squares = squared_gradients(solver, 5, rng) / n
    for function, numbers in zip((MAXIMUM, NOISE), squares, strict=True):
        furthest_off = numbers[np.abs(numbers - 1).argmax()]
        yield function, 1, "squared gradient", math.nan, math.nan, furthest_off, 0.0, numbers.size
    for length in MOVES:
        for function, number in zip((MAXIMUM, NOISE), steepest(solver, length, draws, rng), strict=True):
            yield function, 1, "steepness", length, math.nan, number, 0.0, draws


def rows_of(frame: pd.DataFrame, function: str, quantity: str, count: int | None = None) -> pd.DataFrame:
    """The rows of one quantity of one function, for one M if it is given."""
    rows = frame[(frame.function == function) & (frame.quantity == quantity)]
    return rows if count is None else rows[rows["count"] == count]
