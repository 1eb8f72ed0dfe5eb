"""Points and Gaussians whose weighted mean feature is fitted to a target, and their descent towards it."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.privacy.features import Features
from thesis_cli.privacy.kernels import Codes, Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

WIDTHS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Standard deviations of an atom, in kernel lengths: the unit in which the frequencies' root mean square is 1."""
SLOPE = 4.0
"""Log-weights per unit of their variable in L-BFGS."""


@dataclass(frozen=True)
class Atoms:
    """Points in kernel lengths (K, D), rows of the phases (K, C), numbers of their widths (K,), weights (K,)."""

    points: Floats
    levels: Codes
    widths: Codes
    weights: Floats

    def __getitem__(self, at: Codes | npt.NDArray[np.bool_]) -> Atoms:
        return Atoms(self.points[at], self.levels[at], self.widths[at], self.weights[at])

    def joined(self, other: Atoms) -> Atoms:
        a, b = self, other
        return Atoms(
            np.concatenate([a.points, b.points]),
            np.concatenate([a.levels, b.levels]),
            np.concatenate([a.widths, b.widths]),
            np.concatenate([a.weights, b.weights]),
        )


class Fit:
    """The target, the features in kernel lengths, and threads. Vectors of J features have the shape (2, J/2)."""

    def __init__(self, target: Floats, features: Features, bounds: Floats, jobs: int) -> None:
        half = len(features.frequencies)
        spread = np.sqrt((features.frequencies**2).mean(0))
        self.scale = np.where(spread > 0, spread, 1.0)
        self.frequencies = np.ascontiguousarray((features.frequencies / self.scale).T)
        self.phases = np.concatenate([np.zeros((0, half)), *(p.T for p in features.phases)])
        self.cardinalities = [p.shape[1] for p in features.phases]
        self.before = np.cumsum([0, *self.cardinalities])[:-1]
        self.low, self.high = bounds.T * self.scale
        self.target = target.reshape(2, half)
        self.damping = np.exp(-0.5 * np.square(WIDTHS)[:, np.newaxis] * (self.frequencies**2).sum(0))
        self._norm = 1 / math.sqrt(half)
        self._pool, self._jobs = ThreadPoolExecutor(jobs), jobs

    def __enter__(self) -> Fit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()

    def random(self, count: int, rng: np.random.Generator) -> Atoms:
        """Anywhere in the box, without weight."""
        codes = rng.integers(self.cardinalities, size=(count, len(self.cardinalities))) + self.before
        points = rng.uniform(self.low, self.high, (count, len(self.low)))
        return Atoms(points, codes, np.zeros(count, np.int64), np.zeros(count))

    def embed(self, atoms: Atoms) -> Floats:
        """Mean features of the atoms, shape (K, J)."""
        angles = atoms.points @ self.frequencies
        for levels in atoms.levels.T:
            angles += self.phases[levels]
        damping = self.damping[atoms.widths] * self._norm
        return np.concatenate([damping * np.cos(angles), damping * np.sin(angles)], 1)

    def sum(self, atoms: Atoms) -> Floats:
        """sum_k w_k times the mean feature of atom k."""
        from thesis_cli.privacy.points_kernels import BLOCK, weighted_sum

        half = self.frequencies.shape[1]
        found = np.zeros((2, half))
        for width in np.unique(atoms.widths):
            part, out = atoms[atoms.widths == width], np.empty((2, half))

            def add(low: int, high: int, part: Atoms = part, out: Floats = out) -> None:
                weighted_sum(self.frequencies, self.phases, part.points, part.levels, part.weights, low, high, out)

            self._share(add, half, BLOCK)
            found += out * (self.damping[width] * self._norm)
        return found

    def products(self, atoms: Atoms, vector: Floats) -> tuple[Floats, Floats]:
        """Inner products of the atoms' mean features with a vector (K,), and their gradients (K, D)."""
        from thesis_cli.privacy.points_kernels import products

        values, slopes = np.empty(len(atoms.points)), np.empty(atoms.points.shape)
        for width in np.unique(atoms.widths):
            at = np.flatnonzero(atoms.widths == width)
            part, against = atoms[at], vector * (self.damping[width] * self._norm)
            f, g = np.empty(len(at)), np.empty(part.points.shape)

            def take(
                low: int, high: int, part: Atoms = part, against: Floats = against, f: Floats = f, g: Floats = g
            ) -> None:
                products(self.frequencies, self.phases, part.points, part.levels, against, low, high, f, g)

            self._share(take, len(at), 1)
            values[at], slopes[at] = f, g
        return values, slopes

    def objective(self, atoms: Atoms) -> float:
        return float(((self.sum(atoms) - self.target) ** 2).sum())

    def _share(self, work: Callable[[int, int], None], size: int, block: int) -> None:
        """Work on ranges of 0, ..., size - 1, one for each thread, whose inner ends are multiples of `block`."""
        ends = [min(size, -(-size * k // (self._jobs * block)) * block) for k in range(self._jobs + 1)]
        if self._jobs == 1:
            work(0, size)
        else:
            list(self._pool.map(work, ends[:-1], ends[1:]))


def descend(
    fit: Fit, atoms: Atoms, steps: int, *, weighted: bool, watch: Callable[[float], bool] | None = None
) -> Atoms:
    """Move points, and if `weighted` the logarithms of their weights, by L-BFGS within the box.

    Parameters
    ----------
    steps : at most.
    watch : is told the objective of each step, and says when to stop.
    """
    size, shape = atoms.points.size, atoms.points.shape

    def placed(x: Floats) -> Atoms:
        if not weighted:
            return replace(atoms, points=x.reshape(shape))
        logs = SLOPE * x[size:]
        weights = np.exp(logs - logs.max())
        return replace(atoms, points=x[:size].reshape(shape), weights=weights / weights.sum())

    def objective(x: Floats) -> tuple[float, Floats]:
        at = placed(x)
        residual = fit.sum(at) - fit.target
        values, slopes = fit.products(at, residual)
        gradient = (2 * at.weights[:, np.newaxis] * slopes).ravel()
        if weighted:
            by_log = 2 * at.weights * (values - at.weights @ values)
            gradient = np.concatenate([gradient, SLOPE * by_log])
        return float((residual**2).sum()), gradient

    start, low, high = atoms.points.ravel(), np.tile(fit.low, shape[0]), np.tile(fit.high, shape[0])
    if weighted:
        free = np.full(shape[0], np.inf)
        start = np.concatenate([start, np.log(np.maximum(atoms.weights, 1e-12)) / SLOPE])
        low, high = np.concatenate([low, -free]), np.concatenate([high, free])
    return placed(minimise(objective, start, low, high, steps, watch))


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    low: Floats,
    high: Floats,
    steps: int,
    watch: Callable[[float], bool] | None = None,
) -> Floats:
    """L-BFGS in a box; parameters as of `descend`, and an objective that gives its gradient too."""
    from scipy.optimize import Bounds, minimize

    def step(intermediate_result: OptimizeResult) -> None:
        if watch and watch(float(intermediate_result.fun)):
            raise StopIteration

    if not start.size:
        return start
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        callback=step,
        options={"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 0.0, "gtol": 0.0},
    )
    return np.asarray(found.x, np.float64)
