"""The effect of estimated bounds on the sequential sampler of Thesis Algorithm 1, computed without
drawing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.noise import gumbel


class Attempt(NamedTuple):
    """Properties of an attempt of the sampler, given its estimates.

    Attributes
    ----------
    acceptance : probability that the attempt is accepted.
    distance : total variation of accepted draws from p.
    clipped : expected number of steps whose probabilities sum to more than 1.
    """

    acceptance: float
    distance: float
    clipped: float


def one_factor(phi: Floats) -> FactorGraph:
    """A model with a single factor over all variables, in the order of the axes of `phi`."""
    return FactorGraph(phi.shape, [Factor(tuple(range(phi.ndim)), phi)])


def total_variation(states: Ints, phi: Floats, p: Floats) -> float:
    """Total variation of the empirical distribution of some draws, shape (K, n), from p, shape
    (N,)."""
    counts = np.bincount(np.ravel_multi_index(tuple(states.T), phi.shape), minlength=p.size)
    return float(0.5 * np.abs(counts / len(states) - p).sum())


def without_drawing(phi: Floats, alpha: float, count: int, seed: np.random.SeedSequence, shared: bool) -> Attempt:
    """Acceptance, exactness and clipping, from the bounds at all prefixes.

    Parameters
    ----------
    phi : log-potentials, an axis for each variable.
    alpha : exponent of the bound.
    count : samples in each estimate.
    seed : root of the random stream.
    shared : whether all prefixes use the same noise, as `SequentialSampler` does; otherwise the
        estimate at each prefix has noise of its own.
    """
    n = phi.ndim
    p = np.exp(phi - logsumexp(phi)).ravel()
    rng = np.random.default_rng(seed)
    below: Floats | None = None
    reach, clipped = np.ones(1), 0.0
    for held in range(n + 1):
        prefixes = math.prod(phi.shape[:held])
        if held < n - 1:
            rng = np.random.default_rng(seed) if shared else rng
            values = phi[np.newaxis]
            for axis in reversed(range(held, n)):
                noise = gumbel(rng, count, (1 if shared else prefixes) * phi.shape[axis])
                values = values.reshape(values.shape[0], prefixes, -1, phi.shape[axis])
                values = (values + noise.reshape(count, -1, 1, phi.shape[axis])).max(axis=3)
            bounds = power_bounds(values.reshape(count, prefixes).T, n - held, np.array([alpha]))[0][:, 0]
        else:
            bounds = np.asarray(logsumexp(phi.reshape(prefixes, -1), axis=1))
        if below is not None:
            steps = np.exp(bounds.reshape(below.size, -1) - below[:, np.newaxis])
            total = steps.sum(axis=1)
            clipped += float(reach[total > 1 + 1e-9].sum())
            reach = (reach[:, np.newaxis] * steps / np.maximum(1, total)[:, np.newaxis]).ravel()
        below = bounds
    accepted = float(reach.sum())
    return Attempt(accepted, float(0.5 * np.abs(reach / accepted - p).sum()), clipped)
