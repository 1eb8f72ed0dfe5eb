r"""Functions of a distribution whose logarithms are Renyi entropies (Thesis sections 3.2.1, 3.3.2).

Each is Z_a^s Z^t at an order a, or affine in such a product. The earliest clocks T_m = e^{-c -
max{a phi + gamma}} are independent Exp(Z_a), so their sum S ~ Gamma(M) / Z_a is sufficient, and
S^-s Gamma(M) / Gamma(M - s) is the only unbiased estimator of Z_a^s that is a function of it. It
exists if M > s and has a finite variance if M > 2s. At s = -1 it is the Exponential trick's mean of
T. The product of two such factors is unbiased if their noise is independent, or if the second, ln
Z, is known.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import digamma, gammaincinv, gammaln, ndtri, polygamma

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.rounding import log_sum_exp
from thesis_cli.entropy.estimators import EntropyMaxima, renyi_entropy
from thesis_cli.entropy.names import ENTROPIES, ORDER, Quantity
from thesis_cli.perturbation.estimate import Estimate, check_confidence, from_logs
from thesis_cli.perturbation.tricks.tricks import power


def check_quantity(quantity: Quantity, order: float) -> None:
    """Raise `InputError` for an order at which a quantity is not defined."""
    if quantity == "tsallis" and order == math.inf:
        raise InputError("the order of the Tsallis entropy is inf", "it must be finite: at inf the entropy is always 0")
    if order != ORDER.get(quantity, order):
        raise InputError(f"the order of {quantity} is {order:g}", f"it must be {ORDER[quantity]:g}")


def target(quantity: Quantity, order: float) -> str:
    """The name of the quantity in a table: `H_2`, `T_2`, or its own."""
    if quantity in ENTROPIES:
        return f"H_{order:.12g}"
    return f"T_{order:.12g}" if quantity == "tsallis" else quantity.replace("-", " ")


def value_of(quantity: Quantity, order: float, entropy: float) -> tuple[float, int]:
    """The quantity that has a given Renyi entropy, and the power of ten that is its unit."""
    check_quantity(quantity, order)
    if quantity in ENTROPIES or (quantity == "tsallis" and order == 1):
        return entropy, 0
    log_value = entropy if quantity == "inverse-participation-ratio" else (1 - order) * entropy
    logs = (log_value, 0.0, log_value, log_value)
    value, _, _, _, exponent = _tsallis(order, *logs) if quantity == "tsallis" else from_logs(*logs)
    return value, exponent


def estimate_quantity(
    maxima: EntropyMaxima,
    quantity: Quantity,
    order: float,
    *,
    log_z: float | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The collision probability sum p^2, its inverse e^{H_2}, or the Tsallis entropy (1 - sum p^a)
    / (a - 1). Raises InputError if the quantity, order, design or confidence level is not suitable.

    Parameters
    ----------
    maxima : maxima of independent perturbations. If ln Z is not known, the estimate is unbiased
        only if the maxima for ln Z have noise of their own.
    quantity : a quantity that is not a Renyi entropy; `renyi_entropy` estimates those.
    order : a. At order 1 the Tsallis entropy is Shannon's.
    log_z : ln Z, if it is known.
    confidence : confidence level of the interval, which is exact if ln Z is known or not needed,
        and otherwise normal for the logarithm.
    """
    check_quantity(quantity, order)
    check_confidence(confidence)
    if quantity in ENTROPIES:
        raise InputError(f"the quantity {quantity} is an entropy", "use renyi_entropy")
    if quantity == "tsallis" and order == 1:
        shannon = renyi_entropy(maxima, 1.0, log_z=log_z, confidence=confidence)[0]
        return replace(shannon, target=target(quantity, order))
    if not maxima.independent:
        raise InputError(f"a stratified design does not go with {quantity}", "use an independent one")
    sign = -1.0 if quantity == "inverse-participation-ratio" else 1.0
    if log_z is None and order != 0 and maxima.share_above < math.inf:
        logs, kind = _shared(maxima, order, sign, confidence), "consistent"
    else:
        logs, kind = _unbiased(maxima, order, sign, log_z, confidence), "unbiased"
    value, error, low, high, exponent = _tsallis(order, *logs) if quantity == "tsallis" else from_logs(*logs)
    calls = maxima.samples * (2 if log_z is None and order != 0 else 1)
    return Estimate(
        value,
        error,
        low,
        high,
        target(quantity, order),
        kind,
        confidence,
        calls,
        "exponential",
        "Thesis section 3.3.2",
        exponent,
    )


