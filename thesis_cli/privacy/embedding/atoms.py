"""Atoms, that is points and Gaussians, whose weighted mean feature is fitted to a target by
descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.parallel import Threads
from thesis_cli.embeddings.simplex import minimise
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.kernels import Codes

if TYPE_CHECKING:
    from thesis_cli.privacy.embedding.points_kernels import FeatureTable, Placed

SLOPE = 4.0
"""Change of a log-weight per unit of its variable in L-BFGS."""
LEAST_SHARE = 0.01
"""Least weight, relative to the largest, by which the variables of an atom are scaled."""


@dataclass(frozen=True)
class Atoms:
    """Gaussians: centres in kernel lengths (K, D), rows of the phases (K, C), variances (K,),
    weights (K,).

    A kernel length is the unit in which the root mean square of each coordinate's frequencies is 1.
    All coordinates have the same variance; an atom of variance 0 is a point.
    """

    points: Floats
    levels: Codes
    variances: Floats
    weights: Floats

    def __getitem__(self, at: Codes | npt.NDArray[np.bool_]) -> Atoms:
        return Atoms(self.points[at], self.levels[at], self.variances[at], self.weights[at])

    def placed(self) -> Placed:
        """Atoms as the compiled sums take them."""
        from thesis_cli.privacy.embedding.points_kernels import Placed

        return Placed(self.points, self.levels, self.variances)

    def joined(self, other: Atoms) -> Atoms:
        """All atoms of both."""
        a, b = self, other
        return Atoms(
            np.concatenate([a.points, b.points]),
            np.concatenate([a.levels, b.levels]),
            np.concatenate([a.variances, b.variances]),
            np.concatenate([a.weights, b.weights]),
        )


class Fit:
    """Features and box in kernel lengths, and threads. Vectors of J features have shape (2,
    J/2).
    """

    def __init__(self, features: Features, bounds: Floats, jobs: int) -> None:
        half = len(features.frequencies)
        spread = np.sqrt((features.frequencies**2).mean(0))
        self.scale = np.where(spread > 0, spread, 1.0)
        self.frequencies = np.ascontiguousarray((features.frequencies / self.scale).T)
        self.squares = (self.frequencies**2).sum(0)
        self.phases = np.concatenate([np.zeros((0, half)), *(p.T for p in features.phases)])
        self.cardinalities = [p.shape[1] for p in features.phases]
        self.before = np.cumsum([0, *self.cardinalities])[:-1]
        self.low, self.high = bounds.T * self.scale
        self.widest = float(((self.high - self.low) ** 2).max(initial=0.0)) / 12
        self._norm = 1 / math.sqrt(half)
        self._threads, self._jobs = Threads(jobs), jobs

    def __enter__(self) -> Fit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._threads.__exit__(kind, error, at)

    def random(self, count: int, rng: np.random.Generator) -> Atoms:
        """Points drawn uniformly from the box, of weight 0."""
        codes = rng.integers(self.cardinalities, size=(count, len(self.cardinalities))) + self.before
        points = rng.uniform(self.low, self.high, (count, len(self.low)))
        return Atoms(points, codes, np.zeros(count), np.zeros(count))

    def embed(self, atoms: Atoms) -> Floats:
        """Mean features of the atoms, shape (K, J)."""
        angles = atoms.points @ self.frequencies
        for levels in atoms.levels.T:
            angles += self.phases[levels]
        damping = self._norm * np.exp(-0.5 * atoms.variances[:, np.newaxis] * self.squares)
        return np.concatenate([damping * np.cos(angles), damping * np.sin(angles)], 1)

    def sum(self, atoms: Atoms) -> Floats:
        """Sum over atoms k of w_k times their mean feature, shape (2, J/2)."""
        from thesis_cli.privacy.embedding.points_kernels import BLOCK, weighted_sum

        out = np.empty((2, len(self.squares)))
        weights = atoms.weights * self._norm

        def add(low: int, high: int) -> None:
            weighted_sum(self.table, atoms.placed(), weights, low, high, out)

        self._share(add, len(self.squares), BLOCK)
        return out

    def products(self, atoms: Atoms, vector: Floats) -> tuple[Floats, Floats]:
        """Inner products of the atoms' mean features with a vector, and their gradients by centre
        and variance.

        The products have shape (K,), the gradients shape (K, D + 1).
        """
        from thesis_cli.privacy.embedding.points_kernels import products

        count, against = len(atoms.points), vector * self._norm
        values, slopes = np.empty(count), np.empty((count, len(self.low) + 1))

        def take(low: int, high: int) -> None:
            products(self.table, atoms.placed(), against, low, high, values, slopes)

        self._share(take, count, 1)
        return values, slopes

    @property
    def table(self) -> FeatureTable:
        """Features as the compiled sums take them."""
        from thesis_cli.privacy.embedding.points_kernels import FeatureTable

        return FeatureTable(self.frequencies, self.squares, self.phases)

    def _share(self, work: Callable[[int, int], None], size: int, block: int) -> None:
        """Work on ranges of 0, ..., size - 1, one per thread; their inner ends are multiples of
        `block`.
        """
        ends = [min(size, -(-size * k // (self._jobs * block)) * block) for k in range(self._jobs + 1)]
        for _ in self._threads.map(work, ends[:-1], ends[1:]):
            pass


def descend(
    fit: Fit,
    target: Floats,
    atoms: Atoms,
    steps: int,
    *,
    weighted: bool,
    spread: bool = False,
    watch: Callable[[float], bool] | None = None,
) -> Atoms:
    """Move the atoms together in the box, by L-BFGS on |sum_k w_k phi_k - target|^2.

    Variables are scaled by the atoms' weights. The objective then has about the same curvature
    along each of them, and light atoms move as early as heavy ones.

    Parameters
    ----------
    steps : largest number of steps.
    weighted : whether the log-weights move too.
    spread : whether the variances move too.
    watch : called with the objective after each step; returns whether to stop.
    """
    count, dimension = atoms.points.shape
    shares = np.maximum(atoms.weights / atoms.weights.max(), LEAST_SHARE)[:, np.newaxis]

    def variables(points: Floats, variance: float | Floats, log_weight: float | Floats) -> Floats:
        columns = [points, *[np.full(count, variance)] * spread, *[np.full(count, log_weight)] * weighted]
        return np.asarray((shares * np.column_stack(columns)).ravel(), np.float64)

    def placed(x: Floats) -> Atoms:
        table = x.reshape(count, -1) / shares
        at = replace(atoms, points=np.ascontiguousarray(table[:, :dimension]))
        if spread:
            at = replace(at, variances=np.maximum(table[:, dimension], 0.0))
        if weighted:
            logs = SLOPE * table[:, -1]
            weights = np.exp(logs - logs.max())
            at = replace(at, weights=weights / weights.sum())
        return at

    def objective(x: Floats) -> tuple[float, Floats]:
        at = placed(x)
        residual = fit.sum(at) - target
        values, slopes = fit.products(at, residual)
        by_place = 2 * at.weights[:, np.newaxis] * slopes
        by_log = 2 * SLOPE * at.weights * (values - at.weights @ values)
        gradient = np.column_stack([by_place[:, : dimension + spread], *[by_log] * weighted])
        return float((residual**2).sum()), (gradient / shares).ravel()

    start = variables(atoms.points, atoms.variances, np.log(np.maximum(atoms.weights, 1e-12)) / SLOPE)
    low = variables(np.tile(fit.low, (count, 1)), 0.0, -np.inf)
    high = variables(np.tile(fit.high, (count, 1)), fit.widest, np.inf)
    return placed(minimise(objective, start, low, high, steps, watch))
