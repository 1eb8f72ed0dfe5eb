"""Marginals with standard errors where no exact algorithm takes a model: weighted frequencies in samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.mini_bucket.mini_bucket import tightened
from thesis_cli.inference.mini_bucket.sampler import BATCH, MiniBucketSampler
from thesis_cli.inference.sampling.annealing import annealed
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.models.factor_graph import FactorGraph

CHAINS, LEAST_TEMPERATURES, MOST_TEMPERATURES = 400, 50, 2000
"""Chains, and the least and the most temperatures of each."""

MOVES = 4 * 10**8
"""Moves of a variable times its tables in all chains; takes some 20 s."""

DRAWS = 50_000
"""Draws from mini-buckets."""

ENOUGH, EFFECTIVE = 100.0, 10.0
"""Effective draws with which no chain is tried, and effective samples below which errors mean nothing."""

CONTRADICTION = 3.0
"""Nats by which an unbiased estimate of Z shows that another one misses most of Z: it is k times too large with
probability 1/k at most (Markov)."""


@dataclass(frozen=True)
class WeightedMarginals:
    """Marginals by weighted samples.

    Attributes
    ----------
    log_z : ln of an unbiased estimate of Z.
    probabilities, standard_errors : of the states of variable 0, then of variable 1, ...
    effective : number of equal weights that would have the same error.
    samples : number of samples.
    method : what drew them.
    """

    log_z: float
    probabilities: Floats
    standard_errors: Floats
    effective: float
    samples: int
    method: str

    @property
    def trusted(self) -> bool:
        """Whether enough samples bear the standard errors."""
        return self.effective >= EFFECTIVE


class _Frequencies:
    """Running sums of weights for each state of each variable."""

    def __init__(self, cardinalities: tuple[int, ...]) -> None:
        self._starts = np.cumsum(cardinalities) - cardinalities
        self._length = sum(cardinalities)
        self._count, self._top = 0, -math.inf
        self._sums = np.zeros((2, self._length))  # of weights and of their squares, over exp(top)
        self._totals = np.zeros(2)

    def add(self, states: Ints, logs: Floats) -> None:
        """Take samples, shape (count, n), with ln of their weights, shape (count,)."""
        self._count += logs.size
        if (top := float(logs.max(initial=-math.inf))) > self._top:
            shrink = math.exp(self._top - top)
            for each in (self._sums, self._totals):
                each[0] *= shrink
                each[1] *= shrink**2
            self._top = top
        kept = logs > -math.inf
        places, weights = states[kept] + self._starts, np.exp(logs[kept] - self._top)
        for power in range(2):
            own = weights ** (power + 1)
            self._totals[power] += own.sum()
            repeated = np.repeat(own, places.shape[1])
            self._sums[power] += np.bincount(places.reshape(-1), repeated, self._length)

    def marginals(self, log_scale: float, method: str) -> WeightedMarginals:
        """Weighted frequencies with errors by the delta method, at least one effective sample's share."""
        total, squares = self._totals
        if not total:
            unknown = np.full(self._length, math.nan)
            return WeightedMarginals(-math.inf, unknown, unknown, 0.0, self._count, method)
        p, effective = self._sums[0] / total, total**2 / squares
        spread = np.maximum(self._sums[1] * (1 - 2 * p) + p**2 * squares, 0.0) / total**2
        log_z = log_scale + self._top + math.log(total / self._count)
        errors = np.maximum(np.sqrt(spread), 1 / effective)
        return WeightedMarginals(log_z, p, errors, float(effective), self._count, method)


def weighted_marginals(
    graph: FactorGraph, seed: np.random.SeedSequence, memory: int = DEFAULT_MEMORY, jobs: int = 1
) -> WeightedMarginals:
    """Estimate marginals by draws from mini-buckets or, if few of them are effective, by annealed Gibbs chains.

    The work is the same on every machine. The standard errors say nothing about what no sample found.

    Parameters
    ----------
    memory : bytes for the tables of mini-buckets.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """
    small = reduced(graph)
    first, second = seed.spawn(2)
    found = [_by_draws(small.graph, second, memory)]
    if found[0].effective < ENOUGH and any(k > 1 for k in small.graph.cardinalities):
        found += _by_chains(small.graph, first, jobs)
    most = max(each.log_z for each in found)
    best = max((each for each in found if each.log_z >= most - CONTRADICTION), key=lambda each: each.effective)
    fixed = small.original_marginals(np.zeros_like(best.probabilities))  # of variables that no table names
    return WeightedMarginals(
        small.constant + best.log_z,
        small.original_marginals(best.probabilities),
        small.original_marginals(best.standard_errors) - fixed,
        best.effective,
        best.samples,
        best.method,
    )


def _by_chains(graph: FactorGraph, seed: np.random.SeedSequence, jobs: int) -> list[WeightedMarginals]:
    uses = sum(len(factor.scope) for factor in graph.factors)
    temperatures = min(MOST_TEMPERATURES, MOVES // (CHAINS * max(1, uses)))
    if temperatures < LEAST_TEMPERATURES:
        return []
    try:
        chains = annealed(graph, CHAINS, temperatures, seed, jobs=jobs)
    except InputError:  # a log-potential that is too large
        return []
    counts = _Frequencies(graph.cardinalities)
    counts.add(chains.ends, chains.logs)
    return [counts.marginals(0.0, "annealed Gibbs chains")]


def _by_draws(graph: FactorGraph, seed: np.random.SeedSequence, memory: int) -> WeightedMarginals:
    best = tightened(graph, memory, None, sides=("upper",), keep=True)["upper"]
    if best.value == -math.inf:
        raise NoConfiguration()
    sampler, rng = MiniBucketSampler(best.passes_again(), len(graph.cardinalities)), np.random.default_rng(seed)
    counts = _Frequencies(graph.cardinalities)
    for start in range(0, DRAWS, BATCH):
        states, logs = sampler.draw(rng, min(BATCH, DRAWS - start))
        counts.add(states.T, logs)
    return counts.marginals(best.value, "draws from mini-buckets")
