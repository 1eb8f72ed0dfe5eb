"""Minimum cuts of networks whose nodes change their costs and whose arcs do not."""

from __future__ import annotations

import copy

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.inference.graph_cut.flow_arrays import Arcs, Forest, Grid, Sheet
from thesis_cli.inference.grid.layout import in_any_order

PADDED = 8
"""Most sites of a grid with its padding for each node."""


class Network:
    """Nodes joined by arcs and to two terminals: minimum cuts under changing costs of the nodes.

    What is sorted and allocated once serves all cuts; none leaves a residue. Nodes whose label
    follows from hard constraints alone are taken out, so that nothing infinite is ever subtracted
    and hard constraints cost no precision.

    Parameters
    ----------
    arcs : pairs of nodes, shape (A, 2).
    capacities : cost of an arc at labels (0, 1) and at (1, 0), shape (A, 2).
    forbidden : labels that a node must not have, shape (nodes, 2).

    Attributes
    ----------
    possible : some labelling has a finite cost.
    """

    def __init__(self, arcs: Ints, capacities: Floats, forbidden: Bools) -> None:
        n = len(forbidden)
        self._ends, self._capacities = arcs, capacities
        forced = _forced(arcs, np.isinf(capacities), forbidden)
        self.possible = not forced.all(axis=1).any()
        self._free: Bools = np.logical_not(forced.any(axis=1))
        self._fixed = forced[:, 1]
        # An arc between a node that is fixed and one that is free is part of the latter's cost.
        self._costs = np.zeros(n)
        for own, other in ((0, 1), (1, 0)):
            mixed = self._free[arcs[:, own]] & ~self._free[arcs[:, other]]
            fixed = self._fixed[arcs[mixed, other]]
            costs = np.where(fixed, -capacities[mixed, own], capacities[mixed, other])
            self._costs += np.bincount(arcs[mixed, own], costs, n)
        kept = self._free[arcs].all(axis=1)
        arcs, capacities = arcs[kept], capacities[kept]
        placed = _grid(arcs, n) if np.isfinite(capacities).all() else None
        self._grid: Grid | None = None
        if placed is None:
            self._arcs, self._places = _sorted(arcs, n)
            self._base = capacities.reshape(-1)[self._places]
        else:
            self._grid, self._places = placed
            self._grid = self._filled(capacities)

    def _filled(self, capacities: Floats) -> Grid:
        """The grid with other capacities, shape (A, 2)."""
        assert self._grid is not None
        size = len(self._grid.base)
        base: Floats = np.bincount(self._places, capacities.reshape(-1), 4 * size).astype(np.float64)
        return self._grid._replace(base=base.reshape(size, 4))

    def with_capacities(self, capacities: Floats) -> Network:
        """The same nodes and arcs with other capacities, of which nothing is sorted again; finite,
        shape (A, 2).

        Raises
        ------
        ValueError : hard constraints fix the label of a node.
        """
        if not self._free.all():
            raise ValueError("the network must have no fixed nodes")
        found = copy.copy(self)
        found._capacities = capacities
        if self._grid is None:
            found._base = capacities.reshape(-1)[self._places]
        else:
            found._grid = self._filled(capacities)
        return found

    def labels(self, costs: Floats) -> Ints:
        """Labellings of least cost.

        Parameters
        ----------
        costs : cost of label 1 over label 0, finite, shape (batch, nodes).

        Returns
        -------
        1 where every labelling of that cost has a 1, shape (batch, nodes).
        """
        labels = np.empty(costs.shape, np.int64)
        # One memory order, whatever that of the costs: kernels are compiled for each.
        excess = np.ascontiguousarray(np.where(self._free, costs + self._costs, 0.0))
        if self._grid is not None:
            from thesis_cli.inference.graph_cut.cut_grid_kernels import minimum_cuts_of_grids

            minimum_cuts_of_grids(self._grid, Sheet.of(self._grid), excess, labels)
        else:
            from thesis_cli.inference.graph_cut.cut_kernels import minimum_cuts

            forest = Forest.of(len(self._free))
            minimum_cuts(self._arcs, self._base, np.empty_like(self._base), forest, excess, labels)
        return np.where(self._free, labels, self._fixed)

    def cut(self, costs: Floats) -> tuple[float, Bools]:
        """A labelling of least cost.

        Parameters
        ----------
        costs : cost of label 1 over label 0, finite, shape (nodes,).

        Returns
        -------
        cost : cost of the labelling with its arcs; label 0 of a node costs nothing.
        labels : 1 where every labelling of that cost has a 1, shape (nodes,).
        """
        labels = self.labels(costs[None])[0] == 1
        i, j = self._ends.T
        cut = labels[i] != labels[j]
        arcs = np.where(labels[i], self._capacities[:, 1], self._capacities[:, 0])[cut]
        return float(costs[labels].sum() + arcs.sum()), labels


