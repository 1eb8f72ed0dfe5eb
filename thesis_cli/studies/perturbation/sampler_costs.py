"""Cost of an exact sample of a continuous target by A* sampling and by rejection, plain or adaptive (OS*).

Proposals of rejection arrive at the rate of their envelope, exp(bound) q, and are accepted with
probability exp(o - bound), so that accepted points arrive at rate Z. The time of a sample is
Exponential(Z), and rejection estimates ln Z as perturbed maxima do.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.models.proposals import Proposal
from thesis_cli.models.targets import Target, log_ratios
from thesis_cli.perturbation.a_star.a_star import NOTHING, TargetMaxima, a_star
from thesis_cli.perturbation.a_star.boxes import BUDGET, LEAST, MOST_BOXES, Boxes, too_loose


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
