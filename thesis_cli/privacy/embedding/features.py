"""Paired random features of a kernel, of norm 1, as Thesis Proposition 14 asks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.embedding.means import tiled
from thesis_cli.privacy.kernels import Codes, RowKernel, Rows, exact_mean

ROUNDING = 2.0**-40
"""Bound on how much rounding may lengthen a feature vector or its mean, relatively; the true share
is below 1e-14.
"""


@dataclass(frozen=True)
class Features:
    """phi(x) = [cos a_1, ..., cos a_{J/2}, sin a_1, ..., sin a_{J/2}] / sqrt(J/2), a_j = w_j . x +
    sum_c u_cj[x_c].

    As cos^2 + sin^2 = 1, |phi(x)| = 1, which Proposition 14 needs; the sqrt(2/J) cos(w . x + b) of
    the thesis's published code have norms of up to sqrt 2.

    Attributes
    ----------
    frequencies : w, radians per unit of each real coordinate, shape (J/2, D).
    phases : u, radians; one array of shape (J/2, cardinality) for each category.
    """

    frequencies: Floats
    phases: tuple[Floats, ...]

    @property
    def count(self) -> int:
        """Number J of features."""
        return 2 * len(self.frequencies)

    def embed(self, rows: Rows) -> Floats:
        """phi of each row, shape (N, J)."""
        angles = rows.reals @ self.frequencies.T
        for phases, codes in zip(self.phases, rows.codes.T, strict=True):
            angles += phases.T[codes]
        return np.concatenate([np.cos(angles), np.sin(angles)], 1) / math.sqrt(len(self.frequencies))

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """(1/N) sum_n phi(x_n) of a table of N rows given in blocks, shape (J,); Thesis Algorithm
        3, line 3.

        It is an exact sum of rounded features (`kernels`), so that the order of the rows
        changes no bit.

        Raises
        ------
        InputError : there are no rows.
        """
        from thesis_cli.privacy.embedding.kernels import TILE, add_features

        half = len(self.frequencies)
        cardinalities = [phases.shape[1] for phases in self.phases]
        before = np.cumsum([0, *cardinalities])[:-1]
        all_phases = np.concatenate([*self.phases, np.zeros((half, 0))], 1)
        tiles = tiled(self.frequencies), tiled(all_phases)

        def total(rows: Rows) -> Codes:
            found = np.zeros((len(tiles[0]), 2, TILE), np.int64)
            add_features(*tiles, rows.reals, rows.codes + before, found)
            return found

        means = exact_mean(total, blocks, jobs, progress).swapaxes(0, 1).reshape(2, -1)[:, :half]
        return means.reshape(-1) / math.sqrt(half)

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the means of two tables of N = `rows` rows that differ in one:
        2/N plus rounding.

        Feature vectors of norm 1 may be opposite, at distance 2. The bound sqrt(2) of the kernel
        itself does not hold: phi(x) . phi(y), an average of cosines, may be negative although k(x,
        y) is not.
        """
        return 2 * (1 + ROUNDING) / rows + 2.0**-50


def draw_features(kernel: RowKernel, cardinalities: Sequence[int], count: int, rng: np.random.Generator) -> Features:
    """Draw features whose inner product is the kernel on average: E phi(x) . phi(y) = E cos(a(x) -
    a(y)) = k(x, y).

    For the reals, w ~ N(0, 2 gamma) (Rahimi and Recht, 2007). For a category, the phases of all its
    levels are 0 with probability rho, and otherwise independent and uniform; those of two levels
    then differ by a uniform angle, of mean cosine 0.

    Parameters
    ----------
    cardinalities : numbers of levels of the C categories of `kernel`.
    count : number J of features; even.

    Raises
    ------
    InputError : the count is odd or below 2.
    """
    if count < 2 or count % 2:
        raise InputError(f"the number of features is {count}", "it must be even and at least 2")
    half = count // 2
    frequencies = rng.normal(size=(half, len(kernel.gamma))) * np.sqrt(2 * kernel.gamma)
    phases = tuple(
        rng.uniform(0, 2 * math.pi, (half, levels)) * (rng.random((half, 1)) >= rho)
        for levels, rho in zip(cardinalities, kernel.rho, strict=True)
    )
    return Features(frequencies, phases)
