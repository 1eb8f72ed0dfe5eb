"""Measurements for claims from a table of errors of bounds (`studies.perturbation.error_summary`).

The table has a row for each method, or for the difference of two, at each kind, field and coupling
of random models. Methods may be limited to a kind, a field, and couplings between two numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from thesis_cli.reproduction.experiment import Measure, Measurement
from thesis_cli.reproduction.measuring import SelectedRows, measure, select
from thesis_cli.studies.perturbation.error_summary import ROUNDING

Range = tuple[float, float]

ALL: Range = (0.0, np.inf)
"""All couplings above 0."""


def cells(method: str | list[str], less: str = "", *, couplings: Range = ALL, **where: Any) -> SelectedRows:
    """Mean errors of a method, or of its difference from another, over the models of each cell."""
    low, high = couplings

    def chosen(frame: pd.DataFrame) -> pd.DataFrame:
        rows = select(method=method, **where)(frame)
        return rows[(rows.less.fillna("") == less) & (rows.coupling > low) & (rows.coupling < high)]

    return SelectedRows(chosen).number("mean", "mean_error")


def least_mean(method: str, less: str = "", *, sign: float = 1.0, **where: Any) -> Measure:
    """Mean error over models where it is fewest standard errors above 0, or below with `sign` -1."""
    return cells(method, less, **where).lowest(sign=sign)


def pooled_mean(method: str, less: str = "", **where: Any) -> Measure:
    """Mean error over models, couplings and fields."""
    return cells(method, less, **where).pooled()


def nearest_model(method: str) -> Measure:
    """The error of a model that is furthest below 0 in its own standard errors."""
    return cells(method).number("below", "below_error").lowest()


def extreme(methods: list[str], column: str, **where: Any) -> Measure:
    """The `lowest` or `highest` error of all models, of bounds without noise."""
    found = cells(methods, couplings=(-1.0, np.inf), **where).number(column)
    return found.least(error=ROUNDING) if column == "lowest" else found.largest(error=ROUNDING)


@measure
def share(
    frame: pd.DataFrame, method: str, column: str, less: str = "", *, one_less: bool = False, **where: Any
) -> Measurement | None:
    """Share of all models, from a column of shares, or with `one_less` 1 less that share."""
    rows = cells(method, less, **where)(frame)
    if rows.empty:
        return None
    total = float(rows.models.sum())
    value = float((rows[column] * rows.models).sum()) / total
    value = 1 - value if one_less else value
    return Measurement(value, (value * (1 - value) / total) ** 0.5, error=1 / total)


@measure
def time_ratio(
    frame: pd.DataFrame, first: tuple[str, str], second: tuple[str, str], *, scale: float = 1.0, couplings: Range = ALL
) -> Measurement | None:
    """How many times as long one method takes as another, each with its kind of models: geometric
    mean over couplings and fields, times `scale`, with its standard error."""
    of = [cells(method, kind=kind, couplings=couplings).number("seconds") for method, kind in (first, second)]
    found = of[0].over(of[1], "field", "coupling").per(1 / scale)(frame).value.to_numpy(float)
    logs = np.log(found[(found > 0) & np.isfinite(found)])  # some clocks tick too slowly for small models
    if logs.size < 2:
        return None
    ratio = float(np.exp(logs.mean()))
    return Measurement(ratio, ratio * float(logs.std(ddof=1)) / logs.size**0.5)


def spread(method: str, other: str, **where: Any) -> Measure:
    """Standard deviation over models of one error less that of another, mean over couplings and fields."""
    return _sum([(1, cells(method, **where)), (-1, cells(other, **where))], "deviation")


def nearer(lower: str, upper: str, **where: Any) -> Measure:
    """Mean error of a lower bound plus that of an upper one: above 0 if the lower one is the nearer."""
    return _sum([(1, cells(lower, **where)), (1, cells(upper, **where))], "mean")


@measure
def _sum(frame: pd.DataFrame, terms: Sequence[tuple[int, SelectedRows]], column: str) -> Measurement | None:
    """Sum of the means of a column over independent rows, with signs."""
    measures = [(sign, rows.number(column, f"{column}_error").pooled()) for sign, rows in terms]
    found = [(sign, number) for sign, one in measures if (number := one(frame)) is not None]
    if len(found) < len(terms):
        return None
    error = np.hypot.reduce([number.standard_error for _, number in found])
    return Measurement(sum(sign * number.value for sign, number in found), error)


@measure
def relative_scatter(frame: pd.DataFrame, method: str, less: str, gap: str, *, couplings: Range) -> Measurement | None:
    """Root mean square of the difference of two estimates of a model, as a share of the mean gap of a
    bound."""
    rows, bound = (cells(*named, couplings=couplings)(frame) for named in ((method, less), (gap,)))
    if rows.empty:
        return None
    squares = rows["mean"] ** 2 + rows.deviation**2
    value = float(squares.mean() ** 0.5 / bound["mean"].mean())
    return Measurement(value, value * float((rows.deviation_error / rows.deviation).mean()) / len(rows) ** 0.5)


@measure
def least_of(frame: pd.DataFrame, measures: Sequence[Measure]) -> Measurement | None:
    """The measurement that is fewest standard errors above 0."""
    found = [m for one in measures if (m := one(frame)) is not None]
    if not found:
        return None
    worst = min(found, key=lambda m: m.value / m.standard_error)
    return Measurement(worst.value, worst.standard_error, weakest=max(m.standard_error for m in found))
