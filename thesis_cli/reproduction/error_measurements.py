"""Measurements for claims from a table of errors of bounds (`studies.perturbation.error_summary`).

The table has a row for each method, or for the difference of two, at each kind, field and coupling
of random models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from thesis_cli.reproduction.experiment import Measure, Measurement
from thesis_cli.reproduction.measuring import lowest
from thesis_cli.studies.perturbation.error_summary import ROUNDING

Range = tuple[float, float]

ALL: Range = (0.0, np.inf)
"""All couplings above 0."""


def cells(
    frame: pd.DataFrame,
    method: str,
    less: str = "",
    *,
    kind: str | None = None,
    field: float | None = None,
    couplings: Range = ALL,
) -> pd.DataFrame:
    """Rows of a method, or of its difference from another, at couplings between two numbers."""
    rows = frame[(frame.method == method) & (frame.less.fillna("") == less)]
    rows = rows if kind is None else rows[rows.kind == kind]
    rows = rows if field is None else rows[rows.field == field]
    return rows[(rows.coupling > couplings[0]) & (rows.coupling < couplings[1])]


def least(rows: pd.DataFrame, sign: float = 1.0, column: str = "mean", error: str = "mean_error") -> Measurement | None:
    """The number that is fewest standard errors above 0, or with `sign` -1 below it."""
    return lowest(rows[column], rows[error], sign)


def pooled(rows: pd.DataFrame, column: str = "mean", error: str = "mean_error") -> Measurement | None:
    """Mean over rows, which are independent."""
    if rows.empty:
        return None
    return Measurement(float(rows[column].mean()), float((rows[error] ** 2).sum() ** 0.5) / len(rows))


def least_mean(
    method: str, less: str = "", *, kind: str | None = None, couplings: Range = ALL, sign: float = 1.0
) -> Measure:
    """Mean error over models where it is fewest standard errors above 0, or below with `sign` -1."""
    return lambda frame: least(cells(frame, method, less, kind=kind, couplings=couplings), sign)


def pooled_mean(
    method: str,
    less: str = "",
    *,
    kind: str | None = None,
    field: float | None = None,
    couplings: Range = ALL,
) -> Measure:
    """Mean error over models, couplings and fields."""
    return lambda frame: pooled(cells(frame, method, less, kind=kind, field=field, couplings=couplings))


def nearest_model(method: str) -> Measure:
    """The error of a model that is furthest below 0 in its own standard errors."""
    return lambda frame: least(cells(frame, method), 1.0, "below", "below_error")


def extreme(methods: Sequence[str], column: str, *, kind: str | None = None) -> Measure:
    """The `lowest` or `highest` error of all models, of bounds without noise."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        found = [cells(frame, method, kind=kind, couplings=(-1.0, np.inf))[column] for method in methods]
        values = pd.concat(found)
        if values.empty:
            return None
        return Measurement(float(values.min() if column == "lowest" else values.max()), error=ROUNDING)

    return measure


def share(
    method: str, column: str, less: str = "", *, kind: str | None = None, couplings: Range = ALL, one_less: bool = False
) -> Measure:
    """Share of all models, from a column of shares, or with `one_less` 1 less that share."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        rows = cells(frame, method, less, kind=kind, couplings=couplings)
        if rows.empty:
            return None
        total = float(rows.models.sum())
        value = float((rows[column] * rows.models).sum()) / total
        value = 1 - value if one_less else value
        return Measurement(value, (value * (1 - value) / total) ** 0.5, error=1 / total)

    return measure


def time_ratio(
    first: tuple[str, str], second: tuple[str, str], *, scale: float = 1.0, couplings: Range = ALL
) -> Measure:
    """How many times as long one method takes as another, each with its kind of models: geometric
    mean over couplings and fields, times `scale`, with its standard error."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        of = [
            cells(frame, method, kind=kind, couplings=couplings).set_index(["field", "coupling"]).seconds
            for method, kind in (first, second)
        ]
        ratios = (scale * of[0] / of[1]).to_numpy()
        logs = np.log(ratios[(ratios > 0) & np.isfinite(ratios)])  # some clocks tick too slowly for small models
        if logs.size < 2:
            return None
        ratio = float(np.exp(logs.mean()))
        return Measurement(ratio, ratio * float(logs.std(ddof=1)) / logs.size**0.5)

    return measure


def spread(method: str, other: str, *, kind: str, couplings: Range) -> Measure:
    """Standard deviation over models of one error less that of another, mean over couplings and fields."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        first, second = (
            pooled(cells(frame, m, kind=kind, couplings=couplings), "deviation", "deviation_error")
            for m in (method, other)
        )
        if first is None or second is None:
            return None
        error = float(np.hypot(first.standard_error, second.standard_error))
        return Measurement(first.value - second.value, error)

    return measure


def nearer(lower: str, upper: str, *, kind: str, couplings: Range) -> Measure:
    """Mean error of a lower bound plus that of an upper one: above 0 if the lower one is the nearer."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        below, above = (pooled(cells(frame, m, kind=kind, couplings=couplings)) for m in (lower, upper))
        if below is None or above is None:
            return None
        return Measurement(below.value + above.value, float(np.hypot(below.standard_error, above.standard_error)))

    return measure


def relative_scatter(method: str, less: str, gap: str, *, couplings: Range) -> Measure:
    """Root mean square of the difference of two estimates of a model, as a share of the mean gap of a
    bound."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        rows, gaps = cells(frame, method, less, couplings=couplings), cells(frame, gap, couplings=couplings)
        if rows.empty:
            return None
        squares = rows["mean"] ** 2 + rows.deviation**2
        value = float(squares.mean() ** 0.5 / gaps["mean"].mean())
        return Measurement(value, value * float((rows.deviation_error / rows.deviation).mean()) / len(rows) ** 0.5)

    return measure


def least_of(measures: Sequence[Measure]) -> Measure:
    """The measurement that is fewest standard errors above 0."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        found = [m for one in measures if (m := one(frame)) is not None]
        if not found:
            return None
        worst = min(found, key=lambda m: m.value / m.standard_error)
        return Measurement(worst.value, worst.standard_error, weakest=max(m.standard_error for m in found))

    return measure
