"""An upper bound on ln Z in milliseconds: each variable is summed over in one table and maximised over in others."""

from __future__ import annotations

import heapq
import math

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models.factor_graph import FactorGraph

CONSTANT = 1e-12
"""Spread of a table that counts as a number, its largest entry."""

ROUNDING = 2.0**-45
"""Relative error allowed for in each number."""


def single_sums_bound(graph: FactorGraph) -> float:
    """An upper bound on ln Z in nats, which holds in spite of rounding.

    It is mini-bucket elimination without products (Dechter and Rish 2003), in two orders: the variable that fewest
    tables name first; and the last variable first, which in a Bayesian network with parents before children sums
    each table over the child. A variable is summed over where that costs least.
    """
    return min(_bound(graph, last_first) for last_first in (False, True))


def _bound(graph: FactorGraph, last_first: bool) -> float:
    tables: dict[int, tuple[tuple[int, ...], Floats]] = {}
    users: list[set[int]] = [set() for _ in graph.cardinalities]
    numbers, slack = [0.0], ROUNDING * (1 + math.fsum(map(math.log, graph.cardinalities)))
    for f, factor in enumerate(graph.factors):
        tables[f] = factor.scope, factor.table
        finite = factor.table[np.isfinite(factor.table)]
        slack += ROUNDING * (1 + len(factor.scope)) * (1 + float(np.abs(finite).max(initial=0.0)))
        for i in factor.scope:
            users[i].add(f)

    def key(i: int) -> tuple[int, int]:
        return 0 if last_first else len(users[i]), -i

    def put(f: int, scope: tuple[int, ...], table: Floats) -> None:
        top = float(table.max())
        if top == -math.inf or top - table.min() <= CONSTANT:
            numbers.append(top)
            del tables[f]
            for i in scope:
                users[i].discard(f)
                heapq.heappush(queue, key(i))
        else:
            tables[f] = scope, table

    queue: list[tuple[int, int]] = []
    for f in list(tables):
        put(f, *tables[f])
    queue = [key(i) for i in range(len(users))]
    heapq.heapify(queue)
    done = set[int]()
    while queue:
        found_key = heapq.heappop(queue)
        i = -found_key[1]
        if i in done or found_key != key(i):
            continue
        done.add(i)
        numbers += [math.log(graph.cardinalities[i])] * (not users[i])
        found = []
        for f in sorted(users[i]):
            scope, table = tables[f]
            most, total = (function(table, axis=scope.index(i)) for function in (np.max, np.logaddexp.reduce))
            found.append((float(total.max()) - float(most.max()), f, most, total))
        for turn, (_, f, most, total) in enumerate(sorted(found, key=lambda each: each[:2])):
            put(f, tuple(other for other in tables[f][0] if other != i), most if turn else total)
        users[i].clear()
    return math.fsum(numbers) + slack
