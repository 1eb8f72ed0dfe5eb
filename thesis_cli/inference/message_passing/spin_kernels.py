"""Compiled TRW-S and local search on spins; tests compare them with plain references."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.compiled import ONE, helper, kernel
from thesis_cli.inference.message_passing.belief_kernels import MIX_1, MIX_2, S27, S30, S31, S32, WEYL
from thesis_cli.inference.message_passing.message_arrays import Climb, Sweep

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import Bounded, Forests, Spins, StoppingRule

FEW = 4
"""Forests over which a configuration that is offered ascends."""

AFTER, SPREAD = 16, 8.0
"""Forests that are maximised after a disturbed one, and the largest disturbance of a field as a
multiple of the sum of the couplings around it."""

NEGLIGIBLE, STALLED, FRUITLESS = 1e-14, 1e-5, 3
"""Shares of the sum of all fields and couplings: what a change has to gain, lest rounding turns
spins for ever, and what a block of rounds has to gain, or it is fruitless; and the number of
consecutive fruitless blocks that end the search."""


@kernel()
def levels(n: int, edges: Ints) -> Ints:
    """Length of the longest ascending path to each variable; `edges` are sorted by their lower
    end."""
    level = np.zeros(n, np.int64)
    for e in range(edges.shape[0]):
        level[edges[e, 1]] = max(level[edges[e, 1]], level[edges[e, 0]] + 1)
    return level


@kernel()
def upward(m: Spins, h: Floats, sweep: Sweep) -> float:
    """Decode spins in order and update messages to later ones; returns phi of the configuration
    without the constant."""
    up, down, low, high, states = sweep
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
def downward(m: Spins, h: Floats, sweep: Sweep) -> tuple[float, float]:
    """Decode spins in reverse order and update messages to earlier ones; returns phi of the
    configuration and the bound on max phi, both without the constant.

    The bound is the sum of the maxima of monotonic chains, as in TRW-S on tables."""
    up, down, low, high, states = sweep
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

    Fills `members` with them, parents first, `parents` with the position of each one's parent among
    them, its own for a root, and `links` with the coupling to it, 0 for a root."""
    open_ = choose(m, order)
    size = done = 0
    for root in range(order.size):
        if not open_[root]:
            continue
        open_[root] = False
        members[size], parents[size], links[size] = root, size, 0.0
        size += 1
        while done < size:
            v = members[done]
            for q in range(m.near_first[v], m.near_first[v + 1]):
                if open_[m.near[q]]:
                    open_[m.near[q]] = False
                    members[size], parents[size], links[size] = m.near[q], done, m.near_couplings[q]
                    size += 1
            done += 1
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
    beliefs, spins = climb.beliefs, climb.spins
    part = slice(forests.first[k], forests.first[k + 1])
    members, parents, links = forests.members[part], forests.parents[part], forests.links[part]
    for q in range(members.size):
        spins[q] = climb.states[members[q]]
        beliefs[q] = climb.around[members[q]] - links[q] * spins[parents[q]]
    if spread > 0.0:
        for q in range(members.size):
            stream, uniform = draw(stream)
            beliefs[q] += spread * m.reach[members[q]] * (2.0 * uniform - 1.0)
    for q in range(members.size - 1, -1, -1):
        plus, minus = abs(beliefs[q] + links[q]), abs(beliefs[q] - links[q])
        beliefs[parents[q]] += 0.5 * (plus - minus) - links[q] * spins[q]
    for q in range(members.size):
        if spins[q] * (beliefs[q] + links[q] * spins[parents[q]]) < 0.0:
            spins[q] = -spins[q]
            flip(m, members[q], climb.states, climb.around)
    return stream


@kernel()
def keep_gains(m: Spins, least: float, climb: Climb) -> None:
    """Move those connected parts in which `states` differs from `best` to `best` that gain more
    than `least`, and set `states` to `best`.

    No edge links two parts, so that each gains the same whatever becomes of the others."""
    states, around, best, best_around, _, _, queue = climb
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
    states, around, best, best_around, _, _, _ = climb
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
def room(n: int, edges: int) -> tuple[Sweep, Climb]:
    """Working memory of a sweep, its messages 0, and of a search."""
    messages, sums, c = np.zeros((2, edges)), np.zeros((3, n)), np.empty((6, n))
    sweep = Sweep(messages[0], messages[1], sums[0], sums[1], sums[2])
    return sweep, Climb(c[0], c[1], c[2], c[3], c[4], c[5], np.empty(n, np.int64))


