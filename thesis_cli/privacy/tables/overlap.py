"""Whether a table that is called public shares rows with a private one, beyond what chance makes
likely.

Rows are compared by fingerprints of their encoding, exactly and with numbers rounded to a
`COARSE`-th of their range, so that a copy in other digits is found too. Under the null hypothesis
that both tables are independent samples of one population, each division of the pooled rows into
tables of these sizes is equally likely. The statistic is the sum over distinct rows of p d / t,
for p public and d private copies and t = p + d, that is, one minus a share of Pearson's chi-squared
statistic. Its mean and variance under the null are exact (Dawson 1954, Biometrika 41, 280). Tables
of two populations share fewer rows than those of one, so that they are refused less often still. A
schema of few cells makes many rows equal by chance, and the statistic expects so.

All of this depends on private rows: it may end a release, and is never part of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.privacy.kernels import Rows

Prints = npt.NDArray[np.uint64]
"""Fingerprints of rows, shape (2, N): exact ones, and those of rounded numbers."""

COARSE = 1000
DEVIATIONS = 3.0
"""More standard deviations above the mean than this are no chance."""


@dataclass(frozen=True)
class Overlap:
    """Rows that two tables share.

    Attributes
    ----------
    shared : number of public rows that the private table has too.
    public : number of public rows.
    identical : whether both tables have the same rows as often.
    excess : standard deviations by which the tables share more than chance does.
    """

    shared: int
    public: int
    identical: bool
    excess: float

    @property
    def likely(self) -> bool:
        """Whether chance explains it."""
        return not self.identical and self.excess <= DEVIATIONS


def fingerprints(blocks: Iterable[Rows]) -> Prints:
    """Fingerprints of encoded rows; two different rows have equal ones with probability 2^-64."""
    parts = [np.stack([_hashed(rows, None), _hashed(rows, COARSE)]) for rows in blocks]
    return np.concatenate([np.zeros((2, 0), np.uint64), *parts], axis=1)


def overlap(public: Prints, private: Prints) -> Overlap:
    """Rows that two tables share, by the fingerprints that show the greater excess."""
    exact, coarse = (_overlap(p, d) for p, d in zip(public, private, strict=True))
    return Overlap(exact.shared, exact.public, exact.identical, max(exact.excess, coarse.excess))


def _overlap(public: Prints, private: Prints) -> Overlap:
    _, place = np.unique(np.concatenate([public, private]), return_inverse=True)
    t = np.bincount(place).astype(np.float64)
    p = np.bincount(place[: len(public)], minlength=len(t)).astype(np.float64)
    d = t - p
    shared = int(p[d > 0].sum())
    return Overlap(shared, len(public), bool((p == d).all()), _excess(p, d, t))


def _excess(p: npt.NDArray[Any], d: npt.NDArray[Any], t: npt.NDArray[Any]) -> float:
    m, n, r = float(p.sum()), float(d.sum()), len(t)
    total = m + n
    if total < 4 or r < 2 or not m * n:
        return 0.0
    mean = (total - r) * m * n / (total * (total - 1))
    v1, w1 = (r - 1) * (total - r) / (total - 1), (total * float((1 / t).sum()) - r * r) / (total - 2)
    v2, w2 = (total - 2) / (total - 1), (total * (1 / m + 1 / n) - 4) / (total - 2)
    variance = 2 * total / (total - 3) * (v1 - w1) * (v2 - w2) + total**2 / (total - 1) * w1 * w2
    gap = float((p * d / t).sum()) - mean
    deviation = math.sqrt(max(0.0, variance)) * m * n / total**2
    return gap / deviation if deviation > 1e-9 * max(1.0, mean) else 0.0


def _hashed(rows: Rows, steps: int | None) -> npt.NDArray[np.uint64]:
    """A hash of each row; every coordinate is mixed with a salt of its own (splitmix64)."""
    reals = np.asarray(rows.reals, np.float64)
    reals = (reals if steps is None else np.rint(reals * steps)) + 0.0  # of -0 and 0 the same bits
    columns = [*reals.view(np.uint64).T, *np.asarray(rows.codes, np.int64).view(np.uint64).T]
    found = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for place, column in enumerate(columns, 1):
            x = column + np.uint64(0x9E3779B97F4A7C15 * place % 2**64)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
            found = (found ^ (x ^ (x >> np.uint64(31)))) * np.uint64(0xD6E8FEB86659FD93)
            found ^= found >> np.uint64(32)
    return found
