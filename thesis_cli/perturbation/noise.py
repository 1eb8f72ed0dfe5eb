"""Gumbel noise, of which every perturbation is made."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats

_LEAST = np.finfo(np.float64).tiny
"""Replaces an exponential draw of exactly 0, which would make the noise infinite."""


def gumbel(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Draw independent Gumbel(-c) noise, of mean 0 and variance pi^2 / 6: -ln E - c, E ~ Exp(1).

    It is drawn row by row, so the first rows do not depend on how many follow.

    Returns
    -------
    Shape (rows, columns), finite.
    """
    draws = rng.standard_exponential((rows, columns))
    np.maximum(draws, _LEAST, out=draws)
    np.log(draws, out=draws)
    np.negative(draws, out=draws)
    draws -= np.euler_gamma
    return draws


_ZETA = np.array(
    (
        *(1.6449340668482264, 1.2020569031595942, 1.0823232337111381, 1.03692775514337, 1.0173430619844492),
        *(1.008349277381923, 1.0040773561979444, 1.0020083928260821, 1.000994575127818),
    )
)
"""Riemann's zeta function at 2, ..., 10."""


def log_moment_rate(alphas: Floats) -> Floats:
    """ln E[e^{-alpha gamma}] / alpha = ln Gamma(1 + alpha) / alpha + c of the noise gamma, by its series
    where the sum would cancel; shape of `alphas`, which are above -1.
    """
    small = np.abs(alphas) < 0.02
    k = np.arange(2, 11)
    series: Floats = (_ZETA / k * (-1.0) ** k * np.power.outer(alphas, k - 1)).sum(axis=-1)
    if small.all():
        return series
    from scipy.special import gammaln

    safe = np.where(small, 1.0, alphas)
    return np.where(small, series, gammaln(1 + safe) / safe + np.euler_gamma)
