"""Statistics of weighted points."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, total_of


def mean(weights: Floats, x: Floats) -> float:
    """Weighted sum of w_m x_m over rows m."""
    return total_of(weights, x)


def variance(weights: Floats, x: Floats) -> float:
    """Mean squared distance to the mean, for weights of sum 1."""
    return total_of(weights, (x - mean(weights, x)) ** 2)


def sd(weights: Floats, x: Floats) -> float:
    """Standard deviation, the root of `variance`."""
    return math.sqrt(variance(weights, x))


def quantile(weights: Floats, x: Floats, q: float = 0.5) -> float:
    """Least value with at least the share q of the weight at or below it."""
    return float(np.quantile(x, q, weights=weights, method="inverted_cdf"))


def correlation(weights: Floats, x: Floats, y: Floats) -> float:
    """Pearson's correlation; NaN if x or y does not vary."""
    scale = sd(weights, x) * sd(weights, y)
    covariance = float(weights @ ((x - weights @ x) * (y - weights @ y)))
    return covariance / scale if scale > 0 else math.nan
