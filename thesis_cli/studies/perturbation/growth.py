"""How a quantity grows with the number of variables of square grids: a power of it, or other laws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.base.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd


def by_size(rows: pd.DataFrame, values: pd.Series[Any]) -> pd.DataFrame:
    """Means of some values of models by the side of their grids.

    Parameters
    ----------
    rows : with a column `size`.
    values : one for each row; NaN is left out.

    Returns
    -------
    The `mean`, its standard `error` (NaN for one model), the `count` of models, and the number `n` of
    variables, for each size.
    """
    found = values.groupby(rows["size"]).agg(["mean", "std", "count"])
    found = found[found["count"] > 0]
    found["error"] = found.pop("std") / found["count"] ** 0.5
    return found.assign(n=found.index.to_numpy(float) ** 2)


def power_law(sizes: ArrayLike, values: ArrayLike, errors: ArrayLike) -> tuple[float, float]:
    """Exponent b of values = a sizes^b by weighted least squares of logarithms, and its error.

    Parameters
    ----------
    sizes, values, errors : positive, shape (K,), K >= 2; errors are standard errors. If the law
        misses the values by more than these, the error grows in proportion.
    """
    x, y = np.log(np.asarray(sizes)), np.log(np.asarray(values))
    design = np.stack([np.ones(x.size), x], axis=1)
    coefficients, covariance = _least_squares(design, y, np.asarray(errors) / np.exp(y))
    return float(coefficients[1]), math.sqrt(covariance[1, 1])


def bulk(sides: ArrayLike, values: ArrayLike, errors: ArrayLike) -> tuple[float, float]:
    """Limit g of values = g + h / sides as sides grow, and its error.

    A quantity per site of a square grid whose correlations are short has this form, since the share
    of sites at the border is in proportion to 1 / side.
    """
    x = 1 / np.asarray(sides, dtype=float)
    design = np.stack([np.ones(x.size), x], axis=1)
    coefficients, covariance = _least_squares(design, np.asarray(values), np.asarray(errors))
    return float(coefficients[0]), math.sqrt(covariance[0, 0])


def misfit(shape: ArrayLike, values: ArrayLike) -> float:
    """Root mean square of 1 - a shape / values for the a that makes it least: the share of the
    values that this law misses."""
    ratios = np.asarray(shape) / np.asarray(values)
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
