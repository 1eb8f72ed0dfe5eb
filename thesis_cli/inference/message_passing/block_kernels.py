"""Compiled moves of blocks of variables: annealing in regions, by the exact maximum over a random tree under noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.inference.message_passing.spin_kernels import draw

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import Messages

SMALLEST = 8
"""Variables of a region at least, if the model has as many."""

FEWEST, MOST = 4.0, 64.0
"""Visits of each variable of a region, between which a random number is drawn, uniform in its logarithm."""

END = 0.02
"""Share of its first temperature at which a region ends, before moves without noise."""

QUIET = 2
"""Visits of each variable without noise."""


class Block(NamedTuple):
    """Working memory of moves; each array is reset by the move that fills it.

    Attributes
    ----------
    order, link : variables of the tree, parents first, and the message from the parent of each variable, -1 for
        the root and -2 outside, shape (n,).
    near : number of neighbours of each variable in the tree, shape (n,).
    edge : messages that lead out of the tree, shape (2E + 1,).
    base, beliefs : log-potentials of each state of a variable given those outside, without and with noise and
        messages, shape (sum of states,).
    region, inside : variables of a region, and whether each is in it, shape (n,).
    states : the configuration that moves, shape (n,).
    """

    order: Ints
    link: Ints
    near: Ints
    edge: Ints
    base: Floats
    beliefs: Floats
    region: Ints
    inside: Bools
    states: Ints


@helper()
def tree(m: Messages, root: int, most: int, stream: np.uint64, w: Block) -> tuple[int, np.uint64]:
    """Grow a random induced tree of at most so many variables within the region; returns its size and the stream."""
    size, leading = 0, 0
    v, via = root, -1
    while True:
        w.order[size], w.link[v] = v, via
        size += 1
        for q in range(m.first[v], m.first[v + 1]):
            u = m.source[m.incoming[q]]
            w.near[u] += 1
            if w.inside[u] and w.link[u] == -2:
                w.edge[leading] = m.incoming[q] ^ 1
                leading += 1
        found = False
        while leading > 0 and size < most and not found:
            stream, uniform = draw(stream)
            k = int(uniform * leading)
            via = w.edge[k]
            leading -= 1
            w.edge[k] = w.edge[leading]
            v = m.target[via]
            found = w.link[v] == -2 and w.near[v] == 1
        if not found:
            return size, stream


@helper()
def move(m: Messages, unary: Floats, size: int, heat: float, stream: np.uint64, w: Block) -> tuple[float, np.uint64]:
    """Set the variables of the tree to maximise phi plus Gumbel noise of scale `heat`, given the others; returns
    the gain of phi and the stream.
    """
    offsets, source, _, _, tables, places, first, incoming = m
    states, gain = w.states, 0.0
    for k in range(size):
        v = w.order[k]
        low, count = offsets[v], offsets[v + 1] - offsets[v]
        for x in range(count):
            w.base[low + x] = unary[low + x]
        for q in range(first[v], first[v + 1]):
            d = incoming[q]
            u = source[d]
            if w.link[u] == -2:
                entry, step = places[d] + states[u], offsets[u + 1] - offsets[u]
                for x in range(count):
                    w.base[low + x] += tables[entry + x * step]
        gain -= w.base[low + states[v]]
        if w.link[v] >= 0:
            u = source[w.link[v]]
            gain -= tables[places[w.link[v]] + states[v] * (offsets[u + 1] - offsets[u]) + states[u]]
        for x in range(count):
            noise = 0.0
            if heat > 0:
                stream, uniform = draw(stream)
                noise = -heat * np.log(-np.log(max(uniform, 1e-300)))
            w.beliefs[low + x] = w.base[low + x] + noise
    for k in range(size - 1, 0, -1):
        v = w.order[k]
        d = w.link[v]
        u, entry, count = source[d], places[d ^ 1], offsets[v + 1] - offsets[v]
        for y in range(offsets[u + 1] - offsets[u]):
            best = -np.inf
            for x in range(count):
                best = max(best, tables[entry + y * count + x] + w.beliefs[offsets[v] + x])
            w.beliefs[offsets[u] + y] += best
    for k in range(size):
        v = w.order[k]
        low, best, at, pair = offsets[v], -np.inf, 0, 0.0
        for x in range(offsets[v + 1] - low):
            tied = 0.0
            if w.link[v] >= 0:
                u = source[w.link[v]]
                tied = tables[places[w.link[v]] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            if w.beliefs[low + x] + tied > best:
                best, at, pair = w.beliefs[low + x] + tied, x, tied
        states[v] = at
        gain += w.base[low + at] + pair
    for k in range(size):
        v = w.order[k]
        w.link[v] = -2
        for q in range(first[v], first[v + 1]):
            w.near[source[incoming[q]]] = 0
    return gain, stream


@helper()
def surround(m: Messages, centre: int, most: int, w: Block) -> int:
    """Take the variables nearest to a centre into the region, at most so many; returns their number."""
    w.region[0], w.inside[centre] = centre, True
    size, done = 1, 0
    while done < size < most:
        v = w.region[done]
        done += 1
        for q in range(m.first[v], m.first[v + 1]):
            u = m.source[m.incoming[q]]
            if size < most and not w.inside[u]:
                w.region[size], w.inside[u] = u, True
                size += 1
    return size


@kernel()
def search(
    m: Messages, unary: Floats, cold: float, hot: float, visits: int, stream: np.uint64, best: Ints, w: Block
) -> np.uint64:
    """Improve a configuration in place by annealing one region after the other; returns the stream.

    A region of random size is cooled from a random temperature and then without noise, by maxima over random
    trees within it. It keeps its new states if they are better, and its old ones otherwise.

    Parameters
    ----------
    cold, hot : temperatures between which a region begins, uniform in the logarithm, in nats.
    visits : number of visits of variables after which no other region begins.
    best : the configuration, shape (n,).
    w : working memory, with `best` in `states`.
    """
    n = best.size
    while visits > 0:
        stream, uniform = draw(stream)
        centre = int(uniform * n)
        stream, uniform = draw(stream)
        least = min(n, SMALLEST)
        count = surround(m, centre, int(least * (n / least) ** uniform + 0.5), w)
        stream, uniform = draw(stream)
        start = hot * (cold / hot) ** uniform
        stream, uniform = draw(stream)
        planned = int(count * FEWEST * (MOST / FEWEST) ** uniform)
        spent, gain = 0, 0.0
        while spent < planned + QUIET * count:
            stream, uniform = draw(stream)
            root = w.region[int(uniform * count)]
            stream, uniform = draw(stream)
            size, stream = tree(m, root, int(count**uniform + 0.5), stream, w)
            heat = start * END ** (spent / planned) if spent < planned else 0.0
            found, stream = move(m, unary, size, heat, stream, w)
            gain += found
            spent += size
        visits -= spent
        for k in range(count):
            v = w.region[k]
            w.inside[v] = False
            if gain > 0:
                best[v] = w.states[v]
            else:
                w.states[v] = best[v]
    return stream
