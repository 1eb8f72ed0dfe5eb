"""How far sample means of perturbed maxima are from their expectation, and how their tails fall.

Two laws of a deviation D are told apart. If |D| is exponential, E[D^2] / E[|D|]^2 = 2 and its rate
of decay -d ln P(|D| > r) / dr is constant. If D is normal, the ratio is pi / 2 and the rate rises
with r.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.solver import MapSolver
from thesis_cli.perturbation.noise import gumbel

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
    shares : of the draws beyond each limit.
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
    functions, shape (2,); at most 1 for a function whose gradient is at most sqrt(n) everywhere.
    """
    n = len(solver.graph.cardinalities)
    noise, direction = gumbel(rng, draws, 2 * n), rng.standard_normal((draws, 2 * n))
    direction *= length / np.linalg.norm(direction, axis=1, keepdims=True)
    changes = maximum_and_noise(solver, noise + direction) - maximum_and_noise(solver, noise)
    return np.asarray(np.abs(changes).max(axis=1) / (math.sqrt(n) * length))
