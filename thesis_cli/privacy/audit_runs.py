"""Audits of the noise on invented tables: proven lower bounds beside what the noise claims.

The scalar path adds noise to one number; each call draws many releases. The whole path encodes two
tables, computes their mean features and adds noise to these vectors, release by release. The audit
finds too little noise, features that are longer than claimed, and a generator that restarts from a
seed. It does not find a generator with one secret seed, nor faults outside the noise.
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
"""Values in the tables: at frequency 2 pi their angles are pi/4 and 5 pi/4, whose features have
opposite signs.
"""


class Repeating(Noise, Protocol):
    """Noise for the scalar path."""

    def repeat(self, value: float, l2_sensitivity: float, budget: Budget, runs: int) -> Noised:
        """Releases of one number, as in `mechanism.OpenDPGaussian.repeat`."""


class Embedding(Protocol):
    """Map from a table to a vector, for the whole path."""

    def mean(self, blocks: Iterable[Rows]) -> Floats:
        """Vector of a table, shape (J,)."""

    def l2_sensitivity(self, rows: int) -> float:
        """Claimed bound on the distance of the vectors of two neighbours."""


@dataclass(frozen=True)
class AuditReport:
    """Claims of one path, and lower bounds that its releases prove.

    Attributes
    ----------
    path : "scalar" or "whole".
    runs : number of releases, half of them of either table.
    budget, calibration : claimed privacy.
    mu : claimed mu of Gaussian differential privacy, sensitivity / scale; None if the noise is not
        Gaussian.
    gdp, clopper_pearson : proven lower bounds.
    repeats : number of releases that are equal to an earlier one of the same table.
    most_repeats : number of repeats that chance exceeds with probability at most 1 - confidence.
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
        """Claims that the releases disprove."""
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
        """Whether the releases contradict a claim; "holds" does not prove privacy."""
        if self.contradictions:
            return "BROKEN"
        return "holds" if max(self.gdp.mu or 0, self.clopper_pearson.epsilon) > 0 else "too few runs to tell"

    def summary(self) -> dict[str, Any]:
        """Everything about the path, for JSON."""
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
    noise : function that makes the source of noise; called for each draw, as each release does.
    runs : number of releases, half of them of either number.
    confidence : confidence of each lower bound on its own, and of `most_repeats`.

    Raises
    ------
    InputError : there are fewer than 40 runs; what `Noise.add` and `audit_bounds.audit` raise.
    """
    each = _half(runs)

    def releases(value: float, count: int) -> Floats:
        parts = []
        for share in (count // 2, count - count // 2):  # a generator that restarts from a seed repeats itself
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
    runs : number of releases, half of them of either table.
    rows : number N of rows of each table.
    embedding : by default J = `features` of frequency 2 pi, which map the two rows to opposite
        vectors.
    confidence : confidence of each lower bound on its own, and of `most_repeats`.

    Raises
    ------
    InputError : there are fewer than 40 runs or no rows, the number of features is odd; what
        `Noise.add` and `audit_bounds.audit` raise.
    """
    each = _half(runs)
    if rows < 1:
        raise InputError(f"the table has {rows} rows", "it must have at least one")
    if features < 2 or features % 2:
        raise InputError(f"the number of features is {features}", "it must be even and at least 2")
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
        raise InputError(f"the number of runs is {runs}", f"it must be at least {2 * LEAST_RUNS}")
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
    """Quantile of the number of repeats among `runs` releases, half of them of either table.

    Two draws of noise of density p on a grid of spacing g are equal with probability g times the
    integral of p^2, which is 1 / (2 sqrt(pi) sigma) or 1 / (4 b), and the number of equal pairs is
    nearly Poisson. Vectors repeat less often.
    """
    from scipy.special import pdtrik

    pairs = runs / 2 * (runs / 2 - 1)
    width = 4 * calibration.scale if calibration.norm == 1 else 2 * math.sqrt(math.pi) * calibration.scale
    expected = pairs * calibration.granularity / width
    return math.ceil(pdtrik(confidence, expected)) if expected > 0 else 0
