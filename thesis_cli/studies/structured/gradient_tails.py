"""Deviations of sampled gradients of ln Z, beside Hoeffding's bound (Vembu et al. section 2.3)."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured.space import Space


def deviations(
    space: Space, weights: Floats, direction: Floats, samples: int, runs: int, rng: np.random.Generator
) -> Floats:
    """<d - gradient, z> of means d of so many exact samples, shape (runs,).

    Parameters
    ----------
    weights, direction : theta and z, shape (dimension,).
    """
    mean = float(space.mean_features(weights[None])[0] @ direction)
    at_once = max(1, 2**18 // samples)
    found = []
    for start in range(0, runs, at_once):
        count = min(at_once, runs - start)
        values = space.scores(space.draw(weights, count * samples, rng), direction)
        found.append(values.reshape(count, samples).mean(axis=1) - mean)
    return np.concatenate(found)


def width(space: Space, direction: Floats) -> float:
    """Largest difference of <phi(y), z> between two structures; at most 2 R |z|."""
    return float(space.maximise(np.stack([direction, -direction])).values.sum())
