"""The base of all types of columns: all that schemas, releases, measurements and queries ask of one.

Before it stand values as numbers (what counts as missing, as unreadable, and as a text), and checks that the
types share.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING as REQUIRED
from dataclasses import Field, dataclass, fields
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, nearest

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


DateKind = Literal["", "date", "datetime"]
"""Meaning of a number of days since the start of 1970; empty if it is a plain number."""

STEPS = 2000
"""Least number of round numbers on a column's line, unless it has fewer whole numbers."""


@dataclass(frozen=True)
class Value:
    """Values of a column or of an expression.

    Attributes
    ----------
    data : numbers, 1 for true and 0 for false, or numbers of levels; NaN if missing. Shape (rows,),
        or () for a constant.
    kind : which of the three they are.
    levels : levels of a category; empty otherwise.
    ordered : whether the levels are in order.
    date : kind of date or time that a number of days since the start of 1970 stands for; empty for
        any other number.
    """

    data: Floats
    kind: Literal["number", "truth", "text"]
    levels: tuple[str, ...] = ()
    ordered: bool = False
    date: DateKind = ""


class Column(ABC):
    """One column of a private table. A type of columns is a subclass and a row of `columns.KINDS`.

    A subclass is a frozen dataclass whose fields are the keys of the column in a schema, in the
    order in which they are written. It defines what is abstract here, and overrides what differs.

    A row is encoded as a number in [0, 1] for each column `on_line`, and a code for each column
    that has a `cardinality`. Expressions see the numbers of `numbers`: on a line these are the values
    themselves or, for dates, days.

    Attributes
    ----------
    name : name of the table's column.
    missing : whether values may be missing; a missing value is the last level of the code column,
        and 1/2 on the line.
    gamma : gamma of the kernel, per squared unit of the encoded number; by default the schema's.
    rho : kernel between two rows of different codes; by default the schema's.
    levels : names of all values, in the order of their numbers; empty if values are numbers.
    atoms : rising numbers that many rows share, on the line or beyond. Each has a level of the code
        column: 0 is a number on the line, k > 0 the k-th atom.
    log : whether equal ratios are equally far apart on the line.
    kind : type of the column, in a schema.
    content : description of a value, for errors.
    steps : number of values to a unit of the line: 1 if they are whole; 0 if values are levels, or
        any numbers between the bounds.
    blanks : comments of a schema's template, one for each line that its author must fill in.
    """

    name: str
    missing: bool
    rho: float | None
    gamma: float | None = None
    levels: tuple[str, ...] = ()
    atoms: tuple[float, ...] = ()
    log: bool = False

    kind: ClassVar[str]
    content: ClassVar[str]
    steps: ClassVar[int] = 0
    blanks: ClassVar[str] = ""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of the subclass

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("a column has no name", "give it a text as its name")
        if not isinstance(self.missing, bool):
            raise wrong(self.name, f"missing is {self.missing!r}", "it must be true or false")
        check_kernel(f"column {self.name!r}", self.gamma, self.rho)
        if self.gamma is not None and not self.on_line:
            raise wrong(self.name, "gamma is for numbers", "give rho")
        if self.rho is not None and not self.cardinality:
            raise wrong(self.name, "rho is for levels", "give gamma, or missing = true")

    @classmethod
    def parse(cls, name: str, entry: Mapping[str, Any]) -> Column:
        """Column of a TOML table `[columns.NAME]`, given without its type.

        Raises
        ------
        InputError : a key is unknown, or an attribute is missing or out of range.
        """
        keys = {f.name: f.default for f in fields(cls) if f.name != "name"}
        for key in entry:
            if key not in keys:
                raise InputError(f"column {name!r}: unknown key {key!r}", nearest(key, ("type", *keys), "the keys are"))
        for key, default in keys.items():
            if default is REQUIRED and key not in entry:
                raise wrong(name, f"it has no {key}", f"write a public one: {key} = ...")
        found: Column = cls(**{"name": name, **{key: cls.parsed(key, value) for key, value in entry.items()}})
        return found

    @classmethod
    def parsed(cls, key: str, value: Any) -> Any:
        """Attribute of a value in TOML."""
        return tuple(value) if key == "atoms" and isinstance(value, list) else value

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Column, ...]:
        """Columns that audits release: one for each way in which such a column is encoded."""

    @property
    def on_line(self) -> bool:
        """Whether values are encoded as numbers."""
        return not self.levels

    @property
    def cardinality(self) -> int:
        """Number of levels of the code column; 0 if it has none."""
        if not self.on_line:
            return len(self.levels) + self.missing
        return 1 + len(self.atoms) + self.missing if self.atoms or self.missing else 0

    @property
    @abstractmethod
    def line(self) -> tuple[float, float]:
        """Least and largest number that expressions see, but for atoms; other values are clamped."""

    @property
    def beyond(self) -> tuple[float, ...]:
        """Atoms that are not within the line."""
        low, high = self.line
        return tuple(atom for atom in self.atoms if not low <= atom <= high)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest number that expressions see."""
        low, high = self.line
        return min((low, *self.atoms)), max((high, *self.atoms))

    @property
    def size(self) -> int | None:
        """Number of values on the line, or of levels; None if the line has any number."""
        low, high = self.line
        return len(self.levels) or (round((high - low) * self.steps) + 1 if self.steps else None)

    @property
    def near(self) -> Floats:
        """Encoded number nearest to each atom, shape (atoms,)."""
        return np.zeros(0)

    def domain(self) -> list[Any]:
        """All values, in order, of a column that has a `size`; atoms beyond the line and a missing
        value come last.
        """
        count = self.size or 0
        found = self.write(np.linspace(0, 1, count) if self.on_line else np.arange(count, dtype=np.float64))
        return [*found.tolist(), *self.beyond, *[None] * self.missing]

    def points(self, most: int, equal: int | None) -> tuple[Floats, bool]:
        """Encoded numbers on the line, from 0 to 1, at which public cells of numbers end, and whether
        no other number can occur; none for a column that is not on a line.

        Parameters
        ----------
        most : largest number of values that have cells of their own.
        equal : number of equal cells, if there are more values; round numbers if None.
        """
        return np.linspace(0, 1, (equal or STEPS) + 1) if self.on_line else np.zeros(0), False

    def edges(self, count: int) -> Floats:
        """Edges of about `count` bins of a figure, on the line."""
        return np.linspace(*self.line, count + 1)

    @abstractmethod
    def read(self, values: Values) -> Floats:
        """Numbers in [0, 1] of values (N,), or numbers of levels off the line; 2 + k for atom k, NaN
        if the value is missing, below 0 if it is none of the column.
        """

    @abstractmethod
    def write(self, found: Floats) -> Values:
        """Decoded values (N,) of numbers in [0, 1], or of numbers of levels off the line."""

    def numbers(self, values: Values) -> Floats:
        """Numbers (N,) that expressions see of decoded values; NaN if missing."""
        return finite(values.astype(np.float64))

    def of_numbers(self, numbers: Floats) -> Values:
        """Decoded values (N,) of numbers on the line that expressions see."""
        low, high = self.line
        return self.write((numbers - low) / (high - low) if self.on_line else numbers)

    def value_of(self, numbers: Floats) -> Value:
        """Numbers with the meaning that expressions give them."""
        return Value(numbers, "number")

    def nearest(self, numbers: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Numbers of the column that are nearest to others, and a mask of the others that it may
        have.
        """
        steps = np.rint(numbers * self.steps) / self.steps if self.steps else numbers
        near = np.clip(steps, *self.line)
        same = (steps == numbers) | (self.steps > 1)  # parts of a unit are rounded
        return near, np.where(np.isnan(numbers), self.missing, (near == steps) & same)

    def with_gaps(self, values: Values, gaps: npt.NDArray[np.bool_]) -> Values:
        """Values with None where they are missing, as objects."""
        found: Values = values.astype(object)
        found[gaps] = None
        return found

    def rounded(self, values: Values) -> Values:
        """Values as files of released rows have them."""
        return values
