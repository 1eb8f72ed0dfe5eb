"""Compiled loops of `PublishedMaxProduct`; tests compare them with a plain reference in probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.base.compiled import helper, kernel

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import UpdateSchedule


class Wiring(NamedTuple):
    """The messages of a spin glass with noise, in the order in which the author's program made
    them.

    Each site in row-major order has its field, its coupling to the site above and its coupling to
    the site on the left; the noise of all sites follows. A coupling has a message to its lower
    variable, then one to its higher one. Messages and beliefs are log-ratios of +1 to -1.

    Attributes
    ----------
    source : variable at the other end of a message's factor, or -1 for fields and noise, shape (E,).
    target : variable that the message goes to, shape (E,).
    reverse : the other message of the same factor, or the message itself, shape (E,).
    strength : twice the field or the coupling, 0 for noise, shape (E,).
    first, into : the messages to variable v are into[first[v]:first[v + 1]], in increasing order.
    """

    source: Ints
    target: Ints
    reverse: Ints
    strength: Floats
    first: Ints
    into: Ints


TOP, LOW, TWIST = np.uint64(0x80000000), np.uint64(0x7FFFFFFF), np.uint64(0x9908B0DF)
MASK_B, MASK_C = np.uint64(0x9D2C5680), np.uint64(0xEFC60000)
ONE_BIT, S7, S11, S15, S18, S32 = (np.uint64(k) for k in (1, 7, 11, 15, 18, 32))
WORDS, SHIFT = 624, 397
FIRST = np.uint64(WORDS + 1)
STATE = 2 * WORDS + 1
"""Size of the generator's state."""
SAFE = 3.9
"""Log-ratios that change by this many tolerances change no probability by one."""
NONE: Any = np.int64(-1)
"""For `heard`: leave out no message."""


@helper()
def mixed(high: np.uint64, low: np.uint64, far: np.uint64) -> np.uint64:
    joined = (high & TOP) | (low & LOW)
    return far ^ (joined >> ONE_BIT) ^ (TWIST * (joined & ONE_BIT))


@helper()
def renew(generator: Words) -> None:
    """The next 624 words of the Mersenne twister MT19937.

    generator : the state, the number of words used, and the words, shape (STATE,)."""
    for k in range(WORDS - SHIFT):
        generator[k] = mixed(generator[k], generator[k + 1], generator[k + SHIFT])
    for k in range(WORDS - SHIFT, WORDS - 1):
        generator[k] = mixed(generator[k], generator[k + 1], generator[k + SHIFT - WORDS])
    generator[WORDS - 1] = mixed(generator[WORDS - 1], generator[0], generator[SHIFT - 1])
    for k in range(WORDS):
        bits = generator[k]
        bits ^= bits >> S11
        bits ^= (bits << S7) & MASK_B
        bits ^= (bits << S15) & MASK_C
        bits ^= bits >> S18
        generator[WORDS + 1 + k] = bits


@helper()
def shuffle(generator: Words, order: Words) -> None:
    """Put messages into a random order, with a word of 32 bits for each but one."""
    used = generator[WORDS]
    for i in range(1, order.size):
        if used == WORDS:
            renew(generator)
            used = np.uint64(0)
        j = (generator[used + FIRST] * np.uint64(i + 1)) >> S32
        used += ONE_BIT
        order[i], order[j] = order[j], order[i]
    generator[WORDS] = used


@helper()
def heard(w: Wiring, messages: Floats, v: int, but: int) -> float:
    """Sum of the messages to a variable, without message `but`."""
    total = 0.0
    for q in range(w.first[v], w.first[v + 1]):
        if w.into[q] != but:
            total += messages[w.into[q]]
    return total


@helper()
def through(strength: float, ratio: float) -> float:
    """Log-ratio of the largest products of a coupling with a belief of this log-ratio."""
    return max(0.0, strength + ratio) - max(strength, ratio)


@helper()
def farthest(strength: float, one: float, other: float, one_before: float, other_before: float) -> float:
    """Largest change of a probability of the four states of a coupling."""
    now = (strength, one, other, strength + one + other)
    before = (strength, one_before, other_before, strength + one_before + other_before)
    top, top_before = max(max(now[0], now[1]), max(now[2], now[3])), -np.inf
    for k in range(4):
        top_before = max(top_before, before[k])
    total, total_before = 0.0, 0.0
    for k in range(4):
        total += np.exp(now[k] - top)
        total_before += np.exp(before[k] - top_before)
    change = 0.0
    for k in range(4):
        change = max(change, abs(np.exp(now[k] - top) / total - np.exp(before[k] - top_before) / total_before))
    return change


@helper()
def changed(w: Wiring, now: Floats, before: Floats, fresh: Floats, old: Floats, at: int, tolerance: float) -> bool:
    """Whether a probability of a belief has changed by more than the tolerance.

    at : a message, for the belief of its factor; or E + v, for that of variable v."""
    if at >= w.target.size:
        v = at - w.target.size
        change = 1 / (1 + np.exp(-heard(w, fresh, v, NONE))) - 1 / (1 + np.exp(-heard(w, old, v, NONE)))
        return bool(abs(change) > tolerance)
    d, v, u = w.reverse[at], w.target[at], w.source[at]
    if d == at:
        last = heard(w, before, v, at) + fresh[at]
        change = 1 / (1 + np.exp(-heard(w, now, v, at) - fresh[at])) - 1 / (1 + np.exp(-last))
        return bool(abs(change) > tolerance)
    one, other = heard(w, now, v, at), heard(w, now, u, d)
    return farthest(w.strength[at], one, other, heard(w, before, v, at), heard(w, before, u, d)) > tolerance


