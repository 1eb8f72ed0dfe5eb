"""ln Z by Gibbs chains that pass through all temperatures: annealed importance sampling and
thermodynamic integration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import log_sum_exp
from thesis_cli.inference.sampling.gibbs import GibbsPath
from thesis_cli.models.factor_graph import FactorGraph

EFFECTIVE = 10
"""Effective chains below which the standard error means nothing."""
PILOT = 20
"""Chains that show where the temperatures must be close."""
UNIT = 2.0**-52
LEAST_SHARE = 0.1
"""Least density of the temperatures, as a share of their mean density."""
STREAMS = 32
"""Most slices of the chains, each with random numbers of its own, whatever the number of threads."""


Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Annealed:
    """Importance weights of independent chains.

    Attributes
    ----------
    logs : ln of the weights, whose exponentials have the expectation Z; shape (chains,).
    steps : inverse temperatures from 0 to 1, ascending.
    seen : ln of the sum over the different configurations in which chains ended, less its rounding, and so a
        lower bound on ln Z; -inf if none is possible.
    ends : configurations in which the chains ended, shape (chains, n); empty for chains that run backwards.
    """

    logs: Floats
    steps: Floats
    seen: float = -math.inf
    ends: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))

    @property
    def value(self) -> float:
        """ln of the mean weight."""
        return log_mean(self.logs)

    @property
    def effective(self) -> float:
        """Number of equal weights that would have the same error."""
        if self.value == -math.inf:
            return 0.0
        weights = np.exp(self.logs - self.logs.max())
        return float(weights.sum() ** 2 / (weights @ weights))

    @property
    def standard_error(self) -> float:
        """Standard error of `value` by the delta method; inf if fewer than `EFFECTIVE` chains bear it."""
        if self.effective < EFFECTIVE:
            return math.inf
        relative = np.exp(self.logs - self.value)
        return float(relative.std(ddof=1) / math.sqrt(relative.size))

    def lower(self, confidence: float) -> float:
        """A bound that is below ln Z with at least this probability, see `log_mean_bound`."""
        return log_mean_bound(self.logs, confidence)


@dataclass(frozen=True)
class Integrated:
    """ln Z as an integral over inverse temperatures.

    Attributes
    ----------
    value : ln Z by the trapezoidal rule with a correction from the measured variances, nats.
    standard_error : standard error by the differences between the chains.
    lower, upper : left and right sums. The integrand rises, so that they enclose the value for
        chains in equilibrium, apart from their standard error.
    steps : inverse temperatures from 0 to 1, ascending.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    steps: Floats


def log_mean(logs: Floats) -> float:
    """ln of the mean of exp(logs), of shape (count,)."""
    return float(log_sum_exp(logs)) - math.log(logs.size)


def log_mean_bound(logs: Floats, confidence: float) -> float:
    """A number that is at most ln E[w] with at least the given probability.

    The product of the means of g groups has the expectation E[w]^g, so that by Markov's inequality
    their mean logarithm exceeds ln E[w] + ln(1/error)/g with probability `error` at most. One group
    serves weights that vary much, a group for each weight those that hardly vary; the result is the
    best of three numbers of groups, each with a third of the error.

    Parameters
    ----------
    logs : logarithms of independent weights w >= 0, shape (count,).
    confidence : the probability.
    """
    error = (1 - confidence) / 3
    size = logs.size
    bounds = []
    for groups in {1, min(size, round(math.sqrt(6 * size))), size}:
        means = [log_mean(part) for part in np.array_split(logs, groups)]
        bounds.append(float(np.mean(means)) + math.log(error) / groups)
    return max(bounds)


