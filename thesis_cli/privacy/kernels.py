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
    """Encoded rows of a table.

    Attributes
    ----------
    reals : real coordinates, shape (N, D).
    codes : numbers of category levels, shape (N, C).
    """

    reals: Floats
    codes: Codes

    @classmethod
    def of_reals(cls, reals: Floats) -> Rows:
        """Rows without categories."""
        return cls(reals, np.zeros((len(reals), 0), np.int64))

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        return cls(np.concatenate([p.reals for p in parts]), np.concatenate([p.codes for p in parts]))

    def __len__(self) -> int:
        return len(self.reals)

    def __getitem__(self, rows: slice | Codes | npt.NDArray[np.bool_]) -> Rows:
        return Rows(self.reals[rows], self.codes[rows])


@dataclass(frozen=True)
class Kernel:
    """k(x, y) = exp(-sum_d gamma_d (x_d - y_d)^2) prod_c rho_c^[x_c != y_c]; k(x, x) = 1 and 0 <= k <= 1.

    Two feature maps are therefore at most sqrt(2) apart: |k(x, .) - k(y, .)|^2 = 2 - 2 k(x, y) <= 2.

    Attributes
    ----------
    gamma : above 0, per squared unit of each real coordinate, shape (D,).
    rho : in [0, 1), the kernel of two levels of a category that differ, shape (C,). Positive definite, as
        (1 - rho) times an identity plus rho.

    Raises
    ------
    InputError : a gamma or rho out of range.
    """

    gamma: Floats
    rho: Floats

    def __post_init__(self) -> None:
        if not (np.isfinite(self.gamma) & (self.gamma > 0)).all():
            raise InputError(f"gamma is {self.gamma}", "numbers above 0 are wanted")
        if not ((self.rho >= 0) & (self.rho < 1)).all():
            raise InputError(f"rho is {self.rho}", "numbers from 0 to below 1 are wanted")

    def matrix(self, a: Rows, b: Rows) -> Floats:
        """k of every row of `a` with every row of `b`, shape (len(a), len(b))."""
        exponent = np.zeros((len(a), len(b)))
        for d, gamma in enumerate(self.gamma):
            exponent -= gamma * np.subtract.outer(a.reals[:, d], b.reals[:, d]) ** 2
        found = np.exp(exponent, out=exponent)
        for c, rho in enumerate(self.rho):
            found *= np.where(np.equal.outer(a.codes[:, c], b.codes[:, c]), 1.0, rho)
        return found
