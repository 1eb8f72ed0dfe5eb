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
    beliefs : log-potentials of each state of a variable given those outside, with noise and messages, shape (sum of
        states,).
    region, inside : variables of a region, and whether each is in it, shape (n,).
    states : the configuration that moves, shape (n,).
    """

    order: Ints
    link: Ints
    near: Ints
    edge: Ints
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
def move(m: Messages, unary: Floats, size: int, heat: float, stream: np.uint64, w: Block) -> np.uint64:
    """Set the variables of the tree to maximise phi plus Gumbel noise of scale `heat`, given the others; returns
    the stream.
    """
    offsets, source, _, _, tables, places, first, incoming = m
    states = w.states
    for k in range(size):
        v = w.order[k]
        low, count = offsets[v], offsets[v + 1] - offsets[v]
        for x in range(count):
            w.beliefs[low + x] = unary[low + x]
        for q in range(first[v], first[v + 1]):
            d = incoming[q]
            u = source[d]
            if w.link[u] == -2:
                entry, step = places[d] + states[u], offsets[u + 1] - offsets[u]
                for x in range(count):
                    w.beliefs[low + x] += tables[entry + x * step]
        if heat > 0:
            for x in range(count):
                stream, uniform = draw(stream)
                w.beliefs[low + x] -= heat * np.log(-np.log(max(uniform, 1e-300)))
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
        low, best, at = offsets[v], -np.inf, 0
        for x in range(offsets[v + 1] - low):
            tied = 0.0
            if w.link[v] >= 0:
                u = source[w.link[v]]
                tied = tables[places[w.link[v]] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            if w.beliefs[low + x] + tied > best:
                best, at = w.beliefs[low + x] + tied, x
        states[v] = at
    for k in range(size):
        v = w.order[k]
        w.link[v] = -2
        for q in range(first[v], first[v + 1]):
            w.near[source[incoming[q]]] = 0
    return stream


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


@helper()
def cool(
    m: Messages, unary: Floats, count: int, start: float, planned: int, stream: np.uint64, w: Block
) -> tuple[int, np.uint64]:
    """Anneal the region of so many variables by maxima over random trees in it, then without noise; returns the
    visits of variables and the stream.

    Parameters
    ----------
    start : temperature at first, in nats.
    planned : visits with noise.
    """
    spent = 0
    while spent < planned + QUIET * count:
        stream, uniform = draw(stream)
        root = w.region[int(uniform * count)]
        stream, uniform = draw(stream)
        size, stream = tree(m, root, int(count**uniform + 0.5), stream, w)
        heat = start * END ** (spent / planned) if spent < planned else 0.0
        stream = move(m, unary, size, heat, stream, w)
        spent += size
    for k in range(count):
        w.inside[w.region[k]] = False
    return spent, stream


@helper()
def gain_of(m: Messages, unary: Floats, v: int, best: Ints, w: Block) -> float:
    """What the new state of a variable gains in phi, with half of the gain of pairs that it has in common with another
    variable that has a new state.
    """
    offsets, source, _, _, tables, places, first, incoming = m
    new, old = w.states[v], best[v]
    gain = unary[offsets[v] + new] - unary[offsets[v] + old]
    for q in range(first[v], first[v + 1]):
        d = incoming[q]
        u = source[d]
        step = offsets[u + 1] - offsets[u]
        tied = tables[places[d] + new * step + w.states[u]] - tables[places[d] + old * step + best[u]]
        gain += tied if w.states[u] == best[u] else 0.5 * tied
    return float(gain)


@helper()
def settle(m: Messages, unary: Floats, count: int, best: Ints, w: Block) -> None:
    """Keep the new states of each connected part of what has changed in the region if they gain, and its old ones if
    not. No pair links two parts.
    """
    for k in range(count):
        w.inside[w.region[k]] = w.states[w.region[k]] != best[w.region[k]]
    for k in range(count):
        if not w.inside[w.region[k]]:
            continue
        w.order[0], w.inside[w.region[k]] = w.region[k], False
        size, done, gain = 1, 0, 0.0
        while done < size:
            v = w.order[done]
            done += 1
            gain += gain_of(m, unary, v, best, w)
            for q in range(m.first[v], m.first[v + 1]):
                u = m.source[m.incoming[q]]
                if w.inside[u]:
                    w.order[size], w.inside[u] = u, False
                    size += 1
        for i in range(size):
            v = w.order[i]
            if gain > 0:
                best[v] = w.states[v]
            else:
                w.states[v] = best[v]


@kernel()
def search(
    m: Messages, unary: Floats, cold: float, hot: float, visits: int, stream: np.uint64, best: Ints, w: Block
) -> np.uint64:
    """Improve a configuration in place by annealing one region after the other; returns the stream.

    A region of random size is cooled from a random temperature.

    Parameters
    ----------
    cold, hot : temperatures between which a region begins, uniform in the logarithm, in nats.
    visits : number of visits of variables after which no other region begins.
    best : the configuration, shape (n,).
    w : working memory.
    """
    n = best.size
    for v in range(n):
        w.states[v] = best[v]
    while visits > 0:
        stream, uniform = draw(stream)
        centre = int(uniform * n)
        stream, uniform = draw(stream)
        least = min(n, SMALLEST)
        count = surround(m, centre, int(least * (n / least) ** uniform + 0.5), w)
        stream, uniform = draw(stream)
        start = hot * (cold / hot) ** uniform
        stream, uniform = draw(stream)
        planned = int(min(count * FEWEST * (MOST / FEWEST) ** uniform, visits))
        spent, stream = cool(m, unary, count, start, planned, stream, w)
        visits -= spent
        settle(m, unary, count, best, w)
    return stream


@kernel()
def anneal(m: Messages, unary: Floats, start: float, visits: int, stream: np.uint64, w: Block) -> np.uint64:
    """Anneal all variables from any states, in `states`; returns the stream."""
    n = w.states.size
    for v in range(n):
        w.region[v], w.inside[v] = v, True
    return cool(m, unary, n, start, visits, stream, w)[1]
