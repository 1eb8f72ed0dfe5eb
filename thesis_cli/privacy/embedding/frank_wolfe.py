"""A mixture of few points and Gaussians whose mean feature is near a target, by Frank-Wolfe (Thesis
eq. 4.7).

Each step adds atoms in the directions of steepest descent and refits all weights; then the atoms
move and widen together. The search stops when the best new atom explains no more than noise would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.simplex import minimise, simplex_weights
from thesis_cli.privacy.embedding.atoms import Atoms, Fit, descend

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