def annealed(
    graph: FactorGraph,
    chains: int,
    temperatures: int,
    seed: np.random.SeedSequence,
    *,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Annealed:
    """Estimate Z by annealed importance sampling (Neal 2001).

    A chain starts in a draw from the product of the unary factors. Each step lets more of the other
    factors in, multiplies the weight of the chain by the ratio of the potentials, and makes one
    Gibbs sweep. The weights have the expectation Z, however badly the chains mix. A few chains
    beforehand choose the steps, in proportion to the standard deviation of the potential.

    Parameters
    ----------
    graph : any model.
    chains : number of independent chains, at least 2.
    temperatures : number of steps, at least 1.
    seed : seed of all random numbers; the results do not depend on `jobs`.
    jobs : threads.
    progress : called with the number of steps of chains just made.

    Raises
    ------
    InputError : fewer chains or temperatures.
    ModelTooLarge, NoConfiguration : as for `GibbsPath`.
    """
    path, steps, main = _prepared(graph, chains, temperatures, seed)

    def work(count: int, rng: np.random.Generator, tick: Tick) -> tuple[Floats, Ints]:
        state = path.start(rng, count)
        logs = np.full(count, path.log_z0)
        for before, b in itertools.pairwise(steps):
            logs += (b - before) * path.rest(state)
            if b < 1:
                path.sweep(state, b, rng)
            tick(count)
        logs[~path.possible(state)] = -math.inf
        return logs, state.states

    parts = _over_chains(work, chains, main, jobs, progress)
    logs, ends = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Annealed(logs, steps, _seen(graph, ends[logs > -math.inf]), ends)


def _seen(graph: FactorGraph, states: Ints) -> float:
    """ln of the sum over different configurations, less its rounding; shape (any, n)."""
    if not len(states):
        return -math.inf
    sizes = [float(np.abs(f.table[np.isfinite(f.table)]).max(initial=0.0)) for f in graph.factors]
    found = graph.log_potential(np.unique(states, axis=0))
    return float(log_sum_exp(found)) - UNIT * ((len(sizes) + 1) * sum(sizes) + 8 * (found.size - 1))


def annealing_steps(graph: FactorGraph, temperatures: int, rng: np.random.Generator) -> Floats:
    """Inverse temperatures from 0 to 1 for a model, as `annealed` chooses them."""
    return _steps(GibbsPath(graph, PILOT), temperatures, rng)


def reversely_annealed(graph: FactorGraph, states: Ints, steps: Floats, rng: np.random.Generator) -> Annealed:
    """Estimate 1/Z by annealing exact samples back to the product of the unary factors (Grosse,
    Ghahramani and Adams 2015).

    The expectation of the weights is at most 1/Z, and equal to it if no factor but unary ones
    forbids anything; so -`lower(confidence)` is an upper bound on ln Z with that probability.

    Parameters
    ----------
    states : independent exact samples, shape (chains, n).
    steps : inverse temperatures from 0 to 1, ascending.
    """
    path = GibbsPath(graph, len(states))
    state = path.at(states)
    logs = np.full(len(states), -path.log_z0)
    for after, b in zip(steps[:0:-1], steps[-2::-1], strict=True):
        logs += (b - after) * path.rest(state)
        if b > 0:
            path.sweep(state, b, rng)
    return Annealed(logs, steps)


def thermodynamic_integral(
    graph: FactorGraph,
    chains: int,
    temperatures: int,
    seed: np.random.SeedSequence,
    *,
    sweeps: int = 10,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Integrated:
    """Integrate the mean potential over inverse temperatures: d ln Z_b / db = E_b[r].

    The chains go up the temperatures of `GibbsPath` and stay `sweeps` sweeps at each, of which the
    second half counts. The variance of r is the slope of the integrand, and gives the correction
    of the trapezoidal rule. With impossible entries the path ends where they have a finite depth,
    and the share of possible states there is the rest.

    Parameters
    ----------
    graph, chains, temperatures, seed, jobs, progress : as for `annealed`.
    sweeps : number of sweeps at each temperature, at least 2.

    Raises
    ------
    InputError : fewer chains, temperatures or sweeps.
    ModelTooLarge, NoConfiguration : as for `GibbsPath`.
    """
    if sweeps < 2:
        raise InputError(f"{sweeps} sweeps at each temperature", "it must be at least 2")
    path, steps, main = _prepared(graph, chains, temperatures, seed)
    counted = sweeps - sweeps // 2

    def work(count: int, rng: np.random.Generator, tick: Tick) -> Floats:
        """Mean of r and of its square at each temperature, and the share of possible states, for
        each chain: shape (2 (temperatures + 1) + 1, count)."""
        state = path.start(rng, count)
        found = np.zeros((2 * steps.size + 1, count))
        for j, b in enumerate(steps):
            for turn in range(sweeps):
                path.sweep(state, b, rng)
                if turn >= sweeps - counted:
                    rest = path.rest(state)
                    found[j] += rest / counted
                    found[steps.size + j] += rest**2 / counted
                    if b == 1:
                        found[-1] += path.possible(state) / counted
            tick(count)
        return found

    return _integrated(path, steps, np.concatenate(_over_chains(work, chains, main, jobs, progress), axis=1))


def _integrated(path: GibbsPath, steps: Floats, found: Floats) -> Integrated:
    means, squares, possible = found[: steps.size], found[steps.size : -1], found[-1]
    widths = np.diff(steps)
    level = means.mean(axis=1)
    variance = squares.mean(axis=1) - level**2
    shares = np.zeros(steps.size)
    shares[:-1] += widths / 2
    shares[1:] += widths / 2
    by_chain = shares @ means
    ends = path.log_z0 + float(widths @ level[:-1]), path.log_z0 + float(widths @ level[1:])
    value = path.log_z0 + float(by_chain.mean()) - float(widths**2 @ np.diff(variance)) / 12
    value = min(max(value, ends[0]), max(ends))  # few temperatures for strong potentials
    error = float(by_chain.var(ddof=1))
    if path.hard:
        share = float(possible.mean())
        rest = math.log(share) if share > 0 else -math.inf
        error += float(possible.var(ddof=1)) / share**2 if share > 0 else math.inf
        value, ends = value + rest, (ends[0] + rest, ends[1] + rest)
    return Integrated(value, math.sqrt(error / by_chain.size), *ends, steps)


def _prepared(
    graph: FactorGraph, chains: int, temperatures: int, seed: np.random.SeedSequence
) -> tuple[GibbsPath, Floats, np.random.SeedSequence]:
    """The path, its temperatures, and the seed of the chains."""
    if chains < 2:
        raise InputError(f"there is {chains} chain", "take at least 2")
    if temperatures < 1:
        raise InputError(f"there are {temperatures} temperatures", "take at least 1")
    path = GibbsPath(graph, max(chains, PILOT))
    pilot, main = seed.spawn(2)
    return path, _steps(path, temperatures, np.random.default_rng(pilot)), main


def _steps(path: GibbsPath, temperatures: int, rng: np.random.Generator) -> Floats:
    """Inverse temperatures from 0 to 1, closer where the potential of a few chains varies more."""
    grid = np.linspace(0, 1, max(2, temperatures // 5) + 1)
    state = path.start(rng, PILOT)
    spread = np.empty(grid.size)
    for j, b in enumerate(grid):
        path.sweep(state, b, rng)
        spread[j] = path.rest(state).std(ddof=1)
    density = np.maximum(spread, LEAST_SHARE * spread.mean())
    if not density.any():
        density = np.ones(grid.size)
    sums = np.concatenate([[0], ((density[1:] + density[:-1]) / 2 * np.diff(grid)).cumsum()])
    steps = np.interp(np.linspace(0, sums[-1], temperatures + 1), sums, grid)
    steps[0], steps[-1] = 0.0, 1.0
    return np.asarray(steps)


def _over_chains(
    work: Callable[[int, np.random.Generator, Tick], Found],
    chains: int,
    seed: np.random.SeedSequence,
    jobs: int,
    progress: Tick | None,
) -> list[Found]:
    """Results of slices of the chains, each with random numbers of its own."""
    slices = min(STREAMS, math.ceil(chains / 8))
    counts = [len(part) for part in np.array_split(np.arange(chains), slices)]
    with Threads(jobs) as threads:

        def tick(done: int) -> None:
            if threads.stopped:  # nobody waits for the result
                raise WorkFailed("stopped")
            if progress:
                progress(done)

        def one(count: int, stream: np.random.SeedSequence) -> Found:
            return work(count, np.random.default_rng(stream), tick)

        return list(threads.map(one, counts, seed.spawn(slices)))
