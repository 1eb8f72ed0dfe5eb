"""Compiled TRW-S and local search on spins; tests compare them with plain references."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.inference.belief_kernels import MIX_1, MIX_2, S27, S30, S31, S32, WEYL
from thesis_cli.inference.spins import Climb

if TYPE_CHECKING:
    from thesis_cli.inference.spins import Forests, Spins
    from thesis_cli.inference.trws import Bounded, Limits

AFTER, SPREAD = 16, 4.0
"""Forests that are maximised after a disturbed one, and the largest disturbance of a field as a
multiple of the sum of the couplings around it."""

NEGLIGIBLE, STALLED = 1e-14, 1e-5
"""Shares of the sum of all fields and couplings: what a change has to gain, lest rounding turns
spins for ever, and what a block of rounds has to gain, lest the search ends."""


@kernel()
def levels(n: int, edges: Ints) -> Ints:
    """Length of the longest ascending path to each variable; `edges` are sorted by their lower
    end."""
    level = np.zeros(n, np.int64)
    for e in range(edges.shape[0]):
        level[edges[e, 1]] = max(level[edges[e, 1]], level[edges[e, 0]] + 1)
    return level


@kernel()
def upward(m: Spins, h: Floats, up: Floats, down: Floats, low: Floats, high: Floats, states: Floats) -> float:
    """Decode spins in order and update messages to later ones; returns phi(states) but for the
    constant.

    A message is one number: times the spin of its target it is the log-message less its mean.
    `high` holds the sums of the messages from later spins, and `low` is filled with the sums of
    those from earlier ones."""
    known = np.zeros(h.size)
    low[:] = 0.0
    value = 0.0
    for v in range(h.size):
        own = h[v] + known[v]
        s = 1.0 if own + high[v] > 0.0 else -1.0
        states[v] = s
        value += s * own
        belief = m.share[v] * (h[v] + low[v] + high[v])
        for e in range(m.first[v], m.first[v + 1]):
            rest = belief - down[e]
            up[e] = 0.5 * (abs(rest + m.couplings[e]) - abs(rest - m.couplings[e]))
            low[m.later[e]] += up[e]
            known[m.later[e]] += s * m.couplings[e]
    return value


@kernel()
def downward(
    m: Spins, h: Floats, up: Floats, down: Floats, low: Floats, high: Floats, states: Floats
) -> tuple[float, float]:
    """Decode spins in reverse order and update messages to earlier ones, as `upward`; returns
    phi(states) and the bound on max phi, both but for the constant.

    The bound is the sum of the maxima of monotonic chains, as in TRW-S on tables."""
    known = np.zeros(h.size)
    high[:] = 0.0
    value = bound = 0.0
    for v in range(h.size - 1, -1, -1):
        own = h[v] + known[v]
        s = 1.0 if own + low[v] > 0.0 else -1.0
        states[v] = s
        value += s * own
        belief = h[v] + low[v] + high[v]
        bound += m.begun[v] * abs(belief)
        belief *= m.share[v]
        for q in range(m.last[v], m.last[v + 1]):
            e = m.back[q]
            rest = belief - up[e]
            plus, minus = abs(rest + m.couplings[e]), abs(rest - m.couplings[e])
            bound += 0.5 * (plus + minus)
            down[e] = 0.5 * (plus - minus)
            high[m.earlier[e]] += down[e]
            known[m.earlier[e]] += s * m.couplings[e]
    return value, bound


@helper()
def draw(stream: np.uint64) -> tuple[np.uint64, float]:
    """Next state of the SplitMix64 generator, and a uniform number in [0, 1)."""
    stream += WEYL
    word = (stream ^ (stream >> S30)) * MIX_1
    word = (word ^ (word >> S27)) * MIX_2
    return stream, np.float64((word ^ (word >> S31)) >> S32) * 2.0**-32


@helper()
def root_of(sets: Ints, v: int) -> int:
    """Representative of v's set; halves the path to it."""
    while sets[v] != v:
        sets[v] = sets[sets[v]]
        v = sets[v]
    return v


