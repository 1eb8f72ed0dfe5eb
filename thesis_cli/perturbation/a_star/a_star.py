"""A* sampling: exact samples and perturbed maxima of a continuous target (Thesis 2.5.1; Lost
Relatives 5.1).

A Gumbel process on the proposal q is a Poisson process of clocks whose values are -ln of the
ringing times. Within a box B the clocks ring at rate q(B), each at a location drawn from q. A
Gumbel truncated at another Gumbel is a clock that has already waited: it needs the logarithm of a
sum of times, and nothing that overflows or cancels.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.models.targets import Target, compiled
from thesis_cli.perturbation.a_star.boxes import BUDGET, LEAST, MOST_BOXES, Boxes, check, too_loose
from thesis_cli.perturbation.tricks.full_rank import rounds, streams

STEP = 16
"""Samples in one call of the compiled kernel, after which Ctrl-C takes effect."""

NOTHING = "the target is 0 everywhere (Z = 0)", "the log-ratio must be finite somewhere"


class Point(NamedTuple):
    """A point of a perturbed process.

    Attributes
    ----------
    value : phi(x) + gamma(x), gamma ~ Gumbel(-c).
    location : x, shape (D,).
    ratio : o(x), without noise.
    evaluations, bounds, splits : evaluations of o, evaluations of bounds, and splits of boxes since
        the point before.
    """

    value: float
    location: Floats
    ratio: float
    evaluations: int
    bounds: int
    splits: int


@dataclass(frozen=True)
class TargetMaxima:
    """The maxima of independent Gumbel processes.

    Attributes
    ----------
    values : max_x {phi(x) + gamma(x)}, shape (M,), each distributed as Gumbel(ln Z - c), whose mean
        is ln Z.
    locations : where the maxima are attained: exact samples of exp(phi) / Z, independent of
        `values`, shape (M, D).
    potentials : phi at the locations, without noise, shape (M,).
    evaluations, bounds, splits : evaluations of o, evaluations of bounds, and splits of boxes for
        each sample, shape (M,). Samples share their boxes, so that later samples find most boxes
        split.
    """

    values: Floats
    locations: Floats
    potentials: Floats
    evaluations: Ints
    bounds: Ints
    splits: Ints


def successive(
    target: Target, rng: np.random.Generator, *, boxes: Boxes | None = None, budget: int = BUDGET
) -> Iterator[Point]:
    """The points of one perturbed Gumbel process in decreasing order of their values, without end.

    The queue holds, for each box, the time T at which its clock rings next; no point in the box can
    be above bound - ln T. The location is drawn when the box comes to the top, if the box has no
    halves. If it has, one of them, either with probability 1/2, inherits the ringing, and the other
    waits longer. Locations are independent of values: the first is an exact sample of the target.

    Parameters
    ----------
    target : phi = ln q + o.
    rng : source of the clocks and locations.
    boxes : boxes of earlier processes to start from; their bounds cost nothing again.
    budget : largest number of evaluations of o from one point to the next.

    Raises
    ------
    WorkFailed : the budget is spent, or a bound is violated.
    InputError : o or a bound is nan or inf.
    NoConfiguration : o is -inf everywhere.
    """
    tree = Boxes(target) if boxes is None else boxes
    before = (0, 0, 0) if boxes is None else (tree.evaluations, tree.bounded, tree.splits)
    time = _later(rng, -math.inf, 0)
    queue = [(time - tree.bounds[0], 0, time)] if tree.bounds[0] > -math.inf else []
    found: list[tuple[float, int, Floats, float]] = []
    while queue or found:
        if found and not (queue and queue[0][0] < found[0][0]):
            value, _, x, ratio = heapq.heappop(found)
            now = (tree.evaluations, tree.bounded, tree.splits)
            yield Point(-value - np.euler_gamma, x, ratio, *(a - b for a, b in zip(now, before, strict=True)))
            before = now
            continue
        _, at, time = heapq.heappop(queue)
        first = tree.children[at]
        if first:
            inherits = first + (rng.random() >= 0.5)
            halves = (first, first + 1)
            times = [time if half == inherits else _later(rng, time, tree.depths[half]) for half in halves]
        else:
            if tree.evaluations - before[0] >= budget:
                best = found[0][3] if found else -math.inf
                raise too_loose(budget, tree.bounds[at], best, tree.box(at))
            x, ratio = tree.evaluate(at, rng)
            if ratio > -math.inf:
                heapq.heappush(found, (time - ratio, tree.evaluations, x, ratio))
            if tree.ripe(at) and tree.split(at):
                first = tree.children[at]
            heirs = (first, first + 1) if first else (at,)
            times = [_later(rng, time, tree.depths[child]) for child in heirs]
        for child, rings in enumerate(times, first or at):
            if tree.bounds[child] > -math.inf:
                heapq.heappush(queue, (rings - tree.bounds[child], child, rings))
    raise NoConfiguration(*NOTHING)


def _later(rng: np.random.Generator, log_time: float, depth: int) -> float:
    """ln of the time at which the clock of a box rings next: its rate is 2^-depth."""
    return float(np.logaddexp(log_time, math.log(max(rng.standard_exponential(), LEAST)) + depth * math.log(2)))


def a_star(
    target: Target,
    count: int,
    seed: np.random.SeedSequence,
    *,
    jobs: int = 1,
    budget: int = BUDGET,
    progress: Tick | None = None,
) -> TargetMaxima:
    """Exact samples of a target with their perturbed values, from independent Gumbel processes.

    Boxes are split where evaluations were wasted, and serve all samples of a random stream. They
    affect the cost of a sample, not its distribution. The result depends on `target`, `count` and
    `seed` alone.

    Parameters
    ----------
    target : phi = ln q + o; those of `models.targets` run compiled.
    count : number M of samples.
    seed : root of the random streams, of which there are at most 32.
    jobs : threads, which only compiled targets gain from.
    budget : largest number of evaluations of o in one sample.
    progress : called with the number of samples just drawn.

    Raises
    ------
    WorkFailed, InputError, NoConfiguration : as for `successive`; InputError also if `count` is
        below 1.
    """
    if count < 1:
        raise InputError(f"{count} samples", "there must be at least 1")
    dimension = target.proposal.low.size
    values, ratios, locations = np.empty(count), np.empty(count), np.empty((count, dimension))
    counts = np.zeros((count, 3), np.int64)
    search = _compiled_search if compiled(target) is not None else _plain_search
    searches = [search(target, rng, budget) for rng in streams(count, seed)]

    def draw(search: _Search, part: slice) -> int:
        search(values[part], locations[part], ratios[part], counts[part])
        return int(part.stop - part.start)

    with Threads(jobs) as threads:
        for parts in rounds(count, STEP):
            threads.run(draw, searches[: len(parts)], parts, progress=progress)
    return TargetMaxima(values, locations, ratios + target.proposal.log_density(locations), *counts.T.copy())


_Search = Callable[[Floats, Floats, Floats, Ints], None]
"""Fills values, locations, log-ratios and counters of consecutive samples."""


def _plain_search(target: Target, rng: np.random.Generator, budget: int) -> _Search:
    boxes = Boxes(target)

    def draw(values: Floats, locations: Floats, ratios: Floats, counts: Ints) -> None:
        for g in range(values.size):
            values[g], locations[g], ratios[g], *counts[g] = next(successive(target, rng, boxes=boxes, budget=budget))

    return draw


def _compiled_search(target: Target, rng: np.random.Generator, budget: int) -> _Search:
    from thesis_cli.models import target_kernels
    from thesis_cli.perturbation.a_star import a_star_kernels as kernels

    arrays = compiled(target)
    assert arrays is not None
    box = np.asarray(target.proposal.low, float), np.asarray(target.proposal.high, float)
    shape = (MOST_BOXES, box[0].size)
    low, high, bounds, waste = np.zeros(shape), np.zeros(shape), np.zeros(MOST_BOXES), np.zeros(MOST_BOXES)
    (children, parents), halvings = np.zeros((2, MOST_BOXES), np.int64), np.zeros(shape, np.int64)
    low[0], high[0], bounds[0] = *box, target_kernels.bound(arrays, *box)
    tree = low, high, bounds, waste, children, parents, halvings, np.ones(1, np.int64)

    def draw(values: Floats, locations: Floats, ratios: Floats, counts: Ints) -> None:
        x = np.empty(shape[1])
        end, at, ratio = kernels.search(
            rng, arrays, tree, budget, kernels.Samples(values, locations, ratios, counts), x
        )
        if end == kernels.EMPTY:
            raise NoConfiguration(*NOTHING)
        if end == kernels.SPENT:
            raise too_loose(budget, bounds[at], ratio, (low[at], high[at]))
        if end == kernels.REFUSED:
            check(x, ratio, bounds[at], (low[at], high[at]))
        values -= np.euler_gamma

    return draw
