r"""Points and weights whose mean feature is near a private one (Thesis Algorithm 3, line 6, eq.
4.7).

This is post-processing: it uses the noisy mean t of the table's features and public settings, never
the table. Three stages make the squared distance |sum_m w_m phi(z_m) - t|^2 small over points in a
box and weights on the simplex.

1. A mixture of few Gaussians: components are added until the next one explains no more than noise
   would (Frank-Wolfe): each step adds atoms in the directions of steepest descent and refits all
   weights; then the atoms move and widen together. Its mean feature s is an estimate of the table's
   with little noise in it.
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
from thesis_cli.embeddings.simplex import minimise, simplex_weights
from thesis_cli.privacy.embedding.atoms import Atoms, Fit, descend
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.kernels import Rows

ROUNDS, ATOMS = 24, 2
"""Largest number of Frank-Wolfe steps, and of new atoms in each."""
WIDTHS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Standard deviations of candidate atoms, in kernel lengths."""
CANDIDATES, STARTS, CLIMBS = 300, 20, 15
"""Random candidates in a Frank-Wolfe step, number of the best that start a climb, and steps of a
climb.
"""
SLIDES = 400
"""Steps of L-BFGS on the atoms after a Frank-Wolfe step."""
APART = 0.5
"""Least distance of new atoms, in kernel lengths, unless they differ in a category."""
DISTINCT = 0.02
"""Least length of the new part of an atom by which its rate is divided."""


def frank_wolfe(
    fit: Fit, target: Floats, noise: float, rng: np.random.Generator, record: Callable[[str, float], bool]
) -> Atoms:
    """Few atoms, of weights on the simplex, whose residual is about noise.

    Parameters
    ----------
    fit : features, and the box of the atoms.
    target : noisy mean of the features, shape (2, J/2).
    noise : standard deviation of the noise in each coordinate of the target. The same search on
        pure noise of that size sets the rate that a new atom must exceed.
    record : called with the stage, "frank-wolfe", and the objective after each step; returns
        whether to stop.
    """
    atoms = fit.random(0, rng)
    summed = np.zeros_like(target)
    _, of_noise = _salient(fit, atoms, summed, noise * rng.standard_normal(target.shape), rng)
    for step in range(ROUNDS):
        places, rates = _salient(fit, atoms, summed, target - summed, rng)
        if step:
            places = places[rates > of_noise.max()]
        if not len(places.points):
            break
        atoms = atoms.joined(places)
        embedded = fit.embed(atoms)
        gram, linear = embedded @ embedded.T, embedded @ target.ravel()
        weights = simplex_weights(gram, linear, atoms.weights if step else None)
        atoms = replace(atoms, weights=weights)[weights > 0]
        atoms = descend(fit, target, atoms, SLIDES, weighted=True, spread=True)
        summed = fit.sum(atoms)
        if record("frank-wolfe", float(((summed - target) ** 2).sum())):
            break
    return atoms


def _salient(
    fit: Fit, atoms: Atoms, summed: Floats, residual: Floats, rng: np.random.Generator
) -> tuple[Atoms, Floats]:
    """Atoms towards which the objective falls most steeply, steepest first, and its rates.

    On the way from the sum s to an atom a, with the weights of the others refitted, half the
    objective falls at the rate <b, residual> / |b|, where b is the new part of a - s, orthogonal to
    the affine span of the atoms. The standard deviation of a rate is that of the noise.
    """
    spanned, _ = np.linalg.qr((fit.embed(atoms)[1:] - summed.ravel()).T)
    heaviest = atoms[np.argsort(-atoms.weights, kind="stable")[:STARTS]]
    found, rates = fit.random(0, rng), np.zeros(0)
    for width in WIDTHS:
        seeds = replace(fit.random(CANDIDATES, rng), variances=np.full(CANDIDATES, width**2))
        seeds = seeds[np.argsort(-fit.products(seeds, residual)[0], kind="stable")[:STARTS]]
        moved = heaviest.points + APART * rng.standard_normal(heaviest.points.shape)
        near = Atoms(
            np.clip(moved, fit.low, fit.high),
            heaviest.levels,
            np.full(len(moved), width**2),
            np.zeros(len(moved)),
        )
        peaks = _climb(fit, seeds.joined(near), residual)
        apart = fit.embed(peaks) - summed.ravel()
        apart -= (apart @ spanned) @ spanned.T
        rate = apart @ residual.ravel() / np.maximum(np.sqrt((apart**2).sum(1)), DISTINCT)
        found, rates = found.joined(peaks), np.concatenate([rates, rate])
    chosen: list[int] = []
    for k in np.argsort(-rates, kind="stable"):
        near_by = ((found.points[chosen] - found.points[k]) ** 2).sum(1) < APART**2
        if not (near_by & (found.levels[chosen] == found.levels[k]).all(1)).any():
            chosen.append(int(k))
        if len(chosen) == ATOMS:
            break
    at = np.array(chosen, np.int64)
    return found[at], rates[at]


def _climb(fit: Fit, atoms: Atoms, vector: Floats) -> Atoms:
    """Local maxima of the inner product of an atom with a vector, over its categories one by one,
    then its centre.
    """
    for c, (first, cardinality) in enumerate(zip(fit.before, fit.cardinalities, strict=True)):
        options = []
        for level in range(first, first + cardinality):
            levels = atoms.levels.copy()
            levels[:, c] = level
            options.append(replace(atoms, levels=levels))
        best = np.argmax([fit.products(option, vector)[0] for option in options], axis=0)
        atoms.levels[:, c] = first + best

    def falling(x: Floats) -> tuple[float, Floats]:
        values, slopes = fit.products(replace(atoms, points=x.reshape(atoms.points.shape)), vector)
        return -float(values.sum()), -slopes[:, :-1].ravel()

    low, high = (np.tile(end, len(atoms.points)) for end in (fit.low, fit.high))
    found = minimise(falling, atoms.points.ravel(), low, high, CLIMBS)
    return replace(atoms, points=found.reshape(atoms.points.shape))


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
