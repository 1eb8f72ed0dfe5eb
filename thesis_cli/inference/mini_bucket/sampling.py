"""Z by sampling from what bounds it: importance weights that never exceed the bound."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.mini_bucket.betting import Ratios
from thesis_cli.inference.mini_bucket.mini_bucket import Tightened, tightened
from thesis_cli.inference.mini_bucket.sampler import BATCH, MiniBucketSampler
from thesis_cli.models.factor_graph import FactorGraph

SAMPLES, MOST_SAMPLES = 100_000, 2**22
"""Number of samples without a deadline, and the most with one."""
SECONDS_A_BOUND = 1e-6
"""Time that the bounds take for each sample."""
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
    if best.plan and best.plan.exact:
        return ImportanceEstimate(best.value, 0.0, best.value, best.value, confidence, 0, 0.0, best.value, exact=True)
    sampler = MiniBucketSampler(best.passes_again(), len(graph.cardinalities))
    most = samples or (SAMPLES if deadline is None else MOST_SAMPLES)
    total, began = Ratios(1 - confidence, most), time.monotonic()
    while total.count < most:
        total.add(sampler.draw(rng, min(BATCH, most - total.count))[1])
        now = time.monotonic()
        if deadline is not None:
            total.planned = min(most, total.count * max(1.0, (deadline - began) / max(now - began, 1e-9)))
            if now + SECONDS_A_BOUND * total.count > deadline:
                break
    return estimate_of(total, best, confidence)


def estimate_of(total: Ratios, best: Tightened, confidence: float) -> ImportanceEstimate:
    """The estimate of ln Z from the weights over the bound of `best`."""
    return ImportanceEstimate(
        best.value + total.log_mean,
        total.relative_error,
        best.value + total.low() - best.margin,
        best.bound + total.high(),
        confidence,
        total.count,
        total.effective,
        best.bound,
    )
