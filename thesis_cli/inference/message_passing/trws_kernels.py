"""Compiled sequential tree-reweighted max-product; tests compare it with a plain reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.inference.message_passing.belief_kernels import ALL, hear, rescale

if TYPE_CHECKING:
    from thesis_cli.inference.message_passing.message_arrays import Bounded, Messages, StoppingRule

FRUITLESS: Any = np.int64(20)
"""Number of consecutive forests without a noticeable gain after which an ascent may end."""


@helper(cache=True)
def upward(m: Messages, v: int) -> int:
    """Index in `incoming` of the first message into v from a higher variable."""
    q: int = m.first[v]
    while q < m.first[v + 1] and m.source[m.incoming[q]] < v:
        q += 1
    return q


@helper()
def pass_on(m: Messages, d: int, share: float, beliefs: Floats, messages: Floats) -> float:
    """Recompute log-message d from `share` of its source's belief minus the reverse message.

    A state with belief `-inf` is impossible and left out, so that no infinities are subtracted.

    Returns
    -------
    The number that was subtracted to shift the maximum to 0.
    """
    starts, tables, low, back = m.starts, m.tables, m.offsets[m.source[d]], m.starts[d ^ 1]
    states = m.offsets[m.source[d] + 1] - low
    for y in range(starts[d + 1] - starts[d]):
        entry = m.table_starts[d] + y * states
        best = -np.inf
        for x in range(states):
            if beliefs[low + x] > -np.inf:
                best = max(best, tables[entry + x] + share * beliefs[low + x] - messages[back + x])
        messages[starts[d] + y] = best
    return rescale(messages, starts[d], starts[d + 1])


@kernel()
def forward(m: Messages, unary: Floats, messages: Floats, beliefs: Floats, states: Ints) -> float:
    """Decode variables and update messages to higher ones, in order; returns phi(states) but for
    the constant."""
    offsets, source, _, starts, tables, table_starts, first, incoming = m
    value = 0.0
    for v in range(offsets.size - 1):
        low, count, middle = offsets[v], offsets[v + 1] - offsets[v], upward(m, v)
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
        hear(m, unary, messages, v, ALL, beliefs, low)
        share = 1.0 / max(middle - first[v], first[v + 1] - middle, 1)
        for q in range(middle, first[v + 1]):
            pass_on(m, incoming[q] ^ 1, share, beliefs, messages)
    return value


@kernel()
def backward(m: Messages, unary: Floats, messages: Floats, beliefs: Floats) -> float:
    """Update messages to lower variables, in reverse order; returns the bound on max phi but for
    the constant.

    The bound is the sum of the maxima of monotonic chains that share each variable's belief evenly.
    Each chain is maximised from its highest variable down: its maximum is the sum of what its
    messages were shifted by and of the maximum at its lowest variable."""
    offsets, _, _, _, _, _, first, incoming = m
    bound = 0.0
    for v in range(offsets.size - 2, -1, -1):
        low, count, middle = offsets[v], offsets[v + 1] - offsets[v], upward(m, v)
        hear(m, unary, messages, v, ALL, beliefs, low)
        chains = max(middle - first[v], first[v + 1] - middle, 1)
        share = 1.0 / chains
        for q in range(first[v], middle):
            bound += pass_on(m, incoming[q] ^ 1, share, beliefs, messages)
        begun = chains - (middle - first[v])
        if begun > 0:
            bound += begun * share * rescale(beliefs, low, low + count)
    return bound


@kernel()
def score(m: Messages, unary: Floats, states: Ints) -> float:
    """phi(states) without the constant."""
    offsets, source, target, _, tables, table_starts, _, _ = m
    total = 0.0
    for v in range(states.size):
        total += unary[offsets[v] + states[v]]
    for d in range(0, source.size, 2):
        i = source[d]
        total += tables[table_starts[d] + states[target[d]] * (offsets[i + 1] - offsets[i]) + states[i]]
    return total


@kernel()
def grow(m: Messages, root: int, most: int, order: Ints, link: Ints) -> int:
    """Choose at most `most` variables whose edges among themselves form a forest; returns their
    number.

    The search is breadth first from the root, then from each next variable that has no chosen
    neighbour. Neighbours join in descending order, so that every variable that stands for a factor
    joins the first root.

    Fills `order` with the chosen variables, parents first, and `link` with the message from the
    parent of each variable, -1 for a root and -2 for a variable that is not chosen, shapes (n,).
    """
    _, source, _, _, _, _, first, incoming = m
    n, size, done = link.size, 0, 0
    link[:] = -2
    near = np.zeros(n, np.int64)
    for step in range(n):
        v = (root + step) % n
        if size == most:
            break
        if link[v] > -2 or near[v] > 0:
            continue
        order[size], link[v] = v, -1
        size += 1
        for q in range(first[v], first[v + 1]):
            near[source[incoming[q]]] += 1
        while done < size < most:
            v = order[done]
            done += 1
            for q in range(first[v + 1] - 1, first[v] - 1, -1):
                u = source[incoming[q]]
                if link[u] == -2 and near[u] == 1 and size < most:
                    order[size], link[u] = u, incoming[q] ^ 1
                    size += 1
                    for p in range(first[u], first[u + 1]):
                        near[source[incoming[p]]] += 1
    return size


@kernel()
def maximise_forest(m: Messages, unary: Floats, order: Ints, link: Ints, beliefs: Floats, states: Ints) -> None:
    """Set the variables in `order`, a forest with parents first, to maximise phi given the states
    of the others."""
    offsets, source, _, _, tables, table_starts, first, incoming = m
    for v in order:
        for x in range(offsets[v + 1] - offsets[v]):
            belief = unary[offsets[v] + x]
            for q in range(first[v], first[v + 1]):
                d = incoming[q]
                u = source[d]
                if link[u] == -2:
                    belief += tables[table_starts[d] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            beliefs[offsets[v] + x] = belief
    for v in order[::-1]:
        if link[v] >= 0:
            parent, entry, count = source[link[v]], table_starts[link[v] ^ 1], offsets[v + 1] - offsets[v]
            for y in range(offsets[parent + 1] - offsets[parent]):
                best = -np.inf
                for x in range(count):
                    best = max(best, tables[entry + y * count + x] + beliefs[offsets[v] + x])
                beliefs[offsets[parent] + y] += best
    for v in order:
        best = -np.inf
        for x in range(offsets[v + 1] - offsets[v]):
            belief = beliefs[offsets[v] + x]
            if link[v] >= 0:
                u = source[link[v]]
                belief += tables[table_starts[link[v]] + x * (offsets[u + 1] - offsets[u]) + states[u]]
            if belief > best:
                best, states[v] = belief, x


@helper()
def settle(m: Messages, given: int, order: Ints, link: Ints, old: Ints, new: Ints, settled: Bools) -> None:
    """Update which of the `given` variables no single change improves, after a forest moved from
    `old` to `new`.

    A variable becomes settled when it is optimised together with the variables that stand for its
    factors, and stays so until a neighbour changes."""
    _, source, _, _, _, _, first, incoming = m
    for v in order:
        if new[v] != old[v]:
            for q in range(first[v], first[v + 1]):
                settled[source[incoming[q]]] = False
    for v in order:
        together = True
        for q in range(first[v], first[v + 1]):
            together &= source[incoming[q]] < given or link[source[incoming[q]]] > -2
        settled[v] |= together


@helper()
def copy(source: Ints, target: Ints) -> None:
    for i in range(target.size):
        target[i] = source[i]


@kernel()
def ascend(
    m: Messages, given: int, unary: Floats, root: int, bound: float, progress: float, fruitless: int, states: Ints
) -> float:
    """Maximise in place over one forest after another, given the rest; returns the score.

    Variables from `given` on stand for factors. Ends when no change of a single other variable
    improves, and `fruitless` consecutive forests have each closed at most a share `progress` of the
    distance to the bound."""
    n = states.size
    order, link, new = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    beliefs, settled = np.empty(unary.size), np.zeros(n, np.bool_)
    value, idle, unsettled = score(m, unary, states), 0, True
    while unsettled or idle < fruitless:
        most = n if idle < fruitless else m.first[root + 1] - m.first[root] + 1
        size = grow(m, root, most, order, link)
        copy(states, new)
        maximise_forest(m, unary, order[:size], link, beliefs, new)
        found = score(m, unary, new)
        idle = 0 if found - value > progress * max(bound - value, 0.0) else idle + 1
        if not found > value:
            copy(states, new)
        settle(m, given, order[:size], link, states, new, settled)
        copy(new, states)
        value = max(value, found)
        root = (root + 1) % given
        unsettled = False
        for v in range(given):
            unsettled |= not settled[v]
        while unsettled and settled[root]:
            root = (root + 1) % given
    return value


@kernel()
def trws(m: Messages, constant: float, given: int, unary: Floats, limits: StoppingRule, found: Bounded) -> None:
    """TRW-S for each row of `unary`, shape (batch, states); fills `found`.

    Variables from `given` on stand for factors.
    """
    tolerance, progress, patience, max_iterations = limits
    states, bounds, iterations = found
    beliefs, decoded = np.empty(unary.shape[1]), np.empty(states.shape[1], np.int64)
    for row in range(unary.shape[0]):
        messages = np.zeros(m.starts[-1])
        best, bound, earlier = -np.inf, np.inf, np.inf
        for iteration in range(1, max_iterations + 1):
            value = constant + forward(m, unary[row], messages, beliefs, decoded)
            if value > best or iteration == 1:
                best = value
                copy(decoded, states[row])
            bound = min(bound, constant + backward(m, unary[row], messages, beliefs))
            iterations[row] = iteration
            slack = tolerance * max(1.0, abs(bound))
            if bound == -np.inf or bound - best <= slack:
                break
            if iteration % patience == 0 or iteration == max_iterations:
                root, room = iteration % given, bound - constant
                best = constant + ascend(m, given, unary[row], root, room, progress, FRUITLESS, states[row])
                gap = bound - best
                if gap <= slack or earlier - bound <= max(slack, progress * gap if gap < np.inf else 0.0):
                    break
                earlier = bound
        bounds[row] = bound
