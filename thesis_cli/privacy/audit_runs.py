"""Audits of the noise, on tables that are nobody's: lower bounds of what it promises, beside what it claims.

The scalar path adds noise to one number, by calls that draw many releases; the whole path encodes two tables, takes
their mean features and adds noise to these vectors, release by release. That finds too little noise, features
longer than claimed, and a generator that starts anew from a seed; not a seed that is kept, nor faults beside the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.audit_bounds import LEAST_RUNS, AuditResult, LowerBound, audit
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanism import Budget, Calibration, Noise, Noised
from thesis_cli.privacy.schema import Real, Schema

SCHEMA = Schema((Real("x", 0.0, 1.0),))
HERE, THERE = 0.125, 0.625
"""Values of the tables: at a frequency of 2 pi, angles of pi/4 and 5 pi/4, whose features all differ in their signs."""


class Repeating(Noise, Protocol):
    """Noise for the scalar path."""

    def repeat(self, value: float, l2_sensitivity: float, budget: Budget, runs: int) -> Noised:
        """As `mechanism.OpenDPGaussian.repeat`."""


class Embedding(Protocol):
    """Takes a table to a vector; for the whole path."""

    def mean(self, blocks: Iterable[Rows]) -> Floats:
        """The vector of a table, shape (J,)."""

    def l2_sensitivity(self, rows: int) -> float:
        """The bound that is claimed for it."""


@dataclass(frozen=True)
class AuditReport:
    """What one path claims, and what its releases prove at least.

    Attributes
    ----------
    path : "scalar" or "whole".
    runs : releases, half of them of either table.
    budget, calibration : what is claimed.
    mu : of Gaussian differential privacy, as claimed: sensitivity / scale. None if the noise is not Gaussian.
    gdp, clopper_pearson : lower bounds.
    repeats : releases that are equal to an earlier one of the same table.
    most_repeats : so many are due to chance; more would be with a probability of 1 - confidence at most.
    """

    path: Literal["scalar", "whole"]
    runs: int
    budget: Budget
    calibration: Calibration
    mu: float | None
    gdp: LowerBound
    clopper_pearson: LowerBound
    repeats: int
    most_repeats: int

    @property
    def contradictions(self) -> list[str]:
        """What is claimed and cannot be."""
        found, epsilon = [], self.clopper_pearson.epsilon
        if self.mu is not None and self.gdp.mu is not None and self.gdp.mu > self.mu:
            found.append(f"mu is at least {self.gdp.mu:.4g}, not {self.mu:.4g}")
        if epsilon > self.budget.epsilon:
            found.append(f"epsilon is at least {epsilon:.4g}, not {self.budget.epsilon:.4g}")
        if self.repeats > self.most_repeats:
            found.append(f"{self.repeats} of {self.runs} releases repeat an earlier one")
        return found

    @property
    def verdict(self) -> Literal["holds", "too few runs to tell", "BROKEN"]:
        """Whether something contradicts the claim; where nothing does, that proves no privacy."""
        if self.contradictions:
            return "BROKEN"
        return "holds" if max(self.gdp.mu or 0, self.clopper_pearson.epsilon) > 0 else "too few runs to tell"

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        calibration = self.calibration
        return {
            "path": self.path,
            "runs": self.runs,
            "mechanism": calibration.mechanism,
            "sensitivity": calibration.sensitivity,
            "scale": calibration.scale,
            "epsilon": self.budget.epsilon,
            "delta": calibration.delta,
            "mu": self.mu,
            "gdp": asdict(self.gdp),
            "clopper_pearson": asdict(self.clopper_pearson),
            "repeats": self.repeats,
            "most_repeats": self.most_repeats,
            "verdict": self.verdict,
            "contradictions": self.contradictions,
        }


def audit_scalar(
    noise: Callable[[], Repeating], budget: Budget, runs: int, *, confidence: float = 0.95, tick: Tick | None = None
) -> AuditReport:
    """Audit releases of the numbers 1 and 0, whose sensitivity is 1: the worst pair.

    Parameters
    ----------
    noise : makes what draws it, anew for each call, as each release does.
    runs : releases, half of them of either number.
    confidence : of each lower bound on its own, and for repeats.

    Raises
    ------
    InputError : fewer than 40 runs; what `Noise.add` and `audit.audit` raise.
    """
    each = _half(runs)

    def releases(value: float, count: int) -> Floats:
        parts = []
        for share in (count // 2, count - count // 2):  # a generator that starts anew from a seed repeats itself
            parts.append(noise().repeat(value, 1.0, budget, share).values)
            if tick:
                tick(share)
        return np.concatenate(parts)

    calibration = noise().calibrate(1, 1.0, budget)
    delta = calibration.delta
    found = audit(lambda n: releases(1.0, n), lambda n: releases(0.0, n), each, delta=delta, confidence=confidence)
    return _report("scalar", 2 * each, budget, calibration, found, confidence)


def audit_whole(
    noise: Callable[[], Noise],
    budget: Budget,
    runs: int,
    *,
    rows: int = 100,
    embedding: Embedding | None = None,
    features: int = 8,
    confidence: float = 0.95,
    tick: Tick | None = None,
) -> AuditReport:
    """Audit releases of the mean features of two tables, one row of which differs: the worst pair.

    Parameters
    ----------
    noise : as for `audit_scalar`.
    runs : releases, half of them of either table.
    rows : N of each table.
    embedding : J = `features` of frequency 2 pi by default, which take the two rows to opposite vectors.
    confidence : of each lower bound on its own, and for repeats.

    Raises
    ------
    InputError : fewer than 40 runs, no rows, a number of features that is odd; what `Noise.add` and `audit.audit`
        raise.
    """
    each = _half(runs)
    if rows < 1:
        raise InputError(f"a table of {rows} rows", "one or more are wanted")
    if features < 2 or features % 2:
        raise InputError(f"{features} features", "an even number from 2 on is wanted")
    embedding = embedding or Features(np.full((features // 2, 1), 2 * math.pi), ())
    values = np.full(rows, HERE)
    one = embedding.mean([SCHEMA.encode({"x": values})])
    values[0] = THERE
    other = embedding.mean([SCHEMA.encode({"x": values})])
    sensitivity, difference = embedding.l2_sensitivity(rows), other - one

    def scores(mean: Floats, count: int) -> Floats:
        found = np.empty(count)
        for i in range(count):
            found[i] = noise().add(mean, sensitivity, budget).values @ difference
            if tick:
                tick(1)
        return found

    calibration = noise().calibrate(one.size, sensitivity, budget)
    delta = calibration.delta
    found = audit(lambda n: scores(other, n), lambda n: scores(one, n), each, delta=delta, confidence=confidence)
    return _report("whole", 2 * each, budget, calibration, found, confidence)


def _half(runs: int) -> int:
    if runs < 2 * LEAST_RUNS:
        raise InputError(f"{runs} runs", f"{2 * LEAST_RUNS} or more are wanted")
    return runs // 2


def _report(
    path: Literal["scalar", "whole"],
    runs: int,
    budget: Budget,
    calibration: Calibration,
    found: AuditResult,
    confidence: float,
) -> AuditReport:
    gaussian = calibration.norm == 2
    return AuditReport(
        path=path,
        runs=runs,
        budget=budget,
        calibration=calibration,
        mu=calibration.sensitivity / calibration.scale if gaussian else None,
        gdp=found.gdp,
        clopper_pearson=found.clopper_pearson,
        repeats=found.repeats,
        most_repeats=most_repeats(runs, calibration, confidence),
    )


def most_repeats(runs: int, calibration: Calibration, confidence: float) -> int:
    """A quantile of the number of repeats among `runs` releases, half of either table.

    Two draws of noise of density p on a grid g are equal with probability g times the integral of p^2, which is
    1 / (2 sqrt(pi) sigma) or 1 / (4 b), and the number of equal pairs is nearly of Poisson's law. Vectors repeat less.
    """
    from scipy.special import pdtrik

    pairs = runs / 2 * (runs / 2 - 1)
    width = 4 * calibration.scale if calibration.norm == 1 else 2 * math.sqrt(math.pi) * calibration.scale
    expected = pairs * calibration.granularity / width
    return math.ceil(pdtrik(confidence, expected)) if expected > 0 else 0
