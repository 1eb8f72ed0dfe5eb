"""Z by sampling from what bounds it: importance weights that never exceed the bound."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Literal

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
BOUND_SHARE, LEAST_BOUND = 0.8, 2.0
"""Most of the time that goes to the bound, and seconds that it has at least if there are as many."""
EFFECTIVE, EFFECTIVE_POPULATIONS = 100, 10
"""Effective samples or populations below which an estimate is not to be trusted."""
NEGLIGIBLE = 6.0
"""Nats below the bound over the number of samples where a weight is rounded up, if it only bounds Z from above."""
PILOT, POPULATION_STAKE, POPULATION_SHARE = 2048, 0.3, 0.4
"""Samples that tell whether others would be too few effective ones, and the stake on the first populations and their
share of the samples then."""


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
    unit : what the samples are: `samples`, or `populations` that were resampled on the way.
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
    unit: Literal["samples", "populations"] = "samples"

    @property
    def trusted(self) -> bool:
        """Whether enough samples bear the estimate for its standard error to mean something."""
        return self.effective >= (EFFECTIVE if self.unit == "samples" else EFFECTIVE_POPULATIONS)


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
    the product of prod_r q_r^w_r / q over the variables, and no factor exceeds 1. If some first samples,
    which do not count, show that too few would be effective, some are drawn in populations, and those that
    only bound Z from above end where their weight is negligible.

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
    until, end = None, math.inf
    if deadline is not None:
        until, end = min(deadline, now + max(LEAST_BOUND, BOUND_SHARE * (deadline - now))), deadline
    best = tightened(graph, memory, until, sides=("upper",), limit=limit, keep=True, end=end)["upper"]
    if best.value == -math.inf:
        raise NoConfiguration()
    if best.plan and best.plan.exact:
        return ImportanceEstimate(best.value, 0.0, best.value, best.value, confidence, 0, 0.0, best.value, exact=True)
    sampler = MiniBucketSampler(best.passes_again(), len(graph.cardinalities))
    most, began = samples or (SAMPLES if deadline is None else MOST_SAMPLES), time.monotonic()
    error, populations, planned = 1 - confidence, None, most
    pilot = Ratios(error, planned)
    pilot.add(sampler.draw(rng, min(PILOT, most))[1])
    if deadline is not None:
        pace = SECONDS_A_BOUND + (time.monotonic() - began) / pilot.count
        planned = min(most, max(BATCH, int((deadline - time.monotonic()) / pace)))
    if pilot.effective * planned < EFFECTIVE * pilot.count:
        own = int(POPULATION_SHARE * planned)
        now, planned = time.monotonic(), max(1, planned - own)
        most = planned if deadline is None else most
        until = None if deadline is None else now + POPULATION_SHARE * (deadline - now)
        populations = _populations(sampler, rng, error, max(1, own // BATCH), until)
    floor = -math.inf if populations is None else -math.log(planned) - NEGLIGIBLE
    total = Ratios(error, planned, pilot.stake())
    while total.count < most:
        total.add(sampler.ratios(rng, min(BATCH, most - total.count), floor))
        if deadline is not None and time.monotonic() + SECONDS_A_BOUND * total.count > deadline:
            break
    return _estimate(total, populations, best, confidence)


def _populations(
    sampler: MiniBucketSampler, rng: np.random.Generator, error: float, planned: int, deadline: float | None
) -> Ratios:
    """Estimates of Z over the bound by resampled populations: so many, or as many as the deadline allows."""
    found = Ratios(error, planned, POPULATION_STAKE)
    while found.count < planned if deadline is None else not found.count or time.monotonic() < deadline:
        found.add(np.array([sampler.population(rng, BATCH)]))
    return found


def _estimate(total: Ratios, populations: Ratios | None, best: Tightened, confidence: float) -> ImportanceEstimate:
    """The estimate of ln Z from weights over the bound of `best`."""
    borne = total if populations is None else populations
    return ImportanceEstimate(
        best.value + borne.log_mean,
        borne.relative_error,
        best.value + borne.low() - best.margin,
        best.bound + total.high(),
        confidence,
        borne.count,
        borne.effective,
        best.bound,
        unit="samples" if populations is None else "populations",
    )
