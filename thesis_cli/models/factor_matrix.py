"""Many factors over few states: a matrix of log-factors, in memory or in an NPY file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base import npy
from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.tokens import unreadable

BLOCK = 2**20
"""Number of log-factors that are read at a time: 8 MiB."""

_FORM = "give a matrix of real numbers: a row for each state, a column for each factor"


@dataclass(frozen=True)
class FactorMatrix:
    """A product of S factors over K states, p(x) ~ prod_s f_s(x) (Thesis section 2.5.2).

    Attributes
    ----------
    values : ln f_s(x), of any real type, shape (K, S); a memory map stays one.
    totals : phi(x) = sum_s ln f_s(x), shape (K,).
    widths : largest minus smallest log-factor of each state, shape (K,).
    source : name of the file, if there is one.
    """

    values: npt.NDArray[Any]
    totals: Floats
    widths: Floats
    source: str = ""

    @property
    def states(self) -> int:
        """Number K of states."""
        return int(self.values.shape[0])

    @property
    def factors(self) -> int:
        """Number S of factors."""
        return int(self.values.shape[1])


def factor_matrix(values: npt.NDArray[Any], source: str | Path = "") -> FactorMatrix:
    """Check a matrix of log-factors and sum it, a block of columns at a time.

    Parameters
    ----------
    values : log-factors, shape (K, S), K and S at least 1; the matrix is not copied.
    source : name of the matrix in errors.

    Raises
    ------
    InputError : the array is no matrix, is empty, has no real numbers, or has an entry that is not
        finite. A factor of 0 is not allowed: it rules its state out, which a subsample that misses
        it cannot know.
    """
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"log-factors have shape {values.shape}", _FORM, source=source)
    if values.dtype.kind not in "fiu":
        raise InputError(f"holds {values.dtype}, not real numbers", _FORM, source=source)
    k, s = values.shape
    totals, least, most = np.zeros(k), np.full(k, np.inf), np.full(k, -np.inf)
    step = max(1, BLOCK // k)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an error below
        for start in range(0, s, step):
            block = np.asarray(values[:, start : start + step], dtype=np.float64)
            if not np.isfinite(block).all():
                raise _not_finite(block, start, str(source))
            totals += block.sum(axis=1)
            np.minimum(least, block.min(axis=1), out=least)
            np.maximum(most, block.max(axis=1), out=most)
        widths = most - least
    if not (np.isfinite(totals).all() and np.isfinite(widths).all()):
        raise InputError("the sum of the log-factors overflows", "it must stay below 1e300", source=source)
    return FactorMatrix(values, totals, widths, str(source))


def load_factor_matrix(path: str | Path) -> FactorMatrix:
    """Map an NPY file of log-factors, shape (states, factors), without loading it.

    Raises
    ------
    InputError : the file cannot be read, is no NPY file, or `factor_matrix` refuses its matrix.
    """
    try:
        values = npy.map_array(path)
    except OSError as error:
        raise unreadable(error, str(path), "give an NPY file") from error
    return factor_matrix(values, path)


def _not_finite(block: Floats, start: int, source: str) -> InputError:
    state, at = (int(i[0]) for i in np.nonzero(~np.isfinite(block)))
    value = block[state, at]
    remedy = (
        "a factor of 0 gives its state probability 0: leave the row out" if value == -np.inf else "it must be finite"
    )
    return InputError(f"the log-factor of state {state}, factor {start + at}, is {value:g}", remedy, source=source)
