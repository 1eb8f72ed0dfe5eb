r"""Points and weights whose mean feature is near a privatised one (Thesis Algorithm 3, line 6, eq. 4.7).

Post-processing: nothing here sees the table, only the privatised mean t of its features and what is public. The squared
distance |sum_m w_m phi(z_m) - t|^2 is made small over points in a box and weights on the simplex, in two stages.

1. Frank-Wolfe over points and Gaussians of a few widths (`frank_wolfe`): so few and wide atoms are a smooth estimate.
2. M points drawn from it move together, with their weights, by L-BFGS, until a step gains no more than fitting
   noise would. What is left to gain then is mostly noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.errors import InputError
from thesis_cli.privacy.atoms import WIDTHS, Atoms, Fit, descend
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.frank_wolfe import frank_wolfe, simplex_weights
from thesis_cli.privacy.kernels import Floats, Rows

STEPS, WINDOW = 240, 10
"""Steps of L-BFGS on the points at most, and those over which its gain is judged."""
GAIN, RELATIVE_GAIN = 0.1, 1e-6
"""The points stop when the objective falls in a step by less than these times the variance of the noise, or itself."""
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
    history : stage ("frank-wolfe", "points", "categories" or "weights") and objective, in order.
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

    with threadpool_limits(1, "blas"), Fit(target, features, bounds, jobs) as fit:  # small products, jobs of its own
        mixture = frank_wolfe(fit, noise, rng, record)
        atoms = _draw(fit, mixture, count, rng)
        for sweep in range(1 + SWEEPS * bool(cardinalities)):
            if sweep and not _choose_levels(fit, atoms, record):
                break
            watch = _Watch(record, GAIN * noise**2)
            atoms = descend(fit, atoms, STEPS, weighted=not uniform, watch=watch)
            if time.monotonic() >= deadline:
                break
        if not (uniform or noise) and count <= REFIT:
            embedded = fit.embed(atoms)
            weights = simplex_weights(embedded @ embedded.T, embedded @ target)
            atoms = min(atoms, replace(atoms, weights=weights), key=fit.objective)
            record("weights", fit.objective(atoms))
        reals = np.clip(atoms.points / fit.scale, bounds[:, 0], bounds[:, 1])
        return Synthetic(Rows(reals, atoms.levels - fit.before), atoms.weights, fit.objective(atoms), tuple(history))


class _Watch:
    """Records the objective of each step, and says when to stop: at the deadline, or when it gains too little."""

    def __init__(self, record: Callable[[str, float], bool], least: float) -> None:
        self._record, self._least, self._seen = record, least, list[float]()

    def __call__(self, objective: float) -> bool:
        self._seen.append(objective)
        late = self._record("points", objective)
        least = WINDOW * max(self._least, RELATIVE_GAIN * objective)
        return late or (len(self._seen) > WINDOW and self._seen[-1 - WINDOW] - objective <= least)


def _draw(fit: Fit, mixture: Atoms, count: int, rng: np.random.Generator) -> Atoms:
    """Points of equal weight from a mixture of Gaussians, of each as near to its share as whole numbers allow."""
    ends = np.floor(np.cumsum(mixture.weights) * count + rng.random()).astype(np.int64)
    ends[-1] = count
    which = np.repeat(np.arange(len(ends)), np.diff(np.minimum(ends, count), prepend=0))
    atoms = mixture[which]
    width = np.maximum(WIDTHS[1], np.array(WIDTHS)[atoms.widths])  # points that coincide would move as one
    points = atoms.points + width[:, np.newaxis] * rng.standard_normal(atoms.points.shape)
    nowhere = np.zeros(count, np.int64)
    return Atoms(np.clip(points, fit.low, fit.high), atoms.levels, nowhere, np.full(count, 1 / count))


def _choose_levels(fit: Fit, atoms: Atoms, record: Callable[[str, float], bool]) -> bool:
    """Set each point's categories to the best there are, one at a time; whether it is worth going on."""
    from thesis_cli.privacy.points_kernels import choose_levels

    residual = fit.target - fit.sum(atoms)
    turns = np.cos(fit.phases), np.sin(fit.phases)
    ends = np.append(fit.before, len(fit.phases))
    weights = atoms.weights / math.sqrt(fit.target.shape[1])
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
