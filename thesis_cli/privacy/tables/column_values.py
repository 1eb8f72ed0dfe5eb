"""Values of private tables as numbers: what counts as missing, as unreadable, and as a text; and
checks that types of columns share.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

Values = npt.NDArray[Any]

LARGEST_INTEGER = 10**15  # integers up to here survive their encoding as a double in [0, 1]
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "NaT", "None", "null", "NULL", "<NA>")
UNREADABLE = -1.0  # coordinates are in [0, 1], level numbers from 0 on, missing values NaN
ATOM = 2.0  # and atom k of a number is ATOM + k
NO_TEXT = "\ud800"  # no level is this: no file in UTF-8 can hold it
LARGEST = 1e150  # larger numbers count as missing in expressions, so that squares are finite


class _Unreadable:
    """Place of a value that its package cannot convert, such as a date in the year 20000."""

    def __repr__(self) -> str:
        return NO_TEXT


UNREADABLE_VALUE = _Unreadable()


def read_numbers(values: Values) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Numbers (N,), NaN if missing or unreadable, and a mask of the unreadable ones."""
    if values.dtype.kind in "OU":
        if all(_may_be_number(kind) for kind in set(map(type, values.tolist()))):
            try:
                return values.astype(np.float64), np.zeros(len(values), bool)
            except (ValueError, OverflowError):
                pass  # some value is not a number
    elif values.dtype.kind in "biuf":
        return values.astype(np.float64), np.zeros(len(values), bool)
    else:
        return np.full(len(values), math.nan), np.ones(len(values), bool)
    parsed = [_number(value) for value in values.tolist()]
    unreadable = np.array([x is None for x in parsed], bool)
    return np.array([math.nan if x is None else x for x in parsed], np.float64), unreadable


def _may_be_number(kind: type) -> bool:
    """Whether values of a type may be numbers; float() also takes bytes and times, which are
    not.
    """
    numbers = (str, int, float, Decimal, np.integer, np.floating, np.bool_, type(None))
    return issubclass(kind, numbers) and not issubclass(kind, np.timedelta64)


def _number(value: Any) -> float | None:
    if text_of(value) in MISSING_TEXTS:
        return math.nan
    try:
        return float(value) if _may_be_number(type(value)) else None
    except OverflowError:  # a whole number beyond a double
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return None


def finite(numbers: Floats) -> Floats:
    """Numbers that expressions see, of any shape: NaN where they are not finite or larger than `LARGEST`."""
    return np.where(np.abs(numbers) <= LARGEST, numbers, math.nan)


def scaled(numbers: Floats, low: float, high: float) -> Floats:
    """Numbers in [0, 1] of numbers, shape (N,), clamped to the bounds."""
    return np.asarray((np.clip(numbers, low, high) - low) / (high - low))


def marked(found: Floats, numbers: Floats, atoms: tuple[float, ...]) -> Floats:
    """Encoded numbers `found`, shape (N,), with `ATOM` + k where a number is atom k."""
    for k, atom in enumerate(atoms):
        found[numbers == atom] = ATOM + k
    return found


def looked_up(values: Values, numbers: Mapping[str, float], fold: Callable[[str], str]) -> Floats:
    """Numbers of values (N,) by their texts; NaN if missing, below 0 if a text has none.

    Parameters
    ----------
    numbers : number of each text that `fold` gives.
    fold : what texts that mean the same have in common.
    """
    table = {fold(text): math.nan for text in MISSING_TEXTS} | dict(numbers)
    found = (table.get(fold(text_of(value)), UNREADABLE) for value in values.tolist())
    return np.fromiter(found, np.float64, len(values))


def text_of(value: Any) -> str:
    """Text of a value as levels have it: 1 for 1.0, since whole numbers in a column with gaps are
    read as floats.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    try:
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    except (ValueError, TypeError, RuntimeError, AttributeError):  # too many digits, or an object without text
        return NO_TEXT


def wrong(name: str, problem: str, remedy: str) -> InputError:
    """An error that names a column, its problem and its remedy."""
    return InputError(f"column {name!r}: {problem}", remedy)


def _is_number(value: object, largest: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def check_bounds(column: Any, largest: float, kind: str) -> None:
    """Refuse (`InputError`) bounds of a column that are no rising numbers of magnitude `largest` or less;
    the error says that they must be `kind`.
    """
    for key, bound in (("low", column.low), ("high", column.high)):
        if not _is_number(bound, largest):
            raise wrong(column.name, f"{key} is {bound!r}", f"low and high must be {kind}")
    if not column.low < column.high:
        raise wrong(column.name, f"low {column.low} is not below high {column.high}", "low must be below high")
    if not math.isfinite(column.high - column.low):
        raise wrong(column.name, "low and high are too far apart", "their difference must be finite")


def check_atoms(column: Any, largest: float, kind: type) -> None:
    """Refuse (`InputError`) atoms of a column that are no rising numbers of type `kind`, of magnitude
    `largest` or less.
    """
    atoms = column.atoms
    if not (isinstance(atoms, tuple) and all(_is_number(x, largest) and isinstance(x, kind | int) for x in atoms)):
        raise wrong(column.name, f"atoms is {atoms!r}", "it must be a list of numbers like the column's")
    if any(not a < b for a, b in pairwise(atoms)):
        raise wrong(column.name, "the atoms do not rise", "list every one once, the least first")


def check_kernel(where: str, gamma: float | None, rho: float | None) -> None:
    """Refuse (`InputError`) gamma and rho that `RowKernel` would refuse; the error says `where` they are."""
    if gamma is not None and not (_is_number(gamma, sys.float_info.max) and gamma > 0):
        raise InputError(f"{where}: gamma is {gamma!r}", "it must be a number above 0")
    if rho is not None and not (_is_number(rho, 1) and 0 <= rho < 1):
        raise InputError(f"{where}: rho is {rho!r}", "it must be at least 0 and below 1")


def first_double(names: Iterable[str]) -> str | None:
    """First name that occurs twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
