"""Rejection sampling of a continuous target, plain and adaptive (OS*), beside A* sampling.

Proposals arrive at the rate of their envelope, exp(bound) q, and are accepted with probability
exp(o - bound), so that accepted points arrive at rate Z. The time of a sample is Exponential(Z),
and rejection estimates ln Z as perturbed maxima do.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.models.targets import Target
from thesis_cli.perturbation.a_star.a_star import NOTHING, TargetMaxima
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
    seed : root of the random stream.
    adaptive : split a box at every rejection in it (OS*); otherwise the only bound is that of the
        whole proposal.
    budget : most evaluations of o in one sample.
    progress : called with the number of samples just drawn.

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
