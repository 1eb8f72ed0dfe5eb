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
