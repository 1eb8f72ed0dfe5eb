"""Types of columns of a private table, by name: numbers, levels, and those of `dates`."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.tables.column import (
    LARGEST_INTEGER,
    STEPS,
    UNREADABLE,
    Column,
    Value,
    Values,
    check_atoms,
    check_bounds,
    first_double,
    looked_up,
    marked,
    read_numbers,
    scaled,
    wrong,
)
from thesis_cli.privacy.tables.dates import Date, DateTime

DIGITS = 5
"""Least number of digits of their range to which reals are written."""
DECADES = 20
"""Largest number of decades between bounds of a logarithm with round numbers."""
MANTISSAS = (100, 200, 1), (100, 250, 2), (100, 200, 5)
"""First and last multiple, and what they are multiples of, for round numbers of three digits."""


class NumberColumn(Column):
    """A number between public bounds, with atoms."""

    low: float
    high: float

    blanks = (
        "# TODO low = \n# TODO high = \n# atoms = [0]  # values that many rows share, such as 0, 99 or a top code\n"
    )

    @property
    def line(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def near(self) -> Floats:
        return self.encoded(np.array(self.atoms, np.float64))

    def round_numbers(self) -> Floats:
        """Round numbers between the bounds, and the bounds.

        They are multiples of 1, 2 or 5 times a power of ten: `STEPS` to 2.5 `STEPS` of them, or, if
        logarithms are encoded, at most 1 % apart. Each is computed by one division, so that 3/10 is
        the number that is read from 0.3. If the bounds are too close for their size, the numbers are
        just equally spaced.
        """
        low, high = float(self.low), float(self.high)
        exponent = math.floor(math.log10((high - low) / STEPS))
        factor = max(f for f in (1, 2, 5) if f * 10.0**exponent <= (high - low) / STEPS or f == 1)
        if self.steps and exponent < 0:
            factor, exponent = 1, 0
        unit = factor * 10.0**exponent
        if max(-low, high) > 2**40 * unit or not -300 < exponent < 300:
            return np.asarray(low + np.arange(STEPS + 1) * ((high - low) / STEPS), np.float64)
        return _within(_multiples(math.ceil(low / unit), math.floor(high / unit) + 1, factor, exponent), low, high)

    def encoded(self, numbers: Floats) -> Floats:
        """Numbers in [0, 1] of numbers (N,), which are clamped to the bounds."""
        return scaled(numbers, self.low, self.high)

    def readable(self, numbers: Floats) -> npt.NDArray[np.bool_]:
        """Mask of the numbers that are values; NaN counts as one."""
        return np.ones(len(numbers), bool)

    def read(self, values: Values) -> Floats:
        numbers, unreadable = read_numbers(values)
        found = self.encoded(numbers)
        found[unreadable | ~self.readable(numbers)] = UNREADABLE
        return marked(found, numbers, self.atoms)

    def points(self, most: int, equal: int | None) -> tuple[Floats, bool]:
        if equal is None:
            return np.unique(self.encoded(self.round_numbers())), False
        return super().points(most, equal)


@dataclass(frozen=True)
class Real(NumberColumn):
    """A number between public bounds; encoded as (value - low) / (high - low), clamped to [0, 1].

    With `log`, the logarithms are encoded, which keeps both ends of a wide range, such as incomes,
    apart.

    Attributes
    ----------
    low, high : finite bounds, low < high; values beyond them are clamped, and no output reveals
        that they were.
    log : whether logarithms are encoded; low must be above 0.
    atoms : values such as 0 beside a logarithmic line or 99 for unknown; they are not clamped.
    name, missing, gamma, rho : as for `Column`.

    Raises
    ------
    InputError : an attribute is out of range; so do the other types of columns.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    log: bool = False
    atoms: tuple[float, ...] = ()
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "real"
    content: ClassVar[str] = "a number"

    def __post_init__(self) -> None:
        check_bounds(self, sys.float_info.max, "finite numbers")
        if not isinstance(self.log, bool):
            raise wrong(self.name, f"log is {self.log!r}", "it must be true or false")
        if self.log and not (self.low > 0 and math.log(self.low) < math.log(self.high)):
            raise wrong(self.name, f"log has bounds {self.low} and {self.high}", "low must be above 0, well below high")
        check_atoms(self, sys.float_info.max, float)
        super().__post_init__()

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        return cls("real", -1.0, 1.0), cls("scale", 1.0, 1e6, log=True, missing=True)

    def encoded(self, numbers: Floats) -> Floats:
        if self.log:
            return scaled(np.log(np.clip(numbers, self.low, self.high)), math.log(self.low), math.log(self.high))
        return super().encoded(numbers)

    def write(self, found: Floats) -> Values:
        """Values of numbers in [0, 1]: float64."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return np.clip(np.exp(low + found * (high - low)), self.low, self.high)
        return np.clip(self.low + found * (self.high - self.low), self.low, self.high)

    def of_numbers(self, numbers: Floats) -> Values:
        return numbers

    def with_gaps(self, values: Values, gaps: npt.NDArray[np.bool_]) -> Values:
        return np.where(gaps, math.nan, values)

    def rounded(self, values: Values) -> Values:
        """Values of few digits; atoms stay as they are."""
        if self.log:
            found = np.array([float(f"{x:.{DIGITS + 1}g}") for x in values.tolist()], np.float64)
        else:
            digits = max(0, DIGITS - math.floor(math.log10(self.high - self.low)))
            found = np.array([round(x, digits) for x in values.tolist()], np.float64)
        return np.where(np.isin(values, self.atoms), values, found) if self.atoms else found

    def round_numbers(self) -> Floats:
        if not self.log:
            return super().round_numbers()
        low, high = float(self.low), float(self.high)
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        if len(decades) > DECADES:
            return np.geomspace(low, high, STEPS + 1)
        parts = [_multiples(*part, exponent - 2) for exponent in decades for part in MANTISSAS]
        return _within(np.concatenate(parts), low, high)

    def edges(self, count: int) -> Floats:
        return np.geomspace(*self.line, count + 1) if self.log else super().edges(count)


@dataclass(frozen=True)
class Integer(NumberColumn):
    """A whole number between public bounds of at most 10**15: encoded as `Real`, decoded to the
    nearest one; `atoms` as for `Real`.
    """

    name: str
    low: int
    high: int
    missing: bool = False
    atoms: tuple[int, ...] = ()
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "integer"
    content: ClassVar[str] = "a whole number"
    steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_bounds(self, LARGEST_INTEGER, "whole numbers of at most 10**15")
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise wrong(self.name, f"low is {self.low!r}, high is {self.high!r}", "they must be whole numbers")
        check_atoms(self, LARGEST_INTEGER, int)
        super().__post_init__()

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        return cls("few", 0, 5), cls("many", -1000, 9000, missing=True)

    def readable(self, numbers: Floats) -> npt.NDArray[np.bool_]:
        return np.asarray((np.rint(numbers) == numbers) | np.isnan(numbers))

    def write(self, found: Floats) -> Values:
        """Values of numbers in [0, 1]: int64."""
        return self.low + np.rint(found * (self.high - self.low)).astype(np.int64)

    def points(self, most: int, equal: int | None) -> tuple[Floats, bool]:
        if self.high - self.low < most:
            return self.encoded(np.arange(self.low, self.high + 1, dtype=np.float64)), True
        return super().points(most, equal)

    def edges(self, count: int) -> Floats:
        """Edges of bins of as many whole numbers each."""
        step = -(-(self.high - self.low + 1) // count)
        return np.arange(self.low, self.high + step + 1, step, dtype=np.float64) - 0.5


def _multiples(first: int, end: int, factor: int, exponent: int) -> Floats:
    """Multiples k factor 10^exponent for k from `first` to `end` - 1."""
    k = np.arange(first, end) * float(factor)
    return np.asarray(k * 10.0**exponent if exponent >= 0 else k / 10.0**-exponent, np.float64)


def _within(numbers: Floats, low: float, high: float) -> Floats:
    """The bounds, and the numbers between them."""
    return np.concatenate([[low], numbers[(numbers > low) & (numbers < high)], [high]])


@dataclass(frozen=True)
class Category(Column):
    """One of a public list of levels: a code, or level / (L - 1) in [0, 1] if the levels are
    ordered.

    Attributes
    ----------
    levels : names of the levels: at least two, none empty, all different; in order, if they are
        ordered.
    missing : whether values may be missing: as one more level, or in a code column if ordered.
    ordered : whether neighbouring levels are alike; numbers decode to the nearest level.
    name, gamma, rho : as for `Column`.
    """

    name: str
    levels: tuple[str, ...] = field()
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
        super().__post_init__()

    @classmethod
    def parsed(cls, key: str, value: Any) -> Any:
        if key == "levels" and isinstance(value, list):
            return tuple(str(x) if type(x) is int else x for x in value)
        return super().parsed(key, value)

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        kind = cls("kind", ("a", "b", "c"), missing=True)
        place = cls("place", tuple(f"p{i}" for i in range(40)))
        return kind, place, cls("grade", ("low", "middle", "high"), ordered=True)

    @property
    def on_line(self) -> bool:
        return self.ordered

    @property
    def line(self) -> tuple[float, float]:
        return 0, len(self.levels) - 1

    @property
    def _unit(self) -> int:
        """Number of levels between two that are encoded as 0 and 1."""
        return len(self.levels) - 1 if self.ordered else 1

    def read(self, values: Values) -> Floats:
        return looked_up(values, {level: i / self._unit for i, level in enumerate(self.levels)}, str)

    def write(self, found: Floats) -> Values:
        """Names of the levels, as an array of str."""
        names: Values = np.array(self.levels, dtype=object)[np.rint(found * self._unit).astype(np.int64)]
        return names

    def numbers(self, values: Values) -> Floats:
        places = {level: float(i) for i, level in enumerate(self.levels)}
        return np.array([places.get(value, math.nan) for value in values.tolist()], np.float64)

    def value_of(self, numbers: Floats) -> Value:
        return Value(numbers, "text", self.levels, self.ordered)

    def points(self, most: int, equal: int | None) -> tuple[Floats, bool]:
        if self.ordered and (equal is None or len(self.levels) <= most):
            return self.read(np.array(self.levels, object)), True
        return super().points(most, equal)


@dataclass(frozen=True)
class Boolean(Column):
    """True or false (or yes and no, t and f, y and n, 1 and 0, in upper or lower case): a code of
    two levels.
    """

    name: str
    missing: bool = False
    rho: float | None = None

    kind: ClassVar[str] = "boolean"
    content: ClassVar[str] = "true or false"
    levels = ("False", "True")
    TEXTS: ClassVar[dict[str, float]] = {
        "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "0": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "1": 1.0,
    }  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        return (cls("flag"),)

    @property
    def line(self) -> tuple[float, float]:
        return 0, 1

    def read(self, values: Values) -> Floats:
        return looked_up(values, self.TEXTS, str.lower)

    def write(self, found: Floats) -> Values:
        """Values of codes, as an array of bool."""
        return found > 0

    def value_of(self, numbers: Floats) -> Value:
        return Value(numbers, "truth")


KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Real, Integer, Category, Boolean, Date, DateTime)}
"""Types of columns by their names in schemas. A type is one class and one row here."""
