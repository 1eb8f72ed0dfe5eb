"""Dates and times as columns of a private table, and as days since the start of 1970."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.tables.column import (
    MISSING_TEXTS,
    STEPS,
    UNREADABLE,
    Column,
    DateKind,
    Value,
    Values,
    scaled,
    text_of,
    wrong,
)

DAY = 86_400
EPOCH = dt.date(1970, 1, 1).toordinal()
SHOWN_DAYS = 3_000_000
"""Numbers of days beyond this have no text as a date."""


@dataclass(frozen=True)
class Date(Column):
    """A day between public bounds: encoded as `Integer`, by its number of days; decoded to ISO
    text.

    Values are dates of the storage, or ISO texts; of a time, the day counts as it is written.

    Attributes
    ----------
    low, high : ISO texts (dates are made texts), low before high; days beyond them are clamped.
    name, missing, gamma, rho : as for `Column`.
    """

    name: str
    low: str
    high: str
    missing: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[DateKind] = "date"
    content: ClassVar[str] = "a date such as 2020-01-31"
    steps: ClassVar[int] = 1
    blanks: ClassVar[str] = '# TODO low = "..."  # as in "2020-01-31"\n# TODO high = "..."\n'
    unit: ClassVar[str] = "D"

    def __post_init__(self) -> None:
        for key in ("low", "high"):
            given = getattr(self, key)
            number = self._number(given)
            if number is None or not math.isfinite(number) or not isinstance(given, str | dt.date):
                shown = given.isoformat() if isinstance(given, dt.time) else repr(given)
                raise wrong(self.name, f"{key} is {shown}", f'it must be {self.content}, as in {key} = "2020-01-31"')
            object.__setattr__(self, key, self._texts(np.array([number]))[0])
        if not self._ends[0] < self._ends[1]:
            raise wrong(self.name, f"low {self.low} is not before high {self.high}", "low must be before high")
        super().__post_init__()

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        return (cls("day", "2000-01-01", "2009-12-31"),)

    @property
    def _ends(self) -> tuple[int, int]:
        """Numbers of days (of seconds, if times count) of the bounds since the start of 1970."""
        return int(self._number(self.low) or 0), int(self._number(self.high) or 0)

    @property
    def line(self) -> tuple[float, float]:
        """Days of the bounds since the start of 1970."""
        first, last = self._ends
        return first / self.steps, last / self.steps

    def read(self, values: Values) -> Floats:
        if values.dtype.kind == "M":
            numbers = values.astype(f"M8[{self.unit}]").astype(np.int64).astype(np.float64)
            numbers[np.isnat(values)] = math.nan
            return scaled(numbers, *self._ends)
        if values.dtype.kind not in "OU":
            return np.where(values != values, math.nan, UNREADABLE)
        found = [self._number(value) for value in values.tolist()]
        numbers = scaled(np.array([math.nan if x is None else x for x in found], np.float64), *self._ends)
        return np.where(np.array([x is None for x in found], bool), UNREADABLE, numbers)

    def write(self, found: Floats) -> Values:
        """ISO texts of numbers in [0, 1], as an array of objects."""
        first, last = self._ends
        return self._texts(first + np.rint(found * (last - first)))

    def numbers(self, values: Values) -> Floats:
        """Days since the start of 1970 of decoded values; NaN if missing."""
        found = [math.nan if value is None else self._number(value) for value in values.tolist()]
        return np.array(found, np.float64) / self.steps

    def value_of(self, numbers: Floats) -> Value:
        return Value(numbers, "number", date=self.kind)

    def points(self, most: int, equal: int | None) -> tuple[Floats, bool]:
        span = self._ends[1] - self._ends[0]
        if span < (most if equal else 2 * STEPS):
            return np.arange(span + 1) / span, True
        return super().points(most, equal)

    def _texts(self, numbers: Floats) -> Values:
        return np.datetime_as_string(numbers.astype(np.int64).astype(f"M8[{self.unit}]")).astype(object)

    def _number(self, value: Any) -> float | None:
        """Days since 1970; NaN if missing, None if the value is no date."""
        return _read(value, _day)


@dataclass(frozen=True)
class DateTime(Date):
    """A date with a time, to the second: as `Date`, by its number of seconds. Times with an offset
    are turned to UTC; others are taken as they are.
    """

    kind: ClassVar[DateKind] = "datetime"
    content: ClassVar[str] = "a date or time such as 2020-01-31T12:00:00"
    steps: ClassVar[int] = DAY
    unit: ClassVar[str] = "s"

    @classmethod
    def examples(cls) -> tuple[Column, ...]:
        return (cls("time", "2020-01-01T00:00:00", "2020-12-31T00:00:00"),)

    def _number(self, value: Any) -> float | None:
        """Seconds since 1970; NaN if missing, None if the value is no date."""
        return _read(value, _second)


def day_of(text: str) -> float | None:
    """Days since the start of 1970, with a fraction for a time, of an ISO text; None if it is
    none.
    """
    found = _read(text, _second)
    return None if found is None or not math.isfinite(found) else found / DAY


def text_of_day(days: float, kind: str) -> str:
    """ISO text of days since the start of 1970: of the nearest day for kind `date`, of the nearest
    second for `datetime`; empty if they are far away or no number.
    """
    if not abs(days) < SHOWN_DAYS:
        return ""
    return str(np.datetime64(round(days), "D") if kind == "date" else np.datetime64(round(days * DAY), "s"))


def _read(value: Any, number: Callable[[dt.date], float]) -> float | None:
    """Number of a value's date; NaN if it is missing, infinite for `infinity`, None if it is no
    date.
    """
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("M8[s]").item()
    if isinstance(value, str):
        text = value.strip()
        if text in MISSING_TEXTS:
            return math.nan
        if text in ("infinity", "-infinity"):  # as PostgreSQL has them
            return float(text)
        try:
            return number(dt.datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return None
    if isinstance(value, dt.date) and value == value:  # not NaT
        return number(value)
    return math.nan if text_of(value) in MISSING_TEXTS else None


def _day(value: dt.date) -> float:
    return value.toordinal() - EPOCH


def _second(value: dt.date) -> float:
    found = DAY * _day(value)
    if isinstance(value, dt.datetime):
        found += 3600 * value.hour + 60 * value.minute + value.second
        offset = value.utcoffset()
        found -= 0 if offset is None else math.floor(offset.total_seconds())
    return found
