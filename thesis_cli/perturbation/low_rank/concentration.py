"""A bound on the distance between the mean of M independent perturbed maxima and its expectation.

For a maximum U of n noise terms, ln E[e^{s (U - E[U])}] <= n k(s) with k(s) = ln Gamma(1 - s) - c s,
which is the moment of a sum of n Gumbel(-c) variables (docs/low-rank.md). By Markov's inequality, and
since k(-s) <= k(s), the mean exceeds its expectation by r, or falls short of it, with probability at
most exp(M (n k(s) - s r)) for each s in (0, 1). Corollaries 10 and 12 of Hazan et al. allow three times
as much or more.

The noise at the maximiser, sum_i gamma_i(x_i*), has no such bound, though Hazan et al. IV-E applies the
corollaries to it: it jumps where the maximiser changes, and its variance can exceed 4n (by about
(ln k)^2 / 4 for one term with k + 1 states whose phi are 0, ..., 0 and ln k).
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.perturbation.noise import log_moment_rate

_EXPONENTS = 1 / (1 + np.exp(-np.linspace(-25, 25, 4001)))
"""Values of s; a finer grid would lower the bound by less than 1e-4 of itself."""


def maximum_deviation(terms: int, count: int, confidence: float) -> float:
    """Half the width of a two-sided interval around the mean of perturbed maxima.

    Each side gets half of 1 - confidence.

    Parameters
    ----------
    terms : noise terms n of a configuration; 0 if there is no noise.
    count : number M of maxima.
    """
    if terms == 0:
        return 0.0
    rate = math.log(2 / (1 - confidence)) / count
    return float((rate / _EXPONENTS - terms * log_moment_rate(-_EXPONENTS)).min())
