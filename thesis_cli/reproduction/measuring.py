"""Measurements that several experiments make, and claims about printed times."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.reproduction.experiment import Claim, Measure, Measurement

if TYPE_CHECKING:
    import pandas as pd

FACTOR = 2.0
"""Factor between a printed time and the nearest one that is told from it."""


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


def measured(function: Callable[..., tuple[float, float] | None], *what: Any) -> Measure:
    """The measurement of a function that gives a number and its standard error, or None, for a result
    and `what`."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        found = function(frame, *what)
        return None if found is None else Measurement(*found)

    return measure


def printed(
    name: str, source: str, statement: str, number: float, unit: float, measure: Measure, finding: str = ""
) -> Claim:
    """The claim that a time or a ratio is as printed.

    Parameters
    ----------
    name : id of the claim.
    number : as printed.
    unit : of its last digit.
    measure : measures its log10.
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
        finding=finding,
    )
