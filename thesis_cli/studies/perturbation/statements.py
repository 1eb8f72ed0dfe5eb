"""Statements of Thesis sections 2.3, A.2, A.3 and A.4 on all of their alphas, on models given by a
table of all potentials.

Numbers that are compared come from samples of their own, so that a statement can fail. As
e^{-alpha U} has no variance from -1/2 downward, bounds there come from tilted noise (`identities`):

    exp(s U(alpha)) = sum_x exp(s phi(x)) P(x is the maximiser | G_i ~ Gamma(1 - s) at x_i), s = -alpha.

The averaged bound needs nothing new: L(alpha) of phi is U(alpha) of n phi, divided by n.

Every function yields rows of (quantity, alpha, size, value, standard error).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln, logsumexp

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.identities import Row, mean

TILTED = np.array([-0.95, -0.9, -0.8, -0.7, -0.5, -0.3, -0.1])
"""Alphas of L on (-1, 0)."""
CLAMPED = np.array([-0.9, -0.7, -0.5, -0.3, -0.1, 0.25, 1, 2])
"""Alphas of the clamped bounds, and of those with noise on a subset."""
STEP = 0.01
"""Step of finite differences, nats."""
MOVES = np.array([0.1, 0.01, 0.001])
"""Sizes of a change of all potentials, nats."""
BLOCK = 10_000


def _noises(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[list[Floats]]:
    """Blocks of noise for each variable, shape (block, states)."""
    for start in range(0, count, BLOCK):
        yield [gumbel(rng, min(BLOCK, count - start), k) for k in phi.shape]


def _summed(noise: list[Floats]) -> Floats:
    """sum_i noise_i(x_i) of all configurations, shape (block, N)."""
    total = np.zeros((len(noise[0]), 1))
    for values in noise:
        total = (total[:, :, np.newaxis] + values[:, np.newaxis, :]).reshape(len(values), -1)
    return total


def maxima(phi: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Samples of U, shape (count,); phi has an axis for each variable, or none."""
    if phi.ndim == 0:
        return np.full(count, float(phi))
    flat = phi.reshape(-1)
    return np.concatenate([(flat + _summed(noise)).max(axis=1) for noise in _noises(phi, count, rng)])


def bound(phi: Floats, alpha: float, count: int, rng: np.random.Generator) -> tuple[float, float]:
    """U(alpha) and its standard error, by sample means or, for alpha below -0.35, by tilted noise."""
    if phi.ndim == 0:
        return float(phi), 0.0
    if alpha >= -0.35:
        bounds, errors = power_bounds(maxima(phi, count, rng), phi.ndim, np.array([alpha]))
        return float(bounds[0]), float(errors[0])
    flat = phi.reshape(-1)
    log_sum = float(logsumexp(-alpha * flat))
    hits = 0
    for noise in _noises(phi, count, rng):
        x = rng.choice(flat.size, len(noise[0]), p=np.exp(-alpha * flat - log_sum))
        for values, state in zip(noise, np.unravel_index(x, phi.shape), strict=True):
            clocks = np.maximum(rng.standard_gamma(1 + alpha, len(x)), np.finfo(float).tiny)
            values[np.arange(len(x)), state] = -np.log(clocks) - np.euler_gamma
        hits += int(((flat + _summed(noise)).argmax(axis=1) == x).sum())
    error = math.sqrt(max(1 / hits - 1 / count, count**-2)) / -alpha
    return (log_sum + math.log(hits / count)) / -alpha, error


