"""Whether a table that is called public shares rows with a private one, beyond what chance makes
likely.

Rows are compared by fingerprints of their encoding: exactly, and with numbers rounded to a thousandth
and to a twentieth of their range, so that a copy in other digits or a little shifted is found too; and
each of these again without each coordinate, for a copy with one column changed. Under the null
hypothesis that both tables are independent samples of one population, each division of the pooled rows
into tables of these sizes is equally likely. Of whole rows the statistic is the sum over distinct rows
of p d / t, for p public and d private copies and t = p + d, that is, one minus a share of Pearson's
chi-squared statistic. Its mean and variance under the null are exact (Dawson 1954, Biometrika 41, 280).
Of all fingerprints, those that are rare tell (`_rare`), which common rows cannot hide. Tables of two
populations share fewer rows than those of one, so that they are refused less often still. A schema of
few cells makes many rows equal by chance, and both statistics expect so.

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
"""Fingerprints of rows, shape (V, N): of whole rows on each grid, and then, for tables of up to `MOST` rows,
of the rows without each coordinate on each grid.
"""

GRIDS = None, 1000, 20
"""Steps to which numbers are rounded."""
PLAIN = 2
"""Fingerprints of whole rows that are compared by the chi-squared statistic: not the coarsest."""
MOST = 2**20
DEVIATIONS = 3.0
"""More standard deviations above the mean than this are no chance."""
RARE = 4.5
"""The same of each of the many tests of rare fingerprints."""


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
    parts, count = list[Prints](), 0
    for rows in blocks:
        count += len(rows)
        views = zip(*(_hashed(rows, steps) for steps in GRIDS), strict=True)
        parts.append(np.stack([view for grids in views for view in grids]))
        if count > MOST:
            parts = [part[: len(GRIDS)] for part in parts]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(GRIDS), 0), np.uint64)


def overlap(public: Prints, private: Prints) -> Overlap:
    """Rows that two tables share, by the fingerprints that show the greatest excess."""
    views = [_overlap(p, d, k < PLAIN) for k, (p, d) in enumerate(zip(public, private, strict=False))]
    most = max(views, key=lambda found: found.excess)
    return Overlap(most.shared, most.public, views[0].identical, most.excess)


def _overlap(public: Prints, private: Prints, plain: bool) -> Overlap:
    _, place = np.unique(np.concatenate([public, private]), return_inverse=True)
    t = np.bincount(place).astype(np.float64)
    p = np.bincount(place[: len(public)], minlength=len(t)).astype(np.float64)
    d = t - p
    shared, identical = int(p[d > 0].sum()), bool((p == d).all())
    excess = _rare(p, d) * DEVIATIONS / RARE
    return Overlap(shared, len(public), identical, max(excess, _excess(p, d, t)) if plain else excess)


def _rare(p: npt.NDArray[Any], d: npt.NDArray[Any]) -> float:
    """Standard deviations, by binomial laws, by which rare fingerprints are in both tables.

    Two equal rows of a population are one of each table with probability 2 m n / (N (N - 1)), N = m + n.
    And a row that is rare in the private table is there once, and in the public one, at most 2 m / n
    times as often as it is there twice, whatever it does to be repeated among public rows.
    """
    from scipy.special import bdtrc, ndtri

    whole = int(np.gcd.reduce(p.astype(np.int64)))
    p = p / max(whole, 1)  # every row as often
    m, n = float(p.sum()), float(d.sum())
    if not m * n:
        return 0.0
    pairs, cross = int((p + d == 2).sum()), int(((p == 1) & (d == 1)).sum())
    once, twice = int(((p > 0) & (d == 1)).sum()), int((d == 2).sum())
    tails = [float(bdtrc(cross - 1, pairs, 2 * m * n / ((m + n) * (m + n - 1))))] if cross else [1.0]
    tails += [float(bdtrc(once - 1, once + twice, 2 * m / (2 * m + n)))] if once else []
    return float(-ndtri(max(1e-300, min(tails))))


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


def _hashed(rows: Rows, steps: int | None) -> Prints:
    """Hashes of each row: of all coordinates, and of all but each of them; shape (1 + coordinates, N).

    Every coordinate is mixed with a salt of its own (splitmix64), and the row is mixed from their sum.
    """
    reals = np.asarray(rows.reals, np.float64)
    reals = (reals if steps is None else np.rint(reals * steps)) + 0.0  # of -0 and 0 the same bits
    columns = [*reals.view(np.uint64).T, *np.asarray(rows.codes, np.int64).view(np.uint64).T]
    with np.errstate(over="ignore"):
        each = [_mixed(x + np.uint64(0x9E3779B97F4A7C15 * place % 2**64)) for place, x in enumerate(columns, 1)]
        total = np.asarray(np.stack(each).sum(0, dtype=np.uint64))
        return np.stack([_mixed(total), *(_mixed(total - x) for x in each)])


def _mixed(x: Prints) -> Prints:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))
