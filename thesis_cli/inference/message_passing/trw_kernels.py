"""Compiled tree-reweighted sum-product; tests compare it with a plain reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.inference.message_passing.belief_kernels import (
    ALL,
    SUMS,
    damp,
    hear,
    hear_ratios,
    log_ratio,
    logsumexp,
    ratios_of,
    set_ratios,
    widest,
)
from thesis_cli.inference.message_passing.trws_kernels import upward

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import Messages


@helper()
def reweigh(m: Messages, d: int, weight: float, beliefs: Floats, messages: Floats, terms: Floats, new: Floats) -> None:
    """Compute message d, weight ln sum_x exp{(theta(y, x) - reverse(x)) / weight + belief(x)}.

    Writes it to the start of `new`; `terms` is scratch. A state with belief `-inf` is impossible
    and left out, so that no infinities are subtracted."""
    scale = 1.0 / weight
    low, back, tables = m.offsets[m.source[d]], m.starts[d ^ 1], m.tables
    states = m.offsets[m.source[d] + 1] - low
    for y in range(m.starts[d + 1] - m.starts[d]):
        entry = m.table_starts[d] + y * states
        top = -np.inf
        for x in range(states):
            terms[x] = -np.inf
            if beliefs[low + x] > -np.inf:
                terms[x] = (tables[entry + x] - messages[back + x]) * scale + beliefs[low + x]
            top = max(top, terms[x])
        total = 0.0
        for x in range(states):
            total += 1.0 if terms[x] == top else np.exp(terms[x] - top)
        new[y] = weight * (top + np.log(total))


@kernel()
def send(m: Messages, unary: Floats, weights: Floats, damping: float, sweeps: int, messages: Floats) -> None:
    """Update messages in place: in each sweep those to higher variables in order, then to lower
    ones in reverse."""
    n, most, starts, first = m.offsets.size - 1, widest(m.offsets), m.starts, m.first
    beliefs, terms, new = np.empty(unary.size), np.empty(most), np.empty(most)
    for turn in range(2 * n * sweeps):
        place = turn % (2 * n)
        up = place < n
        v = place if up else 2 * n - 1 - place
        middle = upward(m, v)
        hear(m, unary, messages, v, ALL, beliefs, m.offsets[v])
        for q in range(middle, first[v + 1]) if up else range(first[v], middle):
            d = m.incoming[q] ^ 1
            reweigh(m, d, weights[d >> 1], beliefs, messages, terms, new)
            damp(messages, starts[d], new, starts[d + 1] - starts[d], damping)


@kernel()
def send_binary(
    m: Messages, unary: Floats, order: Ints, weights: Floats, damping: float, sweeps: int, messages: Floats
) -> None:
    """`send` for variables of at most two states and finite log-potentials; `order` is
    `up_and_down`."""
    ratios, scales, beliefs = ratios_of(messages), np.empty(weights.size), np.empty(m.first.size - 1)
    for e in range(weights.size):
        scales[e] = 1.0 / weights[e]
    hear_ratios(m, unary, ratios, beliefs)
    for _ in range(sweeps):
        for d in order:
            scale = scales[d >> 1]
            cavity = beliefs[m.source[d]] - scale * ratios[d ^ 1]
            new = weights[d >> 1] * log_ratio(m.tables, 4 * d, scale, cavity, SUMS)
            step = (1 - damping) * (new - ratios[d])
            ratios[d] += step
            beliefs[m.target[d]] += step
    set_ratios(messages, ratios)


@kernel()
def certify(m: Messages, unary: Floats, weights: Floats, messages: Floats, information: Floats) -> tuple[float, float]:
    """An upper bound on ln Z and its slack, at any messages.

    The messages define beliefs tau_s of variables and tau_st of edges, and phi is a constant plus
    the mean over trees T of sum_s ln tau_s + sum_{st in T} ln tau_st / (tau_s tau_t). ln Z is at
    most the constant plus the mean of the ln Z of these trees. Summing out a leaf t leaves at s the
    ratio of a marginal of tau_st to tau_s, so each edge of a tree adds at most the logarithm of its
    largest ratio, at either end. These logarithms make the slack; the ratios follow from the
    messages that would be sent next. Fills `information`, shape (E,), with the mutual information
    of each tau_st."""
    offsets, source, target, starts, tables, table_starts, _, _ = m
    n, most = offsets.size - 1, widest(offsets)
    beliefs, norms = np.empty(unary.size), np.empty(n)
    down, up, joint, terms = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    bound, slack = 0.0, 0.0
    for v in range(n):
        hear(m, unary, messages, v, ALL, beliefs, offsets[v])
        norms[v] = logsumexp(beliefs, offsets[v], offsets[v + 1])
        bound += norms[v]
    if bound == -np.inf:
        return -np.inf, 0.0
    for e in range(weights.size):
        i, j, weight = source[2 * e], target[2 * e], weights[e]
        low_i, low_j, to_j, to_i = offsets[i], offsets[j], starts[2 * e], starts[2 * e + 1]
        k_i, k_j, entry = offsets[i + 1] - low_i, offsets[j + 1] - low_j, table_starts[2 * e]
        reweigh(m, 2 * e, weight, beliefs, messages, terms, up)
        reweigh(m, 2 * e + 1, weight, beliefs, messages, terms, down)
        rise_j = rise_i = -np.inf
        for y in range(k_j):
            if beliefs[low_j + y] > -np.inf:
                rise_j = max(rise_j, up[y] - messages[to_j + y])
        for x in range(k_i):
            joint[x] = -np.inf
            if beliefs[low_i + x] > -np.inf:
                rise_i = max(rise_i, down[x] - messages[to_i + x])
                joint[x] = beliefs[low_i + x] + (down[x] - messages[to_i + x]) / weight
        norm = logsumexp(joint, ZERO, k_i)
        if norm == -np.inf:
            return -np.inf, 0.0
        excess = max(rise_j - weight * norms[i], rise_i - weight * norms[j])
        bound += excess
        slack += excess - weight * (norm - norms[i] - norms[j])
        information[e] = 0.0
        for y in range(k_j):
            for x in range(k_i):
                theta = tables[entry + y * k_i + x]
                if theta > -np.inf and beliefs[low_i + x] > -np.inf and beliefs[low_j + y] > -np.inf:
                    log_tau = (theta - messages[to_i + x] - messages[to_j + y]) / weight - norm
                    tau = np.exp(log_tau + beliefs[low_i + x] + beliefs[low_j + y])
                    information[e] += tau * ((theta - down[x] - up[y]) / weight + norm)
        information[e] = max(information[e], 0.0)
    return bound, slack
