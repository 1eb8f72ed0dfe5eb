"""Bounds on ln Z with some variables clamped, or with noise on subsets of variables (Thesis 2.3.3
and 2.3.4), measured on a model whose sum is enumerated.

Every function yields rows of (quantity, alpha, size, value, standard error); bounds are given less
ln Z, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.low_rank.subsets import edges, with_subset_variables
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.identities import Row, influence_of, mean

CLAMPED = np.array([-0.2, 0, 0.5])
"""Alphas of the clamped bounds."""
SUBSET = np.array([-0.2, 0, 1])
"""Alphas of the bounds with noise on a subset."""


class _Clamped(NamedTuple):
    """Bounds with the variables of a prefix held.

    Attributes
    ----------
    bounds : bound at each prefix, shape (P,).
    influences : influence of each sample on each bound, shape (count, P).
    total : ln of the sum of exp(bounds).
    influence : influence of each sample on `total`, shape (count,).
    """

    bounds: Floats
    influences: Floats
    total: float
    influence: Floats


def clamping_rows(graph: FactorGraph, phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Bounds with the first j variables held, j = 0 .. n, and Lemma 1 at every prefix.

    All bounds use the same noise. "lemma" is the gap between the two sides of the lemma that is
    lowest in its standard errors, among all prefixes of one length.

    Parameters
    ----------
    phi : log-potentials of all configurations, shape (N,).
    """
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    partial = [phi[np.newaxis]]
    for k in reversed(graph.cardinalities):
        values = partial[-1].reshape(partial[-1].shape[0], -1, k)
        partial.append((values + gumbel(rng, count, k)[:, np.newaxis]).max(axis=2))
    partial.reverse()
    for alpha in CLAMPED:
        inner: _Clamped | None = None
        for held in range(n, -1, -1):
            possible = partial[held][0] > -np.inf
            bounds, influences = np.full(possible.size, -np.inf), np.zeros(partial[held].shape)
            values = partial[held][:, possible]
            bounds[possible] = power_bounds(values.T, n - held, np.array([alpha]))[0][:, 0]
            influences[:, possible] = influence_of(values, alpha)
            total = float(logsumexp(bounds))
            influence = influences @ np.exp(bounds - total)
            if inner is None:
                yield "clamped", alpha, n, total - log_z, 0
            else:
                yield "clamped", alpha, held, total - log_z, mean(influence)[1]
                yield "clamping step", alpha, held + 1, total - inner.total, mean(influence - inner.influence)[1]
                split = inner.bounds.reshape(possible.size, -1)[possible]
                sums = logsumexp(split, axis=1)
                weights = np.exp(split - sums[:, np.newaxis])
                sides = inner.influences.reshape(-1, possible.size, split.shape[1])[:, possible] * weights
                gaps = bounds[possible] - sums
                errors = (influences[:, possible] - sides.sum(axis=2)).std(axis=0) / math.sqrt(count)
                worst = (gaps / errors).argmin()
                yield "lemma", alpha, held, gaps[worst], errors[worst]
            inner = _Clamped(bounds, influences, total, influence)


def subset_rows(graph: FactorGraph, phi: Floats, count: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Proposition 5 with noise on the joint states of the first k variables.

    The rows "subset, closed form" are the bound less its closed form, ln sum_{x_S} max exp(phi).
    """
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    for k, child in zip(range(1, min(n, 5) + 1), seed.spawn(5), strict=False):
        larger, noisy = with_subset_variables(graph, [range(k)])
        maxima = low_rank_maxima(Elimination(larger), count, child, noisy=noisy)
        joint = phi.reshape(math.prod(graph.cardinalities[:k]), -1).max(axis=1)
        for alpha, bound, error in zip(SUBSET, *power_bounds(maxima.values, 1, SUBSET), strict=True):
            yield "subset", alpha, k, bound - log_z, error
            yield "subset, closed form", alpha, k, bound - logsumexp(joint), error


def pair_rows(
    graph: FactorGraph, upper: LowRankMaxima, phi: Floats, count: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """U(0) with noise on the joint states of each edge, if there are edges (Hazan et al. Corollary 5)."""
    larger, noisy = with_subset_variables(graph, edges(graph))
    if len(noisy) == upper.terms:
        return
    value, error = mean(low_rank_maxima(Elimination(larger), count, seed, noisy=noisy).values)
    yield "pairs", 0, len(noisy), value - logsumexp(phi), error
    unary, unary_error = mean(upper.values)
    yield "pairs less unary", 0, len(noisy), value - unary, math.hypot(error, unary_error)
