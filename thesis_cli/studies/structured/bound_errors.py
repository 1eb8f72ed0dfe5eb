"""Errors of ln Z: perturb-and-MAP, averages of uniform structures and telescoping products, repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured.catalogue import noise_names, noise_on
from thesis_cli.structured.meta import Coupled, Direct, Sampler, Truncated
from thesis_cli.structured.perturb import Scale, full_rank_maxima, structured_bound, structured_maxima
from thesis_cli.structured.ranges import map_range
from thesis_cli.structured.space import Space
from thesis_cli.structured.telescoping import TelescopingPlan, telescoping, uniform_average
from thesis_cli.studies.structured.exact_ratios import perturbations

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
