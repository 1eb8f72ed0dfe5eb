"""Cost of an exact sample of a continuous target by A* sampling and by rejection, plain or adaptive (OS*).

Proposals of rejection arrive at the rate of their envelope, exp(bound) q, and are accepted with
probability exp(o - bound), so that accepted points arrive at rate Z. The time of a sample is
Exponential(Z), and rejection estimates ln Z as perturbed maxima do. How many samples a trick needs
for a given MSE of ln Z (Thesis section 2.5.1) completes the cost of an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import digamma

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.models.proposals import Proposal
from thesis_cli.models.targets import Target, log_ratios
from thesis_cli.perturbation.a_star.a_star import NOTHING, TargetMaxima, a_star
from thesis_cli.perturbation.a_star.boxes import BUDGET, LEAST, MOST_BOXES, Boxes, too_loose
from thesis_cli.perturbation.tricks.tricks import exponential_log_z_error, gumbel, gumbel_log_z_error, power


def rejection(
    target: Target,
    count: int,
    seed: np.random.SeedSequence,
    *,
    adaptive: bool = True,
    budget: int = BUDGET,
    progress: Tick | None = None,
) -> TargetMaxima:
    """Exact samples of a target by rejection, with independent values from Gumbel(ln Z - c).

    Parameters
    ----------
    target : phi = ln q + o.
    count : number M of samples.
    adaptive : split a box at every rejection in it (OS*); otherwise the only bound is that of the
        whole proposal.
    budget : most evaluations of o in one sample.

    Raises
    ------
    WorkFailed, InputError, NoConfiguration : as for `a_star`.
    """
    if count < 1:
        raise InputError(f"{count} samples", "there must be at least 1")
    rng, envelope = np.random.default_rng(seed), _Envelope(target)
    values, ratios = np.empty(count), np.empty(count)
    locations, counts = np.empty((count, target.proposal.low.size)), np.zeros((count, 3), np.int64)
    for m in range(count):
        before = envelope.spent()
        values[m], locations[m], ratios[m] = envelope.draw(rng, adaptive, budget)
        counts[m] = envelope.spent() - before
        if progress:
            progress(1)
    return TargetMaxima(values, locations, ratios + target.proposal.log_density(locations), *counts.T.copy())


class _Envelope:
    """The envelope exp(bound) q over the leaves of a tree of boxes, with ln of its mass by box."""

    def __init__(self, target: Target) -> None:
        self._boxes = Boxes(target)
        self._masses = [self._boxes.bounds[0]]
        if self._masses[0] == math.inf:
            raise InputError("the bound of the whole proposal is inf", "rejection sampling needs a finite one")

    def spent(self) -> Ints:
        boxes = self._boxes
        return np.array((boxes.evaluations, boxes.bounded, boxes.splits))

    def draw(self, rng: np.random.Generator, adaptive: bool, budget: int) -> tuple[float, Floats, float]:
        """A value, its location, and o there."""
        boxes, log_time, best = self._boxes, -math.inf, -math.inf
        for _ in range(budget):
            if self._masses[0] == -math.inf:
                raise NoConfiguration(*NOTHING)
            log_time = float(np.logaddexp(log_time, math.log(max(rng.standard_exponential(), LEAST)) - self._masses[0]))
            at = 0
            while first := boxes.children[at]:
                at = first + (math.log1p(-rng.random()) > self._masses[first] - self._masses[at])
            x, ratio = boxes.evaluate(at, rng)
            if math.log1p(-rng.random()) <= ratio - boxes.bounds[at]:
                return -log_time - np.euler_gamma, x, ratio
            best = max(best, ratio)
            if adaptive and len(boxes.bounds) + 2 <= MOST_BOXES and boxes.split(at):
                self._refresh(at)
        raise too_loose(budget, boxes.bounds[at], best, boxes.box(at))

    def _refresh(self, at: int) -> None:
        """Update the masses of two new halves and of all boxes that contain them."""
        boxes = self._boxes
        first = boxes.children[at]
        self._masses += [boxes.bounds[child] - boxes.depths[child] * math.log(2) for child in (first, first + 1)]
        while True:
            first = boxes.children[at]
            self._masses[at] = float(np.logaddexp(self._masses[first], self._masses[first + 1]))
            if at == 0:
                return
            at = boxes.parents[at]


STREAMS = 32
"""Independent random streams whose spread gives standard errors."""

Sampler = Literal["a-star", "os-star", "rejection"]


class Capped:
    """A target whose bound is one constant, the maximum of o, as plain rejection needs it.

    Parameters
    ----------
    points : points that cover its support densely, shape (K, D).

    Attributes
    ----------
    most : the constant.
    """

    def __init__(self, target: Target, points: Floats) -> None:
        self._target = target
        self.most = float(log_ratios(target, points).max()) + 1e-9

    @property
    def proposal(self) -> Proposal:
        return self._target.proposal

    def log_ratio(self, x: Floats) -> float:
        return self._target.log_ratio(x)

    def bound(self, low: Floats, high: Floats) -> float:
        return self.most


class SampleCosts(NamedTuple):
    """Evaluations for each sample, shape (STREAMS, count).

    Attributes
    ----------
    evaluations : evaluations of o.
    bounds : evaluations of bounds on boxes.
    """

    evaluations: Ints
    bounds: Ints


def costs(target: Target, sampler: Sampler, count: int, seed: np.random.SeedSequence) -> SampleCosts:
    """Evaluations for each of `count` samples in each random stream.

    Parameters
    ----------
    target : the target; for `rejection`, a `Capped` one.
    sampler : `a-star`; `os-star`, adaptive rejection; or `rejection` with a constant bound.
    """
    if sampler == "a-star":
        found = [a_star(target, count * STREAMS, seed)]
    else:
        found = [rejection(target, count, s, adaptive=sampler == "os-star") for s in seed.spawn(STREAMS)]
    evaluations, bounds = (np.concatenate([getattr(f, name) for f in found]) for name in ("evaluations", "bounds"))
    return SampleCosts(evaluations.reshape(STREAMS, count), bounds.reshape(STREAMS, count))


def by_doubling(table: Ints) -> tuple[Ints, Floats, Floats]:
    """Mean cost of the samples 1, 2 to 3, 4 to 7, ... of a stream.

    Parameters
    ----------
    table : cost of each sample, shape (STREAMS, count); count is 2^k - 1.

    Returns
    -------
    First sample of each range, mean cost and standard error, each of shape (k,).
    """
    starts = 2 ** np.arange(int(math.log2(table.shape[1])) + 1) - 1
    means = np.stack([table[:, a:b].mean(axis=1) for a, b in zip(starts, 2 * starts + 1, strict=True)], axis=1)
    error = means.std(axis=0, ddof=1) / math.sqrt(STREAMS)
    return starts + 1, means.mean(axis=0), error


TRICKS = {"gumbel": gumbel(), "exponential": power(1.0)}
"""The tricks that are compared, by name."""

THEORY: dict[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "gumbel": gumbel_log_z_error,
    "exponential": exponential_log_z_error,
}
"""M -> bias and variance. `estimates` has no bias, so that its MSE is the variance."""

CHUNKS, REGROUPINGS = 20, 60
"""Independent parts of the values, and random groupings within each."""


def estimates(groups: Floats, trick: str) -> Floats:
    """Unbiased estimates of ln Z, shape (...), from perturbed maxima of shape (..., M)."""
    m = groups.shape[-1]
    bias = math.log(m) - float(digamma(m)) if trick == "exponential" else 0.0
    return TRICKS[trick].estimate_log_z(-np.euler_gamma - groups) - bias


def plain_mse(values: Floats, trick: str, samples: Ints) -> tuple[Floats, Floats]:
    """MSE over disjoint groups of M values, for each M, and its standard error.

    Parameters
    ----------
    values : perturbed maxima less ln Z, shape (count,).
    samples : each M, shape (S,).
    """
    squares = [estimates(values[: values.size // m * m].reshape(-1, m), trick) ** 2 for m in samples]
    return np.array([s.mean() for s in squares]), np.array([s.std() / math.sqrt(s.size) for s in squares])


def sharp_mse(values: Floats, trick: str, samples: Ints, rng: np.random.Generator) -> Floats:
    """MSE averaged over many groupings of the values, within each part of them.

    Parameters
    ----------
    values, trick, samples : as for `plain_mse`; the number of values is a multiple of `CHUNKS`.

    Returns
    -------
    Shape (CHUNKS, S).
    """
    parts = values.reshape(CHUNKS, -1)
    many = np.concatenate([rng.permuted(parts, axis=1)[:, np.newaxis] for _ in range(REGROUPINGS)], axis=1)
    size = parts.shape[1]
    columns = [(estimates(many[..., : size // m * m].reshape(CHUNKS, -1, m), trick) ** 2).mean(axis=1) for m in samples]
    return np.stack(columns, axis=1)


def needed(errors: Floats, desired: Floats) -> Floats:
    """M for each desired MSE, given the MSEs at M = 1, 2, ...; a power law from one M to the next."""
    falling = np.minimum.accumulate(errors)
    return np.asarray(np.exp(np.interp(-np.log(desired), -np.log(falling), np.log(np.arange(1, errors.size + 1)))))


def saved(by_gumbel: Floats, by_exponential: Floats, desired: Floats) -> Floats:
    """Share of the samples that the Exponential trick saves, for each desired MSE.

    Parameters
    ----------
    by_gumbel, by_exponential : MSEs at M = 1, 2, ..., shape (S,).
    desired : desired MSEs, nats^2.
    """
    return 1 - needed(by_exponential, desired) / needed(by_gumbel, desired)


def saved_with_error(by_gumbel: Floats, by_exponential: Floats, desired: Floats) -> tuple[Floats, Floats]:
    """`saved` by the mean MSE curves, and its jackknife standard error over the parts.

    Parameters
    ----------
    by_gumbel, by_exponential : MSEs of each part, shape (CHUNKS, S).
    desired : desired MSEs, nats^2.
    """
    value = saved(by_gumbel.mean(axis=0), by_exponential.mean(axis=0), desired)
    left_out = np.stack([saved(_without(by_gumbel, k), _without(by_exponential, k), desired) for k in range(CHUNKS)])
    return value, np.asarray(math.sqrt(CHUNKS - 1) * left_out.std(axis=0))


def _without(curves: Floats, k: int) -> Floats:
    """Mean of all curves except number k."""
    return np.asarray(np.delete(curves, k, axis=0).mean(axis=0))
