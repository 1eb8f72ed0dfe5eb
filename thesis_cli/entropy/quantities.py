r"""Functions of a distribution that Renyi entropies are the logarithms of (Thesis sections 3.2.1, 3.3.2).

Each is Z_alpha^s Z^t, or affine in one. The earliest clocks at alpha, T_m = e^{-c - max{alpha phi + gamma}}, are
independent Exp(Z_alpha), so that S = sum T_m ~ Gamma(M) / Z_alpha tells all that they tell, and
S^-s Gamma(M) / Gamma(M - s) is the one unbiased estimator of Z_alpha^s that is a function of it; it exists if M > s,
with a finite variance if M > 2s. At s = -1 it is the Exponential trick's mean of T. Two such factors make an unbiased
product if their noise is independent, or if the second, ln Z, is known.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import digamma, gammaincinv, gammaln, logsumexp, ndtri, polygamma

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.entropy.estimators import renyi_entropy
from thesis_cli.entropy.maxima import EntropyMaxima
from thesis_cli.entropy.names import ENTROPIES, ORDER, Quantity
from thesis_cli.perturbation.estimate import Estimate, check_confidence, from_logs
from thesis_cli.perturbation.tricks import power


def check_quantity(quantity: Quantity, alpha: float) -> None:
    """Refuse an alpha at which a quantity has no meaning (`InputError`)."""
    if quantity == "tsallis" and alpha == math.inf:
        raise InputError("the Tsallis entropy at alpha = inf is 0 for every distribution", "a finite alpha is wanted")
    if alpha != ORDER.get(quantity, alpha):
        raise InputError(f"{quantity} at alpha = {alpha:g}", f"its alpha is {ORDER[quantity]:g}")


def target(quantity: Quantity, alpha: float) -> str:
    """The quantity, for a table: `H_2`, `T_2`, or its name."""
    if quantity in ENTROPIES:
        return f"H_{alpha:.12g}"
    return f"T_{alpha:.12g}" if quantity == "tsallis" else quantity.replace("-", " ")


def value_of(quantity: Quantity, alpha: float, entropy: float) -> tuple[float, int]:
    """The quantity whose Renyi entropy is known, and the power of ten that it is in units of."""
    check_quantity(quantity, alpha)
    if quantity in ENTROPIES or (quantity == "tsallis" and alpha == 1):
        return entropy, 0
    log_value = entropy if quantity == "inverse-participation-ratio" else (1 - alpha) * entropy
    logs = (log_value, 0.0, log_value, log_value)
    value, _, _, _, exponent = _tsallis(alpha, *logs) if quantity == "tsallis" else from_logs(*logs)
    return value, exponent


def estimate_quantity(
    maxima: EntropyMaxima,
    quantity: Quantity,
    alpha: float,
    *,
    log_z: float | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The collision probability sum p^2, its inverse e^{H_2}, or the Tsallis entropy (1 - sum p^alpha) / (alpha - 1).

    Parameters
    ----------
    maxima : of independent perturbations. Noise that ln Z's maxima share costs unbiasedness, if ln Z is not known.
    quantity : no entropy of Renyi's (`renyi_entropy` estimates those), except as the limit alpha = 1 of Tsallis's.
    alpha : the order.
    log_z : ln Z, if it is known.
    confidence : of the interval, which is exact if ln Z is known or not needed, else normal on the logarithm.

    Raises
    ------
    InputError : a quantity, order, design or confidence that does not fit.
    """
    check_quantity(quantity, alpha)
    check_confidence(confidence)
    if quantity in ENTROPIES:
        raise InputError(f"{quantity} is an entropy", "renyi_entropy estimates those")
    if quantity == "tsallis" and alpha == 1:
        shannon = renyi_entropy(maxima, 1.0, log_z=log_z, confidence=confidence)[0]
        return replace(shannon, target=target(quantity, alpha))
    if not maxima.independent:
        raise InputError(f"a stratified design with {quantity}", "an independent one is wanted")
    sign = -1.0 if quantity == "inverse-participation-ratio" else 1.0
    if log_z is None and alpha != 0 and maxima.share_above < math.inf:
        logs, kind = _shared(maxima, alpha, sign, confidence), "consistent"
    else:
        logs, kind = _unbiased(maxima, alpha, sign, log_z, confidence), "unbiased"
    value, error, low, high, exponent = _tsallis(alpha, *logs) if quantity == "tsallis" else from_logs(*logs)
    calls = maxima.samples * (2 if log_z is None and alpha != 0 else 1)
    return Estimate(
        value,
        error,
        low,
        high,
        target(quantity, alpha),
        kind,
        confidence,
        calls,
        "exponential",
        "Thesis section 3.3.2",
        exponent,
    )


