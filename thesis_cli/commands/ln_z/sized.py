"""Estimates of ln Z by methods that take what memory and time they are given, or tables of a size."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.rounding import log_of_sum
from thesis_cli.inference.mini_bucket.junction_graph import junction_graph_log_partition_function
from thesis_cli.inference.mini_bucket.mini_bucket import mini_bucket_bounds
from thesis_cli.inference.mini_bucket.sampling import importance_estimate
from thesis_cli.perturbation.estimate import Estimate, exact_estimate, fixed_estimate

if TYPE_CHECKING:
    from thesis_cli.commands.ln_z.low_rank import BoundOptions
    from thesis_cli.models.factor_graph import FactorGraph

logger = logging.getLogger("thesis_cli")


def mini_bucket(graph: FactorGraph, options: BoundOptions) -> list[Estimate]:
    """An upper and a lower bound, if there is one."""
    found = mini_bucket_bounds(graph, options.memory, options.deadline, limit=options.table_size)
    logger.debug("mini-buckets of up to %s entries, %s passes", f"{found.largest:,}", found.passes)
    if found.exact:
        return [exact_estimate(log_of_sum(found.upper), "lnZ", "mini-buckets, none divided")]
    ends = [(found.upper, "upper bound"), (found.lower, "lower bound")]
    source = "Liu and Ihler 2011"
    return [fixed_estimate(end, kind, "mini-bucket", source) for end, kind in ends if math.isfinite(end)]


def importance(graph: FactorGraph, options: BoundOptions) -> list[Estimate]:
    """An estimate by importance sampling, without a standard error if it is not to be trusted."""
    rng = np.random.default_rng(options.stream("importance"))
    found = importance_estimate(
        graph, rng, options.memory, options.deadline, confidence=options.confidence, limit=options.table_size
    )
    if found.exact:
        return [exact_estimate(log_of_sum(found.value), "lnZ", "mini-buckets, none divided")]
    logger.debug("%s samples, %.3g of them effective", f"{found.samples:,}", found.effective)
    kind = "Z unbiased" if found.trusted else f"Z unbiased, but only {found.effective:.0f} effective samples"
    estimate = Estimate(
        value=found.value,
        standard_error=found.standard_error if found.trusted else math.inf,
        low=found.low,
        high=found.high,
        target="ln Z",
        kind=kind,
        confidence=found.confidence,
        map_calls=0,
        method="importance",
        source="Liu, Fisher and Ihler 2015",
    )
    return [estimate]


def junction_graph(graph: FactorGraph, options: BoundOptions) -> list[Estimate]:
    """An approximation by propagation on a join graph."""
    size, memory = options.table_size, options.memory
    found = junction_graph_log_partition_function(graph, size, memory=memory, deadline=options.deadline)
    logger.debug("clusters of up to %s entries, %s sweeps", f"{found.largest:,}", found.sweeps)
    value = log_of_sum(found.value)
    if found.exact:
        return [exact_estimate(value, "lnZ", "junction tree")]
    kind = "approximation" if found.converged else "approximation, not converged"
    return [fixed_estimate(value, kind, "junction graph", "Mateescu et al. 2010")]
