"""Settings of an evaluation, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import KERNELS, Gaussian, Kernel, Laplace, median_distance
from thesis_cli.embeddings.reductions import METHODS
from thesis_cli.semantics.batches import Limit
from thesis_cli.semantics.syntax import LARGEST, Place

MOST = 2000
"""Largest size of an expansion."""
POOL = 2**18
"""Largest number of points of an operation before it is reduced, for expansions of 182 points or more."""


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation of expressions. Raises InputError for a size, name or bandwidth that is not
    allowed.

    Attributes
    ----------
    size : largest number of points of an expansion after each operation.
    kernel : one of `KERNELS`.
    bandwidth : bandwidth of the kernel; None for the median distance of the points that are reduced.
    method : one of `METHODS`, how expansions are reduced.
    draws : "cells": a distribution's points are its means over cells of equal probability, or drawn
        evenly spread where there are few; "random": all are drawn independently.
    """

    size: int = 200
    kernel: str = "gaussian"
    bandwidth: float | None = None
    method: str = "quantiles"
    draws: Literal["cells", "random"] = "cells"

    def __post_init__(self) -> None:
        if not 2 <= self.size <= MOST:
            raise InputError(f"the size is {self.size}", f"it must be from 2 to {MOST:,}")
        if self.kernel not in KERNELS:
            raise InputError(f"unknown kernel {self.kernel!r}", f"the kernels are {', '.join(KERNELS)}")
        if self.method not in METHODS:
            raise InputError(f"unknown reduction {self.method!r}", f"the reductions are {', '.join(METHODS)}")
        if self.draws not in ("cells", "random"):
            raise InputError(f"unknown draws {self.draws!r}", "they are cells or random")
        if self.bandwidth is not None and not 1 / LARGEST <= self.bandwidth <= LARGEST:
            raise InputError(f"the bandwidth is {self.bandwidth:g}", f"it must be from {1 / LARGEST:g} to {LARGEST:g}")

    @property
    def pool(self) -> int:
        """Largest number of points of an operation before it is reduced."""
        return min(8 * self.size**2, POOL)

    def kernel_for(self, expansion: Expansion) -> Kernel:
        """The kernel, with the bandwidth that suits an expansion if none is set."""
        width = median_distance(expansion) if self.bandwidth is None else self.bandwidth
        return Laplace(width) if self.kernel == "laplace" else Gaussian(width)


@dataclass(frozen=True)
class Step:
    """A reduction.

    Attributes
    ----------
    place : place of the operation whose result was reduced.
    name : name of the operation.
    before, after : numbers of points.
    rkhs_error : RKHS distance of the two, with the kernel of this step.
    wasserstein : W1 distance; None if a weight is negative.
    """

    place: Place
    name: str
    before: int
    after: int
    rkhs_error: float
    wasserstein: float | None


@dataclass(frozen=True)
class JointTable:
    """Rows of a joint expansion of free variables.

    Attributes
    ----------
    columns : values of each variable, NaN if missing, shape (rows,) each.
    weights : weights of any sign, shape (rows,).
    """

    columns: Mapping[str, Floats]
    weights: Floats

    def present(self, used: Iterable[str]) -> tuple[JointTable, float]:
        """The rows that have a value of each column in use, with weights of sum 1, and the share of their
        absolute weight; all rows keep their weights. Raises InputError if no rows are left, or no weight.
        """
        used = sorted(used)
        there = np.ones(len(self.weights), bool)
        for name in used:
            there &= ~np.isnan(self.columns[name])
        if not there.any():
            raise InputError("every row lacks a value of a column that is used", "use other columns")
        weights = self.weights[there]
        total = float(weights.sum())
        if not total > 0:
            raise InputError(f"the weights of the rows with values sum to {total:g}", "the sum must be above 0")
        share = float(np.abs(weights).sum() / np.abs(self.weights).sum())
        columns = {name: self.columns[name][there] for name in used}
        return JointTable(columns, weights if there.all() else weights / total), share


@dataclass(frozen=True)
class Composed:
    """The denotation of an expression, composed of those of its parts.

    Attributes
    ----------
    expansion : its points and weights.
    kernel : kernel of the RKHS that it is an element of.
    error : bound on its W1 distance from the exact distribution, and why there is none.
    rkhs_error : bound on the RKHS distance, inf with the same reason.
    steps : reductions on the way, in order.
    evaluations : number of values of functions and points of distributions that were computed.
    share : share of the absolute weight of a table whose rows have a value; 1 without a table.
    projected : largest RKHS distance by which an expansion with negative weights, from conditioning,
        was moved to a distribution.
    """

    expansion: Expansion
    kernel: Kernel
    error: Limit
    rkhs_error: float
    steps: tuple[Step, ...] = ()
    evaluations: int = 0
    share: float = 1.0
    projected: float = 0.0
