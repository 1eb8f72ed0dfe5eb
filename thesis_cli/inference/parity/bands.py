"""Maxima under constraints on neighbouring bits, which a pass over a narrow model solves exactly.

Constraint r sets a pivot bit of its own to a random parity of the free bits around it. Rows with
pivots have full rank, and the right sides are uniform, so that a configuration satisfies all i
constraints with probability 2^-i. Two configurations that differ in few bits do so together more
often than 4^-i: lower bounds on ln Z hold, upper bounds do not.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.inference.parity.constraints import HashLimits, ParityMaxima
from thesis_cli.inference.parity.frontier import Constraints, Frontier
from thesis_cli.models.factor_graph import FactorGraph

ENTRY_SECONDS = 6e-9
"""Seconds that a step takes for each entry of the largest table, as measured on grids."""
LARGEST = 18
"""log2 of the most entries of a table: 2 MiB, which stay in a cache."""
TRIED = 20
"""Most numbers of constraints that the pilot tries, and that are kept after it."""
NEAR = 5.0
"""A number of constraints is kept if the pilot's share of Z is within so many nats of the best."""
_NOTHING = Constraints(np.zeros((0, 0), bool), np.zeros(0, bool))


def banded_maxima(
    graph: FactorGraph, count: int, rng: np.random.Generator, limits: HashLimits, progress: Tick | None = None
) -> ParityMaxima:
    """Exact maxima under random constraints on neighbouring bits.

    A pilot with its own hashes finds the numbers of constraints that matter. The width of the bands
    comes from the predicted time, so that the result depends on the limits and not on the machine.

    Parameters
    ----------
    graph : a model that is narrow in some order of its variables.
    count : number T of hashes for each number of constraints.
    rng : source of the hashes.
    limits : `seconds` is what the work may be predicted to take.
    progress : called with the number of MAP problems just solved.

    Raises
    ------
    ModelTooLarge : a table without constraints exceeds the memory or is predicted to take too long.
    NoConfiguration : no configuration is possible.
    InputError : `count` is below 1.
    """
    if count < 1:
        raise InputError(f"the number of hashes is {count}", "it must be 1 or more")
    frontier = Frontier(graph)
    tried = levels_near(frontier.bits, TRIED)
    room = open_constraints(frontier, count * len(tried), limits)
    top = frontier.maximum(_NOTHING._replace(matrix=np.zeros((0, frontier.bits), bool)))
    if top == -math.inf:
        raise NoConfiguration()
    pilot = _maxima(frontier, tried[1:], 1, min(room, 3), rng, 1, progress)[0]
    levels = levels_near(frontier.bits, TRIED, top, pilot)
    found = _maxima(frontier, levels[1:], count, room, rng, limits.jobs, progress)
    values = np.concatenate([np.full((count, 1), top), found], axis=1)
    calls = values.size - count + len(tried)
    return ParityMaxima(values, values, levels, graph.size, calls, independent=False)


def levels_near(bits: int, most: int, top: float = 0.0, pilot: Floats | None = None) -> Ints:
    """Numbers of constraints to examine, rising from 0: at most `most` + 1 of them, up to `bits`.

    Parameters
    ----------
    top, pilot : maximum without constraints, and maxima of a pilot at all numbers but the first; with
        them, those remain that are within `NEAR` of the largest share of Z.
    """
    tried = np.unique(np.linspace(0, bits, min(bits, most) + 1).round().astype(np.int64))
    if pilot is None:
        return tried
    shares = pilot + tried[1:] * math.log(2)
    kept = shares >= max(top, float(shares.max(initial=-math.inf))) - NEAR
    return np.append(0, tried[1:][kept])


def open_constraints(frontier: Frontier, problems: int, limits: HashLimits) -> int:
    """Largest number of constraints that are open at once.

    Parameters
    ----------
    frontier : order of the variables, and size of the tables of a pass without constraints.
    problems : number of MAP problems.
    limits : seconds and bytes that they may take.

    Raises
    ------
    ModelTooLarge : not even one.
    """
    steps = len(frontier.order)
    affordable = limits.seconds / (ENTRY_SECONDS * steps * problems)
    most = min(LARGEST, math.log2(limits.memory / 32), math.log2(affordable))
    room = math.floor(most - frontier.log_entries)
    if room < 1:
        raise ModelTooLarge(
            f"a pass over the model needs tables of 2^{frontier.log_entries + 1:.0f} entries for each of "
            f"{problems:,} MAP problems, and 2^{max(0, math.floor(most))} are affordable",
            "allow more time or memory or fewer samples, or use bound",
        )
    return room


def _maxima(
    frontier: Frontier,
    levels: Ints,
    count: int,
    room: int,
    rng: np.random.Generator,
    jobs: int,
    progress: Tick | None,
) -> Floats:
    """Maxima of `count` hashes at each level, shape (count, levels)."""
    children = rng.spawn(count * len(levels))
    at = [(t, k) for t in range(count) for k in range(len(levels))]
    found = np.full((count, len(levels)), -np.inf)

    def solve(place: tuple[int, int], own: np.random.Generator) -> int:
        level = int(levels[place[1]])
        matrix = bands(frontier.bits, level, room, own)
        found[place] = frontier.maximum(Constraints(matrix, own.random(level) < 0.5))
        return 1

    with Threads(jobs) as threads:
        threads.run(solve, at, children, progress=progress)
    return found


def bands(bits: int, level: int, room: int, rng: np.random.Generator) -> Bools:
    """A of `level` constraints, of which about `room` are open at once; shape (level, bits)."""
    pivots = np.floor((np.arange(level) + rng.random()) * bits / level).astype(np.int64)
    length = max(2.0, room * bits / level)
    start = np.clip(pivots - length / 2, 0, max(0.0, bits - length))[:, None]
    column = np.arange(bits)
    matrix = (rng.random((level, bits)) < 0.5) & (column >= start) & (column < start + length)
    matrix[:, pivots] = np.eye(level, dtype=bool)
    return np.asarray(matrix)
