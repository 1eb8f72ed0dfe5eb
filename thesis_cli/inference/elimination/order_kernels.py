"""Compiled greedy search for an elimination order; tests compare it with a plain reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel


class Lists(NamedTuple):
    """Neighbours of v are those of pool[starts[v]:starts[v] + lengths[v]] that are not eliminated.

    They keep eliminated variables until they are scanned again, so that a leaf of a large star
    costs nothing.

    Attributes
    ----------
    room : space for neighbours.
    degrees : number of neighbours that are not eliminated.
    left : 0 for an eliminated variable.
    stamps : marks of passing use.
    fill, table : number of pairs of neighbours that no edge joins, and log2 of the table that
        eliminating v takes.
    touched : the last step that changed either.
    changed : the variables that this step changed; their number is at the end.
    """

    starts: Ints
    lengths: Ints
    room: Ints
    degrees: Ints
    left: Ints
    stamps: Ints
    fill: Floats
    table: Floats
    touched: Ints
    changed: Ints


@helper()
def settle(heap: Ints, place: Ints, keys: Floats, count: int, v: int) -> None:
    """Move variable v to where its key belongs in a binary heap of `count` variables."""
    at = place[v]
    key = keys[v]
    while at > 0:
        above = heap[(at - 1) // 2]
        if keys[above] < key or (keys[above] == key and above < v):
            break
        heap[at] = above
        place[above] = at
        at = (at - 1) // 2
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count:
            left, right = heap[child], heap[child + 1]
            if keys[right] < keys[left] or (keys[right] == keys[left] and right < left):
                child += 1
        below = heap[child]
        if key < keys[below] or (key == keys[below] and v < below):
            break
        heap[at] = below
        place[below] = at
        at = child
    heap[at] = v
    place[v] = at


@helper()
def empty_lists(n: int) -> Lists:
    """Lists of n variables, with anything in them."""
    return Lists(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n + 1, np.int64),
    )


@helper()
def prepare(lists: Lists, first: Ints, adjacent: Ints, bits: Floats, by_fill: bool) -> None:
    """Fill in the lists of a graph, and what eliminating each variable takes."""
    stamps = lists.stamps
    for v in range(bits.size):
        lists.starts[v] = first[v]
        lists.degrees[v] = lists.lengths[v] = lists.room[v] = first[v + 1] - first[v]
        lists.left[v], stamps[v], lists.touched[v] = 1, -1, -1
        lists.table[v] = bits[v]
        lists.fill[v] = 0
        for q in range(first[v], first[v + 1]):
            lists.table[v] += bits[adjacent[q]]
    for v in range(bits.size if by_fill else 0):
        for q in range(first[v], first[v + 1]):
            stamps[adjacent[q]] = v
        joined = 0
        for q in range(first[v], first[v + 1]):
            a = adjacent[q]
            for r in range(first[a], first[a + 1]):
                if stamps[adjacent[r]] == v:
                    joined += 1
        lists.fill[v] = (lists.degrees[v] * (lists.degrees[v] - 1) - joined) // 2


@helper()
def touch(lists: Lists, v: int, step: int) -> None:
    """Note that a step changes v."""
    if lists.touched[v] != step:
        lists.touched[v] = step
        lists.changed[lists.changed[-1]] = v
        lists.changed[-1] += 1


@helper()
def remove(lists: Lists, pool: Ints, v: int, near: Ints, share: float, step: int) -> int:
    """Eliminate v, whose table is smaller than its neighbours' by `share`; write them to `near` and
    return their number.
    """
    lists.left[v] = 0
    lists.changed[-1] = 0
    count = 0
    for q in range(lists.starts[v], lists.starts[v] + lists.lengths[v]):
        a = pool[q]
        if lists.left[a]:
            near[count] = a
            count += 1
            lists.degrees[a] -= 1
            lists.table[a] -= share
            touch(lists, a, step)
    return count


@helper()
def most_joined(lists: Lists, near: Ints, count: int) -> int:
    """The one of near[:count] with most neighbours."""
    hub: int = near[0]
    for p in range(1, count):
        if lists.degrees[near[p]] > lists.degrees[hub]:
            hub = near[p]
    return hub


@helper()
def lose_fill(lists: Lists, pool: Ints, near: Ints, count: int, stamp: int) -> int:
    """Neighbours of an eliminated variable no longer count its pairs with others; returns the work."""
    if count == 1:
        lists.fill[near[0]] -= lists.degrees[near[0]]
        return 0
    work = 0
    for p in range(count):
        lists.stamps[near[p]] = stamp
    for p in range(count):
        a = near[p]
        work += lists.lengths[a]
        lists.fill[a] -= lists.degrees[a]
        for q in range(lists.starts[a], lists.starts[a] + lists.lengths[a]):
            if lists.left[pool[q]] and lists.stamps[pool[q]] == stamp:
                lists.fill[a] += 1
    return work


@helper()
def mark(lists: Lists, pool: Ints, v: int, stamp: int) -> None:
    """Stamp v and its neighbours, and drop the eliminated ones from its list."""
    at = lists.starts[v]
    for q in range(at, at + lists.lengths[v]):
        b = pool[q]
        if lists.left[b]:
            pool[at] = b
            at += 1
            lists.stamps[b] = stamp
    lists.lengths[v] = at - lists.starts[v]
    lists.stamps[v] = stamp


@helper()
def share_fill(lists: Lists, pool: Ints, a: int, b: int, stamp: int, step: int) -> None:
    """Update the fill for a new edge between a, whose neighbours are stamped, and b."""
    common = 0
    for q in range(lists.starts[b], lists.starts[b] + lists.lengths[b]):
        c = pool[q]
        if lists.left[c] and lists.stamps[c] == stamp:
            common += 1
            lists.fill[c] -= 1
            touch(lists, c, step)
    lists.fill[a] += lists.degrees[a] - common
    lists.fill[b] += lists.degrees[b] - common


@helper()
def append(lists: Lists, pool: Ints, used: int, v: int, neighbour: int) -> tuple[Ints, int]:
    """Add a neighbour to v's list, which moves to the end of the pool if it is full; returns the
    pool and its used length.
    """
    starts, lengths, room = lists.starts, lists.lengths, lists.room
    if lengths[v] == room[v]:
        wanted = 2 * room[v] + 4
        if used + wanted > pool.size:
            grown = np.empty(2 * pool.size + wanted, np.int64)
            for q in range(used):
                grown[q] = pool[q]
            pool = grown
        for q in range(lengths[v]):
            pool[used + q] = pool[starts[v] + q]
        starts[v] = used
        room[v] = wanted
        used += wanted
    pool[starts[v] + lengths[v]] = neighbour
    lengths[v] += 1
    lists.degrees[v] += 1
    return pool, used


@helper()
def add_bits(a: float, b: float) -> float:
    """log2 of the sum of two numbers that are given by theirs."""
    return max(a, b) + float(np.log2(1.0 + 2.0 ** (-abs(a - b))))


@helper()
def finish(members: Ints, bits: Floats, order: Ints, total: float) -> float:
    """Eliminate the variables of a clique last, and return log2 of the sum of all tables."""
    rest: float = 0.0
    for v in members:
        rest += bits[v]
    done = order.size - members.size
    for v in members:
        order[done] = v
        total = rest if done == 0 else add_bits(total, rest)
        rest -= bits[v]
        done += 1
    return total


@kernel()
def greedy_order(
    first: Ints, adjacent: Ints, bits: Floats, ties: Floats, weights: Floats, limits: Floats
) -> tuple[Ints, Floats, int, int]:
    """Eliminate the variable of least key next: weights[0] times the edges that it adds, plus
    weights[1] times the logarithm of its table, plus ties[v].

    Parameters
    ----------
    first, adjacent : neighbours of v are adjacent[first[v]:first[v + 1]].
    bits : log2 of the number of states.
    limits : log2 of the table sizes' sum beyond which the order is abandoned; work beyond which the
        variables left are taken for one clique.

    Returns
    -------
    order : shorter than `bits` if abandoned.
    bits : log2 of the sum of the tables, and of the largest.
    width : variables of the largest clique, less one.
    work : scanned neighbours.
    """
    n = bits.size
    lists = empty_lists(n)
    by_fill = weights[0] > 0
    prepare(lists, first, adjacent, bits, by_fill)
    pool = adjacent.copy()
    used, edges = pool.size, pool.size // 2
    keys = weights[0] * lists.fill + weights[1] * lists.table + ties
    heap, place, order, near = np.arange(n), np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        settle(heap, place, keys, v + 1, v)
    total: float = 0.0
    largest: float = 0.0
    work = width = done = 0
    stamp, left = n, n
    while left > 0 and 2 * edges < left * (left - 1) and work <= limits[1]:
        v = heap[0]
        left -= 1
        heap[0] = heap[left]
        place[heap[0]] = 0
        settle(heap, place, keys, left, heap[0])
        order[done] = v
        total = lists.table[v] if done == 0 else add_bits(total, lists.table[v])
        largest = max(largest, lists.table[v])
        done += 1
        if total > limits[0]:
            return order[:done], np.array([total, largest]), width, work
        count = remove(lists, pool, v, near, bits[v], done)
        width = max(width, count)
        edges -= count
        if by_fill:
            stamp += 1
            work += lose_fill(lists, pool, near, count, stamp)
        hub = most_joined(lists, near, count)
        for p in range(count):
            a = near[p]
            if a == hub:  # its pairs are found from the other side
                continue
            stamp += 1
            work += lists.lengths[a]
            mark(lists, pool, a, stamp)
            for r in range(count):
                b = near[r]
                if lists.stamps[b] != stamp:
                    if by_fill:
                        work += lists.lengths[b]
                        share_fill(lists, pool, a, b, stamp, done)
                    lists.stamps[b] = stamp
                    edges += 1
                    pool, used = append(lists, pool, used, a, b)
                    pool, used = append(lists, pool, used, b, a)
                    lists.table[a] += bits[b]
                    lists.table[b] += bits[a]
        for p in range(lists.changed[-1]):
            a = lists.changed[p]
            keys[a] = weights[0] * lists.fill[a] + weights[1] * lists.table[a] + ties[a]
            settle(heap, place, keys, left, a)
        work += 8 + lists.lengths[v] + 4 * lists.changed[-1]
    largest = max(largest, bits[heap[:left]].sum())
    total = finish(np.sort(heap[:left]), bits, order, total)
    return order, np.array([total, largest]), max(width, left - 1), work
