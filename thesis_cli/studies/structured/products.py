"""Repeated estimates of ln Z: by telescoping products, and how often these are within a factor of
1 +- epsilon; by perturb-and-MAP, and by averages of uniform structures.

Vembu et al. section 2.2 prints two cooling schedules, which differ from each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured import schedules
from thesis_cli.structured.catalogue import noise_names, noise_on
from thesis_cli.structured.meta import Coupled, Direct, Draws, Sampler, Truncated
from thesis_cli.structured.perturb import Scale, full_rank_maxima, structured_bound, structured_maxima
from thesis_cli.structured.ranges import PotentialRange, log_size, map_range, norm_range
from thesis_cli.structured.schedules import Schedule, check_steps, corrected_schedule
from thesis_cli.structured.space import Space
from thesis_cli.structured.telescoping import TelescopingPlan, sampled_ratios, telescoping, uniform_average
from thesis_cli.studies.structured.exact_ratios import perturbations


def printed_schedule(p: int, radius: float) -> Schedule:
    """The schedule as its formula is printed: l = p ceil(R |theta|), beta_j = j / q for j < l, beta_l = 1.

    It passes 1 before it ends unless R |theta| is an integer, and turns back in a last step of up
    to (p - 1) / q. Raises InputError or ModelTooLarge as for `corrected_schedule`.
    """
    q = check_steps(p, radius)
    length = max(1, p * math.ceil(radius))
    return Schedule(np.append(np.arange(length) / (q or 1.0), 1.0), "as its formula is printed")


def listed_schedule(p: int, radius: float) -> Schedule:
    """The schedule as it is written out: 0, 1/q, 2/q, ..., p floor(R |theta|) / q, 1.

    Its last step is up to p / q, so that f_l may leave exp(+-1/p). Raises InputError or
    ModelTooLarge as for `corrected_schedule`.
    """
    q = check_steps(p, radius)
    inner = np.arange(p * math.floor(radius) + 1) / (q or 1.0)
    return Schedule(np.append(inner[inner < 1.0], 1.0), "as it is written out")


@dataclass(frozen=True)
class Contaminated:
    """Samples whose distribution has exactly a given total variation distance from the model's.

    With a probability that gives this distance a sample is the structure of least log-potential,
    whose factor f_i is the largest.

    Attributes
    ----------
    distance : the total variation distance.
    """

    distance: float

    def __call__(
        self, space: Space, weights: Floats, count: int, rng: np.random.Generator, limits: PotentialRange
    ) -> Draws:
        structures = space.draw(weights, count, rng)
        worst = space.maximise(-weights[None]).structures
        mass = float(np.exp(space.scores(worst, weights)[0] - space.log_partition(weights[None])[0]))
        structures[rng.random(count) < self.distance / (1 - mass)] = worst[0]
        return Draws(structures, 0, self.distance)


class Runs(NamedTuple):
    """Errors of repeated estimates.

    Attributes
    ----------
    errors : Z^ / Z - 1 of each, shape (runs,).
    samples, steps : mean numbers of samples and steps of a run.
    """

    errors: Floats
    samples: float
    steps: float

    def numbers(self, error: float) -> dict[str, tuple[float, float]]:
        """Share `covered` by a factor of 1 +- error, `root mean square` of the errors, `samples` and
        `steps`, each with its standard error where it has one.
        """
        runs, inside = len(self.errors), np.abs(self.errors) <= error
        smoothed = (inside.sum() + 2) / (runs + 4)  # none missed is no proof that none can be
        return {
            "covered": (float(inside.mean()), float(np.sqrt(smoothed * (1 - smoothed) / runs))),
            "root mean square": (float(np.sqrt((self.errors**2).mean())), 0.0),
            "samples": (self.samples, 0.0),
            "steps": (self.steps, 0.0),
        }


PUBLISHED = {"formula": printed_schedule, "written out": listed_schedule, "corrected": corrected_schedule}
"""The schedules of section 2.2, and the one that its text describes."""

PLANS: dict[str, tuple[str, Sampler]] = {
    "sharper": ("equal", Direct()),
    "sharper, META": ("equal", Coupled()),
    "sharper, truncated": ("equal", Truncated()),
    "adaptive": ("adaptive", Direct()),
    "adaptive, META": ("adaptive", Coupled()),
}
"""Estimates as this project makes them: schedule and sampler."""

TRUNCATED, CONTAMINATED = "Theorem A.1", "Theorem A.1, worst samples"


def published(
    space: Space, weights: Floats, method: str, p: int, error: float, rng: np.random.Generator
) -> tuple[float, int, int]:
    """One estimate with the samples of Theorems 2.5 and A.1: ln Z^, samples, steps of chains.

    Parameters
    ----------
    method : one of `PUBLISHED`, with exact samples; `TRUNCATED`, with META chains as long as Theorem B.2
        asks with 2BR; or `CONTAMINATED`, with samples that are as far off as Theorem A.1 allows.
    """
    limits = norm_range(space, weights)
    schedule: Schedule = PUBLISHED.get(method, corrected_schedule)(p, limits.high)
    distance = schedules.printed_distance(schedule.ratios, p, error)
    samplers: dict[str, Sampler] = {TRUNCATED: Truncated(distance), CONTAMINATED: Contaminated(distance)}
    counts = np.full(schedule.ratios, schedules.printed_samples(schedule.ratios, p, error))
    ratios = sampled_ratios(space, weights, schedule, counts, samplers.get(method, Direct()), rng, limits)
    value = log_size(space) - sum(ratio.log_mean for ratio in ratios)
    return value, int(counts.sum()), sum(ratio.steps for ratio in ratios)


def planned(
    space: Space, weights: Floats, method: str, p: int, error: float, rng: np.random.Generator
) -> tuple[float, int, int]:
    """One estimate by a method of `PLANS`: ln Z^, samples, steps of chains."""
    schedule, sampler = PLANS[method]
    plan = TelescopingPlan(error=error, schedule=schedule, p=p, pilot=200)
    found = telescoping(space, weights, plan, sampler, rng, map_range(space, weights))
    return found.estimate.value, found.samples, found.steps


def repeated(
    space: Space, weights: Floats, method: str, runs: int, error: float, rng: np.random.Generator, p: int = 3
) -> Runs:
    """Independent estimates of Z and how far they are from the exact Z."""
    exact = float(space.log_partition(weights[None])[0])
    estimate = planned if method in PLANS else published
    found = np.array([estimate(space, weights, method, p, error, rng) for _ in range(runs)], dtype=float)
    return Runs(np.expm1(found[:, 0] - exact), float(found[:, 1].mean()), float(found[:, 2].mean()))


def measured_work(
    space: Space, weights: Floats, runs: int, error: float, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Mean squared relative error times uniform structures of repeated estimates, with standard errors.

    Returns
    -------
    `equal work` and `adaptive work`: of telescoping products with META, whose pilot is not counted;
    `uniform work`: of averages over 1,000 uniform structures.
    """
    exact, size, found = float(space.log_partition(weights[None])[0]), 1000, {}
    for schedule in ("equal", "adaptive"):
        plan = TelescopingPlan(error=error, schedule=schedule)
        results = [telescoping(space, weights, plan, Coupled(), rng) for _ in range(runs)]
        steps = float(np.mean([result.steps - result.pilot_steps for result in results]))
        found[f"{schedule} work"] = _work([result.estimate.value - exact for result in results], steps)
    values = [uniform_average(space, weights, size, rng).value - exact for _ in range(runs)]
    return {**found, "uniform work": _work(values, size)}


