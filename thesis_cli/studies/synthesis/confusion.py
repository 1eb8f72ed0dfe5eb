"""Conditional confusion matrices: which attributes a guide confuses (Thesis D.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats

Counts = npt.NDArray[np.int64]

Cell = tuple[int, int]
"""Row and column of the matrix."""

FEW = 10
"""Programs of a cell that tell little."""


@dataclass(frozen=True, eq=False)
class Confusion:
    """The matrix of D.7: for each attribute of a program (rows), how likely each other attribute
    (columns) is predicted as a false positive.

    Attributes
    ----------
    mean : average predicted probability of attribute j over the programs that use i and not j,
        shape (C, C); nan where there are none, as on the diagonal.
    counts : number of these programs, shape (C, C).
    """

    mean: Floats
    counts: Counts


def confusion(predicted: Floats, truth: Bools) -> Confusion:
    """The matrix of P programs.

    Parameters
    ----------
    predicted : probability of each attribute, shape (P, C).
    truth : which attributes the programs use, shape (P, C).
    """
    counts = truth.T.astype(np.int64) @ ~truth
    sums = truth.T.astype(np.float64) @ np.where(truth, 0.0, predicted)
    return Confusion(_ratio(sums, counts), counts)


def serial_order(found: Confusion) -> list[int]:
    """An order of rows and columns that brings similar ones together.

    Attributes are alike if their rows are and their columns are. They are clustered by Ward's
    method; of the orders that a dendrogram allows, the one with the least sum of distances of
    neighbours is taken (Bar-Joseph et al., 2001). Each cell counts as if `FEW` programs more had
    the mean of its column, so that a cell of few programs moves no attribute.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import pdist

    sums = np.where(found.counts, found.mean, 0.0) * found.counts
    means = np.nan_to_num(_ratio(sums.sum(axis=0), found.counts.sum(axis=0)))
    filled = (sums + FEW * means) / (found.counts + FEW)
    features = np.hstack([filled, filled.T])
    return [int(i) for i in leaves_list(optimal_leaf_ordering(linkage(features, "ward"), pdist(features)))]


@dataclass(frozen=True)
class Contrast:
    """Difference in likelihood between some false positives and others.

    Attributes
    ----------
    value : mean of the cells in question.
    average : mean that it is compared with.
    standard_error : standard error of `value - average`, by a bootstrap over programs; nan if no
        resample has programs of the cells.
    """

    value: float
    average: float
    standard_error: float


def contrasts(
    predicted: Floats, truth: Bools, groups: Sequence[Sequence[Cell]], resamples: int, rng: np.random.Generator
) -> list[tuple[Contrast, Contrast]]:
    """Groups of cells against all false positives, and against those of the same columns.

    Parameters
    ----------
    groups : cells of the matrix; each cell with a program counts equally.

    Returns
    -------
    For each group, its contrast with the mean of all cells, and with the mean, over its cells, of
    the average prediction of the cell's column for programs that use neither attribute of the cell.
    The second one shows whether it is the attribute of the row that confuses.
    """
    attributes = predicted.shape[1]
    cells = np.array([i * attributes + j for group in groups for i, j in group])
    rows, columns = np.divmod(cells, attributes)
    without = ~truth[:, rows] & ~truth[:, columns]
    spared = np.where(without, predicted[:, columns], 0.0)
    weights, matrix = _resampled(predicted, truth, resamples, rng)
    others = _ratio(weights @ spared, weights @ without)
    everything = _mean(matrix)
    found, start = [], 0
    for group in groups:
        of = slice(start, start + len(group))
        start += len(group)
        values, columns_alone = matrix[:, cells[of]], others[:, of]
        columns_alone = np.where(np.isfinite(values), columns_alone, np.nan)
        value = _mean(values)
        found.append((_contrast(value, everything), _contrast(value, _mean(columns_alone))))
    return found


def row_contrasts(
    predicted: Floats, truth: Bools, columns: Bools, resamples: int, rng: np.random.Generator
) -> list[Contrast]:
    """Difference, for each row of the matrix, of its mean over some columns from that over the others."""
    _, matrix = _resampled(predicted, truth, resamples, rng)
    rows = matrix.reshape(len(matrix), len(columns), len(columns))
    return [_contrast(_mean(rows[:, i, columns]), _mean(rows[:, i, ~columns])) for i in range(len(columns))]


def _resampled(predicted: Floats, truth: Bools, resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Weight of each program, in the sample and then in the resamples, shape (1 + R, P), and
    the matrices, shape (1 + R, C * C)."""
    programs = len(predicted)
    false = np.where(truth, 0.0, predicted)
    sums = (truth[:, :, None] * false[:, None, :]).reshape(programs, -1)
    counts = (truth[:, :, None] & ~truth[:, None, :]).reshape(programs, -1)
    weights = np.vstack([np.ones(programs), rng.multinomial(programs, np.full(programs, 1 / programs), resamples)])
    return weights, _ratio(weights @ sums, weights @ counts)


def _contrast(value: Floats, average: Floats) -> Contrast:
    """Contrast of the sample, with the spread of the resamples after it."""
    resampled = (value - average)[1:]
    known = resampled[np.isfinite(resampled)]
    return Contrast(float(value[0]), float(average[0]), float(known.std()) if known.size else np.nan)


def _mean(cells: Floats) -> Floats:
    """Mean of each row over its cells that are defined."""
    known = np.isfinite(cells)
    return _ratio(np.where(known, cells, 0.0).sum(axis=1), known.sum(axis=1))


def _ratio(sums: Floats, counts: Counts | Floats) -> Floats:
    """Means; nan of nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(counts, sums / counts, np.nan))
