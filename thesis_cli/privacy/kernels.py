"""Rows of mixed type, and the kernel on them (Thesis section 4.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

Codes = npt.NDArray[np.int64]


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