@helper()
def adopt(m: Spins, h: Floats, states: Floats, climb: Climb) -> None:
    """Make `states` the best configuration."""
    for v in range(h.size):
        climb.best[v] = climb.states[v] = states[v]
        climb.best_around[v] = h[v]
        for q in range(m.near_first[v], m.near_first[v + 1]):
            climb.best_around[v] += m.near_couplings[q] * states[m.near[q]]
        climb.around[v] = climb.best_around[v]


@kernel()
def absorb(m: Spins, forests: Forests, h: Floats, states: Floats, first: bool, climb: Climb) -> float:
    """Ascend from a configuration over a few forests, and keep its parts that gain, or all if it is
    the first; returns phi of the best configuration without the constant."""
    if first:
        adopt(m, h, states, climb)
    for v in range(h.size):
        climb.states[v], climb.around[v] = states[v], h[v]
        for q in range(m.near_first[v], m.near_first[v + 1]):
            climb.around[v] += m.near_couplings[q] * states[m.near[q]]
    for k in range(FEW):
        maximise_forest(m, forests, k, 0.0, np.uint64(0), climb)
    least = NEGLIGIBLE * weight(m, h)
    keep_gains(m, least, climb)
    settle(m, least, climb)
    return value_of(h, climb)


@helper()
def met(best: float, bound: float, tolerance: float) -> bool:
    """Whether a value meets its bound up to the tolerance."""
    return bound - best <= tolerance * max(1.0, abs(bound))


@kernel()
def iterate(
    m: Spins,
    h: Floats,
    constant: float,
    most: int,
    tolerance: float,
    sweep: Sweep,
    climb: Climb,
    found: tuple[float, float],
) -> tuple[int, float, float]:
    """At most `most` iterations of TRW-S, until the value of the best configuration meets the
    bound; returns their number, that value and the bound. `found` is the value and the bound so
    far."""
    best, bound = found
    for iteration in range(1, most + 1):
        value = constant + upward(m, h, sweep)
        if value > best:
            best = value
            adopt(m, h, sweep.states, climb)
        value, dual = downward(m, h, sweep)
        if constant + value > best:
            best = constant + value
            adopt(m, h, sweep.states, climb)
        bound = min(bound, constant + dual)
        if met(best, bound, tolerance):
            return iteration, best, bound
    return most, best, bound


@kernel()
def spin_trws(m: Spins, forests: Forests, h: Floats, constants: Floats, limits: StoppingRule, found: Bounded) -> None:
    """TRW-S for each row of fields, shape (batch, n); fills `found`, places in place of variables.

    After each `patience` iterations come as many rounds of search, the first after one round
    without disturbance. Either ends when it stalls."""
    tolerance, progress, patience, max_iterations = limits
    for row in range(h.shape[0]):
        sweep, climb = room(h.shape[1], m.later.size)
        best, bound, earlier, constant = -np.inf, np.inf, np.inf, constants[row]
        stream, done, iterations, bounding, fruitless = np.uint64(0), 0, 0, True, 0
        while done < max_iterations and (bounding or fruitless < FRUITLESS):
            block = min(patience, max_iterations - done)
            if bounding:
                spent, best, bound = iterate(m, h[row], constant, block, tolerance, sweep, climb, (best, bound))
                iterations += spent
            if met(best, bound, tolerance):
                break
            if done == 0:
                stream, _ = search(m, forests, h[row], ONE, 0.0, stream, climb)
            if fruitless < FRUITLESS:
                stream, value = search(m, forests, h[row], block, SPREAD, stream, climb)
                gains = constant + value - best > STALLED * weight(m, h[row])
                fruitless = 0 if gains else fruitless + 1
                best = constant + value
            if met(best, bound, tolerance):
                break
            done += block
            bounding &= earlier - bound > max(tolerance * max(1.0, abs(bound)), progress * (bound - best))
            earlier = bound
        for v in range(h.shape[1]):
            found.states[row, v] = 1 if climb.best[v] > 0.0 else 0
        found.bounds[row], found.iterations[row] = bound, iterations