def _work(log_errors: list[float], steps: float) -> tuple[float, float]:
    squares = np.expm1(log_errors) ** 2
    return steps * float(squares.mean()), steps * float(squares.std(ddof=1)) / len(squares) ** 0.5


UPPER, LOWER, EVERY = "upper, ", "lower, ", "noise on every structure"
UNIFORM, DRAWN, COUPLED, CUT = "uniform structures", "product, draws", "product, META", "product, chains of "
AVERAGES = 100, 1000, 10_000
"""Uniform structures of an average."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Repetitions:
    """Amount of measurement.

    Attributes
    ----------
    calls : MAP calls of each bound, and perturbations of all structures.
    epsilons : relative errors of Z that products guarantee; the first is that of truncated chains.
    lengths : steps of truncated chains.
    """

    calls: int
    runs: int
    epsilons: Sequence[float]
    lengths: Sequence[int]


def bound_rows(space: Space, weights: Floats, log_z: float, calls: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Both bounds by noise on each kind of variables, less ln Z."""
    scales: tuple[tuple[str, Scale], ...] = ((UPPER, "sum"), (LOWER, "average"))
    for name, child in zip(noise_names(space), seed.spawn(2), strict=False):
        noise = noise_on(space, weights, name)
        for (side, scale), root in zip(scales, child.spawn(2), strict=True):
            found = structured_bound(structured_maxima(noise, calls, root, scale=scale))
            error = found.standard_error
            yield {
                "method": side + name,
                "calls": calls,
                "runs": 1,
                "bias": found.value - log_z,
                "standard_error": error,
                "deviation": error * calls**0.5,
            }


def estimate_rows(
    space: Space, weights: Floats, log_z: float, repetitions: Repetitions, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """Errors of repeated estimates: of perturbations of all structures, averages and products."""
    every, uniform, products = seed.spawn(3)
    values, _ = full_rank_maxima(space, weights, repetitions.calls, every)
    for epsilon in repetitions.epsilons:
        count = perturbations(epsilon)
        if repetitions.calls >= 2 * count:
            means = values[: repetitions.calls // count * count].reshape(-1, count).mean(axis=1)
            yield _errors(EVERY, epsilon, count, means - log_z)
    rng = np.random.default_rng(uniform)
    for count in AVERAGES:
        averages = [uniform_average(space, weights, count, rng).value for _ in range(repetitions.runs)]
        yield _errors(UNIFORM, None, count, np.array(averages) - log_z)
    limits = map_range(space, weights)
    samplers: dict[str, Sampler] = {DRAWN: Direct(), COUPLED: Coupled()}
    samplers |= {f"{CUT}{steps}": Truncated(steps=steps) for steps in repetitions.lengths}
    for (method, sampler), child in zip(samplers.items(), products.spawn(len(samplers)), strict=True):
        rng = np.random.default_rng(child)
        for epsilon in repetitions.epsilons[:1] if method.startswith(CUT) else repetitions.epsilons:
            plan = TelescopingPlan(error=epsilon)
            found = [telescoping(space, weights, plan, sampler, rng, limits) for _ in range(repetitions.runs)]
            spent = float(np.mean([one.samples if method == DRAWN else one.steps for one in found]))
            yield _errors(method, epsilon, spent, np.array([one.estimate.value for one in found]) - log_z)


def _errors(method: str, epsilon: float | None, calls: float, errors: Floats) -> Row:
    """A row for errors of independent estimates, each of so many calls on average."""
    deviation = float(errors.std(ddof=1))
    return {
        "method": method,
        "epsilon": epsilon,
        "calls": calls,
        "runs": len(errors),
        "bias": float(errors.mean()),
        "standard_error": deviation / len(errors) ** 0.5,
        "deviation": deviation,
        "rms": float(np.sqrt((errors**2).mean())),
        "within": None if epsilon is None else float((np.abs(np.expm1(errors)) <= epsilon).mean()),
    }