@helper()
def choose(m: Spins, order: Ints) -> Bools:
    """Mark, in `order`, the places whose edges among themselves form a forest to which no other can
    be added."""
    n = order.size
    sets, chosen, near = np.arange(n), np.zeros(n, np.bool_), np.empty(n, np.int64)
    for v in order:
        count, acyclic = 0, True
        for q in range(m.near_first[v], m.near_first[v + 1]):
            if chosen[m.near[q]]:
                near[count] = root_of(sets, m.near[q])
                for k in range(count):
                    acyclic &= near[k] != near[count]
                count += 1
        if acyclic:
            chosen[v] = True
            for k in range(count):
                sets[near[k]] = v
    return chosen


@kernel()
def grow(m: Spins, order: Ints, members: Ints, parents: Ints, links: Floats) -> int:
    """Choose a forest as `choose`; returns the number of its places.

    Fills `members` with them, parents first, `parents` with the place of each one's parent, its own
    for a root, and `links` with the coupling to it, 0 for a root."""
    open_ = choose(m, order)
    size = done = 0
    for root in order:
        if not open_[root]:
            continue
        open_[root] = False
        members[size], parents[size], links[size] = root, root, 0.0
        size += 1
        while done < size:
            v = members[done]
            done += 1
            for q in range(m.near_first[v], m.near_first[v + 1]):
                if open_[m.near[q]]:
                    open_[m.near[q]] = False
                    members[size], parents[size], links[size] = m.near[q], v, m.near_couplings[q]
                    size += 1
    return size


@helper()
def flip(m: Spins, v: int, states: Floats, around: Floats) -> None:
    """Turn spin v and update `around`: for each spin, its field and what its neighbours add."""
    states[v] = -states[v]
    for q in range(m.near_first[v], m.near_first[v + 1]):
        around[m.near[q]] += 2.0 * states[v] * m.near_couplings[q]


@kernel()
def maximise_forest(m: Spins, forests: Forests, k: int, spread: float, stream: np.uint64, climb: Climb) -> np.uint64:
    """Set the states of the places of forest k to maximise phi given the others, or phi with
    disturbed fields; returns the stream of the disturbances."""
    states, around, beliefs = climb.states, climb.around, climb.beliefs
    start, stop = forests.first[k], forests.first[k + 1]
    for q in range(start, stop):
        v, parent, link = forests.members[q], forests.parents[q], forests.links[q]
        beliefs[v] = around[v] - link * states[parent]
        beliefs[parent] -= link * states[v]
    if spread > 0.0:
        for q in range(start, stop):
            v = forests.members[q]
            stream, uniform = draw(stream)
            beliefs[v] += spread * m.reach[v] * (2.0 * uniform - 1.0)
    for q in range(stop - 1, start - 1, -1):
        belief, link = beliefs[forests.members[q]], forests.links[q]
        beliefs[forests.parents[q]] += 0.5 * (abs(belief + link) - abs(belief - link))
    for q in range(start, stop):
        v = forests.members[q]
        if states[v] * (beliefs[v] + forests.links[q] * states[forests.parents[q]]) < 0.0:
            flip(m, v, states, around)
    return stream


@kernel()
def keep_gains(m: Spins, least: float, climb: Climb) -> None:
    """Move those connected parts in which `states` differs from `best` to `best` that gain more
    than `least`, and set `states` to `best`.

    No edge links two parts, so that each gains the same whatever becomes of the others."""
    states, around, best, best_around, _, queue = climb
    for start in range(states.size):
        if states[start] == best[start]:
            continue
        queue[0], size, done, gain = start, 1, 0, 0.0
        states[start] = 0.0  # queued
        while done < size:
            v = queue[done]
            done += 1
            outside = best_around[v]
            for q in range(m.near_first[v], m.near_first[v + 1]):
                u = m.near[q]
                if states[u] != best[u]:
                    outside -= m.near_couplings[q] * best[u]
                    if states[u] != 0.0:
                        states[u] = 0.0
                        queue[size] = u
                        size += 1
            gain -= 2.0 * best[v] * outside
        for k in range(size):
            if gain > least:
                flip(m, queue[k], best, best_around)
        for k in range(size):
            states[queue[k]] = best[queue[k]]
    for v in range(states.size):
        around[v] = best_around[v]


@helper()
def settle(m: Spins, least: float, climb: Climb) -> None:
    """Turn single spins of `best` while one of them gains more than `least`."""
    states, around, best, best_around, _, _ = climb
    moved = True
    while moved:
        moved = False
        for v in range(best.size):
            if -2.0 * best[v] * best_around[v] > least:
                flip(m, v, best, best_around)
                moved = True
    for v in range(best.size):
        states[v], around[v] = best[v], best_around[v]


