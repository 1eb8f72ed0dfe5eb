"""Measurements that several experiments make, and claims about printed times.

Most measures select rows of a result and reduce them to one number:
`select("samples > 4", method="plain").over(select(method="exact"), "samples").furthest(1.0)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.reproduction.experiment import Claim, Measure, Measurement

if TYPE_CHECKING:
    import pandas as pd

FACTOR = 2.0
"""Factor between a printed time and the nearest one that is told from it."""


Column = str | float | Callable[["pd.DataFrame"], Any]
"""Name of a column, one number for all rows, or a function of the rows."""


@dataclass(frozen=True)
class SelectedRows:
    """Selected rows of a result, each with a number in the column `value` and its `standard_error`.

    Methods select and transform rows, or reduce them to a measure, which gives None if no row is
    left.

    Attributes
    ----------
    choose : result -> rows.
    """

    choose: Callable[[pd.DataFrame], pd.DataFrame]

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        return self.choose(frame)

    def then(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> SelectedRows:
        """A function of the rows in their place."""
        return SelectedRows(lambda frame: change(self.choose(frame)))

    def where(self, query: str = "", **equal: Any) -> SelectedRows:
        """Rows for which a query of pandas holds, and whose columns equal a value, or one of a list."""
        return self.then(lambda found: _where(found, query, equal))

    def number(self, value: Column, standard_error: Column = 0.0) -> SelectedRows:
        """The same rows with other numbers."""
        return self.then(
            lambda found: found.assign(value=_column(found, value), standard_error=_column(found, standard_error))
        )

    def per(self, unit: Column) -> SelectedRows:
        """Numbers and standard errors in a unit."""
        return self.number(
            lambda found: found["value"] / _column(found, unit),
            lambda found: found["standard_error"] / _column(found, unit),
        )

    def minus(self, expected: Column) -> SelectedRows:
        """Numbers less others without errors."""
        return self.number(lambda found: found["value"] - _column(found, expected), "standard_error")

    def over(self, other: SelectedRows, *on: str) -> SelectedRows:
        """Numbers over those of the rows of `other` that have the same values in the columns `on`; every
        row with every other if there are none."""

        def ratios(frame: pd.DataFrame) -> pd.DataFrame:
            pairs = _pairs(self(frame), other(frame), on)
            ratio = pairs["value"] / pairs["value_other"]
            first, second = (pairs[f"standard_error{of}"] / pairs[f"value{of}"] for of in ("", "_other"))
            return pairs.assign(value=ratio, standard_error=ratio * np.hypot(first, second))

        return SelectedRows(ratios)

    def less(self, other: SelectedRows, *on: str) -> SelectedRows:
        """Numbers less those of the rows of `other`, as in `over`."""

        def differences(frame: pd.DataFrame) -> pd.DataFrame:
            pairs = _pairs(self(frame), other(frame), on)
            error = np.hypot(pairs["standard_error"], pairs["standard_error_other"])
            return pairs.assign(value=pairs["value"] - pairs["value_other"], standard_error=error)

        return SelectedRows(differences)

    def means(self, *by: str, least: int = 1) -> SelectedRows:
        """Mean number of the rows that agree in the columns `by`, with its standard error; none of fewer
        than `least` rows."""

        def grouped(found: pd.DataFrame) -> pd.DataFrame:
            means = found.groupby(list(by))["value"].agg(value="mean", standard_error="sem", count="size").reset_index()
            return means[means["count"] >= least]

        return self.then(grouped)

    def first(self, *by: str) -> SelectedRows:
        """The first of the rows that agree in the columns `by`."""
        return self.then(lambda found: found.groupby(list(by)).head(1))

    def last(self, *by: str) -> SelectedRows:
        """The last of the rows that agree in the columns `by`."""
        return self.then(lambda found: found.groupby(list(by)).tail(1))

    def best(self, *by: str) -> SelectedRows:
        """The row of the least number among those that agree in the columns `by`."""
        return self.then(lambda found: found.loc[found.groupby(list(by))["value"].idxmin()])

    def read(self, error: float = 0.0, place: int = 0) -> Measure:
        """The first number, or another one."""
        return self._measure(lambda found: _at(found, place, error, weakest=False))

    def mean(self, least: int = 2) -> Measure:
        """Mean number; its standard error is that of the spread of at least `least` numbers."""

        def mean(found: pd.DataFrame) -> Measurement | None:
            values = found["value"].to_numpy(float)
            return Measurement(values.mean(), values.std(ddof=1) / len(values) ** 0.5) if len(values) >= least else None

        return self._measure(mean)

    def pooled(self) -> Measure:
        """Mean of independent numbers."""

        def pooled(found: pd.DataFrame) -> Measurement:
            return Measurement(found["value"].mean(), (found["standard_error"] ** 2).sum() ** 0.5 / len(found))

        return self._measure(pooled)

    def largest(self, error: float = 0.0, weakest: bool = True) -> Measure:
        """The largest number; with `weakest` the errors of all others count."""
        return self._measure(lambda found: _at(found, int(found["value"].argmax()), error, weakest))

    def least(self, error: float = 0.0, weakest: bool = True) -> Measure:
        """The least number; with `weakest` the errors of all others count."""
        return self._measure(lambda found: _at(found, int(found["value"].argmin()), error, weakest))

    def most_off(self, expected: float, error: float = 0.0, weakest: bool = True) -> Measure:
        """The number that is furthest from what is expected, whatever the standard errors."""
        return self._measure(lambda found: _at(found, int((found["value"] - expected).abs().argmax()), error, weakest))

    def furthest(self, expected: float = 0.0, floor: float = 0.0) -> Measure:
        """The number that misses what is expected by the most standard errors, which are `floor` at least."""
        return self._measure(lambda found: furthest(found["value"], found["standard_error"].clip(floor), expected))

    def lowest(self, limit: float = 0.0, sign: float = 1.0) -> Measure:
        """The number that is fewest standard errors above a limit, or with `sign` -1 below it."""

        def lowest(found: pd.DataFrame) -> Measurement:
            errors = found["standard_error"].clip(lower=1e-12)
            return _at(found, int((sign * (found["value"] - limit) / errors).argmin()))

        return self._measure(lowest)

    def _measure(self, reduce: Callable[[pd.DataFrame], Measurement | None]) -> Measure:
        def measure(frame: pd.DataFrame) -> Measurement | None:
            found = self(frame)
            return None if found.empty else reduce(found)

        return measure


def select(query: str = "", /, **equal: Any) -> SelectedRows:
    """Rows of a result for which a query of pandas holds, and whose columns equal a value, or one of a
    list."""
    return SelectedRows(lambda frame: _where(frame, query, equal))


def together(*parts: SelectedRows) -> SelectedRows:
    """The rows of several selections."""

    def found(frame: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd

        return pd.concat([part(frame) for part in parts])

    return SelectedRows(found)


def _where(found: pd.DataFrame, query: str, equal: dict[str, Any]) -> pd.DataFrame:
    alike = [found[name].isin(v) if isinstance(v, list) else found[name] == v for name, v in equal.items()]
    if alike:  # one selection: each copies all columns
        found = found[np.logical_and.reduce(alike)]
    return found.query(query) if query else found


def _column(found: pd.DataFrame, column: Column) -> Any:
    if callable(column):
        return column(found)
    return found[column] if isinstance(column, str) else column


def _numbers(found: pd.DataFrame) -> pd.DataFrame:
    return found[["value", "standard_error"]]


def _pairs(first: pd.DataFrame, second: pd.DataFrame, on: tuple[str, ...]) -> pd.DataFrame:
    """Rows of both, side by side; a number of the second has the suffix `_other`."""
    others = {name: f"{name}_other" for name in ("value", "standard_error")}
    first = first.drop(columns=list(others.values()), errors="ignore")
    second = second[[*on, *others]].rename(columns=others)
    return first.merge(second, on=list(on)) if on else first.merge(second, how="cross")


def _at(found: pd.DataFrame, place: int, error: float = 0.0, weakest: bool = True) -> Measurement:
    value, standard_error = _numbers(found).iloc[place]
    return Measurement(value, standard_error, error, found["standard_error"].max() if weakest else 0.0)


def furthest(values: ArrayLike, standard_errors: ArrayLike, expected: ArrayLike = 0.0) -> Measurement:
    """The number that misses what is expected of it by the most standard errors.

    Parameters
    ----------
    values, standard_errors : the numbers, and the standard error of each.
    expected : the number that all of them should be.

    Raises
    ------
    ValueError : there is no number, or a standard error is not positive.
    """
    numbers, errors = np.broadcast_arrays(np.asarray(values, dtype=float), np.asarray(standard_errors, dtype=float))
    if numbers.size == 0 or not np.all(errors > 0):
        raise ValueError("there must be numbers, with positive standard errors")
    misses = np.abs(numbers - expected) / errors
    worst = np.unravel_index(np.argmax(misses), misses.shape)  # the first nan, if there is one
    return Measurement(float(numbers[worst]), float(errors[worst]), weakest=float(errors.max()))


def lowest(values: ArrayLike, standard_errors: ArrayLike, sign: float = 1.0) -> Measurement | None:
    """The number that is fewest standard errors above 0, or with `sign` -1 below it; None if there
    is no number.
    """
    numbers, errors = np.asarray(values, dtype=float), np.asarray(standard_errors, dtype=float)
    if not numbers.size:
        return None
    at = int((sign * numbers / errors).argmin())
    return Measurement(float(numbers[at]), float(errors[at]), weakest=float(errors.max()))


def measured(function: Callable[..., tuple[float, ...] | None], *what: Any) -> Measure:
    """The measurement of a function that gives a number, its standard error, and perhaps that of the
    source's own number, or None, for a result and `what`."""
    return measure(function)(*what)


