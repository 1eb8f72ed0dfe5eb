"""Deviation of sample means of perturbed maxima from their expectation (Hazan et al. Figures 8 and 9).

Two functions of the noise are measured: the perturbed maximum, and the noise at the maximiser, whose
expectation is the entropy bound and which alone the source draws.

Two laws of a deviation D are told apart. If |D| is exponential, E[D^2] / E[|D|]^2 = 2 and its rate
of decay -d ln P(|D| > r) / dr is constant. If D is normal, the ratio is pi / 2 and the rate rises
with r.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.concentration import deviation

EXPONENTIAL, NORMAL = 2.0, math.pi / 2
"""E[D^2] / E[|D|]^2 of the two laws."""


def deviations(values: Floats, count: int) -> Floats:
    """Means of `count` values each, less the mean of all, widened so that their variance is that of
    independent means about the true expectation, var / count.

    Parameters
    ----------
    values : independent, shape (models, samples); each row has its own expectation.
    count : M, at most half of the samples.

    Returns
    -------
    Shape (models, samples // count).
    """
    models, samples = values.shape
    means = values[:, : samples // count * count].reshape(models, -1, count).mean(axis=2)
    shrink = math.sqrt(1 - count / samples)
    return np.asarray((means - values.mean(axis=1, keepdims=True)) / shrink)


def shape(numbers: Floats) -> tuple[float, float]:
    """E[D^2] / E[|D|]^2 of a sample, and its standard error by the delta method."""
    size, square = np.abs(numbers).ravel(), (numbers**2).ravel()
    first, second = float(size.mean()), float(square.mean())
    influence = square / first**2 - 2 * second * size / first**3
    return second / first**2, float(influence.std()) / math.sqrt(size.size)


def tail_bound(gradient: float, count: int, distances: Floats) -> Floats:
    """Bound on P(|mean of M values - expectation| > r), at most 1, by Corollaries 10 and 12 of Hazan et
    al. for each side: the smaller of the two.

    Parameters
    ----------
    gradient : a.
    count : M.
    distances : r.
    """
    r = distances / gradient
    poincare = np.where(r > 2, 2 * (np.sqrt(r / 2) - 1) ** 2, 0.0)
    return np.asarray(np.minimum(1.0, 2 * np.exp(-count * np.maximum(poincare, np.minimum(r / 4, r**2 / 32)))))


def decay(shares: tuple[float, float], limits: tuple[float, float], draws: float) -> tuple[float, float]:
    """Rate -d ln P(|D| > r) / dr between two limits r, and its standard error.

    Parameters
    ----------
    shares : share of the draws beyond each limit.
    limits : the nearer one first.
    draws : independent draws behind the shares.
    """
    near, far = shares
    width = limits[1] - limits[0]
    return math.log(near / far) / width, math.sqrt((1 / far - 1 / near) / draws) / width


def maximum_and_noise(solver: MapSolver, noise: Floats) -> Floats:
    """The perturbed maximum and the noise at the maximiser, sum_i gamma_i(x_i*), of binary models.

    Parameters
    ----------
    noise : gamma, shape (batch, 2 n).

    Returns
    -------
    Shape (2, batch).
    """
    values, states = solver.maximise(noise)
    picked = np.take_along_axis(noise.reshape(len(noise), -1, 2), states[..., np.newaxis], axis=2)
    return np.stack([values, picked.sum(axis=(1, 2))])


def squared_gradients(solver: MapSolver, draws: int, rng: np.random.Generator, step: float = 1e-6) -> Floats:
    """|grad F|^2 of both functions by a difference quotient for each noise term, shape (2, draws)."""
    columns = 2 * len(solver.graph.cardinalities)
    found = []
    for noise in gumbel(rng, draws, columns):
        moved = maximum_and_noise(solver, noise + np.vstack([np.zeros(columns), step * np.eye(columns)]))
        found.append((((moved[:, 1:] - moved[:, :1]) / step) ** 2).sum(axis=1))
    return np.array(found).T


def steepest(solver: MapSolver, length: float, draws: int, rng: np.random.Generator) -> Floats:
    """Largest |F(gamma + h) - F(gamma)| / (sqrt(n) |h|) over random h of one length, of both
    functions, shape (2,); at most 1 for a function whose gradient is at most sqrt(n) everywhere."""
    n = len(solver.graph.cardinalities)
    noise, direction = gumbel(rng, draws, 2 * n), rng.standard_normal((draws, 2 * n))
    direction *= length / np.linalg.norm(direction, axis=1, keepdims=True)
    changes = maximum_and_noise(solver, noise + direction) - maximum_and_noise(solver, noise)
    return np.asarray(np.abs(changes).max(axis=1) / (math.sqrt(n) * length))


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

MeanRow = tuple[str, int, str, float, float, float, float, int]
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


def _means(function: str, values: Floats, n: int) -> Iterator[MeanRow]:
    """Rows of one function; `values` has a row for each model."""
    expectations = values.mean(axis=1, keepdims=True)
    square = deviations(values, 1) ** 2
    sigmas = np.sqrt(square.mean(axis=1, keepdims=True))
    sigma = float(sigmas.mean())

    def row(count: int, quantity: str, numbers: Any, at: float = math.nan, units: float = math.nan) -> MeanRow:
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


def _moves(solver: GraphCut, draws: int, rng: np.random.Generator) -> Iterator[MeanRow]:
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
