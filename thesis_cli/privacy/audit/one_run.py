r"""Audit of one release of a table of one's own, by canaries (Steinke, Nasr and Jagielski 2023).

m pairs of rows are drawn from the schema, and a fair coin decides which row of each pair is added to the
table. The table is released once. For some pairs it is then guessed from the release which row was
there. Coins of other values make neighbouring tables, with one row replaced. If the release is
(epsilon, delta)-private, the number of right guesses among r is at least v with probability at most

    beta + 2 m delta max_{1 <= i <= v} P(v - i <= W < v) / i,     beta = P(W >= v),

with W binomial of r trials and probability e^epsilon / (1 + e^epsilon) (Theorem 5.2). Every epsilon for
which that is below the error level is contradicted; whatever the guesses use, the table itself included,
the bound holds.

A guess is the sign of a score. The noisy vectors are linear in the coins s = +-1 with Gaussian noise:
y = base + sum_j s_j d_j / 2 + noise. The score is the best linear estimate of s over its own variance,
which also takes out the other canaries; the noise is measured where no canary shows, since it may be less
than the record says. The real rows are part of `base`, so that scores depend on them, and what an audit
finds is not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.audit.cases import sample_rows
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.release import NoisyMean, ReleasePlan, implementation_of, private_record
from thesis_cli.privacy.tables.schema import Schema, obey

GUESSED = (1, 4, 16)
"""Guesses are made for all pairs, and for these fractions of them with the clearest scores. The numbers
are fixed before the release, and share the error of the bound.
"""
TINY = 1e-9
"""Least variance of noise, of what the record says, that scores believe; and least part of the largest
eigenvalue that counts.
"""
LARGEST = 50.0
"""Largest epsilon that is looked for."""


@dataclass(frozen=True, kw_only=True)
class OneRunReport:
    """Findings of an audit by one release.

    Attributes
    ----------
    method : release method.
    rows, canaries : number of rows of the released table, and of the pairs of canaries.
    guesses : numbers of guesses, each with that of the right ones.
    epsilon, delta : claim: the budget.
    proven : lower bound on epsilon at delta.
    most : bound that guesses that are all right would prove.
    confidence : confidence level of the bound.
    """

    method: str
    rows: int
    canaries: int
    guesses: tuple[tuple[int, int], ...]
    epsilon: float
    delta: float
    proven: float
    most: float
    confidence: float

    @property
    def share(self) -> float:
        """Proven part of the claim."""
        return self.proven / self.epsilon

    @property
    def contradictions(self) -> list[str]:
        """Claims that the release disproves."""
        return [f"epsilon is at least {self.proven:.4g}, not {self.epsilon:.4g}"] if self.share > 1 else []

    @property
    def verdict(self) -> Literal["not contradicted", "contradicted"]:
        """Whether the release contradicts the claim; if not, that proves no privacy."""
        return "contradicted" if self.contradictions else "not contradicted"

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**asdict(self), "share": self.share, "verdict": self.verdict, "contradictions": self.contradictions}


def one_run_audit(
    rows: Rows, plan: ReleasePlan, canaries: int, confidence: float, rng: np.random.Generator, tick: Tick | None = None
) -> OneRunReport:
    """Release a table with canaries once, and bound epsilon by what the release tells of them.

    Parameters
    ----------
    rows : the table.
    plan : settings of the release; the noise is Gaussian.
    canaries : number m of pairs.
    rng : source of the canaries and of the coins, which nobody may know.
    tick : called with the number of canaries just scored.

    Raises
    ------
    InputError : the method has no noisy means; what a release raises.
    """
    pairs = canary_pairs(plan.schema, canaries, rng)
    coins = rng.integers(0, 2, canaries)
    mixed = Rows.concatenate([rows, *(pairs[coin][i : i + 1] for i, coin in enumerate(coins))])
    record = private_record([mixed], len(mixed), plan, lambda budget, rho: None)
    scores = scores_of(implementation_of(plan.method).means(plan, record), rows, pairs, tick)
    right = (scores > 0) == (coins == 0)
    clearest = np.argsort(-np.abs(scores), kind="stable")
    numbers = [max(1, canaries // part) for part in GUESSED]
    guesses = tuple((r, int(right[clearest[:r]].sum())) for r in numbers)
    epsilon, delta = plan.budget.epsilon, plan.row.delta(plan.noise, plan.budget.delta)

    def bound(found: Sequence[tuple[int, int]]) -> float:
        return one_run_lower_bound(canaries, found, delta=delta, confidence=confidence)

    return OneRunReport(
        method=plan.method,
        rows=len(mixed),
        canaries=canaries,
        guesses=guesses,
        epsilon=epsilon,
        delta=delta,
        proven=bound(guesses),
        most=bound([(r, r) for r in numbers]),
        confidence=confidence,
    )


def canary_pairs(schema: Schema, count: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Pairs of rows that the schema allows, drawn from it alone."""
    rows = obey(schema, sample_rows(schema, rng, 2 * count))
    return rows[:count], rows[count:]


