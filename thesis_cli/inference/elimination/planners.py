"""The tree of an elimination: candidates, the race between them, and the slices in which it fits into
the memory.

The candidates are the tree of our own order, the same with its subtrees improved by cotengra, and
cotengra's random greedy trees. What the race may take is a share of the time that the best tree so far
is predicted to take; both are counted in work, so that a model has the same tree on every machine.
"""

from __future__ import annotations

import heapq
import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.base.memory import SECONDS_A_BYTE, Cost
from thesis_cli.inference.elimination.order import Clique, best_order
from thesis_cli.inference.elimination.passes import back_pass
from thesis_cli.inference.elimination.tree import Layout, PairTree, Task

NEAR = 8
"""Tables among which the partner of the smallest is chosen."""

SHARE = 0.15
"""Work of the race, as a share of that of the best tree so far."""

ROUNDS = 12
"""Candidates of cotengra at most."""

FIRST_TRIALS = 2
"""Candidates after which the race goes on only if there is some hope."""

TRIALS = 128
"""Random greedy trees of which a candidate is the best."""

SUBTREES = 8
"""Tables of a subtree that is improved."""

SECONDS_A_TABLE, MOST_SECONDS = 2.5e-3, 3.0
"""Time of a candidate for each table of the model, and most time of the race, both predicted."""

LIBRARY = 2**16
"""Variables that cotengra numbers."""

HOPELESS = 3600.0
"""Predicted seconds beyond which slices are not looked for."""

AT_ONCE = 3
"""Powers of two by which the memory is too small, for each variable that is held before a tree is judged again."""

SMALLEST = 2**20
"""Bytes of memory below which a model is not solved in slices."""

_SEED = 20231123


@dataclass(frozen=True)
class Sliced:
    """A tree and the variables that are held at a state, one slice after the other.

    Attributes
    ----------
    tree : of one slice.
    held : variables.
    slices : number of slices.
    layout : of the tables of a slice.
    cost : of all slices.
    """

    tree: PairTree
    held: tuple[int, ...]
    slices: int
    layout: Layout
    cost: Cost


def planned(cardinalities: Sequence[int], scopes: Sequence[Clique], memory: int, task: Task = "sum") -> Sliced:
    """The candidate that is predicted to take least time within the memory, in slices if it must; if none
    fits, the one that would take least time with the memory that it needs.
    """
    own = tree_of_order(cardinalities, scopes, best_order(cardinalities, scopes).order)
    best = fitted(own, memory, task)
    if len(scopes) < 3 or len(cardinalities) > LIBRARY:
        return best
    each = SECONDS_A_TABLE * len(scopes)
    for turn in range(ROUNDS):
        if (turn + 1) * each > min(SHARE * best.cost.seconds, MOST_SECONDS):
            break
        if turn >= FIRST_TRIALS and best.cost.seconds > HOPELESS:
            break
        most = best.cost.seconds if best.cost.memory <= memory else HOPELESS
        found = fitted(_by_library(own, turn), memory, task, most)
        best = min(best, found, key=lambda each: _rank(each, memory, task))
    return best


def _rank(found: Sliced, memory: int, task: Task) -> tuple[bool, float]:
    """Order of candidates, the best first: those that fit by their seconds, passes that do not by their memory."""
    fits = found.cost.memory <= memory
    passes = task in ("marginals", "samples")
    return not fits, found.cost.memory if passes and not fits else found.cost.seconds


def fitted(tree: PairTree, memory: int, task: Task = "sum", most: float = HOPELESS) -> Sliced:
    """A tree in slices, or, if none fit that take so many seconds at most, with the memory that it needs."""
    tree = tree.in_order()
    if task in ("marginals", "samples"):
        return _sliced_pass(tree, memory, task, most) or _least_pass(tree, memory, task)
    found = sliced(tree, memory, task, most)
    return found if found.cost.memory <= memory else sliced(tree, sys.maxsize, task)


