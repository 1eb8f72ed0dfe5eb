"""Estimates of ln Z, Z and f(Z) from perturbed MAP values (Thesis sections 2.2.2, 2.2.3, A.1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaincinv, digamma, ndtri, polygamma

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.perturbation import mse
from thesis_cli.perturbation.estimate import Estimate, check_confidence, from_logs
from thesis_cli.perturbation.posterior import GammaPosterior
from thesis_cli.perturbation.tricks import Trick

TARGETS = ("lnZ", "Z", "f")
_ERROR_OF_Z: dict[str, Any] = {"gumbel": mse.gumbel_z, "exponential": mse.exponential_z}
"""Bias and variance of Z^, where they are known."""


def estimate(
    trick: Trick,
    values: Floats,
    *,
    target: str = "lnZ",
    debias: bool = True,
    confidence: float = 0.95,
) -> Estimate:
    """What one trick makes of full-rank MAP values.

    Parameters
    ----------
    trick : the member of the family.
    values : independent max_x {phi(x) + gamma(x)}, gamma ~ Gumbel(-c), shape (M,).
    target : `lnZ`, `Z`, or `f` for the unbiased estimate of the trick's own f(Z).
    debias : remove the bias where it is known exactly: Exponential on ln Z (ln M - digamma(M)) and on
        Z (M / (M-1)), Gumbel on Z (Gamma(1 - 1/M)^M e^-c).
    confidence : of the interval.

    Returns
    -------
    Estimate : the standard error is exact for Gumbel and Exponential, else of the delta method; the
        interval is exact for Exponential (Gamma) and tail (Clopper-Pearson), else normal on ln Z.

    Raises
    ------
    InputError : no values, or a target or confidence that is not one.
    """
    if target not in TARGETS:
        raise InputError(f"the target is '{target}'", f"one of {', '.join(TARGETS)}")
    check_confidence(confidence)
    if values.size == 0:
        raise InputError("there are no MAP values", "at least one is wanted")
    log_t = -np.euler_gamma - values
    if target == "f" and trick.log_transform is not None:
        return _transform(trick, log_t, confidence)
    m = values.size
    log_z = float(trick.estimate_log_z(log_t))
    error = _error_log_z(trick, log_z, m)
    low, high = _interval(trick, log_t, log_z, error, confidence)
    if target == "Z":
        shift = _log_bias_factor(trick, m) if debias else None
        log_z -= shift or 0.0
        value, spread, low, high, exponent = from_logs(log_z, _relative_error_z(trick, error, m), low, high)
        kind = "consistent" if shift is None else "unbiased"
        return Estimate(value, spread, low, high, "Z", kind, confidence, m, trick.label, trick.source, exponent)
    unbiased = trick.name == "gumbel"
    if trick.name == "exponential" and debias:
        log_z, unbiased = log_z - (math.log(m) - float(digamma(m))), True
    kind = "unbiased" if unbiased else "consistent"
    return Estimate(log_z, error, low, high, "ln Z", kind, confidence, m, trick.label, trick.source)


def _error_log_z(trick: Trick, log_z: float, m: int) -> float:
    """Standard deviation of the estimate of ln Z."""
    if trick.name == "exponential":
        return math.sqrt(float(polygamma(1, m)))
    relative = float(trick.relative_variance(np.float64(log_z)))
    return math.sqrt(relative / m) if math.isfinite(relative) else math.inf


def _log_bias_factor(trick: Trick, m: int) -> float | None:
    """ln(E[Z^] / Z) where it is known and finite (A.1.1)."""
    if m > 1 and trick.name in _ERROR_OF_Z:
        return math.log1p(float(_ERROR_OF_Z[trick.name](np.float64(m))[0]))
    return None


def _relative_error_z(trick: Trick, error_log_z: float, m: int) -> float:
    """Standard deviation of the estimate of Z over its mean (A.1.1)."""
    if m <= 2 or trick.name == "frechet":  # docs/errata.md: a Frechet trick's estimate of Z has no mean at any M
        return math.inf
    if trick.name in _ERROR_OF_Z:
        bias, variance = _ERROR_OF_Z[trick.name](np.float64(m))
        return math.sqrt(float(variance)) / (1 + float(bias))
    return error_log_z


def _interval(trick: Trick, log_t: Floats, log_z: float, error: float, confidence: float) -> tuple[float, float]:
    """Confidence interval of ln Z."""
    if trick.name == "exponential":
        return GammaPosterior.from_log_times(log_t).interval(confidence)
    if trick.name == "tail":
        return _clopper_pearson(trick, log_t, confidence)
    if not math.isfinite(error):
        return -math.inf, math.inf
    half = float(ndtri((1 + confidence) / 2)) * error
    return log_z - half, log_z + half


def _clopper_pearson(trick: Trick, log_t: Floats, confidence: float) -> tuple[float, float]:
    m, late = log_t.size, round(float(trick.average(log_t)) * log_t.size)
    rare = (1 - confidence) / 2
    least = betaincinv(late, m - late + 1, rare) if late else 0.0
    most = betaincinv(late + 1, m - late, 1 - rare) if late < m else 1.0
    low, high = trick.log_z(np.array([most, least]))
    return float(low), float(high)


def _transform(trick: Trick, log_t: Floats, confidence: float) -> Estimate:
    """The mean of g(T), with the standard error of the sample."""
    assert trick.log_transform is not None
    m = log_t.size
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_g = trick.log_transform(trick.average(log_t[:, np.newaxis]))
        log_mean = float(trick.log_transform(trick.average(log_t)))
        spread = float(np.exp(log_g - log_mean).std(ddof=1)) / math.sqrt(m) if m > 1 else math.inf
    if not math.isfinite(spread):
        spread = math.inf
    value, _, _, _, exponent = from_logs(log_mean, 0.0, log_mean, log_mean)
    half = float(ndtri((1 + confidence) / 2)) * spread * value if value else 0.0
    return Estimate(
        value,
        value * spread if value else 0.0,
        value - half,
        value + half,
        trick.target,
        "unbiased",
        confidence,
        m,
        trick.label,
        trick.source,
        exponent,
    )
