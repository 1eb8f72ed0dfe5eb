"""A mixture of few points and Gaussians whose mean feature is near a target, by Frank-Wolfe (Thesis eq. 4.7).

Fully corrective: each step takes in the places towards which the objective falls steepest and fits all weights anew,
and the atoms slide between the steps. It stops where no place in the box stands out from the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from thesis_cli.privacy.atoms import WIDTHS, Atoms, Fit, descend, minimise
from thesis_cli.privacy.kernels import Floats

ROUNDS, ATOMS = 6, 8
"""Frank-Wolfe steps at most, and new places in each."""
CANDIDATES, STARTS, CLIMBS = 300, 20, 15
"""Random places looked at in a Frank-Wolfe step, how many of the best are climbed from, and the steps of a climb."""
SLIDES = 10
"""Steps of L-BFGS on the atoms after a Frank-Wolfe step."""
APART = 0.5
"""New places are at least so many kernel lengths apart, or differ in a category."""
SIGNIFICANT = 3.0
"""Standard deviations of the noise by which an atom has to stand out."""


def frank_wolfe(fit: Fit, noise: float, rng: np.random.Generator, record: Callable[[str, float], bool]) -> Atoms:
    """Few atoms, of several widths, that leave about noise; weights on the simplex.

    Parameters
    ----------
    noise : standard deviation of the noise in each coordinate of the target.
    record : is told the stage, "frank-wolfe", and the objective after each step, and says when to stop.
    """
    atoms = fit.random(0, rng)
    summed = np.zeros_like(fit.target)
    for step in range(ROUNDS):
        places = _salient(fit, atoms, summed, SIGNIFICANT * noise if step else -math.inf, rng)
        if not len(places.points):
            break
        for width in range(len(WIDTHS)):
            atoms = atoms.joined(replace(places, widths=np.full(len(places.points), width)))
        embedded = fit.embed(atoms)
        gram, linear = embedded @ embedded.T, embedded @ fit.target.ravel()
        weights = simplex_weights(gram, linear, atoms.weights if step else None)
        atoms = replace(atoms, weights=weights)[weights > 0]
        atoms = descend(fit, atoms, SLIDES, weighted=True)
        summed = fit.sum(atoms)
        if record("frank-wolfe", float(((summed - fit.target) ** 2).sum())):
            break
    return atoms


def _salient(fit: Fit, atoms: Atoms, summed: Floats, least: float, rng: np.random.Generator) -> Atoms:
    """Places towards which the objective falls steepest, steepest first.

    Moving from the sum s to an atom a, half the objective falls at the rate <a - s, t - s> / |a - s|, whose standard
    deviation is that of the noise. Places of a rate up to `least` are left out.
    """
    residual = fit.target - summed
    heaviest = atoms[np.argsort(-atoms.weights, kind="stable")[:STARTS]]
    found, rates = fit.random(0, rng), np.zeros(0)
    for width in range(len(WIDTHS)):
        seeds = replace(fit.random(CANDIDATES, rng), widths=np.full(CANDIDATES, width))
        seeds = seeds[np.argsort(-fit.products(seeds, residual)[0], kind="stable")[:STARTS]]
        moved = heaviest.points + APART * rng.standard_normal(heaviest.points.shape)
        near = replace(
            heaviest,
            points=np.clip(moved, fit.low, fit.high),
            widths=np.full(len(moved), width),
            weights=np.zeros(len(moved)),
        )
        peaks = _climb(fit, seeds.joined(near), residual)
        apart = fit.embed(peaks) - summed.ravel()
        rate = apart @ residual.ravel() / np.maximum(np.sqrt((apart**2).sum(1)), 1e-9)
        found, rates = found.joined(peaks), np.concatenate([rates, rate])
    chosen: list[int] = []
    for k in np.argsort(-rates, kind="stable"):
        if len(chosen) == ATOMS or rates[k] <= least:
            break
        near_by = ((found.points[chosen] - found.points[k]) ** 2).sum(1) < APART**2
        if not (near_by & (found.levels[chosen] == found.levels[k]).all(1)).any():
            chosen.append(int(k))
    return found[np.array(chosen, np.int64)]


def _climb(fit: Fit, atoms: Atoms, vector: Floats) -> Atoms:
    """Local maxima of the inner product of an atom with a vector: its categories one by one, then its point."""
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
        return -float(values.sum()), -slopes.ravel()

    low, high = (np.tile(end, len(atoms.points)) for end in (fit.low, fit.high))
    found = minimise(falling, atoms.points.ravel(), low, high, CLIMBS)
    return replace(atoms, points=found.reshape(atoms.points.shape))


def simplex_weights(gram: Floats, linear: Floats, start: Floats | None = None) -> Floats:
    """argmin w . gram w - 2 linear . w over w >= 0 with sum w = 1, by active sets, exactly but for rounding.

    Parameters
    ----------
    gram : positive semidefinite, with a diagonal of the order of 1, shape (M, M).
    linear : shape (M,).
    start : weights to start from, whose objective is not exceeded.
    """
    from scipy.linalg import cho_factor, cho_solve

    rounding = 1e-12 * (1 + float(np.abs(linear).max()))
    weights = np.zeros(len(linear))
    if start is None:
        weights[(2 * linear - gram.diagonal()).argmax()] = 1.0
    else:
        weights[:] = start
    support = np.flatnonzero(weights)
    for _ in range(10 * len(linear) + 10):
        while True:
            factor = cho_factor(gram[np.ix_(support, support)] + rounding * np.eye(len(support)))
            free, shift = cho_solve(factor, np.stack([linear[support], np.ones(len(support))], 1)).T
            level = (free.sum() - 1) / shift.sum()
            wanted = free - level * shift
            if (wanted > 0).all():
                break
            held = weights[support]
            share = np.where(wanted > 0, np.inf, held / np.maximum(held - wanted, 1e-300))
            weights[support] = np.maximum(held + share.min() * (wanted - held), 0.0)
            weights[support[share.argmin()]] = 0.0
            support = support[weights[support] > 0]
        weights[support] = wanted
        gain = linear - gram[:, support] @ wanted - level
        gain[support] = -np.inf
        best = int(gain.argmax())
        if gain[best] <= 10 * rounding:
            break
        support = np.append(support, best)
    return np.asarray(weights / weights.sum(), np.float64)