def printed(
    name: str, source: str, statement: str, number: float, unit: float, measure: Measure, text: str, **more: Any
) -> Claim:
    """The claim that a time or a ratio is as printed.

    Parameters
    ----------
    unit : of its last digit.
    measure : measures its log10.
    text : the number with its unit.
    """
    return Claim(
        name,
        source,
        "published",
        "=",
        log10(number),
        measure,
        statement,
        rounding=log10(1 + unit / 2 / number),
        scale=log10(FACTOR),
        printed=text,
        **more,
    )


def measure(function: Callable[..., Measurement | tuple[float, ...] | None]) -> Callable[..., Measure]:
    """Decorator that makes of f(result, *what) a function of `what` that gives a measure; f may return a
    number, its standard error, and that of the source's own number."""

    @wraps(function)
    def given(*what: Any, **named: Any) -> Measure:
        def of(frame: pd.DataFrame) -> Measurement | None:
            found = function(frame, *what, **named)
            if isinstance(found, tuple):
                value, error, *sources = found
                return Measurement(value, error, sources=sum(sources))
            return found

        return of

    return given


def pooled_by(*keys: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Change of rows to the means of independent numbers that agree in some columns."""

    def means(found: pd.DataFrame) -> pd.DataFrame:
        groups = found.assign(square=found["standard_error"] ** 2).groupby(list(keys), sort=False)
        errors = groups["square"].sum() ** 0.5 / groups.size()
        return groups["value"].mean().to_frame().assign(standard_error=errors).reset_index()

    return means


def labelled(found: Any, columns: Any = None, /, **task: Any) -> pd.DataFrame:
    """A table of rows whose first columns say which task they belong to."""
    import pandas as pd

    frame = pd.DataFrame(found, columns=columns)
    for column, content in reversed(task.items()):
        frame.insert(0, column, content)
    return frame
