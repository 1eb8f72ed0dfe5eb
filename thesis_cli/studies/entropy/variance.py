r"""Variances of the estimators of a Renyi entropy from one perturbation, exact (beyond Thesis
Propositions 8 and 19) and as samples show them (Thesis sections 3.3 and 3.4.2).

Let the noise gamma'(x) be gamma(x) on a set A and independent elsewhere. The maxima at order a and
at order 1 then have the joint distribution function exp(-e^-c S) at s, t, where S = sum_A max(e^(a
phi - s), e^(phi - t)) + sum_rest (e^(a phi - s) + e^(phi - t)). With q = p^a / sum p^a, Hoeffding's
formula and Frullani's integral give

    pi^2/6 - Cov = D = int ln [(sum_A max(p, q e^-u) + sum_rest (p + q e^-u)) / max(1, e^-u)] du.

Since max(a, b) <= a + b, D decreases as A grows: sharing more noise never raises a variance, which
generalises Proposition 8. D is 0 only for a uniform distribution with all noise shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats
from thesis_cli.entropy.estimators import EntropyMaxima, Noise, entropy_maxima, renyi_entropy
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

UNIT = math.pi**2 / 6
"""Variance of a Gumbel variable, nats^2."""

QUADRATURE = 1e-5
"""Largest relative error of D; against 400,001 nodes and all kinks it is 1.5e-6."""

_NODES = np.sinh(np.linspace(-4.5, 4.5, 16_001))
"""Nodes of the integral from -45 to 45, beyond which e^-|u| rounds away, dense around 0."""

_LEAST_KINK = -9.0
"""The integrand has a kink at each level of A; kinks of levels with a larger log-probability are
nodes too."""


def with_log_z(order: Floats | float) -> Floats:
    """Variance of eq. 3.8, with ln Z known and no control variate: pi^2/6 / (1 - a)^2 at order a,
    nats^2."""
    return np.asarray(UNIT / (1 - np.asarray(order)) ** 2)


def independent(order: Floats | float) -> Floats:
    """Variance of eq. 3.12 with independent noise: (1 + a^2) / (1 - a)^2 pi^2/6 at order a, nats^2
    (eq. 3.14)."""
    return np.asarray(with_log_z(order) * (1 + np.asarray(order) ** 2))


class DistinctProbabilities:
    """A distribution as its distinct probabilities, and the variances that depend on it.

    Parameters
    ----------
    log_weights : ln p up to a constant, shape (N,).

    Attributes
    ----------
    levels : the values of ln p, ascending, shape (L,).
    masses : total probability of each level, shape (L,).
    """

    def __init__(self, log_weights: Floats) -> None:
        self.levels, counts = np.unique(log_weights - logsumexp(log_weights), return_counts=True)
        self._log_counts: Floats = np.log(counts)
        self.masses: Floats = np.asarray(counts * np.exp(self.levels))
        self._known: dict[tuple[float, int], float] = {}

    def deficit(self, order: float, first: int = 0) -> float:
        """D, where A holds the configurations from level index `first` up; nats^2.

        Parameters
        ----------
        order : above 0 and finite.
        first : 0 to share all noise, L to share none.
        """
        if (order, first) not in self._known:
            self._known[order, first] = self._integral(order, first)
        return self._known[order, first]

    def _integral(self, order: float, first: int) -> float:
        log_p = self.levels + self._log_counts
        log_q = order * self.levels + self._log_counts
        log_q -= logsumexp(log_q)
        log_p, log_q = log_p[first:], log_q[first:]
        if order < 1:
            log_p, log_q = log_p[::-1], log_q[::-1]
        p_above = np.append(np.cumsum(np.exp(log_p[::-1]))[::-1], 0)
        q_below = np.append(0, np.cumsum(np.exp(log_q)))
        kinks = log_q - log_p
        sharp = (np.abs(kinks) < _NODES[-1]) & (np.maximum(log_p, log_q) > _LEAST_KINK)
        u = np.union1d(_NODES, kinks[sharp])
        at = np.searchsorted(kinks, u)
        common = p_above[at] + np.exp(-u) * q_below[at]  # sum_A min(p, q e^-u)
        missing = np.exp(-np.abs(u)) - common * np.exp(np.minimum(u, 0))
        return float(np.trapezoid(np.log1p(np.maximum(missing, 0)), u))

    def shared(self, order: float, first: int = 0) -> float:
        """Variance of eq. 3.13, pi^2/6 + 2 a D / (1 - a)^2 at order a, nats^2; at order 1 by
        Theorem 9, all noise shared."""
        if order == 1:
            return UNIT + self.log_p_variance()
        return UNIT + 2 * order * self.deficit(order, first) / (1 - order) ** 2

    def controlled(self, order: float) -> float:
        """Variance of eq. 3.8 minus the best multiple of max{phi + gamma} - ln Z: its own times 1 -
        correlation^2."""
        if order == 1:
            return self.log_p_variance()
        lost = self.deficit(order) / UNIT
        return float(with_log_z(order)) * lost * (2 - lost)

    def log_p_variance(self) -> float:
        """Variance of ln p(X), X ~ p, nats^2."""
        return float(self.masses @ (self.levels - self.masses @ self.levels) ** 2)


LOG_Z = 2.0
"""ln Z of every distribution, so that estimators that know ln Z must use it."""

MASSES = 0.25, 0.5, 0.75, 0.9
"""Probabilities of the sets A whose noise is shared, apart from 0 and 1."""

BATCHES = 20
"""Batches of perturbations whose spread gives the standard errors of `best` and `saved`."""

Pair = tuple[Floats, Floats]
"""Values and their standard errors."""


class _Rows:
    """Collects the rows of the result."""

    def __init__(self) -> None:
        self._frames: list[pd.DataFrame] = []

    def add(
        self,
        quantity: str,
        alpha: Floats | float,
        measured: tuple[Floats | float, Floats | float],
        expected: Sequence[float] | Floats | float,
        mass: float = math.nan,
    ) -> None:
        row = {"quantity": quantity, "mass": mass, "alpha": alpha}
        columns = {**row, "value": measured[0], "standard_error": measured[1], "expected": expected}
        self._frames.append(pd.DataFrame(columns, index=np.arange(np.size(alpha))))

    def frame(self) -> pd.DataFrame:
        return pd.concat(self._frames)


NOT_MEASURED = math.nan, math.nan


def ratio_of(p: DistinctProbabilities, alpha: float) -> float:
    """Variance of eq. 3.12 over that of eq. 3.8."""
    return float(p.shared(alpha) / with_log_z(alpha))


def crossings_of(p: DistinctProbabilities, curve: Floats) -> list[float]:
    """The alphas above 0 at which `ratio_of` is 1, to 9 digits; `curve` brackets them."""

    def excess(alpha: float) -> float:
        return alpha - 2 + 2 * p.deficit(alpha) / UNIT

    signs = np.sign([excess(alpha) for alpha in curve])
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    return [round(brentq(excess, curve[i], curve[i + 1]), 9) for i in changes]


def tops_of(p: DistinctProbabilities) -> list[int]:
    """First level of each set A of growing probability: none, about each of `MASSES`, all."""
    above = np.cumsum(p.masses[::-1])[::-1]
    return sorted({0, p.levels.size, *(int((above > mass).sum()) - 1 for mass in MASSES)}, reverse=True)


def variance_rows(
    log_weights: Floats, alphas: Floats, curve: Floats, perturbations: int, seed: np.random.SeedSequence
) -> pd.DataFrame:
    """Variances of estimates from one perturbation each, and the quantities they consist of.

    Parameters
    ----------
    log_weights : ln p up to a constant, shape (N,).
    alphas : orders at which variances are measured, other than 1 and inf; crossings are added.
    curve : orders at which only the exact variance is computed, ascending.

    Returns
    -------
    A row for each quantity and alpha: `value` with its `standard_error`, or NaN where there is only
    `expected`, the exact number. `mass` is the probability of the set A whose noise is shared. At
    alpha = 1 and inf the rows hold the limits.
    """
    log_p = log_weights - logsumexp(log_weights)
    p = DistinctProbabilities(log_weights)
    crossings = crossings_of(p, curve)
    alphas = np.union1d(alphas, crossings)
    rows = _Rows()
    tops = tops_of(p)
    for first, child in zip(tops, seed.spawn(len(tops)), strict=True):
        share_above = float(p.levels[first]) + LOG_Z if first < p.levels.size else math.inf
        maxima = entropy_maxima(LogPotentials(log_p + LOG_Z), alphas, perturbations, child, Noise(share_above))
        mass = float(p.masses[first:].sum())
        estimates = (maxima.values - alphas * maxima.at_one[:, np.newaxis]) / (1 - alphas)
        rows.add("shared", alphas, sample_variance(estimates), [p.shared(alpha, first) for alpha in alphas], mass)
    rows.add("shared", curve, NOT_MEASURED, [p.shared(alpha) for alpha in curve], mass)
    # what follows uses the last maxima, which share all their noise
    known = (maxima.values - alphas * LOG_Z) / (1 - alphas)
    rows.add("plain", alphas, sample_variance(known), with_log_z(alphas))
    ratio, ratio_error = ratio_of_variances(estimates, known)
    for alpha in crossings:
        at, step = alphas == alpha, 1e-3
        slope = (ratio_of(p, alpha + step) - ratio_of(p, alpha - step)) / (2 * step)
        rows.add("crossing", alpha, (alpha - (ratio[at] - 1) / slope, ratio_error[at] / abs(slope)), alpha)
    rows.add("ratio", alphas, (ratio, ratio_error), [ratio_of(p, alpha) for alpha in alphas])
    rows.add("ratio", curve, NOT_MEASURED, [ratio_of(p, alpha) for alpha in curve])
    controlled = with_best_coefficient(maxima)
    rows.add("best", alphas, controlled.variance, [p.controlled(alpha) for alpha in alphas])
    rows.add("best", curve, NOT_MEASURED, [p.controlled(alpha) for alpha in curve])
    rows.add("saved", alphas, controlled.saved, [(1 - p.deficit(alpha) / UNIT) ** 2 for alpha in alphas])
    rows.add("shared", 1.0, sample_variance(maxima.at_one - maxima.potential), p.shared(1.0), mass)
    rows.add("best", 1.0, sample_variance(LOG_Z - maxima.potential), p.controlled(1.0))
    rows.add("shared", math.inf, sample_variance(maxima.at_one - maxima.highest), UNIT, mass)
    sure, _ = renyi_entropy(maxima, math.inf, log_z=LOG_Z)
    least = exact_entropies(LogPotentials(log_p), [math.inf]).entropies[0]
    rows.add("error at inf", math.inf, (abs(sure.value - least), sure.standard_error), 0.0)
    mean = maxima.at_one.mean(), maxima.at_one.std() / math.sqrt(perturbations)
    rows.add("mean maximum", 1.0, mean, LOG_Z)
    return rows.frame()


def apart_rows(
    log_weights: Floats, alphas: Floats, expected: Floats, perturbations: int, seed: np.random.SeedSequence
) -> pd.DataFrame:
    """Variance with shared noise over that with ln Z known, each from perturbations of its own.

    Under the same perturbations the two estimates of a uniform distribution are proportional, so
    that the ratio is exact whatever the samples.

    Parameters
    ----------
    log_weights : ln p up to a constant, -inf where p is 0, shape (N,).
    alphas : orders other than 0, 1 and inf, shape (A,).
    expected : the ratios, shape (A,).
    perturbations : number of perturbations of each estimator.

    Returns
    -------
    The columns of `variance_rows`, with the quantity `ratio apart`.
    """
    vector = LogPotentials(log_weights - logsumexp(log_weights))
    shared, known = (entropy_maxima(vector, alphas, perturbations, child) for child in seed.spawn(2))
    top, top_error = sample_variance((shared.values - alphas * shared.at_one[:, np.newaxis]) / (1 - alphas))
    bottom, bottom_error = sample_variance(known.values / (1 - alphas))
    ratio = top / bottom
    rows = _Rows()
    rows.add("ratio apart", alphas, (ratio, ratio * np.hypot(top_error / top, bottom_error / bottom)), expected)
    return rows.frame()


def ratio_of_variances(above: Floats, below: Floats) -> Pair:
    """Ratios of the variances of paired samples, shapes (M, A), with first-order standard
    errors."""
    above, below = ((x - x.mean(axis=0)) ** 2 for x in (above, below))
    ratio = above.mean(axis=0) / below.mean(axis=0)
    influence = (above - ratio * below) / below.mean(axis=0)
    return ratio, influence.std(axis=0) / math.sqrt(len(influence))


class Controlled(NamedTuple):
    """The control variate max {phi + gamma} - ln Z with its best coefficient, at each order.

    Attributes
    ----------
    variance : variance of the estimate from one perturbation, nats^2, and its standard error.
    saved : share of the variance that the control variate removes, and its standard error.
    """

    variance: Pair
    saved: Pair


def with_best_coefficient(maxima: EntropyMaxima) -> Controlled:
    """Means over batches of the perturbations, at the orders of the maxima."""
    found = []
    for rows in np.array_split(np.arange(maxima.samples), BATCHES):
        part = {name: getattr(maxima, name)[rows] for name in ("values", "at_one", "potential")}
        batch = replace(maxima, **part, replicates=np.arange(rows.size))
        for alpha in maxima.orders:
            estimate, variate = renyi_entropy(batch, alpha, log_z=LOG_Z)
            assert variate is not None
            found.append((estimate.standard_error**2 * rows.size, variate.saved))
    table = np.reshape(found, (BATCHES, -1, 2))
    means, errors = table.mean(axis=0), table.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    return Controlled((means[:, 0], errors[:, 0]), (means[:, 1], errors[:, 1]))
