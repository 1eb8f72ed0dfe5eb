"""Compiled maximum flows; tests compare them with a plain reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel

if TYPE_CHECKING:
    from thesis_cli.inference.graph_cut.flow_arrays import Arcs, Forest

SOURCE, SINK = 1, 2
"""Trees; 0 is neither."""
ROOT, FREE, ORPHAN = -1, -2, -3
"""Values of `parent` for a node without one: joined to a terminal, in no tree, to be adopted."""
FIRST, LAST, CLOCK, TAKEN, LOST = range(5)
"""Counters of a forest: ends of the queue of active nodes, time, orphans adopted and lost."""
FAR = 2**30


@helper()
def push_along(arcs: Arcs, base: Floats, residual: Floats, excess: Floats) -> None:
    """A first flow: each edge in order takes what its lower end can give or needs; then each in
    reverse order gives back what its higher end has not used.
    """
    ends = arcs.ends
    for e in range(ends.shape[0]):
        i, j = ends[e, 0], ends[e, 1]
        pushed = max(min(excess[i], base[2 * e]), -base[2 * e + 1])
        residual[2 * e], residual[2 * e + 1] = base[2 * e] - pushed, base[2 * e + 1] + pushed
        excess[i] -= pushed
        excess[j] += pushed
    for e in range(ends.shape[0] - 1, -1, -1):
        hard = base[2 * e] == np.inf
        # Not a number, hence neither case below, if both capacities are infinite.
        pushed = residual[2 * e + 1] - base[2 * e + 1] if hard else base[2 * e] - residual[2 * e]
        i, j = ends[e, 0], ends[e, 1]
        unused = 0.0
        if pushed > 0:
            unused = min(pushed, max(excess[j], 0.0))
        elif pushed < 0:
            unused = max(pushed, min(excess[j], 0.0))
        residual[2 * e] += unused
        residual[2 * e + 1] -= unused
        excess[i] += unused
        excess[j] -= unused


@helper()
def activate(f: Forest, i: int) -> None:
    """Append a node to the queue of active nodes unless it is there."""
    counters, following = f.counters, f.following
    if following[i] < 0:
        if counters[LAST] < 0:
            counters[FIRST] = i
        else:
            following[counters[LAST]] = i
        following[i] = counters[LAST] = i


@helper()
def next_active(f: Forest) -> int:
    """Remove the first active node that is in a tree from the queue; -1 if there is none."""
    counters, following = f.counters, f.following
    while counters[FIRST] >= 0:
        i = counters[FIRST]
        if following[i] == i:
            counters[FIRST] = counters[LAST] = -1
        else:
            counters[FIRST] = following[i]
        following[i] = -1
        if f.tree[i] != 0:
            return int(i)
    return -1


@helper()
def grow(arcs: Arcs, residual: Floats, f: Forest, i: int) -> int:
    """Add what node i reaches to its tree; returns the first position whose arc leads into the
    other tree, -1 if there is none.
    """
    tree, parent, link, distance, stamp = f.tree, f.parent, f.link, f.distance, f.stamp
    own = tree[i]
    for q in range(arcs.starts[i], arcs.starts[i + 1]):
        # The arc that flow takes: from i in the tree of the source, to i in that of the sink.
        a, j = arcs.leaving[q] ^ (own == SINK), arcs.heads[q]
        if residual[a] > 0:
            if tree[j] == 0:
                tree[j] = own
                activate(f, j)
            elif tree[j] != own:
                return int(q)
            elif stamp[j] > stamp[i] or distance[j] <= distance[i]:
                continue
            parent[j], link[j], stamp[j], distance[j] = i, a, stamp[i], distance[i] + 1
    return -1


@helper()
def orphan(f: Forest, i: int) -> None:
    """Note that a node has lost its parent."""
    f.parent[i] = ORPHAN
    f.orphans[f.counters[LOST] & (f.orphans.size - 1)] = i
    f.counters[LOST] += 1


@helper()
def augment(residual: Floats, excess: Floats, f: Forest, at: int, across: int, a: int) -> None:
    """Send as much as fits along arc a, from the root of `at` to that of `across`."""
    parent, link = f.parent, f.link
    amount = residual[a]
    for side in range(2):
        k = across if side else at
        while parent[k] >= 0:
            amount = min(amount, residual[link[k]])
            k = parent[k]
        amount = min(amount, abs(excess[k]))
    residual[a] -= amount
    residual[a ^ 1] += amount
    for side in range(2):
        k = across if side else at
        while parent[k] >= 0:
            b, above = link[k], parent[k]
            residual[b] -= amount
            residual[b ^ 1] += amount
            if residual[b] <= 0:
                orphan(f, k)
            k = above
        excess[k] += amount if excess[k] < 0 else -amount
        if excess[k] == 0:
            orphan(f, k)


@helper()
def depth(f: Forest, start: int) -> int:
    """Distance of a node from its terminal, noted along the way; `FAR` below an orphan."""
    parent, distance, stamp, now = f.parent, f.distance, f.stamp, f.counters[CLOCK]
    k, steps = start, 0
    while stamp[k] != now and parent[k] >= 0:
        k = parent[k]
        steps += 1
    if stamp[k] != now:
        if parent[k] != ROOT:
            return FAR
        stamp[k], distance[k] = now, 1
    found = steps = steps + distance[k]
    k = start
    while stamp[k] != now:
        stamp[k], distance[k] = now, steps
        steps -= 1
        k = parent[k]
    return int(found)


@helper()
def adopt(arcs: Arcs, residual: Floats, f: Forest) -> None:
    """Find a new parent for each orphan in its tree, or set it free and its children after it."""
    tree, parent, counters = f.tree, f.parent, f.counters
    while counters[TAKEN] < counters[LOST]:
        i = f.orphans[counters[TAKEN] & (f.orphans.size - 1)]
        counters[TAKEN] += 1
        own, nearest = tree[i], FAR
        for q in range(arcs.starts[i], arcs.starts[i + 1]):
            a, j = arcs.leaving[q] ^ (own == SOURCE), arcs.heads[q]
            if tree[j] == own and residual[a] > 0:
                away = depth(f, j)
                if away < nearest:
                    nearest = away
                    parent[i], f.link[i] = j, a
        if nearest < FAR:
            f.stamp[i], f.distance[i] = counters[CLOCK], nearest + 1
            continue
        for q in range(arcs.starts[i], arcs.starts[i + 1]):
            a, j = arcs.leaving[q] ^ (own == SOURCE), arcs.heads[q]
            if tree[j] == own:
                if residual[a] > 0:
                    activate(f, j)
                if parent[j] == i:
                    orphan(f, j)
        tree[i], parent[i] = 0, FREE


@kernel()
def minimum_cuts(arcs: Arcs, base: Floats, residual: Floats, f: Forest, excess: Floats, labels: Ints) -> None:
    """Minimum cuts by two search trees that are kept between augmenting paths (Boykov and
    Kolmogorov, 2004).

    Parameters
    ----------
    base : capacities of the arcs, those of an edge and of its reverse beside each other.
    residual : scratch of the same shape.
    excess : capacity from the source, to the sink if negative, a row for each cut; overwritten.
    labels : 1 where the sink can be reached in the end, 0 elsewhere; as `excess`.
    """
    tree, counters = f.tree, f.counters
    for row in range(len(excess)):
        left = excess[row]
        push_along(arcs, base, residual, left)
        counters[FIRST] = counters[LAST] = -1
        counters[CLOCK] = counters[TAKEN] = counters[LOST] = 0
        for i in range(left.size):
            f.stamp[i], f.distance[i], f.following[i] = 0, 1, -1
            tree[i], f.parent[i] = 0, FREE
            if left[i] != 0:
                tree[i], f.parent[i] = SOURCE if left[i] > 0 else SINK, ROOT
                activate(f, i)
        i = next_active(f)
        while i >= 0:
            q = grow(arcs, residual, f, i)
            counters[CLOCK] += 1
            if q < 0:
                i = next_active(f)
                continue
            j, a = arcs.heads[q], arcs.leaving[q] ^ (tree[i] == SINK)
            augment(residual, left, f, i, j, a)
            adopt(arcs, residual, f)
            if tree[i] == 0:
                i = next_active(f)
        for i in range(left.size):
            labels[row, i] = tree[i] == SINK
