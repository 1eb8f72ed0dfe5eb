r"""Lower bounds on epsilon and mu from runs of a mechanism; a claim below such a bound is false.

A test that distinguishes releases of two neighbouring tables by a score above a threshold has false
positives and false negatives, and privacy bounds both rates from below: (epsilon, delta) implies
FNR >= 1 - delta - e^epsilon FPR, also with the rates exchanged (Kairouz et al. 2015), and mu-GDP
implies FNR >= Phi(Phi^-1(1 - FPR) - mu) (Dong et al. 2022). Every fourth run chooses the score,
where there are several, and its threshold, which is 0 if they are too few to tell. The others, with
Clopper-Pearson bounds on both rates, give the lower bound, which holds at the requested confidence
for any mechanism.

The GDP form is more powerful for Gaussian noise, because its best threshold is in the bulk, whereas
the other form needs FPR near delta. With n evaluated runs on each side it proves mu - 8.7 / sqrt(n)
for mu = 1 at confidence 0.999. Relative to mu this is best near mu = 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms.mechanism import gaussian_delta

Evaluated = tuple[float, bool, float, float, int]

LEAST_RUNS = 20
THRESHOLDS = 150
CHOOSING = 4
"""Every run of this number chooses the threshold."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound that the runs prove.

    Attributes
    ----------
    method : "gdp" or "clopper-pearson".
    epsilon : bound on epsilon at delta; for "gdp" it follows from mu, and holds if the mechanism is
        Gaussian.
    mu : bound on mu of Gaussian differential privacy; None for "clopper-pearson".
    threshold, above : the test decides for the table "in" if the score is above (or not above) the
        threshold.
    false_positives, false_negatives : upper bounds on both rates, each at confidence 1 - (1 -
        confidence) / 2.
    runs : number of runs that evaluated the bound, on each side.
    """

    method: Literal["gdp", "clopper-pearson"]
    epsilon: float
    delta: float
    mu: float | None
    confidence: float
    threshold: float
    above: bool
    false_positives: float
    false_negatives: float
    runs: int


def gdp_lower_bound(scores_in: Floats, scores_out: Floats, *, delta: float, confidence: float = 0.95) -> LowerBound:
    """Bound mu >= Phi^-1(1 - FPR) - Phi^-1(FNR), and the epsilon that mu has at delta.

    Parameters
    ----------
    scores_in, scores_out : scores of independent releases of two neighbouring tables, shapes (n,)
        and (m,), or (K, n) and (K, m) for K kinds of scores, of which the best is taken.
    """
    from scipy.special import ndtri

    def bound(positives: Floats, negatives: Floats) -> Floats:
        return np.maximum(-ndtri(positives) - ndtri(negatives), 0.0)

    mu, at = _bound(scores_in, scores_out, delta, confidence, bound)
    return LowerBound("gdp", gaussian_epsilon(mu, delta), delta, mu, confidence, *at)


def clopper_pearson_lower_bound(
    scores_in: Floats, scores_out: Floats, *, delta: float, confidence: float = 0.95
) -> LowerBound:
    """Bound epsilon >= ln((1 - delta - FNR) / FPR), or the same with the rates exchanged.

    Parameters
    ----------
    scores_in, scores_out : scores of independent releases of two neighbouring tables, shapes (n,)
        and (m,), or (K, n) and (K, m) for K kinds of scores, of which the best is taken.
    """

    def bound(positives: Floats, negatives: Floats) -> Floats:
        ratio = np.maximum((1 - delta - negatives) / positives, (1 - delta - positives) / negatives)
        return np.log(np.maximum(ratio, 1.0))

    epsilon, at = _bound(scores_in, scores_out, delta, confidence, bound)
    return LowerBound("clopper-pearson", epsilon, delta, None, confidence, *at)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon at delta of a Gaussian mechanism of scale sensitivity / mu (Balle and Wang 2018); inf
    at delta = 0.
    """
    from scipy.optimize import brentq

    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta == 0:
        return math.inf
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high))


def _bound(
    scores_in: Floats,
    scores_out: Floats,
    delta: float,
    confidence: float,
    bound: Callable[[Floats, Floats], Floats],
) -> tuple[float, Evaluated]:
    """Bound from three of four runs, at the score and threshold that are best on the others, and
    the fields that describe it.
    """
    both = [_checked(x) for x in (scores_in, scores_out)]
    if len(both[0]) != len(both[1]):
        raise InputError("the two tables have different numbers of scores", "they must have as many")
    if not 0 <= delta < 1:
        raise InputError(f"delta is {delta:g}", "it must be at least 0 and below 1")
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence:g}", "it must be between 0 and 1")
    level = (1 - confidence) / 2
    best, threshold, above, pair = 0.0, 0.0, True, (both[0][0], both[1][0])  # the best of likelihood ratios
    for scores in zip(*both, strict=True):
        chosen = [np.sort(x[::CHOOSING]) for x in scores]
        thresholds = _thresholds(np.concatenate(chosen))
        cautious = level / thresholds.size  # otherwise the best of many thresholds is one in a lucky tail
        values = np.stack([bound(*_rates(chosen, thresholds, above, cautious)) for above in (True, False)])
        way = int(values.max(1).argmax())
        ties = np.flatnonzero(values[way] == values[way].max())  # of tables that never look alike
        at = int(ties[len(ties) // 2])
        if values[way, at] > best:
            best, threshold, above, pair = float(values[way, at]), float(thresholds[at]), way == 0, scores
    evaluated = [np.sort(np.delete(x, np.s_[::CHOOSING])) for x in pair]
    rates = _rates(evaluated, np.array([threshold]), above, level)
    runs = min(x.size for x in evaluated)
    return float(bound(*rates)[0]), (threshold, above, float(rates[0][0]), float(rates[1][0]), runs)


def _thresholds(scores: Floats) -> Floats:
    """Quantiles of the scores, dense in both tails, numbers just below them, because a score may be
    one that is frequent, and 0.
    """
    from scipy.special import expit

    end = math.log(scores.size)
    found = np.quantile(scores, expit(np.linspace(-end, end, THRESHOLDS)), method="higher")
    return np.unique(np.concatenate([found, np.nextafter(found, -math.inf), [0.0]]))


def _rates(scores: list[Floats], thresholds: Floats, above: bool, level: float) -> tuple[Floats, Floats]:
    """Upper bounds on the rates of false positives and false negatives at each threshold; the
    scores are sorted.
    """
    runs_in, runs_out = (x.size for x in scores)
    negatives, rest = (np.searchsorted(x, thresholds, side="right") for x in scores)
    positives = runs_out - rest
    if not above:
        negatives, positives = runs_in - negatives, rest
    return _upper(positives, runs_out, level), _upper(negatives, runs_in, level)


def _upper(count: npt.NDArray[np.int64], runs: int, level: float) -> Floats:
    """Clopper-Pearson upper bound on a rate; it fails with probability `level`."""
    from scipy.special import betaincinv

    found: Floats = np.where(count < runs, betaincinv(count + 1, np.maximum(runs - count, 1), 1 - level), 1.0)
    return found


def _checked(scores: Floats) -> Floats:
    """Scores of one kind or of several, shape (K, n)."""
    found = np.atleast_2d(np.asarray(scores, np.float64))
    if found.ndim != 2 or found.shape[1] < LEAST_RUNS:
        raise InputError(
            f"the scores have shape {np.shape(scores)}", f"there must be one of each of at least {LEAST_RUNS} runs"
        )
    if not np.isfinite(found).all():
        raise InputError("some scores are not finite", "all must be finite numbers")
    return found