def limit_rows(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """U(alpha) and L(alpha) extrapolated to alpha = 0 less the means of U and L (Proposition 3).

    A fourth-order extrapolation from alpha = -0.1, -0.05, 0.05 and 0.1, each from samples of its own.
    """
    n = phi.ndim
    for name, table, unit in (("U limit at 0", phi, 1), ("L limit at 0", n * phi, n)):
        total, variance = 0.0, 0.0
        for alpha, weight in ((-0.1, -1 / 6), (-0.05, 2 / 3), (0.05, 2 / 3), (0.1, -1 / 6), (0.0, -1.0)):
            bounds, errors = power_bounds(maxima(table, count, rng), n, np.array([alpha]))
            total += weight * bounds[0] / unit
            variance += (weight * errors[0] / unit) ** 2
        yield name, 0, n, float(total), math.sqrt(variance)


def lower_rows(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """L(alpha) less ln Z for alpha in (-1, 0), and less the bound of Proposition 15."""
    n, log_z = phi.ndim, float(logsumexp(phi))
    zero, zero_error = mean(maxima(n * phi, count, rng) / n)
    for alpha in TILTED:
        value, error = bound(n * phi, alpha, count, rng)
        yield "L", alpha, n, value / n - log_z, error / n
        least = zero + float(gammaln(1 + alpha)) / alpha + np.euler_gamma
        yield "Proposition 15", alpha, n, value / n - least, math.hypot(error / n, zero_error)


def lemma_rows(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """ln of the ratio of the sides of Lemma 1, for every prefix with the first `size` variables held;
    the row that is lowest in its errors."""
    for alpha in CLAMPED:
        held = [
            [bound(phi[x], alpha, count, rng) for x in itertools.product(*map(range, phi.shape[:j]))]
            for j in range(phi.ndim + 1)
        ]
        for j in range(phi.ndim):
            values, errors = (np.array(column) for column in zip(*held[j], strict=True))
            inner, inner_errors = (np.array(c).reshape(values.size, -1) for c in zip(*held[j + 1], strict=True))
            sums = logsumexp(inner, axis=1)
            error = np.hypot(errors, np.sqrt((np.exp(inner - sums[:, None]) ** 2 * inner_errors**2).sum(axis=1)))
            worst = ((values - sums) / error).argmin()
            yield "lemma", alpha, j, float((values - sums)[worst]), float(error[worst])


def subset_rows(phi: Floats, count: int, subsets: int, rng: np.random.Generator) -> Iterator[Row]:
    """Bounds with noise on the joint states of random sets of variables, less ln Z."""
    n, log_z = phi.ndim, float(logsumexp(phi))
    every = [s for k in range(1, n + 1) for s in itertools.combinations(range(n), k)]
    for at in rng.choice(len(every), min(subsets, len(every)), replace=False):
        chosen = every[at]
        largest = phi.max(axis=tuple(i for i in range(n) if i not in chosen)).reshape(-1)
        for alpha in CLAMPED:
            value, error = bound(largest, alpha, count, rng)
            yield "subset", alpha, len(chosen), value - log_z, error


def convexity_rows(one: Floats, other: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """lambda F(one) + (1 - lambda) F(other) - F(lambda one + (1 - lambda) other) for F = L, U at 0.

    `alpha` holds lambda. Every F has samples of its own.
    """
    n = one.ndim
    for name, scale in (("L convexity", n), ("U convexity", 1)):
        ends = [mean(maxima(scale * phi, count, rng) / scale) for phi in (one, other)]
        for share in (0.25, 0.5, 0.75):
            middle, error = mean(maxima(scale * (share * one + (1 - share) * other), count, rng) / scale)
            gap = share * ends[0][0] + (1 - share) * ends[1][0] - middle
            errors = np.array([share * ends[0][1], (1 - share) * ends[1][1], error])
            yield name, share, n, gap, float(np.sqrt((errors**2).sum()))


def derivative_rows(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Proposition 17 for every configuration, whose index is `size`.

    "derivative" is a central difference of L(0) by its potential, "probability" the share of other
    maximisers that it is.
    """
    n, flat = phi.ndim, phi.reshape(-1)
    slopes, squares, hits = np.zeros(flat.size), np.zeros(flat.size), np.zeros(flat.size)
    for noise in _noises(phi, count, rng):
        values = flat + _summed(noise) / n
        best = values.argmax(axis=1)
        rows = np.arange(best.size)
        top = values[rows, best]
        others = np.repeat(top[:, None], flat.size, axis=1)
        others[rows, best] = np.partition(values, -2, axis=1)[:, -2]
        slope = (np.maximum(others, values + STEP) - np.maximum(others, values - STEP)) / (2 * STEP)
        slopes += slope.sum(axis=0)
        squares += (slope**2).sum(axis=0)
    for noise in _noises(phi, count, rng):
        hits += np.bincount((flat + _summed(noise) / n).argmax(axis=1), minlength=flat.size)
    slopes, squares, q = slopes / count, squares / count, hits / count
    for x in range(flat.size):
        yield "derivative", 0, x, slopes[x], math.sqrt(max(squares[x] - slopes[x] ** 2, 1 / count) / count)
        yield "probability", 0, x, q[x], math.sqrt(max(q[x] * (1 - q[x]), 1 / count) / count)


def continuity_rows(phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Frequency with which x**, the maximiser with averaged noise, changes if every potential moves by up to
    `alpha` nats; it bounds the change of every probability (Proposition 18)."""
    n, flat = phi.ndim, phi.reshape(-1)
    direction = rng.uniform(-1, 1, flat.size)
    changed = np.zeros(MOVES.size)
    for noise in _noises(phi, count, rng):
        values = flat + _summed(noise) / n
        before: Ints = values.argmax(axis=1)
        for k, move in enumerate(MOVES):
            differs: Bools = (values + move * direction).argmax(axis=1) != before
            changed[k] += differs.sum()
    for move, share in zip(MOVES, changed / count, strict=True):
        yield "change", move, n, share, math.sqrt(max(share * (1 - share), 1 / count) / count)
