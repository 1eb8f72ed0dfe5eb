"""Variances of estimates of Renyi entropies as samples show them, beside the exact ones of
`variance.py` (Thesis sections 3.3 and 3.4.2)."""

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
from thesis_cli.entropy.estimators import renyi_entropy
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.maxima import EntropyMaxima, Noise, entropy_maxima
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.studies.entropy.variance import UNIT, Steps, with_log_z
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

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


def ratio_of(p: Steps, alpha: float) -> float:
    """Variance of eq. 3.12 over that of eq. 3.8."""
    return float(p.shared(alpha) / with_log_z(alpha))


def crossings_of(p: Steps, curve: Floats) -> list[float]:
    """The alphas above 0 at which `ratio_of` is 1, to 9 digits; `curve` brackets them."""

    def excess(alpha: float) -> float:
        return alpha - 2 + 2 * p.deficit(alpha) / UNIT

    signs = np.sign([excess(alpha) for alpha in curve])
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    return [round(brentq(excess, curve[i], curve[i + 1]), 9) for i in changes]


def tops_of(p: Steps) -> list[int]:
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
    perturbations : number of perturbations.
    seed : root of the random streams.

    Returns
    -------
    A row for each quantity and alpha: `value` with its `standard_error`, or NaN where there is only
    `expected`, the exact number. `mass` is the probability of the set A whose noise is shared. At
    alpha = 1 and inf the rows hold the limits.
    """
    log_p = log_weights - logsumexp(log_weights)
    p = Steps(log_weights)
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
    seed : root of the random streams.

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
