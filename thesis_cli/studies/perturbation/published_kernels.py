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
NONE: Any = np.int64(-1)
"""For `heard`: leave out no message."""


@helper()
def word(generator: Words) -> np.uint64:
    """The next 32 bits of the Mersenne twister MT19937; generator[624] counts the words used."""
    at: Any = np.int64(generator[WORDS])
    if at == WORDS:
        for k in range(WORDS):
            joined = (generator[k] & TOP) | (generator[k + 1 if k + 1 < WORDS else 0] & LOW)
            far = generator[k + SHIFT if k + SHIFT < WORDS else k + SHIFT - WORDS]
            generator[k] = far ^ (joined >> ONE_BIT) ^ (TWIST * (joined & ONE_BIT))
        at = np.int64(0)
    generator[WORDS] = np.uint64(at + 1)
    bits: np.uint64 = generator[at]
    bits ^= bits >> S11
    bits ^= (bits << S7) & MASK_B
    bits ^= (bits << S15) & MASK_C
    bits ^= bits >> S18
    return bits


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
def settled(w: Wiring, now: Floats, before: Floats, fresh: Floats, old: Floats, tolerance: float) -> bool:
    """Whether no probability of a belief has changed by more than the tolerance.

    `now` and `before` are the damped messages of this sweep and the last, `fresh` and `old` the
    undamped ones, all followed by the strengths of the unary factors."""
    count = w.target.size
    for v in range(w.first.size - 1):
        change = 1 / (1 + np.exp(-heard(w, fresh, v, NONE))) - 1 / (1 + np.exp(-heard(w, old, v, NONE)))
        if abs(change) > tolerance:
            return False
    for e in range(count):
        d = w.reverse[e]
        if d == e:
            last = heard(w, before, w.target[e], e) + fresh[e]
            change = 1 / (1 + np.exp(-heard(w, now, w.target[e], e) - fresh[e])) - 1 / (1 + np.exp(-last))
            if abs(change) > tolerance:
                return False
        elif d > e:
            one, other = heard(w, now, w.target[e], e), heard(w, now, w.source[e], d)
            one_before, other_before = heard(w, before, w.target[e], e), heard(w, before, w.source[e], d)
            if farthest(w.strength[e], one, other, one_before, other_before) > tolerance:
                return False
    return True


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
    order = np.empty(count, np.int64)
    now, before, fresh, old = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    beliefs = np.empty(n)
    for row in range(noise.shape[0]):
        for e in range(count):
            order[e] = e
            now[e], fresh[e] = 0.0, 0.0
        for sweep in range(1, max_sweeps + 1):
            for e in range(count):
                before[e], old[e] = now[e], fresh[e]
            for v in range(n):
                beliefs[v] = heard(w, now, v, NONE)
            for i in range(1, count):
                j = np.int64((word(generator) * np.uint64(i + 1)) >> S32)
                order[i], order[j] = order[j], order[i]
            for m in order:
                v = w.target[m]
                if w.source[m] >= 0:
                    fresh[m] = through(w.strength[m], beliefs[w.source[m]] - now[w.reverse[m]])
                elif m < count - n:
                    fresh[m] = w.strength[m]
                else:
                    fresh[m] = noise[row, 2 * v + 1] - noise[row, 2 * v]
                step = (1 - damping) * (fresh[m] - now[m])
                now[m] += step
                beliefs[v] += step
            sweeps[row] = sweep
            if sweep > 1 and settled(w, now, before, fresh, old, tolerance):
                break
        decode(w, now, w.strength[0], states[row])
