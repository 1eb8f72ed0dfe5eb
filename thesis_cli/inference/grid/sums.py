"""Sums over a grid, row by row: ln Z, marginals from sums from above and from below, and samples.

A table is scaled when the bound on its growth says that it must be, not at each site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise as neighbours

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import Cost, bytes_text
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.grid.steps import LARGEST_RANGE, Steps, scale

THREADED = 2**17
"""Entries of a table from which threads share it."""
DRAWN = 256
"""Samples that are drawn together."""


class GridSums:
    """Sums over a grid.

    Parameters
    ----------
    steps : sums from one row to the next.
    slots : where the states of each site are in a vector of all states, shape (sites, count).
    width, jobs : columns, and threads.
    constant : nats, to be added to ln Z, without what `steps` divides by.
    """

    def __init__(self, steps: Steps, slots: Ints, width: int, jobs: int, constant: float) -> None:
        self._steps, self._slots, self._width, self._count = steps, slots, width, slots.shape[1]
        self._jobs = jobs if steps.size >= THREADED else 1
        self._rows = len(slots) // width
        self._constant = constant + steps.shift - math.log(steps.size)
        self.bytes = 8 * steps.size

    def log_partition_function(self) -> float:
        """ln Z; `-inf` when no configuration is possible."""
        with Threads(self._jobs) as threads:
            table = np.ones(self._steps.size)
            return self._end(table, self._descend(table, 0, self._rows, threads))

    def marginals(self, memory: int) -> tuple[float, Floats]:
        """ln Z, and P(x_i) in the order of `slots`, shape (largest slot + 1,).

        Raises
        ------
        ModelTooLarge : the tables do not fit into `memory`.
        NoConfiguration : none is possible.
        """
        found, log_z = np.zeros(int(self._slots.max()) + 1), -math.inf
        with Threads(self._jobs) as threads:
            below, both = np.ones(self._steps.size), np.empty(self._steps.size)
            for row, above, total in self._upwards(memory, threads):
                log_z, down = total, row + 1 if row + 1 < self._rows else None
                self._steps.step(below, both, None, down, upwards=True, threads=threads)
                self._add(found, row, above, both)
                if row:
                    self._steps.step(below, below, row, down, upwards=True, threads=threads)
                    scale(below)
        return log_z, found

    def sample(self, count: int, rng: np.random.Generator, memory: int) -> Ints:
        """Independent draws of the states of all sites, row by row from the last one on, shape
        (count, sites).

        Of a row, the columns of the slower half are drawn first, from sums over the others.

        Raises
        ------
        ModelTooLarge, NoConfiguration : as for `marginals`.
        """
        states = np.empty((count, len(self._slots)), np.int64)
        levels = rng.random((self._rows, 2, count))
        half = self._width // 2
        with Threads(self._jobs) as threads:
            for row, above, _ in self._upwards(memory, threads):
                table = above[: self._count**self._width].reshape(-1, self._count**half)
                for start in range(0, count, DRAWN):
                    drawn = slice(start, start + DRAWN)
                    below = states[drawn, (row + 1) * self._width : (row + 2) * self._width]
                    low, high = (self._given(row + 1, below, c) for c in (range(half), range(half, self._width)))
                    slow = _draw(high * (low @ table.T), levels[row, 0, drawn])
                    fast = _draw(low * table[slow], levels[row, 1, drawn])
                    own = slow * table.shape[1] + fast
                    for column in range(self._width):
                        own, states[drawn, row * self._width + column] = np.divmod(own, self._count)
        return states

    def _given(self, row: int, below: Ints, columns: range) -> Floats:
        """Weights of the states of some columns above a row's states, shape (draws, joint states)."""
        found = np.ones((len(below), 1))
        for column in columns:
            if row < self._rows:
                weights = self._steps.down(row, column)[:, below[:, column]].T
            else:
                weights = np.ones((len(below), self._count))
            found = (weights[:, :, np.newaxis] * found[:, np.newaxis]).reshape(len(below), -1)
        return found

    def _upwards(self, memory: int, threads: Threads) -> Iterator[tuple[int, Floats, float]]:
        """Rows from the last one on, the weights of all down to a row by its states, and ln Z.

        Tables are kept at the first row of each segment, and at each row of one segment at a time:
        of as few segments as fit into `memory`.
        """
        segments = self._segments(memory)
        edges = [self._rows * i // segments for i in range(segments + 1)]
        table, exponent, log_z = np.ones(self._steps.size), 0, 0.0
        starts: list[Floats] = []
        for first, last in neighbours(edges[:-1]):
            starts.append(table.copy())
            exponent += self._descend(table, first, last, threads) + scale(table)
        starts.append(table)
        for first, last in list(neighbours(edges))[::-1]:
            kept: list[Floats] = []
            further = self._descend(starts.pop(), first, last, threads, kept)
            if last == self._rows:
                log_z = self._end(kept[-1], exponent + further)
                if log_z == -math.inf:
                    raise NoConfiguration()
            for row in range(last - 1, first - 1, -1):
                yield row, kept.pop(), log_z

    def cost_of_marginals(self, memory: int) -> Cost:
        """Predicted.

        Raises
        ------
        ModelTooLarge : they do not fit into `memory`.
        """
        segments = self._segments(memory)
        steps = self._steps.seconds * (3 if segments == 1 else 4)
        return Cost(steps + 1e-8 * self._rows * self._steps.size, self._bytes(segments))

    def _bytes(self, segments: int) -> int:
        return self.bytes * (segments + -(-self._rows // segments) + self._steps.tables + 2)

    def _segments(self, memory: int) -> int:
        best = math.isqrt(self._rows)
        for segments in range(1, best + 1):
            if self._bytes(segments) <= memory:
                return segments
        raise ModelTooLarge(
            f"marginals by grid transfer need {bytes_text(self._bytes(best))} at width {self._width}",
            f"raise the memory from {bytes_text(memory)}, or use a method that approximates",
        )

    def _descend(self, table: Floats, first: int, last: int, threads: Threads, keep: list[Floats] | None = None) -> int:
        """Sum over the rows from `first` to `last`, in place unless the tables are to be kept.

        Returns
        -------
        exponent : exponent of the power of 2 by which the last table was divided.
        """
        exponent, grown = 0, 0.0
        for row in range(first, last):
            growth = self._steps.growth(row)
            if grown + growth > LARGEST_RANGE:
                exponent, grown = exponent + scale(table), 0.0
            target = table if keep is None else np.empty_like(table)
            exponent += self._steps.step(table, target, row, row, upwards=False, threads=threads)
            grown += growth
            table = target
            if keep is not None:
                keep.append(table)
        return exponent

    def _end(self, table: Floats, exponent: int) -> float:
        share, more = math.frexp(float(table.sum()))
        return self._constant + (exponent + more) * math.log(2) + math.log(share) if share > 0 else -math.inf

    def _add(self, found: Floats, row: int, above: Floats, below: Floats) -> None:
        """Add a row's marginals, from the weights above and below each of its boundaries."""
        scale(above)
        scale(below)
        below *= above
        half = self._count ** (self._width // 2)
        table = below[: self._count**self._width].reshape(-1, half)
        sums = table.sum(axis=0), table.sum(axis=1)
        for column in range(self._width):
            high = column >= self._width // 2
            inner = self._count ** (column - self._width // 2 * high)
            p = sums[high].reshape(-1, self._count, inner).sum(axis=(0, 2))
            np.add.at(found, self._slots[row * self._width + column], p / p.sum())


def _draw(weights: Floats, levels: Floats) -> Ints:
    """A state for each row of weights, by inverting the distribution function at a level."""
    sums = np.cumsum(weights, axis=1)
    found = (sums <= levels[:, np.newaxis] * sums[:, -1:]).sum(axis=1)
    last = (sums < sums[:, -1:]).sum(axis=1)  # rounding may reach the whole sum
    return np.asarray(np.minimum(found, last))
