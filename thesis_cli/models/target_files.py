"""Continuous targets of a user's own: a table for regression, or a Python object."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from thesis_cli.errors import InputError
from thesis_cli.models.proposals import MOST_DIMENSIONS
from thesis_cli.models.targets import Regression, Target
from thesis_cli.models.words import is_number

MAX_BYTES = 2**28
"""Largest table that is read."""

_COLUMNS = f"1 to {MOST_DIMENSIONS} columns of features and one of responses are wanted"


def load_regression(path: str | Path, *, prior_scale: float = 2.0, scale: float = 1.0) -> Regression:
    """Read the data of a regression from a CSV file.

    A first line with a word that is no number is a heading. The response is the column named `y`, else the last one.

    Parameters
    ----------
    path : the file; `-` reads standard input.
    prior_scale, scale : as of `Regression`.

    Raises
    ------
    InputError : naming file and line.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"the file is larger than {MAX_BYTES >> 20} MiB", "a table of numbers is wanted")
        return _regression(data.decode("utf-8-sig"), prior_scale, scale)
    except OSError as error:
        problem = f"cannot be read ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "a CSV file is wanted", source=name) from error
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
        raise InputError(f"two columns are named '{twice[:40]}'", "different names are wanted", line=1)
    if not rows:
        raise InputError("has no rows", "one line of numbers for each point is wanted")
    columns = len(heading or rows[0][1])
    if not 2 <= columns <= MOST_DIMENSIONS + 1:
        raise InputError(f"has {columns} {'column' if columns == 1 else 'columns'}", _COLUMNS, line=1)
    for line, row in rows:
        if len(row) != columns:
            raise InputError(f"{len(row)} values", f"{columns} are wanted, as in the first line", line=line)
        for word in row:
            if not is_number(word) or not math.isfinite(float(word)):
                raise InputError(f"'{word[:40]}' is no finite number", "drop the row, or fill it in", line=line)
    values = np.array([[float(word) for word in row] for _, row in rows])
    at = heading.index("y") if heading and "y" in heading else columns - 1
    names = [name for k, name in enumerate(heading) if k != at] if heading else None
    return Regression(np.delete(values, at, axis=1), values[:, at], prior_scale=prior_scale, scale=scale, names=names)


def load_object(name: str) -> Target:
    """A target by name, `module:object` or `file.py:object`; modules are looked for in the working directory too.

    Raises
    ------
    InputError : no such object, one that cannot be imported, or one that is no `Target`.
    """
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise InputError(f"'{name}' names no object", "module:object is wanted")
    try:
        found: Any = _import(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return _checked(found)
    except InputError as error:
        raise error.at(name) from None
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        raise InputError(problem, "an object with proposal, log_ratio and bound is wanted", source=name) from error


def _import(module: str) -> ModuleType:
    if module.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(module).stem, module)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)
        return made
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(here)


def _checked(found: Any) -> Target:
    """The object, after a look at its corners and its middle."""
    if isinstance(found, type):
        raise InputError("it is a class", "an object made from it is wanted")
    for part in ("proposal", "log_ratio", "bound"):
        if not hasattr(found, part):
            raise InputError(f"it has no {part}", "an object with proposal, log_ratio and bound is wanted")
    low, high = np.asarray(found.proposal.low, float), np.asarray(found.proposal.high, float)
    if low.shape != high.shape or low.ndim != 1 or not 1 <= low.size <= MOST_DIMENSIONS:
        raise InputError(
            f"its proposal has corners of shapes {low.shape} and {high.shape}", f"1 to {MOST_DIMENSIONS} dimensions"
        )
    middle = found.proposal.quantile(np.full(low.size, 0.5), low, high)
    ratio, bound = float(found.log_ratio(middle)), float(found.bound(low, high))
    if math.isnan(ratio) or ratio == math.inf or math.isnan(bound):
        raise InputError(f"in the middle its log_ratio is {ratio:g}, its bound {bound:g}", "numbers are wanted")
    target: Target = found
    return target
