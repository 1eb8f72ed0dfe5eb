"""Measurements of claims that many numbers bear on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.reproduction.experiment import Measurement


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
