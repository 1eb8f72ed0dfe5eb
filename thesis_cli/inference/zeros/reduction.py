"""Exact rewriting of a factor graph by its zeros: a smaller model with the same answers. Variables that
determine each other become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference.enumeration import (
    FlatTables,
    factor_of,
    factors_of,
    flat_tables,
    joined,
    products,
    starts,
    users_of,
)
from thesis_cli.inference.zeros import reduction_kernels as kernels
from thesis_cli.models.factor_graph import Factor, FactorGraph


class Classes:
    """Variables that determine each other: each with its representative, and its state for each
    state of that.
    """

    def __init__(self) -> None:
        self.parents: dict[int, tuple[int, Ints]] = {}
        self._members: dict[int, int] = {}

    def of(self, v: int) -> tuple[int, Ints]:
        """The representative of a variable that has another, and the states."""
        v, states = self.parents[v]
        while v in self.parents:
            v, above = self.parents[v]
            states = states[above]
        return v, states

    def join(self, x: int, y: int, states: Ints) -> None:
        """x is in `states` of the state of y, which is one to one."""
        if y in self.parents:
            y, of_y = self.of(y)
            states = states[of_y]
        if x in self.parents:
            x, of_x = self.of(x)
            states = np.argsort(of_x)[states]
        if x == y:
            return
        sizes = self._members.get(x, 1), self._members.get(y, 1)
        if sizes[0] > sizes[1]:
            x, y, states = y, x, np.argsort(states)
        self.parents[x] = y, states
        self._members[y] = sum(sizes)


def substituted(factor: Factor, roots: dict[int, tuple[int, Ints]]) -> Factor:
    """A factor with each variable replaced by its representative."""
    if not any(v in roots for v in factor.scope):
        return factor
    scope, table = list(factor.scope), factor.table
    for v in factor.scope:
        if v in roots:
            root, states = roots[v]
            axis = scope.index(v)
            table = table.take(states, axis=axis)
            if root in scope:
                other = scope.index(root)
                table = np.diagonal(table, axis1=other, axis2=axis)
                scope = [u for a, u in enumerate(scope) if a not in (other, axis)]
                scope.append(root)
            else:
                scope[axis] = root
    return Factor(tuple(scope), np.ascontiguousarray(table))


ROUNDS = 20
"""Passes over the model at most; each is exact, so stopping early loses nothing but size."""

CANDIDATES = 32
"""Number of larger factors that are tried for one that contains the scope of another."""


@dataclass(frozen=True)
class _Recoding:
    """The state of each old variable as a function of at most one new variable.

    Attributes
    ----------
    sizes : number of states of each old variable.
    source : the new variable that an old one depends on; -1 for an old one that takes any of its
        labels, whatever the others do.
    first : the labels of old variable v are labels[first[v] : first[v + 1]].
    labels : the state of the old variable for each state of the new one. No labels: all states.
    """

    sizes: Ints
    source: Ints
    first: Ints
    labels: Ints

    def states(self, new: Ints, rng: np.random.Generator | None) -> Ints:
        lengths = np.diff(self.first)
        at = np.zeros((len(new), lengths.size), np.int64)
        inner = self.source >= 0
        at[:, inner] = new[:, self.source[inner]]
        if rng is not None:
            choices = np.where(lengths, lengths, self.sizes)[~inner]
            at[:, ~inner] = rng.integers(choices, size=(len(new), choices.size))
        labels = np.append(self.labels, 0)
        return np.where(lengths, labels[self.first[:-1] + np.where(lengths, at, 0)], at)

    def marginals(self, new: Floats, new_sizes: Ints) -> Floats:
        lengths = np.diff(self.first)
        owner = np.repeat(np.arange(lengths.size), lengths)
        source = self.source[owner]
        weights = 1 / lengths[owner]
        inner = source >= 0
        within = np.arange(owner.size) - self.first[owner]
        weights[inner] = new[starts(new_sizes)[source[inner]] + within[inner]]
        old = starts(self.sizes)
        found = np.bincount(old[owner] + self.labels, weights, minlength=int(old[-1])).astype(np.float64)
        for v in np.flatnonzero(lengths == 0):
            found[old[v] : old[v + 1]] = 1 / self.sizes[v]
        return found


@dataclass(frozen=True)
class Reduction:
    """A model with fewer variables, states and factors, and how its answers are those of the first.

    Attributes
    ----------
    graph : the smaller model; one variable of one state if nothing is left.
    potential : nats that a configuration of the first model has more than that of `graph`.
    free_entropy : ln of the number of configurations of the variables that no factor names.
    """

    graph: FactorGraph
    potential: float
    free_entropy: float
    _recodings: tuple[_Recoding, ...]

    @property
    def constant(self) -> float:
        """ln Z of the first model, less that of `graph`."""
        return self.potential + self.free_entropy

    @cached_property
    def components(self) -> list[Ints]:
        """The variables of each part of `graph` that no factor connects with another."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        t = flat_tables(np.array(self.graph.cardinalities), self.graph.factors)
        n = t.sizes.size
        owner = np.repeat(np.arange(t.first.size - 1), np.diff(t.first))
        links = coo_array(
            (np.ones(owner.size, np.int8), (owner + n, t.scopes)), shape=(n + t.first.size, n + t.first.size)
        )
        part = connected_components(links, directed=False)[1][:n]
        order = np.argsort(part, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(part[order])) + 1)

    def stands_for(self, marked: Bools) -> tuple[Bools, float]:
        """The variables of `graph` that stand for some marked variable of the first model, and
        `free_entropy` without its marked variables.

        Parameters
        ----------
        marked : for each variable of the first model.
        """
        free = 0.0
        for recoding in self._recodings:
            inner = recoding.source >= 0
            free += float(np.log(recoding.sizes[~inner & ~marked]).sum())
            found = np.zeros(int(recoding.source.max(initial=-1)) + 1, np.bool_)
            np.logical_or.at(found, recoding.source[inner], marked[inner])
            marked = found
        return marked if marked.size else np.zeros(1, np.bool_), free

    def original_states(
        self, states: npt.NDArray[np.integer], rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """Configurations of the first model, shape (batch, n of graph) -> (batch, n).

        Parameters
        ----------
        rng : draws the variables that no factor names; without it each is in its first possible
            state.
        """
        found = states.astype(np.int64)
        for recoding in reversed(self._recodings):
            found = recoding.states(found, rng)
        return found

    def original_marginals(self, marginals: Floats) -> Floats:
        """P(x_i) of every state of every variable of the first model, shape (sum of
        cardinalities,), from those of `graph`.
        """
        found, sizes = marginals, np.array(self.graph.cardinalities)
        for recoding in reversed(self._recodings):
            found, sizes = recoding.marginals(found, sizes), recoding.sizes
        return found


def reduced(graph: FactorGraph) -> Reduction:
    """The smaller model that the zeros of a model leave.

    States that a table rules out given the states left of the others are removed, to a fixed point
    (generalised arc consistency; Mackworth, Artificial Intelligence 8, 1977). Tables lose the
    variables that they do not depend on; those of the same scope are multiplied, and one whose
    scope contains another's takes it in, except that a pure constraint takes in no weights. Two
    variables that determine each other become one.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """
    return _Reducer(graph).run()


class _Reducer:
    def __init__(self, graph: FactorGraph) -> None:
        self.potential = self.free_entropy = 0.0
        self.recodings: list[_Recoding] = []
        self.t = flat_tables(np.array(graph.cardinalities), graph.factors)
        self._drop_unused(listed=False)

    def run(self) -> Reduction:
        for _ in range(ROUNDS):
            self._take_constants()
            self._prune()
            self._drop_irrelevant()
            self._take_constants()
            again = self._multiply()
            again |= self._merge()
            self._drop_unused()
            if not again:
                break
        self._take_constants()
        graph = FactorGraph(self.t.sizes.tolist() or [1], factors_of(self.t))
        return Reduction(graph, self.potential, self.free_entropy, tuple(self.recodings))

    def _take_constants(self) -> None:
        empty = np.diff(self.t.first) == 0
        if empty.any():
            self.potential += float(self.t.tables[self.t.places[:-1][empty]].sum())
            if self.potential == -np.inf:
                raise NoConfiguration()
            self._select(~empty)

    def _select(self, kept: Bools) -> None:
        """Keep some of the tables."""
        t = self.t
        lengths, sizes = np.diff(t.first), np.diff(t.places)
        self.t = FlatTables(
            t.sizes,
            starts(lengths[kept]),
            t.scopes[np.repeat(kept, lengths)],
            starts(sizes[kept]),
            t.tables[np.repeat(kept, sizes)],
        )

    def _prune(self) -> None:
        """Remove the states that some table rules out."""
        t = self.t
        offsets = starts(t.sizes)
        kept = np.ones(offsets[-1], np.int64)
        if not kernels.prune(t, *users_of(t), offsets, kept):
            raise NoConfiguration()
        if kept.all():
            return
        sizes = np.add.reduceat(kept, offsets[:-1])
        places = starts(products(sizes[t.scopes], t.first))
        tables = np.empty(places[-1])
        kernels.restrict(t, offsets, kept, np.zeros_like(t.scopes), tables)
        labels = np.flatnonzero(kept) - np.repeat(offsets[:-1], sizes)
        self.recodings.append(_Recoding(t.sizes, np.arange(sizes.size), starts(sizes), labels))
        self.t = FlatTables(sizes, t.first, t.scopes, places, tables)

    def _drop_irrelevant(self) -> None:
        """Take the variables that a table does not depend on out of it, and constants out of
        constraints.
        """
        t = self.t
        found, levels = np.empty_like(t.scopes), np.empty(t.first.size - 1)
        kernels.relations(t, found, levels)
        levels[np.isnan(levels)] = 0
        if (levels == -np.inf).any():
            raise NoConfiguration()
        self.potential += float(levels.sum())
        tables = t.tables - np.repeat(levels, np.diff(t.places))
        needed = found & kernels.DEPENDS > 0
        if not needed.all():
            lengths = np.where(needed, t.sizes[t.scopes], 1)
            places = starts(products(lengths, t.first))
            offsets = starts(t.sizes)
            out = np.empty(places[-1])
            kernels.restrict(
                t._replace(tables=tables), offsets, np.ones(offsets[-1], np.int64), (~needed).astype(np.int64), out
            )
            first = starts(needed.astype(np.int64))[t.first]
            self.t = FlatTables(t.sizes, first, t.scopes[needed], places, out)
        else:
            self.t = t._replace(tables=tables)

    def _drop_unused(self, *, listed: bool = True) -> None:
        """Drop the variables that no table names; `listed` if the states of each may be listed."""
        t = self.t
        used = np.zeros(t.sizes.size, bool)
        used[t.scopes] = True
        if used.all():
            return
        self.free_entropy += float(np.log(t.sizes[~used]).sum())
        numbers = np.where(used, np.cumsum(used) - 1, -1)
        lengths = np.where(used | listed, t.sizes, 0)
        first = starts(lengths)
        labels = np.arange(first[-1]) - np.repeat(first[:-1], lengths)
        self.recodings.append(_Recoding(t.sizes, numbers, first, labels))
        self.t = t._replace(sizes=t.sizes[used], scopes=numbers[t.scopes])

    def _multiply(self) -> bool:
        """Multiply tables over the same variables, and over some of those of another; whether a
        product may have new zeros.
        """
        t = self.t
        first, scopes = t.first.tolist(), t.scopes.tolist()
        groups: dict[frozenset[int], list[int]] = {}
        for f in range(len(first) - 1):
            groups.setdefault(frozenset(scopes[first[f] : first[f + 1]]), []).append(f)
        levels = np.empty(len(first) - 1)
        kernels.relations(t, np.empty_like(t.scopes), levels)
        soft = np.isnan(levels).tolist()
        into = _containers({scope: not any([soft[f] for f in members]) for scope, members in groups.items()})
        for scope in sorted(into, key=len):
            groups[into[scope]] += groups.pop(scope)
        shared = [members for members in groups.values() if len(members) > 1]
        alone = np.ones(len(first) - 1, bool)
        alone[[f for members in shared for f in members]] = False
        if not shared:
            return False
        made = [_product([factor_of(t, f) for f in members]) for members in shared]
        self._select(alone)
        self.t = joined(self.t, flat_tables(t.sizes, made))
        return bool((self.t.tables[-sum(f.table.size for f in made) :] == -np.inf).any())

    def _merge(self) -> bool:
        """Make one variable of two that determine each other; whether there were any."""
        t = self.t
        pairs = np.flatnonzero(np.diff(t.first) == 2)
        found = np.empty_like(t.scopes)
        kernels.relations(t, found, np.empty(t.first.size - 1))
        both = found & kernels.DETERMINED > 0
        pairs = pairs[both[t.first[pairs]] & both[t.first[pairs] + 1]]
        classes = Classes()
        for f in pairs.tolist():
            x, y = t.scopes[t.first[f] : t.first[f + 1]].tolist()
            possible = t.tables[t.places[f] : t.places[f + 1]].reshape(t.sizes[x], t.sizes[y]) > -np.inf
            if (possible.sum(axis=0) == 1).all() and (possible.sum(axis=1) == 1).all():
                classes.join(x, y, possible.argmax(axis=0))
        if not classes.parents:
            return False
        n = t.sizes.size
        found_roots = {v: classes.of(v) for v in classes.parents}
        self.t = flat_tables(t.sizes, [substituted(f, found_roots) for f in factors_of(t)])
        stays = np.ones(n, bool)
        stays[list(found_roots)] = False
        numbers = np.cumsum(stays) - 1
        source = np.arange(n)
        first = starts(t.sizes)
        labels = np.arange(first[-1]) - np.repeat(first[:-1], t.sizes)
        for v, (root, states) in found_roots.items():
            source[v] = root
            labels[first[v] : first[v + 1]] = states
        self.recodings.append(_Recoding(t.sizes, numbers[source], first, labels))
        self.t = self.t._replace(sizes=t.sizes[stays], scopes=numbers[self.t.scopes])
        return True


def _containers(pure: dict[frozenset[int], bool]) -> dict[frozenset[int], frozenset[int]]:
    """For a scope of two variables or more, a larger scope that contains it and may take its table
    in; `pure` tells the scopes whose tables are only constraints.
    """
    longest = max(map(len, pure), default=0)
    users: dict[int, list[frozenset[int]]] = {}
    for scope in pure:
        if len(scope) > 2:
            for v in scope:
                users.setdefault(v, []).append(scope)
    found: dict[frozenset[int], frozenset[int]] = {}
    for scope, simple in pure.items():
        if 2 <= len(scope) < longest:
            near = min([users.get(v, []) for v in scope], key=len)
            for other in near[:CANDIDATES]:
                if scope < other and (simple or not pure[other]):
                    found[scope] = other
                    break
    return found


def _product(factors: Sequence[Factor]) -> Factor:
    """One factor over the largest scope, which contains the others."""
    whole = max(factors, key=lambda f: len(f.scope))
    if len(factors) == 1:
        return whole
    table = np.zeros(whole.table.shape)
    for f in factors:
        axes = sorted(range(len(f.scope)), key=lambda a: whole.scope.index(f.scope[a]))
        shape = [k if v in f.scope else 1 for v, k in zip(whole.scope, whole.table.shape, strict=True)]
        table += f.table.transpose(axes).reshape(shape)
    return Factor(whole.scope, table)
