"""Values of private tables as numbers: what counts as missing, as unreadable, and as a text; and
checks that all kinds of columns share.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

Values = npt.NDArray[Any]

DateKind = Literal["", "date", "datetime"]
"""Meaning of a number of days since the start of 1970; empty if it is a plain number."""

LARGEST_INTEGER = 10**15  # integers up to here survive their encoding as a double in [0, 1]
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "NaT", "None", "null", "NULL", "<NA>")
UNREADABLE = -1.0  # coordinates are in [0, 1], level numbers from 0 on, missing values NaN
NO_TEXT = "\ud800"  # no level is this: no file in UTF-8 can hold it


class _Unreadable:
    """Place of a value that its package cannot convert, such as a date in the year 20000."""

    def __repr__(self) -> str:
        return NO_TEXT


UNREADABLE_VALUE = _Unreadable()


class ColumnBase(ABC):
    """Defaults of a kind of column, for one of numbers. Its numbers are those that queries have, such as
    the days of a date.

    Attributes
    ----------
    sort : sort of its values in expressions.
    date : meaning of its numbers; empty if they are plain.
    unit : number of its values from 0 to below 1, which are equally spaced; 0 if any number between the
        bounds is one.
    """

    missing: bool
    sort: ClassVar[Literal["number", "truth", "text"]] = "number"
    date: ClassVar[DateKind] = ""
    unit: ClassVar[int] = 1

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Least and largest number; of levels, their places."""

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        return 2 * self.missing

    @property
    def count(self) -> int:
        """Number of values beside the missing one; 0 if any number between the bounds is one."""
        low, high = self.bounds
        return round((high - low) * self.unit) + 1 if self.unit else 0

    def numbers(self, values: Values) -> Floats:
        """Numbers (N,) of values that `write` made; NaN if missing."""
        return values.astype(np.float64)

    def values(self, numbers: Floats) -> Values:
        """Values of numbers (N,) of the column, as `write` makes them."""
        return numbers.astype(np.int64)

    def rounded(self, values: Values) -> Values:
        """Values as files of released rows have them."""
        return values


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


def scaled(numbers: Floats, low: float, high: float, unreadable: npt.NDArray[np.bool_]) -> Floats:
    found = (np.clip(numbers, low, high) - low) / (high - low)
    found[unreadable] = UNREADABLE
    return found


def looked_up(values: Values, numbers: Mapping[str, float], fold: Callable[[str], str]) -> Floats:
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
    """An error that names a column."""
    return InputError(f"column {name!r}: {problem}", remedy)


def _is_number(value: object, largest: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def check_bounds(column: Any, largest: float, kind: str) -> None:
    """Numbers of texts, after folding; NaN if missing, below 0 if a text has none."""
    for key, bound in (("low", column.low), ("high", column.high)):
        if not _is_number(bound, largest):
            raise wrong(column.name, f"{key} is {bound!r}", f"low and high must be {kind}")
    if not column.low < column.high:
        raise wrong(column.name, f"low {column.low} is not below high {column.high}", "low must be below high")
    if not math.isfinite(column.high - column.low):
        raise wrong(column.name, "low and high are too far apart", "their difference must be finite")


def check_shared(column: Any) -> None:
    """Coordinates in [0, 1] of numbers clamped to the bounds; below 0 where unreadable."""
    if not isinstance(column.name, str) or not column.name:
        raise InputError("a column has no name", "give it a text as its name")
    if not isinstance(column.missing, bool):
        raise wrong(column.name, f"missing is {column.missing!r}", "it must be true or false")
    check_kernel(f"column {column.name!r}", column.gamma, column.rho)
    if column.gamma is not None and not column.on_line:
        raise wrong(column.name, "gamma is for numbers", "give rho")
    if column.rho is not None and not column.cardinality:
        raise wrong(column.name, "rho is for levels", "give gamma, or missing = true")


def check_kernel(where: str, gamma: float | None, rho: float | None) -> None:
    """Refuse what `RowKernel` would refuse (`InputError`), and name the place."""
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