def scores_of(means: Sequence[NoisyMean], rows: Rows, pairs: tuple[Rows, Rows], tick: Tick | None = None) -> Floats:
    """Score of each pair, positive if the first row seems to be in the table, shape (m,).

    Parameters
    ----------
    means : noisy means of the table of the rows and one row of each pair.
    """
    count, (ones, others) = len(pairs[0]), pairs
    total = len(rows) + count
    gram, inner, square, size = np.zeros((count, count)), np.zeros(count), 0.0, 0
    for k, found in enumerate(means):
        apart = np.empty((count, len(found.vector)))
        for i in range(count):
            apart[i] = found.mean([ones[i : i + 1]]) - found.mean([others[i : i + 1]])
            if tick and not k:
                tick(1)
        apart /= 2 * total * found.scale
        parts = [(len(rows), rows), (count / 2, ones), (count / 2, others)]
        base = sum((weight * found.mean([part]) for weight, part in parts if len(part)), np.zeros(len(found.vector)))
        rest = (found.vector - base / total) / found.scale
        gram += apart @ apart.T
        inner += apart @ rest
        square, size = square + float(rest @ rest), size + rest.size
    roots, turn = np.linalg.eigh(gram)
    seen = roots > roots[-1] * TINY
    inner = turn.T @ inner
    free = size - int(seen.sum())
    noise = (square - float((inner[seen] ** 2 / roots[seen]).sum())) / free if free else 1.0
    noise = min(1.0, max(noise, TINY))
    score: Floats = turn @ (inner / (roots + noise)) / (turn**2 @ (noise / (roots + noise)))
    return score


def one_run_lower_bound(
    canaries: int, guesses: Sequence[tuple[int, int]], *, delta: float, confidence: float = 0.95
) -> float:
    """Largest epsilon that some of the numbers of guesses contradict; 0 if none contradicts any.

    Parameters
    ----------
    canaries : number m of coins.
    guesses : numbers of guesses, each with that of the right ones; the numbers do not depend on the
        release, and share the error equally.
    """
    level = (1 - confidence) / len(guesses)
    return max(_largest(canaries, r, v, delta, level) for r, v in guesses)


def _largest(canaries: int, guesses: int, right: int, delta: float, level: float) -> float:
    low, high = 0.0, LARGEST
    if right_guesses_tail(canaries, guesses, right, low, delta) > level:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        below = right_guesses_tail(canaries, guesses, right, middle, delta) <= level
        low, high = (middle, high) if below else (low, middle)
    return low


def right_guesses_tail(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Bound on the probability that an (epsilon, delta)-private release allows so many right guesses.

    Raises
    ------
    InputError : the numbers are not in order.
    """
    from scipy.special import bdtr, expit

    if not 0 <= right <= guesses <= canaries or canaries < 1:
        problem = f"{right} of {guesses} guesses about {canaries} canaries are right"
        raise InputError(problem, "no number may exceed the next one")
    share = float(expit(-epsilon))  # of wrong guesses
    # At least k right guesses are at most `guesses - k` wrong ones.
    tails = bdtr(guesses - np.arange(right, -1, -1), guesses, share)
    more = float(np.max((tails[1:] - tails[0]) / np.arange(1, right + 1), initial=0.0))
    return min(1.0, float(tails[0]) + 2 * canaries * delta * more)
