"""Kinds of columns of a private table: their public description, and the encoding and decoding of
their values.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

Values = npt.NDArray[Any]

LARGEST_INTEGER = 10**15  # integers up to here survive their encoding as a double in [0, 1]
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "NaT", "None", "null", "NULL", "<NA>")
UNREADABLE = -1.0  # coordinates are in [0, 1], level numbers from 0 on, missing values NaN
NO_TEXT = "\ud800"  # no level is this: no file in UTF-8 can hold it


class _Unreadable:
    """Place of a value that its package cannot convert, such as a date in the year 20000."""

    def __repr__(self) -> str:
        return NO_TEXT


UNREADABLE_VALUE = _Unreadable()


@dataclass(frozen=True)
class Real:
    """A number between public bounds; encoded as (value - low) / (high - low), clamped to [0, 1].

    With `log`, the logarithms are encoded, which keeps both ends of a wide range, such as incomes,
    apart.

    Attributes
    ----------
    name : name of the table's column.
    low, high : finite bounds, low < high; values beyond them are clamped, and no output reveals
        that they were.
    missing : whether values may be missing. If so, there is a code column, 1 where the value is
        missing; the number is then encoded as 1/2.
    log : whether logarithms are encoded; low must be above 0.
    gamma : gamma of the kernel, per squared unit of the encoded number; by default the schema's.
    rho : kernel between two rows of which one lacks the value; by default the schema's.

    Raises
    ------
    InputError : an attribute is out of range; so do the other kinds of column.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    log: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "real"
    content: ClassVar[str] = "a number"
    on_line: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_bounds(self, sys.float_info.max, "finite numbers")
        if not isinstance(self.log, bool):
            raise wrong(self.name, f"log is {self.log!r}", "it must be true or false")
        if self.log and not (self.low > 0 and math.log(self.low) < math.log(self.high)):
            raise wrong(self.name, f"log has bounds {self.low} and {self.high}", "low must be above 0, well below high")
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        return 2 * self.missing

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1]; NaN if the value is missing, below 0 if it is not a
        number.
        """
        numbers, unreadable = _numbers(values)
        if self.log:
            logs = np.log(np.clip(numbers, self.low, self.high))
            return _scaled(logs, math.log(self.low), math.log(self.high), unreadable)
        return _scaled(numbers, self.low, self.high, unreadable)

    def write(self, found: Floats) -> Values:
        """Values of coordinates (N,) in [0, 1]: float64."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return np.clip(np.exp(low + found * (high - low)), self.low, self.high)
        return np.clip(self.low + found * (self.high - self.low), self.low, self.high)


