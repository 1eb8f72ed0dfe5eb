"""Sums over a grid, row by row: ln Z, and marginals from sums from above and from below.

Weights are kept outside the logarithm. A table is scaled when the bound on its growth says that it
must be, not at each site.
"""

from __future__ import annotations

import math
from itertools import pairwise as neighbours
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import bytes_text
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.cost import Cost
from thesis_cli.inference.grid_layout import Gains

LARGEST_RANGE = 600.0
"""Largest difference in nats that the rest of the grid can make between boundaries if sums must not
underflow; also how far a table may grow between two scalings.
"""

SLACK = 80.0
"""How far the maximum of a table may shrink between two scalings, nats: exp(-LARGEST_RANGE - SLACK)
is a normal number.
"""

THREADED = 2**17
"""Entries of a table from which threads share it."""

CACHED = 2**22
"""Entries of the largest table that may stay in a cache."""

JOINT_STATES = 64
"""States of the columns that one matrix replaces."""

LONG = 4096
"""Entries of a run from which a factor that is the same along it need not be written out."""


class Steps(Protocol):
    """Steps from a row's boundary to the next one's.

    Attributes
    ----------
    size : entries of a table.
    tables : tables that a step holds, source and target included.
    summable : whether nothing that counts underflows.
    seconds : predicted time of all steps.
    shift : logarithm of what the weights of all rows are divided by.
    """

    size: int
    tables: int
    summable: bool
    seconds: float
    shift: float

    def growth(self, own: int | None, down: int | None) -> float:
        """Bound on how much a table's maximum grows, nats."""
        ...

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> float:
        """Sum over the states of a row.

        Parameters
        ----------
        source, target : weights by the row's states, and by the next row's; may be the same.
        own : the next row, whose sites' weights and interactions within count; None for none.
        down : the row whose tables of vertical pairs join the two; None for none.
        upwards : the next row is the upper one.

        Returns
        -------
        scale : logarithm of what the sums are divided by.
        """
        ...