@helper()
def start_from(m: Spins, h: Floats, states: Floats, climb: Climb) -> None:
    """Make `states` the best configuration."""
    for v in range(h.size):
        climb.best[v] = climb.states[v] = states[v]
        climb.best_around[v] = h[v]
        for q in range(m.near_first[v], m.near_first[v + 1]):
            climb.best_around[v] += m.near_couplings[q] * states[m.near[q]]
        climb.around[v] = climb.best_around[v]


@helper()
def value_of(h: Floats, climb: Climb) -> float:
    """phi of the best configuration without the constant."""
    total: float = 0.0
    for v in range(h.size):
        total += 0.5 * climb.best[v] * (h[v] + climb.best_around[v])
    return total


@kernel()
def search(
    m: Spins, forests: Forests, h: Floats, rounds: int, spread: float, stream: np.uint64, climb: Climb
) -> tuple[np.uint64, float]:
    """Rounds that improve the best configuration; returns the stream and phi of it without the
    constant.

    A round maximises over one forest with fields disturbed up to `spread` times what is around
    them, then over others with the true ones, and keeps the parts that gain."""
    least = NEGLIGIBLE * weight(m, h)
    count = forests.first.size - 1
    for _ in range(rounds):
        stream, uniform = draw(stream)
        k = int(uniform * count)
        stream, uniform = draw(stream)
        stream = maximise_forest(m, forests, k, spread * uniform, stream, climb)
        for step in range(1, AFTER + 1):
            stream = maximise_forest(m, forests, (k + step) % count, 0.0, stream, climb)
        keep_gains(m, least, climb)
    settle(m, least, climb)
    return stream, value_of(h, climb)


@helper(cache=True)
def weight(m: Spins, h: Floats) -> float:
    """Sum of the fields and couplings, which bounds phi without the constant."""
    total: float = 0.0
    for v in range(h.size):
        total += abs(h[v]) + 0.5 * m.reach[v]
    return total


@helper()
def room(n: int) -> Climb:
    """Working memory of a search."""
    floats = np.empty((5, n))
    return Climb(floats[0], floats[1], floats[2], floats[3], floats[4], np.empty(n, np.int64))


@kernel()
def spin_trws(m: Spins, forests: Forests, h: Floats, constants: Floats, limits: Limits, found: Bounded) -> None:
    """TRW-S for each row of fields, shape (batch, n); fills `found`, places in place of variables.

    After each `patience` iterations come as many rounds of search. The bound and the search each
    end when they stall."""
    tolerance, progress, patience, max_iterations = limits
    n, edges = h.shape[1], m.later.size
    climb, decoded = room(n), np.empty(n)
    for row in range(h.shape[0]):
        up, down, low, high = np.zeros(edges), np.zeros(edges), np.zeros(n), np.zeros(n)
        best, bound, earlier, constant = -np.inf, np.inf, np.inf, constants[row]
        stream, searched, bounding, searching, done = np.uint64(0), -np.inf, True, True, 0
        iterations = 0
        while done < max_iterations and (bounding or searching):
            block = min(patience, max_iterations - done)
            done += block
            slack = 0.0
            if bounding:
                for _ in range(block):
                    iterations += 1
                    value = constant + upward(m, h[row], up, down, low, high, decoded)
                    if value > best:
                        best = value
                        start_from(m, h[row], decoded, climb)
                    value, dual = downward(m, h[row], up, down, low, high, decoded)
                    bound = min(bound, constant + dual)
                    if constant + value > best:
                        best = constant + value
                        start_from(m, h[row], decoded, climb)
                    slack = tolerance * max(1.0, abs(bound))
                    if bound - best <= slack:
                        break
                if bound - best <= slack:
                    break
            if searching:
                if searched == -np.inf:
                    stream, _ = search(m, forests, h[row], 1, 0.0, stream, climb)
                stream, value = search(m, forests, h[row], block, SPREAD, stream, climb)
                best = constant + value
                searching = best - searched > STALLED * weight(m, h[row])
                searched = best
            slack = tolerance * max(1.0, abs(bound))
            if bound - best <= slack:
                break
            bounding &= earlier - bound > max(slack, progress * (bound - best))
            earlier = bound
        for v in range(n):
            found.states[row, v] = 1 if climb.best[v] > 0.0 else 0
        found.bounds[row], found.iterations[row] = bound, iterations
