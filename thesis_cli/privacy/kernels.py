"""Rows of mixed type, the kernel on them (Thesis section 4.2.2), and exact means over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick

Codes = npt.NDArray[np.int64]

BLOCK_ROWS = 4096
"""Largest number of rows in a call: their sum of values in [-1, 1] is below 2^62 units."""

UNIT = 2.0**-50
"""Unit of the sums: the spacing of doubles between 4 and 8."""
HALF_BITS = 31
LOW = (1 << HALF_BITS) - 1
"""Mask of the low half; exact sums are kept in two halves, each far from overflow."""


@dataclass(frozen=True)
class Rows:
    """Encoded rows of a table, N of them.

    Attributes
    ----------
    reals : real coordinates, shape (N, D).
    codes : numbers of levels of the categories, shape (N, C).
    """

    reals: Floats
    codes: Codes

    @classmethod
    def of_reals(cls, reals: Floats) -> Rows:
        """Rows without categories."""
        return cls(reals, np.zeros((len(reals), 0), np.int64))

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        """All rows of the parts, in order."""
        return cls(np.concatenate([p.reals for p in parts]), np.concatenate([p.codes for p in parts]))

    def __len__(self) -> int:
        return len(self.reals)

    def __getitem__(self, rows: slice | Codes | npt.NDArray[np.bool_]) -> Rows:
        return type(self)(self.reals[rows], self.codes[rows])


@dataclass(frozen=True)
class RowKernel:
    """k(x, y) = exp(-sum_d gamma_d (x_d - y_d)^2) prod_c rho_c^[x_c != y_c]; k(x, x) = 1 and 0 <= k
    <= 1.

    Two feature maps are therefore at most sqrt(2) apart: |k(x, .) - k(y, .)|^2 = 2 - 2 k(x, y) <=
    2.

    Attributes
    ----------
    gamma : rates above 0, per squared unit of each real coordinate, shape (D,).
    rho : kernel of two different levels of each category, in [0, 1), shape (C,). The matrix of a
        category's levels, (1 - rho) times the identity plus rho, is positive definite.

    Raises
    ------
    InputError : a gamma or rho is out of range.
    """

    gamma: Floats
    rho: Floats

    def __post_init__(self) -> None:
        if not (np.isfinite(self.gamma) & (self.gamma > 0)).all():
            raise InputError(f"gamma is {self.gamma}", "all must be above 0")
        if not ((self.rho >= 0) & (self.rho < 1)).all():
            raise InputError(f"rho is {self.rho}", "all must be at least 0 and below 1")

    def matrix(self, a: Rows, b: Rows) -> Floats:
        """RowKernel of every row of `a` with every row of `b`, shape (len(a), len(b))."""
        exponent = np.zeros((len(a), len(b)))
        for d, gamma in enumerate(self.gamma):
            exponent -= gamma * np.subtract.outer(a.reals[:, d], b.reals[:, d]) ** 2
        found = np.exp(exponent, out=exponent)
        for c, rho in enumerate(self.rho):
            found *= np.where(np.equal.outer(a.codes[:, c], b.codes[:, c]), 1.0, rho)
        return found


def exact_mean(
    total: Callable[[Rows], Codes], blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None
) -> Floats:
    """Mean over rows, shape (F,), of the sums that `total` returns, in units of 2^-50, for at most
    `BLOCK_ROWS` rows at a time.

    Raises
    ------
    InputError : there are no rows.
    """
    count, high, low = 0, np.zeros(1, np.int64), np.zeros(1, np.int64)
    parts = (block[start : start + BLOCK_ROWS] for block in blocks for start in range(0, len(block), BLOCK_ROWS))
    with Threads(jobs) as threads:
        for size, found in threads.map(lambda part: (len(part), total(part)), parts):
            high, low, count = high + (found >> HALF_BITS), low + (found & LOW), count + size
            if progress:
                progress(size)
    if not count:
        raise InputError("the table has no rows", "it must have at least one")
    return np.asarray((high * 2.0**HALF_BITS + low) / count * UNIT)