class BinarySteps:
    """`Steps` of binary sites by their gains, compiled.

    Bounds on what is lost below a share of a table's maximum: let f(b) be the sum over the rest of
    the grid, given boundary b. Interactions across it alone make f differ, by a factor of exp(sum of
    their absolute values). Where some are -inf, f(b) is at most f(0) times those above 1, and the
    table's maximum at most its entry at 0 times the gains and interactions above 1 of the boundary.
    """

    tables = 1

    def __init__(self, gains: Gains, width: int, jobs: int) -> None:
        self._gains, self._width, self._jobs = gains, width, jobs
        self.size = max(8, 2**width)
        rows = len(gains.gain) // width
        each = 8e-11 if self.size <= CACHED else 1.4e-10
        self.seconds = 4e-4 + each * len(gains.gain) * self.size + 3e-6 * rows
        self.shift = gains.base
        above = [np.maximum(x, 0.0) for x in gains[1:]]
        own = _over_boundaries(sum(above, np.zeros(len(gains.gain))), width)
        across = _over_boundaries(np.abs(gains.down), width)
        soft = across.max() + np.abs(gains.right).max()
        hard = own.max() + _over_boundaries(above[2], width).max() + above[1].max()
        growth = max(self.growth(row, row) for row in range(rows))
        self.summable = bool(max(growth, min(soft, hard)) <= LARGEST_RANGE)

    def _logarithms(self, own: int | None, down: int | None) -> Floats:
        """ln of the weights g and h beside state 0, then beside state 1, shape (width, 4)."""
        found = np.zeros((self._width, 4))
        if own is not None:
            sites = slice(own * self._width, (own + 1) * self._width)
            found += self._gains.gain[sites, np.newaxis]
            found[:, 2:] += self._gains.right[sites, np.newaxis]
        if down is not None:
            found[:, 1::2] += self._gains.down[down * self._width : (down + 1) * self._width, np.newaxis]
        return found

    def growth(self, own: int | None, down: int | None) -> float:
        pairs = self._logarithms(own, down).reshape(-1, 2, 2)
        return float(np.maximum(math.log(2), np.logaddexp.reduce(pairs, axis=2).max(axis=1)).sum())

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> float:
        from thesis_cli.inference.grid_kernels import sum_row

        weights = np.exp(self._logarithms(own, down))
        if self._width <= 7:
            sum_row(source, target, weights, self._width, False, 0, self.size)
            return 0.0

        def work(whole: bool, first: int, last: int) -> None:
            sum_row(source, target, weights, self._width, whole, first, last)

        for whole, part in ((False, self.size // 8), (True, 8)):
            parts = 8 if not whole else self.size // 128
            edges = [part * (parts * i // self._jobs) for i in range(self._jobs + 1)]
            for _ in threads.map(work, [whole] * self._jobs, edges[:-1], edges[1:]):
                pass
        return 0.0


class GeneralSteps:
    """`Steps` of sites with any number of states, by products of matrices.

    Soft tables lose what is below a share of the maximum, by which boundaries across differ; a table
    with -inf keeps every product of weights. Tables of which the maximum may shrink much in a row
    are scaled after each site.
    """

    tables = 2

    def __init__(self, unary: Floats, right: Floats, down: Floats, width: int, *, soft: bool) -> None:
        tables = [unary, right, down]
        tops = [np.maximum(t.reshape(len(t), -1).max(axis=1), -np.finfo(float).max) for t in tables]
        self._width, self._count = width, unary.shape[1]
        self._unary, self._right, self._down = (
            np.exp(t - top.reshape(-1, *[1] * (t.ndim - 1))) for t, top in zip(tables, tops, strict=True)
        )
        self.shift = float(sum(top.sum() for top in tops))
        self.size = self._count**width
        self._spare: Floats | None = None
        together = max(1, int(math.log(JOINT_STATES) / math.log(self._count) + 1e-9))
        ranges = [_range(t) for t in tables]
        self._careful = False
        if soft:
            spread = _over_boundaries(ranges[2], width).max() + ranges[1].max()
            largest = ((right + unary[:, np.newaxis])[:, :, np.newaxis] + down[:, np.newaxis]).max(axis=3)
            decline = sum(tops) - largest.min(axis=(1, 2))
            self._careful = bool(decline.reshape(-1, width).sum(axis=1).max() > SLACK)
            self.summable = bool(spread + max(0.0, decline.max() - SLACK) * self._careful <= LARGEST_RANGE)
        else:
            self.summable = bool(sum(r.sum() for r in ranges) + len(unary) * math.log(self._count) <= LARGEST_RANGE)
        groups = width if self._careful else -(-width // together)
        self._edges = [width * i // groups for i in range(groups + 1)]
        joint = self._count ** max(b - a for a, b in neighbours(self._edges))
        self.seconds = 1e-3 + len(unary) // width * groups * (4e-5 + self.size * (1.2e-9 + 7e-11 * joint))

    def growth(self, own: int | None, down: int | None) -> float:
        return math.inf  # it may as well shrink

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> float:
        if self._spare is None:
            self._spare = np.empty(self.size)
        places = [target, self._spare]
        groups, scale = list(neighbours(self._edges)), 0.0
        if source is target and len(groups) % 2:
            np.copyto(self._spare, source)
            source = self._spare
        for done, (first, last) in enumerate(groups):
            result = places[(len(groups) - done - 1) % 2]
            self._replace(source, result, first, last, own, down, upwards)
            if self._careful:
                scale += _scale(result)
            source = result
        return scale

    def _replace(
        self, source: Floats, target: Floats, first: int, last: int, own: int | None, down: int | None, upwards: bool
    ) -> None:
        """Replace the columns from `first` to `last`."""
        count, low, joint = self._count, self._count**first, self._count ** (last - first)
        pairs = np.ones((1, 1))
        for column in range(first, last):
            table = np.ones((count, count)) if down is None else self._down[down * self._width + column]
            pairs = np.kron(table.T if upwards else table, pairs)
        factor = np.ones((joint, count)) if own is None else self._factor(own, first, last)
        if first == 0:
            np.matmul(source.reshape(-1, joint), pairs * factor[:, 0], out=target.reshape(-1, joint))
            return
        result = target.reshape(-1, joint, low)
        np.matmul(pairs.T, source.reshape(result.shape), out=result)
        if low <= LONG:
            result *= np.repeat(factor, low // count, axis=1)
        else:
            result.reshape(-1, joint, count, low // count)[...] *= factor[:, :, np.newaxis]

    def _factor(self, own: int, first: int, last: int) -> Floats:
        """Weights of the columns' sites and of their pairs in a row, by their states and that of
        the neighbour on the left, shape (joint states, count).
        """
        found = np.ones((1, self._count))
        for column in range(first, last):
            t = own * self._width + column
            beside = self._right[t] * self._unary[t] if column else np.tile(self._unary[t], (self._count, 1))
            if column == first:
                found = beside.T
            else:
                states = np.repeat(np.arange(self._count), len(found) // self._count)
                found = (beside[states].T[:, :, np.newaxis] * found).reshape(-1, self._count)
        return found


def _range(tables: Floats) -> Floats:
    """Largest less smallest finite entry of each table, shape (sites,)."""
    flat = tables.reshape(len(tables), -1)
    least = np.where(np.isfinite(flat), flat, np.inf).min(axis=1)
    return np.asarray(flat.max(axis=1) - least)


def _over_boundaries(values: Floats, width: int) -> Floats:
    """Sums over each run of `width` sites."""
    return np.convolve(values, np.ones(width))


class GridSums:
    """Sums over a grid.

    Parameters
    ----------
    steps : from row to row.
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

        The tables from above are kept at the first row of each segment, and at each row of one
        segment at a time: of as few segments as fit into `memory`.

        Raises
        ------
        ModelTooLarge : the tables do not fit.
        NoConfiguration : none is possible.
        """
        segments = self._segments(memory)
        starts: list[Floats] = []
        edges = [self._rows * i // segments for i in range(segments + 1)]
        found = np.zeros(int(self._slots.max()) + 1)
        with Threads(self._jobs) as threads:
            table, scale = np.ones(self._steps.size), 0.0
            for first, last in neighbours(edges[:-1]):
                starts.append(table.copy())
                scale += self._descend(table, first, last, threads)
            starts.append(table)
            below, both = np.ones(self._steps.size), np.empty(self._steps.size)
            log_z = -math.inf
            for first, last in list(neighbours(edges))[::-1]:
                above: list[Floats] = []
                scaled = self._descend(starts.pop(), first, last, threads, above)
                if last == self._rows:
                    log_z = self._end(above[-1], scale + scaled)
                    if log_z == -math.inf:
                        raise NoConfiguration()
                for row in range(last - 1, first - 1, -1):
                    down = row + 1 if row + 1 < self._rows else None
                    self._steps.step(below, both, None, down, upwards=True, threads=threads)
                    self._add(found, row, above.pop(), both)
                    if row:
                        self._steps.step(below, below, row, down, upwards=True, threads=threads)
                        _scale(below)
        return log_z, found

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

    def _descend(
        self, table: Floats, first: int, last: int, threads: Threads, keep: list[Floats] | None = None
    ) -> float:
        """Sum over the rows from `first` to `last`, in place unless the tables are to be kept.

        Returns
        -------
        scale : logarithm of what the last table was divided by; -inf if it is 0.
        """
        scale = grown = 0.0
        for row in range(first, last):
            growth = self._steps.growth(row, row)
            if grown + growth > LARGEST_RANGE:
                scale, grown = scale + _scale(table), 0.0
            target = table if keep is None else np.empty_like(table)
            scale += self._steps.step(table, target, row, row, upwards=False, threads=threads)
            grown += growth
            table = target
            if keep is not None:
                keep.append(table)
        return scale

    def _end(self, table: Floats, scale: float) -> float:
        total = float(table.sum())
        return self._constant + scale + math.log(total) if total > 0 else -math.inf

    def _add(self, found: Floats, row: int, above: Floats, below: Floats) -> None:
        """Add a row's marginals, from the weights above and below each of its boundaries."""
        _scale(above)
        _scale(below)
        below *= above
        half = self._count ** (self._width // 2)
        table = below[: self._count**self._width].reshape(-1, half)
        sums = table.sum(axis=0), table.sum(axis=1)
        for column in range(self._width):
            high = column >= self._width // 2
            inner = self._count ** (column - self._width // 2 * high)
            p = sums[high].reshape(-1, self._count, inner).sum(axis=(0, 2))
            np.add.at(found, self._slots[row * self._width + column], p / p.sum())


def _scale(table: Floats) -> float:
    """Divide a table by its maximum; returns the logarithm, -inf if it is 0."""
    top = float(table.max())
    if top == 0.0:
        return -math.inf
    table *= 1.0 / top
    return math.log(top)
