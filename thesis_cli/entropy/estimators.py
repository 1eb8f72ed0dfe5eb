r"""Renyi entropies from perturbed maxima (Thesis sections 3.2.2, 3.3, 3.4).

H_a = (ln Z_a - a ln Z) / (1 - a) at order a, with Z_a = sum_x e^{a phi(x)} (eq. 3.10). A trick
(Thesis Table 2.1) estimates ln Z_a from the maxima of a phi + gamma, and ln Z from those of phi +
gamma. The Gumbel trick is unbiased. So is the Exponential trick once its bias ln M - digamma(M) is
subtracted, and it has the least variance of all unbiased estimators. Then H_a is unbiased too,
whether or not the two maxima share noise (eq. 3.12).

At orders 0, 1 and inf the estimators are limits. At 0, ln Z drops out. At inf, all noise except
that in ln Z drops out. At 1, (max{a phi + gamma} - a max{phi + gamma}) / (1 - a) tends to gamma(x*)
= max{phi + gamma} - phi(x*), the noise at the maximum (Proposition 9; Maji et al. 2014). One
estimator is not a limit: at order 1 the Exponential trick would weight phi(x*) by the clocks, which
doubles its variance, so the plain mean of phi(x*) is used instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.rounding import difference, mean_of
from thesis_cli.entropy.exact import AS_INFINITE
from thesis_cli.entropy.maxima import EntropyMaxima, check_orders
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.tricks.trick_rows import TRICKS
from thesis_cli.perturbation.tricks.tricks import Trick, gumbel

LEAST_SETS = 32
"""Least number of sets of perturbations with which a control variate is used: with fewer, its
estimated coefficient is too uncertain to help."""


@dataclass(frozen=True)
class ControlVariate:
    """The effect of a control variate: b (estimate of ln Z - ln Z) is subtracted from an estimate
    of ln Z at an order.

    Attributes
    ----------
    coefficient : b, the mean of two coefficients. Each is estimated on one half of the
        perturbations and applied to the other, which keeps the estimate unbiased.
    saved : share of the variance that the control variate removes, estimated on the same
        perturbations.
    """

    coefficient: float
    saved: float


@dataclass(frozen=True)
class _Log:
    """An estimate whose variance is that of the mean of `influence`: one number for each
    perturbation, or a single 0."""

    value: float
    influence: Floats

    def minus(self, other: _Log, factor: float = 1.0) -> _Log:
        return _Log(difference(self.value, factor * other.value), self.influence - factor * other.influence)

    def times(self, factor: float) -> _Log:
        return _Log(factor * self.value, factor * self.influence)


def renyi_entropy(
    maxima: EntropyMaxima,
    order: float,
    *,
    log_z: float | None = None,
    trick: Trick | None = None,
    debias: bool = True,
    control: bool = True,
    confidence: float = 0.95,
) -> tuple[Estimate, ControlVariate | None]:
    """The Renyi entropy of p = e^phi / Z at an order, in nats. Raises InputError if `maxima` lacks
    the order, the trick does not apply, or the confidence level is out of range.

    Parameters
    ----------
    maxima : perturbed maxima of phi.
    order : 0 to inf; unless 1 or inf, one of `maxima.orders`.
    log_z : ln Z, if it is known: the normalised case (eq. 3.8). Otherwise the trick estimates it
        too (eq. 3.12).
    trick : trick that averages the maxima; by default Gumbel. Pareto and tail tricks, which need a
        scale, are refused.
    debias : whether to subtract the known bias of the Exponential trick.
    control : whether to use the estimate of a known ln Z as a control variate with the best
        coefficient. Eq. 3.8 has coefficient 0, eq. 3.12 the order itself (Proposition 19). At order
        1 eq. 3.8 has no limit, and the control variate is always used.
    confidence : confidence level of the Student interval, which treats sets of perturbations as
        independent.

    Returns
    -------
    estimate : the entropy, with the standard error of the sample to first order; inf with one set
        of perturbations.
    variate : the effect of the control variate, or None if none was used.
    """
    check_orders(np.array([order]))
    check_confidence(confidence)
    at_one_known = order == 1 and log_z is not None  # then there is nothing for a trick to average
    rule = _Rule(gumbel() if trick is None or at_one_known else trick, maxima, debias)
    known = None if log_z is None else _Log(log_z, np.zeros(1))
    variate = None
    if order >= AS_INFINITE:
        found = (known or rule(maxima.at_one)).minus(_Log(maxima.highest, np.zeros(1)))
    elif order == 1:
        found = (known or rule(maxima.at_one)).minus(_mean(maxima.potential))
        if known:
            variate = ControlVariate(1.0, _saved(found, _mean(maxima.at_one - maxima.potential), maxima))
    elif known and control and maxima.sets >= LEAST_SETS:
        top, variate = _controlled(maxima, order, known.value, rule)
        found = top.minus(known, order).times(1 / (1 - order))
    else:
        found = rule(maxima.column(order)).minus(known or rule(maxima.at_one), order).times(1 / (1 - order))
    exact = order >= AS_INFINITE and known is not None
    error = 0.0 if exact else rule.error(found.influence)
    half = float(stdtrit(max(1, maxima.sets - 1), (1 + confidence) / 2)) * error
    estimate = Estimate(
        found.value,
        error,
        found.value - half,
        found.value + half,
        f"H_{order:.12g}",
        "exact" if exact else rule.kind,
        confidence,
        _calls(maxima, order, variate is not None or (log_z is None and order != 0)),
        _method(rule.trick, variate is not None, exact, at_one_known),
        _source(maxima, order, log_z),
    )
    return estimate, variate


class _Rule:
    """An estimator of ln Z from maxima, by a trick."""

    def __init__(self, trick: Trick, maxima: EntropyMaxima, debias: bool) -> None:
        if TRICKS[trick.name].scaled:
            raise InputError(f"the {trick.name} trick needs a scale", "use gumbel, exponential, weibull or frechet")
        if not (trick.linear or maxima.independent):
            raise InputError(f"a stratified design does not go with the {trick.label} trick", "use the gumbel trick")
        self.trick, self._maxima = trick, maxima
        self._debias = debias
        self.kind = trick.bias_to_remove(maxima.samples, debias)[1]

    def __call__(self, values: Floats) -> _Log:
        """The estimate from maxima, shape (M,)."""
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
        """Standard error of the mean of influences."""
        if self._maxima.sets < 2 or not math.isfinite(float(self.trick.relative_variance(0.0))):
            return math.inf
        return math.sqrt(_variance_of_mean(influence, self._maxima))


def _mean(values: Floats) -> _Log:
    mean = mean_of(values)
    return _Log(mean, values - mean)


def _variance_of_mean(influence: Floats, maxima: EntropyMaxima) -> float:
    """sum n_s m_s^2 / ((S - 1) M), from the means m_s of the S independent sets with n_s
    perturbations each."""
    sizes = np.bincount(maxima.replicates)
    means = np.bincount(maxima.replicates, weights=influence) / sizes
    return float((sizes * means**2).sum() / max(1, maxima.sets - 1) / maxima.samples)


def _controlled(maxima: EntropyMaxima, order: float, log_z: float, rule: _Rule) -> tuple[_Log, ControlVariate]:
    """ln Z at an order, estimated on two halves, each with the coefficient that is best on the
    other."""
    halves = [maxima.replicates % 2 == k for k in (0, 1)]
    tops, bottoms = ([rule(values[half]) for half in halves] for values in (maxima.column(order), maxima.at_one))
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
    """Slope of the regression of the sums over sets."""
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


def _calls(maxima: EntropyMaxima, order: float, needs_one: bool) -> int:
    """Number of perturbed MAP problems that an estimate uses: those at its order and those at 1."""
    at_order = order != 1 and order < AS_INFINITE
    return maxima.samples * (at_order + (order == 1 or needs_one))


def _source(maxima: EntropyMaxima, order: float, log_z: float | None) -> str:
    if order >= AS_INFINITE:
        return "Thesis eq. 3.4"
    if order == 1:
        return "Thesis eq. 3.17"
    return "Thesis eq. 3.8" if log_z is not None else f"Thesis eq. 3.1{'2' if maxima.share_above == -math.inf else '3'}"
