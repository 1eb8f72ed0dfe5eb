"""Exact MAP and ln Z on grids: dynamic programming over a boundary that moves one site at a time.

The boundary holds one site of each column. A step replaces a column's site by the one below it, so
that the table over the boundary's K^width states is updated in place. Only the table before each
row is kept: given the states of the row below, those of a row maximise that table plus a sum over
its columns, which is solved column by column.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.inference.pairwise import Pairwise, pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

LARGEST_RANGE = 600.0
"""Largest difference in nats that the rest of the grid can make between boundaries if sums must not
underflow.
"""

SIDE_BY_SIDE = 2**25
"""Bytes of tables up to which problems are solved side by side; beyond, memory bandwidth is the
limit.
"""

PAIR_ROOM = 40
"""Bytes for each entry of the tables of pairs while they are read."""

BATCH = 1024
"""Problems in one call of a kernel."""


class GridTransfer:
    """A grid prepared for any number of sums and maximisations.

    Parameters
    ----------
    graph : factors over one variable, or over two that are neighbours when the variables are
        numbered along the rows (or the columns) of a grid. A chain is a grid, and edges may be
        missing.
    memory : bytes that the tables of one call may take.

    Attributes
    ----------
    width : sites of the shorter side.
    summable : whether sums of weights outside the logarithm lose nothing; otherwise use
        elimination.

    Raises
    ------
    UnsuitableModel : not a grid.
    ModelTooLarge : its shorter side is too wide for `memory`; the message gives the memory it
        needs.
    """

    name = "grid transfer"
    guarantee: Guarantee = "exact"

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY) -> None:
        self.graph = graph
        form = pairwise(graph)
        self.width, self._variables = _layout(form)
        self._count = max(2, *form.cardinalities)
        rows = len(self._variables) // self.width
        size = 8 * self._count**self.width * (rows + 3) + PAIR_ROOM * len(self._variables) * self._count**2
        if size > memory:
            raise ModelTooLarge(
                f"grid transfer needs {bytes_text(size)} at width {self.width}",
                f"raise the memory from {bytes_text(memory)}, or use a method that approximates",
            )
        self._alone = 32 * size > min(memory, SIDE_BY_SIDE)
        self._batch = 1 if self._alone else BATCH
        self._constant = form.constant
        self._slots = _slots(form, self._variables, self._count)
        padded = np.append(form.unary, [0.0, -np.inf])
        self._unary = padded[self._slots]
        self._right, self._down = _tables(form, self._variables, self.width, self._count)
        self._gains = (
            _gains(self._unary, self._right, self._down, self.width) if self._count == 2 and form.soft else None
        )
        self._free = int((np.take([*form.cardinalities, 1], self._variables) == 1).sum())
        self.summable = self._largest_range(form.soft) <= LARGEST_RANGE

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables; see `MapSolver`."""
        parts = [self._solve(noise[start : start + self._batch]) for start in range(0, len(noise), self._batch)]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _solve(self, noise: Floats) -> tuple[Floats, Ints]:
        from thesis_cli.inference import grid_kernels

        batch, lanes = len(noise), 1 if self._alone else grid_kernels.LANES
        blocks = -(-batch // lanes)
        padded = np.zeros((blocks * lanes, noise.shape[1] + 2))
        padded[:batch, :-2] = noise
        rows = np.ascontiguousarray(padded.reshape(blocks, lanes, -1).swapaxes(1, 2))
        values = np.empty((blocks, lanes))
        states = np.empty((blocks, len(self._slots), lanes), np.int64)
        if self._gains:
            base, gain, right, down = self._gains
            low = np.take(rows, self._slots[:, 0], axis=1)
            field = np.take(rows, self._slots[:, 1], axis=1) - low + gain[:, np.newaxis]
            grid_kernels.maximise_binary(field, right, down, self.width, 0.0, values, states)
            values += base + low.sum(axis=1)
        else:
            unary = np.take(rows, self._slots, axis=1) + self._unary[:, :, np.newaxis]
            grid_kernels.maximise_general(unary, self._right, self._down, self.width, values, states)
        found = np.empty((batch, len(self.graph.cardinalities)), np.int64)
        real = self._variables >= 0
        found[:, self._variables[real]] = states[:, real].swapaxes(1, 2).reshape(blocks * lanes, -1)[:batch]
        return values.reshape(-1)[:batch] + self._constant, np.minimum(found, np.array(self.graph.cardinalities) - 1)

    def log_partition_function(self) -> float:
        """Exact ln Z in nats, of a grid that is `summable`; `-inf` when no configuration is
        possible.
        """
        return self._sum_down()[0]

    def marginals(self) -> tuple[float, Floats]:
        """Exact ln Z and the marginals of a grid that is `summable` and has a possible
        configuration.

        Returns
        -------
        log_z : nats.
        marginals : p(x_i) of the states of variable 0, then those of variable 1, ..., shape (sum of
            cardinalities,).
        """
        log_z, above = self._sum_down()
        shape = (self._count,) * self.width  # the last column comes first
        below = np.ones(shape)
        found = np.zeros(sum(self.graph.cardinalities) + 2)
        for row in range(len(above) - 1, -1, -1):
            both = above[row].reshape(shape) * below
            both /= both.sum()
            for column in range(self.width):
                others = tuple(a for a in range(self.width) if a != self.width - 1 - column)
                np.add.at(found, self._slots[row * self.width + column], both.sum(axis=others))
            if row:
                below = self._sum_up(row, below)
        return log_z, found[:-2]

    def _sum_down(self) -> tuple[float, list[Floats]]:
        """ln Z, and for each row the weights of all that ends there, by its states, up to a
        constant.
        """
        from thesis_cli.inference import grid_kernels

        # The sums also run over what stands above the first row, and over sites that are no
        # variable.
        log_z = self._constant - (self.width + self._free) * math.log(self._count)
        table = np.ones(self._count**self.width)
        above = []
        for t in range(len(self._variables)):
            weights, shift = self._weights(t)
            grid_kernels.sum_site(table, t % self.width, self._count, *weights)
            top = float(table.max())
            if top == 0.0:
                return -math.inf, []
            table /= top
            log_z += shift + math.log(top)
            if (t + 1) % self.width == 0:
                above.append(table.copy())
        return log_z + math.log(float(table.sum())), above

    def _sum_up(self, row: int, below: Floats) -> Floats:
        """Weights of all from `row` on, by the states of the row above it, up to a constant."""
        weights = [self._weights(row * self.width + column)[0] for column in range(self.width)]
        for column, (unary, right, _) in enumerate(weights):
            below = below * unary.reshape(-1, *[1] * column)
            if column:
                below = below * right.T.reshape(self._count, self._count, *[1] * (column - 1))
        for column, (_, _, down) in enumerate(weights):
            axis = self.width - 1 - column
            below = np.moveaxis(np.tensordot(down, below, axes=(1, axis)), 0, axis)
        return np.asarray(below / below.max())

    def _weights(self, t: int) -> tuple[tuple[Floats, Floats, Floats], float]:
        """Exponentials of a site's tables, scaled to at most 1, and the logarithm of the scale."""
        tables = self._unary[t], self._right[t], self._down[t]
        tops = [max(float(table.max()), -sys.float_info.max) for table in tables]
        unary, right, down = (np.exp(table - top) for table, top in zip(tables, tops, strict=True))
        return (unary, right, down), sum(tops)

    def _largest_range(self, soft: bool) -> float:
        """Largest difference that the rest of the grid can make between two boundaries, nats.

        In a soft grid only the edges across the boundary contribute. With hard constraints a
        boundary may be the only possible one, however small its weight so far.
        """
        ranges = [_range(self._down), _range(self._right)]
        if not soft:
            return float(sum(r.sum() for r in ranges) + _range(self._unary).sum())
        down = np.concatenate([ranges[0], np.zeros(self.width)])
        across = np.convolve(down, np.ones(self.width))[: len(down)]
        return float(across.max() + ranges[1].max())


def _range(tables: Floats) -> Floats:
    """Largest less smallest finite entry of each table, shape (sites,)."""
    flat = tables.reshape(len(tables), -1)
    least = np.where(np.isfinite(flat), flat, np.inf).min(axis=1)
    return np.asarray(flat.max(axis=1) - least)


def _layout(form: Pairwise) -> tuple[int, Ints]:
    """Columns of the grid, and the variable of each site in order, -1 where a row is not full."""
    n = len(form.cardinalities)
    steps = form.edges[:, 1] - form.edges[:, 0]
    width = int(steps.max(initial=1))
    for (i, j), step in zip(form.edges, steps, strict=True):
        if step not in (1, width) or (step == 1 < width and i % width == width - 1):
            raise UnsuitableModel(
                f"the edge between variables {i} and {j} is not one of a grid numbered along rows {width} long",
                "elimination takes such a model if its width is small",
            )
    rows = -(-n // width)
    variables = np.full(rows * width, -1, np.int64)
    variables[:n] = np.arange(n)
    return (width, variables) if width <= rows else (rows, variables.reshape(rows, width).T.ravel())


def _slots(form: Pairwise, variables: Ints, count: int) -> Ints:
    """Where the states of each site are in a vector of all states, then 0, then -inf; shape (sites,
    count).

    What has one state (evidence) or none (a site without a variable) takes any, all the same.
    """
    zero = form.offsets[-1]
    slots = np.full((len(variables), count), zero + 1)
    for t, i in enumerate(variables):
        k = form.cardinalities[i] if i >= 0 else 0
        if k > 1:
            slots[t, :k] = form.offsets[i] + np.arange(k)
        else:
            slots[t] = form.offsets[i] if k else zero
    return slots


def _tables(form: Pairwise, variables: Ints, width: int, count: int) -> tuple[Floats, Floats]:
    """Log-potentials of each site with its left and with its upper neighbour, shapes (sites, count,
    count).
    """
    right, down = np.zeros((2, len(variables), count, count))
    site = np.empty(len(form.cardinalities), np.int64)
    site[variables[variables >= 0]] = np.flatnonzero(variables >= 0)
    for (i, j), table in zip(form.edges, form.tables, strict=True):
        beside = site[j] - site[i] == 1 and (width > 1)
        (right if beside else down)[site[j], : table.shape[0], : table.shape[1]] = table
    return right, down


def _gains(unary: Floats, right: Floats, down: Floats, width: int) -> tuple[float, Floats, Floats, Floats]:
    """Two-state tables as those of states 0 + (gain of state 1) + (interaction when both are in
    state 1).

    Returns
    -------
    base : log-potential of all states 0.
    gain : of state 1 of each site, shape (sites,).
    right, down : interactions, shape (sites,).
    """
    sites = len(right)
    gain = np.append(np.zeros(width), unary[:, 1] - unary[:, 0])
    for tables, back in ((right, 1), (down, width)):
        gain[width:] += tables[:, 0, 1] - tables[:, 0, 0]
        gain[width - back : width - back + sites] += tables[:, 1, 0] - tables[:, 0, 0]
    interactions = [t[:, 0, 0] + t[:, 1, 1] - t[:, 0, 1] - t[:, 1, 0] for t in (right, down)]
    base = unary[:, 0].sum() + right[:, 0, 0].sum() + down[:, 0, 0].sum()
    return float(base), gain[width:], interactions[0], interactions[1]
