r"""Points and weights whose mean feature is near a privatised one (Thesis Algorithm 3, line 6, eq. 4.7).

Post-processing: nothing here sees the table, only the privatised mean t of its features and what is public. The squared
distance |sum_m w_m phi(z_m) - t|^2 is made small over points in a box and weights on the simplex, in three stages.

1. A mixture of few Gaussians, as many as stand out from the noise (`frank_wolfe`). Its mean feature s is an estimate
   that is nearly free of noise.
2. The rest r = t - s is noise, of squared length J noise^2, and what the mixture misses. It is shrunk, as James and
   Stein do, to the share that is no noise: the points' target is s + max(0, 1 - J noise^2 / |r|^2) r.
3. M points drawn from the mixture move there together, with their weights, by L-BFGS.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.atoms import Atoms, Fit, descend
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.frank_wolfe import frank_wolfe, simplex_weights
from thesis_cli.privacy.kernels import Rows

STEPS, WINDOW = 240, 10
"""Steps of L-BFGS on the points at most, and those over which its gain is judged."""
RELATIVE_GAIN = 1e-6
"""The points stop when the objective falls in a step by no more than this share, or than the variance of the noise."""
NEAR = 0.1
"""They also stop at this share of the squared error that noise leaves in the mixture: noise^2 for each parameter."""
LEAST_WIDTH = 0.125
"""Of what points are drawn from, in kernel lengths: points that coincide would move as one."""
SWEEPS = 3
"""Times that categories are chosen anew, each followed by L-BFGS."""
REFIT = 2000
"""Most points whose weights are refitted exactly."""

Progress = Callable[[float], object]
"""Called with the objective."""


@dataclass(frozen=True)
class Synthetic:
    """A synthetic table.

    Attributes
    ----------
    rows : the M points.
    weights : not negative, of sum 1, shape (M,).
    objective : |sum_m w_m phi(z_m) - t|^2.
    history : stage ("frank-wolfe", "points", "categories" or "weights") and objective, in order; that of points and
        categories is to the target less what is noise in it.
    """

    rows: Rows
    weights: Floats
    objective: float
    history: tuple[tuple[str, float], ...]


def synthesise(
    target: Floats,
    features: Features,
    bounds: Floats,
    cardinalities: tuple[int, ...],
    count: int,
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    time_limit: float | None = None,
    uniform: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Synthetic:
    """Points in a box and weights whose mean feature is near `target` (Thesis eq. 4.7, with w on the simplex).

    Parameters
    ----------
    target : privatised mean feature t, shape (J,).
    features : phi.
    bounds : least and largest value of each real coordinate, shape (D, 2).
    cardinalities : of the categories.
    count : number M of points.
    noise : standard deviation of the noise in each coordinate of `target`, which is public. With 0, the minimum
        itself is sought, and weights are refitted exactly if M is at most `REFIT`.
    time_limit : seconds, after which the best so far is returned; some steps may still end.
    uniform : all weights 1/M.
    jobs : threads. They change no bit of the result.
    progress : called with the objective after each step.

    Raises
    ------
    InputError : shapes that do not fit, bounds inverted, a number out of range.
    """
    _check(target, features, bounds, cardinalities, count, noise)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"a time limit of {time_limit} s", "more than 0 is wanted")
    if jobs < 1:
        raise InputError(f"{jobs} jobs", "one or more are wanted")
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    history: list[tuple[str, float]] = []

    def record(stage: str, objective: float) -> bool:
        history.append((stage, objective))
        if progress:
            progress(objective)
        return time.monotonic() >= deadline

    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), Fit(features, bounds, jobs) as fit:  # small products, jobs of its own
        given = target.reshape(2, -1)
        mixture = frank_wolfe(fit, given, noise, rng, record)
        aim, left = _shrunk(given, fit.sum(mixture), noise)
        near = NEAR * noise**2 * (mixture.points.size + 2 * len(mixture.weights) - 1)
        atoms = _draw(fit, mixture, count, rng)
        for sweep in range(1 + SWEEPS * bool(cardinalities)):
            if sweep and not _choose_levels(fit, aim, atoms, record):
                break
            atoms = descend(fit, aim, atoms, STEPS, weighted=not uniform, watch=_Watch(record, near, left**2))
            if time.monotonic() >= deadline:
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
    """The target, shrunk towards a smooth estimate by as much of what is between them as is noise; the noise kept."""
    residual = target - smooth
    squared = float((residual**2).sum())
    kept = max(0.0, 1 - target.size * noise**2 / squared) if squared else 0.0
    return smooth + kept * residual, kept * noise


class _Watch:
    """Records the objective of each step, and says when to stop: at the deadline, or when no more is to be gained.

    That is when it is down to `near`, or falls in a step by no more than `least`, or by next to nothing.
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
    """Points of equal weight from a mixture of Gaussians, of each as near to its share as whole numbers allow.

    Of more Gaussians than points, the heaviest have one each.
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
    """Set each point's categories to the best there are, one at a time; whether it is worth going on."""
    from thesis_cli.privacy.points_kernels import choose_levels

    residual = target - fit.sum(atoms)
    turns = np.cos(fit.phases), np.sin(fit.phases)
    ends = np.append(fit.before, len(fit.phases))
    weights = atoms.weights / math.sqrt(target.shape[1])
    changed = choose_levels(fit.frequencies, fit.phases, *turns, ends, atoms.points, atoms.levels, weights, residual)
    late = record("categories", float((residual**2).sum()))
    return bool(changed) and not late


def _check(
    target: Floats,
    features: Features,
    bounds: Floats,
    cardinalities: tuple[int, ...],
    count: int,
    noise: float,
) -> None:
    reals = features.frequencies.shape[1]
    if target.shape != (features.count,) or not np.isfinite(target).all():
        raise InputError(f"a target of shape {target.shape}", f"{features.count} finite numbers are wanted")
    if bounds.shape != (reals, 2) or not np.isfinite(bounds).all() or (bounds[:, 0] > bounds[:, 1]).any():
        raise InputError(f"bounds {bounds.tolist()}", f"{reals} finite pairs, least first, are wanted")
    of_features = tuple(phases.shape[1] for phases in features.phases)
    if tuple(cardinalities) != of_features:
        raise InputError(f"categories of {tuple(cardinalities)} levels", f"the features have {of_features}")
    if not reals and not cardinalities:
        raise InputError("no column", "a real coordinate or a category is wanted")
    if count < 1:
        raise InputError(f"{count} points", "one or more are wanted")
    if not (math.isfinite(noise) and noise >= 0):
        raise InputError(f"noise {noise}", "a finite number that is not negative is wanted")
