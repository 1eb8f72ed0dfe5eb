"""Acceptance and exactness of the sequential sampler, computed without waiting for its attempts.

An attempt of Hazan et al. Algorithm 1 goes on at a step with probability s_j = sum_x p_j(x), and is
accepted with the expectation of the product of the s_j, if each state is drawn from p_j / s_j and
nothing is rejected. That product has a small spread, so a few such paths tell an acceptance of e^-20.
Of a small model, all prefixes tell what estimated bounds do to Thesis Algorithm 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.spin_glass_strips import Strips, energy

EXACT_ROWS = 11
"""Rows left up to which grid transfer maximises; above, `Strips.search` does."""
ROUNDING = 1e-9
"""Excess of ln s_j over 0 from which a step counts as clipped."""


class Paths(NamedTuple):
    """Attempts of which no step was allowed to reject.

    Attributes
    ----------
    log_bound : estimate of U(0) of the model, in nats.
    log_sums : ln s_j of each path and step, shape (paths, n - 1); the last variable is drawn without
        rejection.
    spins : the configurations, shape (paths, rows, columns).
    map_calls : MAP problems solved for one path.
    """

    log_bound: float
    log_sums: Floats
    spins: Floats
    map_calls: int


class Acceptance(NamedTuple):
    """Acceptance of attempts, estimated from paths.

    Attributes
    ----------
    gap : estimate of U(0), less ln Z; given the estimates, e^-gap is the acceptance without
        clipping.
    ratio, ratio_error : acceptance without clipping over e^-gap, and its standard error.
    log_tries, log_tries_error : ln of the expected number of attempts without clipping.
    clipped_log_tries : the same where s_j above 1 count as 1, as in `SequentialSampler`.
    clipped_share : share of such steps.
    steps : expected number of steps of an attempt, clipped.
    """

    gap: float
    ratio: float
    ratio_error: float
    log_tries: float
    log_tries_error: float
    clipped_log_tries: float
    clipped_share: float
    steps: float


def acceptance(found: Paths, log_z: float) -> Acceptance:
    """Acceptance of attempts from paths of a model with a known ln Z."""
    count, gap = len(found.log_sums), found.log_bound - log_z
    logs, kept = found.log_sums.sum(axis=1), np.minimum(0, found.log_sums)
    ratios = np.exp(logs + gap)
    mean, error = float(ratios.mean()), float(ratios.std(ddof=1)) / math.sqrt(count)
    clipped = np.exp(np.cumsum(kept, axis=1)).mean(axis=0)
    return Acceptance(
        gap,
        mean,
        error,
        gap - math.log(mean),
        error / mean,
        -math.log(clipped[-1]),
        float((found.log_sums > ROUNDING).mean()),
        1 + float(clipped.sum()),
    )


def paths(glass: SpinGlass, samples: int, count: int, seed: np.random.SeedSequence) -> Paths:
    """Draw paths of Algorithm 1, with bounds from the same noise at all prefixes, as
    `SequentialSampler` has them.

    Parameters
    ----------
    glass : the model, of two sites or more.
    samples : MAP problems for each bound.
    """
    noise_seed, draw_seed = seed.spawn(2)
    rows, columns = glass.fields.shape
    noise = gumbel(np.random.default_rng(noise_seed), samples, 2 * rows * columns).reshape(samples, rows, columns, 2)
    rng = np.random.default_rng(draw_seed)
    spins = np.zeros((count, rows, columns))
    log_bound = float(_bounds(glass, noise, np.zeros((1, rows, columns)), 0)[0])
    below = np.full(count, log_bound)
    log_sums = np.zeros((count, rows * columns - 1))
    for at in range(rows * columns):
        i, j = divmod(at, columns)
        tried = np.repeat(spins[np.newaxis], 2, axis=0)
        tried[0, :, i, j], tried[1, :, i, j] = -1.0, 1.0
        bounds = _bounds(glass, noise, tried.reshape(-1, rows, columns), at + 1).reshape(2, count)
        total = np.logaddexp(*bounds)
        if at < rows * columns - 1:
            log_sums[:, at] = total - below
        up = rng.random(count) < np.exp(bounds[1] - total)
        spins[:, i, j] = np.where(up, 1.0, -1.0)
        below = np.where(up, bounds[1], bounds[0])
    return Paths(log_bound, log_sums, spins, (2 * (rows * columns - 2) + 1) * samples)


def _bounds(glass: SpinGlass, noise: Floats, spins: Floats, held: int) -> Floats:
    """The bound given the first `held` spins of each configuration, the others being 0, shape (configurations,)."""
    rows, columns = glass.fields.shape
    left = rows * columns - held
    fixed = energy(glass, glass.fields, spins)
    if left == 0:
        return fixed
    i, j = divmod(held, columns)
    part = SpinGlass(glass.fields[i:], glass.right[i:], glass.down[i:])
    outside = np.broadcast_to(part.fields, (len(spins), *part.fields.shape)).copy()
    if i:
        outside[:, 0] += glass.down[i - 1] * spins[:, i - 1]
    if left == 1:
        last = outside[:, 0, j] + (glass.right[i, j - 1] * spins[:, i, j - 1] if j else 0.0)
        return fixed + np.logaddexp(last, -last)
    return fixed + _free(part, outside, noise[:, i:], spins[:, i, :j])


def _free(part: SpinGlass, outside: Floats, noise: Floats, held: Floats) -> Floats:
    """Mean maximum over the free sites of a part whose first sites are held, less the energy of those."""
    j = held.shape[1]
    half, mean = (noise[..., 1] - noise[..., 0]) / 2, (noise[..., 1] + noise[..., 0]) / 2
    half[:, 0, :j] = mean[:, 0, :j] = 0.0
    fields = outside[:, np.newaxis] + half
    penalty = 10 + np.abs(part.fields).sum() + 2 * (np.abs(part.right).sum() + np.abs(part.down).sum())
    penalty += np.abs(fields).sum(axis=(2, 3)).max()
    fields[:, :, 0, :j] = penalty * held[:, np.newaxis]
    strips = Strips(part, EXACT_ROWS)
    values = strips.search(fields.reshape(-1, *part.fields.shape))[0].reshape(fields.shape[:2])
    inside = (part.right[0, : j - 1] * held[:, 1:] * held[:, :-1]).sum(axis=1) if j else 0.0
    free = values - penalty * j + mean.sum(axis=(1, 2))
    return np.asarray(free.mean(axis=1) - inside)


class AttemptOutcome(NamedTuple):
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
    """Total variation of the empirical distribution of some draws, shape (K, n), from p, shape (N,)."""
    counts = np.bincount(np.ravel_multi_index(tuple(states.T), phi.shape), minlength=p.size)
    return float(0.5 * np.abs(counts / len(states) - p).sum())


def without_drawing(
    phi: Floats, alpha: float, count: int, seed: np.random.SeedSequence, shared: bool
) -> AttemptOutcome:
    """Acceptance, exactness and clipping, from the bounds at all prefixes.

    Parameters
    ----------
    phi : log-potentials, an axis for each variable.
    alpha : exponent of the bound.
    count : samples in each estimate.
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
    return AttemptOutcome(accepted, float(0.5 * np.abs(reach / accepted - p).sum()), clipped)
