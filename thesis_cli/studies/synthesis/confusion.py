"""Conditional confusion matrices: which attributes a guide confuses, and the tendencies that Thesis D.7
reads off them, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.studies.synthesis.predictions import over_trainings
from thesis_cli.synthesis.language.dsl import ATTRIBUTES

if TYPE_CHECKING:
    import pandas as pd

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


COMMON = "FILTER", "(>0)", "(<0)", "(%2==1)", "(%2==0)", "MIN", "MAX", "(+)", "(-)", "ZIPWITH"
"""Attributes that D.7 says are predicted more often, whatever the program."""

ALL, COLUMNS = "all cells", "same columns"
"""Baseline for the false positives of a group."""

OTHERS = "other columns"
"""Baseline for the common columns of a row."""


def _among(*names: str) -> list[Cell]:
    """All cells of different attributes of a group."""
    return list(permutations(map(ATTRIBUTES.index, names), 2))


GROUPS: dict[str, list[Cell]] = {
    "selectors": _among("HEAD", "LAST", "ACCESS", "MINIMUM", "MAXIMUM"),
    "common": [(i, ATTRIBUTES.index(name)) for i in range(len(ATTRIBUTES)) for name in COMMON if ATTRIBUTES[i] != name],
    "(+), (-)": _among("(+)", "(-)"),
    "(+1), (-1)": _among("(+1)", "(-1)"),
    "(/2), (/3), (/4)": _among("(/2)", "(/3)", "(/4)"),
    "(**2) as (*)": [(ATTRIBUTES.index("(**2)"), ATTRIBUTES.index("(*)"))],
}
"""Cells of the matrix by tendency."""

STATEMENTS = {
    "selectors": "HEAD, LAST, ACCESS, MINIMUM and MAXIMUM are confused with each other",
    "common": "some common attributes are predicted more often",
    "(+), (-)": "(+) and (-) are confused",
    "(+1), (-1)": "(+1) and (-1) are confused",
    "(/2), (/3), (/4)": "(/2), (/3) and (/4) are confused",
    "(**2) as (*)": "a program with (**2) is thought to have (*)",
}


_GROUPS = "D.7: 'some groups of lambdas that are more difficult for the network to distinguish within'"
PLACES = {
    "selectors": "D.7: 'There is increased confusion amongst instructions that select out a single element'",
    "common": "D.7: 'Some common attributes get predicted more often regardless of the ground truth program'",
    **dict.fromkeys(("(+), (-)", "(+1), (-1)", "(/2), (/3), (/4)"), _GROUPS),
    "(**2) as (*)": "D.7: 'the network often thinks it's using (*)'",
}
"""Section and words of the thesis that state a tendency."""

COMPARISONS = [
    (name, against) for name in GROUPS for against in (ALL, COLUMNS) if (name, against) != ("common", COLUMNS)
]
"""Each tendency with what it is compared with. Common attributes have no second comparison: it would
leave out the programs that have them."""


def statement(name: str, against: str) -> str:
    """A comparison in words."""
    compared = "average" if against == ALL else "average of the same columns without the row's attribute"
    return f"{STATEMENTS[name]} (false-positive probability less the {compared})"


def contrast(frame: pd.DataFrame, name: str, against: str) -> tuple[float, ...] | None:
    """The difference that a comparison is about, and its standard error, from the rows of
    `tendencies`, one for each training."""
    rows = frame[(frame.part == "group") & (frame.row == name) & (frame.column == against)]
    return over_trainings(list(zip(rows.value - rows.average, rows.standard_error, strict=True)))


EVERY_ROW = (
    "some common attributes are predicted more often regardless of the program: false-positive probability of their "
    "columns less that of the others, in the row of 10 programs or more where this is least certain"
)
"""The measure of `least_common`, in words."""


def least_common(frame: pd.DataFrame) -> tuple[float, ...] | None:
    """Excess of the common columns of a row over the others, and its standard error, in the row of
    at least `FEW` programs where this is the least sure; from the rows of `tendencies`, one for each
    training."""
    rows = frame[(frame.part == "row") & (frame["count"] >= FEW) & (frame.standard_error > 0)]
    found = [
        over_trainings(list(zip(same.value - same.average, same.standard_error, strict=True)))
        for _, same in rows.groupby("row")
    ]
    return min((each for each in found if each), key=lambda each: each[0] / each[1], default=None)


def tendencies(predicted: Floats, truth: Bools, resamples: int, rng: np.random.Generator) -> pd.DataFrame:
    """The matrix, a row for each cell (`part` is cell), and its tendencies (`part` is group).

    A cell has its attributes in `row` and `column`, the average false-positive probability in
    `value`, empty if there is none, and its number of programs in `count`. A tendency has its name
    in `row`, what it is compared with in `column`, its number of cells in `count`, its `value`, and
    the `average` that it is compared with; `standard_error` is that of their difference. The rows of
    the matrix (`part` is row) have the mean of the common columns in `value`, that of the others in
    `average`, and the number of programs with the row's attribute in `count`.

    Parameters
    ----------
    predicted, truth, resamples, rng : see `confusion.contrasts`.
    """
    import pandas as pd

    found = confusion(predicted, truth)
    cells = [
        ("cell", ATTRIBUTES[i], ATTRIBUTES[j], found.mean[i, j], np.nan, found.counts[i, j], np.nan)
        for i, j in permutations(range(len(ATTRIBUTES)), 2)
    ]
    groups = [
        ("group", name, against, each.value, each.average, len(GROUPS[name]), each.standard_error)
        for name, pair in zip(GROUPS, contrasts(predicted, truth, list(GROUPS.values()), resamples, rng), strict=True)
        for against, each in zip((ALL, COLUMNS), pair, strict=True)
        if (name, against) in COMPARISONS
    ]
    common = np.isin(ATTRIBUTES, COMMON)
    rows = [
        ("row", name, OTHERS, each.value, each.average, count, each.standard_error)
        for name, count, each in zip(
            ATTRIBUTES, truth.sum(axis=0), row_contrasts(predicted, truth, common, resamples, rng), strict=True
        )
    ]
    columns = ["part", "row", "column", "value", "average", "count", "standard_error"]
    return pd.DataFrame([*cells, *groups, *rows], columns=columns)
