"""Estimates of ln Z, Z and f(Z) from perturbed MAP values (Thesis sections 2.2.2, 2.2.3, A.1)."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.perturbation.estimate import Estimate, check_confidence, from_logs, normal_quantile
from thesis_cli.perturbation.tricks.tricks import Trick

TARGETS = ("lnZ", "Z", "f")


def estimate(
    trick: Trick,
    values: Floats,
    *,
    target: str = "lnZ",
    debias: bool = True,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate ln Z, Z or f(Z) from full-rank MAP values by one trick.

    Parameters
    ----------
    trick : the trick to apply.
    values : independent max_x {phi(x) + gamma(x)}, gamma ~ Gumbel(-c), shape (M,).
    target : `lnZ`, `Z`, or `f` for the unbiased estimate of the trick's own f(Z).
    debias : remove the bias where it is known exactly: Exponential on ln Z (ln M - digamma(M)) and
        on Z (M / (M-1)), Gumbel on Z (Gamma(1 - 1/M)^M e^-c).
    confidence : confidence level of the interval.

    Returns
    -------
    Estimate : the standard error is exact for Gumbel and Exponential, and by the delta method for
        the others; the interval is exact for Exponential (Gamma) and tail (Clopper-Pearson), and
        normal on ln Z for the others.

    Raises
    ------
    InputError : there are no values, or the target or the confidence is out of range.
    """
    if target not in TARGETS:
        raise InputError(f"the target is '{target}'", f"it must be one of {', '.join(TARGETS)}")
    check_confidence(confidence)
    if values.size == 0:
        raise InputError("there are no MAP values", "there must be at least one")
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
    bias, kind = trick.bias_to_remove(m, debias)
    log_z -= bias
    return Estimate(log_z, error, low, high, "ln Z", kind, confidence, m, trick.label, trick.source)


def _error_log_z(trick: Trick, log_z: float, m: int) -> float:
    """Standard deviation of the estimate of ln Z."""
    if trick.log_z_error is not None:
        return math.sqrt(float(trick.log_z_error(np.float64(m))[1]))
    relative = float(trick.relative_variance(np.float64(log_z)))
    return math.sqrt(relative / m) if math.isfinite(relative) else math.inf


def _log_bias_factor(trick: Trick, m: int) -> float | None:
    """ln(E[Z^] / Z) where it is known and finite (A.1.1)."""
    bias = math.inf if trick.z_error is None else float(trick.z_error(np.float64(m))[0])
    return math.log1p(bias) if math.isfinite(bias) else None


def _relative_error_z(trick: Trick, error_log_z: float, m: int) -> float:
    """Standard deviation of the estimate of Z over its mean (A.1.1)."""
    if m <= 2:
        return math.inf
    if trick.z_error is None:
        return error_log_z
    bias, variance = trick.z_error(np.float64(m))
    return math.sqrt(float(variance)) / (1 + float(bias)) if math.isfinite(variance) else math.inf


def _interval(trick: Trick, log_t: Floats, log_z: float, error: float, confidence: float) -> tuple[float, float]:
    """Confidence interval of ln Z."""
    if trick.interval is not None:
        return trick.interval(log_t, confidence)
    if not math.isfinite(error):
        return -math.inf, math.inf
    half = normal_quantile((1 + confidence) / 2) * error
    return log_z - half, log_z + half


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
    half = normal_quantile((1 + confidence) / 2) * spread * value if value else 0.0
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