def _forced(arcs: Ints, hard: Bools, forbidden: Bools) -> Bools:
    """Labels that the hard constraints leave to a node alone, shape (nodes, 2)."""
    forced = forbidden[:, ::-1].copy()
    if not (hard.any() and forbidden.any()):
        return forced
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    n = len(forbidden)
    i, j = arcs.T
    # Arcs (from, to): a 1 at the first implies a 1 at the second, and a 0 there a 0 here.
    ones = np.concatenate([np.stack([j, i], axis=1)[hard[:, 0]], arcs[hard[:, 1]]])
    for label, implied in ((0, ones[:, ::-1]), (1, ones)):
        given = np.flatnonzero(forced[:, label])
        rows = np.concatenate([implied[:, 0], np.full(len(given), n)])
        columns = np.concatenate([implied[:, 1], given])
        graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1)).tocsr()
        reached = breadth_first_order(graph, n, return_predecessors=False)
        forced[reached[reached < n], label] = True
    return forced


def _sorted(arcs: Ints, nodes: int) -> tuple[Arcs, Ints]:
    """Edges in ascending order, those at each node, and where the capacities of all arcs stand."""
    turned = arcs[:, 0] > arcs[:, 1]
    ends = np.where(turned[:, None], arcs[:, ::-1], arcs)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    ends = ends[order]
    places = (2 * order[:, None] + np.where(turned[order, None], [1, 0], [0, 1])).reshape(-1)
    tails, heads = ends.reshape(-1), ends[:, ::-1].reshape(-1)
    leaving = np.lexsort((heads, tails))
    starts = np.searchsorted(tails[leaving], np.arange(nodes + 1))
    short = [np.ascontiguousarray(a, np.int32) for a in (ends, starts, heads[leaving], leaving)]
    return Arcs(*short), places


def _grid(arcs: Ints, nodes: int) -> tuple[Grid, Ints] | None:
    """The network as a grid without capacities, the way round that takes less memory, and where
    each capacity belongs, shape (2 A,).

    None if it is no grid, or if it is so narrow that most of it would be padding.
    """
    if not len(arcs):
        return None
    found = _layout(nodes, np.sort(arcs, axis=1))
    if found is None:
        return None
    row, column = found
    turned = _size(row, column) > _size(column, row)
    if turned:
        row, column = column, row
    size = _size(row, column)
    if size > PADDED * nodes:
        return None
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    stride = size // (rows + 1)
    sites = row * stride + column
    steps = np.array([1, -1, stride, -stride])
    places = np.empty((len(arcs), 2), np.int64)
    for own, other in ((0, 1), (1, 0)):
        start = sites[arcs[:, own]]
        places[:, own] = 4 * start + (sites[arcs[:, other]] - start == steps[:, None]).argmax(axis=0)
    grid = Grid(rows, columns, stride // 64, stride, sites, steps, np.zeros((size, 4)))
    return grid, places.reshape(-1)


def _size(row: Ints, column: Ints) -> int:
    """Sites of a grid with its padding."""
    return int((row.max() + 2) * 64 * ((column.max() + 1) // 64 + 1))


def _layout(nodes: int, edges: Ints) -> tuple[Ints, Ints] | None:
    """Rows and columns of the nodes of a grid, None if it is none."""
    steps = edges[:, 1] - edges[:, 0]
    width = int(steps.max())
    beside = steps == 1
    if width > 1 and (beside | (steps == width)).all() and (edges[beside, 0] % width != width - 1).all():
        row, column = np.divmod(np.arange(nodes), width)
        return row, column
    found = in_any_order(nodes, edges)
    if found is None:
        return None
    width, variables = found
    row, column = np.empty((2, nodes), np.int64)
    row[variables], column[variables] = np.divmod(np.arange(nodes), width)
    return row, column
