"""Arrays that compiled minimum cuts take and fill."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats, Ints

Words = npt.NDArray[np.uint64]
"""Sets of 64 sites."""


Shorts = npt.NDArray[np.int32]
"""Indices that take half the memory: a search waits for memory most of the time."""


class Arcs(NamedTuple):
    """Nodes and arcs; arcs 2 e and 2 e + 1 are those of edge e, from its lower end and back.

    Attributes
    ----------
    ends : lower and higher node of each edge, in ascending order, shape (E, 2).
    starts : where the arcs that leave a node start in the following, shape (nodes + 1,).
    heads : where they lead, shape (2 E,).
    leaving : which they are, shape (2 E,).
    """

    ends: Shorts
    starts: Shorts
    heads: Shorts
    leaving: Shorts


class Forest(NamedTuple):
    """Search trees from the source and to the sink, as `cut_kernels` keeps them.

    Attributes
    ----------
    tree : 0 for none, shape (nodes,).
    parent : the next node towards the terminal, negative where there is none.
    link : the arc between the two that flow takes.
    distance, stamp : nodes up to the terminal, as known at a time.
    following : the next node in a queue, itself for the last one, -1 for none.
    orphans : a ring, its length a power of 2.
    counters : see `cut_kernels`.
    """

    tree: npt.NDArray[np.int8]
    parent: Shorts
    link: Shorts
    distance: Shorts
    stamp: Shorts
    following: Shorts
    orphans: Shorts
    counters: Ints

    @classmethod
    def of(cls, nodes: int) -> Forest:
        """Room for so many nodes."""
        parent, link, distance, stamp, following = np.empty((5, nodes), np.int32)
        ring = np.empty(1 << nodes.bit_length(), np.int32)
        tree = np.empty(nodes, np.int8)
        return cls(tree, parent, link, distance, stamp, following, ring, np.empty(5, np.int64))


class Grid(NamedTuple):
    """A grid whose rows are padded, so that each starts with a word of its own.

    Attributes
    ----------
    rows, columns : those of the grid.
    words, stride : of a row: words, and sites with those of the padding, of which a row has one at
        least.
    sites : of each node, shape (nodes,).
    steps : to the neighbours on the right, on the left, below and above.
    base : capacities of the arcs to them, shape (sites, 4); one more row than the grid has.
    """

    rows: int
    columns: int
    words: int
    stride: int
    sites: Ints
    steps: Ints
    base: Floats


class Sheet(NamedTuple):
    """Arrays of `cut_grid_kernels` for each site, or as a set of sites, a row of words each.

    Attributes
    ----------
    residual, excess, heights : as in push and relabel, the residual capacities as `Grid.base`.
    open : arcs that are not saturated, shape (words, 4).
    active : sites with excess that might reach the sink.
    lost : sites that cannot reach the sink any more.
    seen, front, ahead : during a search.
    busy : rows in which the two fronts have sites, shape (2, rows).
    """

    residual: Floats
    excess: Floats
    heights: Shorts
    open: Words
    active: Words
    lost: Words
    seen: Words
    front: Words
    ahead: Words
    busy: Bools

    @classmethod
    def of(cls, grid: Grid) -> Sheet:
        """Room for the sites of a grid."""
        size, words = len(grid.base), len(grid.base) // 64
        seen, front, ahead, active, lost = np.zeros((5, words), np.uint64)
        busy = np.zeros((2, grid.rows), np.bool_)
        arrays = np.zeros((size, 4)), np.empty(size), np.empty(size, np.int32), np.zeros((words, 4), np.uint64)
        # What no kernel writes is 0: the padding.
        return cls(*arrays, active, lost, seen, front, ahead, busy)
