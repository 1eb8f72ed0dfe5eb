"""Learning from sampled gradients, a few observations at a time (Vembu et al. sections 2.3 and 5).

Where expected features have no exact algorithm, the mean features of a few samples from
p(y | x_i, Theta) stand for them: an unbiased gradient, whatever the number of samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.progress import Tick
from thesis_cli.structured.learn import Fit, Problem
from thesis_cli.structured.meta import Direct, Sampler
from thesis_cli.structured.ranges import PotentialRange, map_range, norm_range
from thesis_cli.structured.space import Space

UNIFORM = 1000
"""Uniform structures that estimate how much the features vary."""

DIRECT = Direct()


@dataclass(frozen=True, eq=False)
class OnlineState:
    """Progress of a training after some passes.

    Attributes
    ----------
    done : passes.
    parameters : parameters after the last step, shape (p, dimension).
    mean : mean of the parameters after all steps, later ones weighing more.
    proposals : uniform structures that the sampler has proposed; 0 if it proposes none.
    """

    done: int
    parameters: Floats
    mean: Floats
    proposals: int = 0


@dataclass(frozen=True)
class TrainingPace:
    """Amount of work that a training does.

    Attributes
    ----------
    passes : passes over the observations.
    batch : observations in a step.
    samples : structures drawn for each observation in a step.
    """

    passes: int = 20
    batch: int = 10
    samples: int = 1


def sampled_gradient(
    problem: Problem,
    parameters: Floats,
    rows: Ints,
    samples: int,
    sampler: Sampler,
    rng: np.random.Generator,
) -> tuple[Floats, int]:
    """Gradient of F from samples for some observations, and the uniform structures proposed for it.

    It is unbiased, whatever the number of samples, if the samples are exact and the observations
    uniform.

    Parameters
    ----------
    rows : indices of the observations.
    samples : structures drawn for each.
    """
    inputs = problem.inputs[rows]
    found = sampled_gradients(problem.space, inputs @ parameters, samples, sampler, rng)
    differences = found.mean - problem.space.features(problem.structures[rows])
    gradient = inputs.T @ differences / len(rows) + 2 * problem.regularisation * parameters
    return np.asarray(gradient), found.steps


def smoothness(problem: Problem, rng: np.random.Generator) -> float:
    """Largest curvature of F at 0, with the features' covariance of 1,000 uniform structures."""
    features = problem.space.features(problem.space.sample(UNIFORM, rng))
    spread = np.linalg.norm(features - features.mean(axis=0), 2) ** 2 / UNIFORM
    reach = np.linalg.norm(problem.inputs, 2) ** 2 / len(problem.inputs)
    return float(2 * problem.regularisation + reach * spread)


def fit_online(
    problem: Problem,
    pace: TrainingPace,
    seed: int,
    sampler: Sampler = DIRECT,
    start: OnlineState | None = None,
    progress: Tick | None = None,
    seen: Callable[[OnlineState], None] | None = None,
) -> Fit:
    """Minimise F by stochastic gradients and take the mean of the parameters, later ones weighing more.

    Step t has size 1 / (lambda t + L) with the curvature L at 0. Steps end within the ball that
    holds the best parameters (`Problem.norm_bounds`), and step t weighs t in the mean, which makes
    the error fall as 1/t (Lacoste-Julien, Schmidt and Bach, 2012). Raises ModelTooLarge if the
    sampler does not take the space, or takes too long.

    Parameters
    ----------
    seed : seed of all random numbers; pass k has the generator of (seed, k), whatever came before
        it.
    sampler : draws from p(y | x).
    start : state of a training of the same problem, pace and seed; the beginning by default.
    progress : called with the number of passes just done.
    seen : called after each pass.
    """
    count, furthest = len(problem.inputs), min(problem.norm_bounds())
    state = start or OnlineState(0, np.zeros(problem.shape), np.zeros(problem.shape))
    steps = math.ceil(count / pace.batch)
    curvature = smoothness(problem, np.random.default_rng([seed, 0]))
    rows: list[dict[str, float]] = []
    if progress and state.done:
        progress(state.done)
    for done in range(state.done + 1, pace.passes + 1):
        rng, step = np.random.default_rng([seed, done]), (done - 1) * steps
        parameters, mean, proposals = state.parameters, state.mean, state.proposals
        for part in np.array_split(rng.permutation(count), steps):
            step += 1
            gradient, proposed = sampled_gradient(problem, parameters, part, pace.samples, sampler, rng)
            proposals += proposed
            parameters = parameters - gradient / (problem.regularisation * step + curvature)
            norm = float(np.linalg.norm(parameters))
            parameters *= min(1.0, furthest / norm) if norm else 1.0
            mean = mean + (parameters - mean) * 2 / (step + 1)
        state = OnlineState(done, parameters, mean, proposals)
        facts = {"pass": done, "samples": done * count * pace.samples, "proposals": proposals}
        rows.append({**facts, "norm": float(np.linalg.norm(mean))})
        if seen:
            seen(state)
        if progress:
            progress(1)
    names = ("pass", "samples", "proposals", "norm")
    trace = Columns({name: [row[name] for row in rows] for name in names})
    try:
        return Fit(state.mean, problem.objective(state.mean), problem.excess(problem.gradient(state.mean)), trace)
    except ModelTooLarge:
        return Fit(state.mean, math.nan, math.nan, trace)


