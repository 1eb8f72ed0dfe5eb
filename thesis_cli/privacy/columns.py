"""Kinds of columns of a private table: what is public of them, and how their values are encoded and decoded."""

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
UNREADABLE = -1.0  # beside coordinates in [0, 1], level numbers from 0, and NaN where a value is missing


@dataclass(frozen=True)
class Real:
    """A number between public bounds; encoded as (value - low) / (high - low), clamped to [0, 1].

    With `log`, of logarithms: what spreads over orders of magnitude, such as an income, is told apart at either end.

    Attributes
    ----------
    name : of the table's column.
    low, high : finite, low < high; values beyond them are clamped, and nothing tells that they were.
    missing : whether a value may be missing; adds a code column, 1 where it is, and puts the number at 1/2 there.
    log : wants low above 0.
    gamma : of the kernel, per squared unit of the encoded number; by default that of the schema.
    rho : of the kernel between rows of which one lacks the value; by default that of the schema.

    Raises
    ------
    InputError : an attribute out of range; so do the other kinds of column.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    log: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "real"
    wanted: ClassVar[str] = "a number"
    on_line: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_bounds(self, sys.float_info.max, "finite numbers")
        if not isinstance(self.log, bool):
            raise wrong(self.name, f"log is {self.log!r}", "true or false is wanted")
        if self.log and not (self.low > 0 and math.log(self.low) < math.log(self.high)):
            raise wrong(self.name, f"log with bounds {self.low} and {self.high}", "0 < low, well below high, is wanted")
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Levels of its code column, 0 where it has none."""
        return 2 * self.missing

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1], NaN where missing, below 0 where the value is no number."""
        numbers, unreadable = _numbers(values)
        if self.log:
            logs = np.log(np.clip(numbers, self.low, self.high))
            return _scaled(logs, math.log(self.low), math.log(self.high), unreadable)
        return _scaled(numbers, self.low, self.high, unreadable)

    def write(self, found: Floats) -> Values:
        """The values of coordinates (N,) in [0, 1]: float64."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return np.clip(np.exp(low + found * (high - low)), self.low, self.high)
        return np.clip(self.low + found * (self.high - self.low), self.low, self.high)


@dataclass(frozen=True)
class Integer:
    """A whole number between public bounds of at most 10**15; as `Real`, and decoded to the nearest one."""

    name: str
    low: int
    high: int
    missing: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "integer"
    wanted: ClassVar[str] = "a whole number"
    on_line: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_bounds(self, LARGEST_INTEGER, "whole numbers of at most 10**15")
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise wrong(self.name, f"low is {self.low!r}, high is {self.high!r}", "whole numbers are wanted")
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Levels of its code column, 0 where it has none."""
        return 2 * self.missing

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1], NaN where missing, below 0 where the value is no whole number."""
        numbers, unreadable = _numbers(values)
        return _scaled(numbers, self.low, self.high, unreadable | (np.rint(numbers) != numbers) & ~np.isnan(numbers))

    def write(self, found: Floats) -> Values:
        """The values of coordinates (N,) in [0, 1]: int64."""
        return self.low + np.rint(found * (self.high - self.low)).astype(np.int64)


