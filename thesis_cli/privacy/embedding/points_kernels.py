"""Compiled sums of features and their gradients; the plain reference is `Features.embed`.

Frequencies are taken in blocks that stay in the fastest cache. Each pass computes sines and cosines
again, which is faster than storing and fetching the M x J of them. One thread computes a whole
block or point, so that the number of threads changes no bit. No loop both sums and stores: whether
the compiler vectorises such a loop, and so the order of its sum, would depend on the addresses of
its arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.privacy.embedding.kernels import cosine_sine

BLOCK = 512
"""Frequencies per block: their angles, cosines and sines take 12 KiB."""

FAST = {"reassoc", "contract", "nsz"}
"""Licence to vectorise sums; infinities and NaN keep their meaning."""


class FeatureTable(NamedTuple):
    """Random features of a kernel, in kernel lengths.

    Attributes
    ----------
    frequencies : shape (D, F).
    squares : squared norms of the frequencies, shape (F,).
    phases : phases of every level of every category, shape (sum of cardinalities, F).
    """

    frequencies: Floats
    squares: Floats
    phases: Floats


class Placed(NamedTuple):
    """Gaussians whose mean features are computed.

    Attributes
    ----------
    points : centres, shape (M, D).
    levels : rows of `phases` that each takes, shape (M, C).
    variances : variance of every coordinate, shape (M,).
    """

    points: Floats
    levels: Ints
    variances: Floats


class LevelTurns(NamedTuple):
    """Rotations of a feature by the levels of the categories.

    Attributes
    ----------
    cosines, sines : of `phases`, shape (sum of cardinalities, F).
    ends : row of `phases` at which each category begins, and their number, shape (C + 1,).
    """

    cosines: Floats
    sines: Floats
    ends: Ints


@njit(nogil=True, fastmath={"contract"})  # set here, or numba takes over FAST from the callers
def _cosines_sines(
    frequencies: Floats, phases: Floats, point: Floats, levels: Ints, first: int, cosines: Floats, sines: Floats
) -> None:
    """Set the cosines and sines of the angles of one point, for as many frequencies from `first` on
    as fit.
    """
    size = cosines.size
    cosines[:] = 0.0  # first holds the angles
    for c in range(levels.size):
        for j in range(size):
            cosines[j] += phases[levels[c], first + j]
    for d in range(point.size):
        x = point[d]
        for j in range(size):
            cosines[j] += x * frequencies[d, first + j]
    for j in range(size):
        cosines[j], sines[j] = cosine_sine(cosines[j])


@helper(fastmath={"contract"})
def _damp(variance: float, squares: Floats, first: int, cosines: Floats, sines: Floats) -> None:
    """Turn cosines and sines at a point into their means over a Gaussian about it."""
    if variance != 0.0:
        for j in range(cosines.size):
            damping = math.exp(-0.5 * variance * squares[first + j])
            cosines[j] *= damping
            sines[j] *= damping


@kernel(fastmath=FAST)
def weighted_sum(table: FeatureTable, placed: Placed, weights: Floats, low: int, high: int, out: Floats) -> None:
    """sum_m w_m E(cos, sin) of the frequencies low, ..., high - 1, over Gaussians about the points.

    Parameters
    ----------
    weights : w, shape (M,).
    out : shape (2, F); its columns low, ..., high - 1 are set.
    """
    frequencies, squares, phases = table
    points, levels, variances = placed
    held = np.empty((2, BLOCK))
    for first in range(low, high, BLOCK):
        size = min(BLOCK, high - first)
        cosines, sines = held[0, :size], held[1, :size]
        out[:, first : first + size] = 0.0
        for m in range(weights.size):
            w = weights[m]
            if w != 0.0:
                _cosines_sines(frequencies, phases, points[m], levels[m], first, cosines, sines)
                _damp(variances[m], squares, first, cosines, sines)
                for j in range(size):
                    out[0, first + j] += w * cosines[j]
                    out[1, first + j] += w * sines[j]


@kernel(fastmath=FAST)
def products(
    table: FeatureTable, placed: Placed, vector: Floats, low: int, high: int, values: Floats, slopes: Floats
) -> None:
    """f(z, v) = E sum_j a_j cos xi_j + b_j sin xi_j over a Gaussian of variance v about z, and its
    gradient.

    Parameters
    ----------
    vector : a and b, shape (2, F).
    low, high : range of points, low, ..., high - 1.
    values : f, shape (M,); set in the range.
    slopes : gradient of f by z and v, shape (M, D + 1); set in the range.
    """
    frequencies, squares, phases = table
    points, levels, variances = placed
    held = np.empty((3, BLOCK))
    dimension = points.shape[1]
    for m in range(low, high):
        value = 0.0
        slopes[m] = 0.0
        for first in range(0, frequencies.shape[1], BLOCK):
            size = min(BLOCK, frequencies.shape[1] - first)
            cosines, sines, turned = held[0, :size], held[1, :size], held[2, :size]
            _cosines_sines(frequencies, phases, points[m], levels[m], first, cosines, sines)
            _damp(variances[m], squares, first, cosines, sines)
            for j in range(size):
                value += vector[0, first + j] * cosines[j] + vector[1, first + j] * sines[j]
            for j in range(size):
                turned[j] = vector[1, first + j] * cosines[j] - vector[0, first + j] * sines[j]
            for d in range(dimension):
                slope = 0.0
                for j in range(size):
                    slope += frequencies[d, first + j] * turned[j]
                slopes[m, d] += slope
            bend = 0.0
            for j in range(size):
                bend += squares[first + j] * (vector[0, first + j] * cosines[j] + vector[1, first + j] * sines[j])
            slopes[m, dimension] -= 0.5 * bend
        values[m] = value


@kernel(fastmath=FAST)
def choose_levels(
    table: FeatureTable, turns: LevelTurns, points: Floats, levels: Ints, weights: Floats, residual: Floats
) -> int:
    """Set each category of each point, in turn, to the level with the least residual, and count the
    changes.

    All features have one norm, so the least residual has the largest inner product with what the
    other points leave.

    Parameters
    ----------
    points, levels : as in `Placed`; the levels are updated.
    weights : weight of each cosine and sine, shape (M,).
    residual : target less the weighted sum, shape (2, F); kept up to date.
    """
    frequencies, _, phases = table
    cos_phases, sin_phases, ends = turns
    count = frequencies.shape[1]
    cosines, sines = np.empty(count), np.empty(count)
    along, across = np.empty(count), np.empty(count)
    changed = 0
    for m in range(weights.size):
        _cosines_sines(frequencies, phases, points[m], levels[m], 0, cosines, sines)
        for j in range(count):
            residual[0, j] += weights[m] * cosines[j]
            residual[1, j] += weights[m] * sines[j]
        for c in range(levels.shape[1]):
            old = levels[m, c]
            for j in range(count):
                x = cosines[j] * cos_phases[old, j] + sines[j] * sin_phases[old, j]
                y = sines[j] * cos_phases[old, j] - cosines[j] * sin_phases[old, j]
                along[j] = residual[0, j] * x + residual[1, j] * y
                across[j] = residual[1, j] * x - residual[0, j] * y
                cosines[j], sines[j] = x, y
            best, best_value = old, 0.0
            for j in range(count):
                best_value += along[j] * cos_phases[old, j] + across[j] * sin_phases[old, j]
            best_value += 1e-12 * count  # no change for a gain that is rounding
            for level in range(ends[c], ends[c + 1]):
                value = 0.0
                for j in range(count):
                    value += along[j] * cos_phases[level, j] + across[j] * sin_phases[level, j]
                if value > best_value:
                    best, best_value = level, value
            for j in range(count):
                x = cosines[j] * cos_phases[best, j] - sines[j] * sin_phases[best, j]
                sines[j] = sines[j] * cos_phases[best, j] + cosines[j] * sin_phases[best, j]
                cosines[j] = x
            changed += best != old
            levels[m, c] = best
        for j in range(count):
            residual[0, j] -= weights[m] * cosines[j]
            residual[1, j] -= weights[m] * sines[j]
    return changed
