"""Quantiles of the normal distribution without SciPy, whose import takes longer than many runs."""

from __future__ import annotations

import math


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p for a standard normal Z; -inf at 0 and inf at 1.

    Raises
    ------
    statistics.StatisticsError : p is below 0 or above 1.
    """
    from statistics import NormalDist

    if p in (0, 1):
        return math.inf if p else -math.inf
    return NormalDist().inv_cdf(p)
