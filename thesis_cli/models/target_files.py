"""Read the data of a regression from a CSV file."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models.proposals import MOST_DIMENSIONS
from thesis_cli.models.targets import Regression
from thesis_cli.models.tokens import is_number

MAX_BYTES = 2**28
"""Size of the largest table that is read."""

_COLUMNS = f"give 1 to {MOST_DIMENSIONS} columns of features and one of responses"


def load_regression(path: str | Path, *, prior_scale: float = 2.0, scale: float = 1.0) -> Regression:
    """Read the data of a regression from a CSV file.

    The first line is a heading if it has a word that is no number. The response is the column `y`,
    or the last one.

    Parameters
    ----------
    path : the file; `-` reads standard input.
    prior_scale, scale : as for `Regression`.

    Raises
    ------
    InputError : the file cannot be read or holds no regression; the message gives file and line.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"the file is larger than {MAX_BYTES >> 20} MiB", "give a table of numbers")
        return _regression(data.decode("utf-8-sig"), prior_scale, scale)
    except OSError as error:
        problem = f"cannot be read ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "give a CSV file", source=name) from error
    except UnicodeDecodeError as error:
        raise InputError("not text", "a CSV file is text", source=name) from error
    except InputError as error:
        raise InputError(error.problem, error.remedy, source=name, line=error.line) from None


def _regression(text: str, prior_scale: float, scale: float) -> Regression:
    try:
        reader = csv.reader(io.StringIO(text, newline=""))
        rows = [(reader.line_num, [word.strip() for word in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise InputError(f"not a CSV file ({error})", _COLUMNS) from None
    heading = rows.pop(0)[1] if rows and not all(map(is_number, rows[0][1])) else None
    if heading and len(set(heading)) < len(heading):
        twice = next(word for word in heading if heading.count(word) > 1)
        raise InputError(f"two columns are named '{twice[:40]}'", "columns must have different names", line=1)
    if not rows:
        raise InputError("has no rows", "give one line of numbers for each point")
    columns = len(heading or rows[0][1])
    if not 2 <= columns <= MOST_DIMENSIONS + 1:
        raise InputError(f"has {columns} {'column' if columns == 1 else 'columns'}", _COLUMNS, line=1)
    for line, row in rows:
        if len(row) != columns:
            raise InputError(f"has {len(row)} values", f"it must have {columns}, as the first line", line=line)
        for word in row:
            if not is_number(word) or not math.isfinite(float(word)):
                raise InputError(f"'{word[:40]}' is no finite number", "drop the row, or fill it in", line=line)
    values = np.array([[float(word) for word in row] for _, row in rows])
    at = heading.index("y") if heading and "y" in heading else columns - 1
    names = [name for k, name in enumerate(heading) if k != at] if heading else None
    return Regression(np.delete(values, at, axis=1), values[:, at], prior_scale=prior_scale, scale=scale, names=names)
