"""The order in which to eliminate the variables of a factor graph, and its cost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

LARGEST_TABLE = math.log(2.0**30)
"""A greedy order is abandoned once it needs a table with more entries than this; natural logarithm.
"""

Clique = tuple[int, ...]


def elimination_order(cardinalities: Sequence[int], scopes: Sequence[Clique]) -> tuple[list[int], list[Clique]]:
    """The cheapest of three orders: the variables' own, greedy by least fill, and greedy by least
    table.

    The first is found at once. The others are abandoned at the first huge table, so that a model
    that cannot be eliminated is refused soon.

    Returns
    -------
    order : the variables.
    cliques : the variables of the table at each step, ascending, the eliminated one among them.
    """
    logs = [math.log(k) for k in cardinalities]
    greedy = [_greedy(logs, scopes, by_fill=by_fill) for by_fill in (False, True)]
    found = [(list(range(len(logs))), _own_order(len(logs), scopes)), *(each for each in greedy if each is not None)]
    return min(found, key=lambda each: sum(math.prod(cardinalities[i] for i in clique) for clique in each[1]))


def _own_order(n: int, scopes: Sequence[Clique]) -> list[Clique]:
    """Cliques of the order 0, 1, ...: each step passes its neighbours on to the next step that
    names one.
    """
    left: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        if scope:
            left[min(scope)].update(scope)
    cliques = []
    for i in range(n):
        left[i].discard(i)
        if left[i]:
            left[min(left[i])] |= left[i]
        cliques.append((i, *sorted(left[i])))
        left[i] = set()
    return cliques


def _greedy(logs: Sequence[float], scopes: Sequence[Clique], *, by_fill: bool) -> tuple[list[int], list[Clique]] | None:
    """Eliminate what costs least next: fewest fill edges, then the smallest table, or the smallest
    table at once.
    """
    neighbours: list[set[int]] = [set() for _ in logs]
    for scope in scopes:
        for i in scope:
            neighbours[i].update(j for j in scope if j != i)

    def size(i: int) -> float:
        return logs[i] + sum(logs[j] for j in neighbours[i])

    def fill(i: int) -> int:
        """Twice the number of pairs of neighbours without an edge."""
        near = neighbours[i]
        return len(near) * (len(near) - 1) - sum(len(near & neighbours[j]) for j in near) if by_fill else 0

    costs = {i: (fill(i), size(i)) for i in range(len(logs))}
    queue = [(cost, i) for i, cost in costs.items()]
    heapq.heapify(queue)
    order: list[int] = []
    cliques: list[Clique] = []
    while queue:
        cost, i = heapq.heappop(queue)
        if costs.get(i) != cost:  # outdated, or i is eliminated already
            continue
        if cost[1] > LARGEST_TABLE:
            return None
        near = neighbours[i]
        order.append(i)
        cliques.append(tuple(sorted({i, *near})))
        del costs[i]
        around: dict[int, int] = {}  # fill that an edge between two neighbours of theirs takes from others
        for a in near:
            neighbours[a].discard(i)
        for a in near:
            for b in near - neighbours[a]:
                if b > a:
                    if by_fill:
                        for c in neighbours[a] & neighbours[b]:
                            around[c] = around.get(c, 0) + 2
                    neighbours[a].add(b)
                    neighbours[b].add(a)
        for j in near:
            costs[j] = (fill(j), size(j))
            heapq.heappush(queue, (costs[j], j))
        for c in around.keys() - near:
            costs[c] = (costs[c][0] - around[c], costs[c][1])
            heapq.heappush(queue, (costs[c], c))
    return order, cliques


def bytes_needed(cardinalities: Sequence[int], order: Sequence[int], cliques: Sequence[Clique]) -> int:
    """Memory of one elimination: two copies of the largest table, waiting messages, and maximisers."""
    at = {variable: j for j, variable in enumerate(order)}
    arriving = [0] * len(order)  # bytes of the messages that a step takes
    waiting = peak = choices = 0
    for j, (variable, clique) in enumerate(zip(order, cliques, strict=True)):
        size = math.prod(cardinalities[i] for i in clique)
        left = size // cardinalities[variable]
        peak = max(peak, 16 * size + waiting)
        waiting -= arriving[j]
        if len(clique) > 1:
            arriving[min(at[i] for i in clique if i != variable)] += 8 * left
            waiting += 8 * left
        choices += left * index_type(cardinalities[variable])().itemsize
    return peak + choices


def index_type(states: int) -> type[np.unsignedinteger]:
    """The smallest type that numbers the states of a variable."""
    return np.uint8 if states <= 2**8 else np.uint16 if states <= 2**16 else np.uint32
