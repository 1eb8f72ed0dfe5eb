"""Local searches for structures that are too many for an exact maximum; deterministic."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints

LEAST_GAIN = 1e-12
"""Smaller gains are rounding, and could alternate for ever."""

STARTS = 5


def best_order(before: Floats) -> Ints:
    """Items in an order that moving one item does not improve; the best one from a few starts.

    Parameters
    ----------
    before : score of each row's item coming before each column's item, shape (d, d).

    Returns
    -------
    The items from first to last.
    """
    rng = np.random.default_rng(0)
    net = before - before.T
    starts = [np.argsort(-net.sum(axis=1), kind="stable")]
    starts += [rng.permutation(len(net)) for _ in range(STARTS - 1)]
    found = [_insertions(net, start) for start in starts]
    return max(found, key=lambda order: float(np.triu(net[np.ix_(order, order)]).sum()))


def _insertions(net: Floats, order: Ints) -> Ints:
    while True:
        gains = np.zeros_like(net)
        ordered = net[np.ix_(order, order)]
        for at in range(len(order)):
            gains[at, at + 1 :] = -np.cumsum(ordered[at, at + 1 :])
            gains[at, :at] = np.cumsum(ordered[at, :at][::-1])[::-1]
        source, target = np.unravel_index(gains.argmax(), gains.shape)
        if gains[source, target] <= LEAST_GAIN:
            return order
        order = np.insert(np.delete(order, source), target, order[source])


def best_cycle(edges: Floats, every_vertex: bool) -> Ints:
    """A cycle that no exchange of two edges, and no vertex more or less, improves.

    Parameters
    ----------
    edges : symmetric scores of edges, shape (d, d).
    every_vertex : whether the cycle must have all vertices.

    Returns
    -------
    Its vertices in order.
    """
    rng = np.random.default_rng(0)
    count = len(edges)
    starts = [rng.permutation(count) for _ in range(STARTS)]
    if not every_vertex:
        starts += [rng.permutation(count)[:3] for _ in range(STARTS)]
    found = [_improved_cycle(edges, start, every_vertex) for start in starts]
    return max(found, key=lambda cycle: float(edges[cycle, np.roll(cycle, -1)].sum()))


def _improved_cycle(edges: Floats, cycle: Ints, every_vertex: bool) -> Ints:
    while True:
        after = np.roll(cycle, -1)
        own = edges[cycle, after]
        exchange = edges[np.ix_(cycle, cycle)] + edges[np.ix_(after, after)] - own[:, None] - own
        exchange = np.triu(exchange, 1)
        first, second = np.unravel_index(exchange.argmax(), exchange.shape)
        best, then = exchange[first, second], cycle.copy()
        then[first + 1 : second + 1] = cycle[first + 1 : second + 1][::-1]
        if not every_vertex:
            outside = np.setdiff1d(np.arange(len(edges)), cycle)
            if outside.size:
                more = edges[np.ix_(outside, cycle)] + edges[np.ix_(outside, after)] - own
                vertex, place = np.unravel_index(more.argmax(), more.shape)
                if more[vertex, place] > best:
                    best, then = more[vertex, place], np.insert(cycle, place + 1, outside[vertex])
            if len(cycle) > 3:
                less = edges[np.roll(cycle, 1), after] - np.roll(own, 1) - own
                if less.max() > best:
                    best, then = less.max(), np.delete(cycle, less.argmax())
        if best <= LEAST_GAIN:
            return cycle
        cycle = then


def best_partition(pairs: Floats) -> Ints:
    """A partition that moving one element to another block, or to one of its own, does not improve.

    Parameters
    ----------
    pairs : symmetric scores of pairs in one block, zero diagonal, shape (d, d).

    Returns
    -------
    A number for the block of each element.
    """
    rng = np.random.default_rng(0)
    count = len(pairs)
    starts = [np.arange(count), np.zeros(count, np.int64)]
    starts += [rng.integers(0, count, count) for _ in range(STARTS)]
    found = [_moved(pairs, start) for start in starts]
    return max(found, key=lambda blocks: float(pairs[blocks[:, None] == blocks].sum()))


def _moved(pairs: Floats, blocks: Ints) -> Ints:
    count = len(pairs)
    members = np.zeros((count, count + 1))
    members[np.arange(count), blocks] = 1.0
    while True:
        free = int(np.flatnonzero(members.sum(axis=0) == 0)[0])
        towards = pairs @ members
        gains = towards - (towards * members).sum(axis=1)[:, None]
        occupied = members.sum(axis=0) > 0
        occupied[free] = True
        gains[:, ~occupied] = -np.inf
        element, block = np.unravel_index(gains.argmax(), gains.shape)
        if gains[element, block] <= LEAST_GAIN:
            return np.asarray(members.argmax(axis=1))
        members[element] = 0.0
        members[element, block] = 1.0