@helper()
def unsettled(
    w: Wiring, now: Floats, before: Floats, fresh: Floats, old: Floats, moved: Floats, last: int, tolerance: float
) -> int:
    """The place (see `changed`) of a belief of which a probability has changed by more than the
    tolerance, or -1.

    `now` and `before` are the damped messages of this sweep and the last, `fresh` and `old` the
    undamped ones. If log-ratios change by so much in all, a probability changes by a quarter of it
    at most.

    moved : by how much the messages to a variable have changed in all, shape (n,); written.
    last : a place to look at first."""
    if changed(w, now, before, fresh, old, last, tolerance):
        return last
    count, n = w.target.size, moved.size
    for v in range(n):
        moved[v] = 0.0
        for q in range(w.first[v], w.first[v + 1]):
            moved[v] += abs(now[w.into[q]] - before[w.into[q]])
        if changed(w, now, before, fresh, old, count + v, tolerance):
            return count + v
    for e in range(count):
        d = w.reverse[e]
        if d >= e:
            most = moved[w.target[e]] + (moved[w.source[e]] if d > e else 0.0)
            if most > SAFE * tolerance and changed(w, now, before, fresh, old, e, tolerance):
                return e
    return int(NONE)


@helper()
def decode(w: Wiring, messages: Floats, field: float, states: Ints) -> None:
    """Fix each variable from the coupling through which a depth-first search first finds it."""
    for v in range(states.size):
        states[v] = -1
    stack, seen = np.empty(2 * w.target.size, np.int64), np.zeros(w.target.size, np.bool_)
    states[0] = 1 if heard(w, messages, 0, 0) + field > 0 else 0
    top: int = 0
    newest: Any = np.int64(0)
    while True:
        for q in range(w.first[newest], w.first[newest + 1]):
            d = w.into[q]
            if w.reverse[d] != d and not seen[min(d, w.reverse[d])]:
                stack[top] = w.reverse[d]
                top += 1
        newest = np.int64(-1)
        while top and newest < 0:
            top -= 1
            d = stack[top]
            if not seen[min(d, w.reverse[d])]:
                seen[min(d, w.reverse[d])] = True
                v = w.target[d] if states[w.target[d]] < 0 else w.source[d]
                if states[v] < 0:
                    newest = v
                    e = d if w.target[d] == v else w.reverse[d]
                    pull = w.strength[e] if states[w.source[e]] == 1 else -w.strength[e]
                    states[v] = 1 if pull + heard(w, messages, v, e) > 0 else 0
        if newest < 0:
            return


@kernel()
def max_product(
    w: Wiring, noise: Floats, generator: Words, schedule: UpdateSchedule, states: Ints, sweeps: Ints
) -> None:
    """Maximise each row of noise, shape (batch, 2 variables); fills `states` and `sweeps`."""
    damping, tolerance, max_sweeps = schedule
    count, n = w.target.size, w.first.size - 1
    # Unsigned, since numba asks of others whether they are negative.
    order, source = np.empty(count, np.uint64), np.empty(count, np.uint64)
    target, reverse = np.empty(count, np.uint64), np.empty(count, np.uint64)
    now, before, fresh, old = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    beliefs, moved, given, strength = np.empty(n), np.empty(n), np.empty(count), np.empty(count)
    for m in range(count):
        alone = w.source[m] < 0  # it passes 0, and its own message is given
        source[m] = np.uint64(w.target[m] if alone else w.source[m])
        strength[m], given[m] = (0.0, w.strength[m]) if alone else (w.strength[m], 0.0)
        target[m], reverse[m] = np.uint64(w.target[m]), np.uint64(w.reverse[m])
    for row in range(noise.shape[0]):
        for e in range(count):
            order[e] = np.uint64(e)
            now[e], fresh[e] = 0.0, 0.0
        for v in range(n):
            given[count - n + v] = noise[row, 2 * v + 1] - noise[row, 2 * v]
        last: Any = np.int64(count)
        for sweep in range(1, max_sweeps + 1):
            for v in range(n):
                beliefs[v] = 0.0
            for e in range(count):
                before[e], old[e] = now[e], fresh[e]
                beliefs[target[e]] += now[e]
            shuffle(generator, order)
            for at in order:
                fresh[at] = given[at] + through(strength[at], beliefs[source[at]] - now[reverse[at]])
                step = (1 - damping) * (fresh[at] - now[at])
                now[at] += step
                beliefs[target[at]] += step
            sweeps[row] = sweep
            if sweep > 1:
                last = unsettled(w, now, before, fresh, old, moved, last, tolerance)
                if last < 0:
                    break
        decode(w, now, w.strength[0], states[row])
