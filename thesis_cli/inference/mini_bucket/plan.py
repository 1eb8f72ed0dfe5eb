"""Mini-buckets: how elimination is cut into tables of a limited size (Dechter and Rish 2003)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import Factor, FactorGraph, squeezed

Scope = tuple[int, ...]
OrderName = Literal["least fill", "last first"]
"""Orders of elimination; the last variable first, in a Bayesian network with parents before children, sums out
children before their parents, so that tables of probabilities without evidence below them are 1.
"""

BLOCK = 4096
"""Entries of a table that share one row of offsets."""

PART = 2**14
"""Entries of a sum of factors that stays in a cache."""


@dataclass
class MiniBucket:
    """One table of a bucket.

    Attributes
    ----------
    scope : its variables in the order of elimination, so the eliminated one is first.
    shape : their numbers of states.
    factors : its factors, each with its variables in that order.
    base_scope : the variables of its scope that some factor names.
    children : the mini-buckets whose messages it takes.
    parent : the mini-bucket that takes its own; -1 if the message is a number.
    """

    scope: Scope
    shape: tuple[int, ...]
    factors: list[Factor]
    base_scope: Scope
    children: list[int]
    parent: int = -1

    @cached_property
    def size(self) -> int:
        """Entries of its table."""
        return math.prod(self.shape)

    @cached_property
    def base(self) -> Floats:
        """Sum of its factors, over `base_scope`."""
        return self._sum(self.factors, self.base_scope)

    @cached_property
    def parts(self) -> list[tuple[Floats, Scope]]:
        """Sums of some of its factors, over the variables of these, of at most `PART` entries unless one has more."""
        groups: list[tuple[set[int], list[Factor]]] = []
        sizes = dict(zip(self.scope, self.shape, strict=True))
        for f in self.factors:
            for variables, members in groups:
                if math.prod(sizes[i] for i in variables.union(f.scope)) <= PART:
                    variables.update(f.scope)
                    members.append(f)
                    break
            else:
                groups.append((set(f.scope), [f]))
        scopes = [tuple(i for i in self.scope if i in variables) for variables, _ in groups]
        return [(self._sum(members, own), own) for own, (_, members) in zip(scopes, groups, strict=True)]

    @cached_property
    def largest(self) -> float:
        """A bound on the finite magnitude of its factors."""
        return sum(largest(values) for values, _ in self.parts)

    def _sum(self, factors: list[Factor], scope: Scope) -> Floats:
        sizes = dict(zip(self.scope, self.shape, strict=True))
        total = np.zeros([sizes[i] for i in scope])
        for f in factors:
            total += f.table.reshape([sizes[i] if i in f.scope else 1 for i in scope])
        return total.reshape(-1)


def largest(values: Floats) -> float:
    """The largest finite magnitude of numbers of any shape."""
    top = max(values.max(), -values.min())
    return float(top) if np.isfinite(top) else float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


Offsets = tuple[Ints, Ints]
"""Places of the entries of a table in a smaller one: the sum of an offset for each block of the
table and one for each entry of a block."""


@dataclass
class MiniBucketPlan:
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
    def exact(self) -> bool:
        """Whether no bucket is divided, so that the passes are variable elimination."""
        return all(len(bucket) == 1 for bucket in self.buckets)

    @property
    def entries(self) -> int:
        """Entries of all tables."""
        return sum(node.size for node in self.nodes)

    @property
    def memory(self) -> int:
        """Bytes of one pass in both directions: messages, and the tables of one bucket with their beliefs."""
        messages = sum(2 * node.size // node.shape[0] for node in self.nodes)
        return 8 * (messages + max((3 * sum(self.nodes[j].size for j in b) for b in self.buckets), default=0))

    def offsets(self, j: int, scope: Scope) -> Offsets:
        """Places of the entries of mini-bucket j in a table over some of its variables."""
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

    Parameters
    ----------
    last : variables that are eliminated after all others, and count nothing where no factor names them.
    """

    def __init__(self, graph: FactorGraph, last: Collection[int] = ()) -> None:
        self._states, self._last = graph.cardinalities, frozenset(last)
        self._constant = float(sum(f.table.item() for f in graph.factors if f.table.size == 1))
        self._factors = [squeezed(f, self._states) for f in graph.factors if f.table.size > 1]
        named = {i for f in self._factors for i in f.scope}
        self._constant += sum(math.log(k) for i, k in enumerate(self._states) if i not in named | self._last)
        self._variables = sorted(named)

    def plan(self, limit: float, rule: OrderName = "least fill") -> MiniBucketPlan:
        """Mini-buckets whose tables have at most `limit` entries, where the factors allow."""
        cut = _Cut(self._states, [f.scope for f in self._factors], math.log(limit) + 1e-9, self._last, rule)
        order, found = cut.order(self._variables)
        at = {i: step for step, i in enumerate(order)}
        nodes: list[MiniBucket] = []
        buckets: list[list[int]] = [[] for _ in order]
        shared: list[Scope] = []
        for variables, members in found:
            scope = tuple(sorted(variables, key=at.__getitem__))
            buckets[at[scope[0]]].append(len(nodes))
            nodes.append(self._mini_bucket(scope, members, at))
            for child in nodes[-1].children:
                nodes[child].parent = len(nodes) - 1
        for bucket in buckets:
            common = set.intersection(*(set(nodes[j].scope) for j in bucket))
            shared.append(tuple(i for i in nodes[bucket[0]].scope if i in common))
        return MiniBucketPlan(nodes, buckets, shared, self._constant, order)

    def _mini_bucket(self, scope: Scope, members: list[int], at: dict[int, int]) -> MiniBucket:
        factors = [_sorted(self._factors[index], at) for index in members if index >= 0]
        covered = {i for f in factors for i in f.scope}
        own = tuple(i for i in scope if i in covered)
        children = [-1 - index for index in members if index < 0]
        return MiniBucket(scope, tuple(self._states[i] for i in scope), factors, own, children)


