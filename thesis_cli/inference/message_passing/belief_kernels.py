"""Compiled message passing; tests compare it with plain references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.base.compiled import ZERO, helper, kernel

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import Decoded, Messages, UpdateSchedule

WEYL, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ALL: Any = np.int64(-1)
"""For `hear`: leave out no message."""

SUMS: Any = np.bool_(True)
MAXIMA: Any = np.bool_(False)
"""Whether messages are sums."""

S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@kernel()
def shuffle(order: Ints, stream: np.uint64) -> np.uint64:
    """Fisher-Yates shuffle of `order` with the SplitMix64 generator in state `stream`; returns its
    next state."""
    for i in range(order.size - 1, 0, -1):
        stream += WEYL
        word = (stream ^ (stream >> S30)) * MIX_1
        word = (word ^ (word >> S27)) * MIX_2
        word ^= word >> S31
        j = np.int64(((word >> S32) * np.uint64(i + 1)) >> S32)
        order[i], order[j] = order[j], order[i]
    return stream


@helper(cache=True)
def hear(m: Messages, unary: Floats, messages: Floats, v: int, but: int, out: Floats, at: int) -> None:
    """Write the log-belief of variable v, from all messages into it except `but`, to out[at:].

    With `but` = ALL it uses all messages. The sum is computed afresh each time: under hard
    constraints nothing can be subtracted."""
    low = m.offsets[v]
    states = m.offsets[v + 1] - low
    for x in range(states):
        out[at + x] = unary[low + x]
    for q in range(m.first[v], m.first[v + 1]):
        d = m.incoming[q]
        if d != but:
            for x in range(states):
                out[at + x] += messages[m.starts[d] + x]


@helper(cache=True)
def rescale(values: Floats, start: int, stop: int) -> float:
    """Subtract the maximum of values[start:stop] in place and return it; if all are `-inf`, they
    stay."""
    top = -np.inf
    for x in range(start, stop):
        top = max(top, values[x])
    if top > -np.inf:
        for x in range(start, stop):
            values[x] -= top
    return top


@helper(cache=True)
def logsumexp(values: Floats, start: int, stop: int) -> float:
    """ln sum exp of values[start:stop]."""
    top = -np.inf
    for x in range(start, stop):
        top = max(top, values[x])
    total: float = 0.0
    for x in range(start, stop):
        total += 1.0 if values[x] == top else np.exp(values[x] - top)
    return top + float(np.log(total))


@helper(cache=True)
def widest(offsets: Ints) -> int:
    """The largest number of states of a variable."""
    most: int = 0
    for v in range(offsets.size - 1):
        most = max(most, offsets[v + 1] - offsets[v])
    return most


@helper(cache=True)
def damp(messages: Floats, start: int, new: Floats, size: int, damping: float) -> None:
    """Mix messages[start:] with new[:size] and shift the maximum to 0; `-inf` in either stays."""
    rescale(new, ZERO, size)
    for y in range(size):
        if messages[start + y] > -np.inf:
            messages[start + y] = damping * messages[start + y] + (1 - damping) * new[y]
    rescale(messages, start, start + size)


@kernel()
def propagate(
    m: Messages,
    unary: Floats,
    order: Ints,
    stream: np.uint64,
    schedule: UpdateSchedule,
    summing: bool,
    messages: Floats,
) -> tuple[bool, int]:
    """Sweep over log-messages, updated in place, until the beliefs converge.

    A sweep follows `order`, which is shuffled before each sweep if messages are maxima.

    Returns
    -------
    Whether the beliefs converged, and the number of sweeps.
    """
    offsets, source, _, starts, tables, table_starts, _, _ = m
    damping, tolerance, max_sweeps = schedule
    n, most = offsets.size - 1, widest(offsets)
    cavity, new = np.empty(most), np.empty(most)
    beliefs, before = np.empty(unary.size), np.empty(unary.size)
    for v in range(n):
        hear(m, unary, messages, v, ALL, before, offsets[v])
        rescale(before, offsets[v], offsets[v + 1])
    for sweep in range(1, max_sweeps + 1):
        if not summing:
            stream = shuffle(order, stream)
        for d in order:
            s = source[d]
            states, size = offsets[s + 1] - offsets[s], starts[d + 1] - starts[d]
            hear(m, unary, messages, s, d ^ 1, cavity, ZERO)
            for y in range(size):
                entry = table_starts[d] + y * states
                top = -np.inf
                for x in range(states):
                    top = max(top, tables[entry + x] + cavity[x])
                if summing and top > -np.inf:
                    total = 0.0
                    for x in range(states):
                        total += np.exp(tables[entry + x] + cavity[x] - top)
                    top += np.log(total)
                new[y] = top
            damp(messages, starts[d], new, size, damping)
        change = 0.0
        for v in range(n):
            hear(m, unary, messages, v, ALL, beliefs, offsets[v])
            rescale(beliefs, offsets[v], offsets[v + 1])
        for x in range(unary.size):
            if beliefs[x] != before[x]:
                change = max(change, abs(beliefs[x] - before[x]))
                before[x] = beliefs[x]
        if change < tolerance:
            return True, sweep
    return False, max_sweeps


@helper(cache=True)
def log_ratio(tables: Floats, entry: int, scale: float, cavity: float, summing: bool) -> float:
    """Log-ratio of state 1 to state 0 of a message through a 2 x 2 table times `scale`.

    `cavity` is the log-ratio of the belief that the message is computed from.
    """
    stay_0, stay_1 = scale * tables[entry], scale * tables[entry + 2]
    turn_0, turn_1 = scale * tables[entry + 1] + cavity, scale * tables[entry + 3] + cavity
    ratio: float = max(stay_1, turn_1) - max(stay_0, turn_0)
    if summing:
        ratio += np.log((1 + np.exp(-abs(turn_1 - stay_1))) / (1 + np.exp(-abs(turn_0 - stay_0))))
    return ratio


@helper(cache=True)
def ratios_of(messages: Floats) -> Floats:
    """Log-ratio of state 1 to state 0 of each message between variables of two states."""
    ratios = np.empty(messages.size // 2)
    for d in range(ratios.size):
        ratios[d] = messages[2 * d + 1] - messages[2 * d]
    return ratios


@helper(cache=True)
def set_ratios(messages: Floats, ratios: Floats) -> None:
    """Write messages that have these log-ratios, those of state 0 being 0."""
    for d in range(ratios.size):
        messages[2 * d], messages[2 * d + 1] = 0.0, ratios[d]


@helper(cache=True)
def hear_ratios(m: Messages, unary: Floats, ratios: Floats, beliefs: Floats) -> None:
    """Write the log-ratio of each variable's belief, 0 with one state, from those of the
    messages."""
    for v in range(beliefs.size):
        beliefs[v] = unary[m.offsets[v + 1] - 1] - unary[m.offsets[v]]
        for q in range(m.first[v], m.first[v + 1]):
            beliefs[v] += ratios[m.incoming[q]]


@kernel()
def propagate_binary(
    m: Messages,
    unary: Floats,
    order: Ints,
    stream: np.uint64,
    schedule: UpdateSchedule,
    summing: bool,
    messages: Floats,
) -> tuple[bool, int]:
    """`propagate` for variables of at most two states and finite log-potentials.

    A message is one number, its log-ratio of state 1 to state 0, and beliefs are kept up to date.
    """
    _, source, target, _, tables, _, first, _ = m
    damping, tolerance, max_sweeps = schedule
    ratios = ratios_of(messages)
    beliefs, before = np.empty(first.size - 1), np.empty(first.size - 1)
    hear_ratios(m, unary, ratios, beliefs)
    hear_ratios(m, unary, ratios, before)
    converged, sweep = False, 0
    while sweep < max_sweeps and not converged:
        sweep += 1
        if not summing:
            stream = shuffle(order, stream)
        for d in order:
            new = log_ratio(tables, 4 * d, 1.0, beliefs[source[d]] - ratios[d ^ 1], summing)
            step = (1 - damping) * (new - ratios[d])
            ratios[d] += step
            beliefs[target[d]] += step
        hear_ratios(m, unary, ratios, beliefs)
        change = 0.0
        for v in range(beliefs.size):
            above = abs(max(beliefs[v], 0.0) - max(before[v], 0.0))
            below = abs(min(beliefs[v], 0.0) - min(before[v], 0.0))
            change = max(change, above, below)
            before[v] = beliefs[v]
        converged = change < tolerance
    set_ratios(messages, ratios)
    return converged, sweep


@helper()
def decode(m: Messages, order: Ints, unary: Floats, messages: Floats, states: Ints) -> None:
    """Fix each variable, in `order`, at its best state given those already fixed and messages from
    the others."""
    offsets, source, _, starts, tables, table_starts, first, incoming = m
    states[:] = -1
    for v in order:
        best, at = -np.inf, 0
        for x in range(offsets[v + 1] - offsets[v]):
            score = unary[offsets[v] + x]
            for q in range(first[v], first[v + 1]):
                d = incoming[q]
                u = source[d]
                if states[u] < 0:
                    score += messages[starts[d] + x]
                else:
                    score += tables[table_starts[d] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            if score > best:
                best, at = score, x
        states[v] = at


@kernel()
def max_product(
    m: Messages, decoding: Ints, binary: bool, unary: Floats, streams: Words, schedule: UpdateSchedule, found: Decoded
) -> None:
    """Max-product for each row of `unary`, shape (batch, states); fills `found`.

    `decoding` is the order in which variables are decoded; `binary` permits `propagate_binary`.
    """
    for row in range(unary.shape[0]):
        messages, order = np.zeros(m.starts[-1]), np.empty(m.source.size, np.int64)
        for d in range(order.size):
            order[d] = d
        if binary:
            done = propagate_binary(m, unary[row], order, streams[row], schedule, MAXIMA, messages)
        else:
            done = propagate(m, unary[row], order, streams[row], schedule, MAXIMA, messages)
        found.converged[row], found.sweeps[row] = done
        decode(m, decoding, unary[row], messages, found.states[row])


@kernel()
def bethe(m: Messages, unary: Floats, messages: Floats, marginals: Floats) -> float:
    """Bethe's ln Z = sum_i (1 - degree_i) ln Z_i + sum_ij ln Z_ij at the log-messages of a fixed
    point.

    Z_i and Z_ij normalise the beliefs of variables and of edges; the belief of an edge leaves out
    the messages along it. Fills `marginals` with the beliefs of variables, or with 0 from the first
    variable on that has no possible state."""
    offsets, source, target, starts, tables, table_starts, first, _ = m
    total, possible = 0.0, True
    for v in range(offsets.size - 1):
        low, high = offsets[v], offsets[v + 1]
        hear(m, unary, messages, v, ALL, marginals, low)
        norm = logsumexp(marginals, low, high)
        if norm == -np.inf:
            possible = False
        else:
            total += (1 - (first[v + 1] - first[v])) * norm
        for x in range(low, high):
            marginals[x] = np.exp(marginals[x] - norm) if possible else 0.0
    most = widest(offsets)
    here, there, pair = np.empty(most), np.empty(most), np.empty(most * most)
    for d in range(0, source.size, 2):
        states, size = starts[d + 2] - starts[d + 1], starts[d + 1] - starts[d]
        hear(m, unary, messages, source[d], d + 1, here, ZERO)
        hear(m, unary, messages, target[d], d, there, ZERO)
        for y in range(size):
            for x in range(states):
                pair[y * states + x] = tables[table_starts[d] + y * states + x] + here[x] + there[y]
        norm = logsumexp(pair, ZERO, states * size)
        if norm == -np.inf:
            possible = False
        else:
            total += norm
    return total if possible else -np.inf