def _unbiased(
    maxima: EntropyMaxima, alpha: float, sign: float, log_z: float | None, confidence: float
) -> tuple[float, float, float, float]:
    """Z_alpha^sign Z^(-sign alpha): its logarithm, the relative standard error, and the interval's logarithms."""
    rare = (1 - confidence) / 2
    top = _Power(maxima.column(alpha), sign)
    if log_z is not None or alpha == 0:
        known = -sign * alpha * (log_z or 0.0)
        low, high = sorted(sign * (math.log(gammaincinv(top.m, q)) - top.log_sum) for q in (rare, 1 - rare))
        return top.log_value + known, top.error(), low + known, high + known
    bottom = _Power(maxima.at_one, -sign * alpha)
    half = float(ndtri(1 - rare)) * math.sqrt((1 + alpha**2) * float(polygamma(1, top.m)))
    centre = top.log_centre + bottom.log_centre
    return top.log_value + bottom.log_value, top.error(bottom), centre - half, centre + half


class _Power:
    """The unbiased estimate of Z^k by maxima whose clocks are Exp(Z): ln of it, and E[its square] / Z^2k."""

    def __init__(self, values: Floats, k: float) -> None:
        m = self.m = values.size
        if m <= k:
            raise InputError(f"{m} samples", f"more than {k:g} are wanted to estimate Z^{k:g} without bias")
        self.log_sum = float(logsumexp(-np.euler_gamma - values))
        self.log_value = -k * self.log_sum + float(gammaln(m) - gammaln(m - k))
        self.log_centre = k * (float(digamma(m)) - self.log_sum)
        self.log_second_moment = _log_second_moment(m, k)

    def error(self, other: _Power | None = None) -> float:
        """Relative standard error, of the product with an independent one if given."""
        log_square = self.log_second_moment + (other.log_second_moment if other else 0.0)
        return math.sqrt(math.expm1(log_square)) if log_square < 700 else math.inf


def _log_second_moment(m: int, k: float) -> float:
    if m <= 2 * k:
        return math.inf
    if m > 1000 * max(1.0, abs(k)):  # a second difference of ln Gamma, whose digits would cancel
        return float(k**2 * polygamma(1, m - k) + k**4 / 12 * polygamma(3, m - k))
    return float(gammaln(m) + gammaln(m - 2 * k) - 2 * gammaln(m - k))


def _shared(maxima: EntropyMaxima, alpha: float, sign: float, confidence: float) -> tuple[float, float, float, float]:
    """The same by way of H_alpha, whose two terms share noise: the error to first order."""
    entropy = renyi_entropy(maxima, alpha, trick=power(1.0), confidence=confidence)[0]
    factor = sign * (1 - alpha)
    low, high = sorted(factor * x for x in (entropy.low, entropy.high))
    return factor * entropy.value, abs(factor) * entropy.standard_error, low, high


def _tsallis(
    alpha: float, log_sum: float, relative_error: float, log_low: float, log_high: float
) -> tuple[float, float, float, float, int]:
    """`from_logs` of a power sum, and then (1 - it) / (alpha - 1): of one below e^-690 nothing is seen next to 1."""
    logs = [max(x, -690.0) for x in (log_sum, log_low, log_high)]
    value, error, low, high, exponent = from_logs(logs[0], relative_error, *logs[1:])
    less_one = (x - 10.0**-exponent for x in (value, low, high)) if exponent else map(math.expm1, logs)
    value, low, high = (x / (1 - alpha) for x in less_one)
    return value, error / abs(1 - alpha), min(low, high), max(low, high), exponent
