"""Equalities of Thesis chapter 3 on distributions with a known answer, as means over perturbations.

Every function yields rows of (quantity, argument, value, standard error, expected value).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats
from thesis_cli.entropy.estimators import entropy_maxima
from thesis_cli.entropy.exact import exact_entropies, renyi
from thesis_cli.entropy.integrals import paired_maxima
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

NEAR = 1e-6
"""Distance from 1, and from 0 and 1 / inf, of the orders that stand for limits."""

FREQUENT = 0.08
"""Least share of the samples that a configuration must attain for its maxima to be looked at."""

Row = tuple[str, str, float, float, float]


def participation_rows(log_p: Floats, count: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Mean of the Exponential trick's clocks at order 2 over e^{H_2}, the inverse participation
    ratio.

    Parameters
    ----------
    log_p : ln p of all configurations, normalised, shape (N,).
    count : number M of perturbations.
    """
    maxima = entropy_maxima(LogPotentials(log_p), np.array([2.0]), count, seed)
    clocks = np.exp(-np.euler_gamma - maxima.column(2.0) + logsumexp(2 * log_p))
    yield "participation", "2", float(clocks.mean()), float(clocks.std(ddof=1)) / math.sqrt(count), 1.0


def integral_rows(
    log_p: Floats, log_fs: Mapping[str, Floats], count: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """Means of max {ln p + ln f + gamma}, whose expectations are ln sum_x p(x) f(x) (eq. 3.25).

    Parameters
    ----------
    log_p : ln p, normalised, shape (N,).
    log_fs : ln f by the argument that names it, each of shape (N,).
    """
    for (argument, log_f), child in zip(log_fs.items(), seed.spawn(len(log_fs)), strict=True):
        values = paired_maxima(LogPotentials(log_p), LogPotentials(log_f), count, child).weighted
        error = float(values.std(ddof=1)) / math.sqrt(count)
        yield "integral", argument, float(values.mean()), error, float(logsumexp(log_p + log_f))


def independence_rows(log_p: Floats, log_z: float, count: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Mean and variance of max {phi + gamma} given each frequent maximiser x* (proof of Theorem 9).

    Parameters
    ----------
    log_p : distinct values of ln p, normalised, shape (N,).
    log_z : ln Z of phi = ln p + ln Z.
    """
    phi = log_p + log_z
    maxima = entropy_maxima(LogPotentials(phi), np.array([2.0]), count, seed)
    for x, level in enumerate(phi):
        found = maxima.at_one[maxima.potential == level]
        if found.size >= FREQUENT * count:
            yield (
                "mean given x*",
                str(x + 1),
                float(found.mean()),
                float(found.std(ddof=1)) / math.sqrt(found.size),
                log_z,
            )
            variance, error = sample_variance(found)
            yield "variance given x*", str(x + 1), float(variance), float(error), math.pi**2 / 6


def limit_rows(log_p: Floats) -> Iterator[Row]:
    """Exact entropies `NEAR` orders 0, 1 and inf, beside the formulas there (eqs. 3.1, 3.2, 3.4)."""
    p = np.exp(log_p[log_p > -np.inf])
    shannon, least = float(-(p @ np.log(p))), -float(log_p.max())
    orders = [NEAR, 1 - NEAR, 1 + NEAR, 1 / NEAR]
    exact = exact_entropies(LogPotentials(log_p), orders).entropies
    limits = math.log(p.size), shannon, shannon, least
    for name, entropy, expected in zip(("0", "1, below", "1, above", "inf"), exact, limits, strict=True):
        yield "limit", name, float(entropy), 0.0, expected


def power_sum_rows(graph: FactorGraph, orders: list[float]) -> Iterator[Row]:
    """H_a by ln Z of two graphs, a phi and phi (eq. 3.27), beside its definition (eq. 3.5).

    The first sums by elimination, the definition by enumeration.
    """
    states = np.stack(np.unravel_index(np.arange(graph.size), graph.cardinalities), axis=-1)
    phi = graph.log_potential(states)
    log_p = phi - logsumexp(phi)
    log_z, _ = exact_log_partition_function(graph)
    for order in orders:
        at_order, _ = exact_log_partition_function(graph.tempered(order))
        direct = float(logsumexp(order * log_p)) / (1 - order)
        yield "two sums", f"{order:g}", renyi(order, at_order, log_z), 0.0, direct
