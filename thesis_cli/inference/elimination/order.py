"""The order in which to eliminate the variables of a factor graph, and its cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import interpreted

Clique = tuple[int, ...]

EFFORT = 2.0**29
"""Neighbours that the search for one order may scan; it takes the variables left then for one
clique."""

RESTARTS = 40
"""Orders tried beyond the first four, at most."""

SHARE = 0.05
"""Work that random restarts may take, as a share of the entries in the tables of the best order."""

MANY = 2000
"""From so many variables on, one order is enough if finding it takes longer than using it."""

WIDE, HOPELESS = 64.0, 200.0
"""From so many bits on, no order is sought with random ties, and one order is enough."""

CACHED, BEYOND = 18.0, 0.15
"""log2 of the entries of a table that caches hold, and the price of each bit beyond, in bits of work:
where two orders take as much, that of smaller tables waits less for memory."""

GRAIN = 2.0**20
"""Logarithms of cardinalities are rounded to multiples of 1 / GRAIN, so that their sums are exact
and ties the same on every machine."""

_SEED = 20231123


@dataclass(frozen=True)
class Ordering:
    """An elimination order.

    Attributes
    ----------
    order : the variables.
    width : number of variables in the largest clique, less one.
    bits : log2 of the number of entries of all tables together.
    """

    order: list[int]
    width: int
    bits: float


def best_order(
    cardinalities: Sequence[int],
    scopes: Sequence[Clique],
    *,
    largest: float = math.inf,
    effort: float = EFFORT,
    most: float = math.inf,
) -> Ordering:
    """The cheapest order found whose tables are not too large, or that of the least largest table.

    Greedy orders by least table, by least fill and by both are tried, the variables' own, and
    restarts with random ties.

    Its cost is the number of entries of all tables. What the search may do is counted in work, not
    in time, so a model has the same order on every machine. A model of any width gets an order.

    Parameters
    ----------
    cardinalities : number of states of each variable.
    scopes : variables of each factor.
    largest : log2 of the entries that a table may have.
    effort : neighbours that the search for one order may scan.
    most : log2 of the entries of all tables of the first greedy order from which no other is sought.
    """
    from thesis_cli.inference.elimination.order_kernels import greedy_order

    found = _ordering(cardinalities, scopes, greedy_order, largest=largest, effort=effort, enough=most)
    assert found
    return found


def small_order(cardinalities: Sequence[int], scopes: Sequence[Clique], most: float) -> Ordering | None:
    """The order of `best_order`, found without compiled code, for few variables; None if log2 of the
    number of entries of all tables of the first greedy order exceeds `most`.
    """
    greedy_order = interpreted("thesis_cli.inference.elimination.order_kernels").greedy_order
    return _ordering(cardinalities, scopes, greedy_order, most=most)


def _ordering(
    cardinalities: Sequence[int],
    scopes: Sequence[Clique],
    greedy_order: Any,
    *,
    largest: float = math.inf,
    effort: float = EFFORT,
    most: float = math.inf,
    enough: float = math.inf,
) -> Ordering | None:
    pairs = _pairs(scopes)
    used = np.zeros(len(cardinalities), np.bool_)
    used[pairs.reshape(-1)] = True
    members, free = np.flatnonzero(used), np.flatnonzero(~used)
    alone = math.log2(max(1, sum(cardinalities[int(i)] for i in free)))
    if not members.size:
        return Ordering(free.tolist(), 0, alone)
    number = np.cumsum(used) - 1
    states = np.array([cardinalities[int(i)] for i in members], np.float64)
    bits: Floats = np.round(np.log2(states) * GRAIN) / GRAIN
    adjacency = _adjacency(members.size, number[pairs])
    found = _search(greedy_order, adjacency, bits, (largest, effort), most, enough)
    if found is None:
        return None
    order, total, width = found
    return Ordering([*free.tolist(), *members[order].tolist()], width, float(np.logaddexp2(total, alone)))


def cliques_of(order: Sequence[int], scopes: Sequence[Clique]) -> list[Clique]:
    """Cliques of an order: each step passes its neighbours on to the next step that eliminates one
    of them.
    """
    at = {variable: j for j, variable in enumerate(order)}
    left: dict[int, set[int]] = defaultdict(set)
    for scope in scopes:
        if scope:
            left[min(at[i] for i in scope)].update(scope)
    cliques = []
    for j, variable in enumerate(order):
        near = left.pop(j, set())
        near.discard(variable)
        if near:
            left[min(at[i] for i in near)] |= near
        cliques.append(tuple(sorted((variable, *near))))
    return cliques


def _pairs(scopes: Sequence[Clique]) -> Ints:
    """Pairs of variables that share a factor, with repetitions, shape (pairs, 2)."""
    by_length: dict[int, list[Clique]] = defaultdict(list)
    for scope in set(map(tuple, scopes)):
        by_length[len(scope)].append(scope)
    found = [np.zeros((0, 2), np.int64)]
    for length, group in sorted(by_length.items()):
        table = np.array(group, np.int64).reshape(len(group), length)
        found.extend(table[:, [a, b]] for a, b in combinations(range(length), 2))
    return np.concatenate(found)


def _adjacency(n: int, pairs: Ints) -> tuple[Ints, Ints]:
    """Neighbours of variable v, ascending, are adjacent[first[v]:first[v + 1]]."""
    keys = np.unique(np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]]))
    first = np.concatenate([[0], np.cumsum(np.bincount(keys // n, minlength=n))])
    return first, keys % n


def _search(
    greedy_order: Any,
    adjacency: tuple[Ints, Ints],
    bits: Floats,
    limits: tuple[float, float],
    first_most: float,
    enough: float,
) -> tuple[Ints, float, int] | None:
    """The best order of a graph, log2 of its tables' sum, its width; `limits` are those of the
    largest table and of the effort. None if the sum of the first order exceeds `first_most`; the first
    order if it exceeds `enough`.
    """
    (first, adjacent), n, (most, effort) = adjacency, bits.size, limits
    quiet = np.zeros(n)
    best, (total, largest), width, work = greedy_order(
        first, adjacent, bits, quiet, np.array([0.0, 1.0]), np.array([first_most, effort])
    )
    if best.size < n or total > first_most:
        return None
    spent = 0

    def score(total: float, largest: float) -> float:
        return total + BEYOND * max(0.0, largest - CACHED)

    def rank(total: float, largest: float) -> tuple[float, float]:
        return max(largest, most), score(total, largest)

    def attempt(ties: Floats, fill: float, size: float) -> None:
        nonlocal best, total, largest, width, spent
        bound = score(total, largest) if largest <= most else np.inf
        found = greedy_order(first, adjacent, bits, ties, np.array([fill, size]), np.array([bound, effort]))
        spent += found[3]
        if found[0].size == n and rank(*found[1]) < rank(total, largest):
            best, (total, largest), width = found[:3]

    squares = float((np.diff(first).astype(np.float64) ** 2).sum())
    if (n > MANY and work > 2.0 ** min(total, 60.0)) or total > min(HOPELESS, enough):
        return best, float(total), width
    attempt(np.arange(n, dtype=np.float64), 0.0, 0.0)
    if squares < effort:
        small = 1 / (1 + bits.sum())
        attempt(quiet, 1.0, small)
        attempt(quiet, 1.0, 1.0)
        rng = np.random.default_rng(_SEED)
        spent = 0
        for turn in range(RESTARTS):
            if spent > SHARE * 2.0 ** min(total, 60.0) or total > WIDE:
                break
            attempt(rng.random(n), *((1.0, small), (1.0, 1.0), (0.0, 1.0))[turn % 3])
    return best, float(total), width


def bytes_needed(cardinalities: Sequence[int], order: Sequence[int], cliques: Sequence[Clique]) -> int:
    """Memory of one elimination: two copies of the largest table, waiting messages, and maximisers.

    Parameters
    ----------
    cardinalities : number of states of each of n variables.
    order : variables in the order of elimination.
    cliques : scope of the table of each step, the eliminated variable included.
    """
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
