"""Many factors over few states: a matrix of log-factors (Thesis 2.5.2), in memory or mapped from an NPY file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import MAGIC_PREFIX

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

BLOCK = 2**20
"""Log-factors read at a time: 8 MiB."""

_WANTED = "a matrix of real numbers is wanted: a row for each state, a column for each factor"


@dataclass(frozen=True)
class FactorMatrix:
    """p(x) ~ prod_s f_s(x) over K states, by its S log-factors.

    Attributes
    ----------
    values : ln f_s(x), of any real type, shape (K, S); a memory map stays one.
    totals : phi(x) = sum_s ln f_s(x), shape (K,).
    widths : largest minus smallest log-factor of each state, shape (K,).
    source : the file, if there is one.
    """

    values: npt.NDArray[Any]
    totals: Floats
    widths: Floats
    source: str = ""

    @property
    def states(self) -> int:
        return int(self.values.shape[0])

    @property
    def factors(self) -> int:
        return int(self.values.shape[1])


def factor_matrix(values: npt.NDArray[Any], source: str | Path = "") -> FactorMatrix:
    """Check a matrix of log-factors, and sum it, a block of columns at a time.

    Parameters
    ----------
    values : shape (K, S), K and S at least 1; it is not copied.
    source : what messages call it.

    Raises
    ------
    InputError : not a matrix, empty, not of real numbers, or an entry is not finite. A factor of 0 is refused with
        the others: it decides alone, and no subsample that misses it knows.
    """
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"log-factors have shape {values.shape}", _WANTED, source=source)
    if values.dtype.kind not in "fiu":
        raise InputError(f"holds {values.dtype}, not real numbers", _WANTED, source=source)
    k, s = values.shape
    totals, least, most = np.zeros(k), np.full(k, np.inf), np.full(k, -np.inf)
    step = max(1, BLOCK // k)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused for it
        for start in range(0, s, step):
            block = np.asarray(values[:, start : start + step], dtype=np.float64)
            if not np.isfinite(block).all():
                raise _not_finite(block, start, str(source))
            totals += block.sum(axis=1)
            np.minimum(least, block.min(axis=1), out=least)
            np.maximum(most, block.max(axis=1), out=most)
        widths = most - least
    if not (np.isfinite(totals).all() and np.isfinite(widths).all()):
        raise InputError("the sum of the log-factors overflows", "numbers of less than 1e300 are wanted", source=source)
    return FactorMatrix(values, totals, widths, str(source))


def load_factor_matrix(path: str | Path) -> FactorMatrix:
    """Map an NPY file of log-factors, shape (states, factors); it is never in memory as a whole.

    Raises
    ------
    InputError : the file cannot be read, is not an NPY file, or is refused by `factor_matrix`.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(len(MAGIC_PREFIX))
        if start.startswith(b"PK"):
            raise InputError("holds an archive of arrays", "one array, saved by numpy.save, is wanted", source=path)
        if start != MAGIC_PREFIX:
            raise InputError("no NPY file", _WANTED, source=path)
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot be read ({reason})", "an NPY file is wanted", source=path) from error
    except InputError:
        raise
    except ValueError as error:
        objects = "Python objects" in str(error)
        problem = "holds Python objects, not real numbers" if objects else "an NPY file that is cut short or damaged"
        raise InputError(problem, _WANTED, source=path) from error
    return factor_matrix(values, path)


def _not_finite(block: Floats, start: int, source: str) -> InputError:
    state, at = (int(i[0]) for i in np.nonzero(~np.isfinite(block)))
    value = block[state, at]
    remedy = (
        "a state that a factor rules out has probability 0: leave its row out"
        if value == -np.inf
        else "finite numbers are wanted"
    )
    return InputError(f"the log-factor of state {state}, factor {start + at}, is {value:g}", remedy, source=source)
