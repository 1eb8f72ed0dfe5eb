"""Compiled sequential tree-reweighted max-product; tests hold it against a plain reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from thesis_cli.inference.belief_kernels import hear, rescale

if TYPE_CHECKING:
    from thesis_cli.inference.belief_propagation import Messages

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def upward(source: Ints, first: Ints, incoming: Ints, v: int) -> int:
    """Where the messages from higher variables start among those into v."""
    q: int = first[v]
    while q < first[v + 1] and source[incoming[q]] < v:
        q += 1
    return q


@njit(cache=True, nogil=True)
def pass_on(
    starts: Ints,
    tables: Floats,
    table_starts: Ints,
    beliefs: Floats,
    low: int,
    states: int,
    share: float,
    messages: Floats,
    d: int,
) -> float:
    """Recompute log-message d from `share` of its source's belief, less its reverse; returns what made its maximum 0.

    A state whose belief is `-inf` is impossible and left out, so that no infinities are subtracted.
    """
    back = starts[d ^ 1]
    for y in range(starts[d + 1] - starts[d]):
        entry = table_starts[d] + y * states
        best = -np.inf
        for x in range(states):
            if beliefs[low + x] > -np.inf:
                best = max(best, tables[entry + x] + share * beliefs[low + x] - messages[back + x])
        messages[starts[d] + y] = best
    return rescale(messages, starts[d], starts[d + 1])


@njit(cache=True, nogil=True)
def forward(m: Messages, unary: Floats, messages: Floats, beliefs: Floats, states: Ints) -> float:
    """Decode and update messages to higher variables, in order; returns phi(states)."""
    offsets, source, _, starts, tables, table_starts, first, incoming = m
    value = 0.0
    for v in range(offsets.size - 1):
        low, count, middle = offsets[v], offsets[v + 1] - offsets[v], upward(source, first, incoming, v)
        best, at, own = -np.inf, 0, -np.inf
        for x in range(count):
            known = unary[low + x]
            for q in range(first[v], middle):
                d = incoming[q]
                u = source[d]
                known += tables[table_starts[d] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            score = known
            for q in range(middle, first[v + 1]):
                score += messages[starts[incoming[q]] + x]
            if score > best:
                best, at, own = score, x, known
        states[v] = at
        value += own
        hear(offsets, starts, first, incoming, unary, messages, v, -1, beliefs, low)
        share = 1.0 / max(middle - first[v], first[v + 1] - middle, 1)
        for q in range(middle, first[v + 1]):
            pass_on(starts, tables, table_starts, beliefs, low, count, share, messages, incoming[q] ^ 1)
    return value


@njit(cache=True, nogil=True)
def backward(m: Messages, unary: Floats, messages: Floats, beliefs: Floats) -> float:
    """Update messages to lower variables, in reverse order; returns the bound on max phi.

    The bound sums the maxima of monotonic chains that share each variable's belief evenly, each chain maximised
    from its highest variable down: what was taken off a message on the way, and the rest at its lowest.
    """
    offsets, source, _, starts, tables, table_starts, first, incoming = m
    bound = 0.0
    for v in range(offsets.size - 2, -1, -1):
        low, count, middle = offsets[v], offsets[v + 1] - offsets[v], upward(source, first, incoming, v)
        hear(offsets, starts, first, incoming, unary, messages, v, -1, beliefs, low)
        chains = max(middle - first[v], first[v + 1] - middle, 1)
        share = 1.0 / chains
        for q in range(first[v], middle):
            bound += pass_on(starts, tables, table_starts, beliefs, low, count, share, messages, incoming[q] ^ 1)
        begun = chains - (middle - first[v])
        if begun > 0:
            bound += begun * share * rescale(beliefs, low, low + count)
    return bound


@njit(cache=True, nogil=True)
def trws(
    m: Messages,
    constant: float,
    unary: Floats,
    tolerance: float,
    patience: int,
    max_iterations: int,
    states: Ints,
    bounds: Floats,
    iterations: Ints,
) -> None:
    """TRW-S for each row of `unary`, shape (batch, states); fills the last three, (batch, n) and (batch,)."""
    beliefs, found = np.empty(unary.shape[1]), np.empty(states.shape[1], np.int64)
    for row in range(unary.shape[0]):
        messages = np.zeros(m.starts[-1])
        best, bound, earlier = -np.inf, np.inf, np.inf
        for iteration in range(1, max_iterations + 1):
            value = constant + forward(m, unary[row], messages, beliefs, found)
            if value > best or iteration == 1:
                best = value
                for v in range(found.size):
                    states[row, v] = found[v]
            bound = min(bound, constant + backward(m, unary[row], messages, beliefs))
            iterations[row] = iteration
            slack = tolerance * max(1.0, abs(bound))
            if bound == -np.inf or bound - best <= slack:
                break
            if iteration % patience == 0:
                if earlier - bound <= slack:
                    break
                earlier = bound
        bounds[row] = bound
