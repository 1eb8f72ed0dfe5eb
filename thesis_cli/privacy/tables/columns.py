"""Kinds of columns of a private table: their public description, and the encoding and decoding of
their values.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.tables.column_values import (
    LARGEST_INTEGER,
    ColumnBase,
    Values,
    check_bounds,
    check_shared,
    first_double,
    looked_up,
    read_numbers,
    scaled,
    wrong,
)
from thesis_cli.privacy.tables.dates import Date, DateTime

DIGITS = 5
"""Least number of digits of their range to which reals are written."""


@dataclass(frozen=True)
class Real(ColumnBase):
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
    unit: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_bounds(self, sys.float_info.max, "finite numbers")
        if not isinstance(self.log, bool):
            raise wrong(self.name, f"log is {self.log!r}", "it must be true or false")
        if self.log and not (self.low > 0 and math.log(self.low) < math.log(self.high)):
            raise wrong(self.name, f"log has bounds {self.low} and {self.high}", "low must be above 0, well below high")
        check_shared(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest number."""
        return self.low, self.high

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1]; NaN if the value is missing, below 0 if it is not a
        number.
        """
        numbers, unreadable = read_numbers(values)
        if self.log:
            logs = np.log(np.clip(numbers, self.low, self.high))
            return scaled(logs, math.log(self.low), math.log(self.high), unreadable)
        return scaled(numbers, self.low, self.high, unreadable)

    def write(self, found: Floats) -> Values:
        """Values of coordinates (N,) in [0, 1]: float64."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return np.clip(np.exp(low + found * (high - low)), self.low, self.high)
        return np.clip(self.low + found * (self.high - self.low), self.low, self.high)

    def values(self, numbers: Floats) -> Values:
        """The numbers themselves."""
        return numbers

    def rounded(self, values: Values) -> Values:
        """Values of few digits, as files of released rows have them."""
        if self.log:
            return np.array([float(f"{x:.{DIGITS + 1}g}") for x in values.tolist()], np.float64)
        digits = max(0, DIGITS - math.floor(math.log10(self.high - self.low)))
        return np.array([round(x, digits) for x in values.tolist()], np.float64)


@dataclass(frozen=True)
class Integer(ColumnBase):
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
        check_bounds(self, LARGEST_INTEGER, "whole numbers of at most 10**15")
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise wrong(self.name, f"low is {self.low!r}, high is {self.high!r}", "they must be whole numbers")
        check_shared(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest number."""
        return self.low, self.high

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1]; NaN if the value is missing, below 0 if it is not a whole
        number.
        """
        numbers, unreadable = read_numbers(values)
        return scaled(numbers, self.low, self.high, unreadable | (np.rint(numbers) != numbers) & ~np.isnan(numbers))

    def write(self, found: Floats) -> Values:
        """Values of coordinates (N,) in [0, 1]: int64."""
        return self.low + np.rint(found * (self.high - self.low)).astype(np.int64)


@dataclass(frozen=True)
class Category(ColumnBase):
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
    sort: ClassVar[Literal["text"]] = "text"

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
        check_shared(self)

    @property
    def on_line(self) -> bool:
        """Whether values are encoded as numbers."""
        return self.ordered

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        return 2 * self.missing if self.ordered else len(self.levels) + self.missing

    @property
    def bounds(self) -> tuple[float, float]:
        """Places of the first and the last level."""
        return 0, len(self.levels) - 1

    def numbers(self, values: Values) -> Floats:
        """Places (N,) of levels; NaN if missing."""
        places = {level: float(i) for i, level in enumerate(self.levels)}
        return np.array([places.get(value, math.nan) for value in values.tolist()], np.float64)

    def values(self, numbers: Floats) -> Values:
        """Names of the levels at some places."""
        names: Values = np.array(self.levels, dtype=object)[numbers.astype(np.int64)]
        return names

    def read(self, values: Values) -> Floats:
        """Numbers of levels (N,), in [0, 1] if ordered; NaN if the value is missing, below 0 if it
        is not a level.
        """
        unit = len(self.levels) - 1 if self.ordered else 1
        return looked_up(values, {level: i / unit for i, level in enumerate(self.levels)}, str)

    def write(self, found: Floats) -> Values:
        """Names of the levels, as an array of str."""
        unit = len(self.levels) - 1 if self.ordered else 1
        names: Values = np.array(self.levels, dtype=object)[np.rint(found * unit).astype(np.int64)]
        return names


@dataclass(frozen=True)
class Boolean(ColumnBase):
    """True or false (or yes and no, t and f, y and n, 1 and 0, in upper or lower case): a code of
    two levels.
    """

    name: str
    missing: bool = False
    rho: float | None = None

    kind: ClassVar[str] = "boolean"
    content: ClassVar[str] = "true or false"
    on_line: ClassVar[bool] = False
    sort: ClassVar[Literal["truth"]] = "truth"
    gamma: ClassVar[None] = None
    TEXTS: ClassVar[dict[str, float]] = {
        "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "0": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "1": 1.0,
    }  # fmt: skip

    def __post_init__(self) -> None:
        check_shared(self)

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column."""
        return 2 + self.missing

    @property
    def bounds(self) -> tuple[float, float]:
        """Numbers of false and true."""
        return 0, 1

    def values(self, numbers: Floats) -> Values:
        """Truth values of numbers."""
        return numbers > 0

    def read(self, values: Values) -> Floats:
        """Codes (N,); NaN if the value is missing, below 0 if it is neither true nor false."""
        return looked_up(values, self.TEXTS, str.lower)

    def write(self, found: Floats) -> Values:
        """Values of codes, as an array of bool."""
        return found > 0


Column = Real | Integer | Category | Boolean | Date
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Real, Integer, Category, Boolean, Date, DateTime)}
