"""Compiled power tricks over a whole grid of alphas at once; tests compare them with plain NumPy."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from thesis_cli.base.arrays import Floats
from thesis_cli.base.compiled import kernel


def log_z_on_grid(log_t: Floats, first: float, step: float, count: int) -> Floats:
    """Estimates of ln Z by the tricks T^alpha, alpha = first + step * (0 .. count - 1).

    A power costs one product: T^(alpha + step) = T^alpha T^step.

    Parameters
    ----------
    log_t : ln T of K estimators with M samples each, shape (K, M), of size at most some hundreds.
    first, step, count : the grid; every alpha is in (-1, 0) or (0, inf).

    Returns
    -------
    Shape (K, count).
    """
    alphas = first + step * np.arange(count)
    sums = _power_sums(log_t, first, step, count)
    return np.asarray((gammaln(1 + alphas) - np.log(sums / log_t.shape[1])) / alphas)


@kernel()
def _power_sums(log_t: Floats, first: float, step: float, count: int) -> Floats:
    """sum_m T[k, m]^alpha for each estimator k and alpha of the grid, shape (K, count)."""
    sums = np.zeros((log_t.shape[0], count))
    for k in range(log_t.shape[0]):
        row = sums[k]
        for m in range(log_t.shape[1]):
            power = np.exp(first * log_t[k, m])
            ratio = np.exp(step * log_t[k, m])
            for a in range(count):
                row[a] += power
                power *= ratio
    return sums