class _Cut:
    """Elimination of scopes in which large buckets are divided.

    By least fill, the next variable is the one whose functions would join the fewest pairs of variables that no
    function joins yet. What mini-buckets leave apart stays apart, so the order depends on the limit.
    """

    def __init__(
        self, states: Sequence[int], scopes: Sequence[Scope], limit: float, last: Collection[int], rule: OrderName
    ) -> None:
        self._logs, self._limit, self._last, self._rule = [math.log(k) for k in states], limit, last, rule
        self._functions: dict[int, frozenset[int]] = {}  # by index: factors, and messages j as -1 - j
        self._around: list[set[int]] = [set() for _ in states]  # functions that name each variable
        self._near: list[dict[int, int]] = [{} for _ in states]  # number of functions shared with each other one
        for index, scope in enumerate(scopes):
            self._add(index, frozenset(scope))

    def _add(self, index: int, scope: frozenset[int]) -> None:
        self._functions[index] = scope
        for i in scope:
            self._around[i].add(index)
            near = self._near[i]
            for j in scope:
                if j != i:
                    near[j] = near.get(j, 0) + 1

    def _remove(self, index: int) -> None:
        scope = self._functions.pop(index)
        for i in scope:
            self._around[i].discard(index)
            near = self._near[i]
            for j in scope:
                if j != i:
                    near[j] -= 1
                    if not near[j]:
                        del near[j]

    def _cost(self, i: int) -> tuple[bool, int, float, int]:
        """Whether it comes last, pairs of neighbours that nothing joins, then the size of the table, or its place."""
        if self._rule == "last first":
            return i in self._last, -i, 0.0, i
        near = self._near[i].keys()
        joined = sum(len(near & self._near[j].keys()) for j in near)
        return i in self._last, (len(near) * (len(near) - 1) - joined) // 2, self._size(near) + self._logs[i], i

    def order(self, variables: Sequence[int]) -> tuple[list[int], list[tuple[set[int], list[int]]]]:
        """The variables as they are eliminated, and variables and functions of each mini-bucket."""
        queue = [self._cost(i) for i in variables]
        heapq.heapify(queue)
        done, order, found = set[int](), list[int](), list[tuple[set[int], list[int]]]()
        while queue:
            cost = heapq.heappop(queue)
            i = cost[-1]
            if i in done:
                continue
            if (now := self._cost(i)) > cost:  # its neighbours have changed since
                heapq.heappush(queue, now)
                continue
            done.add(i)
            order.append(i)
            touched: set[int] = set()
            for mini, members in self._divide(self._around[i]):
                for index in members:
                    self._remove(index)
                touched |= mini
                found.append((mini, members))
                self._add(-len(found), frozenset(mini - {i}))
            for j in touched - {i}:
                heapq.heappush(queue, self._cost(j))
        return order, found

    def _divide(self, functions: set[int]) -> list[tuple[set[int], list[int]]]:
        """Functions in as few mini-buckets as one of two ways gives, and with small tables if both give as few."""
        every = set[int]().union(*(self._functions[index] for index in functions))
        if self._size(every) <= self._limit:
            return [(every, sorted(functions))]
        merged, filled = self._merged(functions), self._filled(functions)
        return merged if len(merged) <= len(filled) else filled

    def _filled(self, functions: set[int]) -> list[tuple[set[int], list[int]]]:
        """Functions in mini-buckets: the largest first, each where it adds least."""
        found: list[tuple[set[int], list[int]]] = []
        sized = sorted((-self._size(self._functions[index]), index) for index in functions)
        for _, index in sized:
            scope = self._functions[index]
            sizes = [(self._size(variables | scope), at) for at, (variables, _) in enumerate(found)]
            fitting = [(size - self._size(found[at][0]), at) for size, at in sizes if size <= self._limit]
            if fitting:
                at = min(fitting)[1]
                found[at][0].update(scope)
                found[at][1].append(index)
            else:
                found.append((set(scope), [index]))
        return found

    def _merged(self, functions: set[int]) -> list[tuple[set[int], list[int]]]:
        """Functions in mini-buckets: again and again those two become one whose table is smallest, of as small ones
        those that share most.
        """
        found = {at: (set(self._functions[index]), [index]) for at, index in enumerate(sorted(functions))}
        sizes = {at: self._size(variables) for at, (variables, _) in found.items()}
        queue = [pair for b in found for a in range(b) if (pair := self._pair(found, sizes, a, b))]
        heapq.heapify(queue)
        while queue:
            size, _, a, b = heapq.heappop(queue)
            if a not in found or b not in found:
                continue
            (variables, members), (more, others) = found.pop(a), found.pop(b)
            at = len(sizes)
            sizes[at] = size
            found[at] = variables | more, members + others
            for c in found:
                if c != at and (pair := self._pair(found, sizes, c, at)):
                    heapq.heappush(queue, pair)
        return list(found.values())

    def _pair(
        self, found: dict[int, tuple[set[int], list[int]]], sizes: dict[int, float], a: int, b: int
    ) -> tuple[float, float, int, int] | None:
        """Size of two mini-buckets as one, minus that of both, and which they are; None beyond the limit."""
        size = self._size(found[a][0] | found[b][0])
        return (size, -sizes[a] - sizes[b], a, b) if size <= self._limit else None

    def _size(self, variables: Iterable[int]) -> float:
        return sum(self._logs[i] for i in variables)


def _sorted(factor: Factor, at: dict[int, int]) -> Factor:
    """A factor with its variables in the order of elimination."""
    axes = sorted(range(len(factor.scope)), key=lambda a: at[factor.scope[a]])
    return Factor(tuple(factor.scope[a] for a in axes), factor.table.transpose(axes))
