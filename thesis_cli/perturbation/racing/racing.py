"""Perturbed maxima by racing the states on subsamples of their factors (Thesis 2.5.2; Chen and
Ghahramani 2016).

Let p(x) ~ f_0(x) prod_s f_s(x) with many more factors than states. Maximising phi(x) + gamma(x) = S
(mean log-factor of x) + ln f_0(x) + gamma(x) is a best-arm problem with a finite population of S
rewards for each arm. A state that is surely behind on a part of the factors needs no more of them.

Every perturbation draws its own random order of the factors, so that the maxima are independent.
All states see the same factors, because a difference of two log-factors varies less than they do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.models.factor_matrix import FactorMatrix
from thesis_cli.perturbation.racing.race_arrays import Field, Outcome
from thesis_cli.perturbation.tricks.full_rank import rounds, streams

BOUNDS = ("normal", "bernstein-serfling")

FIRST_BATCH = 50
"""Factors before the first look, so many that their mean is about normal."""

LEAST_LEVEL = 1e-30
"""Least probability of a failed bound; far below it SciPy has no quantiles."""

WORK = 2**27
"""Evaluations in one call of the compiled kernel: about a second, after which Ctrl-C takes
effect."""


@dataclass(frozen=True)
class RacingMaxima:
    """Results of races under full-rank noise.

    Attributes
    ----------
    values : phi(x) + ln f_0(x) + gamma(x) at the winner, shape (M,), which is below the perturbed
        maximum by `losses`; without `exact_value` an estimate from the factors seen.
    states : the winner, shape (M,).
    evaluations : log-factors evaluated, counted for each perturbation separately, shape (M,).
    looks : number of comparisons of all states still in, shape (M,).
    losses : perturbed maximum minus the winner's value, shape (M,); 0 where the race was right. The
        races do not know it: it comes from the sums that are computed when the matrix is checked.
    share : evaluations over the M S K that full sums for every perturbation would take.
    """

    values: Floats
    states: Ints
    evaluations: Ints
    looks: Ints
    losses: Floats
    share: float

    @property
    def errors(self) -> int:
        """Number of races that ended with a state that is not the best."""
        return int((self.losses > 0).sum())


@dataclass(frozen=True)
class RaceRules:
    """The rules of races.

    Attributes
    ----------
    bound : the confidence bound that rules a state out, one of `BOUNDS`.
    first_batch : factors before the first look, at least 2; with no more factors than that, all are
        summed.
    log_prior : ln f_0(x), known at no cost, shape (K,); -inf where a state is impossible. Zero by
        default.
    width : a range that contains each state's log-factors, largest minus smallest, for
        `bernstein-serfling`; by default each state's own range in the matrix.
    exact_value : sum all factors of a winner found on fewer. Otherwise its value is an estimate,
        with noise of its own.
    """

    bound: str = "normal"
    first_batch: int = FIRST_BATCH
    log_prior: Floats | None = None
    width: float | None = None
    exact_value: bool = True


DEFAULT_RULES = RaceRules()


def race(
    matrix: FactorMatrix,
    count: int,
    delta: float,
    seed: np.random.SeedSequence,
    rules: RaceRules = DEFAULT_RULES,
    *,
    jobs: int = 1,
    memory: int = DEFAULT_MEMORY,
    progress: Tick | None = None,
) -> RacingMaxima:
    """Solve `count` MAP problems, each under its own noise and on its own subsample of factors.

    The number of factors seen doubles from look to look. At a look a state is out if it is below
    the leader by more than a bound that fails with probability delta / ((K - 1) L) for each of K -
    1 rivals and each of L looks, so that a race goes wrong with probability delta at most. Races
    that are still open after the last look end on all factors.

    The bound `normal` (Racing-Normal) assumes that means are normal, which means of rare large
    factors are not; it takes Student's quantiles, as the standard deviation comes from the same
    factors, and corrects for the finite population. `bernstein-serfling` holds for any factors
    within the range (Bardenet and Maillard 2015, empirical bound). The result depends on `matrix`,
    `count`, `delta`, `seed` and `rules`, not on `jobs`.

    Evaluations count as in the source, where every perturbation has a model of its own (a step of a
    Gibbs sampler). For one fixed matrix, phi takes S K evaluations for any number of perturbations:
    where `share` times M exceeds 1, summing it once is cheaper.

    Parameters
    ----------
    matrix : log-factors, K states by S factors.
    count : number M of perturbations.
    delta : bound on the probability that a race is wrong, in (0, 1).
    seed : root of the random streams.
    rules : the bound that leaves states out, and more.
    jobs : threads.
    memory : a matrix within so many bytes is copied, factor by factor; a larger one is read where
        it lies.
    progress : called with the number of perturbations just done.

    Raises
    ------
    InputError : one of the parameters is out of its range.
    NoConfiguration : `log_prior` rules every state out.
    """
    if count < 1:
        raise InputError(f"{count} perturbations", "there must be at least 1")
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta:g}", "it must be a probability between 0 and 1")
    if rules.bound not in BOUNDS:
        raise InputError(f"the bound is '{rules.bound}'", f"it must be one of {', '.join(BOUNDS)}")
    if rules.first_batch < 2:
        raise InputError(f"the first batch has {rules.first_batch} factors", "it must have at least 2")
    prior = _prior(rules.log_prior, matrix.states)
    widths = matrix.widths if rules.width is None else _widths(rules.width, matrix)
    ends = _ends(rules.first_batch, matrix.factors)
    pairs = max(1, int((prior > -np.inf).sum()) - 1)
    level = max(delta / (pairs * max(1, ends.size)), LEAST_LEVEL)
    spread, reach = _bounds(rules.bound, ends, matrix.factors, level)
    field = Field(_rows(matrix, memory), matrix.totals, prior, ends, spread, reach, widths)
    values, losses = np.empty(count), np.empty(count)
    states, evaluations, looks = (np.empty(count, np.int64) for _ in range(3))

    def run(stream: np.random.Generator, part: slice) -> int:
        from thesis_cli.perturbation.racing import racing_kernels

        outcome = Outcome(values[part], states[part], evaluations[part], looks[part], losses[part])
        racing_kernels.race(stream, field, rules.exact_value, outcome)
        return int(part.stop - part.start)

    generators = streams(count, seed)
    with Threads(jobs) as threads:
        for parts in rounds(count, max(1, WORK // matrix.values.size)):
            threads.run(run, generators[: len(parts)], parts, progress=progress)
    share = float(evaluations.mean()) / matrix.values.size
    return RacingMaxima(values, states, evaluations, looks, losses, share)


def _prior(log_prior: Floats | None, states: int) -> Floats:
    if log_prior is None:
        return np.zeros(states)
    prior = np.asarray(log_prior, dtype=np.float64)
    if prior.shape != (states,):
        raise InputError(f"the prior has shape {prior.shape}", f"it must hold one number for each of {states} states")
    if np.isnan(prior).any() or (prior == np.inf).any():
        raise InputError("the log-prior has a NaN or an infinity", "it must be -inf where a state is impossible")
    if not (prior > -np.inf).any():
        raise NoConfiguration()
    return prior


def _widths(width: float, matrix: FactorMatrix) -> Floats:
    widest = float(matrix.widths.max())
    if not widest <= width < math.inf:
        raise InputError(f"the width is {width:g}", f"the log-factors of one state range over {widest:g}")
    return np.full(matrix.states, float(width))


def _ends(first_batch: int, factors: int) -> Ints:
    """Numbers of factors seen at the looks: each twice the one before, all below the number of
    factors."""
    ends = []
    while first_batch < factors:
        ends.append(first_batch)
        first_batch *= 2
    return np.array(ends, dtype=np.int64)


def _bounds(bound: str, ends: Ints, factors: int, level: float) -> tuple[Floats, Floats]:
    """Coefficients of the standard deviation and of the range of a difference, in units of phi, at
    each look.

    Parameters
    ----------
    bound : one of `BOUNDS`.
    ends : number T of factors seen at each look.
    factors : number S of all factors.
    level : probability with which a bound on one difference may fail, on one side.
    """
    t, s = ends.astype(np.float64), float(factors)
    if bound == "normal":
        return np.asarray(-s * stdtrit(t - 1, level) * np.sqrt((1 - t / s) / t)), np.zeros(t.size)
    log = math.log(5 / level)
    left = np.where(t <= s / 2, 1 - (t - 1) / s, (1 - t / s) * (1 + 1 / t))
    biased = np.sqrt((t - 1) / t)  # the theorem's standard deviation divides by T
    return np.asarray(s * biased * np.sqrt(2 * left * log / t)), s * (7 / 3 + 3 / math.sqrt(2)) * log / t


def _rows(matrix: FactorMatrix, memory: int) -> Floats:
    """The transposed matrix, shape (S, K): a contiguous copy in float64 where that fits, else a
    view.

    An array that can be written, because the kernel would be compiled again for one that cannot.
    """
    if 8 * matrix.values.size <= memory:
        return np.require(matrix.values.T, np.float64, ["C", "W"])
    kind = matrix.values.dtype
    if not kind.isnative or kind not in (np.float64, np.float32):
        raise InputError(
            f"holds {kind}, and as float64 it takes {bytes_text(8 * matrix.values.size)}, more than "
            f"{bytes_text(memory)}",
            "save it as float64 or float32 of this machine's byte order, which is mapped, not copied",
            source=matrix.source,
        )
    return np.asarray(matrix.values).T
