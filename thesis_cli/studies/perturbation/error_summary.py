"""Errors of bounds over many models: their distribution, and which of them is nearest to a violation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from thesis_cli.base.arrays import Floats

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
ROUNDING = 1e-9
"""Bound of the rounding of an error without noise, in nats."""

COLUMNS = [
    *("method", "less", "models", "mean", "mean_error", "deviation", "deviation_error", "lowest"),
    *(*QUANTILES, "highest", "positive", "below", "below_error", "above", "above_error", "settled", "seconds"),
]

NUMBERS = COLUMNS[3 : COLUMNS.index("settled")]
"""The columns that are in nats, and a share."""


def summary(values: Floats, errors: Floats) -> Mapping[str, float]:
    """Mean, spread and extremes of numbers from independent models, with standard errors.

    Parameters
    ----------
    values : one for each model, two or more.
    errors : the standard error of each, from its own noise; 0 without noise.

    Returns
    -------
    `below` and `above` are the numbers that are furthest below and above 0 in their standard errors
    (in nats without noise), `below_error` and `above_error` these errors; `positive` is the share of
    numbers above 0. `deviation_error` is the standard error of the standard deviation, from the
    fourth moment.
    """
    n = values.size
    centred = values - values.mean()
    deviation = float(values.std(ddof=1))
    fourth = float((centred**4).mean() - (centred**2).mean() ** 2)
    scaled = values / np.where(errors > 0, errors, 1.0)
    low, high = int(scaled.argmin()), int(scaled.argmax())
    quantiles = np.quantile(values, list(QUANTILES.values()))
    return {
        "models": n,
        "mean": float(values.mean()),
        "mean_error": deviation / math.sqrt(n),
        "deviation": deviation,
        "deviation_error": math.sqrt(max(0.0, fourth) / n) / (2 * deviation) if deviation > 0 else 0.0,
        "lowest": float(values.min()),
        **dict(zip(QUANTILES, quantiles.tolist(), strict=True)),
        "highest": float(values.max()),
        "positive": float((values > ROUNDING).mean()),
        "below": float(values[low]),
        "below_error": float(errors[low]),
        "above": float(values[high]),
        "above_error": float(errors[high]),
    }


def paired(
    values: Mapping[str, Floats], errors: Mapping[str, Floats], pairs: Sequence[tuple[str, str]]
) -> list[Mapping[str, float | str]]:
    """Rows of `summary` for the differences of two methods, on the models that both have.

    Values are nan on models where a method was not run. Errors of differences treat the noise of
    the two methods as independent.
    """
    rows: list[Mapping[str, float | str]] = []
    for first, second in pairs:
        if first in values and second in values:
            both = np.isfinite(values[first]) & np.isfinite(values[second])
            difference = (values[first] - values[second])[both]
            error = np.hypot(errors[first], errors[second])[both]
            rows.append({"method": first, "less": second, **summary(difference, error)})
    return rows
