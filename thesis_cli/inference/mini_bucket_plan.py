"""Mini-buckets: how elimination is cut into tables of a limited size (Dechter and Rish 2003)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination_order import elimination_order
from thesis_cli.models.factor_graph import Factor, FactorGraph

Scope = tuple[int, ...]

BLOCK = 4096
"""Entries of a table that share one row of offsets."""


@dataclass
class MiniBucket:
    """One table of a bucket.

    Attributes
    ----------
    scope : its variables in the order of elimination, so the eliminated one is first.
    shape : their numbers of states.
    base : sum of its factors, over the variables `base_scope` of its scope.
    children : the mini-buckets whose messages it takes.
    parent : the mini-bucket that takes its own; -1 if the message is a number.
    """

    scope: Scope
    shape: tuple[int, ...]
    base: Floats
    base_scope: Scope
    children: list[int]
    parent: int = -1

    @property
    def size(self) -> int:
        """Entries of its table."""
        return math.prod(self.shape)


Offsets = tuple[Ints, Ints]
"""Where the entries of a table lie in a smaller one: the sum of an offset for each block of the
table and one for each entry of a block."""


@dataclass
class Plan:
    """Mini-buckets of a model, none larger than a limit unless one factor is.

    Attributes
    ----------
    nodes : all mini-buckets, in the order of elimination.
    buckets : the indices of those of each variable, in the same order.
    shared : the variables that all mini-buckets of each bucket have in common, the eliminated one
        first.
    constant : sum of the factors without variables, and ln of the states of free variables.
    order : the variables of two states or more that some factor names, as they are eliminated.
    """

    nodes: list[MiniBucket]
    buckets: list[list[int]]
    shared: list[Scope]
    constant: float
    order: list[int]
    _offsets: dict[tuple[int, Scope], Offsets] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """Entries of all tables, to which the time of a pass is proportional."""
        return sum(node.size for node in self.nodes)

    @property
    def exact(self) -> bool:
        """Whether no bucket is divided, so that the passes are variable elimination."""
        return all(len(bucket) == 1 for bucket in self.buckets)

    @property
    def memory(self) -> int:
        """Bytes of one pass in both directions: messages, and the tables of one bucket with their
        weights."""
        messages = sum(2 * node.size // node.shape[0] for node in self.nodes)
        return 8 * (messages + max((3 * sum(self.nodes[j].size for j in b) for b in self.buckets), default=0))

    def offsets(self, j: int, scope: Scope) -> Offsets:
        """Where the entries of mini-bucket j lie in a table over some of its variables."""
        if (j, scope) not in self._offsets:
            node = self.nodes[j]
            strides, step = dict.fromkeys(node.scope, 0), 1
            sizes = dict(zip(node.scope, node.shape, strict=True))
            for i in reversed(scope):
                strides[i], step = step, step * sizes[i]
            cut, block = len(node.scope), 1
            while cut and block * node.shape[cut - 1] <= BLOCK:
                cut -= 1
                block *= node.shape[cut]
            axes = [np.arange(sizes[i]) * strides[i] for i in node.scope]
            self._offsets[j, scope] = _outer(axes[:cut]), _outer(axes[cut:])
        return self._offsets[j, scope]


def _outer(axes: Sequence[Ints]) -> Ints:
    total = np.zeros(1, np.int64)
    for axis in axes:
        total = np.add.outer(total, axis).reshape(-1)
    return np.ascontiguousarray(total, np.int64)


class Planner:
    """A model prepared for plans of several limits.

    Attributes
    ----------
    order : the order of elimination.
    widest : logarithm of the largest table of elimination itself.
    """

    def __init__(self, graph: FactorGraph) -> None:
        self._states = graph.cardinalities
        self._constant = float(sum(f.table.item() for f in graph.factors if f.table.size == 1))
        squeezed = [_squeezed(f, self._states) for f in graph.factors if f.table.size > 1]
        named = {i for f in squeezed for i in f.scope}
        self._constant += sum(math.log(k) for i, k in enumerate(self._states) if i not in named)
        order, cliques = elimination_order(self._states, [f.scope for f in squeezed])
        kept = [(i, clique) for i, clique in zip(order, cliques, strict=True) if i in named]
        self.order = [i for i, _ in kept]
        self.widest = max((sum(math.log(self._states[i]) for i in clique) for _, clique in kept), default=0.0)
        self._at = {i: step for step, i in enumerate(self.order)}
        self._factors = [self._sorted(f) for f in squeezed]

    def _sorted(self, factor: Factor) -> Factor:
        axes = sorted(range(len(factor.scope)), key=lambda a: self._at[factor.scope[a]])
        return Factor(tuple(factor.scope[a] for a in axes), factor.table.transpose(axes))

    def plan(self, limit: float) -> Plan:
        """Mini-buckets whose tables have at most `limit` entries, where the factors allow."""
        waiting: list[list[tuple[Scope, int]]] = [[] for _ in self.order]  # factors, then messages as -1 - j
        for index, factor in enumerate(self._factors):
            waiting[self._at[factor.scope[0]]].append((factor.scope, index))
        nodes: list[MiniBucket] = []
        buckets: list[list[int]] = []
        shared: list[Scope] = []
        for functions in waiting:
            bucket = []
            for scope, members in self._divide(functions, math.log(limit) + 1e-9):
                j = len(nodes)
                nodes.append(self._mini_bucket(scope, members))
                for child in nodes[j].children:
                    nodes[child].parent = j
                if scope[1:]:
                    waiting[self._at[scope[1]]].append((scope[1:], -1 - j))
                bucket.append(j)
            buckets.append(bucket)
            common = set.intersection(*(set(nodes[j].scope) for j in bucket))
            shared.append(tuple(i for i in nodes[bucket[0]].scope if i in common))
        return Plan(nodes, buckets, shared, self._constant, self.order)

    def _divide(self, functions: list[tuple[Scope, int]], limit: float) -> list[tuple[Scope, list[int]]]:
        """Functions in mini-buckets: those with zeros and the largest first, each where it adds least."""
        found: list[tuple[set[int], list[int]]] = []
        for scope, index in sorted(functions, key=lambda f: (-self._size(f[0]), f)):
            sizes = [(self._size(variables | set(scope)), at) for at, (variables, _) in enumerate(found)]
            fitting = [(size - self._size(found[at][0]), at) for size, at in sizes if size <= limit]
            if fitting:
                at = min(fitting)[1]
                found[at][0].update(scope)
                found[at][1].append(index)
            else:
                found.append((set(scope), [index]))
        return [(tuple(sorted(variables, key=self._at.__getitem__)), members) for variables, members in found]

    def _size(self, variables: set[int] | Scope) -> float:
        return sum(math.log(self._states[i]) for i in variables)

    def _mini_bucket(self, scope: Scope, members: list[int]) -> MiniBucket:
        factors = [self._factors[index] for index in members if index >= 0]
        covered = {i for f in factors for i in f.scope}
        own = tuple(i for i in scope if i in covered)
        base = np.zeros([self._states[i] for i in own])
        for f in factors:
            base += f.table.reshape([self._states[i] if i in f.scope else 1 for i in own])
        children = [-1 - index for index in members if index < 0]
        return MiniBucket(scope, tuple(self._states[i] for i in scope), base.reshape(-1), own, children)


def _squeezed(factor: Factor, states: Sequence[int]) -> Factor:
    """A factor without its variables of one state."""
    scope = tuple(i for i in factor.scope if states[i] > 1)
    return Factor(scope, factor.table.reshape([states[i] for i in scope]))
