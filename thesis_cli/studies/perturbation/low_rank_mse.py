"""Mean squared error of low-rank upper bounds of ln Z, each from M samples (Thesis section 2.5.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds


@dataclass(frozen=True)
class MseCurve:
    """U^(alpha), the sample version of U(alpha) from M samples, over K repetitions.

    Each has shape (A,); `..._error` is a standard error.

    Attributes
    ----------
    alpha : exponent of the bound.
    mean, variance : mean and variance of U^(alpha), nats and nats^2.
    mse : mean of (U^(alpha) - ln Z)^2, nats^2.
    saving : 1 - MSE(alpha) / MSE(0). Its error counts that both MSEs come from the same samples.
    """

    alpha: Floats
    mean: Floats
    mean_error: Floats
    variance: Floats
    variance_error: Floats
    mse: Floats
    mse_error: Floats
    saving: Floats
    saving_error: Floats


def mse_curve(values: Floats, terms: int, log_z: float, alphas: Floats) -> MseCurve:
    """Error of U^(alpha) as an estimator of ln Z.

    Parameters
    ----------
    values : samples of U, a row for each repetition, shape (K, M), K at least 2.
    terms : n of Thesis eq. 2.8.
    log_z : ln Z, nats.
    alphas : distinct, above -1, 0 among them, shape (A,).

    Raises
    ------
    InputError : there is only one repetition, or no alpha is 0.
    """
    if len(values) < 2:
        raise InputError(f"{len(values)} repetitions", "there must be at least two")
    if not (alphas == 0).any():
        raise InputError("no alpha is 0", "alpha = 0 must be among them for comparison")
    estimates, _ = power_bounds(values, terms, alphas)
    root = math.sqrt(len(values))
    squares = (estimates - log_z) ** 2
    mse = squares.mean(axis=0)
    gumbel = alphas == 0
    ratio = mse / mse[gumbel]
    excess = squares - ratio * squares[:, gumbel]
    variance, variance_error = sample_variance(estimates)
    return MseCurve(
        alphas,
        estimates.mean(axis=0),
        np.sqrt(variance) / root,
        variance,
        variance_error,
        mse,
        squares.std(axis=0, ddof=1) / root,
        1 - ratio,
        excess.std(axis=0, ddof=1) / root / mse[gumbel],
    )


def best_alpha(
    values: Floats, terms: int, log_z: float, alphas: Floats, rng: np.random.Generator, resamples: int = 200
) -> tuple[float, float]:
    """The alpha at which the MSE is least, and its standard error by the bootstrap.

    Parameters
    ----------
    values, terms, log_z : as for `mse_curve`.
    alphas : the alphas to choose from, shape (A,).
    """
    count = len(values)
    squares = (power_bounds(values, terms, alphas)[0] - log_z) ** 2
    weights = rng.multinomial(count, np.full(count, 1 / count), resamples)
    chosen = alphas[(weights @ squares).argmin(axis=1)]
    return float(alphas[squares.sum(axis=0).argmin()]), float(chosen.std(ddof=1))


def sample_variance(values: Floats) -> tuple[Floats, Floats]:
    """Unbiased variance of values of shape (N, ...) along the first axis, and its standard error.

    N must be at least 2; both results have shape (...).
    """
    count = len(values)
    squares = (values - values.mean(axis=0)) ** 2
    variance = squares.sum(axis=0) / (count - 1)
    fourth = (squares**2).mean(axis=0)
    spread = fourth - variance**2 * (count - 3) / (count - 1)
    return np.asarray(variance), np.sqrt(np.maximum(spread, 0) / count)