def sliced(tree: PairTree, memory: int, task: Task = "sum", most: float = HOPELESS) -> Sliced:
    """A tree in slices that fit into the memory, or the last that was looked at if none fit that take so
    many seconds at most.
    """
    held: tuple[int, ...] = ()
    slices = 1
    while True:
        needed = tree.bytes_of(task)
        cost = Cost(slices * tree.seconds_of(task) + SECONDS_A_BYTE * needed, needed)
        found = Sliced(tree, held, slices, tree.layout, cost)
        if needed <= memory or memory < SMALLEST or found.cost.seconds > most:
            return found
        chosen = _cheapest(tree, max(1, int(math.log2(needed / memory)) // AT_ONCE))
        if not chosen:
            return found
        for i in chosen:
            held, slices, tree = (*held, i), slices * tree.cardinalities[i], tree.held(i)
        tree = tree.in_order()


def with_pass(tree: PairTree, held: tuple[int, ...], slices: int, layout: Layout) -> Sliced:
    """Slices of a pass there and back."""
    cost = Cost(slices * layout.seconds + SECONDS_A_BYTE * layout.memory, layout.memory)
    return Sliced(tree, held, slices, layout, cost)


def _sliced_pass(tree: PairTree, memory: int, task: Task, most: float) -> Sliced | None:
    """The slices in which a pass there and back takes least time within the memory; None if there are none whose sums
    take so many seconds at most.
    """
    best: Sliced | None = None
    held: tuple[int, ...] = ()
    slices = 1
    while slices == 1 or slices * tree.seconds < most:
        if layout := back_pass(tree, task, memory):
            found = with_pass(tree, held, slices, layout)
            best = min(best or found, found, key=lambda each: each.cost.seconds)
            most = min(most, best.cost.seconds)
        chosen = _cheapest(tree, max(1, int(math.log2(tree.layout.memory / memory)) // AT_ONCE))
        if not chosen or memory < SMALLEST:
            break
        for i in chosen:
            held, slices, tree = (*held, i), slices * tree.cardinalities[i], tree.held(i)
        tree = tree.in_order()
    return best


def _least_pass(tree: PairTree, memory: int, task: Task) -> Sliced:
    """A pass there and back, and about the least memory in which it runs."""
    whole = back_pass(tree, task)
    assert whole
    sizes = [quarters << power for power in range(8, whole.memory.bit_length()) for quarters in range(4, 8)]
    sizes = [size for size in sizes if memory < size < whole.memory]
    least = bisect_left(sizes, True, key=lambda size: back_pass(tree, task, size) is not None)
    layout = back_pass(tree, task, sizes[least]) if least < len(sizes) else whole
    assert layout
    found = with_pass(tree, (), 1, layout)
    return found if layout is whole else replace(found, cost=Cost(found.cost.seconds, sizes[least]))


def _cheapest(tree: PairTree, count: int) -> list[int]:
    """The variables of the largest table that add least work if they are held, so many at most."""
    largest = tree.tables[int(np.argmax(tree.sizes))] if tree.sizes else ()
    within = dict.fromkeys(largest, 0.0)
    for step in tree.steps:
        for i in {*step.left, *step.right} & within.keys():
            within[i] += step.seconds
    total = tree.seconds
    k = tree.cardinalities
    return sorted(largest, key=lambda i: (k[i] * (total - within[i]) + within[i], i))[:count]


OURS = {0: "combo-16", 2: "combo", 5: "flops"}
"""Turns of the race in which our own tree is improved, and by which measure: products, and perhaps so
many times the entries that are made."""


def _by_library(own: PairTree, turn: int) -> PairTree:
    """A candidate of cotengra: the best of some random greedy trees, or our own tree, with its subtrees
    improved.
    """
    from cotengra import ContractionTree, get_symbol
    from cotengrust import optimize_random_greedy_track_flops

    inputs = [[get_symbol(i) for i in scope] for scope in own.scopes]
    sizes = {get_symbol(i): k for i, k in enumerate(own.cardinalities)}
    pairs: Sequence[Sequence[int]] = own.pairs
    if turn not in OURS:
        pairs, _ = optimize_random_greedy_track_flops(inputs, [], sizes, ntrials=TRIALS, seed=turn, use_ssa=True)
    found = ContractionTree.from_path(inputs, [], sizes, ssa_path=pairs)
    found.subtree_reconfigure_(subtree_size=SUBTREES, minimize=OURS.get(turn, "combo-16"), seed=_SEED)
    return replace(own, pairs=[(a, b) for a, b in found.get_ssa_path()])


def tree_of_order(cardinalities: Sequence[int], scopes: Sequence[Clique], order: Sequence[int]) -> PairTree:
    """The tree that multiplies the tables of one variable after the other, the pair with the smallest
    product first.

    Parameters
    ----------
    cardinalities : number of states of each of n variables.
    scopes : variables of each table.
    order : variables in the order of elimination.
    """
    users: dict[int, set[int]] = {}
    for f, scope in enumerate(scopes):
        for i in scope:
            users.setdefault(i, set()).add(f)
    live = {f: {i for i in scope if len(users[i]) > 1} for f, scope in enumerate(scopes)}
    pairs: list[tuple[int, int]] = []

    def size(variables: set[int]) -> int:
        return math.prod(cardinalities[i] for i in variables)

    def join(a: int, b: int) -> int:
        made = len(scopes) + len(pairs)
        pairs.append((a, b))
        left, right = live.pop(a), live.pop(b)
        for i in left:
            users[i].discard(a)
        for i in right:
            users[i].discard(b)
        live[made] = {i for i in left | right if users[i]}
        for i in live[made]:
            users[i].add(made)
        return made

    for variable in order:
        tables = users.get(variable, set())
        queue = [(size(live[t]), t) for t in tables] if len(tables) > 1 else []
        heapq.heapify(queue)
        while len(queue) > 1:
            _, a = heapq.heappop(queue)
            near = heapq.nsmallest(NEAR, queue)
            other = min(near, key=lambda each: (size(live[a] | live[each[1]]), each))
            queue.remove(other)
            made = join(a, other[1])
            queue.append((size(live[made]), made))
            heapq.heapify(queue)
    rest = sorted(live)
    while len(rest) > 1:
        rest = [join(rest[0], rest[1]), *rest[2:]]
    return PairTree(cardinalities, scopes, pairs)
