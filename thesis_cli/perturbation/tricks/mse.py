"""Errors of the Gumbel and Exponential estimators from M samples (Thesis A.1, as corrected).

Bias and variance of Z^ are in units of Z and Z^2; those of ln Z^ are absolute. M may have any
shape.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma, zeta

from thesis_cli.base.arrays import Floats


def gumbel_z(m: Floats) -> tuple[Floats, Floats]:
    """Bias (inf at M = 1) and variance (inf at M <= 2) of Z^ = exp(mean of MAP values) (A.1.1)."""
    with np.errstate(all="ignore"):
        first = m * _log_gamma(1 / m)
        excess = m * (_log_gamma(2 / m) - 2 * _log_gamma(1 / m))
        bias = np.where(m > 1, np.expm1(first), np.inf)
        variance = np.where(m > 2, np.exp(2 * first) * np.expm1(excess), np.inf)
    return bias, variance


def _log_gamma(x: Floats) -> Floats:
    """ln Gamma(1 - x) - c x, by its series where the difference loses digits."""
    k = np.arange(2, 10)
    series = (zeta(k) / k * np.power.outer(x, k)).sum(axis=-1)
    return np.where(x < 0.02, series, gammaln(1 - x) - np.euler_gamma * x)


def exponential_z(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance of Z^ = 1 / mean of T; inf for M = 1, variance inf for M = 2 (A.1.1)."""
    with np.errstate(all="ignore"):
        bias = np.where(m > 1, 1 / (m - 1), np.inf)
        variance = np.where(m > 2, m**2 / ((m - 1) ** 2 * (m - 2)), np.inf)
    return bias, variance


def gumbel_log_z(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance of the mean of the MAP values (A.1.2)."""
    return np.zeros_like(m), np.pi**2 / 6 / m


def exponential_log_z(m: Floats) -> tuple[Floats, Floats]:
    """Bias and variance of -ln of the mean of T (A.1.2)."""
    return np.log(m) - digamma(m), np.asarray(polygamma(1, m))
