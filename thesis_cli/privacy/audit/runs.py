"""Audits of releases: proven lower bounds beside what the budget allows.

Both tables of a pair are released again and again by a method's entry point, from the table to the
record. The claim comes from the budget alone, and nothing that the code under audit reports about
its noise can raise it. The audit finds too little noise or none, vectors that are longer than
claimed, noise that is used twice, and public parts of records that depend on the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.audit.bounds import LEAST_RUNS, LowerBound, clopper_pearson_lower_bound, gdp_lower_bound
from thesis_cli.privacy.audit.pairs import Table, by_record
from thesis_cli.privacy.audit.scores import Scores, Subject
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import ReleasePlan

EntryPoint = Callable[[Table, ReleasePlan], Record]
"""An entry point: from a table and settings to the record of a release."""

REACH = 1 + 1e-9
"""Largest distance of two vectors over their claimed sensitivity; the rest is rounding."""
FAULTS = 0.01
"""Accuracy of the smallest fault that is looked for."""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Claims of one method, and lower bounds that its releases prove.

    Attributes
    ----------
    method, entry : audited method, and the entry point.
    runs : number of releases, half of them of either table.
    rows : number of rows of each table.
    epsilon, delta : claimed privacy: the budget.
    mu : mu of Gaussian differential privacy that the budget allows; None without Gaussian noise.
    reach : distance of the vectors (or scores) of the two tables, over the sensitivity that the
        method claims.
    gdp : proven lower bound on mu; None without Gaussian noise.
    clopper_pearson : proven lower bound on epsilon.
    repeats, most_repeats : values of the noise that occurred before, and how many chance allows.
    public : first difference of the public parts of the records of the two tables; empty if nothing.
    fault : largest factor on the noise that these runs would contradict; None if they would
        contradict none, or contradict the noise as it is.
    seconds : time of the runs.
    """

    method: str
    entry: str
    runs: int
    rows: int
    epsilon: float
    delta: float
    mu: float | None
    reach: float
    gdp: LowerBound | None
    clopper_pearson: LowerBound
    repeats: int
    most_repeats: int
    public: str
    fault: float | None
    seconds: float

    @property
    def share(self) -> float:
        """Proven part of the claim: of mu for Gaussian noise, otherwise of epsilon."""
        if self.gdp is not None and self.gdp.mu is not None and self.mu:
            return self.gdp.mu / self.mu
        return self.clopper_pearson.epsilon / self.epsilon

    @property
    def contradictions(self) -> list[str]:
        """Claims that the releases disprove."""
        found, epsilon = [], self.clopper_pearson.epsilon
        if self.gdp is not None and self.share > 1:
            found.append(f"mu is at least {self.gdp.mu:.4g}, not {self.mu:.4g}")
        if epsilon > self.epsilon:
            found.append(f"epsilon is at least {epsilon:.4g}, not {self.epsilon:.4g}")
        if self.repeats > self.most_repeats:
            found.append(f"{self.repeats} values of the noise occur again, and at most {self.most_repeats} by chance")
        if self.reach > REACH:
            found.append(f"two neighbours are {self.reach:.4g} sensitivities apart")
        if self.public:
            found.append(f"the public part of a record depends on the table: {self.public}")
        return found

    @property
    def verdict(self) -> Literal["not contradicted", "contradicted"]:
        """Whether the releases contradict a claim; if not, that proves no privacy."""
        return "contradicted" if self.contradictions else "not contradicted"

    def summary(self) -> dict[str, Any]:
        """Everything about the method, for JSON."""
        derived = {"share": self.share, "verdict": self.verdict, "contradictions": self.contradictions}
        return {**asdict(self), **derived}


def audit(
    subject: Subject,
    runs: int,
    entry: EntryPoint = by_record,
    entry_name: str = "record",
    *,
    confidence: float = 0.95,
    seconds: float | None = None,
    tick: Tick | None = None,
) -> AuditReport:
    """Release both tables of a subject in turn, and bound what the releases reveal.

    The public part of each record is compared with that of a release of the other table by the
    library, with the same public draws.

    Parameters
    ----------
    runs : number of releases, half of them of either table.
    confidence : confidence of each lower bound on its own, and of `most_repeats`.
    seconds : time after which no further release starts, once there are as few as can be.
    tick : called with the number of releases just done.

    Raises
    ------
    InputError : there are fewer than 40 runs; what the entry point raises.
    """
    if runs < 2 * LEAST_RUNS:
        raise InputError(f"the number of runs is {runs}", f"it must be at least {2 * LEAST_RUNS}")
    subject = subject.anew(subject.pair.plan)
    start, done, public = time.monotonic(), 0, ""
    for done in range(2, runs + 1, 2):
        for side, table in enumerate(subject.pair.tables):
            record = entry(table, subject.pair.plan)
            subject.add(record, side)
            public = public or subject.difference(record, side)
        if tick:
            tick(2)
        if seconds is not None and time.monotonic() - start > seconds and done >= 2 * LEAST_RUNS:
            break
    delta = subject.budget.delta
    repeats, most = subject.repeats(confidence)
    gdp, epsilon = _bounds(subject.scores(), subject.mu, delta, confidence)
    report = AuditReport(
        method=subject.name,
        entry=entry_name,
        runs=done,
        rows=subject.pair.rows,
        epsilon=subject.budget.epsilon,
        delta=delta,
        mu=subject.mu,
        reach=subject.pair.reach,
        gdp=gdp,
        clopper_pearson=epsilon,
        repeats=repeats,
        most_repeats=most,
        public=public,
        fault=None,
        seconds=time.monotonic() - start,
    )
    return report if report.contradictions else replace(report, fault=_smallest_fault(subject, confidence))


def _bounds(scores: Scores, mu: float | None, delta: float, confidence: float) -> tuple[LowerBound | None, LowerBound]:
    one, other = scores
    gdp = None if mu is None else gdp_lower_bound(other, one, delta=delta, confidence=confidence)
    return gdp, clopper_pearson_lower_bound(other, one, delta=delta, confidence=confidence)


def _smallest_fault(subject: Subject, confidence: float) -> float | None:
    """Largest factor on the noise whose bounds contradict the claim, for noise as in these runs."""

    def caught(factor: float) -> bool:
        gdp, epsilon = _bounds(subject.scores(factor), subject.mu, subject.budget.delta, confidence)
        too_much = gdp is not None and gdp.mu is not None and subject.mu is not None and gdp.mu > subject.mu
        return too_much or epsilon.epsilon > subject.budget.epsilon

    low, high = 0.05, 1.0
    if not caught(low):
        return None
    while high - low > FAULTS:
        middle = (low + high) / 2
        low, high = (middle, high) if caught(middle) else (low, middle)
    return low
