"""Bounds on the distance between the mean of M independent values and its expectation.

They hold for every function F of independent Gumbel variables that is locally Lipschitz with
|gradient F| <= a almost everywhere. A perturbed maximum is such a function: its gradient has an
entry for each noise term of the maximiser, so a^2 = |A| for |A| terms, and 1/|A| if they are
averaged (Hazan et al. IV-E). The noise at the maximiser, sum_i gamma_i(x_i*), is not, though the
source applies the bounds to it: it jumps where the maximiser changes, and its variance can exceed 4
a^2 (by about (ln k)^2 / 4 for one term with k + 1 states whose phi are 0, ..., 0 and ln k).
"""

from __future__ import annotations

import math


def poincare_deviation(gradient: float, count: int, tail: float) -> float:
    """2 a (1 + sqrt(ln(1/delta) / 2M))^2, above 2a for every M (Hazan et al. Corollary 10).

    Parameters
    ----------
    gradient : a.
    count : number M of values.
    tail : delta, a bound on the probability that the mean exceeds its expectation by more; the same
        bound holds for falling short by more.
    """
    return 2 * gradient * (1 + math.sqrt(math.log(1 / tail) / (2 * count))) ** 2


def log_sobolev_deviation(gradient: float, count: int, tail: float) -> float:
    """a max(4 ln(1/delta) / M, sqrt(32 ln(1/delta) / M)) (Hazan et al. Corollary 12)."""
    rate = math.log(1 / tail) / count
    return gradient * max(4 * rate, math.sqrt(32 * rate))


def deviation(gradient: float, count: int, confidence: float) -> float:
    """Half the width of a two-sided interval around the mean, by the better of the two corollaries.

    Each side gets half of 1 - confidence. The choice depends only on a, M and delta, not on data,
    so it is allowed.
    """
    tail = (1 - confidence) / 2
    return min(bound(gradient, count, tail) for bound in (poincare_deviation, log_sobolev_deviation))