@dataclass(frozen=True)
class Category:
    """One of a public list of levels: a code, or level / (L - 1) in [0, 1] where the levels are ordered.

    Attributes
    ----------
    levels : texts of the levels, at least two, none empty, no two alike; in order, where they are ordered.
    missing : whether a value may be missing; one more level, or a code column as for `Real` where they are ordered.
    ordered : whether neighbouring levels are alike; the nearest one decodes.
    gamma : as for `Real`, where the levels are ordered.
    rho : of the kernel between rows of different levels; by default that of the schema.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool = False
    ordered: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "category"
    wanted: ClassVar[str] = "one of its levels"

    def __post_init__(self) -> None:
        if not (isinstance(self.levels, tuple) and all(isinstance(level, str) for level in self.levels)):
            raise wrong(self.name, "levels is no list of texts", 'levels = ["...", "..."] is wanted')
        if len(self.levels) < 2:
            count = ("no levels", "only one level")[len(self.levels)]
            raise wrong(self.name, f"it has {count}", "at least two are wanted")
        if "" in self.levels:
            raise wrong(self.name, "a level is empty", "missing = true stands for empty values")
        twice = first_double(self.levels)
        if twice is not None:
            raise wrong(self.name, f"the level {twice!r} stands there twice", "every level once is wanted")
        if not isinstance(self.ordered, bool):
            raise wrong(self.name, f"ordered is {self.ordered!r}", "true or false is wanted")
        _check_shared(self)

    @property
    def on_line(self) -> bool:
        """Whether it is encoded as a number."""
        return self.ordered

    @property
    def cardinality(self) -> int:
        """Levels of its code column, 0 where it has none."""
        return 2 * self.missing if self.ordered else len(self.levels) + self.missing

    def read(self, values: Values) -> Floats:
        """Numbers of levels (N,), in [0, 1] where ordered; NaN where missing, below 0 where no level."""
        unit = len(self.levels) - 1 if self.ordered else 1
        return _looked_up(values, {level: i / unit for i, level in enumerate(self.levels)}, str)

    def write(self, found: Floats) -> Values:
        """Names of the levels: an array of str."""
        unit = len(self.levels) - 1 if self.ordered else 1
        names: Values = np.array(self.levels, dtype=object)[np.rint(found * unit).astype(np.int64)]
        return names


@dataclass(frozen=True)
class Boolean:
    """True or false (also written yes and no, t and f, y and n, 1 and 0, in any case): a code of two levels."""

    name: str
    missing: bool = False
    rho: float | None = None

    kind: ClassVar[str] = "boolean"
    wanted: ClassVar[str] = "true or false"
    on_line: ClassVar[bool] = False
    gamma: ClassVar[None] = None
    TEXTS: ClassVar[dict[str, float]] = {
        "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "0": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "1": 1.0,
    }  # fmt: skip

    def __post_init__(self) -> None:
        _check_shared(self)

    @property
    def cardinality(self) -> int:
        """Levels of its code column."""
        return 2 + self.missing

    def read(self, values: Values) -> Floats:
        """Codes (N,), NaN where missing, below 0 where the value is neither true nor false."""
        return _looked_up(values, self.TEXTS, str.lower)

    def write(self, found: Floats) -> Values:
        """The values: an array of bool."""
        return found > 0


Column = Real | Integer | Category | Boolean
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Real, Integer, Category, Boolean)}


def _numbers(values: Values) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Numbers (N,), NaN where missing, and where there is something else."""
    if values.dtype.kind in "OU":
        if all(_may_be_number(kind) for kind in set(map(type, values.tolist()))):
            try:
                return values.astype(np.float64), np.zeros(len(values), bool)
            except (ValueError, OverflowError):
                pass  # something to look for, value by value
    elif values.dtype.kind in "biuf":
        return values.astype(np.float64), np.zeros(len(values), bool)
    else:
        return np.full(len(values), math.nan), np.ones(len(values), bool)
    parsed = [_number(value) for value in values.tolist()]
    unreadable = np.array([x is None for x in parsed], bool)
    return np.array([math.nan if x is None else x for x in parsed], np.float64), unreadable


def _may_be_number(kind: type) -> bool:
    """Not all that float() takes: neither bytes nor times."""
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
    """A value as a level is written: 1 for 1.0, which is how whole numbers arrive from a column with gaps."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def wrong(name: str, problem: str, remedy: str) -> InputError:
    """A complaint about a column."""
    return InputError(f"column {name!r}: {problem}", remedy)


def _is_number(value: object, largest: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def _check_bounds(column: Real | Integer, largest: float, wanted: str) -> None:
    for key, bound in (("low", column.low), ("high", column.high)):
        if not _is_number(bound, largest):
            raise wrong(column.name, f"{key} is {bound!r}", f"{wanted} are wanted")
    if not column.low < column.high:
        raise wrong(column.name, f"low {column.low} is not below high {column.high}", "low < high is wanted")
    if not math.isfinite(column.high - column.low):
        raise wrong(column.name, "low and high are too far apart", "a finite high - low is wanted")


def _check_shared(column: Column) -> None:
    if not isinstance(column.name, str) or not column.name:
        raise InputError("a column has no name", "a text is wanted")
    if not isinstance(column.missing, bool):
        raise wrong(column.name, f"missing is {column.missing!r}", "true or false is wanted")
    check_kernel(f"column {column.name!r}", column.gamma, column.rho)
    if column.gamma is not None and not column.on_line:
        raise wrong(column.name, "it has no numbers for gamma", "rho is wanted")
    if column.rho is not None and not column.cardinality:
        raise wrong(column.name, "it has no levels for rho", "gamma is wanted, or missing = true")


def check_kernel(where: str, gamma: float | None, rho: float | None) -> None:
    """Refuse what `Kernel` would (`InputError`), and say where it stands."""
    if gamma is not None and not (_is_number(gamma, sys.float_info.max) and gamma > 0):
        raise InputError(f"{where}: gamma is {gamma!r}", "a number above 0 is wanted")
    if rho is not None and not (_is_number(rho, 1) and 0 <= rho < 1):
        raise InputError(f"{where}: rho is {rho!r}", "a number from 0 to below 1 is wanted")


def first_double(names: Iterable[str]) -> str | None:
    """The first name that was there before."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
