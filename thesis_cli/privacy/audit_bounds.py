r"""Lower bounds on epsilon from runs of a mechanism; a claim below such a bound is false.

A test that distinguishes releases of two neighbouring tables by a score above a threshold has false
positives and false negatives, and privacy bounds both rates from below: (epsilon, delta) implies
FNR >= 1 - delta - e^epsilon FPR, also with the rates exchanged (Kairouz et al. 2015), and mu-GDP
implies FNR >= Phi(Phi^-1(1 - FPR) - mu) (Dong et al. 2022). Half of the runs choose the threshold.
The other half, with Clopper-Pearson bounds on both rates, gives the lower bound, which holds at the
requested confidence for any mechanism.

The GDP form is more powerful for Gaussian noise, because its best threshold is in the bulk, whereas
the other form needs FPR near delta. Gaussian noise claims mu = sensitivity / scale. With 2e5 runs
on each side at epsilon = 1, a scale that is a tenth too small contradicts that mu in 26 of 30
audits at delta = 1e-6, and in 20 of 20 at delta = 1e-2. Contradicting epsilon itself at delta =
1e-6 takes 2e6 runs, because OpenDP's scale is 7 % above the analytic one; at delta = 1e-2, where
the margin is 17 %, such a scale breaks no promise.
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
from thesis_cli.privacy.mechanism import gaussian_delta

Scores = Callable[[int], Floats]
Evaluated = tuple[float, bool, float, float, int]

LEAST_RUNS = 20
THRESHOLDS = 500


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


@dataclass(frozen=True)
class AuditResult:
    """Both lower bounds from the same runs, and the number of scores that repeat an earlier one of
    the same table.

    Noise on a grid as fine as `mechanism`'s hardly ever repeats; a generator that restarts from a
    seed does.
    """

    gdp: LowerBound
    clopper_pearson: LowerBound
    repeats: int


def audit(
    mechanism_in: Scores, mechanism_out: Scores, runs: int, *, delta: float, confidence: float = 0.95
) -> AuditResult:
    """Audit a mechanism by scores of its releases of two neighbouring tables.

    Parameters
    ----------
    mechanism_in, mechanism_out : functions that return the scores, shape (n,), of n independent
        releases of either table. The best score of a vector is its inner product with the
        difference of the two vectors without noise.
    runs : number n of releases of each table.
    delta : delta of the claim; for the GDP form, one at which the claim is tight.
    confidence : confidence of each lower bound on its own.

    Raises
    ------
    InputError : there are too few runs, scores are not finite, or delta or the confidence is out of
        range.
    """
    scores_in, scores_out = mechanism_in(runs), mechanism_out(runs)
    return AuditResult(
        gdp_lower_bound(scores_in, scores_out, delta=delta, confidence=confidence),
        clopper_pearson_lower_bound(scores_in, scores_out, delta=delta, confidence=confidence),
        repeats(scores_in) + repeats(scores_out),
    )


def gdp_lower_bound(scores_in: Floats, scores_out: Floats, *, delta: float, confidence: float = 0.95) -> LowerBound:
    """Bound mu >= Phi^-1(1 - FPR) - Phi^-1(FNR), and the epsilon that mu has at delta.

    Parameters
    ----------
    scores_in, scores_out : scores of independent releases of two neighbouring tables, shapes (n,)
        and (m,).
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
        and (m,).
    """

    def bound(positives: Floats, negatives: Floats) -> Floats:
        ratio = np.maximum((1 - delta - negatives) / positives, (1 - delta - positives) / negatives)
        return np.log(np.maximum(ratio, 1.0))

    epsilon, at = _bound(scores_in, scores_out, delta, confidence, bound)
    return LowerBound("clopper-pearson", epsilon, delta, None, confidence, *at)


def repeats(releases: Floats) -> int:
    """Number of releases of one table, shape (n,) or (n, F), that are equal to an earlier one."""
    return len(releases) - len(np.unique(releases, axis=0))


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
    """Bound from every second run, at the threshold that is best on the others, and the fields that
    describe it.
    """
    scores = [_checked(x) for x in (scores_in, scores_out)]
    if not 0 <= delta < 1:
        raise InputError(f"delta is {delta:g}", "it must be at least 0 and below 1")
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence:g}", "it must be between 0 and 1")
    level = (1 - confidence) / 2
    chosen, evaluated = ([np.sort(x[start::2]) for x in scores] for start in (0, 1))
    thresholds = _thresholds(np.concatenate(chosen))
    cautious = level / thresholds.size  # otherwise the best of many thresholds is one in a lucky tail
    values = np.stack([bound(*_rates(chosen, thresholds, above, cautious)) for above in (True, False)])
    way, at = np.unravel_index(values.argmax(), values.shape)
    threshold, above = float(thresholds[at]), bool(way == 0)
    rates = _rates(evaluated, np.array([threshold]), above, level)
    runs = min(x.size for x in evaluated)
    return float(bound(*rates)[0]), (threshold, above, float(rates[0][0]), float(rates[1][0]), runs)


def _thresholds(scores: Floats) -> Floats:
    """Quantiles of the scores, dense in both tails."""
    from scipy.special import expit

    end = math.log(scores.size)
    return np.unique(np.quantile(scores, expit(np.linspace(-end, end, THRESHOLDS))))


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
    found = np.asarray(scores, np.float64)
    if found.ndim != 1 or found.size < LEAST_RUNS:
        raise InputError(
            f"the scores have shape {found.shape}", f"there must be one of each of at least {LEAST_RUNS} runs"
        )
    if not np.isfinite(found).all():
        raise InputError("some scores are not finite", "all must be finite numbers")
    return found
