"""ln Z as a telescoping product of ratios of partition functions (Vembu et al. section 2.2, appendix A)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.perturbation.estimate import Estimate, check_confidence, normal_quantile
from thesis_cli.structured import schedules
from thesis_cli.structured.meta import Coupled, Draws, Sampler, Truncated
from thesis_cli.structured.ranges import PotentialRange, log_size, map_range, norm_range, one_vector
from thesis_cli.structured.schedules import Schedule
from thesis_cli.structured.space import Space

SOURCE = "Vembu et al. section 2.2"
MOST_SAMPLES = 10**8
"""Samples of all ratios together; exact draws of so many take minutes."""

EFFECTIVE = 10
"""Fewest structures that must bear a mean for its error to be known."""
AT_ONCE = 2**16
"""Samples that are drawn at a time."""

BIAS = 0.1
"""Share of ln(1 + epsilon) that is left to the bias of truncated chains."""


@dataclass(frozen=True)
class Ratio:
    """One estimated ratio Z(beta_{i-1} theta) / Z(beta_i theta).

    Attributes
    ----------
    low, high : beta_{i-1} and beta_i.
    samples : number of samples S_i, drawn at beta_i.
    log_mean : ln of the mean of f_i.
    variance : relative variance of f_i in the sample, Var f_i / (E f_i)^2.
    steps : uniform structures that were proposed for the samples.
    distance : bound on the total variation distance of a sample; 0 for exact ones.
    """

    low: float
    high: float
    samples: int
    log_mean: float
    variance: float
    steps: int
    distance: float


@dataclass(frozen=True)
class Telescoped:
    """An estimate of ln Z and the ratios that it is made of.

    Attributes
    ----------
    estimate : ln Z with its standard error, interval and guarantee.
    ratios : ratios in the order of the schedule.
    pilot_samples, pilot_steps : samples and steps of the pilot of an adaptive schedule.
    """

    estimate: Estimate
    ratios: tuple[Ratio, ...]
    pilot_samples: int = 0
    pilot_steps: int = 0

    @property
    def samples(self) -> int:
        """Samples of all ratios and of the pilot."""
        return self.pilot_samples + sum(ratio.samples for ratio in self.ratios)

    @property
    def steps(self) -> int:
        """Uniform structures that were proposed for them; 0 if the space draws its samples itself."""
        return self.pilot_steps + sum(ratio.steps for ratio in self.ratios)


@dataclass(frozen=True)
class TelescopingPlan:
    """Accuracy of an estimate by a telescoping product, and its schedule.

    Attributes
    ----------
    error : epsilon: Z shall be found within a factor of 1 +- epsilon.
    confidence : the probability of that.
    schedule : `equal` (steps of the corrected schedule, with half of the span of the log-potentials in
        the place of R |theta|, and with the samples that the sharper variance bound asks for),
        `adaptive` (steps and samples from pilot samples), or `theorem` (equal steps by R |theta|, with
        the samples of Theorems 2.5 and A.1).
    p : steps to a nat of the radius; not for adaptive schedules.
    pilot : samples of each step of the pilot of an adaptive schedule.
    """

    error: float = 0.1
    confidence: float = 0.75
    schedule: str = "equal"
    p: float = 3
    pilot: int = 1000


SCHEDULES = "equal", "adaptive", "theorem"


def telescoping(
    space: Space,
    weights: Floats,
    plan: TelescopingPlan,
    sampler: Sampler,
    rng: np.random.Generator,
    limits: PotentialRange | None = None,
) -> Telescoped:
    """ln Z within ln(1 +- epsilon), by a telescoping product (Vembu et al. Theorems 2.5 and A.1).
    Raises InputError if a setting or the weights are out of range, and ModelTooLarge if the sampler
    or the schedule takes too long.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    plan : error, confidence and schedule.
    sampler : `Direct()`, `Coupled()` or `Truncated()`. Truncated chains get as many steps as the
        plan's error needs, unless their number of steps is given.
    limits : range of the log-potentials, computed by two MAP problems if it is None.

    Returns
    -------
    The estimate. Its interval is the guarantee where there is one, and that of the normal
    approximation elsewhere (adaptive schedules; chains of a given number of steps).
    """
    theta = one_vector(space, weights)
    if plan.schedule not in SCHEDULES:
        raise InputError(f"there is no schedule {plan.schedule}", f"there are {', '.join(SCHEDULES)}")
    limits = limits or (norm_range(space, theta) if plan.schedule == "theorem" else map_range(space, theta))
    fixed = isinstance(sampler, Truncated) and sampler.steps is not None
    if plan.schedule == "adaptive":
        return _adaptive(space, theta, plan, sampler, rng, limits)
    schedule, counts, distance = _planned(plan, limits, isinstance(sampler, Truncated) and not fixed)
    if isinstance(sampler, Truncated) and not fixed:
        sampler = sampler.within(distance)
    if isinstance(sampler, Truncated):
        lengths = [sampler.length(beta * limits.span) for beta in schedule.betas[1:]]
        sampler.check_total(float(np.dot(lengths, counts)), limits.span)
    ratios = sampled_ratios(space, theta, schedule, counts, sampler, rng, limits)
    kind = f"Z within a factor of 1 +- {plan.error:g} with probability {plan.confidence:g} or more"
    return Telescoped(_estimate(space, ratios, plan, "no guarantee: chains of given length" if fixed else kind), ratios)


def _planned(plan: TelescopingPlan, limits: PotentialRange, truncated: bool) -> tuple[Schedule, Ints, float]:
    """Schedule, samples of each ratio, and the distance that truncated chains must keep."""
    check_confidence(plan.confidence)
    if plan.schedule == "theorem":
        if plan.confidence > 0.75:
            raise InputError("Theorem 2.5 has the confidence 3/4", "take another schedule for more")
        radius = max(abs(limits.low), abs(limits.high))
        schedule = schedules.corrected_schedule(plan.p, radius)
        samples = schedules.printed_samples(schedule.ratios, plan.p, plan.error)
        distance = schedules.printed_distance(schedule.ratios, plan.p, plan.error)
        return schedule, np.full(schedule.ratios, samples), distance
    schedule = schedules.corrected_schedule(plan.p, limits.span / 2)
    bias = BIAS if truncated else 0.0
    target = schedules.relative_variance(plan.error, plan.confidence, bias)
    counts = schedules.needed_samples(schedule.variance_bounds(limits.span), target)
    # E f_i of approximate samples is off by at most (b - a) distance, relative to a
    widths = float(np.expm1(schedule.steps * limits.span).sum())
    return schedule, counts, min(0.5, -math.expm1(-bias * math.log1p(plan.error)) / widths) if widths else 0.5


def sampled_ratios(
    space: Space,
    weights: Floats,
    schedule: Schedule,
    counts: Ints,
    sampler: Sampler,
    rng: np.random.Generator,
    limits: PotentialRange,
) -> tuple[Ratio, ...]:
    """Estimates of all ratios of a schedule, each from samples of its own. Raises ModelTooLarge if
    there are more than 1e8 samples, or the sampler gives up.

    Parameters
    ----------
    counts : samples of each ratio, shape (ratios,).
    limits : range of the log-potentials under the weights themselves.
    """
    total = float(counts.sum(dtype=np.float64))
    if total > MOST_SAMPLES:
        problem = f"a product of {len(counts):,} ratios takes {total:.3g} samples"
        raise ModelTooLarge(problem, f"at most {MOST_SAMPLES:,} are drawn; allow a larger error or take another method")
    found: list[Ratio] = []
    for low, high, count in zip(schedule.betas[:-1], schedule.betas[1:], counts, strict=True):
        moments, steps, distance = _Moments(), 0, 0.0
        spent = sum(ratio.steps for ratio in found)
        for draws in _batches(space, high * weights, int(count), _after(sampler, spent), rng, limits.at(high)):
            moments.add((low - high) * space.scores(draws.structures, weights))
            steps, distance = steps + draws.steps, max(distance, draws.distance)
        ratio = Ratio(float(low), float(high), int(count), moments.log_mean, moments.variance, steps, distance)
        found.append(ratio)
    return tuple(found)


class _Moments:
    """Mean and relative variance of numbers that come in batches of logarithms."""

    def __init__(self) -> None:
        self._count, self._log_sum, self._log_squares = 0, -math.inf, -math.inf

    def add(self, logs: Floats) -> None:
        self._count += len(logs)
        self._log_sum = float(np.logaddexp(self._log_sum, logsumexp(logs)))
        self._log_squares = float(np.logaddexp(self._log_squares, logsumexp(2 * logs)))

    @property
    def log_mean(self) -> float:
        return self._log_sum - math.log(self._count)

    @property
    def variance(self) -> float:
        """Mean of squares over the square of the mean, less 1; 0 where rounding makes it negative."""
        return max(0.0, math.expm1(self._log_squares - math.log(self._count) - 2 * self.log_mean))


def _batches(
    space: Space, weights: Floats, count: int, sampler: Sampler, rng: np.random.Generator, limits: PotentialRange
) -> Iterator[Draws]:
    spent = 0
    for start in range(0, count, AT_ONCE):
        draws = _after(sampler, spent)(space, weights, min(AT_ONCE, count - start), rng, limits)
        spent += draws.steps
        yield draws


def _after(sampler: Sampler, steps: int) -> Sampler:
    """The sampler with what is left of the steps that it may take."""
    return sampler.after(steps) if isinstance(sampler, Coupled) else sampler


def _adaptive(
    space: Space,
    theta: Floats,
    plan: TelescopingPlan,
    sampler: Sampler,
    rng: np.random.Generator,
    limits: PotentialRange,
) -> Telescoped:
    """Schedule and numbers of samples from pilot samples, which the estimate itself does not use."""
    if plan.pilot < 2:
        raise InputError(f"the pilot has {plan.pilot} samples", "it needs 2 or more")
    target = schedules.relative_variance(plan.error, plan.confidence)
    taken: list[tuple[int, int]] = []

    def pilot(beta: float) -> Floats:
        left = _after(sampler, sum(steps for _, steps in taken))
        draws = left(space, beta * theta, plan.pilot, rng, limits.at(beta))
        taken.append((plan.pilot, draws.steps))
        return space.scores(draws.structures, theta)

    schedule, variances = schedules.adaptive_schedule(pilot)
    costs = np.array([max(1, steps) / samples for samples, steps in taken[::-1]])
    counts = np.maximum(2, schedules.needed_samples(np.maximum(variances, 1e-12), target, costs))
    spent = np.sum(taken, axis=0)
    ratios = sampled_ratios(space, theta, schedule, counts, _after(sampler, int(spent[1])), rng, limits)
    exact = all(ratio.distance == 0 for ratio in ratios)
    kind = "consistent" if exact else "no guarantee: approximate samples, adaptive steps"
    return Telescoped(_estimate(space, ratios, plan, kind), ratios, int(spent[0]), int(spent[1]))


def _estimate(space: Space, ratios: tuple[Ratio, ...], plan: TelescopingPlan, kind: str) -> Estimate:
    value = log_size(space) - sum(ratio.log_mean for ratio in ratios)
    error = math.sqrt(sum(ratio.variance / ratio.samples for ratio in ratios))
    if kind.startswith("Z within"):
        low, high = value - math.log1p(plan.error), value - math.log1p(-plan.error)
    else:
        width = normal_quantile((1 + plan.confidence) / 2) * error
        low, high = value - width, value + width
    return Estimate(value, error, low, high, "ln Z", kind, plan.confidence, 0, "telescoping", SOURCE)


def uniform_average(
    space: Space, weights: Floats, samples: int, rng: np.random.Generator, confidence: float = 0.95
) -> Estimate:
    """ln Z by the mean of exp(<phi(y), theta>) over uniform structures, times their number.

    Section 2.2 of the source dismisses it for a bound that depends on |Y|. By Chebyshev it needs
    (|Y| Z(2 theta) / Z(theta)^2 - 1) / (eta^2 delta) structures, which is at most sinh(span / 2)^2
    / (eta^2 delta), whatever |Y| is; a single sample of META by coupling from the past takes at
    least |Y| Z(2 theta) / Z(theta)^2 of them on average. Raises InputError if a setting or the
    weights are out of range.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    samples : number of uniform structures, at least 2.
    confidence : confidence level of the interval, by the normal approximation to the mean. It is
        too short where few structures hold most of Z: samples that miss them show no sign of it.
        Where fewer than `EFFECTIVE` structures bear the mean, it has Markov's lower end alone.
    """
    theta = one_vector(space, weights)
    check_confidence(confidence)
    if samples < 2:
        raise InputError(f"there are {samples} samples", "an average needs 2 or more")
    moments = _Moments()
    for start in range(0, samples, AT_ONCE):
        moments.add(space.scores(space.sample(min(AT_ONCE, samples - start), rng), theta))
    value = log_size(space) + moments.log_mean
    error = math.sqrt(moments.variance / (samples - 1))
    width = normal_quantile((1 + confidence) / 2) * error
    high = value + math.log1p(width)
    low = value + math.log1p(-width) if width < 1 else -math.inf
    kind = "consistent; unbiased for Z"
    effective = samples / (1 + moments.variance)
    if effective < min(EFFECTIVE, samples / 2):
        error, low, high = math.inf, value + math.log1p(-confidence), math.inf
        kind = f"Z unbiased, but only {effective:.0f} effective structures"
    return Estimate(value, error, low, high, "ln Z", kind, confidence, 0, "uniform average", SOURCE)
