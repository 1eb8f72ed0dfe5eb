"""Empirical kernel mean embeddings (Thesis section 4.2.2) and distances between embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import BLOCK_ROWS, HALF_BITS, LOW, UNIT, Codes, RowKernel, Rows, exact_mean

T = TypeVar("T", np.float64, np.int64)


TAIL = 6.2
"""Distance, in units of 1 / sqrt(gamma), beyond which a Gaussian is neglected: e^-TAIL^2 =
2e-17.
"""

BLOCK = 1024
"""Rows per block of a matrix that is not held whole."""


def mean_at(
    kernel: RowKernel, blocks: Iterable[Rows], points: Rows, jobs: int = 1, progress: Tick | None = None
) -> Floats:
    """Empirical embedding (1/N) sum_n k(x_n, .) of a table at points; memory holds a block and the
    points.

    The sum is exact in units of 2^-50 (`kernels`): the order of the rows, their blocks
    and the number of threads change no bit, and each value is within 2^-49 of the mean of the true
    kernel.

    Parameters
    ----------
    kernel : kernel of as many reals and categories as the rows have.
    blocks : N rows of the table, finite.
    points : M points.
    jobs : threads.
    progress : called with the number of rows just done.

    Returns
    -------
    means : values in [0, 1], shape (M,).

    Raises
    ------
    InputError : there are no rows.
    """
    from thesis_cli.privacy.embedding.kernels import TILE, add_kernels

    tiles, log_rho = (tiled(points.reals), tiled(points.codes)), _log_rho(kernel)

    def total(rows: Rows) -> Codes:
        found = np.zeros((len(tiles[0]), TILE), np.int64)
        add_kernels(*tiles, kernel.gamma, log_rho, rows.reals, rows.codes, found)
        return found

    return exact_mean(total, blocks, jobs, progress).reshape(-1)[: len(points)]


def tiled(columns: npt.NDArray[T]) -> npt.NDArray[T]:
    """Columns of numbers in tiles of points, shape (M, D) -> (tiles, D, TILE); the last tile is
    padded with 0.
    """
    from thesis_cli.privacy.embedding.kernels import TILE

    size, width = columns.shape
    tiles = -(-size // TILE)
    padded = np.zeros((tiles * TILE, width), columns.dtype)
    padded[:size] = columns
    return np.ascontiguousarray(padded.reshape(tiles, TILE, width).swapaxes(1, 2))


def mean_of_matrix(kernel: RowKernel, rows: Rows, jobs: int = 1) -> float:
    """Squared norm (1/N^2) sum_mn k(x_m, x_n) of the empirical embedding, to some 1e-15.

    For one or two reals without categories it is a sum over some hundreds of Fourier modes,
    otherwise over all pairs. It is a private number: it serves to measure a release, never to make
    one.

    Raises
    ------
    InputError : there are no rows.
    """
    if not len(rows):
        raise InputError("the table has no rows", "it must have at least one")
    if rows.codes.shape[1] == 0 and 1 <= rows.reals.shape[1] <= 2:
        widths = 1 / np.sqrt(kernel.gamma)
        periods = np.ptp(rows.reals, 0) + TAIL * widths
        counts = np.ceil(TAIL / math.pi * periods / widths) + 1
        if np.prod(counts) <= len(rows):
            return _mean_by_modes(rows.reals, [_fourier(*axis) for axis in zip(periods, widths, counts, strict=True)])
    return _mean_by_pairs(kernel, rows, jobs)


def _fourier(period: float, width: float, count: float) -> tuple[Floats, Floats]:
    """Frequencies w_j >= 0 and coefficients of exp(-(t / width)^2) = sum_j c_j cos(w_j t), |t| <=
    period - TAIL width.

    The Gaussian is made periodic and cut off after `count` frequencies; each makes an error of
    e^-TAIL^2. The coefficients add up to 1, the value at t = 0.
    """
    frequencies = 2 * math.pi / period * np.arange(count)
    coefficients = np.exp(-((frequencies * width / 2) ** 2))
    coefficients[1:] *= 2
    return frequencies, coefficients / coefficients.sum()


def _mean_by_modes(reals: Floats, modes: list[tuple[Floats, Floats]]) -> float:
    """Sum over modes of c_j |mean_n e^(i w_j . x_n)|^2, with both signs of the second axis's
    frequencies.
    """
    if len(modes) == 1:
        reals, modes = reals @ [[1.0, 0.0]], [*modes, (np.zeros(1), np.ones(1))]
    middle = (reals.min(0) + reals.max(0)) / 2

    def sums(start: int) -> npt.NDArray[np.complex128]:
        block = reals[start : start + BLOCK] - middle
        waves = [np.exp(1j * np.multiply.outer(x, w)) for x, (w, _) in zip(block.T, modes, strict=True)]
        return np.stack([waves[0].T @ waves[1], waves[0].T @ waves[1].conj()], -1)

    total = np.asarray(sum(map(sums, range(0, len(reals), BLOCK))))
    power = (np.abs(total / len(reals)) ** 2).mean(-1)
    for _, coefficients in modes:
        power = coefficients @ power
    return float(power)


def _mean_by_pairs(kernel: RowKernel, rows: Rows, jobs: int) -> float:
    """Mean over all pairs, each computed once; the sum is exact in units of 2^-50."""
    from thesis_cli.privacy.embedding.kernels import TILE, add_kernels

    reals, codes, log_rho = tiled(rows.reals), tiled(rows.codes), _log_rho(kernel)

    def total(start: int) -> int:
        """Sum over pairs of rows of the block from `start` on, and twice over pairs with later
        rows.
        """
        part, first = rows[start : start + BLOCK_ROWS], start // TILE
        found = np.zeros((len(reals) - first, TILE), np.int64)
        add_kernels(reals[first:], codes[first:], kernel.gamma, log_rho, part.reals, part.codes, found)
        within, after = np.split(found.reshape(-1)[: len(rows) - start], [len(part)])
        return _sum(within) + 2 * _sum(after)

    with Threads(jobs) as threads:
        units = sum(threads.map(total, range(0, len(rows), BLOCK_ROWS)))
    return units / len(rows) ** 2 * UNIT


def _sum(values: Codes) -> int:
    """Sum without overflow."""
    return (int((values >> HALF_BITS).sum()) << HALF_BITS) + int((values & LOW).sum())


def _log_rho(kernel: RowKernel) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(kernel.rho)


def distance(kernel: RowKernel, points: Rows, weights: Floats, mean_at_points: Floats, mean_of_matrix: float) -> float:
    """RKHS distance of sum_m w_m k(z_m, .) to an empirical embedding (Thesis appendix C.2.1).

    Its square is a difference of numbers near `mean_of_matrix`, accurate to some 1e-16 times (sum
    |w_m|)^2.

    Parameters
    ----------
    points, weights : z and w, M of each.
    mean_at_points : values of the empirical embedding at the points, from `mean_at`, shape (M,).
    mean_of_matrix : squared norm of the empirical embedding, from `mean_of_matrix`.
    """
    norm = squared_norm(kernel, points, weights)
    return math.sqrt(max(0.0, norm - 2 * float(weights @ mean_at_points) + mean_of_matrix))


def squared_norm(kernel: RowKernel, points: Rows, weights: Floats) -> float:
    """Squared RKHS norm of sum_m w_m k(z_m, .), for M points and weights of shape (M,)."""
    parts = (slice(start, start + BLOCK) for start in range(0, len(points), BLOCK))
    return math.fsum(float(weights[part] @ (kernel.matrix(points[part], points) @ weights)) for part in parts)
