"""MSE of the tricks on maxima that racing finds, which are now and then too low (Thesis section 2.5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

from thesis_cli.base.arrays import Floats
from thesis_cli.models.factor_matrix import FactorMatrix, factor_matrix
from thesis_cli.studies.perturbation.power_kernels import log_z_on_grid

FIRST, LAST, COUNT = -0.2, 1.5, 100
STEP = (LAST - FIRST) / (COUNT - 1)
ALPHAS = np.append(FIRST + STEP * np.arange(COUNT), [0.0, 1.0])
"""The grid of the source, and the Gumbel and the Exponential trick themselves."""
BETWEEN = int(np.abs(ALPHAS - 0.8).argmin())
"""Place of the alpha that stands for the tricks between Gumbel and Exponential."""
CHUNKS, REGROUPINGS, EXACT, RESAMPLES = 20, 20, 2_000, 500


def hard_data(rng: np.random.Generator, states: int, factors: int, sigma: float) -> FactorMatrix:
    """Log-factors of a uniform p with ln Z = 0, of mean -ln(states) / S and standard deviation sigma in each state."""
    noise = rng.standard_normal((states, factors))
    noise -= noise.mean(axis=1, keepdims=True)
    noise *= sigma / noise.std(axis=1, keepdims=True)
    return factor_matrix(noise - np.log(states) / factors)


@dataclass(frozen=True)
class Curve:
    """MSE of ln Z by alpha, and numbers that are read off it.

    Attributes
    ----------
    mse, error : MSE at each of `ALPHAS`, and its standard error.
    numbers : number and standard error by name.
    """

    mse: Floats
    error: Floats
    numbers: dict[str, tuple[float, float]]


def as_in_the_source(values: Floats, samples: int, rng: np.random.Generator) -> Curve:
    """The curve over disjoint groups of perturbed maxima, with standard errors by the bootstrap.

    Parameters
    ----------
    values : perturbed maxima, a multiple of `samples`.
    samples : M.
    """
    squares = _log_z(values.reshape(-1, samples)) ** 2
    count = len(squares)
    weights = rng.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    numbers = {
        name: (float(read(squares.mean(axis=0))), float(read(weights @ squares).std())) for name, read in READ.items()
    }
    return Curve(squares.mean(axis=0), squares.std(axis=0, ddof=1) / np.sqrt(count), numbers)


def sharp(values: Floats, losses: Floats, samples: int, rng: np.random.Generator) -> Curve:
    """The MSE without racing, which simulation gives at little cost, plus the MSE that racing adds on
    the same noise, averaged over many ways to form groups.

    The standard errors come from `CHUNKS` parts of the values, those of numbers that are read off
    the curve by the jackknife.

    Parameters
    ----------
    values, losses : perturbed maxima, and how much higher the true ones are; a multiple of
        `CHUNKS`.
    samples : M.
    """
    parts = zip(values.reshape(CHUNKS, -1), losses.reshape(CHUNKS, -1), strict=True)
    mse = np.stack([_without_racing(samples, rng) + _added(*part, samples, rng) for part in parts])
    left_out = (mse.sum(axis=0) - mse) / (CHUNKS - 1)
    numbers = {
        name: (float(read(mse.mean(axis=0))), float(np.sqrt((CHUNKS - 1) * read(left_out).var())))
        for name, read in READ.items()
    }
    return Curve(mse.mean(axis=0), mse.std(axis=0, ddof=1) / np.sqrt(CHUNKS), numbers)


def _without_racing(samples: int, rng: np.random.Generator) -> Floats:
    """MSE by alpha of exact maxima, as the expectation given the shares of the M ringing times (`fig-2-2`)."""
    t = rng.standard_exponential((EXACT, samples))
    log_h = _log_z(-np.euler_gamma - np.log(t)) + np.log(t.sum(axis=1, keepdims=True))
    return np.asarray(((log_h - digamma(samples)) ** 2).mean(axis=0) + polygamma(1, samples))


def _added(values: Floats, losses: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """MSE by alpha from these values, minus that from the true maxima, over groups formed in many ways."""
    total = np.zeros(ALPHAS.size)
    for _ in range(REGROUPINGS):
        groups = rng.permutation(values.size).reshape(-1, samples)
        raced, true = (_log_z(maxima[groups]) for maxima in (values, values + losses))
        total += (raced**2 - true**2).mean(axis=0)
    return total / REGROUPINGS


def _log_z(values: Floats) -> Floats:
    """Estimates of ln Z, shape (groups, alphas), from maxima of shape (groups, samples)."""
    log_t = -np.euler_gamma - values
    grid = log_z_on_grid(log_t, FIRST, STEP, COUNT)
    return np.column_stack([grid, values.mean(axis=1), -np.log(np.exp(log_t).mean(axis=1))])


def _best_alpha(mse: Floats) -> Floats:
    return np.asarray(ALPHAS[mse.argmin(axis=-1)])


READ: dict[str, Callable[[Floats], Floats]] = {
    "best alpha": _best_alpha,
    "exponential over least": lambda mse: mse[..., -1] / mse.min(axis=-1),
    "exponential over between": lambda mse: mse[..., -1] / mse[..., BETWEEN],
    "gumbel over between": lambda mse: mse[..., -2] / mse[..., BETWEEN],
}
"""Numbers that are read off a curve, by name."""
