r"""Points and weights whose mean feature is near a private one (Thesis Algorithm 3, line 6, eq.
4.7).

This is post-processing: it uses the noisy mean t of the table's features and public settings, never
the table. Three stages make the squared distance |sum_m w_m phi(z_m) - t|^2 small over points in a
box and weights on the simplex.

1. A mixture of few Gaussians: components are added until the next one explains no more than noise
   would (`frank_wolfe`). Its mean feature s is an estimate of the table's with little noise in it.
2. The remainder r = t - s consists of noise, of squared length J noise^2, and of what the mixture
   misses. Shrinkage (James and Stein) removes the noise's share: the target of the points is s +
   max(0, 1 - J noise^2 / |r|^2) r.
3. M points drawn from the mixture move towards that target together, with their weights, by L-BFGS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Stopwatch
from thesis_cli.embeddings.simplex import simplex_weights
from thesis_cli.privacy.embedding.atoms import Atoms, Fit, descend
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.embedding.frank_wolfe import frank_wolfe
from thesis_cli.privacy.kernels import Rows

STEPS, WINDOW = 240, 10
"""Largest number of L-BFGS steps on the points, and number of steps over which their gain is
judged.
"""
RELATIVE_GAIN = 1e-6
"""The points stop when a step lowers the objective by no more than this share, or than the variance
of the noise.
"""
NEAR = 0.1
"""They also stop at this share of the squared error that noise leaves in the mixture: noise^2 for
each parameter.
"""
LEAST_WIDTH = 0.125
"""Least standard deviation of drawn points, in kernel lengths: points that coincide would move as
one.
"""
SWEEPS = 3
"""Number of times that categories are chosen again, each followed by L-BFGS."""
REFIT = 2000
"""Largest number of points whose weights are refitted exactly."""

ObjectiveTick = Callable[[float], object]
"""Called with the objective after each step."""


@dataclass(frozen=True)
class Effort:
    """How long a search may take, on how many threads, and whom it informs.

    Attributes
    ----------
    time_limit : seconds, after which the best result so far is returned; a few steps may still
        follow.
    jobs : threads. They change no bit of the result.
    progress : called with the objective after each step.

    Raises
    ------
    InputError : a time limit of 0 or less, or no thread.
    """

    time_limit: float | None = None
    jobs: int = 1
    progress: ObjectiveTick | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"the time limit is {self.time_limit:g} s", "it must be above 0")
        if self.jobs < 1:
            raise InputError(f"the number of jobs is {self.jobs}", "it must be at least 1")


@dataclass(frozen=True)
class Synthetic:
    """A synthetic table.

    Attributes
    ----------
    rows : the M points.
    weights : not negative, of sum 1, shape (M,).
    objective : |sum_m w_m phi(z_m) - t|^2.
    history : stage ("frank-wolfe", "points", "categories" or "weights") and objective, in order;
        for points and categories, the objective is the distance to the shrunk target.
    """

    rows: Rows
    weights: Floats
    objective: float
    history: tuple[tuple[str, float], ...]


def synthesise(
    target: Floats,
    features: Features,
    bounds: Floats,
    count: int,
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    uniform: bool = False,
    effort: Effort = Effort(),
) -> Synthetic:
    """Find points in a box and weights whose mean feature is near `target` (Thesis eq. 4.7, with w
    on the simplex).

    Parameters
    ----------
    target : noisy mean feature t, shape (J,).
    features : feature map phi; its phases give the levels of each category.
    bounds : least and largest value of each real coordinate, shape (D, 2).
    count : number M of points.
    noise : public standard deviation of the noise in each coordinate of `target`. With 0, the
        search goes for the minimum itself, and refits the weights exactly if M is at most `REFIT`.
    uniform : all weights are 1/M.
    effort : time limit, threads and progress.

    Raises
    ------
    InputError : shapes that do not fit, inverted bounds, or a number out of range.
    """
    _check(target, features, bounds, count, noise)
    watch = Stopwatch()
    limit = math.inf if effort.time_limit is None else effort.time_limit
    history: list[tuple[str, float]] = []

    def record(stage: str, objective: float) -> bool:
        history.append((stage, objective))
        if effort.progress:
            effort.progress(objective)
        return watch.seconds >= limit

    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), Fit(features, bounds, effort.jobs) as fit:  # small products, threads of its own
        given = target.reshape(2, -1)
        mixture = frank_wolfe(fit, given, noise, rng, record)
        aim, left = _shrunk(given, fit.sum(mixture), noise)
        near = NEAR * noise**2 * (mixture.points.size + 2 * len(mixture.weights) - 1)
        atoms = _draw(fit, mixture, count, rng)
        for sweep in range(1 + SWEEPS * bool(features.phases)):
            if sweep and not _choose_levels(fit, aim, atoms, record):
                break
            atoms = descend(fit, aim, atoms, STEPS, weighted=not uniform, watch=_Watch(record, near, left**2))
            if watch.seconds >= limit:
                break

        def objective(atoms: Atoms) -> float:
            return float(((fit.sum(atoms) - given) ** 2).sum())

        if not (uniform or noise) and count <= REFIT:
            embedded = fit.embed(atoms)
            weights = simplex_weights(embedded @ embedded.T, embedded @ target)
            atoms = min(atoms, replace(atoms, weights=weights), key=objective)
            record("weights", objective(atoms))
        reals = np.clip(atoms.points / fit.scale, bounds[:, 0], bounds[:, 1])
        return Synthetic(Rows(reals, atoms.levels - fit.before), atoms.weights, objective(atoms), tuple(history))


def _shrunk(target: Floats, smooth: Floats, noise: float) -> tuple[Floats, float]:
    """Shrink the target towards a smooth estimate by the noise's share of their difference; return
    the noise kept.
    """
    residual = target - smooth
    squared = float((residual**2).sum())
    kept = max(0.0, 1 - target.size * noise**2 / squared) if squared else 0.0
    return smooth + kept * residual, kept * noise


class _Watch:
    """Record the objective of each step, and stop at the deadline or when no more can be gained.

    No more can be gained once the objective is at most `near`, or falls by `least` a step or less,
    or hardly at all.
    """

    def __init__(self, record: Callable[[str, float], bool], near: float, least: float) -> None:
        self._record, self._near, self._least, self._seen = record, near, least, list[float]()

    def __call__(self, objective: float) -> bool:
        self._seen.append(objective)
        late = self._record("points", objective)
        least = WINDOW * max(self._least, RELATIVE_GAIN * objective)
        slow = len(self._seen) > WINDOW and self._seen[-1 - WINDOW] - objective <= least
        return late or slow or objective <= self._near


def _draw(fit: Fit, mixture: Atoms, count: int, rng: np.random.Generator) -> Atoms:
    """Points of equal weight from a mixture of Gaussians; each Gaussian has its share of them, up
    to rounding.

    If there are more Gaussians than points, the heaviest have one point each.
    """
    if count < len(mixture.weights):
        atoms = mixture[np.argsort(-mixture.weights, kind="stable")[:count]]
    else:
        ends = np.floor(np.cumsum(mixture.weights) * count + rng.random()).astype(np.int64)
        ends[-1] = count
        atoms = mixture[np.repeat(np.arange(len(ends)), np.diff(np.minimum(ends, count), prepend=0))]
    width = np.maximum(LEAST_WIDTH, np.sqrt(atoms.variances))
    points = atoms.points + width[:, np.newaxis] * rng.standard_normal(atoms.points.shape)
    return Atoms(np.clip(points, fit.low, fit.high), atoms.levels, np.zeros(count), np.full(count, 1 / count))


def _choose_levels(fit: Fit, target: Floats, atoms: Atoms, record: Callable[[str, float], bool]) -> bool:
    """Set each point's categories to the best levels, one at a time; return whether to go on."""
    from thesis_cli.privacy.embedding.points_kernels import LevelTurns, choose_levels

    residual = target - fit.sum(atoms)
    turns = LevelTurns(np.cos(fit.phases), np.sin(fit.phases), np.append(fit.before, len(fit.phases)))
    weights = atoms.weights / math.sqrt(target.shape[1])
    changed = choose_levels(fit.table, turns, atoms.points, atoms.levels, weights, residual)
    late = record("categories", float((residual**2).sum()))
    return bool(changed) and not late


def _check(target: Floats, features: Features, bounds: Floats, count: int, noise: float) -> None:
    reals = features.frequencies.shape[1]
    if target.shape != (features.count,) or not np.isfinite(target).all():
        raise InputError(f"a target of shape {target.shape}", f"it must have {features.count} finite numbers")
    if bounds.shape != (reals, 2) or not np.isfinite(bounds).all() or (bounds[:, 0] > bounds[:, 1]).any():
        raise InputError(f"the bounds are {bounds.tolist()}", f"they must be {reals} finite pairs, the lower first")
    if not reals and not features.phases:
        raise InputError("the features have no column", "they must have a real coordinate or a category")
    if count < 1:
        raise InputError(f"the number of points is {count}", "it must be at least 1")
    if not (math.isfinite(noise) and noise >= 0):
        raise InputError(f"the noise is {noise:g}", "it must be 0 or above, and finite")
