"""The base of all types of columns: all that schemas, releases, measurements and queries ask of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING as REQUIRED
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest
from thesis_cli.privacy.tables.column_values import Values, check_kernel, finite, wrong

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
    todo : lines of a schema's template that such a column must have, as comments.
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
    todo: ClassVar[str] = ""
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
