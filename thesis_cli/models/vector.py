"""Vectors of log-potentials, or of probabilities: CSV, NPY and NPZ."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from thesis_cli.base import npy
from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import LogPotentials, check_log_potentials
from thesis_cli.models.tokens import floats, is_number

_FORM = "give a float64 vector: one number for each configuration"
_PROBABILITY = "probabilities must be finite and 0 or above; they need not sum to 1"


class LogOf:
    """Logarithms of a vector of probabilities, computed when a slice is read.

    Parameters
    ----------
    values : probabilities up to a constant factor, of any real type, shape (N,).
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values
        self.ndim, self.shape, self.size = values.ndim, values.shape, values.size

    def __getitem__(self, part: slice) -> Floats:
        """ln p in float64; -inf where p is 0.

        Raises
        ------
        InputError : this slice has a negative number, a NaN or an infinity.
        """
        p = np.array(self._values[part], dtype=np.float64)
        wrong = _no_probabilities(p)
        if wrong.size:
            at = range(self.size)[part][int(wrong[0])]
            raise InputError(f"probability {at} is {p[wrong[0]]:g}", _PROBABILITY)
        with np.errstate(divide="ignore"):
            return np.log(p, out=p)


def _no_probabilities(p: Floats) -> npt.NDArray[np.intp]:
    """Indices of the entries that are no probabilities, even up to a factor."""
    return np.flatnonzero(~(p >= 0) | (p == np.inf))


def map_npy(path: str | Path, probabilities: bool = False) -> LogPotentials:
    """Map an NPY file; its entries are read and checked a block at a time.

    Raises
    ------
    InputError : the file is no NPY file, is cut short, or holds no vector of real numbers.
    OSError : the file cannot be read.
    """
    return model(npy.map_array(path), str(path), probabilities)


def parse_npy(data: bytes, source: str, probabilities: bool = False) -> LogPotentials:
    """Read an NPY file that is in memory, such as standard input; raises as `map_npy`."""
    return model(npy.array_of(data, source), source, probabilities)


def parse_npz(data: bytes, source: str, max_bytes: int, probabilities: bool = False) -> LogPotentials:
    """Read the one array of an NPZ file, or the one named `log_potentials` or `probabilities`.

    Raises
    ------
    InputError : as `map_npy`, or the array unpacks to more than `max_bytes`.
    """
    file = io.BytesIO(data)
    name = "probabilities" if probabilities else "log_potentials"
    names = npy.array_names(file, source)
    if len(names) != 1 and name not in names:
        raise InputError(
            f"holds {len(names)} arrays and none is called {name}",
            f"give an NPZ file with one array, or call one {name}",
            source=source,
        )
    chosen = name if name in names else names[0]
    return model(npy.arrays_of(file, [chosen], source, max_bytes)[chosen], source, probabilities)


def parse_csv(text: str, source: str, probabilities: bool = False) -> LogPotentials:
    """Read one number a line, after a heading or not, or one line of many numbers.

    Raises
    ------
    InputError : an entry is no number, or no log-potential or probability; the message gives its
        line.
    """
    lines = text.split("\n")
    filled = [i for i, line in enumerate(lines) if line.strip()]
    if len(filled) > 1 and not is_number(lines[filled[0]].split(",")[0]):
        filled = filled[1:]
    if not filled:
        raise InputError("has no numbers", "give one number a line", source=source)
    first = filled[0]
    words = lines[first].split(",") if len(filled) == 1 else [lines[i] for i in filled]
    try:
        values = floats(words)
    except ValueError:
        bad = next(k for k, word in enumerate(words) if not is_number(word))
        raise InputError(
            f"'{words[bad].strip()[:40]}' is not a number",
            "give one number a line, or commas between them",
            source=source,
            line=(first if len(filled) == 1 else filled[bad]) + 1,
        ) from None
    wrong = _no_probabilities(values) if probabilities else np.flatnonzero(np.isnan(values) | (values == np.inf))
    if wrong.size:
        raise InputError(
            f"'{words[wrong[0]].strip()}' is no {'probability' if probabilities else 'log-potential'}",
            _PROBABILITY if probabilities else "log-potentials must be finite, or -inf for an impossible configuration",
            source=source,
            line=(first if len(filled) == 1 else filled[wrong[0]]) + 1,
        )
    return model(values, source, probabilities)


def model(values: npt.NDArray[Any], source: str, probabilities: bool) -> LogPotentials:
    """The model of a vector of log-potentials, or of probabilities up to a constant factor.

    Raises
    ------
    InputError : the vector has another shape than (N,), or an entry is wrong. The entries of a
        memory map are checked when they are read.
    """
    if values.dtype.kind not in "fiu":
        raise InputError(f"holds {values.dtype}, not real numbers", _FORM, source=source)
    found = LogPotentials(cast(Floats, LogOf(values)) if probabilities else values)
    if isinstance(values, np.memmap):
        return found
    if not probabilities:
        check_log_potentials(values.astype(np.float64), "the vector")
    elif found.values[:].max() == -np.inf:
        raise InputError("every probability is 0", "at least one configuration must be possible", source=source)
    return found
