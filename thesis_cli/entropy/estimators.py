r"""Renyi entropies from perturbed maxima (Thesis sections 3.2.2, 3.3, 3.4).

H_alpha = (ln Z_alpha - alpha ln Z) / (1 - alpha), Z_alpha = sum_x e^{alpha phi(x)} (eq. 3.10). A trick (Thesis Table
2.1) makes an estimate of ln Z_alpha of the maxima of alpha phi + gamma, and one of ln Z of those of phi + gamma. The
Gumbel trick's is unbiased; so is the Exponential trick's less its bias ln M - digamma(M), and no unbiased one varies
less. Then H_alpha is unbiased too, whether or not the two share noise (eq. 3.12).

At 0, 1 and inf the estimators are the limits. At 0 ln Z drops out. At inf the noise does, but for that in ln Z. At 1,
(max{alpha phi + gamma} - alpha max{phi + gamma}) / (1 - alpha) tends to gamma(x*) = max{phi + gamma} - phi(x*), the
noise at the maximum (Proposition 9; Maji et al. 2014). One estimator is no limit: the Exponential trick's, at 1, would
weigh phi(x*) by the clocks, which doubles its variance; the plain mean of phi(x*) is taken instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.entropy.exact import LIMIT
from thesis_cli.entropy.maxima import EntropyMaxima, check_orders
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.trick_rows import TRICKS
from thesis_cli.perturbation.tricks import Trick, gumbel

LEAST_SETS = 32
"""Sets of perturbations from which on each half tells a coefficient well enough to gain by it."""


@dataclass(frozen=True)
class ControlVariate:
    """What taking off b (estimate of ln Z - ln Z) did to an estimate of ln Z_alpha.

    Attributes
    ----------
    coefficient : b, mean of two: each is estimated on the half of the perturbations that it is not used for, which
        leaves the estimate unbiased.
    saved : share of the variance that went, estimated on the same perturbations.
    """

    coefficient: float
    saved: float


@dataclass(frozen=True)
class _Log:
    """An estimate. It varies as the mean of `influence` does: a number for each perturbation, or one that is 0."""

    value: float
    influence: Floats

    def minus(self, other: _Log, factor: float = 1.0) -> _Log:
        return _Log(self.value - factor * other.value, self.influence - factor * other.influence)

    def times(self, factor: float) -> _Log:
        return _Log(factor * self.value, factor * self.influence)


def renyi_entropy(
    maxima: EntropyMaxima,
    alpha: float,
    *,
    log_z: float | None = None,
    trick: Trick | None = None,
    debias: bool = True,
    control: bool = True,
    confidence: float = 0.95,
) -> tuple[Estimate, ControlVariate | None]:
    """H_alpha of p = e^phi / Z, in nats.

    Parameters
    ----------
    maxima : of phi.
    alpha : 0 to inf; unless 1 or inf, one of `maxima.alphas`.
    log_z : ln Z, if it is known: the normalised case (eq. 3.8). Otherwise the trick estimates it too (eq. 3.12).
    trick : the Gumbel trick, if not given. Pareto and tail tricks, which need a scale, are refused.
    debias : take off the Exponential trick's bias, which is exact.
    control : if ln Z is known, use its estimate as a control variate, with the best coefficient; eq. 3.8 has 0 and
        eq. 3.12 alpha (Proposition 19). At alpha = 1, where eq. 3.8 has no limit, it is used in any case.
    confidence : of the interval, Student's, for which sets of perturbations are independent.

    Returns
    -------
    estimate : its standard error is the sample's, to first order; inf if there is but one set of perturbations.
    variate : the control variate, where one was used.

    Raises
    ------
    InputError : an alpha that `maxima` lacks, a trick that does not fit, a confidence that is none.
    """
    check_orders(np.array([alpha]))
    check_confidence(confidence)
    at_one_known = alpha == 1 and log_z is not None  # nothing is left for a trick to average
    rule = _Rule(gumbel() if trick is None or at_one_known else trick, maxima, debias)
    known = None if log_z is None else _Log(log_z, np.zeros(1))
    variate = None
    if alpha >= LIMIT:
        found = (known or rule(maxima.at_one)).minus(_Log(maxima.highest, np.zeros(1)))
    elif alpha == 1:
        found = (known or rule(maxima.at_one)).minus(_mean(maxima.potential))
        if known:
            variate = ControlVariate(1.0, _saved(found, _mean(maxima.at_one - maxima.potential), maxima))
    elif known and control and maxima.sets >= LEAST_SETS:
        top, variate = _controlled(maxima, alpha, known.value, rule)
        found = top.minus(known, alpha).times(1 / (1 - alpha))
    else:
        found = rule(maxima.column(alpha)).minus(known or rule(maxima.at_one), alpha).times(1 / (1 - alpha))
    exact = alpha >= LIMIT and known is not None
    error = 0.0 if exact else rule.error(found.influence)
    half = float(stdtrit(max(1, maxima.sets - 1), (1 + confidence) / 2)) * error
    estimate = Estimate(
        found.value,
        error,
        found.value - half,
        found.value + half,
        f"H_{alpha:.12g}",
        "exact" if exact else rule.kind,
        confidence,
        _calls(maxima, alpha, variate is not None or (log_z is None and alpha != 0)),
        _method(rule.trick, variate is not None, exact, at_one_known),
        _source(maxima, alpha, log_z),
    )
    return estimate, variate


class _Rule:
    """How a trick turns maxima into an estimate of ln Z."""

    def __init__(self, trick: Trick, maxima: EntropyMaxima, debias: bool) -> None:
        if TRICKS[trick.name].scaled:
            raise InputError(f"the {trick.name} trick needs a scale", "use gumbel, exponential, weibull or frechet")
        if not (trick.linear or maxima.independent):
            raise InputError(f"a stratified design with the {trick.label} trick", "use the gumbel trick")
        self.trick, self._maxima = trick, maxima
        self._debias = debias
        self.kind = trick.bias_to_remove(maxima.samples, debias)[1]

    def __call__(self, values: Floats) -> _Log:
        """Of maxima, shape (M,)."""
        log_t = -np.euler_gamma - values
        trick = self.trick
        each, average = trick.average(log_t[:, np.newaxis]), trick.average(log_t)
        log_z = float(trick.log_z(average)) - trick.bias_to_remove(values.size, self._debias)[0]
        if trick.log_transform is None:
            return _Log(log_z, each - average)
        slope = float(trick.log_z(1.0) - trick.log_z(0.0))
        with np.errstate(over="ignore"):
            return _Log(log_z, slope * np.expm1(each - average))

    def error(self, influence: Floats) -> float:
        """Standard error of a mean of influences."""
        if self._maxima.sets < 2 or not math.isfinite(float(self.trick.relative_variance(0.0))):
            return math.inf
        return math.sqrt(_variance_of_mean(influence, self._maxima))


def _mean(values: Floats) -> _Log:
    mean = float(values.mean())
    return _Log(mean, values - mean)


def _variance_of_mean(influence: Floats, maxima: EntropyMaxima) -> float:
    """From the means of the sets, which are independent: of n_s perturbations each, sum n_s m_s^2 / ((S - 1) M)."""
    sizes = np.bincount(maxima.replicates)
    means = np.bincount(maxima.replicates, weights=influence) / sizes
    return float((sizes * means**2).sum() / max(1, maxima.sets - 1) / maxima.samples)


def _controlled(maxima: EntropyMaxima, alpha: float, log_z: float, rule: _Rule) -> tuple[_Log, ControlVariate]:
    """ln Z_alpha, estimated on two halves, each with the coefficient that is best on the other."""
    halves = [maxima.replicates % 2 == k for k in (0, 1)]
    tops, bottoms = ([rule(values[half]) for half in halves] for values in (maxima.column(alpha), maxima.at_one))
    sets = [maxima.replicates[half] // 2 for half in halves]
    best = [_coefficient(t.influence, b.influence, s) for t, b, s in zip(tops, bottoms, sets, strict=True)][::-1]
    value, influence, plain = 0.0, np.empty(maxima.samples), np.empty(maxima.samples)
    for half, top, bottom, b in zip(halves, tops, bottoms, best, strict=True):
        corrected = top.minus(bottom, b)
        value += (corrected.value + b * log_z) * float(half.mean())
        influence[half], plain[half] = corrected.influence, top.influence
    found = _Log(value, influence)
    return found, ControlVariate(sum(best) / 2, _saved(found, _Log(value, plain), maxima))


def _coefficient(top: Floats, bottom: Floats, sets: npt.NDArray[np.int64]) -> float:
    """Of the regression of sums over sets."""
    t, b = (np.bincount(sets, weights=x) for x in (top, bottom))
    square = float(b @ b)
    return float(t @ b) / square if square else 0.0


def _saved(after: _Log, before: _Log, maxima: EntropyMaxima) -> float:
    variance = _variance_of_mean(before.influence, maxima)
    return 1 - _variance_of_mean(after.influence, maxima) / variance if variance else 0.0


def _method(trick: Trick, controlled: bool, exact: bool, at_one_known: bool) -> str:
    if exact:
        return "maximum"
    return "mean of -ln p(x*)" if at_one_known else trick.label + ", control variate" * controlled


def _calls(maxima: EntropyMaxima, alpha: float, wants_one: bool) -> int:
    """Perturbed MAP problems that an estimate rests on: at alpha, and at 1."""
    at_alpha = alpha != 1 and alpha < LIMIT
    return maxima.samples * (at_alpha + (alpha == 1 or wants_one))


def _source(maxima: EntropyMaxima, alpha: float, log_z: float | None) -> str:
    if alpha >= LIMIT:
        return "Thesis eq. 3.4"
    if alpha == 1:
        return "Thesis eq. 3.17"
    return "Thesis eq. 3.8" if log_z is not None else f"Thesis eq. 3.1{'2' if maxima.share_above == -math.inf else '3'}"
