"""Z by sampling from what bounds it: importance weights that never exceed the bound."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.mini_bucket.mini_bucket import Tightened, tightened
from thesis_cli.inference.mini_bucket.sampler import BATCH, MiniBucketSampler
from thesis_cli.models.factor_graph import FactorGraph

SAMPLES = 100_000
"""Number of samples without a deadline."""
BOUND_SHARE, LEAST_BOUND = 0.5, 2.0
"""Share of the time that goes to the bound, and seconds that it has at least if there are as many."""
EFFECTIVE = 100
"""Effective samples below which an estimate is not to be trusted."""


@dataclass(frozen=True)
class ImportanceEstimate:
    """An estimate of ln Z by importance sampling.

    Attributes
    ----------
    value : ln of an unbiased estimate of Z, in nats; -inf if all weights are 0.
    standard_error : standard error of `value` by the delta method; inf if it cannot be told.
    low, high : bounds on ln Z that both hold with probability `confidence`, for any number of samples.
    confidence : probability with which `low` and `high` hold.
    samples : number of samples.
    effective : number of equal weights that would have the same error.
    bound : the upper bound on ln Z that bounds the weights.
    exact : whether no bucket had to be divided, so that all weights are Z.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    samples: int
    effective: float
    bound: float
    exact: bool = False

    @property
    def trusted(self) -> bool:
        """Whether enough samples bear the estimate for its standard error to mean something."""
        return self.effective >= EFFECTIVE


def importance_estimate(
    graph: FactorGraph,
    rng: np.random.Generator,
    memory: int = DEFAULT_MEMORY,
    deadline: float | None = None,
    *,
    samples: int | None = None,
    confidence: float = 0.95,
    limit: int | None = None,
) -> ImportanceEstimate:
    """Estimate Z by samples from the mini-buckets of an upper bound (Liu, Fisher and Ihler 2015).

    Each variable, the last eliminated first, is drawn from the mixture q = sum_r w_r q_r of what its
    mini-buckets say, with the Holder weights w_r. The weight of a configuration is the bound times
    the product of prod_r q_r^w_r / q over the variables, and no factor exceeds 1.

    Parameters
    ----------
    memory, deadline, limit : as for `mini_bucket_bounds`.
    samples : number of samples; by default those that the deadline allows, or `SAMPLES`.

    Raises
    ------
    NoConfiguration : the upper bound shows that no configuration is possible.
    OutOfTime : the time was up before the first bound.
    """
    now = time.monotonic()
    until = None if deadline is None else min(deadline, now + max(LEAST_BOUND, BOUND_SHARE * (deadline - now)))
    best = tightened(graph, memory, until, sides=("upper",), limit=limit, keep=True)["upper"]
    if best.value == -math.inf:
        raise NoConfiguration()
    sampler = MiniBucketSampler(best.passes_again(), len(graph.cardinalities))
    most = samples or (SAMPLES if deadline is None else 2**62)
    total = Ratios()
    while total.count < most:
        total.add(sampler.draw(rng, min(BATCH, most - total.count))[1])
        if deadline is not None and time.monotonic() > deadline:
            break
    return total.estimate(best, confidence)


class Ratios:
    """Running sums of weights over their bound, given by logarithms."""

    def __init__(self) -> None:
        self.count, self._top = 0, -math.inf
        self._sum = self._squares = 0.0  # of exp(ratio - top)

    def add(self, logs: Floats) -> None:
        """Take more of them."""
        self.count += logs.size
        if (top := float(logs.max(initial=-math.inf))) > self._top:
            shrink = math.exp(self._top - top)
            self._sum, self._squares, self._top = self._sum * shrink, self._squares * shrink**2, top
        if self._top > -math.inf:
            relative = np.exp(logs - self._top)
            self._sum += float(relative.sum())
            self._squares += float(relative @ relative)

    def estimate(self, best: Tightened, confidence: float) -> ImportanceEstimate:
        """Estimate ln Z from the weights.

        From above, by the empirical Bernstein bound (Maurer and Pontil 2009, Theorem 4), with half of
        the probability of an error. From below, by the same and by Markov's inequality, which bounds
        how far the mean exceeds Z, with a quarter each.
        """
        n, top, error = self.count, self._top, 1 - confidence
        assert best.plan is not None
        if best.plan.exact:
            return ImportanceEstimate(best.value, 0.0, best.value, best.value, confidence, n, n, best.value, exact=True)
        mean = self._sum / n
        variance = max(0.0, self._squares - n * mean**2) / max(1, n - 1)
        log_mean = top + math.log(mean) if mean else -math.inf

        def deviation(side: float) -> float:
            """ln of how far the mean is from its expectation at most, with probability 1 - side."""
            level = math.log(2 / side)
            spread = top + 0.5 * math.log(2 * variance * level / n) if variance else -math.inf
            return float(np.logaddexp(spread, math.log(7 * level / (3 * max(1, n - 1)))))

        high = min(0.0, float(np.logaddexp(log_mean, deviation(error / 2))))
        low = log_mean + math.log(error / 4)
        if (gap := deviation(error / 4) - log_mean if mean else 0.0) < 0:
            low = max(low, log_mean + math.log1p(-math.exp(gap)))
        return ImportanceEstimate(
            best.value + log_mean,
            math.sqrt(variance / n) / mean if mean and n > 1 else math.inf,
            best.value + low - best.margin,
            best.bound + high,
            confidence,
            n,
            self._sum**2 / self._squares if mean else 0.0,
            best.bound,
        )
