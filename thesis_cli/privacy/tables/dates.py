"""Dates and times as columns of a private table, and as days since the start of 1970."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.tables.column_values import (
    MISSING_TEXTS,
    UNREADABLE,
    ColumnBase,
    DateKind,
    Values,
    check_shared,
    scaled,
    text_of,
    wrong,
)

DAY = 86_400
EPOCH = dt.date(1970, 1, 1).toordinal()
SHOWN_DAYS = 3_000_000
"""Numbers of days beyond this have no text as a date."""


@dataclass(frozen=True)
class Date(ColumnBase):
    """A day between public bounds: encoded as `Integer`, by its number of days; decoded to ISO
    text.

    Values are dates of the storage, or ISO texts; of a time, the day counts as it is written.

    Attributes
    ----------
    low, high : ISO texts (dates are made texts), low before high; days beyond them are clamped.
    name, missing, gamma, rho : as for `Real`.
    """

    name: str
    low: str
    high: str
    missing: bool = False
    gamma: float | None = None
    rho: float | None = None

    kind: ClassVar[str] = "date"
    date: ClassVar[DateKind] = "date"
    content: ClassVar[str] = "a date such as 2020-01-31"
    on_line: ClassVar[bool] = True
    storage: ClassVar[str] = "M8[D]"

    def __post_init__(self) -> None:
        for key in ("low", "high"):
            given = getattr(self, key)
            number = self._number(given)
            if number is None or not math.isfinite(number) or not isinstance(given, str | dt.date):
                shown = given.isoformat() if isinstance(given, dt.time) else repr(given)
                raise wrong(self.name, f"{key} is {shown}", f'it must be {self.content}, as in {key} = "2020-01-31"')
            object.__setattr__(self, key, self._texts(np.array([number]))[0])
        if not self.first < self.last:
            raise wrong(self.name, f"low {self.low} is not before high {self.high}", "low must be before high")
        check_shared(self)

    @property
    def first(self) -> int:
        """Number of days (of seconds, if times count) of `low` since the start of 1970."""
        return int(self._number(self.low) or 0)

    @property
    def last(self) -> int:
        """Number of days (of seconds, if times count) of `high` since the start of 1970."""
        return int(self._number(self.high) or 0)

    @property
    def bounds(self) -> tuple[float, float]:
        """First and last day since the start of 1970, with a fraction for a time."""
        return self.first / self.unit, self.last / self.unit

    def read(self, values: Values) -> Floats:
        """Coordinates (N,) in [0, 1]; NaN if the value is missing, below 0 if it is not a date."""
        if values.dtype.kind == "M":
            numbers = values.astype(self.storage).astype(np.int64).astype(np.float64)
            numbers[np.isnat(values)] = math.nan
            return scaled(numbers, self.first, self.last, np.zeros(len(values), bool))
        if values.dtype.kind not in "OU":
            return np.where(values != values, math.nan, UNREADABLE)
        found = [self._number(value) for value in values.tolist()]
        numbers = np.array([math.nan if x is None else x for x in found], np.float64)
        return scaled(numbers, self.first, self.last, np.array([x is None for x in found], bool))

    def write(self, found: Floats) -> Values:
        """ISO texts of coordinates (N,) in [0, 1], as an array of objects."""
        return self._texts(self.first + np.rint(found * (self.last - self.first)))

    def numbers(self, values: Values) -> Floats:
        """Days since the start of 1970 of values that `write` made; NaN if missing."""
        found = [math.nan if value is None else self._number(value) for value in values.tolist()]
        return np.array(found, np.float64) / self.unit

    def values(self, numbers: Floats) -> Values:
        """ISO texts of days since the start of 1970, as an array of objects."""
        return self._texts(np.rint(numbers * self.unit))

    def _texts(self, numbers: Floats) -> Values:
        return np.datetime_as_string(numbers.astype(np.int64).astype(self.storage)).astype(object)

    def _number(self, value: Any) -> float | None:
        """Days since 1970; NaN if missing, None if the value is no date."""
        return _read(value, _day)


@dataclass(frozen=True)
class DateTime(Date):
    """A date with a time, to the second: as `Date`, by its number of seconds. Times with an offset
    are turned to UTC; others are taken as they are.
    """

    kind: ClassVar[str] = "datetime"
    date: ClassVar[DateKind] = "datetime"
    content: ClassVar[str] = "a date or time such as 2020-01-31T12:00:00"
    storage: ClassVar[str] = "M8[s]"
    unit: ClassVar[int] = DAY

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
