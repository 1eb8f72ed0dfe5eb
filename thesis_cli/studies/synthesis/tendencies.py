"""The tendencies that D.7 reads off the conditional confusion matrices, as numbers."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.studies.synthesis.confusion import FEW, Cell, confusion, contrasts, row_contrasts
from thesis_cli.studies.synthesis.predictions import over_trainings
from thesis_cli.synthesis.language.dsl import ATTRIBUTES

if TYPE_CHECKING:
    import pandas as pd


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
