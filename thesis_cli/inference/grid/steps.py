"""Steps of sums over a grid from a row's boundary to the next one's, and what they lose.

Weights are kept outside the logarithm.
"""

from __future__ import annotations

import math
from itertools import pairwise as neighbours
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.grid.layout import Gains

LARGEST_RANGE = 600.0
"""Largest difference in nats that the rest of the grid can make between boundaries if sums must not
underflow; also how far a table may grow between two scalings."""
SLACK = 80.0
"""Largest decrease of the maximum of a table between two scalings, nats: exp(-LARGEST_RANGE - SLACK)
is a normal number."""
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

    def growth(self, row: int) -> float:
        """Bound on how much a table's maximum grows at a row downwards, nats."""
        ...

    def down(self, row: int, column: int) -> Floats:
        """Weights of a site's pair with its upper neighbour, by the upper state, then its own."""
        ...

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> int:
        """Sum over the states of a row.

        Parameters
        ----------
        source, target : weights by the row's states, and by the next row's; may be the same.
        own : the next row, whose sites' weights and interactions within count; None for none.
        down : the row whose tables of vertical pairs join the two; None for none.
        upwards : the next row is the upper one.

        Returns
        -------
        exponent : exponent of the power of 2 by which the sums are divided.
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
        self.seconds = 4e-4 + each * len(gains.gain) * self.size + 1.5e-5 * rows
        self.shift = gains.base
        above = [np.maximum(x, 0.0) for x in gains[1:]]
        own, across = (_over_boundaries(x, width).max() for x in (above[0] + above[1], above[2]))
        soft = _over_boundaries(np.abs(gains.down), width).max() + np.abs(gains.right).max()
        hard = own + 2 * across + above[1].max()
        sites = len(gains.gain)
        self._growth = self._growths(slice(0, sites), slice(0, sites))
        upwards = self._growths(slice(0, sites - width), slice(width, sites))
        growth = max(self._growth.max(), upwards.max(initial=0.0))
        self.summable = bool(max(growth, min(soft, hard)) <= LARGEST_RANGE)

    def _logarithms(self, own: slice | None, down: slice | None) -> Floats:
        """ln of the weights g and h beside state 0, then beside state 1, shape (sites, 4)."""
        found = np.zeros((len(self._gains.gain[own or down or slice(0, self._width)]), 4))
        if own is not None:
            found += self._gains.gain[own, np.newaxis]
            found[:, 2:] += self._gains.right[own, np.newaxis]
        if down is not None:
            found[:, 1::2] += self._gains.down[down, np.newaxis]
        return found

    def _growths(self, own: slice, down: slice) -> Floats:
        pairs = np.logaddexp.reduce(self._logarithms(own, down).reshape(-1, 2, 2), axis=2)
        return np.asarray(np.maximum(math.log(2), pairs.max(axis=1)).reshape(-1, self._width).sum(axis=1))

    def _sites(self, row: int | None) -> slice | None:
        return None if row is None else slice(row * self._width, (row + 1) * self._width)

    def growth(self, row: int) -> float:
        return float(self._growth[row])

    def down(self, row: int, column: int) -> Floats:
        return np.array([[1.0, 1.0], [1.0, math.exp(self._gains.down[row * self._width + column])]])

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> int:
        from thesis_cli.inference.grid.kernels import sum_row

        weights = np.exp(self._logarithms(self._sites(own), self._sites(down)))
        if self._width <= 7:
            sum_row(source, target, weights, self._width, False, 0, self.size)
            return 0

        def work(whole: bool, first: int, last: int) -> None:
            sum_row(source, target, weights, self._width, whole, first, last)

        for whole, part in ((False, self.size // 8), (True, 8)):
            parts = 8 if not whole else self.size // 128
            edges = [part * (parts * i // self._jobs) for i in range(self._jobs + 1)]
            for _ in threads.map(work, [whole] * self._jobs, edges[:-1], edges[1:]):
                pass
        return 0


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

    def growth(self, row: int) -> float:
        return math.inf  # it may as well shrink

    def down(self, row: int, column: int) -> Floats:
        return np.asarray(self._down[row * self._width + column])

    def step(
        self, source: Floats, target: Floats, own: int | None, down: int | None, *, upwards: bool, threads: Threads
    ) -> int:
        if self._spare is None:
            self._spare = np.empty(self.size)
        places = [target, self._spare]
        groups, exponent = list(neighbours(self._edges)), 0
        if source is target and len(groups) % 2:
            np.copyto(self._spare, source)
            source = self._spare
        for done, (first, last) in enumerate(groups):
            result = places[(len(groups) - done - 1) % 2]
            self._replace(source, result, first, last, own, down, upwards)
            if self._careful:
                exponent += scale(result)
            source = result
        return exponent

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
        the neighbour on the left, shape (joint states, count)."""
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


def scale(table: Floats) -> int:
    """Divide a table, of any shape, by a power of 2 such that its maximum is about 1; returns the
    exponent.

    No bit of the results then depends on where tables are scaled.
    """
    exponent = math.frexp(float(table.max()))[1]
    table *= math.ldexp(1.0, -exponent)
    return exponent