def _unbiased(
    maxima: EntropyMaxima, order: float, sign: float, log_z: float | None, confidence: float
) -> tuple[float, float, float, float]:
    """Z_a^sign Z^(-sign a): its logarithm, its relative standard error, and the logarithms of the
    interval's ends."""
    rare = (1 - confidence) / 2
    top = _Power(maxima.column(order), sign)
    if log_z is not None or order == 0:
        known = -sign * order * (log_z or 0.0)
        low, high = sorted(sign * (math.log(gammaincinv(top.m, q)) - top.log_sum) for q in (rare, 1 - rare))
        return top.log_value + known, top.error(), low + known, high + known
    bottom = _Power(maxima.at_one, -sign * order)
    half = float(ndtri(1 - rare)) * math.sqrt((1 + order**2) * float(polygamma(1, top.m)))
    centre = top.log_centre + bottom.log_centre
    return top.log_value + bottom.log_value, top.error(bottom), centre - half, centre + half


class _Power:
    """The logarithm of the unbiased estimate of Z^k from maxima whose clocks are Exp(Z), and E[its
    square] / Z^2k."""

    def __init__(self, values: Floats, k: float) -> None:
        m = self.m = values.size
        if m <= k:
            raise InputError(f"the number of samples is {m}", f"it must be above {k:g} for an unbiased Z^{k:g}")
        self.log_sum = float(log_sum_exp(-np.euler_gamma - values))
        self.log_value = -k * self.log_sum + float(gammaln(m) - gammaln(m - k))
        self.log_centre = k * (float(digamma(m)) - self.log_sum)
        self.log_second_moment = _log_second_moment(m, k)

    def error(self, other: _Power | None = None) -> float:
        """Relative standard error, of the product with an independent estimate if one is given."""
        log_square = self.log_second_moment + (other.log_second_moment if other else 0.0)
        return math.sqrt(math.expm1(log_square)) if log_square < 700 else math.inf


def _log_second_moment(m: int, k: float) -> float:
    if m <= 2 * k:
        return math.inf
    if m > 1000 * max(1.0, abs(k)):  # the second difference of ln Gamma below would cancel
        return float(k**2 * polygamma(1, m - k) + k**4 / 12 * polygamma(3, m - k))
    return float(gammaln(m) + gammaln(m - 2 * k) - 2 * gammaln(m - k))


def _shared(maxima: EntropyMaxima, order: float, sign: float, confidence: float) -> tuple[float, float, float, float]:
    """The result of `_unbiased` from an entropy whose two terms share noise; the error is to first
    order."""
    entropy = renyi_entropy(maxima, order, trick=power(1.0), confidence=confidence)[0]
    factor = sign * (1 - order)
    low, high = sorted(factor * x for x in (entropy.low, entropy.high))
    return factor * entropy.value, abs(factor) * entropy.standard_error, low, high


def _tsallis(
    order: float, log_sum: float, relative_error: float, log_low: float, log_high: float
) -> tuple[float, float, float, float, int]:
    """`from_logs` of a power sum s, turned into (1 - s) / (a - 1); next to 1, an s below e^-690
    makes no difference."""
    logs = [max(x, -690.0) for x in (log_sum, log_low, log_high)]
    value, error, low, high, exponent = from_logs(logs[0], relative_error, *logs[1:])
    less_one = (x - 10.0**-exponent for x in (value, low, high)) if exponent else map(math.expm1, logs)
    value, low, high = (x / (1 - order) for x in less_one)
    return value, error / abs(1 - order), min(low, high), max(low, high), exponent
