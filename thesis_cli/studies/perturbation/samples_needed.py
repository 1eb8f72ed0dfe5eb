"""Number of perturbations M that a trick needs for a given MSE of ln Z (Thesis section 2.5.1)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import digamma

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.perturbation.tricks.tricks import exponential_log_z_error, gumbel, gumbel_log_z_error, power

TRICKS = {"gumbel": gumbel(), "exponential": power(1.0)}
"""The tricks that are compared, by name."""

THEORY: dict[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "gumbel": gumbel_log_z_error,
    "exponential": exponential_log_z_error,
}
"""M -> bias and variance. `estimates` has no bias, so that its MSE is the variance."""

CHUNKS, REGROUPINGS = 20, 60
"""Independent parts of the values, and random groupings within each."""


def estimates(groups: Floats, trick: str) -> Floats:
    """Unbiased estimates of ln Z, shape (...), from perturbed maxima of shape (..., M)."""
    m = groups.shape[-1]
    bias = math.log(m) - float(digamma(m)) if trick == "exponential" else 0.0
    return TRICKS[trick].estimate_log_z(-np.euler_gamma - groups) - bias


def plain_mse(values: Floats, trick: str, samples: Ints) -> tuple[Floats, Floats]:
    """MSE over disjoint groups of M values, for each M, and its standard error.

    Parameters
    ----------
    values : perturbed maxima less ln Z, shape (count,).
    samples : each M, shape (S,).
    """
    squares = [estimates(values[: values.size // m * m].reshape(-1, m), trick) ** 2 for m in samples]
    return np.array([s.mean() for s in squares]), np.array([s.std() / math.sqrt(s.size) for s in squares])


def sharp_mse(values: Floats, trick: str, samples: Ints, rng: np.random.Generator) -> Floats:
    """MSE averaged over many groupings of the values, within each part of them.

    Parameters
    ----------
    values, trick, samples : as for `plain_mse`; the number of values is a multiple of `CHUNKS`.

    Returns
    -------
    Shape (CHUNKS, S).
    """
    parts = values.reshape(CHUNKS, -1)
    many = np.concatenate([rng.permuted(parts, axis=1)[:, np.newaxis] for _ in range(REGROUPINGS)], axis=1)
    size = parts.shape[1]
    columns = [(estimates(many[..., : size // m * m].reshape(CHUNKS, -1, m), trick) ** 2).mean(axis=1) for m in samples]
    return np.stack(columns, axis=1)


def needed(errors: Floats, desired: Floats) -> Floats:
    """M for each desired MSE, given the MSEs at M = 1, 2, ...; a power law from one M to the next."""
    falling = np.minimum.accumulate(errors)
    return np.asarray(np.exp(np.interp(-np.log(desired), -np.log(falling), np.log(np.arange(1, errors.size + 1)))))


def saved(by_gumbel: Floats, by_exponential: Floats, desired: Floats) -> Floats:
    """Share of the samples that the Exponential trick saves, for each desired MSE.

    Parameters
    ----------
    by_gumbel, by_exponential : MSEs at M = 1, 2, ..., shape (S,).
    desired : desired MSEs, nats^2.
    """
    return 1 - needed(by_exponential, desired) / needed(by_gumbel, desired)


def saved_with_error(by_gumbel: Floats, by_exponential: Floats, desired: Floats) -> tuple[Floats, Floats]:
    """`saved` by the mean MSE curves, and its jackknife standard error over the parts.

    Parameters
    ----------
    by_gumbel, by_exponential : MSEs of each part, shape (CHUNKS, S).
    desired : desired MSEs, nats^2.
    """
    value = saved(by_gumbel.mean(axis=0), by_exponential.mean(axis=0), desired)
    left_out = np.stack([saved(_without(by_gumbel, k), _without(by_exponential, k), desired) for k in range(CHUNKS)])
    return value, np.asarray(math.sqrt(CHUNKS - 1) * left_out.std(axis=0))


def _without(curves: Floats, k: int) -> Floats:
    """Mean of all curves except number k."""
    return np.asarray(np.delete(curves, k, axis=0).mean(axis=0))
