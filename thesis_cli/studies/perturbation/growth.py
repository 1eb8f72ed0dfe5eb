"""How a quantity grows with the number of variables: a power of it, or other laws."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats


def power_law(sizes: Floats, values: Floats, errors: Floats) -> tuple[float, float]:
    """Exponent b of values = a sizes^b by weighted least squares of logarithms, and its error.

    Parameters
    ----------
    sizes, values, errors : positive, shape (K,), K >= 2; errors are standard errors. If the law
        misses the values by more than these, the error grows in proportion.
    """
    design = np.stack([np.ones(sizes.size), np.log(sizes)], axis=1)
    coefficients, covariance = _least_squares(design, np.log(values), errors / values)
    return float(coefficients[1]), math.sqrt(covariance[1, 1])


def bulk(sides: Floats, values: Floats, errors: Floats) -> tuple[float, float]:
    """Limit g of values = g + h / sides as sides grow, and its error.

    A quantity per site of a square grid whose correlations are short has this form, since the share
    of sites at the border is in proportion to 1 / side.
    """
    design = np.stack([np.ones(sides.size), 1 / sides], axis=1)
    coefficients, covariance = _least_squares(design, values, errors)
    return float(coefficients[0]), math.sqrt(covariance[0, 0])


def misfit(shape: Floats, values: Floats) -> float:
    """Root mean square of 1 - a shape / values for the a that makes it least: the share of the
    values that this law misses."""
    ratios = shape / values
    scale = float(ratios.sum() / (ratios @ ratios))
    return float(np.sqrt(((1 - scale * ratios) ** 2).mean()))


def _least_squares(design: Floats, values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Coefficients, and their covariance."""
    weighted = design / errors[:, np.newaxis]
    covariance = np.linalg.inv(weighted.T @ weighted)
    coefficients = covariance @ (weighted.T @ (values / errors))
    left = values.size - design.shape[1]
    square = float((((values - design @ coefficients) / errors) ** 2).sum())
    return coefficients, covariance * max(1.0, square / left if left else 1.0)