@dataclass(frozen=True)
class SampledGradient:
    """Mean feature vectors of samples.

    Attributes
    ----------
    mean : estimates of the gradients of ln Z, shape (n, dimension).
    standard_errors : standard error of each number of `mean`, same shape.
    samples : samples of each weight vector.
    steps : uniform structures that were proposed in all.
    distance : bound on the total variation distance of a sample; 0 for exact ones.
    """

    mean: Floats
    standard_errors: Floats
    samples: int
    steps: int
    distance: float


def sampled_gradients(
    space: Space,
    weights: Floats,
    samples: int,
    sampler: Sampler,
    rng: np.random.Generator,
    limits: PotentialRange | None = None,
) -> SampledGradient:
    """Mean features of samples under each of some weight vectors: unbiased if the samples are
    exact. Raises InputError if there is no sample, or the weights have another shape or are not
    finite; ModelTooLarge if the sampler takes too long.

    Parameters
    ----------
    weights : shape (n, dimension).
    samples : samples of each weight vector, at least 1.
    sampler : `Direct()`, `Coupled()` or `Truncated()`.
    limits : range of the log-potentials that holds for all weight vectors; None for that of two MAP
        problems each, which `Direct()` does not need and does not solve.
    """
    if samples < 1:
        raise InputError(f"there are {samples} samples", "a gradient needs 1 or more")
    vectors = space.checked(weights)
    mean, errors = np.empty_like(vectors), np.empty_like(vectors)
    steps, distance = 0, 0.0
    for at, vector in enumerate(vectors):
        draws = sampler(space, vector, samples, rng, limits or _limits(space, vector, sampler))
        features = space.features(draws.structures)
        mean[at] = features.mean(axis=0)
        errors[at] = features.std(axis=0, ddof=1) / math.sqrt(samples) if samples > 1 else math.inf
        steps, distance = steps + draws.steps, max(distance, draws.distance)
    return SampledGradient(mean, errors, samples, steps, distance)


def _limits(space: Space, weights: Floats, sampler: Sampler) -> PotentialRange:
    return norm_range(space, weights) if isinstance(sampler, Direct) else map_range(space, weights)


def hoeffding_probability(width: float, error: float, samples: int) -> float:
    """Bound on the probability that <d, z> misses <gradient, z> by `error` or more (Vembu et al. 2.3).

    2 exp(-2 S error^2 / width^2); the source has 2 R G for the width, which is the largest that
    |phi| <= R and |z| <= G allow.

    Parameters
    ----------
    width : largest difference of <phi(y), z> between two structures.
    error : deviation, positive.
    samples : S, number of exact samples.
    """
    _check_positive(width=width, error=error)
    return min(1.0, 2 * math.exp(-2 * samples * (error / width) ** 2))


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise InputError(f"the {name} is {number:g}", "it must be positive and finite")