@dataclass(frozen=True)
class Integer:
    """A whole number between public bounds of at most 10**15: encoded as `Real`, decoded to the
    nearest one.
    """

    name: str
    low: int
    high: int
    missing: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "integer"
    content: ClassVar[str] = "a whole number"
    on_line: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_bounds(self, LARGEST_INTEGER, "whole numbers of at most 10**15")
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise wrong(self.name, f"low is {self.low!r}, high is {self.high!r}", "they must be whole numbers")
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        return 2 * self.missing

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1]; NaN if the value is missing, below 0 if it is not a whole
        number.
        """
        numbers, unreadable = _numbers(values)
        return _scaled(numbers, self.low, self.high, unreadable | (np.rint(numbers) != numbers) & ~np.isnan(numbers))

    def write(self, found: Floats) -> Values:
        """Values of coordinates (N,) in [0, 1]: int64."""
        return self.low + np.rint(found * (self.high - self.low)).astype(np.int64)


@dataclass(frozen=True)
class Category:
    """One of a public list of levels: a code, or level / (L - 1) in [0, 1] if the levels are
    ordered.

    Attributes
    ----------
    levels : names of the levels: at least two, none empty, all different; in order, if they are
        ordered.
    missing : whether values may be missing: as one more level, or in a code column as for `Real` if
        ordered.
    ordered : whether neighbouring levels are alike; numbers decode to the nearest level.
    gamma : as for `Real`, if the levels are ordered.
    rho : kernel between rows of different levels; by default the schema's.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool = False
    ordered: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "category"
    content: ClassVar[str] = "one of its levels"

    def __post_init__(self) -> None:
        if not (isinstance(self.levels, tuple) and all(isinstance(level, str) for level in self.levels)):
            raise wrong(self.name, "levels is not a list of texts", 'write levels = ["...", "..."]')
        if len(self.levels) < 2:
            count = ("no levels", "only one level")[len(self.levels)]
            raise wrong(self.name, f"it has {count}", "it must have at least two")
        if "" in self.levels:
            raise wrong(self.name, "a level is empty", "write missing = true to allow empty values")
        twice = first_double(self.levels)
        if twice is not None:
            raise wrong(self.name, f"the level {twice!r} is listed twice", "list every level once")
        if not isinstance(self.ordered, bool):
            raise wrong(self.name, f"ordered is {self.ordered!r}", "it must be true or false")
        _check_shared(self)

    @property
    def on_line(self) -> bool:
        """Whether values are encoded as numbers."""
        return self.ordered

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        return 2 * self.missing if self.ordered else len(self.levels) + self.missing

    def read(self, values: Values) -> Floats:
        """Numbers of levels (N,), in [0, 1] if ordered; NaN if the value is missing, below 0 if it
        is not a level.
        """
        unit = len(self.levels) - 1 if self.ordered else 1
        return _looked_up(values, {level: i / unit for i, level in enumerate(self.levels)}, str)

    def write(self, found: Floats) -> Values:
        """Names of the levels, as an array of str."""
        unit = len(self.levels) - 1 if self.ordered else 1
        names: Values = np.array(self.levels, dtype=object)[np.rint(found * unit).astype(np.int64)]
        return names


@dataclass(frozen=True)
class Boolean:
    """True or false (or yes and no, t and f, y and n, 1 and 0, in upper or lower case): a code of
    two levels.
    """

    name: str
    missing: bool = False
    rho: float | None = None

    kind: ClassVar[str] = "boolean"
    content: ClassVar[str] = "true or false"
    on_line: ClassVar[bool] = False
    gamma: ClassVar[None] = None
    TEXTS: ClassVar[dict[str, float]] = {
        "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "0": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "1": 1.0,
    }  # fmt: skip

    def __post_init__(self) -> None:
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column."""
        return 2 + self.missing

    def read(self, values: Values) -> Floats:
        """Codes (N,); NaN if the value is missing, below 0 if it is neither true nor false."""
        return _looked_up(values, self.TEXTS, str.lower)

    def write(self, found: Floats) -> Values:
        """Values of codes, as an array of bool."""
        return found > 0


Column = Real | Integer | Category | Boolean
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Real, Integer, Category, Boolean)}


def _numbers(values: Values) -> tuple[Floats, npt.NDArray[np.bool_]]:
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
    if _text(value) in MISSING_TEXTS:
        return math.nan
    try:
        return float(value) if _may_be_number(type(value)) else None
    except OverflowError:  # a whole number beyond a double
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return None


def _scaled(numbers: Floats, low: float, high: float, unreadable: npt.NDArray[np.bool_]) -> Floats:
    found = (np.clip(numbers, low, high) - low) / (high - low)
    found[unreadable] = UNREADABLE
    return found


def _looked_up(values: Values, numbers: Mapping[str, float], fold: Callable[[str], str]) -> Floats:
    table = {fold(text): math.nan for text in MISSING_TEXTS} | dict(numbers)
    found = (table.get(fold(_text(value)), UNREADABLE) for value in values.tolist())
    return np.fromiter(found, np.float64, len(values))


def _text(value: Any) -> str:
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


def _check_bounds(column: Real | Integer, largest: float, kind: str) -> None:
    for key, bound in (("low", column.low), ("high", column.high)):
        if not _is_number(bound, largest):
            raise wrong(column.name, f"{key} is {bound!r}", f"low and high must be {kind}")
    if not column.low < column.high:
        raise wrong(column.name, f"low {column.low} is not below high {column.high}", "low must be below high")
    if not math.isfinite(column.high - column.low):
        raise wrong(column.name, "low and high are too far apart", "their difference must be finite")


def _check_shared(column: Column) -> None:
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
    """Refuse what `Kernel` would refuse (`InputError`), and name the place."""
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
